//! Clauses on analysed text in one field: `match`, `match_bool_prefix`, and the clauses they consist of.

use std::borrow::Cow;

use serde_json::Value;
use tantivy::query::{BooleanWeight, BoostWeight, DisjunctionMaxCombiner, Occur, SumCombiner, Weight};

use crate::query::compile::Compiler;
use crate::query::explain::described;
use crate::query::filters::key::Key;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use crate::query::kinds::term::{INDEX, scalar_text};
use sparrow_mapping::{FieldType, IGNORED, ROUTING};
use sparrow_query::{MAX_CLAUSES, MatchBoolPrefixQuery, MatchQuery, Operator, Query, ZeroTerms};
use sparrow_runtime::work;
use sparrow_scoring::analyzed::{QueryToken, Section, sections};
use sparrow_scoring::bm25::term_weight;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::fuzzy::Fuzzy;
use sparrow_scoring::minimum::minimum_should_match;
use sparrow_scoring::multi_term::{TermFilter, multi_term};
use sparrow_scoring::scored::{Bm25, SummedWeight};
use sparrow_scoring::statistics::FieldStatistics;
use sparrow_scoring::stoppable::stoppable;
use sparrow_scoring::weights;

/// Number of tokens of a text between two checks whether the request must stop.
const CHECKED_TOKENS: usize = 256;

