//! Term vectors: the terms of a document's texts with their positions and offsets, and their frequencies in
//! the index. They are computed from the texts on request; none are stored.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

use crate::query::compile::Compiler;
use crate::snapshot::Snapshot;
use sparrow_mapping::FieldType;
use sparrow_runtime::work;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::multi_term::{TermFilter, scan_terms};
use sparrow_scoring::statistics::FieldStatistics;

/// Highest number of tokens in a field.
const MAX_TOKENS: usize = 200_000;
/// Default gap between the positions of two values of a field (`position_increment_gap`).
const POSITION_GAP: usize = 100;

/// One occurrence of a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermPlace {
    /// Position of the word in the field, from 0.
    pub position: usize,
    /// Start offset in UTF-16 code units, over all values of the field with one unit between two of them.
    pub start: usize,
    pub end: usize,
}

/// The terms of a field, each with its occurrences.
pub type TermVector = BTreeMap<String, Vec<TermPlace>>;

/// Statistics of a field in the whole index. Deleted documents count until they are merged away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermsOfField {
    /// Number of documents that have the field.
    pub docs: u64,
    /// Sum of the document frequencies of all its terms.
    pub doc_freqs: u64,
    /// Number of tokens of the field in all documents.
    pub tokens: u64,
}

/// Frequency of a term in the whole index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermFrequency {
    /// Number of documents that have the term.
    pub docs: u64,
    /// Number of occurrences in all documents.
    pub total: u64,
}

impl Snapshot {
    /// The terms of the values of a field; `None` for fields without terms.
    ///
    /// # Errors
    /// [`QueryError::UnknownAnalyzer`] if there is no analyzer of this name.
    pub fn term_vector(
        &self,
        path: &str,
        values: &[String],
        analyzer: Option<&str>,
    ) -> Result<Option<TermVector>, QueryError> {
        let gap = match self.mapping().field(path) {
            Some(FieldType::Text { options }) => options.position_increment_gap.unwrap_or(POSITION_GAP),
            Some(FieldType::Keyword { .. }) => POSITION_GAP,
            _ => return Ok(None),
        };
        let analyzer = match analyzer {
            Some(name) => Some(self.analysis().analyzer(name).ok_or_else(|| {
                QueryError::UnknownAnalyzer { clause: "term_vectors", name: name.to_owned() }
            })?),
            None => self.index_analyzer(path),
        };
        let mut vector = TermVector::new();
        let (mut position, mut offset, mut tokens) = (0, 0, 0);
        for value in values {
            work::check()?;
            if tokens == MAX_TOKENS {
                break;
            }
            let units = Units::of(value);
            let mut add = |term: String, at: usize, start: usize, end: usize| {
                let place = TermPlace {
                    position: position + at,
                    start: offset + units.before(start),
                    end: offset + units.before(end),
                };
                vector.entry(term).or_default().push(place);
                at
            };
            let mut last = None;
            match &analyzer {
                None => last = Some(add(value.clone(), 0, 0, value.len())),
                Some(analyzer) => {
                    for token in analyzer.tokens(value).take(MAX_TOKENS - tokens) {
                        work::check()?;
                        tokens += 1;
                        last = last.max(Some(add(token.text, token.position, token.start, token.end)));
                    }
                }
            }
            position += last.map_or(0, |last| last + 1) + gap;
            offset += units.before(value.len()) + 1;
        }
        Ok(Some(vector))
    }

    /// Statistics of a field, computed in a pass over its terms.
    ///
    /// # Errors
    /// [`QueryError::Cancelled`], or when the index cannot be read.
    pub fn terms_of_field(
        &self,
        path: &str,
        cancel: &AtomicBool,
    ) -> Result<Option<TermsOfField>, QueryError> {
        let Some(terms) = Compiler::new(self, None).string_terms(path) else { return Ok(None) };
        let mut doc_freqs = 0;
        let all = TermFilter::Prefix(String::new());
        scan_terms(self.searcher(), &terms, &all, false, Some(cancel), &mut |_, doc_freq| {
            doc_freqs += doc_freq;
            true
        })?;
        let FieldStatistics { docs, tokens, .. } =
            FieldStatistics::read(self.searcher(), self.schema(), &terms)?;
        Ok(Some(TermsOfField { docs, doc_freqs, tokens }))
    }

    /// Number of documents that have a term.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn doc_freq(&self, path: &str, term: &str) -> Result<u64, QueryError> {
        match Compiler::new(self, None).string_terms(path) {
            Some(terms) => Ok(self.searcher().doc_freq(&terms.term(term))?),
            None => Ok(0),
        }
    }

    /// Number of visible documents that have a term, of those in `within` (a bitset for each segment) if it is given.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn visible_doc_freq(
        &self,
        path: &str,
        term: &str,
        within: Option<&[Vec<u64>]>,
    ) -> Result<u64, QueryError> {
        let Some(terms) = Compiler::new(self, None).string_terms(path) else { return Ok(0) };
        let key = terms.term(term);
        let mut docs = 0;
        for (ord, reader) in self.searcher().segment_readers().iter().enumerate() {
            let segment = self.segment(ord as u32);
            let inverted = reader.inverted_index(terms.field)?;
            let Some(mut postings) = inverted.read_postings(&key, IndexRecordOption::Basic)? else {
                continue;
            };
            if segment.live().is_none() && within.is_none() {
                docs += u64::from(postings.doc_freq());
                continue;
            }
            let is_in = |doc: u32| {
                let set = within.map(|sets| sets.get(ord).and_then(|set| set.get(doc as usize / 64)));
                set.is_none_or(|word| word.is_some_and(|word| word >> (doc % 64) & 1 == 1))
            };
            let mut passed = 0_usize;
            while postings.doc() != TERMINATED {
                docs += u64::from(segment.is_live(postings.doc()) && is_in(postings.doc()));
                postings.advance();
                passed += 1;
                if passed.is_multiple_of(1 << 14) {
                    work::check()?;
                }
            }
        }
        Ok(docs)
    }

    /// Frequency of a term, computed in a pass over the documents that have it.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn term_frequency(&self, path: &str, term: &str) -> Result<TermFrequency, QueryError> {
        let mut frequency = TermFrequency { docs: 0, total: 0 };
        let Some(terms) = Compiler::new(self, None).string_terms(path) else { return Ok(frequency) };
        let key = terms.term(term);
        for reader in self.searcher().segment_readers() {
            let inverted = reader.inverted_index(terms.field)?;
            let Some(mut postings) = inverted.read_postings(&key, terms.record_option())? else { continue };
            while postings.doc() != TERMINATED {
                frequency.docs += 1;
                frequency.total += u64::from(postings.term_freq());
                postings.advance();
            }
        }
        Ok(frequency)
    }
}

/// Number of UTF-16 code units before each byte of a text; `None` for ASCII texts, where it is the byte's own
/// offset.
struct Units(Option<Vec<u32>>);

impl Units {
    fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self(None);
        }
        let mut before = vec![0; text.len() + 1];
        let mut units = 0;
        for (at, letter) in text.char_indices() {
            before[at..at + letter.len_utf8()].fill(units);
            units += letter.len_utf16() as u32;
        }
        before[text.len()] = units;
        Self(Some(before))
    }

    fn before(&self, byte: usize) -> usize {
        match &self.0 {
            None => byte,
            Some(before) => before.get(byte).or(before.last()).map_or(0, |units| *units as usize),
        }
    }
}
