//! Files of a crate that import each other in a circle: what is in one cannot be read from the top down.
//!
//! A file imports another one by a path that ends in it: one that begins with `crate::`, `self::` or `super::`, or in a `use` with the
//! name of a module below. A path may lead through names that a file hands on (`pub use`); `mod.rs` and `lib.rs` are tables of contents,
//! for which handing on is no import. Modules inside a file count as the file, whose `super` is the folder's module.

use std::collections::BTreeMap;
use std::path::Path;

use crate::circles::{Circles, Imports, circles, compare, heads};
use crate::source;

/// Circles that there are: the crate, the files of one, and why it stays.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "tantivy-index",
        &[
            "query/compile.rs",
            "query/explain/label.rs",
            "query/explain/mod.rs",
            "query/filters/key.rs",
            "query/filters/mod.rs",
            "query/highlight.rs",
            "query/kinds/mod.rs",
            "query/kinds/query_string.rs",
            "query/kinds/term.rs",
            "query/kinds/text.rs",
        ],
        "queries hold queries: what compiles, filters, highlights and explains one asks its kind, and the kinds ask for it of theirs",
    ),
    (
        "tantivy-index",
        &[
            "query/search/conjunction.rs",
            "query/search/dis_max.rs",
            "query/search/document_at_a_time.rs",
            "query/search/max_score.rs",
            "query/search/mod.rs",
            "query/search/sparse_search.rs",
            "query/search/words.rs",
        ],
        "a search that joins others is joined itself, and a plan that cannot serve hands over to the next",
    ),
    ("ingest", &["chain/foreach.rs", "chain/node.rs"], "`foreach` is a processor, and holds one"),
    (
        "mapping",
        &["dynamic.rs", "lib.rs", "parse/mod.rs"],
        "a mapping holds dynamic templates, which are definitions that are parsed when a document brings their field",
    ),
    (
        "query",
        &["kinds/dsl/mod.rs", "kinds/mod.rs"],
        "clauses hold clauses, which are parsed by the kind of each",
    ),
    (
        "scripts",
        &["value/collection.rs", "value/mod.rs", "value/object.rs"],
        "values hold collections and objects, which hold values",
    ),
    (
        "search-body",
        &["aggs/parse/mod.rs", "body.rs", "collapse.rs", "retriever/mod.rs"],
        "searches hold searches: `inner_hits` of a collapse, `top_hits` of an aggregation, the lists of a retriever",
    ),
];

/// Every circle that is not known, and every known one that is none any more, as one sentence. `sources` are paths below `root`.
pub fn check(root: &Path, sources: &[impl AsRef<Path>], problems: &mut Vec<String>) {
    let known: Vec<(&str, &[&str])> = KNOWN.iter().map(|(name, files, _)| (*name, *files)).collect();
    compare(&found(root, sources), &known, "files import each other in a circle", problems);
}

/// All circles of files.
pub fn found(root: &Path, sources: &[impl AsRef<Path>]) -> Circles {
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for path in sources.iter().map(AsRef::as_ref) {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let ["crates", name, "src", rest @ ..] = parts.as_slice() else { continue };
        let is_test = rest.iter().any(|part| *part == "tests" || part.ends_with("tests.rs"));
        if !is_test && let Ok(text) = std::fs::read_to_string(root.join(path)) {
            crates.entry((*name).to_owned()).or_default().push((rest.join("/"), source::code(&text)));
        }
    }
    let of_crate = |(name, files): (String, Vec<(String, String)>)| {
        circles(&Files::of(&files).imports()).into_iter().map(move |circle| (name.clone(), circle))
    };
    crates.into_iter().flat_map(of_crate).collect()
}

/// The parts of a path.
type Parts<'a> = Vec<&'a str>;

/// The files of a crate.
struct Files<'a> {
    /// The file of each module.
    of_module: BTreeMap<Parts<'a>, &'a str>,
    /// Of each file: its module, the paths in its code, and those among them that it hands on.
    all: BTreeMap<&'a str, (Parts<'a>, Vec<String>, Vec<String>)>,
}

impl<'a> Files<'a> {
    fn of(files: &'a [(String, String)]) -> Self {
        let mut found = Self { of_module: BTreeMap::new(), all: BTreeMap::new() };
        for (file, code) in files {
            let mut module: Parts<'_> = file.trim_end_matches(".rs").split('/').collect();
            if matches!(module.last(), Some(&("mod" | "lib" | "main"))) {
                module.pop();
            }
            let (mut paths, mut handed_on) = (Vec::new(), Vec::new());
            for statement in code.split(';') {
                let (before, path) = statement.rsplit_once("use ").unwrap_or((statement, ""));
                paths.extend(in_code(before));
                let is_public = before.trim_end().ends_with("pub") || before.trim_end().ends_with(')');
                (if is_public { &mut handed_on } else { &mut paths }).extend(expanded(path));
            }
            found.of_module.insert(module.clone(), file);
            found.all.insert(file, (module, paths, handed_on));
        }
        found
    }

