//! What the build takes from others, checked without a network: where it comes from, under which licence, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences that one may pass on with a program under Apache-2.0. One of those that a crate may be had under has to be here.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "BlueOak-1.0.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Licences of what is used to develop, and never shipped.
const TOOL_LICENCES: &[&str] = &["BSD", "MPL-2.0", "Python-2.0"];

/// Crates that are there in more than one version, each because of what others ask for. One that is no longer must go from here.
const TWICE: &[&str] = &[
    "base64",
    "cpufeatures",
    "darling",
    "darling_core",
    "darling_macro",
    "getrandom",
    "itertools",
    "r-efi",
    "rand",
    "rand_core",
    "syn",
    "windows-sys",
];

/// Every broken rule as one sentence.
pub fn check() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let mut problems = Vec::new();
    match std::fs::read_to_string(root.join("Cargo.lock")) {
        Ok(lock) => check_cargo_lock(&lock, &mut problems),
        Err(error) => problems.push(format!("Cargo.lock: {error}")),
    }
    check_licences(root, &mut problems);
    match std::fs::read(root.join("package-lock.json")).map_err(|error| error.to_string()) {
        Ok(lock) => match serde_json::from_slice(&lock) {
            Ok(lock) => check_npm_lock(&lock, &mut problems),
            Err(error) => problems.push(format!("package-lock.json: {error}")),
        },
        Err(error) => problems.push(format!("package-lock.json: {error}")),
    }
    problems
}

/// Sources, checksums and versions of crates.
fn check_cargo_lock(lock: &str, problems: &mut Vec<String>) {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
            Some(line.trim_matches('"'))
        };
        let name = field("name").unwrap_or_default();
        versions.entry(name).or_default().insert(field("version").unwrap_or_default());
        match field("source") {
            // One of ours.
            None => {}
            Some(REGISTRY) if field("checksum").is_some() => {}
            Some(REGISTRY) => problems.push(format!("{name} has no checksum in Cargo.lock")),
            Some(other) => problems.push(format!("{name} comes from {other}")),
        }
    }
    for (name, found) in &versions {
        let known = TWICE.contains(name);
        if found.len() > 1 && !known {
            problems.push(format!("{name} is there in several versions: {found:?}"));
        } else if found.len() == 1 && known {
            problems.push(format!("{name} is there in one version only: it can go from xtask's TWICE"));
        }
    }
}

/// Licences of the crates of this platform: those of others need not be on the machine.
fn check_licences(root: &Path, problems: &mut Vec<String>) {
    let host = Command::new("rustc").arg("-vV").output().map(|output| output.stdout).unwrap_or_default();
    let host = String::from_utf8_lossy(&host);
    let Some(host) = host.lines().find_map(|line| line.strip_prefix("host: ")) else {
        problems.push("rustc does not say for which platform it is".to_owned());
        return;
    };
    let metadata = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--offline", "--format-version", "1", "--filter-platform", host])
        .current_dir(root)
        .output();
    let metadata: Option<Value> =
        metadata.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    let Some(packages) = metadata.as_ref().and_then(|metadata| metadata["packages"].as_array()) else {
        problems.push("cargo metadata lists no packages".to_owned());
        return;
    };
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        match package["license"].as_str() {
            Some(licence) if may_be_used(licence, LICENCES) => {}
            Some(licence) => problems.push(format!("{name} is under {licence}")),
            None => problems.push(format!("{name} does not say under which licence it is")),
        }
    }
}

/// Checksums and licences of packages. What a registry's address would be is not written down (see `tidy`).
fn check_npm_lock(lock: &Value, problems: &mut Vec<String>) {
    for (path, package) in lock["packages"].as_object().into_iter().flatten() {
        if !path.contains("node_modules/") || package["link"].as_bool() == Some(true) {
            continue;
        }
        let name = path.rsplit("node_modules/").next().unwrap_or(path);
        if !package["integrity"].is_string() {
            problems.push(format!("{name} has no checksum in package-lock.json"));
        }
        let is_tool = package["dev"].as_bool() == Some(true);
        let allowed = if is_tool { [LICENCES, TOOL_LICENCES].concat() } else { LICENCES.to_vec() };
        if !package["license"].as_str().is_some_and(|licence| may_be_used(licence, &allowed)) {
            problems.push(format!("{name} is under {}", package["license"]));
        }
    }
}

/// Whether some choice that a licence expression leaves is among those allowed: every `AND` needs one of its `OR`s.
fn may_be_used(expression: &str, allowed: &[&str]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| {
        part.split(" OR ").any(|one| {
            let licence = one.split(" WITH ").next().unwrap_or(one).trim();
            allowed.contains(&licence)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_taken_from_others_may_be() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn breaches_are_found() {
        let mut problems = Vec::new();
        check_cargo_lock(
            "[[package]]\nname = \"a\"\nversion = \"1\"\nsource = \"git+https://example.org\"\n[[package]]\nname = \"b\"\nversion = \"1\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n[[package]]\nname = \"b\"\nversion = \"2\"\n",
            &mut problems,
        );
        assert!(problems.iter().any(|one| one.starts_with("a comes from git")));
        assert!(problems.iter().any(|one| one == "b has no checksum in Cargo.lock"));
        assert!(problems.iter().any(|one| one.starts_with("b is there in several versions")));
        let mut problems = Vec::new();
        check_npm_lock(
            &json!({"packages": {"node_modules/a": {"license": "GPL-3.0", "dev": true}, "node_modules/b": {"license": "MPL-2.0", "integrity": "x"}}}),
            &mut problems,
        );
        assert_eq!(problems.len(), 3, "{problems:?}");
        for (expression, usable) in [
            ("MIT OR GPL-3.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0", false),
        ] {
            assert_eq!(may_be_used(expression, LICENCES), usable, "{expression}");
        }
    }
}
