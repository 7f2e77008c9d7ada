//! The architecture, checked: which crate may depend on which, who owns a foreign concept, and which modules go in circles.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::layers::{LAYERS, OWNERS};
use crate::{circles, file_circles, sizes, source};

/// What of `std::fs` any crate may name. All else goes through `sparrow-file-system`, where tests see every operation and let any of them
/// fail.
const FREE_NAMES: &[&str] = &["TryLockError"];

/// Sources that may name more, for reading only, and why.
const READERS: &[(&str, &str)] = &[
    ("crates/encoder/", "reads and maps models, which the operator's folders hold"),
    ("crates/snapshots/src/location.rs", "asks where links lead, which nothing else does"),
    ("crates/runtime/src/work/process.rs", "reads what the system says of the memory of the process"),
];

/// What a source that only reads must not say behind `fs::` or `File::`.
const WRITING: &[&str] = &[
    "fs::copy",
    "fs::create_dir",
    "fs::hard_link",
    "fs::remove_",
    "fs::rename",
    "fs::set_permissions",
    "fs::soft_link",
    "fs::write",
    "File::create",
    "File::options",
    "OpenOptions",
    "symlink(",
];

/// Text that names a machine, not the project.
const MACHINE_PATHS: &[&str] = &["/work/main", "/work/shared", "/root/", "/home/"];

/// Every broken rule as one sentence.
pub fn check() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf();
    let mut problems = Vec::new();
    match dependencies(&root) {
        Ok(dependencies) => check_layers(&dependencies, &mut problems),
        Err(reason) => problems.push(reason),
    }
    let files = tracked_files(&root).unwrap_or_else(|reason| {
        problems.push(reason);
        Vec::new()
    });
    for path in &files {
        check_file(&root, path, &mut problems);
    }
    let sources: Vec<_> = files.iter().filter(|path| path.extension().is_some_and(|it| it == "rs")).collect();
    // A source archive without git lists no files, and has no circle either.
    if !sources.is_empty() {
        circles::check(&root, &sources, &mut problems);
        file_circles::check(&root, &sources, &mut problems);
        sizes::check(&root, &sources, &mut problems);
    }
    problems
}

/// Lines of code of each crate, and the modules that import each other in a circle.
pub fn measured() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf();
    let files = match tracked_files(&root) {
        Ok(files) => files,
        Err(reason) => return vec![reason],
    };
    let sources: Vec<_> = files.iter().filter(|path| path.extension().is_some_and(|it| it == "rs")).collect();
    let lines = sizes::by_crate(&root, &sources).into_iter().map(|(name, lines)| format!("{name} {lines}"));
    let files = file_circles::found(&root, &sources).into_iter();
    let files = files.map(|(name, circle)| format!("circle of files in {name}: {}", circle.join(", ")));
    lines.chain(circles::found(&root, &sources)).chain(files).collect()
}

/// Direct dependencies of each workspace crate, test dependencies left out.
fn dependencies(root: &Path) -> Result<BTreeMap<String, Vec<String>>, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata cannot run: {error}"))?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    Ok(packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let names = dependencies
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
                .collect();
            (package["name"].as_str().unwrap_or_default().to_owned(), names)
        })
        .collect())
}

fn check_layers(dependencies: &BTreeMap<String, Vec<String>>, problems: &mut Vec<String>) {
    for (floor, (name, allowed)) in LAYERS.iter().enumerate() {
        for used in *allowed {
            if !LAYERS[..floor].iter().any(|(below, _)| below == used) {
                problems.push(format!("xtask's LAYERS lets {name} use {used}, which is not below it"));
            }
        }
    }
    for (name, uses) in dependencies {
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| layer == name) else {
            problems.push(format!("crate {name} has no place in xtask's LAYERS"));
            continue;
        };
        for used in uses {
            let ours = LAYERS.iter().any(|(layer, _)| layer == used);
            if ours && !allowed.contains(&used.as_str()) {
                problems.push(format!("{name} must not depend on {used}"));
            }
            if let Some((library, owners)) = OWNERS.iter().find(|(library, _)| library == used)
                && !owners.contains(&name.as_str())
            {
                problems.push(format!("{name} must not depend on {library}: {} owns it", owners[0]));
            }
        }
    }
}

/// The files that git knows or would add. A source archive has none: it comes without a repository, and maybe without git.
fn tracked_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let listed = match listed {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("git ls-files cannot run: {error}")),
    };
    if listed.status.success() {
        return Ok(String::from_utf8_lossy(&listed.stdout).lines().map(PathBuf::from).collect());
    }
    if !root.join(".git").exists() {
        return Ok(Vec::new());
    }
    Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&listed.stderr).trim()))
}