impl Compiler<'_> {
    /// Compiles the terms of a text; with `prefix` the last one is only the beginning of a term.
    fn match_terms(
        &mut self,
        query: &MatchQuery,
        prefix: bool,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let Some(terms) = self.string_terms(&query.field) else {
            return self.match_other(&query.field, &query.text, query.lenient, scoring);
        };
        let clause = if prefix { "match_bool_prefix" } else { "match" };
        let tokens = self.analyze(&terms, &query.text, query.analyzer.as_deref(), clause)?;
        let sections = sections(tokens)?;
        let last = sections.len().saturating_sub(1);
        let mut clauses = Vec::with_capacity(sections.len());
        for (number, section) in sections.iter().enumerate() {
            let prefix = prefix && number == last;
            clauses.push(match section {
                Section::Terms { terms: alternatives, .. } => {
                    self.one_position(query, &terms, alternatives, prefix, scoring)?
                }
                Section::Paths(paths) => self.paths(query, &terms, paths, scoring)?,
            });
        }
        join(clauses, query.operator, query.minimum_should_match.as_deref(), query.zero_terms_query, scoring)
    }

    /// Compiles the alternative terms at one position of a text.
    fn one_position(
        &mut self,
        query: &MatchQuery,
        terms: &StringTerms,
        alternatives: &[String],
        prefix: bool,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        if prefix {
            let mut clauses = Vec::with_capacity(alternatives.len());
            for value in alternatives {
                let filter = TermFilter::Prefix(value.clone());
                clauses.push(weights::constant(multi_term(terms.clone(), filter, false), 1.0, scoring));
            }
            return Ok(any(clauses, scoring));
        }
        match (alternatives, &query.fuzziness) {
            ([value], Some(fuzziness)) => {
                let fuzzy = Fuzzy::new(value, fuzziness, query.prefix_length, query.max_expansions)?
                    .with_transpositions(!query.without_transpositions);
                self.fuzzy(terms, &fuzzy, query.fuzzy_rewrite, scoring)
            }
            ([value], None) => {
                let statistics = self.statistics(terms, scoring)?;
                term_weight(self.searcher(), statistics, terms, value, None)
            }
            _ => self.synonyms(terms, alternatives, scoring),
        }
    }

    /// Compiles alternative paths through a text with synonyms, each as a phrase or as all of its words.
    fn paths(
        &mut self,
        query: &MatchQuery,
        terms: &StringTerms,
        paths: &[Vec<String>],
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let mut ways = Vec::with_capacity(paths.len());
        for path in paths {
            if query.without_synonym_phrases || path.len() < 2 {
                let mut words = Vec::with_capacity(path.len());
                for word in path {
                    words.push(self.one_position(
                        query,
                        terms,
                        std::slice::from_ref(word),
                        false,
                        scoring,
                    )?);
                }
                ways.push(match words.len() {
                    1 => words.remove(0),
                    count => should(words, count, scoring),
                });
            } else {
                let places: Vec<(usize, Vec<String>)> =
                    path.iter().enumerate().map(|(at, word)| (at, vec![word.clone()])).collect();
                ways.push(self.phrase(terms, &places, 0, scoring)?);
            }
        }
        Ok(any(ways, scoring))
    }

    /// Compiles synonyms: their frequencies in a document are added up, and all are scored with the document
    /// frequency of the most frequent one.
    pub(crate) fn synonyms(
        &mut self,
        terms: &StringTerms,
        values: &[String],
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let statistics = self.statistics(terms, scoring)?;
        if let [value] = values {
            return term_weight(self.searcher(), statistics, terms, value, None);
        }
        let mut scored_terms = Vec::with_capacity(values.len());
        let mut most = 0;
        for value in values {
            let term = terms.term(value);
            let doc_freq = self.searcher().doc_freq(&term)?;
            most = most.max(doc_freq);
            if doc_freq > 0 {
                scored_terms.push((term, 1.0));
            }
        }
        if scored_terms.is_empty() {
            return Ok(weights::none());
        }
        Ok(Box::new(SummedWeight {
            terms: scored_terms,
            fields: vec![(terms.field, 1.0)],
            bm25: statistics.map(|statistics| Bm25::new(statistics, &[most])),
        }))
    }

    /// Compiles clauses of which the best counts, plus `tie_breaker` times the scores of the others.
    pub(crate) fn dis_max(
        &mut self,
        queries: &[Query],
        tie_breaker: f32,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let mut clauses = Vec::with_capacity(queries.len());
        for query in queries {
            clauses.push(self.compile(query, scoring)?);
        }
        let best = dis_max(clauses, tie_breaker, scoring);
        Ok(match (self.explaining && scoring && queries.len() > 1, tie_breaker) {
            (false, _) => best,
            (true, 0.0) => described(best, "max of:".to_owned()),
            (true, _) => described(best, format!("max plus {tie_breaker:?} times others of:")),
        })
    }

    /// Statistics of a field for BM25; `None` if no scores are needed.
    pub(crate) fn statistics(
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
    pub(crate) fn string_terms(&self, path: &str) -> Option<StringTerms> {
        let schema = self.snapshot.schema();
        if path == sparrow_segments::schema::ID {
            return Some(StringTerms::text(schema.id, path));
        }
        if matches!(path, IGNORED | ROUTING) {
            return Some(StringTerms::keyword(schema, path));
        }
        let path = &*self.snapshot.mapping().concrete(path);
        match self.snapshot.mapping().field(path)? {
            FieldType::Text { .. } => Some(StringTerms::text(schema.text(path)?, path)),
            FieldType::Keyword { .. } => Some(StringTerms::keyword(schema, path)),
            _ => None,
        }
    }

    /// Name of the analyzer that splits a query text for a field.
    ///
    /// # Errors
    /// [`QueryError::UnknownAnalyzer`] when the clause names one that does not exist.
    pub(crate) fn analyzer_name(
        &self,
        path: &str,
        analyzer: Option<&str>,
        clause: &'static str,
    ) -> Result<String, QueryError> {
        if let Some(name) = analyzer {
            return match self.snapshot.analysis().analyzer(name) {
                Some(_) => Ok(name.to_owned()),
                None => Err(QueryError::UnknownAnalyzer { clause, name: name.to_owned() }),
            };
        }
        Ok(match self.snapshot.mapping().field(path) {
            Some(FieldType::Text { options }) => {
                options.search_analyzer.clone().unwrap_or_else(|| options.analyzer.clone())
            }
            // Names of normalizers may be those of analyzers.
            Some(FieldType::Keyword { normalizer: Some(name), .. }) => format!("normalizer {name}"),
            _ => "keyword".to_owned(),
        })
    }

    /// The tokens of a query's text, ascending by position, as split by the analyzer that the clause names,
    /// or else by the field's analyzer for queries or phrases.
    pub(crate) fn analyze(
        &self,
        terms: &StringTerms,
        text: &str,
        analyzer: Option<&str>,
        clause: &'static str,
    ) -> Result<Vec<QueryToken>, QueryError> {
        let quoted = matches!(clause, "match_phrase" | "match_phrase_prefix");
        let analyzer = match analyzer {
            Some(name) => match self.snapshot.analysis().analyzer(name) {
                Some(analyzer) => Some(analyzer),
                None => return Err(QueryError::UnknownAnalyzer { clause, name: name.to_owned() }),
            },
            None => self.snapshot.search_analyzer(&terms.path, quoted),
        };
        let Some(analyzer) = analyzer else {
            return Ok(vec![QueryToken { position: 0, length: 1, text: text.to_owned() }]);
        };
        let mut tokens = Vec::new();
        let has_paths = analyzer.makes_graphs();
        for token in analyzer.tokens(text) {
            // A text may be analyzed for many fields, and only the first few tokens of each be wanted.
            if tokens.len().is_multiple_of(CHECKED_TOKENS) {
                work::check()?;
            }
            // Each token becomes a clause: a text of megabytes is refused before it is all in memory.
            if tokens.len() >= MAX_CLAUSES {
                return Err(QueryError::TooManyClauses { limit: MAX_CLAUSES });
            }
            tokens.push(QueryToken {
                position: token.position,
                length: if has_paths { token.length as usize } else { 1 },
                text: token.text,
            });
        }
        Ok(tokens)
    }

    /// A value in the form in which the field's terms are indexed: passed through a keyword's normalizer.
    pub(crate) fn term_text(&self, field: &str, value: &Value) -> Result<String, QueryError> {
        let text = scalar_text(field, value)?;
        Ok(match self.snapshot.normalized(field, &text) {
            Cow::Owned(normalized) => normalized,
            Cow::Borrowed(_) => text,
        })
    }

    /// A wildcard pattern whose literal parts have passed through a keyword's normalizer.
    pub(crate) fn normalized_pattern(&self, field: &str, pattern: &str) -> String {
        let mut out = String::with_capacity(pattern.len());
        let mut literal = String::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if !matches!(c, '*' | '?' | '\\') {
                literal.push(c);
                continue;
            }
            out.push_str(&self.snapshot.normalized(field, &std::mem::take(&mut literal)));
            out.push(c);
            if c == '\\' {
                out.extend(chars.next());
            }
        }
        out.push_str(&self.snapshot.normalized(field, &literal));
        out
    }
}

