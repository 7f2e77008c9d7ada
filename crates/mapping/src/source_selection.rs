//! `_source` filtering: which part of a stored document a response shows.
//!
//! The filter works on the stored bytes. Values that it keeps whole are copied as they were written, so that
//! numbers and escapes come back as they were sent.

use sparrow_runtime::attempt;
use sparrow_wire::{BodyError, glob};

use super::json_cursor::JsonCursor;
use super::{FieldType, Mapping};

/// Which parts of a document's source are shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum SourceSelection {
    /// The whole source, byte for byte.
    #[default]
    Whole,
    /// No `_source` at all.
    Nothing,
    /// The fields that a filter keeps.
    Fields(PathFilter),
}

impl SourceSelection {
    /// The selection for lists of paths; `*` matches any run of characters, dots included.
    ///
    /// # Errors
    /// When there are more than [`glob::MOST_PATTERNS`], each of which is compared with each path of each document.
    pub fn fields(includes: Vec<String>, excludes: Vec<String>) -> Result<Self, BodyError> {
        glob::check_patterns("_source", includes.len() + excludes.len())?;
        Ok(Self::of_paths(includes, excludes))
    }

    fn of_paths(includes: Vec<String>, excludes: Vec<String>) -> Self {
        if includes.is_empty() && excludes.is_empty() {
            SourceSelection::Whole
        } else {
            SourceSelection::Fields(PathFilter {
                includes: PathSet::new(includes),
                excludes: PathSet::new(excludes),
            })
        }
    }

    /// Appends the shown part of `source` to `out`; returns `false` if nothing is shown.
    pub fn write(&self, source: &[u8], out: &mut Vec<u8>) -> bool {
        match self {
            // An index may be told not to store sources.
            _ if source.is_empty() => false,
            SourceSelection::Nothing => false,
            SourceSelection::Whole => {
                out.extend_from_slice(source);
                true
            }
            SourceSelection::Fields(filter) => {
                filter.write(source, out);
                true
            }
        }
    }
}

impl SourceSelection {
    /// What [`SourceSelection::write`] appends, by itself.
    pub fn of(&self, source: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(source.len());
        self.write(source, &mut out);
        out
    }

    /// All of a document but the values of the vector fields that a mapping has.
    pub fn without_vectors(mapping: &Mapping) -> Self {
        let fields = mapping.leaf_fields().filter(|(_, field_type)| {
            matches!(field_type, FieldType::DenseVector(_) | FieldType::SparseVector)
        });
        Self::of_paths(Vec::new(), fields.map(|(path, _)| path.to_owned()).collect())
    }
}

/// Paths to include (all if none are given) and paths to exclude. A path also stands for everything below it.
#[derive(Debug, Clone, PartialEq)]
pub struct PathFilter {
    includes: PathSet,
    excludes: PathSet,
}

impl PathFilter {
    /// Appends the part of `source`, a JSON object, that the filter keeps.
    pub fn write(&self, source: &[u8], out: &mut Vec<u8>) {
        // Each pattern looks at each key; eight of them take about as long as reading the document.
        let patterns = self.includes.patterns.len() + self.excludes.patterns.len();
        if attempt::give_up_document(source.len() * patterns / 8) {
            return;
        }
        let include = match self.includes.patterns.is_empty() {
            true => State::Everything,
            false => self.includes.start(),
        };
        let exclude = self.excludes.start();
        let start = out.len();
        let mut walk = FilteredCopy { filter: self, source: JsonCursor::new(source), out };
        walk.source.blank();
        if walk.object(&include, &exclude).is_none() {
            // The stored source is not the JSON object it was checked to be; show nothing of it.
            out.truncate(start);
            out.extend_from_slice(b"{}");
        }
    }
}

/// A set of path patterns, matched character by character as a path is read.
#[derive(Debug, Clone, PartialEq, Default)]
struct PathSet {
    patterns: Vec<Box<[u8]>>,
}

/// The positions in the patterns of a [`PathSet`] that the path read so far may have reached.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Every path matches.
    Everything,
    /// Possible positions, each a pattern's number and the offset in it; the offset is [`BELOW`] after a
    /// whole pattern and a dot.
    At(Vec<(u32, u32)>),
}

const BELOW: u32 = u32::MAX;

impl PathSet {
    fn new(patterns: Vec<String>) -> Self {
        Self { patterns: patterns.into_iter().map(|p| p.into_bytes().into_boxed_slice()).collect() }
    }

    fn start(&self) -> State {
        let mut positions = Vec::with_capacity(self.patterns.len());
        for pattern in 0..self.patterns.len() as u32 {
            self.add(&mut positions, pattern, 0);
        }
        State::At(positions)
    }

