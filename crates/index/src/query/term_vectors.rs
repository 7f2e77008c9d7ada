//! Term vectors: the terms of a document's texts with their places, and how frequent they are in the index. They are
//! made from the texts when they are asked for; none are stored.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use tantivy::postings::Postings;
use tantivy::{DocSet, TERMINATED};

use super::compile::Compiler;
use super::error::QueryError;
use super::fields::FieldStatistics;
use super::multi_term::{TermFilter, scan_terms};
use crate::snapshot::Snapshot;
use sparrow_mapping::FieldType;

/// Most tokens of a field.
const MAX_TOKENS: usize = 200_000;
/// Positions between two values of a field, unless its mapping says it.
const POSITION_GAP: usize = 100;

/// A place where a term stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermPlace {
    /// Which word it is, from 0.
    pub position: usize,
    /// UTF-16 units of all values of the field, one between two of them.
    pub start: usize,
    pub end: usize,
}

/// The terms of a field, by name.
pub type TermVector = BTreeMap<String, Vec<TermPlace>>;

/// How many terms a field has in the whole index. Deleted documents count until they are merged away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermsOfField {
    /// Documents that have the field.
    pub docs: u64,
    /// The numbers of documents of all its terms, added up.
    pub doc_freqs: u64,
    /// Words in all documents.
    pub tokens: u64,
}

/// How frequent a term is in the whole index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermFrequency {
    /// Documents that have it.
    pub docs: u64,
    /// Times that it stands in all of them.
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
            let last = match &analyzer {
                None => Some(add(value.clone(), 0, 0, value.len())),
                Some(analyzer) => analyzer
                    .tokens(value)
                    .take(MAX_TOKENS - tokens)
                    .map(|token| {
                        tokens += 1;
                        add(token.text, token.position, token.start, token.end)
                    })
                    .max(),
            };
            position += last.map_or(0, |last| last + 1) + gap;
            offset += units.before(value.len()) + 1;
        }
        Ok(Some(vector))
    }

    /// How many terms a field has. A pass over its terms.
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

    /// How many documents have a term.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn doc_freq(&self, path: &str, term: &str) -> Result<u64, QueryError> {
        match Compiler::new(self, None).string_terms(path) {
            Some(terms) => Ok(self.searcher().doc_freq(&terms.term(term))?),
            None => Ok(0),
        }
    }

    /// How frequent a term is. A pass over the documents that have it.
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

/// UTF-16 units before each byte of a text; none where they are as many as bytes.
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
