//! The weights of terms and phrases with Lucene's BM25 over one field.

use tantivy::query::{Bm25StatisticsProvider, BoostWeight, EnableScoring, Query, TermQuery, Weight};
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use crate::error::QueryError;
use crate::explained_bm25;
use crate::fields::StringTerms;
use crate::statistics::{FieldStatistics, idf, idf_as_tantivy};

/// Provides tantivy's BM25 with the statistics of one field instead of those of the whole index.
pub struct FieldBm25<'a> {
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
pub fn bm25_weight(
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
            explained_bm25::explained(weight, searcher, terms, frequencies.clone(), statistics)
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
pub fn term_weight(
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