    fn add(&self, positions: &mut Vec<(u32, u32)>, pattern: u32, mut position: u32) {
        loop {
            // Those of one pattern stand together.
            let same = positions.iter().rev().take_while(|(other, _)| *other == pattern);
            if !same.into_iter().any(|(_, other)| *other == position) {
                positions.push((pattern, position));
            }
            // A star may stand for nothing.
            match self.patterns[pattern as usize].get(position as usize) {
                Some(b'*') => position += 1,
                _ => return,
            }
        }
    }

    fn step(&self, state: &State, text: &[u8]) -> State {
        let State::At(start) = state else {
            return State::Everything;
        };
        let mut positions = start.clone();
        for byte in text {
            let mut next = Vec::with_capacity(positions.len());
            for &(pattern, position) in &positions {
                if position == BELOW {
                    next.push((pattern, BELOW));
                    continue;
                }
                match self.patterns[pattern as usize].get(position as usize) {
                    None if *byte == b'.' => next.push((pattern, BELOW)),
                    None => {}
                    Some(b'*') => self.add(&mut next, pattern, position),
                    Some(expected) if expected == byte => {
                        self.add(&mut next, pattern, position + 1);
                    }
                    Some(_) => {}
                }
            }
            positions = next;
            if positions.is_empty() {
                break;
            }
        }
        State::At(positions)
    }

    fn accepts(&self, state: &State) -> bool {
        match state {
            State::Everything => true,
            State::At(positions) => positions.iter().any(|&(pattern, position)| {
                position == BELOW || position as usize == self.patterns[pattern as usize].len()
            }),
        }
    }
}

impl State {
    fn is_dead(&self) -> bool {
        matches!(self, State::At(positions) if positions.is_empty())
    }
}

struct FilteredCopy<'a, 'b> {
    filter: &'a PathFilter,
    source: JsonCursor<'a>,
    out: &'b mut Vec<u8>,
}

impl FilteredCopy<'_, '_> {
    /// Writes what the filter keeps of the object at the current offset and moves past it. Returns whether
    /// anything was kept, or there was nothing to keep of an object that is included; `None` on malformed JSON.
    fn object(&mut self, include: &State, exclude: &State) -> Option<bool> {
        self.source.expect(b'{')?;
        self.out.push(b'{');
        let mut empty = true;
        self.source.blank();
        if self.source.peek()? == b'}' {
            self.source.at += 1;
            self.out.push(b'}');
            return Some(*include == State::Everything);
        }
        loop {
            self.source.blank();
            let key_start = self.source.at;
            self.source.skip_string()?;
            let key_text = self.source.since(key_start);
            let key = decode_key(key_text)?;
            self.source.expect(b':')?;
            self.source.blank();
            let mark = self.out.len();
            if !empty {
                self.out.push(b',');
            }
            self.out.extend_from_slice(key_text);
            self.out.push(b':');
            let include = self.filter.includes.step(include, &key);
            let exclude = self.filter.excludes.step(exclude, &key);
            if self.member(&include, &exclude)? {
                empty = false;
            } else {
                self.out.truncate(mark);
            }
            self.source.blank();
            match self.source.peek()? {
                b',' => self.source.at += 1,
                b'}' => break,
                _ => return None,
            }
        }
        self.source.at += 1;
        self.out.push(b'}');
        Some(!empty)
    }

    /// Writes what the filter keeps of a member's value, given the match states of the member's path. Returns
    /// whether anything was kept; `None` on malformed JSON.
    fn member(&mut self, include: &State, exclude: &State) -> Option<bool> {
        let filter = self.filter;
        if include.is_dead() || filter.excludes.accepts(exclude) {
            self.source.skip_value()?;
            return Some(false);
        }
        let included = filter.includes.accepts(include);
        let below_exclude = filter.excludes.step(exclude, b".");
        if included && below_exclude.is_dead() {
            let start = self.source.at;
            self.source.skip_value()?;
            self.out.extend_from_slice(self.source.since(start));
            return Some(true);
        }
        let below_include = match included {
            true => State::Everything,
            false => filter.includes.step(include, b"."),
        };
        let kept = self.inside(included, &below_include, &below_exclude)?;
        Some(kept || included)
    }

    /// Writes what the filter keeps of an object or array; a scalar is kept when its path is included.
    fn inside(&mut self, included: bool, include: &State, exclude: &State) -> Option<bool> {
        match self.source.peek()? {
            b'{' => self.object(include, exclude),
            b'[' => self.array(included, include, exclude),
            _ => {
                let start = self.source.at;
                self.source.skip_value()?;
                if included {
                    self.out.extend_from_slice(self.source.since(start));
                }
                Some(included)
            }
        }
    }

