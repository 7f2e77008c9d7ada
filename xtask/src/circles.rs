//! Modules that import each other in a circle.
//!
//! The modules of a crate are the files and folders of its `src`; an import is a path that begins with `crate::`, or with
//! `super::` where that leads to the root. What is in a circle cannot be read, tested or moved alone. A crate's root is a module
//! too, as far as it defines something itself; circles through it have a list of their own, so that those without it stay visible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source;

/// Circles that there are: the crate and all modules of one. None may be added; whoever opens one takes it out of the list.
const KNOWN: &[(&str, &[&str])] = &[
    ("tantivy-index", &["query", "snapshot"]),
    // A dynamic template is a definition, which is parsed when a document brings its field.
    ("mapping", &["dynamic", "parse"]),
    // Endpoints are a part of the models, and the requests about endpoints, in the same folder, need all of them.
    ("models", &["api", "endpoints", "models", "service"]),
    // A search holds searches: `inner_hits` of a collapse, `top_hits` of an aggregation, the lists of a retriever.
    ("search-body", &["aggs", "body", "collapse", "retriever"]),
];

/// Circles through a crate's root: what `lib.rs` defines is imported by modules that it imports itself. The crate and all modules of
/// one; docs/design/crates.md says why they are left.
const KNOWN_AT_ROOT: &[(&str, &[&str])] = &[
    ("mapping", &["document", "dynamic", "parse", "print", "semantic", "update"]),
    ("presentation", &["filter", "layout"]),
];

/// The root's own name in the graph.
const ROOT: &str = "lib";

/// Which modules (or files) of a crate each one imports.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// Every circle that is not known, and every known one that is none any more, as one sentence. `sources` are paths below `root`.
pub fn check(root: &Path, sources: &[impl AsRef<Path>], problems: &mut Vec<String>) {
    let found = all(root, sources);
    compare(&found.among_modules, KNOWN, "modules import each other in a circle", problems);
    compare(&found.through_root, KNOWN_AT_ROOT, "modules are in a circle with its lib.rs", problems);
}

pub fn compare(found: &Circles, known: &[(&str, &[&str])], what: &str, problems: &mut Vec<String>) {
    let known: Circles = known
        .iter()
        .map(|(name, circle)| {
            ((*name).to_owned(), circle.iter().map(|module| (*module).to_owned()).collect())
        })
        .collect();
    for (name, circle) in found.difference(&known) {
        problems.push(format!("crates/{name}: these {what}: {}", circle.join(", ")));
    }
    for (name, circle) in known.difference(found) {
        problems.push(format!(
            "xtask's list of circles has one that crates/{name} has not: {}",
            circle.join(", ")
        ));
    }
}

/// Every circle, as one sentence.
pub fn found(root: &Path, sources: &[impl AsRef<Path>]) -> Vec<String> {
    let Found { among_modules, through_root } = all(root, sources);
    let sentences = |circles: Circles, kind: &'static str| {
        circles.into_iter().map(move |(name, circle)| format!("{kind} {name}: {}", circle.join(", ")))
    };
    sentences(among_modules, "circle in")
        .chain(sentences(through_root, "circle through the root of"))
        .collect()
}

/// Circles of crates: the name of the crate and the modules (or files) of each.
pub type Circles = BTreeSet<(String, Vec<String>)>;

/// The circles of all crates.
struct Found {
    /// Those that there are without the root.
    among_modules: Circles,
    /// Those that the root is part of, without the root itself.
    through_root: Circles,
}

