//! Compiles a query tree to tantivy weights that are bound to one snapshot.

use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_types::{ExecutorLog, work};
use tantivy::Searcher;
use tantivy::query::{BooleanWeight, BoostWeight, Occur, SumCombiner, Weight};

use super::error::QueryError;
use super::explain;
use super::fields::StringTerms;
use super::index_name;
use super::minimum::minimum_should_match;
use super::more_like_this;
use super::multi_term::{TermFilter, Wildcard, multi_term};
use super::query_string;
use super::score_error::ScoreErrors;
use super::simple_query_string;
use super::weights;
use crate::snapshot::Snapshot;
use sparrow_mapping::FieldType;
use sparrow_query::regexp::Automaton;
use sparrow_query::{BoolQuery, MAX_CLAUSES, Query, QueryKind};
use sparrow_segments::schema::ID;

/// Compiles a query to weights for one snapshot.
pub(crate) struct Compiler<'a> {
    pub(super) snapshot: &'a Snapshot,
    cancel: Option<&'a AtomicBool>,
    /// Current time in milliseconds since the epoch: `now` in date math, the same for all clauses of a
    /// search.
    pub(super) now: i64,
    clauses: usize,
    score_errors: ScoreErrors,
    /// Whether weights must be able to explain their scores.
    pub(super) explaining: bool,
    /// Records which algorithms take part in the search.
    pub(super) executors: ExecutorLog,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, cancel: Option<&'a AtomicBool>) -> Self {
        let now = time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
        Self {
            snapshot,
            cancel,
            now: now as i64,
            clauses: 0,
            score_errors: ScoreErrors::default(),
            explaining: false,
            executors: ExecutorLog::default(),
        }
    }

    /// A compiler whose weights can explain their scores in full.
    pub(super) fn explaining(snapshot: &'a Snapshot, cancel: Option<&'a AtomicBool>) -> Self {
        Self { explaining: true, ..Self::new(snapshot, cancel) }
    }

    pub(super) fn searcher(&self) -> &'a Searcher {
        self.snapshot.searcher()
    }

    /// Name of the index.
    pub(super) fn name(&self) -> &'a str {
        self.snapshot.name()
    }

    pub(super) fn field_type(&self, path: &str) -> Option<&'a FieldType> {
        self.snapshot.mapping().field(path)
    }

    pub(super) fn cancel(&self) -> Option<&'a AtomicBool> {
        self.cancel
    }

    /// Fails if the search has been cancelled.
    ///
    /// # Errors
    /// [`QueryError::Cancelled`] once the caller's flag is set.
    pub(super) fn check_cancelled(&self) -> Result<(), QueryError> {
        match self.cancel {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(QueryError::Cancelled),
            _ => Ok(work::check()?),
        }
    }

    /// Collects errors that occur while scores are computed.
    pub(super) fn score_errors(&self) -> &ScoreErrors {
        &self.score_errors
    }

    /// Number of clauses counted so far.
    pub(super) fn clauses(&self) -> usize {
        self.clauses
    }

    /// Resets the clause count to an earlier value, for clauses that are compiled again in another way.
    pub(super) fn restore_clauses(&mut self, before: usize) {
        self.clauses = before;
    }

    /// Counts one more clause.
    ///
    /// # Errors
    /// As [`Compiler::count_clauses`].
    pub(super) fn count_clause(&mut self) -> Result<(), QueryError> {
        self.count_clauses(1)
    }

    /// Counts several more clauses.
    ///
    /// # Errors
    /// When the query has too many clauses, or the request takes too much memory.
    pub(super) fn count_clauses(&mut self, more: usize) -> Result<(), QueryError> {
        self.clauses += more;
        if self.clauses > MAX_CLAUSES {
            return Err(QueryError::TooManyClauses { limit: MAX_CLAUSES });
        }
        Ok(work::check()?)
    }

    /// Compiles a clause to a weight; without `scoring` it only finds documents.
    ///
    /// # Errors
    /// When a clause does not fit its field, or the index cannot be read.
    pub(crate) fn compile(&mut self, query: &Query, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        self.check_cancelled()?;
        let mut weight = self.compile_kind(&query.kind, scoring)?;
        if self.explaining {
            weight = explain::labelled(&query.kind, weight, scoring);
        }
        // A least score is compared with boosted ones, whether scores are wanted or not.
        let least = match &query.kind {
            QueryKind::FunctionScore(inner) => inner.min_score,
            QueryKind::ScriptScore(inner) => inner.min_score,
            _ => None,
        };
        let scoring = scoring || least.is_some();
        if scoring && query.boost != 1.0 {
            return Ok(Box::new(BoostWeight::new(weight, query.boost)));
        }
        Ok(weight)
    }

    fn compile_kind(&mut self, kind: &QueryKind, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        if let Some(matches) = index_name::matches(kind, self.snapshot.name()) {
            self.count_clause()?;
            return Ok(if matches { weights::all(1.0, scoring) } else { weights::none() });
        }
        match kind {
            QueryKind::MatchAll => Ok(weights::all(1.0, scoring)),
            QueryKind::MatchNone => Ok(weights::none()),
            QueryKind::Match(query) => self.match_query(query, scoring),
            QueryKind::MatchPhrase(query) => self.match_phrase(query, scoring),
            QueryKind::MatchPhrasePrefix(query) => self.match_phrase_prefix(query, scoring),
            QueryKind::MatchBoolPrefix(query) => self.match_bool_prefix(query, scoring),
            QueryKind::MultiMatch(query) => self.multi_match(query, scoring),
            QueryKind::CombinedFields(query) => self.combined_fields(query, scoring),
            QueryKind::Term { field, value, case_insensitive } => {
                self.term(field, value, *case_insensitive, scoring)
            }
            QueryKind::Terms { field, values } => {
                let terms = self.terms(field, values)?;
                Ok(weights::constant(terms, 1.0, scoring))
            }
            QueryKind::TermsSet(query) => self.terms_set(query, scoring),
            QueryKind::Range(query) => {
                let range = self.range(query)?;
                Ok(weights::constant(range, 1.0, scoring))
            }
            QueryKind::Exists { field } => {
                let exists = self.exists(field)?;
                Ok(weights::constant(exists, 1.0, scoring))
            }
            QueryKind::Ids { values } => {
                self.count_clause()?;
                let ids = StringTerms::text(self.snapshot.schema().id, ID);
                let set = multi_term(ids, TermFilter::Set(values.clone()), false);
                Ok(weights::constant(set, 1.0, scoring))
            }
            QueryKind::Prefix { field, value, case_insensitive, rewrite } => {
                let prefix = TermFilter::Prefix(self.snapshot.normalized(field, value).into_owned());
                self.pattern(field, "prefix", prefix, *case_insensitive, (*rewrite, scoring))
            }
            QueryKind::Wildcard { field, value, case_insensitive, rewrite } => {
                let pattern = TermFilter::Wildcard(Wildcard::new(&self.normalized_pattern(field, value)));
                self.pattern(field, "wildcard", pattern, *case_insensitive, (*rewrite, scoring))
            }
            QueryKind::Regexp(query) => {
                let automaton = TermFilter::Regexp(Automaton::new(query)?.into());
                self.pattern(&query.field, "regexp", automaton, false, (query.rewrite, scoring))
            }
            QueryKind::Fuzzy(query) => self.fuzzy_query(query, scoring),
            QueryKind::QueryString(query) => {
                let tree = query_string::rewrite(query, &*self)?;
                self.compile(&tree, scoring)
            }
            QueryKind::SimpleQueryString(query) => {
                let tree = simple_query_string::rewrite(query, &*self)?;
                self.compile(&tree, scoring)
            }
            QueryKind::MoreLikeThis(query) => {
                let tree = more_like_this::rewrite(query, &*self)?;
                self.compile(&tree, scoring)
            }
            QueryKind::Bool(query) => self.bool(query, scoring),
            QueryKind::ConstantScore { filter } => {
                let filter = self.compile(filter, false)?;
                Ok(weights::constant(filter, 1.0, scoring))
            }
            QueryKind::DisMax { queries, tie_breaker } => self.dis_max(queries, *tie_breaker, scoring),
            QueryKind::Boosting(query) => self.boosting(query, scoring),
            QueryKind::FunctionScore(query) => self.function_score(query, scoring),
            QueryKind::ScriptScore(query) => self.script_score(query, scoring),
            QueryKind::RankFeature(query) => self.rank_feature(query, scoring),
            QueryKind::DistanceFeature(query) => self.distance_feature(query),
            QueryKind::Intervals(query) => self.intervals(query, scoring),
            QueryKind::Nested { ignore_unmapped: true, .. } => Ok(weights::none()),
            QueryKind::Nested { path, ignore_unmapped: false } => {
                Err(QueryError::NestedPath { path: path.clone() })
            }
            QueryKind::Lenient(query) => match self.compile(query, scoring) {
                Err(error) if error.is_about_a_value() => Ok(weights::none()),
                compiled => compiled,
            },
            QueryKind::Sparse(query) => self.sparse(query),
            QueryKind::Knn(query) => self.knn(query),
            QueryKind::Semantic(query) => {
                let bound = super::semantic::answering(query, self.snapshot.mapping())?;
                self.compile_kind(&bound, scoring)
            }
            QueryKind::TextExpansion(query) => {
                Err(QueryError::NotEncoded { model_id: query.model_id.clone() })
            }
            QueryKind::KnnBuilder(query) => Err(QueryError::NotEncoded { model_id: query.model_id.clone() }),
            QueryKind::TermsLookup(query) => Err(QueryError::NotLookedUp { field: query.field.clone() }),
        }
    }

    fn bool(&mut self, query: &BoolQuery, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let BoolQuery { must, should, filter, must_not, .. } = query;
        if must.is_empty() && should.is_empty() && filter.is_empty() && must_not.is_empty() {
            return Ok(weights::all(1.0, scoring));
        }
        let minimum = required_should(query)?;
        let mut clauses = Vec::new();
        for query in must {
            clauses.push((Occur::Must, self.compile(query, scoring)?));
        }
        for query in filter {
            // tantivy scores every required clause; a filter adds nothing.
            let weight = self.compile(query, false)?;
            clauses.push((Occur::Must, weights::filter(weight, scoring)));
        }
        if must.is_empty() && filter.is_empty() && should.is_empty() {
            let all = self.compile(&Query::match_all(), false)?;
            clauses.push((Occur::Must, weights::filter(all, scoring)));
        }
        // An optional clause only adds to the score.
        if scoring || minimum > 0 {
            for query in should {
                clauses.push((Occur::Should, self.compile(query, scoring)?));
            }
        }
        for query in must_not {
            clauses.push((Occur::MustNot, self.compile(query, false)?));
        }
        if let [(occur @ (Occur::Must | Occur::Should), _)] = &clauses[..]
            && minimum <= usize::from(*occur == Occur::Should)
        {
            return Ok(clauses.remove(0).1);
        }
        let excludes = !must_not.is_empty();
        let all = BooleanWeight::with_minimum_number_should_match(
            clauses,
            minimum,
            scoring,
            Box::new(SumCombiner::default),
        );
        Ok(if excludes { weights::explained_if_matching(Box::new(all)) } else { Box::new(all) })
    }

    /// A weight that matches nothing if the field is not mapped, an error if it is.
    pub(super) fn unsupported(
        &self,
        field: &str,
        clause: &'static str,
    ) -> Result<Box<dyn Weight>, QueryError> {
        match self.snapshot.mapping().field(field) {
            None | Some(FieldType::Object { .. }) => Ok(weights::none()),
            Some(other) => {
                Err(QueryError::Unsupported { field: field.to_owned(), actual: other.name(), clause })
            }
        }
    }

    /// The fields with their boosts, each pattern replaced by the fields that match it. The flag says whether
    /// a field came from a pattern, which makes clauses on it lenient.
    pub(super) fn expand_fields(&self, fields: &[(String, f32)]) -> Vec<(String, f32, bool)> {
        let mut expanded: Vec<(String, f32, bool)> = Vec::new();
        for (name, boost) in fields {
            if !name.contains('*') {
                expanded.push((name.clone(), *boost, false));
                continue;
            }
            let pattern = Wildcard::new(name);
            let start = expanded.len();
            for (path, field_type) in self.snapshot.mapping().leaf_fields() {
                let searchable = !matches!(
                    field_type,
                    FieldType::SparseVector
                        | FieldType::RankFeatures
                        | FieldType::RankFeature { .. }
                        | FieldType::DenseVector(_)
                        | FieldType::SemanticText(_)
                        | FieldType::Binary
                        | FieldType::Object { .. }
                );
                if searchable && pattern.matches(path, false) {
                    expanded.push((path.to_owned(), *boost, true));
                }
            }
            expanded[start..].sort_by(|a, b| a.0.cmp(&b.0));
        }
        expanded
    }
}

