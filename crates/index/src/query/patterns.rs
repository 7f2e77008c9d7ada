//! Clauses that match many terms and are scored by their `rewrite` option: `prefix`, `wildcard`, `regexp`,
//! `fuzzy`.

use tantivy::query::Weight;

use super::compile::Compiler;
use super::error::QueryError;
use super::fields::{StringTerms, term_weight};
use super::multi_term::{Expansion, Fuzzy, TermFilter, expand_fuzzy, first_terms, multi_term};
use super::text::{any, boosted};
use super::weights;
use sparrow_query::{FuzzyQuery, Rewrite};

/// Highest number of terms whose scores are added up (the old `indices.query.bool.max_clause_count`).
const MAX_SCORED: usize = 1024;

impl Compiler<'_> {
    /// Compiles a pattern to the documents that hold any matching term.
    pub(super) fn pattern(
        &mut self,
        field: &str,
        clause: &'static str,
        filter: TermFilter,
        case_insensitive: bool,
        (rewrite, scoring): (Rewrite, bool),
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let Some(terms) = self.string_terms(field) else { return self.unsupported(field, clause) };
        let limit = match rewrite {
            Rewrite::Constant => {
                return Ok(weights::constant(multi_term(terms, filter, case_insensitive), 1.0, scoring));
            }
            Rewrite::ScoringBoolean => MAX_SCORED + 1,
            Rewrite::TopTerms(limit) | Rewrite::TopTermsBoost(limit) | Rewrite::TopTermsBlended(limit) => {
                limit.min(MAX_SCORED)
            }
        };
        let expansions =
            first_terms(self.searcher(), &terms, &filter, case_insensitive, limit, self.cancel())?;
        self.expanded(&terms, &expansions, rewrite, scoring)
    }

    pub(super) fn fuzzy_query(
        &mut self,
        query: &FuzzyQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let Some(terms) = self.string_terms(&query.field) else {
            return self.unsupported(&query.field, "fuzzy");
        };
        self.count_clause()?;
        let value = self.snapshot.normalized(&query.field, &query.value);
        let fuzzy = Fuzzy::new(&value, &query.fuzziness, query.prefix_length, query.max_expansions)?
            .with_transpositions(!query.without_transpositions);
        self.fuzzy(&terms, &fuzzy, query.rewrite, scoring)
    }

    /// Compiles a fuzzy term to the terms that it expands to, most similar first. By default each is scored
    /// with the document frequency of the most frequent one, so that a rare misspelling does not outrank the
    /// correct word.
    pub(super) fn fuzzy(
        &mut self,
        terms: &StringTerms,
        fuzzy: &Fuzzy,
        rewrite: Option<Rewrite>,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let rewrite = rewrite.unwrap_or(Rewrite::TopTermsBlended(fuzzy.max_expansions()));
        let mut expansions = expand_fuzzy(self.searcher(), terms, fuzzy, self.cancel())?;
        if let Rewrite::TopTerms(limit) | Rewrite::TopTermsBoost(limit) | Rewrite::TopTermsBlended(limit) =
            rewrite
        {
            expansions.truncate(limit);
        }
        if rewrite == Rewrite::Constant {
            let values = expansions.into_iter().map(|expansion| expansion.value).collect();
            let docs = multi_term(terms.clone(), TermFilter::Set(values), false);
            return Ok(weights::constant(docs, 1.0, scoring));
        }
        self.expanded(terms, &expansions, rewrite, scoring)
    }

    /// A clause for the terms of an expansion, scored as `rewrite` says.
    fn expanded(
        &mut self,
        terms: &StringTerms,
        expansions: &[Expansion],
        rewrite: Rewrite,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        if rewrite == Rewrite::ScoringBoolean && expansions.len() > MAX_SCORED {
            return Err(QueryError::TooManyClauses { limit: MAX_SCORED });
        }
        let blended = match rewrite {
            Rewrite::TopTermsBlended(_) => expansions.iter().map(|expansion| expansion.doc_freq).max(),
            _ => None,
        };
        let statistics = self.statistics(terms, scoring && !matches!(rewrite, Rewrite::TopTermsBoost(_)))?;
        let mut clauses = Vec::with_capacity(expansions.len());
        for expansion in expansions {
            let weight = match rewrite {
                Rewrite::TopTermsBoost(_) => {
                    let set = TermFilter::Set(vec![expansion.value.clone()]);
                    weights::constant(multi_term(terms.clone(), set, false), 1.0, scoring)
                }
                _ => term_weight(self.searcher(), statistics, terms, &expansion.value, blended)?,
            };
            clauses.push(boosted(weight, expansion.boost, scoring));
        }
        Ok(any(clauses, scoring))
    }
}
