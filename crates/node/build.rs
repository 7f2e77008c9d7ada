fn main() {
    // Built for Windows by another compiler than Microsoft's, the addon looks Node's functions up when it is loaded (the feature
    // `dyn-symbols`); there is no library of Node's to link.
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") != "windows" || target("ENV") != "gnu" {
        napi_build::setup();
    }
}
