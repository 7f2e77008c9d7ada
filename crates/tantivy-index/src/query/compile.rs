//! Compiles a query tree to tantivy weights that are bound to one snapshot.

use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;
use tantivy::Searcher;
use tantivy::query::{BoostWeight, Weight};

use crate::query::explain;
use crate::query::kinds::{meaning, query_string};
use crate::snapshot::Snapshot;
use sparrow_mapping::FieldType;
use sparrow_query::wildcard::Wildcard;
use sparrow_query::{MAX_CLAUSES, Query, QueryKind};
use sparrow_runtime::{ExecutorLog, work};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::score_error::ScoreErrors;
use sparrow_scoring::weights;

/// Fields of a mapping that are compared with a pattern between two looks at the request.
const FIELDS_AT_ONCE: usize = 256;

/// Compiles a query to weights for one snapshot.
pub(crate) struct Compiler<'a> {
    pub(super) snapshot: &'a Snapshot,
    cancel: Option<&'a AtomicBool>,
    /// Current time in milliseconds since the epoch: `now` in date math, the same for all clauses of a
    /// search.
    pub(super) now: i64,
    clauses: usize,
    score_errors: ScoreErrors,
    /// Whether what matches a document also matches the objects in it, in a view of objects.
    pub(super) spreads: bool,
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
            spreads: false,
            explaining: false,
            executors: ExecutorLog::default(),
        }
    }

    /// A compiler whose weights can explain their scores in full.
    pub(super) fn explaining(snapshot: &'a Snapshot, cancel: Option<&'a AtomicBool>) -> Self {
        Self { explaining: true, ..Self::new(snapshot, cancel) }
    }

    /// A compiler for the clauses of a view inside the snapshot, which counts on where this one is.
    pub(super) fn inside<'v>(&self, view: &'v Snapshot) -> Compiler<'v>
    where
        'a: 'v,
    {
        Compiler {
            snapshot: view,
            cancel: self.cancel,
            now: self.now,
            clauses: self.clauses,
            score_errors: self.score_errors.clone(),
            spreads: false,
            explaining: self.explaining,
            executors: ExecutorLog::default(),
        }
    }

    /// Runs `find` so that a clause on a field of a document also matches the objects in it: what restricts objects may be said of
    /// them or of what is around them.
    pub(super) fn spreading<R>(&mut self, find: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.spreads, self.snapshot.scope().is_some());
        let found = find(self);
        self.spreads = before;
        found
    }

    /// Takes over what a compiler inside this one has counted.
    pub(super) fn continue_after(&mut self, inside: &Compiler<'_>) {
        self.clauses = inside.clauses;
        self.executors.note(inside.executors.noted());
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
        let scoring = scoring || meaning(&query.kind).min_score().is_some();
        if scoring && query.boost != 1.0 {
            return Ok(Box::new(BoostWeight::new(weight, query.boost)));
        }
        Ok(weight)
    }

    /// As [`Compiler::compile`], without the boost and the explanation of the clause.
    pub(super) fn compile_kind(
        &mut self,
        kind: &QueryKind,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let meaning = meaning(kind);
        if let Some(matches) = meaning.of_index(self.snapshot.name()) {
            self.count_clause()?;
            return Ok(if matches { weights::all(1.0, scoring) } else { weights::none() });
        }
        meaning.compile(self, scoring)
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

    /// The fields with their boosts, each pattern replaced by the fields that match it. Boosts of a field that several match are
    /// multiplied, as in Elasticsearch. The flag says whether a field came from patterns alone, which makes clauses on it lenient.
    ///
    /// # Errors
    /// When these are more fields than a query may have clauses, or the request must stop.
    pub(super) fn expand_fields(
        &self,
        fields: &[(String, f32)],
    ) -> Result<Vec<(String, f32, bool)>, QueryError> {
        let mapping = self.snapshot.mapping();
        let mut expanded: Vec<(String, f32, bool)> = Vec::new();
        let mut places: FxHashMap<String, usize> = FxHashMap::default();
        let mut add = |path: &str, boost: f32, by_pattern: bool| match places.get(path) {
            Some(place) => {
                let (_, known_boost, is_lenient) = &mut expanded[*place];
                *known_boost *= boost;
                *is_lenient &= by_pattern;
            }
            None => {
                places.insert(path.to_owned(), expanded.len());
                expanded.push((path.to_owned(), boost, by_pattern));
            }
        };
        for (name, boost) in fields {
            self.check_cancelled()?;
            if !name.contains('*') {
                add(name, *boost, false);
                continue;
            }
            let pattern = Wildcard::new(name);
            let mut paths = Vec::new();
            for (number, (path, field_type)) in mapping.named_fields().enumerate() {
                if number % FIELDS_AT_ONCE == 0 {
                    self.check_cancelled()?;
                }
                let searchable = !matches!(
                    field_type,
                    FieldType::SparseVector
                        | FieldType::RankFeatures
                        | FieldType::RankFeature { .. }
                        | FieldType::DenseVector(_)
                        | FieldType::SemanticText(_)
                        | FieldType::Binary
                        | FieldType::Completion(_)
                        | FieldType::Object { .. }
                );
                // Of a field and an alias of it, only the field.
                let is_repeated = || {
                    let concrete = mapping.concrete(path);
                    concrete != path && pattern.matches(&concrete, false)
                };
                if searchable && pattern.matches(path, false) && !is_repeated() {
                    paths.push(path);
                }
            }
            paths.sort_unstable();
            paths.into_iter().for_each(|path| add(path, *boost, true));
        }
        if expanded.len() > MAX_CLAUSES {
            return Err(QueryError::TooManyFields { limit: MAX_CLAUSES, found: expanded.len() });
        }
        Ok(expanded)
    }
}

impl query_string::Fields for Compiler<'_> {
    fn expand(&self, fields: &[(String, f32)]) -> Result<Vec<(String, f32, bool)>, QueryError> {
        self.expand_fields(fields)
    }

    fn check(&self) -> Result<(), QueryError> {
        self.check_cancelled()
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
