//! Clauses over analysed text: `match`, `match_phrase`, `multi_match`.

use tantivy::query::{
    BooleanWeight, BoostWeight, DisjunctionMaxCombiner, EnableScoring, Occur, PhraseQuery, Query as _,
    SumCombiner, Weight,
};
use tantivy::tokenizer::TokenStream;

use super::ast::{
    MatchPhraseQuery, MatchQuery, MultiMatchQuery, MultiMatchType, Operator, Query, QueryKind, ZeroTerms,
};
use super::compile::{Compiler, MAX_CLAUSES};
use super::error::QueryError;
use super::explain::described;
use super::fields::{FieldStatistics, StringTerms, bm25_weight, term_weight};
use super::minimum::minimum_should_match;
use super::multi_term::{Fuzzy, expand_fuzzy};
use super::weights;
use crate::mapping::{Analyzer, FieldType};

impl Compiler<'_> {
    pub(super) fn match_query(
        &mut self,
        query: &MatchQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let Some(terms) = self.string_terms(&query.field) else {
            return self.match_other(&query.field, &query.text, query.lenient, scoring);
        };
        let tokens = self.analyze(&terms, &query.text, query.analyzer.as_deref(), "match")?;
        let statistics = self.statistics(&terms, scoring)?;
        let mut clauses = Vec::with_capacity(tokens.len());
        for (_, token) in &tokens {
            self.count_clause()?;
            clauses.push(match &query.fuzziness {
                Some(fuzziness) => {
                    let fuzzy = Fuzzy::new(token, fuzziness, query.prefix_length, query.max_expansions)?;
                    self.fuzzy(&terms, statistics, &fuzzy, scoring)?
                }
                None => term_weight(self.searcher(), statistics, &terms, token, None)?,
            });
        }
        match clauses.len() {
            0 if query.zero_terms_query == ZeroTerms::All => Ok(weights::all(1.0, scoring)),
            0 => Ok(weights::none()),
            1 => Ok(clauses.remove(0)),
            count => {
                let minimum = match (query.operator, &query.minimum_should_match) {
                    (Operator::And, _) => count,
                    (Operator::Or, None) => 1,
                    (Operator::Or, Some(spec)) => minimum_should_match(count, spec)?.max(1),
                };
                Ok(should(clauses, minimum, scoring))
            }
        }
    }

    pub(super) fn match_phrase(
        &mut self,
        query: &MatchPhraseQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let Some(terms) = self.string_terms(&query.field) else {
            return self.match_other(&query.field, &query.text, false, scoring);
        };
        let tokens = self.analyze(&terms, &query.text, query.analyzer.as_deref(), "match_phrase")?;
        self.count_clause()?;
        let statistics = self.statistics(&terms, scoring)?;
        match &tokens[..] {
            [] if query.zero_terms_query == ZeroTerms::All => Ok(weights::all(1.0, scoring)),
            [] => Ok(weights::none()),
            [(_, token)] => term_weight(self.searcher(), statistics, &terms, token, None),
            tokens => {
                let offsets: Vec<_> = tokens.iter().map(|(at, token)| (*at, terms.term(token))).collect();
                let all: Vec<_> = offsets.iter().map(|(_, term)| term.clone()).collect();
                let phrase = PhraseQuery::new_with_offset_and_slop(offsets, query.slop);
                match statistics {
                    Some(statistics) => bm25_weight(self.searcher(), statistics, &phrase, &all, None),
                    None => Ok(phrase.weight(EnableScoring::disabled_from_searcher(self.searcher()))?),
                }
            }
        }
    }

    pub(super) fn multi_match(
        &mut self,
        query: &MultiMatchQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let defaults = [("*".to_owned(), 1.0)];
        let fields: &[_] = if query.fields.is_empty() { &defaults } else { &query.fields };
        let mut queries = Vec::new();
        for (path, boost, by_pattern) in self.expand_fields(fields) {
            let lenient = query.template.lenient || by_pattern;
            let kind = match query.kind {
                MultiMatchType::Phrase => QueryKind::MatchPhrase(MatchPhraseQuery {
                    field: path,
                    text: query.template.text.clone(),
                    slop: query.slop,
                    analyzer: query.template.analyzer.clone(),
                    zero_terms_query: query.template.zero_terms_query,
                }),
                MultiMatchType::BestFields | MultiMatchType::MostFields => {
                    QueryKind::Match(MatchQuery { field: path, lenient, ..query.template.clone() })
                }
            };
            queries.push(Query::new(kind).with_boost(boost));
        }
        let tie_breaker = query.tie_breaker.unwrap_or(match query.kind {
            MultiMatchType::MostFields => 1.0,
            MultiMatchType::BestFields | MultiMatchType::Phrase => 0.0,
        });
        self.dis_max(&queries, tie_breaker, scoring)
    }

    /// The best of several clauses.
    pub(super) fn dis_max(
        &mut self,
        queries: &[Query],
        tie_breaker: f32,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let mut clauses = Vec::with_capacity(queries.len());
        for query in queries {
            clauses.push((Occur::Should, self.compile(query, scoring)?));
        }
        if clauses.len() <= 1 {
            return Ok(clauses.pop().map_or_else(weights::none, |(_, clause)| clause));
        }
        let best: Box<dyn Weight> = Box::new(BooleanWeight::with_minimum_number_should_match(
            clauses,
            1,
            scoring,
            Box::new(move || DisjunctionMaxCombiner::with_tie_breaker(tie_breaker)),
        ));
        Ok(match (self.explaining && scoring, tie_breaker) {
            (false, _) => best,
            (true, 0.0) => described(best, "max of:".to_owned()),
            (true, _) => described(best, format!("max plus {tie_breaker:?} times others of:")),
        })
    }

    /// The terms that a fuzzy term expands to, nearest first, each scored with the frequency of the
    /// most frequent one, so that a rare misspelling does not outrank the word.
    pub(super) fn fuzzy(
        &mut self,
        terms: &StringTerms,
        statistics: Option<FieldStatistics>,
        fuzzy: &Fuzzy,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let expansions = expand_fuzzy(self.searcher(), terms, fuzzy, self.cancel())?;
        let doc_freq = expansions.iter().map(|expansion| expansion.doc_freq).max();
        let mut clauses = Vec::with_capacity(expansions.len());
        for expansion in &expansions {
            let weight = term_weight(self.searcher(), statistics, terms, &expansion.value, doc_freq)?;
            clauses.push(Box::new(BoostWeight::new(weight, expansion.boost)) as Box<dyn Weight>);
        }
        Ok(match clauses.len() {
            0 => weights::none(),
            1 => clauses.remove(0),
            _ => should(clauses, 1, scoring),
        })
    }

    /// Statistics of a field when they are needed.
    pub(super) fn statistics(
        &self,
        terms: &StringTerms,
        scoring: bool,
    ) -> Result<Option<FieldStatistics>, QueryError> {
        if !scoring {
            return Ok(None);
        }
        let read = || FieldStatistics::read(self.searcher(), self.snapshot.schema(), terms);
        let statistics = self.snapshot.cache().statistics(&terms.path, read)?;
        Ok(Some(FieldStatistics { explain: self.explaining, ..statistics }))
    }

    /// String terms of a text or keyword field; `None` for other types and unknown fields.
    pub(super) fn string_terms(&self, path: &str) -> Option<StringTerms> {
        let schema = self.snapshot.schema();
        if path == crate::schema::ID {
            return Some(StringTerms::text(schema.id, path));
        }
        match self.snapshot.mapping().field(path)? {
            FieldType::Text { .. } => Some(StringTerms::text(schema.text(path)?, path)),
            FieldType::Keyword { .. } => Some(StringTerms::keyword(schema, path)),
            _ => None,
        }
    }

    /// Position and text of each token.
    pub(super) fn analyze(
        &self,
        terms: &StringTerms,
        text: &str,
        analyzer: Option<&str>,
        clause: &'static str,
    ) -> Result<Vec<(usize, String)>, QueryError> {
        let name = match analyzer {
            Some(name) => match Analyzer::from_name(name) {
                Some(analyzer) => analyzer.name(),
                None if name == "keyword" => "raw",
                None if name == "whitespace" => "whitespace",
                None => {
                    return Err(QueryError::UnknownAnalyzer { clause, name: name.to_owned() });
                }
            },
            None => match self.snapshot.mapping().field(&terms.path) {
                Some(FieldType::Text { analyzer }) => analyzer.name(),
                _ => "raw",
            },
        };
        if name == "raw" {
            return Ok(vec![(0, text.to_owned())]);
        }
        let Some(mut tokenizer) = self.searcher().index().tokenizers().get(name) else {
            return Err(QueryError::UnknownAnalyzer { clause, name: name.to_owned() });
        };
        let mut tokens = Vec::new();
        let mut stream = tokenizer.token_stream(text);
        while stream.advance() {
            // Each token becomes a clause: a text of megabytes is refused before it is all in memory.
            if tokens.len() >= MAX_CLAUSES {
                return Err(QueryError::TooManyClauses { limit: MAX_CLAUSES });
            }
            let token = stream.token();
            tokens.push((token.position, token.text.clone()));
        }
        Ok(tokens)
    }
}

/// Clauses of which at least `minimum` must match; their scores add up.
pub(super) fn should(clauses: Vec<Box<dyn Weight>>, minimum: usize, scoring: bool) -> Box<dyn Weight> {
    Box::new(BooleanWeight::with_minimum_number_should_match(
        clauses.into_iter().map(|clause| (Occur::Should, clause)).collect(),
        minimum,
        scoring,
        Box::new(SumCombiner::default),
    ))
}
