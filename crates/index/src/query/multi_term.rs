//! Clauses that stand for many terms of one field: prefix, wildcard, regular expression, string range,
//! and the terms near a misspelt one.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::Regex;
use tantivy::query::Weight;
use tantivy::schema::IndexRecordOption;
use tantivy::{Searcher, SegmentReader};

use super::bits::DocBits;
use super::error::QueryError;
use super::fields::StringTerms;
use super::weights;

/// Which terms of a field are meant.
pub(crate) enum TermFilter {
    /// Terms that start with a text.
    Prefix(String),
    /// Terms of a pattern.
    Wildcard(Wildcard),
    /// Terms that a whole regular expression matches.
    Regexp(Regex),
    /// Terms between two others, in byte order.
    Range(Bound<String>, Bound<String>),
    /// Terms in a list.
    Set(Vec<String>),
}

/// The documents with any of the terms, each with score 1.
pub(crate) fn multi_term(terms: StringTerms, filter: TermFilter, case_insensitive: bool) -> Box<dyn Weight> {
    weights::bits(move |reader| matching_docs(reader, &terms, &filter, case_insensitive))
}

fn matching_docs(
    reader: &SegmentReader,
    terms: &StringTerms,
    filter: &TermFilter,
    case_insensitive: bool,
) -> tantivy::Result<DocBits> {
    let mut docs = DocBits::empty(reader.max_doc());
    let inverted = reader.inverted_index(terms.field)?;
    if let (TermFilter::Set(values), false) = (filter, case_insensitive) {
        for value in values {
            if let Some(mut postings) =
                inverted.read_block_postings(&terms.term(value), IndexRecordOption::Basic)?
            {
                docs.insert_postings(&mut postings);
            }
        }
        return Ok(docs);
    }
    let prefix = terms.key_prefix();
    let (lower, upper) = key_range(&prefix, filter, case_insensitive);
    let mut range = inverted.terms().range();
    range = match &lower {
        Bound::Included(key) => range.ge(key),
        Bound::Excluded(key) => range.gt(key),
        Bound::Unbounded => range,
    };
    range = match &upper {
        Bound::Included(key) => range.le(key),
        Bound::Excluded(key) => range.lt(key),
        Bound::Unbounded => range,
    };
    let mut stream = range.into_stream()?;
    while stream.advance() {
        let Some(value) = stream.key().strip_prefix(&prefix[..]) else { continue };
        let Ok(value) = std::str::from_utf8(value) else { continue };
        if filter.accepts(value, case_insensitive) {
            let mut postings =
                inverted.read_block_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?;
            docs.insert_postings(&mut postings);
        }
    }
    Ok(docs)
}

/// The keys between which all terms of the filter lie.
fn key_range(prefix: &[u8], filter: &TermFilter, case_insensitive: bool) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let key = |value: &str| [prefix, value.as_bytes()].concat();
    let field_end = || after_prefix(prefix);
    let starts_with = |value: &str| (Bound::Included(key(value)), after_prefix(&key(value)));
    match filter {
        TermFilter::Range(lower, upper) => {
            let lower = match lower {
                Bound::Included(value) => Bound::Included(key(value)),
                Bound::Excluded(value) => Bound::Excluded(key(value)),
                Bound::Unbounded => Bound::Included(prefix.to_vec()),
            };
            let upper = match upper {
                Bound::Included(value) => Bound::Included(key(value)),
                Bound::Excluded(value) => Bound::Excluded(key(value)),
                Bound::Unbounded => field_end(),
            };
            (lower, upper)
        }
        TermFilter::Prefix(value) if !case_insensitive => starts_with(value),
        TermFilter::Wildcard(pattern) if !case_insensitive => starts_with(&pattern.literal_prefix()),
        _ => (Bound::Included(prefix.to_vec()), field_end()),
    }
}

/// The first key after all that start with `prefix`.
fn after_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}

impl TermFilter {
    pub(super) fn accepts(&self, value: &str, case_insensitive: bool) -> bool {
        match self {
            TermFilter::Prefix(prefix) if case_insensitive => {
                value.to_lowercase().starts_with(&prefix.to_lowercase())
            }
            TermFilter::Prefix(prefix) => value.starts_with(prefix.as_str()),
            TermFilter::Wildcard(pattern) => pattern.matches(value, case_insensitive),
            TermFilter::Regexp(regex) => regex.is_match(value),
            TermFilter::Range(lower, upper) => {
                (match lower {
                    Bound::Included(lower) => value >= lower.as_str(),
                    Bound::Excluded(lower) => value > lower.as_str(),
                    Bound::Unbounded => true,
                }) && match upper {
                    Bound::Included(upper) => value <= upper.as_str(),
                    Bound::Excluded(upper) => value < upper.as_str(),
                    Bound::Unbounded => true,
                }
            }
            TermFilter::Set(values) => {
                let value = value.to_lowercase();
                values.iter().any(|wanted| wanted.to_lowercase() == value)
            }
        }
    }
}

/// A pattern in which `*` stands for any text, `?` for one character and `\` escapes both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wildcard(Vec<Piece>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Character(char),
    One,
    Many,
}