    fn array(&mut self, included: bool, include: &State, exclude: &State) -> Option<bool> {
        self.source.expect(b'[')?;
        self.out.push(b'[');
        self.source.blank();
        // An empty list stays one where it is included.
        let mut empty = !(*include == State::Everything && self.source.peek()? == b']');
        while self.source.peek()? != b']' {
            let mark = self.out.len();
            if !empty {
                self.out.push(b',');
            }
            if self.inside(included, include, exclude)? {
                empty = false;
            } else {
                self.out.truncate(mark);
            }
            self.source.blank();
            if self.source.peek()? == b',' {
                self.source.at += 1;
                self.source.blank();
            }
        }
        self.source.at += 1;
        self.out.push(b']');
        Some(!empty)
    }
}

fn decode_key(quoted: &[u8]) -> Option<std::borrow::Cow<'_, [u8]>> {
    let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if inner.contains(&b'\\') {
        let text: String = serde_json::from_slice(quoted).ok()?;
        return Some(text.into_bytes().into());
    }
    Some(inner.into())
}

#[cfg(test)]
mod tests {
    use super::SourceSelection;

    fn check(includes: &[&str], excludes: &[&str], source: &str, expected: &str) {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let selection = SourceSelection::fields(owned(includes), owned(excludes)).unwrap();
        let mut out = Vec::new();
        assert!(selection.write(source.as_bytes(), &mut out));
        assert_eq!(String::from_utf8_lossy(&out), expected, "{includes:?} {excludes:?}");
    }

    #[test]
    fn fields_are_kept_and_dropped() {
        let source = r#"{"title": "a, \"b\"", "n": 1.50, "v": {"alpha": 1, "be.ta": [1, 2]}, "e": {}}"#;
        check(&[], &[], source, source);
        check(&["title", "n"], &["v"], source, r#"{"title":"a, \"b\"","n":1.50}"#);
        check(&[], &["v"], source, r#"{"title":"a, \"b\"","n":1.50,"e":{}}"#);
        check(&["v"], &[], source, r#"{"v":{"alpha": 1, "be.ta": [1, 2]}}"#);
        check(&["v.alpha"], &[], source, r#"{"v":{"alpha":1}}"#);
        check(&["v.*"], &["*.alpha"], source, r#"{"v":{"be.ta":[1,2]}}"#);
        check(&["v"], &["v.alpha"], source, r#"{"v":{"be.ta":[1, 2]}}"#);
        check(&["*t*"], &["title"], source, r#"{"v":{"be.ta":[1, 2]}}"#);
        check(&["nothing"], &[], source, "{}");
        check(&["e"], &[], source, r#"{"e":{}}"#);
        check(&["titl"], &["x"], source, "{}");
    }

    #[test]
    fn objects_in_arrays_are_filtered_one_by_one() {
        let source = r#"{"a":[{"x":1,"y":2},{"y":3},[{"x":4}],5]}"#;
        check(&["a.x"], &[], source, r#"{"a":[{"x":1},[{"x":4}]]}"#);
        check(&[], &["a.x"], source, r#"{"a":[{"y":2},{"y":3},[],5]}"#.replace(",[],", ",").as_str());
        check(&["a"], &["a.y"], source, r#"{"a":[{"x":1},[{"x":4}],5]}"#);
    }

    #[test]
    fn what_was_empty_before_stays() {
        let source = r#"{"a":{},"b":[{}],"c":[],"d":{"e":{}},"f":[[]]}"#;
        for path in ["a.x", "b.x", "c.x", "d.x", "d.e.x", "f.x"] {
            check(&[], &[path], source, source);
            check(&["a", "b", "c", "d", "f"], &[path], source, source);
        }
        check(&[], &["d.e"], source, r#"{"a":{},"b":[{}],"c":[],"d":{},"f":[[]]}"#);
        check(&["a.x", "b.x", "c.x"], &[], source, "{}");
    }

    #[test]
    fn escaped_keys_are_compared_decoded() {
        check(&["é"], &[], r#"{"\u00e9":1,"e":2}"#, r#"{"\u00e9":1}"#);
        check(&[], &["a\"b"], r#"{"a\"b":{"}":1},"c":[]}"#, r#"{"c":[]}"#);
    }

    #[test]
    fn a_source_that_is_not_stored_is_not_shown() {
        let mut out = Vec::new();
        assert!(!SourceSelection::Whole.write(b"", &mut out));
        assert!(!SourceSelection::Nothing.write(b"{}", &mut out));
        assert!(out.is_empty());
    }
}
