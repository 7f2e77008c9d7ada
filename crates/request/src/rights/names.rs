//! Lists of name patterns, prepared so that a name is looked up rather than compared with each pattern.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sparrow_wire::glob;

use crate::name_steps;

/// A shared list of name patterns, as the grants of many actions have the same.
pub(super) type Patterns = Arc<PatternList>;

/// Number of patterns up to which comparing a name with each is faster than caching the results.
const FEW: usize = 8;
/// Largest number of results that a request caches; and the longest name cached, in bytes, as no index has a longer
/// one.
const MOST_REMEMBERED: usize = 32_768;
const MOST_BYTES: usize = 255;

/// A list of name patterns, prepared for looking up names.
#[derive(Debug)]
pub(super) struct PatternList {
    /// The patterns as given. The lists below hold indices into this one.
    texts: Vec<String>,
    /// Patterns without wildcards, which are whole names, sorted.
    names: Vec<u32>,
    /// Patterns that end in their only wildcard `*`, sorted by prefix; none is a prefix of another.
    beginnings: Vec<u32>,
    /// All other patterns, with wildcards elsewhere.
    others: Vec<u32>,
}

impl PatternList {
    pub(super) fn new(texts: Vec<String>) -> Self {
        let (mut names, mut beginnings, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (place, text) in (0..).zip(&texts) {
            match text.find(['*', '?']) {
                None => names.push(place),
                Some(at) if at + 1 == text.len() && text.ends_with('*') => beginnings.push(place),
                Some(_) => others.push(place),
            }
        }
        let text = |place: &u32| texts[*place as usize].as_str();
        names.sort_unstable_by(|a, b| text(a).cmp(text(b)));
        beginnings.sort_unstable_by(|a, b| beginning(text(a)).cmp(beginning(text(b))));
        // What begins with another follows it.
        beginnings.dedup_by(|later, kept| beginning(text(later)).starts_with(beginning(text(kept))));
        Self { texts, names, beginnings, others }
    }

    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    fn text(&self, place: u32) -> &str {
        &self.texts[place as usize]
    }

    /// Whether the name equals a pattern without wildcards or begins with a prefix pattern.
    fn has(&self, name: &str) -> bool {
        if self.names.binary_search_by(|place| self.text(*place).cmp(name)).is_ok() {
            return true;
        }
        // Only the last one that is not behind the name can be its beginning, as none begins with another.
        let behind = self.beginnings.partition_point(|place| beginning(self.text(*place)) <= name);
        behind > 0 && name.starts_with(beginning(self.text(self.beginnings[behind - 1])))
    }

    /// Whether one of the other patterns matches the name, which takes a comparison with each.
    fn fits(&self, name: &str) -> bool {
        self.others.iter().any(|place| glob::matches_role(self.text(*place), name))
    }
}

/// The prefix of a pattern that ends in `*`.
fn beginning(pattern: &str) -> &str {
    &pattern[..pattern.len() - 1]
}

impl PartialEq for PatternList {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for PatternList {}

impl Ord for PatternList {
    fn cmp(&self, other: &Self) -> Ordering {
        self.texts.cmp(&other.texts)
    }
}

impl PartialOrd for PatternList {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Cache of the results of looking up names in long lists, kept as long as a request or job holds its rights.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    /// Results by the address of the list, which the rights keep in memory.
    of_lists: HashMap<usize, HashMap<Box<str>, bool>>,
    count: usize,
}

impl Remembered {
    /// Whether a pattern of a list matches a name.
    pub(super) fn covers(&self, list: &Patterns, name: &str) -> bool {
        if list.has(name) {
            return true;
        }
        if list.others.len() <= FEW {
            return list.fits(name);
        }
        let place = Arc::as_ptr(list).addr();
        if let Some(covered) = self.0.lock().of_lists.get(&place).and_then(|of| of.get(name)) {
            return *covered;
        }
        name_steps::count(list.others.len() as u64);
        let fits = list.fits(name);
        let mut answers = self.0.lock();
        if answers.count < MOST_REMEMBERED && name.len() <= MOST_BYTES {
            answers.count += 1;
            answers.of_lists.entry(place).or_default().insert(name.into(), fits);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Patterns {
        Arc::new(PatternList::new(texts.iter().map(|text| (*text).to_owned()).collect()))
    }

    #[test]
    fn a_name_is_found_in_a_list_as_by_comparing_it_with_each() {
        let pieces = ["", "a", "b", "ab", "ba", "*", "?", "a*", "ü"];
        let pairs: Vec<String> =
            pieces.iter().flat_map(|a| pieces.iter().map(move |b| format!("{a}{b}"))).collect();
        let all: Vec<String> =
            pairs.iter().flat_map(|a| pieces.iter().map(move |b| format!("{a}{b}"))).collect();
        for from in (0..all.len()).step_by(7) {
            let texts: Vec<&str> = all.iter().skip(from).step_by(41).map(String::as_str).collect();
            let (found, remembered) = (list(&texts), Remembered::default());
            for name in &all {
                let expected = texts.iter().any(|text| glob::matches_role(text, name));
                assert_eq!(remembered.covers(&found, name), expected, "{texts:?} {name}");
                assert_eq!(remembered.covers(&found, name), expected, "the second time {texts:?} {name}");
            }
        }
    }

    #[test]
    fn beginnings_that_others_contain_are_passed_over() {
        let found = list(&["logs-a*", "logs-*", "logs-", "log*x", "m*", "logs-b*"]);
        assert_eq!((found.names.len(), found.beginnings.len(), found.others.len()), (1, 2, 1));
        assert_eq!(list(&["a*", "*"]).beginnings.len(), 1);
    }

    #[test]
    fn a_request_remembers_so_many_names() {
        let texts: Vec<String> = (0..20).map(|n| format!("*{n}?")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (one, other, remembered) = (list(&texts), list(&texts), Remembered::default());
        for n in 0..MOST_REMEMBERED {
            remembered.covers(&one, &n.to_string());
        }
        assert!(remembered.covers(&other, "a12x") && !remembered.covers(&other, "a"));
        let answers = remembered.0.lock();
        assert_eq!(answers.count, MOST_REMEMBERED);
    }
}