impl Wildcard {
    /// Reads a pattern; every text is one.
    pub(crate) fn new(pattern: &str) -> Self {
        let mut pieces = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let piece = match character {
                '*' => Piece::Many,
                '?' => Piece::One,
                '\\' => Piece::Character(characters.next().unwrap_or('\\')),
                other => Piece::Character(other),
            };
            // Runs of stars would only make the matcher backtrack more.
            if piece != Piece::Many || pieces.last() != Some(&Piece::Many) {
                pieces.push(piece);
            }
        }
        Self(pieces)
    }

    /// The text before the first `*` or `?`.
    fn literal_prefix(&self) -> String {
        self.0
            .iter()
            .map_while(|piece| match piece {
                Piece::Character(character) => Some(*character),
                Piece::One | Piece::Many => None,
            })
            .collect()
    }

    /// Whether the whole of `value` fits.
    pub(crate) fn matches(&self, value: &str, case_insensitive: bool) -> bool {
        let equal = |a: char, b: char| a == b || case_insensitive && a.to_lowercase().eq(b.to_lowercase());
        let value: Vec<char> = value.chars().collect();
        let (mut piece, mut at) = (0, 0);
        // After a star: where it is, and how far it reaches so far.
        let mut star: Option<(usize, usize)> = None;
        while at < value.len() {
            match self.0.get(piece) {
                Some(Piece::Many) => {
                    star = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(Piece::One) => {
                    piece += 1;
                    at += 1;
                    continue;
                }
                Some(Piece::Character(character)) if equal(*character, value[at]) => {
                    piece += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let Some((star_piece, reached)) = star else { return false };
            star = Some((star_piece, reached + 1));
            piece = star_piece + 1;
            at = reached + 1;
        }
        self.0[piece..].iter().all(|piece| *piece == Piece::Many)
    }
}

/// A term and how far others may be from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fuzzy {
    value: Vec<char>,
    edits: usize,
    prefix_length: usize,
    max_expansions: usize,
}

/// A term that a fuzzy one expands to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expansion {
    /// The term.
    pub(crate) value: String,
    /// Below 1 the farther it is.
    pub(crate) boost: f32,
    /// Documents that hold it.
    pub(crate) doc_freq: u64,
}

/// Expansions of a fuzzy term unless the request says otherwise.
const DEFAULT_EXPANSIONS: usize = 50;

impl Fuzzy {
    /// Reads `AUTO`, `AUTO:low,high`, `0`, `1` or `2`; `max_expansions` 0 is the default.
    ///
    /// # Errors
    /// [`QueryError::Fuzziness`] for anything else.
    pub(crate) fn new(
        term: &str,
        fuzziness: &str,
        prefix_length: usize,
        max_expansions: usize,
    ) -> Result<Self, QueryError> {
        let value: Vec<char> = term.chars().collect();
        let unknown = || QueryError::Fuzziness { input: fuzziness.to_owned() };
        let upper = fuzziness.trim().to_uppercase();
        let edits = if let Some(bounds) = upper.strip_prefix("AUTO") {
            let (low, high) = match bounds.strip_prefix(':') {
                None if bounds.is_empty() => (3, 6),
                None => return Err(unknown()),
                Some(bounds) => {
                    let (low, high) = bounds.split_once(',').ok_or_else(unknown)?;
                    let number = |text: &str| text.trim().parse().map_err(|_| unknown());
                    (number(low)?, number(high)?)
                }
            };
            usize::from(value.len() >= low) + usize::from(value.len() >= high)
        } else {
            let edits: f32 = upper.parse().map_err(|_| unknown())?;
            if !(0.0..=2.0).contains(&edits) {
                return Err(unknown());
            }
            edits as usize
        };
        let max_expansions = if max_expansions == 0 { DEFAULT_EXPANSIONS } else { max_expansions };
        Ok(Self { value, edits, prefix_length, max_expansions })
    }
}

