//! Modules that import each other in a circle.
//!
//! The modules of a crate are the files and folders of its `src`; an import is a path that begins with `crate::`. What is in a
//! circle cannot be read, tested or moved alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Circles that there are: the crate and all modules of one. None may be added; whoever opens one takes it out of the list.
const KNOWN: &[(&str, &[&str])] = &[
    ("encoder", &["model", "session"]),
    ("encoder", &["deployment", "queue"]),
    ("engine", &["named", "origin", "request", "rights"]),
    (
        "engine",
        &[
            "check",
            "cluster",
            "indices",
            "inference",
            "jobs",
            "memory",
            "models",
            "options",
            "search",
            "semantic",
            "slow_log",
            "snapshots",
        ],
    ),
    ("index", &["filter_cache", "query", "snapshot"]),
    ("index", &["directory", "verify"]),
    ("index", &["index", "merge_policy", "widen", "writer"]),
    ("postings", &["kernels", "record", "resolved", "term"]),
    ("postings", &["cursor", "reader"]),
];

/// Which modules of a crate a module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Every circle that is not known, and every known one that is none any more, as one sentence. `sources` are paths below `root`.
pub fn check(root: &Path, sources: &[impl AsRef<Path>], problems: &mut Vec<String>) {
    let mut crates: BTreeMap<String, Imports> = BTreeMap::new();
    for path in sources {
        let path = path.as_ref();
        let Some((name, module)) = place(path) else { continue };
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        crates.entry(name).or_default().entry(module).or_default().extend(imports(&text));
    }
    let found: BTreeSet<(String, Vec<String>)> = crates
        .into_iter()
        .flat_map(|(name, imports)| circles(&imports).into_iter().map(move |circle| (name.clone(), circle)))
        .collect();
    let known: BTreeSet<(String, Vec<String>)> = KNOWN
        .iter()
        .map(|(name, circle)| {
            ((*name).to_owned(), circle.iter().map(|module| (*module).to_owned()).collect())
        })
        .collect();
    for (name, circle) in found.difference(&known) {
        problems
            .push(format!("modules of crates/{name} import each other in a circle: {}", circle.join(", ")));
    }
    for (name, circle) in known.difference(&found) {
        problems.push(format!(
            "xtask's list of circles has one that crates/{name} has not: {}",
            circle.join(", ")
        ));
    }
}

/// The crate and the module that a source belongs to; none for a crate's root and for tests.
fn place(path: &Path) -> Option<(String, String)> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let ["crates", name, "src", module, rest @ ..] = parts.as_slice() else { return None };
    if rest.iter().any(|part| part.starts_with("tests")) {
        return None;
    }
    let module = module.strip_suffix(".rs").unwrap_or(module);
    (!matches!(module, "lib" | "main" | "tests")).then(|| ((*name).to_owned(), module.to_owned()))
}

/// Modules of its own crate that a source names before its tests, comments left out.
fn imports(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .map(|line| line.split("//").next().unwrap_or_default())
        .fold(String::new(), |code, line| code + line + "\n");
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut found = BTreeSet::new();
    for (at, path) in code.match_indices("crate::") {
        // `$crate::` and `other_crate::` are other paths.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let behind = &code[at + path.len()..];
        match behind.strip_prefix('{') {
            None => drop(found.insert(word(behind))),
            Some(list) => found.extend(heads(list).into_iter().map(word)),
        }
    }
    found
}

/// The parts of a list in braces, which `text` begins after: each with whatever list it has itself.
fn heads(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts
}

/// Sets of modules each of which is reached from each other one, in order.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached = |from: &String| -> BTreeSet<&String> {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in imports.get(module).into_iter().flatten() {
                if imports.contains_key(next) && seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|module| (module, reached(module))).collect();
    let mut circles: Vec<Vec<String>> = all
        .iter()
        .map(|(module, theirs)| {
            let both = theirs.iter().filter(|other| all[*other].contains(module));
            both.map(|other| (*other).clone()).collect::<Vec<_>>()
        })
        .filter(|circle| circle.len() > 1)
        .collect();
    circles.sort();
    circles.dedup();
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn imports_are_read_from_paths_and_lists() {
        let text = "use crate::a::B;\nuse crate::{c, d::{E, f}, G};\n// crate::no\nfn x() { crate::h::y(); my_crate::no() }\n\
            #[cfg(test)]\nuse crate::no;";
        assert_eq!(imports(text), set(&["a", "c", "d", "G", "h"]));
    }

    #[test]
    fn a_circle_is_found_whole_and_once() {
        let imports = [("a", &["b"][..]), ("b", &["c", "d"]), ("c", &["a"]), ("d", &["d", "elsewhere"])]
            .map(|(module, theirs)| (module.to_owned(), set(theirs)));
        assert_eq!(circles(&Imports::from(imports)), [["a", "b", "c"]]);
    }

    #[test]
    fn sources_belong_to_a_crate_and_a_module() {
        let of = |path: &str| place(Path::new(path));
        assert_eq!(of("crates/engine/src/search/dsl/mod.rs"), Some(("engine".into(), "search".into())));
        assert_eq!(of("crates/index/src/writer.rs"), Some(("index".into(), "writer".into())));
        for other in
            ["crates/index/src/lib.rs", "crates/index/src/query/tests/mod.rs", "crates/index/tests/a.rs"]
        {
            assert_eq!(of(other), None);
        }
    }
}
