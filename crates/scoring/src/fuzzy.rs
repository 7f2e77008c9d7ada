//! Expands a misspelt term to similar terms of the index.

use std::ops::Bound;
use std::sync::atomic::AtomicBool;

use tantivy::Searcher;

use crate::error::QueryError;
use crate::fields::StringTerms;
use crate::multi_term::{Effort, Expansion, TermFilter, scan_terms};
use sparrow_analysis::edit_distance;
use sparrow_runtime::work;

/// A term with the number of edits by which matching terms may differ from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fuzzy {
    value: Vec<char>,
    edits: usize,
    prefix_length: usize,
    max_expansions: usize,
    transpositions: bool,
}

/// Steps of [`Effort`] that a comparison of two terms letter by letter counts as.
const COMPARED: u64 = 4;

/// Default number of terms that a fuzzy term expands to.
pub const DEFAULT_EXPANSIONS: usize = 50;

impl Fuzzy {
    /// Parses a fuzziness: `AUTO`, `AUTO:low,high`, `0`, `1` or `2`. A `max_expansions` of 0 stands for the
    /// default.
    ///
    /// # Errors
    /// [`QueryError::Fuzziness`] for anything else.
    pub fn new(
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
        Ok(Self { value, edits, prefix_length, max_expansions, transpositions: true })
    }

    /// Sets whether swapping two adjacent letters counts as one edit instead of two.
    pub fn with_transpositions(self, transpositions: bool) -> Self {
        Self { transpositions, ..self }
    }

    /// Highest number of terms that it expands to.
    pub fn max_expansions(&self) -> usize {
        self.max_expansions
    }
}

/// Finds the most similar terms of the index, most similar first.
///
/// This is a pass over the part of the dictionary that begins with the shared prefix; terms whose length
/// differs too much are skipped without a comparison.
pub fn expand_fuzzy(
    searcher: &Searcher,
    terms: &StringTerms,
    fuzzy: &Fuzzy,
    cancel: Option<&AtomicBool>,
) -> Result<Vec<Expansion>, QueryError> {
    let shared: String = fuzzy.value.iter().take(fuzzy.prefix_length).collect();
    let filter = if fuzzy.edits == 0 {
        let whole: String = fuzzy.value.iter().collect();
        TermFilter::Range(Bound::Included(whole.clone()), Bound::Included(whole))
    } else {
        TermFilter::Prefix(shared)
    };
    let mut candidates = std::collections::BTreeMap::<String, (usize, u64)>::new();
    let mut effort = Effort::of(&filter);
    let mut taken: Result<(), QueryError> = Ok(());
    scan_terms(searcher, terms, &filter, false, cancel, &mut |value, doc_freq| {
        // By bytes, as nobody has counted the letters yet.
        let length = value.len();
        if length + fuzzy.edits >= fuzzy.value.len() && length <= 4 * (fuzzy.value.len() + fuzzy.edits) {
            taken = effort.add(COMPARED).map_err(QueryError::from);
        }
        if let Some(distance) = edit_distance(&fuzzy.value, value, fuzzy.edits, fuzzy.transpositions) {
            let entry = candidates.entry(value.to_owned()).or_insert((distance, 0));
            entry.1 += doc_freq;
            if taken.is_ok() {
                taken = work::check().map_err(QueryError::from);
            }
        }
        taken.is_ok()
    })?;
    taken?;
    let length = fuzzy.value.len();
    let mut expansions: Vec<Expansion> = candidates
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

#[cfg(test)]
mod tests {
    use super::Fuzzy;

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
}
