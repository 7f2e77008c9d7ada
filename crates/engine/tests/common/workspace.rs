//! Where the workspace keeps the models and libraries that tests need.

use std::path::{Path, PathBuf};

/// Root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").to_path_buf()
}

/// Folders of the embedded models: the sparse one, then the dense one.
pub fn models() -> Vec<PathBuf> {
    ["model-splade-tiny", "model-minilm-l6"].map(|name| root().join("packages").join(name)).to_vec()
}

/// Path of the ONNX Runtime library: from the environment, or else from the npm package.
pub fn runtime() -> PathBuf {
    if let Some(path) = std::env::var_os("SPARROW_ONNXRUNTIME") {
        return path.into();
    }
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        os => os,
    };
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let folder = root().join(format!("node_modules/onnxruntime-node/bin/napi-v6/{os}/{arch}"));
    std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.to_string_lossy();
            name.contains("onnxruntime.") && !name.contains("providers")
        })
        .unwrap_or_else(|| panic!("no ONNX Runtime library in {}: run `npm ci`", folder.display()))
}