fn check_file(root: &Path, path: &Path, problems: &mut Vec<String>) {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let name = path.display().to_string();
    if !["rs", "ts", "tsx", "mjs", "js", "json", "md", "toml", "sh", "py", "html", "css"].contains(&extension)
        || name.starts_with("test/fixtures/")
        || name == "xtask/src/tidy.rs"
    {
        return;
    }
    let Ok(text) = std::fs::read_to_string(root.join(path)) else { return };
    for machine in MACHINE_PATHS {
        if text.contains(machine) {
            problems.push(format!("{name} names a machine's path: {machine}"));
        }
    }
    if extension == "rs" {
        check_fs(&name, &text, problems);
    }
    if extension == "json" && name.ends_with("package-lock.json") && text.contains("\"resolved\": \"http") {
        problems.push(format!("{name} names a registry host"));
    }
}

/// Operations on files that faults of tests would not meet.
fn check_fs(name: &str, text: &str, problems: &mut Vec<String>) {
    let is_product = name.starts_with("crates/") && name.contains("/src/") && !name.contains("tests");
    // What only tests use may keep files of its own.
    if !is_product || name.starts_with("crates/file-system/") || name.starts_with("crates/fuzzing/") {
        return;
    }
    let code = source::code(text);
    if !names_fs(&code) {
        return;
    }
    if !READERS.iter().any(|(path, _)| name.starts_with(path)) {
        problems.push(format!("{name} names std::fs: operations on files go through sparrow-file-system"));
        return;
    }
    for writing in WRITING.iter().filter(|writing| code.contains(**writing)) {
        problems.push(format!("{name} may only read by std::fs, and says {writing}"));
    }
}

/// Whether code says `std::fs`, alone or in a list of imports, with more than the names that are free.
fn names_fs(code: &str) -> bool {
    let is_named = code.match_indices("std::fs").any(|(at, path)| {
        let behind = &code[at + path.len()..];
        let is_whole = !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        is_whole
            && !FREE_NAMES.iter().any(|free| behind.strip_prefix("::").is_some_and(|it| it.starts_with(free)))
    });
    let is_listed = code.match_indices("std::{").any(|(at, path)| {
        let heads = circles::heads(&code[at + path.len()..]);
        heads.iter().map(|head| head.trim()).any(|head| {
            head.strip_prefix("fs").is_some_and(|behind| behind.is_empty() || behind.starts_with([':', ' ']))
        })
    });
    is_named || is_listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn operations_that_faults_would_not_meet_are_found() {
        let found = |name: &str, text: &str| {
            let mut problems = Vec::new();
            check_fs(name, text, &mut problems);
            problems
        };
        let storage = "crates/write-ahead-log/src/a.rs";
        assert_eq!(found(storage, "use std::fs;").len(), 1);
        assert_eq!(found(storage, "    std::fs::remove_file(path)?;").len(), 1);
        assert_eq!(found(storage, "use std::fs::{self, TryLockError};").len(), 1);
        assert_eq!(found(storage, "use std::{fs, io};").len(), 1);
        assert_eq!(found(storage, "use std::{\n    io,\n    fs::{self, File},\n};").len(), 1);
        assert_eq!(found(storage, "#[cfg(test)]\nmod tests;\nuse std::fs as files;").len(), 1);
        assert!(found(storage, "use std::{fmt, io};\nlet a = \"std::fs\"; // std::fs").is_empty());
        assert!(
            found(
                storage,
                "use std::fs::TryLockError;\nuse sparrow_file_system::{self as fs};\nfs::write(a, b)?;"
            )
            .is_empty()
        );
        assert!(found(storage, "#[cfg(test)]\nmod tests {\n    use std::fs;\n}").is_empty());
        assert!(found("crates/write-ahead-log/src/wal/tests.rs", "use std::fs;").is_empty());
        let reader = "crates/snapshots/src/location.rs";
        assert!(found(reader, "use std::fs;\nfs::canonicalize(a)").is_empty());
        assert_eq!(found(reader, "use std::fs;\nfs::write(a, b)").len(), 1);
    }

    #[test]
    fn a_refusal_of_git_is_a_problem_and_a_missing_repository_is_none() {
        let root = std::env::temp_dir().join(format!("sparrow-xtask-git-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let without = tracked_files(&root);
        // What git refuses: a link to a repository that is not there.
        std::fs::write(root.join(".git"), "gitdir: nowhere\n").unwrap();
        let refused = tracked_files(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(without, Ok(Vec::new()));
        assert!(
            refused.as_ref().is_err_and(|reason| reason.starts_with("git ls-files failed: fatal:")),
            "{refused:?}"
        );
    }

    #[test]
    fn a_forbidden_edge_and_a_foreign_library_are_found() {
        let mut problems = Vec::new();
        let crates = BTreeMap::from([
            ("sparrow-postings".to_owned(), vec!["sparrow-vectors".to_owned(), "half".to_owned()]),
            ("sparrow-engine".to_owned(), vec!["tantivy".to_owned(), "sparrow-tantivy-index".to_owned()]),
        ]);
        check_layers(&crates, &mut problems);
        assert_eq!(
            problems,
            [
                "sparrow-engine must not depend on tantivy: sparrow-tantivy-index owns it",
                "sparrow-postings must not depend on sparrow-vectors",
            ]
        );
    }
}
