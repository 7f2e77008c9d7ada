//! Values that queries compute once per snapshot and reuse.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tantivy::schema::Field;

use crate::query::terms::term_runs::TermRuns;
use sparrow_lexical::TextField;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::statistics::FieldStatistics;

/// Cached values over all segments of one snapshot. They depend on the segments only, not on the mapping.
#[derive(Default)]
pub(crate) struct SnapshotCache {
    statistics: Mutex<FxHashMap<String, FieldStatistics>>,
    text_fields: Mutex<FxHashMap<Field, Option<Arc<TextField>>>>,
    distinct_tokens: Mutex<FxHashMap<Field, usize>>,
    ignores: OnceLock<bool>,
    term_runs: TermRuns,
}

impl SnapshotCache {
    /// BM25 statistics of the field at `path`.
    pub(super) fn statistics(
        &self,
        path: &str,
        read: impl FnOnce() -> Result<FieldStatistics, QueryError>,
    ) -> Result<FieldStatistics, QueryError> {
        if let Some(known) = self.statistics.lock().get(path) {
            return Ok(*known);
        }
        // Read without the lock: two searches may do it at once, and find the same.
        let statistics = read()?;
        self.statistics.lock().insert(path.to_owned(), statistics);
        Ok(statistics)
    }

    /// A text field opened for searches that read its posting lists directly; `None` if its format does not
    /// allow that.
    pub(super) fn text_field(
        &self,
        field: Field,
        open: impl FnOnce() -> Result<Option<TextField>, QueryError>,
    ) -> Result<Option<Arc<TextField>>, QueryError> {
        if let Some(known) = self.text_fields.lock().get(&field) {
            return Ok(known.clone());
        }
        let opened = open()?.map(Arc::new);
        self.text_fields.lock().insert(field, opened.clone());
        Ok(opened)
    }

    /// Terms of sparse tokens in each segment, as looked up by earlier queries.
    pub(super) fn term_runs(&self) -> &TermRuns {
        &self.term_runs
    }

    /// Whether any document has a value that is ignored (`_ignored`).
    pub(super) fn ignores(
        &self,
        read: impl FnOnce() -> Result<bool, QueryError>,
    ) -> Result<bool, QueryError> {
        if let Some(known) = self.ignores.get() {
            return Ok(*known);
        }
        let ignores = read()?;
        Ok(*self.ignores.get_or_init(|| ignores))
    }

    /// Number of distinct tokens of a sparse field.
    pub(super) fn distinct_tokens(&self, field: Field, count: impl FnOnce() -> usize) -> usize {
        if let Some(known) = self.distinct_tokens.lock().get(&field) {
            return *known;
        }
        let distinct = count();
        self.distinct_tokens.lock().insert(field, distinct);
        distinct
    }
}
