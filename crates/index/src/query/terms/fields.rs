//! Locates a mapped field in the tantivy index, and reads the collection statistics of its terms.

use tantivy::columnar::NumericalValue;
use tantivy::query::{Bm25StatisticsProvider, BoostWeight, EnableScoring, Query, TermQuery, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

use crate::query::error::QueryError;
use crate::query::explain::explained_bm25;
use sparrow_lexical::K1;
use sparrow_mapping::NumberValue;
use sparrow_segments::schema::{IndexSchema, flat_key};
pub use sparrow_segments::schema::{keyword_column, number_column, open_columns};

/// The term of a number in the inverted index, where whole numbers are `i64` if they fit, whatever type they
/// were written with.
pub(crate) fn number_term(schema: &IndexSchema, path: &str, value: NumberValue) -> Term {
    let mut term = Term::from_field_json_path(schema.numbers, &flat_key(path), false);
    let value = match value {
        NumberValue::Bool(value) => {
            term.append_type_and_fast_value(value);
            return term;
        }
        NumberValue::I64(value) => NumericalValue::I64(value),
        NumberValue::U64(value) => NumericalValue::U64(value),
        NumberValue::F64(value) => NumericalValue::F64(value),
    };
    match value.normalize() {
        NumericalValue::I64(value) => term.append_type_and_fast_value(value),
        NumericalValue::U64(value) => term.append_type_and_fast_value(value),
        NumericalValue::F64(value) => term.append_type_and_fast_value(value),
    }
    term
}

/// The string terms of one mapped field: a text field's own, or a keyword's share of `_kw`.
#[derive(Debug, Clone)]
pub(crate) struct StringTerms {
    /// The tantivy field that holds the terms.
    pub(crate) field: Field,
    /// Path of the mapped field.
    pub(crate) path: String,
    keyword: bool,
}

impl StringTerms {
    /// The terms of a text field.
    pub(crate) fn text(field: Field, path: &str) -> Self {
        Self { field, path: path.to_owned(), keyword: false }
    }

    /// The terms of a keyword field.
    pub(crate) fn keyword(schema: &IndexSchema, path: &str) -> Self {
        Self { field: schema.keywords, path: path.to_owned(), keyword: true }
    }

    /// The term of a value in the inverted index.
    pub(crate) fn term(&self, value: &str) -> Term {
        if self.keyword {
            let mut term = Term::from_field_json_path(self.field, &flat_key(&self.path), false);
            term.append_type_and_str(value);
            term
        } else {
            Term::from_field_text(self.field, value)
        }
    }

    /// The bytes with which all keys of this field begin in the term dictionary; the value follows.
    pub(crate) fn key_prefix(&self) -> Vec<u8> {
        self.term("").serialized_value_bytes().to_vec()
    }

    /// How much of the postings is needed for scoring: a keyword needs no term frequencies.
    pub(crate) fn record_option(&self) -> IndexRecordOption {
        if self.keyword { IndexRecordOption::Basic } else { IndexRecordOption::WithFreqs }
    }
}

/// Statistics of one field as Lucene counts them: documents and tokens that are deleted but not yet
/// merged away still count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldStatistics {
    /// Number of documents that have the field.
    pub(crate) docs: u64,
    /// Number of tokens of the field in all documents.
    pub(crate) tokens: u64,
    /// Whether weights made with these statistics have to explain their scores.
    pub(crate) explain: bool,
}

impl FieldStatistics {
    /// Reads the statistics of a field.
    pub(crate) fn read(
        searcher: &Searcher,
        schema: &IndexSchema,
        terms: &StringTerms,
    ) -> Result<Self, QueryError> {
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

/// Provides tantivy's BM25 with the statistics of one field instead of those of the whole index.
pub(crate) struct FieldBm25<'a> {
    searcher: &'a Searcher,
    statistics: FieldStatistics,
    /// Document frequency to use instead of a term's own, for the terms that a fuzzy term expands to.
    doc_freq: Option<u64>,
}

impl Bm25StatisticsProvider for FieldBm25<'_> {
    fn total_num_tokens(&self, _field: Field) -> tantivy::Result<u64> {
        Ok(self.statistics.tokens)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.statistics.docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        match self.doc_freq {
            Some(doc_freq) => Ok(doc_freq),
            None => self.searcher.doc_freq(term),
        }
    }
}