fn all(root: &Path, sources: &[impl AsRef<Path>]) -> Found {
    let texts: Vec<(&Path, String)> = sources
        .iter()
        .filter_map(|path| Some((path.as_ref(), std::fs::read_to_string(root.join(path)).ok()?)))
        .collect();
    let mut roots: BTreeMap<String, Root> = BTreeMap::new();
    for (path, text) in &texts {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        if let ["crates", name, "src", "lib.rs"] = parts.as_slice() {
            roots.insert((*name).to_owned(), Root::of(text));
        }
    }
    let mut crates: BTreeMap<String, Imports> = BTreeMap::new();
    for (path, text) in &texts {
        let Some(Place { name, module, depth }) = place(path) else { continue };
        let mut imported = imports(text, depth);
        if let Some(root) = roots.get(&name) {
            // What the root hands on from a module is an import of that module.
            imported.extend(imported.clone().iter().filter_map(|name| root.handed_on.get(name).cloned()));
            if imported.iter().any(|name| root.defined.contains(name)) {
                imported.insert(ROOT.to_owned());
            }
        }
        imported.remove(&module);
        crates.entry(name).or_default().entry(module).or_default().extend(imported);
    }
    let mut found = Found { among_modules: Circles::new(), through_root: Circles::new() };
    for (name, mut imports) in crates {
        found.among_modules.extend(circles(&imports).into_iter().map(|circle| (name.clone(), circle)));
        let Some(root) = roots.remove(&name) else { continue };
        imports.insert(ROOT.to_owned(), root.imported);
        for mut circle in circles(&imports) {
            let modules = circle.len();
            circle.retain(|module| module != ROOT);
            if circle.len() < modules {
                found.through_root.insert((name.clone(), circle));
            }
        }
    }
    found
}

/// What a crate's root is to its modules.
struct Root {
    /// Names that it hands on, and the modules that they come from.
    handed_on: BTreeMap<String, String>,
    /// Names of the items that it defines.
    defined: BTreeSet<String>,
    /// Modules that its own items use.
    imported: BTreeSet<String>,
}

impl Root {
    fn of(text: &str) -> Self {
        let code = source::code(text);
        let modules = declared(&code);
        // A function and a module may have one name, which a path almost always means the module by.
        let defined = &defined(&code) - &modules;
        Self { handed_on: reexports(&code), defined, imported: used_by_root(&code, &modules) }
    }
}

/// Names of the items that a root defines. An item begins where its line does.
fn defined(code: &str) -> BTreeSet<String> {
    const ITEMS: &[&str] =
        &["fn", "struct", "enum", "union", "trait", "type", "static", "const", "macro_rules!"];
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        let kind =
            words.by_ref().find(|word| !word.starts_with("pub") && !matches!(*word, "async" | "unsafe"))?;
        let name = words.next().filter(|_| ITEMS.contains(&kind))?;
        Some(word(if name == "fn" { words.next()? } else { name }))
    };
    code.lines().filter(|line| !line.starts_with(' ')).filter_map(name).collect()
}

/// The modules that a root declares.
fn declared(code: &str) -> BTreeSet<String> {
    code.split(';')
        .filter_map(|statement| Some(word(statement.lines().last()?.split_once("mod ")?.1)))
        .collect()
}

/// Those of the modules that a root says a path of, other than to hand something on.
fn used_by_root(code: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let mut hands_on = false;
    let mut used = BTreeSet::new();
    for statement in code.split_inclusive([';', '}']).map(str::trim_start) {
        hands_on |= statement.starts_with("pub use ") || statement.starts_with("pub(crate) use ");
        if !hands_on {
            for (at, _) in statement.match_indices("::") {
                let module = statement[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
                let path = module.map_or("", |module| &statement[..at - module.len()]);
                let is_ours = !path.ends_with("::") || path.ends_with("crate::") || path.ends_with("self::");
                used.extend(module.filter(|module| is_ours && modules.contains(*module)).map(str::to_owned));
            }
        }
        hands_on &= !statement.ends_with(';');
    }
    used
}

/// Where a source is: its crate, the module of the crate's root that it belongs to, and how many `super` lead to the root.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    name: String,
    module: String,
    depth: usize,
}