    /// Which files each one imports.
    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (file, (module, paths, handed_on)) in &self.all {
            let is_contents = ["mod.rs", "lib.rs"].iter().any(|contents| file.ends_with(contents));
            let handed_on = handed_on.iter().filter(|_| !is_contents);
            let files =
                paths.iter().chain(handed_on).filter_map(|path| self.led_to(self.absolute(path, module)?, 0));
            imports.insert((*file).to_owned(), files.filter(|to| to != file).map(str::to_owned).collect());
        }
        imports
    }

    /// A path from the root of the crate; none if it leads out of the crate.
    fn absolute<'p>(&self, path: &'p str, module: &[&'p str]) -> Option<Parts<'p>>
    where
        'a: 'p,
    {
        let parts: Parts<'_> = path.split("::").collect();
        let up = parts.iter().take_while(|part| **part == "super").count();
        let (base, rest) = match parts[0] {
            "crate" => (0, &parts[1..]),
            "self" => (module.len(), &parts[1..]),
            "super" => (module.len().checked_sub(up)?, &parts[up..]),
            first if self.of_module.contains_key(&[module, &[first]].concat()) => (module.len(), &parts[..]),
            _ => return None,
        };
        Some([&module[..base], rest].concat())
    }

    /// The file in which a path ends; none behind so many names that are handed on that they may go in circles.
    fn led_to(&self, path: Parts<'_>, depth: usize) -> Option<&'a str> {
        let of = |at: usize| self.of_module.iter().find(|(module, _)| ***module == path[..at]);
        let (at, file) = (0..=path.len()).rev().find_map(|at| Some((at, *of(at)?.1)))?;
        let (module, _, handed_on) = &self.all[file];
        let next = path.get(at).filter(|_| depth < 6);
        let on = next.and_then(|name| handed_on.iter().find(|path| path.rsplit("::").next() == Some(name)));
        match on.and_then(|path| self.absolute(path, module)) {
            Some(on) => self.led_to([&on, &path[at + 1..]].concat(), depth + 1),
            None => Some(file),
        }
    }
}

/// Paths in code that say where they begin, without those of lists.
fn in_code(code: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let starts = ["crate::", "self::", "super::"].iter().flat_map(|start| code.match_indices(start));
    let whole = starts.filter(|(at, _)| !code[..*at].ends_with(|c: char| is_name(c) || c == ':'));
    let path = |at: usize| code[at..].split(|c: char| !is_name(c) && c != ':').next().unwrap_or_default();
    whole.map(|(at, _)| path(at).trim_end_matches(':').to_owned()).collect()
}

/// The paths of a `use`: `a::{b, c::d as e}` has two.
fn expanded(path: &str) -> Vec<String> {
    let path = path.trim();
    match path.split_once('{') {
        None => vec![path.split(" as ").next().unwrap_or(path).trim().to_owned()],
        Some((head, list)) => heads(list)
            .into_iter()
            .filter(|part| !part.trim().is_empty())
            .flat_map(expanded)
            .map(|part| format!("{head}{part}"))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<_> =
            files.iter().map(|(file, code)| ((*file).to_owned(), source::code(code))).collect();
        circles(&Files::of(&files).imports())
    }

    #[test]
    fn a_circle_of_files_is_found_by_every_way_of_saying_a_path() {
        for (there, back) in [
            ("use crate::a::c::D;", "use super::B;"),
            ("use crate::{a::{c::{D, E}, x}};", "fn f() { crate::a::b::g() }"),
            ("fn f() { super::super::a::c::g() }", "use super::b::{self as x};"),
            ("fn f() { super::c::g() }", "macro_rules! m { () => { $crate::a::B } }"),
        ] {
            let contents = "mod b;\nmod c;\npub use b::B;";
            let found = circles_of(&[
                ("lib.rs", "mod a;"),
                ("a/mod.rs", contents),
                ("a/b.rs", there),
                ("a/c.rs", back),
            ]);
            assert_eq!(found, [["a/b.rs", "a/c.rs"]], "{there} {back}");
        }
    }

    #[test]
    fn contents_and_tests_and_one_way_are_no_circle() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;"),
            ("a.rs", "use crate::B;\nuse std::b::C;\n// use crate::a::A;"),
            ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::A;\n}\nmod inner { use crate::b::x; }"),
        ];
        assert!(circles_of(&files).is_empty());
    }

    #[test]
    fn a_file_imports_what_it_hands_on_unless_it_is_a_table_of_contents() {
        let files = |parent| [(parent, "mod b;\npub use self::b::B;"), ("a/b.rs", "use super::A;")];
        assert_eq!(circles_of(&files("a.rs")), [["a.rs", "a/b.rs"]]);
        assert!(circles_of(&files("a/mod.rs")).is_empty());
    }
}
