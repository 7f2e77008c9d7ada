//! Clauses that match many terms and are scored by their `rewrite` option: `prefix`, `wildcard`, `regexp`,
//! `fuzzy`.

use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::filters::key::Key;
use crate::query::highlight::WantedWords;
use crate::query::kinds::term::INDEX;
use crate::query::kinds::text::{any, boosted};
use crate::query::kinds::{Explained, Meaning};
use sparrow_query::regexp::Automaton;
use sparrow_query::wildcard::Wildcard;
use sparrow_query::{FuzzyQuery, PrefixQuery, RegexpQuery, Rewrite, WildcardQuery};
use sparrow_runtime::attempt;
use sparrow_scoring::bm25::term_weight;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::fuzzy::{Fuzzy, expand_fuzzy};
use sparrow_scoring::multi_term::Expansion;
use sparrow_scoring::multi_term::{TermFilter, first_terms, multi_term};
use sparrow_scoring::weights;

/// Highest number of terms whose scores are added up (the old `indices.query.bool.max_clause_count`).
const MAX_SCORED: usize = 1024;

impl Compiler<'_> {
    /// Compiles a pattern to the documents that hold any matching term.
    pub(crate) fn pattern(
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

    pub(crate) fn fuzzy_query(
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
    pub(crate) fn fuzzy(
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
        self.count_clauses(expansions.len())?;
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

impl Meaning for PrefixQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let prefix = compiler.snapshot.normalized(&self.field, &self.value).into_owned();
        let rewrite = (self.rewrite, scoring);
        compiler.pattern(&self.field, "prefix", TermFilter::Prefix(prefix), self.case_insensitive, rewrite)
    }

    fn of_index(&self, name: &str) -> Option<bool> {
        (self.field == INDEX).then(|| match name.get(..self.value.len()) {
            Some(start) if self.case_insensitive => start.eq_ignore_ascii_case(&self.value),
            Some(start) => start == self.value,
            None => false,
        })
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let PrefixQuery { field, value, case_insensitive, rewrite: Rewrite::Constant } = self else {
            return None;
        };
        key.tag(5).text(field).text(value).flag(*case_insensitive);
        Some(())
    }

    fn explained(&self) -> Explained {
        explained(self.rewrite)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.pattern(&self.field, TermFilter::Prefix(self.value.clone()), self.case_insensitive);
        Ok(())
    }
}

impl Meaning for WildcardQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let pattern = Wildcard::new(&compiler.normalized_pattern(&self.field, &self.value));
        let rewrite = (self.rewrite, scoring);
        compiler.pattern(
            &self.field,
            "wildcard",
            TermFilter::Wildcard(pattern),
            self.case_insensitive,
            rewrite,
        )
    }

    fn of_index(&self, name: &str) -> Option<bool> {
        (self.field == INDEX).then(|| Wildcard::new(&self.value).matches(name, self.case_insensitive))
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let WildcardQuery { field, value, case_insensitive, rewrite: Rewrite::Constant } = self else {
            return None;
        };
        key.tag(6).text(field).text(value).flag(*case_insensitive);
        Some(())
    }

    fn explained(&self) -> Explained {
        explained(self.rewrite)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.pattern(&self.field, TermFilter::Wildcard(Wildcard::new(&self.value)), self.case_insensitive);
        Ok(())
    }
}

/// Most bytes of a regular expression that an attempt to answer without another thread makes an automaton of.
const MOST_BYTES_IN_ATTEMPT: usize = 64;

impl Meaning for RegexpQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        // Nothing looks at a flag between two states.
        let is_large =
            self.value.len() > MOST_BYTES_IN_ATTEMPT || self.max_determinized_states > Self::MAX_STATES;
        if is_large && attempt::give_up() {
            return Ok(weights::none());
        }
        let automaton = TermFilter::Regexp(Automaton::new(self)?.into());
        compiler.pattern(&self.field, "regexp", automaton, false, (self.rewrite, scoring))
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let RegexpQuery {
            field,
            value,
            flags,
            case_insensitive,
            max_determinized_states,
            rewrite: Rewrite::Constant,
        } = self
        else {
            return None;
        };
        key.tag(7).text(field).text(value).tag(*flags);
        key.flag(*case_insensitive).number(*max_determinized_states as u64);
        Some(())
    }

    fn explained(&self) -> Explained {
        explained(self.rewrite)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        let automaton = TermFilter::Regexp(Automaton::new(self)?.into());
        wanted.pattern(&self.field, automaton, false);
        Ok(())
    }
}

impl Meaning for FuzzyQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.fuzzy_query(self, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        if !wanted.is_wanted(&self.field) {
            return Ok(());
        }
        let fuzzy = Fuzzy::new(&self.value, &self.fuzziness, self.prefix_length, self.max_expansions)?
            .with_transpositions(!self.without_transpositions);
        wanted.fuzzy(&self.field, &fuzzy)
    }
}

/// What explains the score of a pattern whose terms score in this way.
fn explained(rewrite: Rewrite) -> Explained {
    match rewrite {
        Rewrite::Constant => Explained::Constant,
        _ => Explained::Itself,
    }
}
