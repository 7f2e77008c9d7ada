//! The words of the texts of documents, read from their sources: `significant_text` counts them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use serde_json::Value;
use sparrow_mapping::values_at;
use sparrow_runtime::work;
use sparrow_tantivy_index::{DocAddress, OpenDocument, Snapshot};

use super::ast::{Aggregation, Significant, SignificantText};
use super::error::AggregationError;
use super::key::Key;
use super::segment_context::{Seen, SegmentContext};
use super::select::TextTests;
use super::slots::room_to_grow;

/// Number of words in a sequence that makes them repetitions of an earlier document.
const SEQUENCE: usize = 6;

/// The words in one segment that the buckets of a `significant_text` stand for.
pub struct WordGroups<'a> {
    snapshot: &'a Snapshot,
    ord: u32,
    path: String,
    /// Paths of the texts in a source.
    sources: Vec<String>,
    /// Sequences that were seen before; `None` where repetitions count.
    seen: Option<(&'a Seen, usize)>,
    tests: TextTests<'a>,
    /// The distinct words found so far; a word's index is its code.
    words: Vec<Arc<str>>,
    codes: FxHashMap<Arc<str>, u64>,
    open: Option<OpenDocument>,
    /// The document that was read last, and the codes of its words. One that is in many buckets comes once for each of them, also in
    /// several calls: read again, all of its sequences would be repetitions.
    last: Option<(u32, Vec<u64>)>,
}

impl<'a> WordGroups<'a> {
    /// Prepares an aggregation for a segment.
    ///
    /// # Errors
    /// If `include` or `exclude` cannot be read.
    pub fn new(
        aggregation: &'a Aggregation,
        asked: &'a Significant,
        text: &SignificantText,
        context: &SegmentContext<'a>,
    ) -> Result<Self, AggregationError> {
        let mapping = context.snapshot.mapping();
        let path = mapping.concrete(&asked.source.field).into_owned();
        let sources = match text.sources.is_empty() {
            true => vec![mapping.source_path(&path).into_owned()],
            // A field that is named twice has no other words the second time.
            false => {
                let mut named = FxHashSet::default();
                text.sources.iter().filter(|source| named.insert(source.as_str())).cloned().collect()
            }
        };
        Ok(Self {
            snapshot: context.snapshot,
            ord: context.ord,
            path,
            sources,
            seen: text.distinct.then_some((context.seen, aggregation.id)),
            tests: TextTests::new(&asked.include, &asked.exclude)?,
            words: Vec::new(),
            codes: FxHashMap::default(),
            open: None,
            last: None,
        })
    }

    /// Codes of the words of documents, each with the index of its document in `docs`, once for each.
    ///
    /// # Errors
    /// If a document cannot be read, or the request must stop.
    pub fn codes(&mut self, docs: &[u32], out: &mut Vec<(u32, u64)>) -> Result<(), AggregationError> {
        // Of a field that is not mapped no text has words.
        if self.snapshot.mapping().field(&self.path).is_none() {
            return Ok(());
        }
        for (place, &doc) in (0_u32..).zip(docs) {
            work::check()?;
            let own = match self.last.take() {
                Some((known, own)) if known == doc => own,
                _ => self.words_of(doc)?,
            };
            out.extend(own.iter().map(|code| (place, *code)));
            self.last = Some((doc, own));
        }
        Ok(())
    }

    fn words_of(&mut self, doc: u32) -> Result<Vec<u64>, AggregationError> {
        let stored = self
            .snapshot
            .fetch_within(DocAddress::new(self.ord, doc), &mut self.open)
            .map_err(|error| AggregationError::Execution(error.to_string()))?;
        let source: Value = serde_json::from_slice(&stored.source).unwrap_or_default();
        let mut values = Vec::new();
        for path in &self.sources {
            values_at(&source, path, &mut values);
        }
        let mut texts = Vec::with_capacity(values.len());
        for value in values {
            match value {
                Value::String(text) => {
                    work::room_for(text.len())?;
                    texts.push(text.clone());
                }
                Value::Number(_) | Value::Bool(_) => texts.push(value.to_string()),
                _ => {}
            }
        }
        let vector = self.snapshot.term_vector(&self.path, &texts, None)?.unwrap_or_default();
        let repeated = match self.seen {
            None => FxHashSet::default(),
            Some((seen, id)) => {
                let mut tokens: Vec<(usize, &str)> =
                    vector.iter().flat_map(|(word, at)| at.iter().map(|at| (at.position, &**word))).collect();
                tokens.sort_unstable();
                let words: Vec<&str> = tokens.into_iter().map(|(_, word)| word).collect();
                let places = repetitions(&words, seen.borrow_mut().entry(id).or_default())?;
                // A word that is anywhere else than in a repetition counts.
                let fresh: FxHashSet<&str> = words
                    .iter()
                    .zip(&places)
                    .filter(|(_, repeated)| !**repeated)
                    .map(|(word, _)| *word)
                    .collect();
                words.iter().copied().filter(|word| !fresh.contains(word)).collect()
            }
        };
        let mut own = Vec::with_capacity(vector.len());
        for word in vector.keys().filter(|word| !repeated.contains(&***word)) {
            if let Some(&code) = self.codes.get(&**word) {
                own.push(code);
            } else if self.tests.accept(word) {
                let (code, word): (u64, Arc<str>) = (self.words.len() as u64, word.as_str().into());
                self.words.push(word.clone());
                self.codes.insert(word, code);
                own.push(code);
            }
        }
        Ok(own)
    }

    /// The words that codes stand for.
    pub fn keys(&self, codes: &[u64]) -> Vec<Key> {
        codes.iter().map(|&code| Key::Text(self.words[code as usize].clone())).collect()
    }
}

/// For each word whether it is in a sequence that was seen before; all sequences are seen then.
fn repetitions(words: &[&str], seen: &mut FxHashSet<u64>) -> Result<Vec<bool>, AggregationError> {
    let mut repeated = vec![false; words.len()];
    for (start, sequence) in words.windows(SEQUENCE).enumerate() {
        let mut hasher = FxHasher::default();
        sequence.hash(&mut hasher);
        room_to_grow(seen.len(), 1, seen.capacity(), 2 * size_of::<u64>())?;
        if !seen.insert(hasher.finish()) {
            repeated[start..start + SEQUENCE].fill(true);
        }
    }
    Ok(repeated)
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::repetitions;

    #[test]
    fn words_repeat_where_six_of_them_were_seen_in_this_order() {
        let mut seen = FxHashSet::default();
        let mut repeated = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            let found = repetitions(&words, &mut seen).unwrap();
            words.into_iter().zip(found).filter(|(_, found)| *found).map(|(word, _)| word).collect::<String>()
        };
        assert_eq!(repeated("a b c d e f g"), "");
        assert_eq!(repeated("x a b c d e y"), "");
        assert_eq!(repeated("w a b c d e f z"), "abcdef");
        assert_eq!(repeated("f e d c b a"), "");
        assert_eq!(repeated("a b c d e f g h"), "abcdefg");
        // Also where the same document had them.
        assert_eq!(repeated("p q r s t u p q r s t u"), "pqrstu");
    }
}