/// Combines the clauses of a text, of which as many must match as the query says.
pub(crate) fn join(
    mut clauses: Vec<Box<dyn Weight>>,
    operator: Operator,
    minimum: Option<&str>,
    zero_terms: ZeroTerms,
    scoring: bool,
) -> Result<Box<dyn Weight>, QueryError> {
    match clauses.len() {
        0 if zero_terms == ZeroTerms::All => Ok(weights::all(1.0, scoring)),
        0 => Ok(weights::none()),
        1 => Ok(clauses.remove(0)),
        count => {
            let minimum = match (operator, minimum) {
                (Operator::And, _) => count,
                (Operator::Or, None) => 1,
                (Operator::Or, Some(spec)) => minimum_should_match(count, spec)?.max(1),
            };
            Ok(should(clauses, minimum, scoring))
        }
    }
}

/// Combines clauses of which any may match; their scores add up.
pub(crate) fn any(mut clauses: Vec<Box<dyn Weight>>, scoring: bool) -> Box<dyn Weight> {
    match clauses.len() {
        0 => weights::none(),
        1 => clauses.remove(0),
        _ => should(clauses, 1, scoring),
    }
}

/// Clauses of which at least `minimum` must match; their scores add up.
pub(crate) fn should(clauses: Vec<Box<dyn Weight>>, minimum: usize, scoring: bool) -> Box<dyn Weight> {
    Box::new(BooleanWeight::with_minimum_number_should_match(
        stoppable(clauses.into_iter().map(|clause| (Occur::Should, clause)).collect()),
        minimum,
        scoring,
        Box::new(SumCombiner::default),
    ))
}

/// Combines clauses into the score of the best plus `tie_breaker` times the scores of the others.
pub(crate) fn dis_max(mut clauses: Vec<Box<dyn Weight>>, tie_breaker: f32, scoring: bool) -> Box<dyn Weight> {
    if clauses.len() <= 1 {
        return clauses.pop().unwrap_or_else(weights::none);
    }
    Box::new(BooleanWeight::with_minimum_number_should_match(
        stoppable(clauses.into_iter().map(|clause| (Occur::Should, clause)).collect()),
        1,
        scoring,
        Box::new(move || DisjunctionMaxCombiner::with_tie_breaker(tie_breaker)),
    ))
}

/// A weight whose scores are multiplied by `boost`.
pub(crate) fn boosted(weight: Box<dyn Weight>, boost: f32, scoring: bool) -> Box<dyn Weight> {
    if scoring && boost != 1.0 { Box::new(BoostWeight::new(weight, boost)) } else { weight }
}

impl Meaning for MatchQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.match_terms(self, false, scoring)
    }

    fn of_index(&self, name: &str) -> Option<bool> {
        (self.field == INDEX).then(|| self.text == name)
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let MatchQuery {
            field,
            text,
            operator,
            minimum_should_match,
            analyzer,
            fuzziness: None,
            prefix_length: _,
            max_expansions: _,
            without_transpositions: _,
            fuzzy_rewrite: _,
            without_synonym_phrases,
            lenient,
            zero_terms_query,
        } = self
        else {
            return None;
        };
        key.tag(8).text(field).text_value(text)?.option(minimum_should_match.as_deref());
        key.option(analyzer.as_deref()).flag(*lenient).flag(*without_synonym_phrases);
        key.flag(*operator == Operator::And).flag(*zero_terms_query == ZeroTerms::All);
        Some(())
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.text(self, false)
    }
}

impl Meaning for MatchBoolPrefixQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.match_terms(&self.0, true, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.text(&self.0, true)
    }
}
