//! A unit for the text scores of a query, so that scores of different queries can be compared.

use crate::query::compile::Compiler;
use crate::snapshot::Snapshot;
use sparrow_query::{DisMaxQuery, MatchQuery, Query, QueryKind, ZeroTerms};
use sparrow_scoring::analyzed::{Section, sections};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::statistics::{FieldStatistics, bm25_bound};

impl Snapshot {
    /// A number to divide the text scores of a query by, so that they mean about the same for short and long
    /// queries, and in small and large indexes. It is the geometric mean of two upper bounds: of the score of
    /// a document with all words of the query, however often it has them (BM25's bound, including words that
    /// no document has), and of the score of a single word that no document has. With several fields it is
    /// the highest of those that have any of the words, 0 if none has. `None` for a query that is more than
    /// words in fields, apart from filters.
    ///
    /// # Errors
    /// Those of the query's analysis, and of reading the index.
    pub fn unit_of_words(&self, query: &Query) -> Result<Option<f32>, QueryError> {
        Compiler::new(self, None).unit_of_words(query)
    }
}

impl Compiler<'_> {
    fn unit_of_words(&mut self, query: &Query) -> Result<Option<f32>, QueryError> {
        let score = match &query.kind {
            QueryKind::Match(clause) => self.unit_in_field(clause)?,
            QueryKind::Lenient(clause) => self.unit_of_words(&clause.query)?,
            QueryKind::MultiMatch(clause) => match self.fields_of(clause)? {
                Some((queries, _)) => self.highest(&queries)?,
                None => None,
            },
            QueryKind::DisMax(DisMaxQuery { queries, .. }) => self.highest(queries)?,
            QueryKind::Bool(tree) if tree.should.is_empty() => match &tree.must[..] {
                [one] => self.unit_of_words(one)?,
                _ => None,
            },
            _ => None,
        };
        Ok(score.map(|score| score * query.boost))
    }

    fn highest(&mut self, queries: &[Query]) -> Result<Option<f32>, QueryError> {
        let mut highest = 0.0f32;
        for query in queries {
            let Some(score) = self.unit_of_words(query)? else { return Ok(None) };
            highest = highest.max(score);
        }
        Ok(Some(highest))
    }

    fn unit_in_field(&mut self, clause: &MatchQuery) -> Result<Option<f32>, QueryError> {
        if clause.fuzziness.is_some() || clause.zero_terms_query != ZeroTerms::None {
            return Ok(None);
        }
        // A number or a date in a field of such values scores 1.
        let Some(terms) = self.string_terms(&clause.field) else { return Ok(Some(0.0)) };
        let Some(statistics) = self.statistics(&terms, true)? else { return Ok(None) };
        let (mut sum, mut is_known) = (0.0, false);
        let mut bound = |compiler: &Self, values: &[String]| -> Result<f32, QueryError> {
            let mut most = 0;
            for value in values {
                most = most.max(compiler.searcher().doc_freq(&terms.term(value))?);
            }
            is_known |= most > 0;
            Ok(bm25_bound(statistics, most))
        };
        for section in sections(self.analyze(&terms, &clause.text, clause.analyzer.as_deref(), "match")?)? {
            sum += match section {
                Section::Terms { terms, .. } => bound(self, &terms)?,
                Section::Paths(paths) => {
                    let mut highest = 0.0f32;
                    for path in &paths {
                        let mut of_path = 0.0;
                        for word in path {
                            of_path += bound(self, std::slice::from_ref(word))?;
                        }
                        highest = highest.max(of_path);
                    }
                    highest
                }
            };
        }
        Ok(Some(if is_known { geometric_mean(sum, statistics) } else { 0.0 }))
    }
}

fn geometric_mean(sum: f32, statistics: FieldStatistics) -> f32 {
    (sum * bm25_bound(statistics, 0)).sqrt()
}

/// What [`Snapshot::unit_of_words`] gives for a text in one field of an index that is kept elsewhere.
///
/// # Arguments
/// * `docs`: number of documents that have the field.
/// * `frequencies`: for each word of the text, the number of documents that have it.
pub fn unit_of_frequencies(docs: u64, frequencies: &[u64]) -> f32 {
    let statistics = FieldStatistics { docs, tokens: 0, explain: false };
    if frequencies.iter().all(|&frequency| frequency == 0) {
        return 0.0;
    }
    geometric_mean(frequencies.iter().map(|&frequency| bm25_bound(statistics, frequency)).sum(), statistics)
}
