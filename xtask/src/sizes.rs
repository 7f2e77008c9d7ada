//! How large crates and files are, and the limits that they keep.

use std::collections::BTreeMap;
use std::path::Path;

use crate::source;

/// Most lines of code of a crate, without blank lines, comments and tests.
const LARGEST_CRATE: usize = 15_000;

/// Crates that are larger, and why they are not divided.
const LARGE_CRATES: &[(&str, &str)] = &[];

/// Most lines of a source without its tests.
const LONGEST_FILE: usize = 500;

/// Sources that are longer, and why they stay whole.
const LONG_FILES: &[(&str, &str)] = &[
    ("crates/aggregations/src/ast.rs", "one table of the kinds of aggregations"),
    (
        "crates/segments/src/directory.rs",
        "tantivy's directory trait, whose operations share the list of files",
    ),
    ("crates/scoring/src/error.rs", "one table of errors with their words"),
    ("crates/tantivy-index/src/writer.rs", "one state: a buffer, its commits and what went wrong with them"),
    ("crates/ingest/src/error.rs", "one table of errors with their words"),
    ("crates/search-body/src/body.rs", "one table of the keys of a search"),
    ("crates/search/src/highlight/mod.rs", "a plan of all fields, and what carries it out"),
    ("crates/write-path/src/shard.rs", "one state machine"),
];

/// Every crate and source that is too large, as one sentence; also every stated reason that nothing needs any more.
pub fn check(root: &Path, sources: &[impl AsRef<Path>], problems: &mut Vec<String>) {
    for (name, lines) in by_crate(root, sources) {
        let is_known = LARGE_CRATES.iter().any(|(known, _)| *known == name);
        match (lines > LARGEST_CRATE, is_known) {
            (true, false) => problems.push(format!(
                "crates/{name} has {lines} lines of code, more than {LARGEST_CRATE}: divide it"
            )),
            (false, true) => {
                problems.push(format!(
                    "xtask's list of large crates has {name}, which has {lines} lines of code"
                ));
            }
            _ => {}
        }
    }
    for path in sources {
        let path = path.as_ref();
        let name = path.display().to_string();
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        let lines = source::without_tests(&text).lines().count();
        let is_known = LONG_FILES.iter().any(|(known, _)| *known == name);
        match (lines > LONGEST_FILE && !name.contains("tests"), is_known) {
            (true, false) => problems.push(format!(
                "{name} has {lines} lines without its tests, more than {LONGEST_FILE}: divide it, or say in xtask why it stays whole"
            )),
            (false, true) => problems.push(format!("xtask's list of long files has {name}, which has {lines} lines")),
            _ => {}
        }
    }
}

/// Lines of code of each crate, by its folder.
pub fn by_crate(root: &Path, sources: &[impl AsRef<Path>]) -> BTreeMap<String, usize> {
    let mut crates: BTreeMap<String, usize> = BTreeMap::new();
    for path in sources {
        let parts: Vec<&str> = path.as_ref().iter().filter_map(|part| part.to_str()).collect();
        let ["crates", name, "src", rest @ ..] = parts.as_slice() else { continue };
        if rest.iter().any(|part| part.starts_with("tests") || part.ends_with("_tests.rs")) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        *crates.entry((*name).to_owned()).or_default() += code_lines(&text);
    }
    crates
}

/// Lines that are neither blank nor comments nor tests.
fn code_lines(text: &str) -> usize {
    let product = source::without_tests(text);
    product.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_are_not_code() {
        let text = "//! Words.\n\nuse a::b;\n\n/// Words.\nfn c() {\n    // Words.\n    d(); // words\n}\n\n#[cfg(test)]\nmod tests {\n    fn e() {}\n}\n";
        assert_eq!(code_lines(text), 4);
        assert_eq!(code_lines(&format!("#[cfg(test)]\nuse z;\n{text}")), 4);
    }

    #[test]
    fn large_crates_and_long_files_are_found() {
        let root = std::env::temp_dir().join(format!("sparrow-xtask-{}", std::process::id()));
        let folder = root.join("crates/large/src");
        std::fs::create_dir_all(&folder).unwrap();
        let lines = |count: usize| "fn a() {}\n".repeat(count);
        std::fs::write(folder.join("lib.rs"), lines(LARGEST_CRATE)).unwrap();
        std::fs::write(folder.join("one.rs"), lines(1)).unwrap();
        let mut problems = Vec::new();
        check(&root, &["crates/large/src/lib.rs", "crates/large/src/one.rs"], &mut problems);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(
            problems.iter().any(|it| it.contains("crates/large has 15001 lines of code")),
            "{problems:?}"
        );
        assert!(problems.iter().any(|it| it.contains("lib.rs has 15000 lines without")), "{problems:?}");
        assert!(!problems.iter().any(|it| it.contains("one.rs")), "{problems:?}");
    }
}