impl query_string::Fields for Compiler<'_> {
    fn expand(&self, fields: &[(String, f32)]) -> Vec<(String, f32, bool)> {
        self.expand_fields(fields)
    }

    fn terms(&self, field: &str, text: &str, analyzer: Option<&str>) -> Result<Vec<String>, QueryError> {
        match self.string_terms(field) {
            Some(terms) => {
                let tokens = self.analyze(&terms, text, analyzer, "query_string")?;
                Ok(tokens.into_iter().map(|token| token.text).collect())
            }
            None => Ok(vec![text.to_owned()]),
        }
    }

    fn is_text(&self, field: &str) -> bool {
        matches!(self.snapshot.mapping().field(field), Some(FieldType::Text { .. }))
    }

    fn is_mapped(&self, field: &str) -> bool {
        self.snapshot.mapping().field(field).is_some()
    }

    fn normalize(&self, field: &str, text: &str) -> String {
        match self.snapshot.mapping().field(field) {
            Some(FieldType::Text { .. }) => match self.snapshot.search_analyzer(field, false) {
                Some(analyzer) => analyzer.normalize(text),
                None => text.to_owned(),
            },
            _ => self.snapshot.normalized(field, text).into_owned(),
        }
    }
}

/// Number of `should` clauses that must match.
pub(super) fn required_should(query: &BoolQuery) -> Result<usize, QueryError> {
    let optional = query.should.len();
    let has_required = !query.must.is_empty() || !query.filter.is_empty();
    let least = usize::from(!has_required && optional > 0);
    match &query.minimum_should_match {
        None => Ok(least),
        Some(spec) => Ok(minimum_should_match(optional, spec)?.max(least)),
    }
}