/// The place of a source; none for a crate's root and for tests.
fn place(path: &Path) -> Option<Place> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let ["crates", name, "src", module, rest @ ..] = parts.as_slice() else { return None };
    if rest.iter().any(|part| part.starts_with("tests") || part.ends_with("_tests.rs"))
        || module.ends_with("_tests.rs")
    {
        return None;
    }
    let module = module.strip_suffix(".rs").unwrap_or(module);
    let is_root = matches!(module, "lib" | "main" | "tests");
    let depth = 1 + rest.iter().filter(|part| **part != "mod.rs").count();
    (!is_root).then(|| Place { name: (*name).to_owned(), module: module.to_owned(), depth })
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Names of its own crate's root that a source says outside of its tests: behind `crate::`, and behind as many `super::` as lead to
/// the root.
fn imports(text: &str, depth: usize) -> BTreeSet<String> {
    let code = source::code(text);
    let mut found = BTreeSet::new();
    let above = "super::".repeat(depth);
    let paths = code.match_indices("crate::").chain(code.match_indices(&above));
    for (at, path) in paths {
        // `$crate::` and `other_crate::` are other paths, and `super::super::` has another root.
        let before = &code[..at];
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') || before.ends_with("::") {
            continue;
        }
        let behind = &code[at + path.len()..];
        match behind.strip_prefix('{') {
            None => drop(found.insert(word(behind))),
            Some(list) => found.extend(heads(list).into_iter().map(word)),
        }
    }
    // A longer chain of `super::` has a root that is farther up.
    found.remove("super");
    found
}

/// What a crate's root hands on from its modules: names, and the modules that they come from.
fn reexports(code: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in code.split(';') {
        let Some((_, path)) = statement.rsplit_once("use ") else { continue };
        let path = path.trim_start_matches("self::").trim_start_matches("crate::");
        let Some((module, names)) = path.split_once("::") else { continue };
        let names = match names.strip_prefix('{') {
            Some(list) => heads(list),
            None => vec![names],
        };
        for name in names {
            let last = name.rsplit("::").next().unwrap_or(name);
            let last = last.rsplit(" as ").next().unwrap_or(last);
            found.insert(word(last), word(module));
        }
    }
    found
}

/// The parts of a list in braces, which `text` begins after: each with whatever list it has itself.
pub fn heads(text: &str) -> Vec<&str> {
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
pub fn circles(imports: &Imports) -> Vec<Vec<String>> {
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
            #[cfg(test)]\nuse crate::no;\nuse crate::i;";
        assert_eq!(imports(text, 1), set(&["a", "c", "d", "G", "h", "i"]));
        let text = "use super::a::B;\nuse super::super::c;\nfn x() { super::d::y() }";
        assert_eq!(imports(text, 1), set(&["a", "d"]));
        assert_eq!(imports(text, 2), set(&["c"]));
    }

    #[test]
    fn what_the_root_hands_on_belongs_to_its_module() {
        let text = "mod a;\npub use self::a::{B, c as D};\nuse crate::e::F;\nuse other::g;";
        let named = |name: &str, module: &str| (name.to_owned(), module.to_owned());
        assert_eq!(
            reexports(text),
            BTreeMap::from([named("B", "a"), named("D", "a"), named("F", "e"), named("g", "other")])
        );
    }

    #[test]
    fn a_root_defines_names_and_uses_modules_apart_from_handing_on() {
        let root = Root::of(
            "mod a;\npub mod b;\n#[cfg(test)]\nmod c;\nmod d;\nmod e;\npub use a::{A,\n    B};\nuse d::{D, b as f};\nuse std::fmt::e;\n\
             pub struct F<G>(G);\nimpl F<u8> {\n    fn h() { self::b::i() }\n}\npub(crate) const fn j() {}\nconst K: u8 = 1;\n\
             #[cfg(test)]\nfn l() {}",
        );
        assert_eq!(root.defined, set(&["F", "j", "K"]));
        assert_eq!(root.imported, set(&["b", "d"]));
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
        let at = |name: &str, module: &str, depth: usize| {
            Some(Place { name: name.to_owned(), module: module.to_owned(), depth })
        };
        assert_eq!(of("crates/query/src/dsl/mod.rs"), at("query", "dsl", 1));
        assert_eq!(of("crates/query/src/dsl/term.rs"), at("query", "dsl", 2));
        assert_eq!(of("crates/tantivy-index/src/writer.rs"), at("tantivy-index", "writer", 1));
        for other in [
            "crates/tantivy-index/src/lib.rs",
            "crates/tantivy-index/src/query/tests/mod.rs",
            "crates/tantivy-index/tests/a.rs",
        ] {
            assert_eq!(of(other), None);
        }
    }
}
