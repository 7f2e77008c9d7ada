//! The collection statistics of the terms of a field, and what BM25 makes of them.

use tantivy::{Searcher, Term};

use crate::error::QueryError;
use crate::fields::{StringTerms, keyword_column};
use sparrow_lexical::K1;
use sparrow_segments::schema::IndexSchema;

/// Statistics of one field as Lucene counts them: documents and tokens that are deleted but not yet
/// merged away still count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldStatistics {
    /// Number of documents that have the field.
    pub docs: u64,
    /// Number of tokens of the field in all documents.
    pub tokens: u64,
    /// Whether weights made with these statistics have to explain their scores.
    pub explain: bool,
}

impl FieldStatistics {
    /// Reads the statistics of a field.
    pub fn read(searcher: &Searcher, schema: &IndexSchema, terms: &StringTerms) -> Result<Self, QueryError> {
        let docs = searcher.doc_freq(&Term::from_field_text(schema.field_names, &terms.path))?;
        let mut tokens = 0;
        for reader in searcher.segment_readers() {
            tokens += if terms.keyword {
                let column = reader.fast_fields().str(&keyword_column(&terms.path))?;
                column.map_or(0, |column| u64::from(column.ords().values.num_vals()))
            } else {
                reader.inverted_index(terms.field)?.total_num_tokens()
            };
        }
        Ok(Self { docs, tokens, explain: false })
    }
}

/// Upper bound on the score of a term that `doc_freq` documents hold: the frequency part of BM25 stays below
/// 1.
pub fn bm25_bound(statistics: FieldStatistics, doc_freq: u64) -> f32 {
    // k1 is 1.2.
    (idf(doc_freq, statistics.docs.max(doc_freq).max(1)) * 2.2) as f32
}

/// Inverse document frequency by Lucene's formula.
pub fn idf(doc_freq: u64, docs: u64) -> f64 {
    (1.0 + ((docs - doc_freq) as f64 + 0.5) / (doc_freq as f64 + 0.5)).ln()
}

/// The factor by which BM25 multiplies its frequency and length part, for terms with these document
/// frequencies that score as one: the same number, to the last bit, as in the weights of [`bm25_weight`].
pub fn bm25_factor(frequencies: &[u64], docs: u64, boost: f32) -> f32 {
    let exact: f64 = frequencies.iter().map(|&frequency| idf(frequency, docs)).sum();
    let rounded: f32 = frequencies.iter().map(|&frequency| idf_as_tantivy(frequency, docs)).sum();
    let correction = exact as f32 / rounded;
    let boost = if correction.is_finite() && correction != 1.0 { boost * correction } else { boost };
    let weight = rounded * (1.0 + K1);
    if boost == 1.0 { weight } else { weight * boost }
}

/// Inverse document frequency in single precision, rounded as tantivy does.
pub(crate) fn idf_as_tantivy(doc_freq: u64, docs: u64) -> f32 {
    (1.0 + ((docs - doc_freq) as f32 + 0.5) / (doc_freq as f32 + 0.5)).ln()
}