/// Makes the weight of a term or phrase query with Lucene's BM25 over one field.
///
/// tantivy computes the idf in single precision, which is off by several percent for terms that nearly all
/// documents hold; the quotient of the exact value and tantivy's is folded into the boost.
pub(crate) fn bm25_weight(
    searcher: &Searcher,
    statistics: FieldStatistics,
    query: &dyn Query,
    terms: &[Term],
    doc_freq: Option<u64>,
) -> Result<Box<dyn Weight>, QueryError> {
    let mut provider = FieldBm25 { searcher, statistics, doc_freq };
    let mut frequencies = Vec::with_capacity(terms.len());
    for term in terms {
        frequencies.push(provider.doc_freq(term)?);
    }
    // A text without a single token leaves a field name but no norm; the frequencies are the truth.
    let docs = statistics.docs.max(frequencies.iter().copied().max().unwrap_or(0)).max(1);
    provider.statistics.docs = docs;
    let weight = query.weight(EnableScoring::enabled_from_statistics_provider(&provider, searcher))?;
    let explained = |weight: Box<dyn Weight>| match statistics.explain {
        true => {
            let statistics = FieldStatistics { docs, ..statistics };
            explained_bm25(weight, searcher, terms, frequencies.clone(), statistics)
        }
        false => weight,
    };
    let exact: f64 = frequencies.iter().map(|&frequency| idf(frequency, docs)).sum();
    let rounded: f32 = frequencies.iter().map(|&frequency| idf_as_tantivy(frequency, docs)).sum();
    let correction = exact as f32 / rounded;
    if correction.is_finite() && correction != 1.0 {
        return Ok(explained(Box::new(BoostWeight::new(weight, correction))));
    }
    Ok(explained(weight))
}

/// The weight of a single term, with BM25 if `scoring` statistics are given.
pub(crate) fn term_weight(
    searcher: &Searcher,
    statistics: Option<FieldStatistics>,
    terms: &StringTerms,
    value: &str,
    doc_freq: Option<u64>,
) -> Result<Box<dyn Weight>, QueryError> {
    let term = terms.term(value);
    let query = TermQuery::new(term.clone(), terms.record_option());
    match statistics {
        Some(statistics) => bm25_weight(searcher, statistics, &query, &[term], doc_freq),
        None => Ok(query.weight(EnableScoring::disabled_from_searcher(searcher))?),
    }
}

/// Upper bound on the score of a term that `doc_freq` documents hold: the frequency part of BM25 stays below
/// 1.
pub(crate) fn bm25_bound(statistics: FieldStatistics, doc_freq: u64) -> f32 {
    // k1 is 1.2.
    (idf(doc_freq, statistics.docs.max(doc_freq).max(1)) * 2.2) as f32
}

/// Inverse document frequency by Lucene's formula.
pub(crate) fn idf(doc_freq: u64, docs: u64) -> f64 {
    (1.0 + ((docs - doc_freq) as f64 + 0.5) / (doc_freq as f64 + 0.5)).ln()
}

/// The factor by which BM25 multiplies its frequency and length part, for terms with these document
/// frequencies that score as one: the same number, to the last bit, as in the weights of [`bm25_weight`].
pub(crate) fn bm25_factor(frequencies: &[u64], docs: u64, boost: f32) -> f32 {
    let exact: f64 = frequencies.iter().map(|&frequency| idf(frequency, docs)).sum();
    let rounded: f32 = frequencies.iter().map(|&frequency| idf_as_tantivy(frequency, docs)).sum();
    let correction = exact as f32 / rounded;
    let boost = if correction.is_finite() && correction != 1.0 { boost * correction } else { boost };
    let weight = rounded * (1.0 + K1);
    if boost == 1.0 { weight } else { weight * boost }
}

/// Inverse document frequency in single precision, rounded as tantivy does.
fn idf_as_tantivy(doc_freq: u64, docs: u64) -> f32 {
    (1.0 + ((docs - doc_freq) as f32 + 0.5) / (doc_freq as f32 + 0.5)).ln()
}