/// Finds the nearest terms of the index, nearest first.
///
/// A pass over the dictionary from the shared prefix on; terms of another length are skipped unread.
pub(crate) fn expand_fuzzy(
    searcher: &Searcher,
    terms: &StringTerms,
    fuzzy: &Fuzzy,
    cancel: Option<&AtomicBool>,
) -> Result<Vec<Expansion>, QueryError> {
    let shared: String = fuzzy.value.iter().take(fuzzy.prefix_length).collect();
    let prefix = terms.key_prefix();
    let filter = if fuzzy.edits == 0 {
        let whole: String = fuzzy.value.iter().collect();
        TermFilter::Range(Bound::Included(whole.clone()), Bound::Included(whole))
    } else {
        TermFilter::Prefix(shared)
    };
    let (lower, upper) = key_range(&prefix, &filter, false);
    let mut found = std::collections::BTreeMap::<String, (usize, u64)>::new();
    let mut seen = 0u32;
    for reader in searcher.segment_readers() {
        let inverted = reader.inverted_index(terms.field)?;
        let mut range = inverted.terms().range();
        if let Bound::Included(key) = &lower {
            range = range.ge(key);
        }
        range = match &upper {
            Bound::Included(key) => range.le(key),
            Bound::Excluded(key) => range.lt(key),
            Bound::Unbounded => range,
        };
        let mut stream = range.into_stream()?;
        while stream.advance() {
            seen = seen.wrapping_add(1);
            if seen.is_multiple_of(4096) && cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Err(QueryError::Cancelled);
            }
            let Some(value) = stream.key().strip_prefix(&prefix[..]) else { continue };
            let Ok(value) = std::str::from_utf8(value) else { continue };
            if let Some(distance) = edit_distance(&fuzzy.value, value, fuzzy.edits) {
                let entry = found.entry(value.to_owned()).or_insert((distance, 0));
                entry.1 += u64::from(stream.value().doc_freq);
            }
        }
    }
    let length = fuzzy.value.len();
    let mut expansions: Vec<Expansion> = found
        .into_iter()
        .map(|(value, (distance, doc_freq))| {
            let shorter = value.chars().count().min(length).max(1);
            let boost = if distance == 0 { 1.0 } else { 1.0 - distance as f32 / shorter as f32 };
            Expansion { value, boost, doc_freq }
        })
        .filter(|expansion| expansion.boost > 0.0)
        .collect();
    expansions.sort_by(|a, b| b.boost.total_cmp(&a.boost).then_with(|| a.value.cmp(&b.value)));
    expansions.truncate(fuzzy.max_expansions);
    Ok(expansions)
}

/// Insertions, deletions, substitutions and swaps of neighbours between two texts, if at most `most`.
fn edit_distance(left: &[char], right: &str, most: usize) -> Option<usize> {
    // A byte count bounds the character count from above: most terms end here.
    if right.len() + most < left.len() {
        return None;
    }
    let right: Vec<char> = right.chars().collect();
    if left.len().abs_diff(right.len()) > most {
        return None;
    }
    let width = right.len() + 1;
    let mut before = vec![0; width];
    let mut previous: Vec<usize> = (0..width).collect();
    let mut current = vec![0; width];
    for i in 1..=left.len() {
        current[0] = i;
        let mut best = i;
        for j in 1..width {
            let differs = usize::from(left[i - 1] != right[j - 1]);
            let mut cost = (previous[j] + 1).min(current[j - 1] + 1).min(previous[j - 1] + differs);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                cost = cost.min(before[j - 2] + 1);
            }
            current[j] = cost;
            best = best.min(cost);
        }
        if best > most {
            return None;
        }
        std::mem::swap(&mut before, &mut previous);
        std::mem::swap(&mut previous, &mut current);
    }
    (previous[width - 1] <= most).then_some(previous[width - 1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Fuzzy, Wildcard, edit_distance};

    #[test]
    fn wildcards() {
        for (pattern, value, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*", "abc", true),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
            ("", "", true),
            ("", "a", false),
            ("?ü*", "xün", true),
        ] {
            assert_eq!(Wildcard::new(pattern).matches(value, false), expected, "{pattern} {value}");
        }
        assert!(Wildcard::new("AB*").matches("abc", true));
        assert!(!Wildcard::new("AB*").matches("abc", false));
    }

    #[test]
    fn distances() {
        let distance = |a: &str, b: &str| edit_distance(&a.chars().collect::<Vec<_>>(), b, 2);
        assert_eq!(distance("house", "house"), Some(0));
        assert_eq!(distance("house", "hosue"), Some(1));
        assert_eq!(distance("house", "mouse"), Some(1));
        assert_eq!(distance("house", "houses"), Some(1));
        assert_eq!(distance("house", "hose"), Some(1));
        assert_eq!(distance("house", "horses"), Some(2));
        assert_eq!(distance("house", "tree"), None);
    }

    #[test]
    fn fuzziness() {
        let edits =
            |term: &str, fuzziness: &str| Fuzzy::new(term, fuzziness, 0, 0).map(|fuzzy| fuzzy.edits).ok();
        assert_eq!(edits("ab", "AUTO"), Some(0));
        assert_eq!(edits("abc", "auto"), Some(1));
        assert_eq!(edits("abcdef", "AUTO"), Some(2));
        assert_eq!(edits("abcd", "AUTO:2,4"), Some(2));
        assert_eq!(edits("abcd", "1"), Some(1));
        assert_eq!(edits("abcd", "3"), None);
        assert_eq!(edits("abcd", "x"), None);
    }

    proptest! {
        #[test]
        fn a_wildcard_agrees_with_its_regular_expression(
            pattern in "[ab*?]{0,6}",
            value in "[ab]{0,8}",
        ) {
            let regex: String = pattern
                .chars()
                .map(|character| match character {
                    '*' => ".*".to_owned(),
                    '?' => ".".to_owned(),
                    other => other.to_string(),
                })
                .collect();
            let expected = regex::Regex::new(&format!("^(?:{regex})$")).unwrap().is_match(&value);
            prop_assert_eq!(Wildcard::new(&pattern).matches(&value, false), expected);
        }
    }
}
