//! The statistics of one index, in the sections of Elasticsearch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;
use serde_json::{Map, Value};

use sparrow_catalog::IndexHandle;
use sparrow_catalog::search_groups::SearchGroup;
use sparrow_request::error::EngineError;

/// Names of metrics in paths. Each shows the section of its name, but for `merge`, which shows `merges`.
pub(super) const METRICS: &str = "docs shard_stats store indexing get search merge refresh flush warmer query_cache fielddata \
                                  completion segments translog request_cache recovery bulk mappings dense_vector sparse_vector";

/// Declares structs of figures: counts, unless a type is given.
macro_rules! figures {
    ($($name:ident { $($figure:ident $(: $type:ty)?),* $(,)? })*) => {
        $(#[derive(Default, Serialize)]
        struct $name {
            $($figure: figures!(@type $($type)?),)*
        })*
    };
    (@type) => { u64 };
    (@type $type:ty) => { $type };
}

// What does not exist here (warmers, a cache of requests) stays zero.
figures! {
    Sections {
        docs: Docs, shard_stats: ShardStats, store: Store, indexing: Indexing, get: Get, search: Search, merges: Merges,
        refresh: Refresh, flush: Flush, warmer: Warmer, query_cache: QueryCache, fielddata: FieldData,
        completion: Completion, segments: Segments, translog: Translog, request_cache: RequestCache, recovery: Recovery,
        bulk: Bulk, mappings: Mappings, dense_vector: Vectors, sparse_vector: Vectors,
    }
    Docs { count, deleted, total_size_in_bytes }
    ShardStats { total_count }
    Store { size_in_bytes, total_data_set_size_in_bytes, reserved_in_bytes }
    Indexing {
        index_total, index_time_in_millis, index_current, index_failed, index_failed_due_to_version_conflict,
        delete_total, delete_time_in_millis, delete_current, noop_update_total, is_throttled: bool,
        throttle_time_in_millis, write_load: f64,
    }
    Get {
        total, time_in_millis, exists_total, exists_time_in_millis, missing_total, missing_time_in_millis, current,
    }
    Search {
        open_contexts, query_total, query_time_in_millis, query_current, query_failure, fetch_total,
        fetch_time_in_millis, fetch_current, fetch_failure, scroll_total, scroll_time_in_millis, scroll_current,
        suggest_total, suggest_time_in_millis, suggest_current,
    }
    Merges {
        current, current_docs, current_size_in_bytes, total, total_time_in_millis, total_docs, total_size_in_bytes,
        total_stopped_time_in_millis, total_throttled_time_in_millis, total_auto_throttle_in_bytes,
    }
    Refresh { total, total_time_in_millis, external_total, external_total_time_in_millis, listeners }
    Flush { total, periodic, total_time_in_millis, total_time_excluding_waiting_on_lock_in_millis }
    Warmer { current, total, total_time_in_millis }
    QueryCache { memory_size_in_bytes, total_count, hit_count, miss_count, cache_size, cache_count, evictions }
    FieldData { memory_size_in_bytes, evictions, global_ordinals: GlobalOrdinals }
    GlobalOrdinals { build_time_in_millis }
    Completion { size_in_bytes }
    Segments {
        count, memory_in_bytes, terms_memory_in_bytes, stored_fields_memory_in_bytes, term_vectors_memory_in_bytes,
        norms_memory_in_bytes, points_memory_in_bytes, doc_values_memory_in_bytes, index_writer_memory_in_bytes,
        version_map_memory_in_bytes, fixed_bit_set_memory_in_bytes, max_unsafe_auto_id_timestamp: i64,
        file_sizes: Map<String, Value>,
    }
    Translog {
        operations, size_in_bytes, uncommitted_operations, uncommitted_size_in_bytes, earliest_last_modified_age,
    }
    RequestCache { memory_size_in_bytes, evictions, hit_count, miss_count }
    Recovery { current_as_source, current_as_target, throttle_time_in_millis }
    Bulk { total_operations, total_time_in_millis, total_size_in_bytes, avg_time_in_millis, avg_size_in_bytes }
    Mappings {
        total_count, total_estimated_overhead_in_bytes, total_segments, total_segment_fields,
        average_fields_per_segment,
    }
    Vectors { value_count }
}

impl Sections {
    fn by_name(mut self) -> Result<Map<String, Value>, EngineError> {
        self.segments.max_unsafe_auto_id_timestamp = -1;
        match serde_json::to_value(self) {
            Ok(Value::Object(sections)) => Ok(sections),
            Ok(other) => Err(EngineError::internal(format!("statistics are not an object: {other}"))),
            Err(error) => Err(EngineError::internal(format!("statistics are not JSON: {error}"))),
        }
    }
}

/// The sections of a node that has no indices to show: all figures are 0.
///
/// # Errors
/// If they cannot be serialised as JSON.
pub(crate) fn no_figures() -> Result<Map<String, Value>, EngineError> {
    let mut sections = Sections::default().by_name()?;
    // No index, no load: a whole number, unlike the loads that are measured.
    sections["indexing"]["write_load"] = 0.into();
    Ok(sections)
}

/// The figures of segments where none is open.
///
/// # Errors
/// If they cannot be serialised as JSON.
pub(super) fn no_segments() -> Result<Value, EngineError> {
    Ok(Sections::default().by_name()?["segments"].take())
}

/// The sections of an index.
///
/// # Errors
/// When its directory or a segment cannot be read, or the sections cannot be written as JSON.
pub fn sections(handle: &IndexHandle) -> Result<Map<String, Value>, EngineError> {
    sections_and_columns(handle).map(|(sections, _)| sections)
}

/// The size in bytes of what is kept of texts for each field, by its path.
#[derive(Default)]
pub(super) struct TextColumns {
    pub field_data: BTreeMap<String, u64>,
    pub completions: BTreeMap<String, u64>,
}

/// As [`sections`], and the sizes of text columns, of which the sections have the sums.
pub(super) fn sections_and_columns(
    handle: &IndexHandle,
) -> Result<(Map<String, Value>, TextColumns), EngineError> {
    let snapshot = handle.snapshot();
    let columns = TextColumns {
        field_data: snapshot.text_column_bytes(super::has_field_data)?,
        completions: snapshot.text_column_bytes(super::is_completion)?,
    };
    let index = handle.index();
    let stats = index.stats()?;
    let segments = index.segment_stats()?;
    let merges = index.merge_stats();
    let counters = &handle.counters;
    let load = |counter: &AtomicU64| counter.load(Relaxed);
    let millis = |nanos: u64| nanos / 1_000_000;
    let alive = handle.opened.at.elapsed();
    let busy = counters.bulk.millis() as f64;
    let uncommitted = handle.shard.uncommitted();
    let log = handle.shard.log_bytes();
    let (exists, missing) = (&counters.get_exists, &counters.get_missing);
    let bulks = counters.bulk.count();
    let share = |total: u64| total.checked_div(bulks).unwrap_or_default();
    let fields = handle.mapping().field_count() as u64;
    let segment_count = segments.len() as u64;
    let sections = Sections {
        docs: Docs {
            count: stats.docs,
            deleted: stats.deleted,
            total_size_in_bytes: segments.iter().map(|one| one.bytes).sum(),
        },
        shard_stats: ShardStats { total_count: 1 },
        store: Store {
            size_in_bytes: stats.bytes,
            total_data_set_size_in_bytes: stats.bytes,
            ..Store::default()
        },
        indexing: Indexing {
            index_total: counters.index.count(),
            index_time_in_millis: counters.index.millis(),
            index_current: counters.index.current(),
            index_failed: load(&counters.index_failed),
            index_failed_due_to_version_conflict: load(&counters.conflicts),
            delete_total: counters.delete.count(),
            delete_time_in_millis: counters.delete.millis(),
            delete_current: counters.delete.current(),
            noop_update_total: load(&counters.noop),
            write_load: busy / (alive.as_millis().max(1) as f64),
            ..Indexing::default()
        },
        get: Get {
            total: exists.count() + missing.count(),
            time_in_millis: exists.millis() + missing.millis(),
            exists_total: exists.count(),
            exists_time_in_millis: exists.millis(),
            missing_total: missing.count(),
            missing_time_in_millis: missing.millis(),
            current: exists.current() + missing.current(),
        },
        search: Search {
            open_contexts: load(&counters.open_contexts),
            query_total: counters.query.count(),
            query_time_in_millis: counters.query.millis(),
            query_current: counters.query.current(),
            query_failure: load(&counters.query_failure),
            fetch_total: counters.fetch.count(),
            fetch_time_in_millis: counters.fetch.millis(),
            fetch_current: counters.fetch.current(),
            fetch_failure: load(&counters.fetch_failure),
            scroll_total: counters.scroll.count(),
            scroll_time_in_millis: counters.scroll.millis(),
            scroll_current: counters.scroll.current(),
            ..Search::default()
        },
        merges: Merges {
            current: merges.current,
            current_docs: merges.current_docs,
            current_size_in_bytes: merges.current_bytes,
            total: merges.total,
            total_time_in_millis: millis(merges.nanos),
            total_docs: merges.docs,
            total_size_in_bytes: merges.bytes,
            ..Merges::default()
        },
        refresh: Refresh {
            total: counters.refresh.count(),
            total_time_in_millis: counters.refresh.millis(),
            external_total: counters.refresh.count(),
            external_total_time_in_millis: counters.refresh.millis(),
            ..Refresh::default()
        },
        flush: Flush {
            total: counters.flush.count(),
            periodic: load(&counters.periodic_flush),
            total_time_in_millis: counters.flush.millis(),
            total_time_excluding_waiting_on_lock_in_millis: counters.flush.millis(),
        },
        fielddata: FieldData {
            memory_size_in_bytes: columns.field_data.values().sum(),
            ..FieldData::default()
        },
        completion: Completion { size_in_bytes: columns.completions.values().sum() },
        segments: Segments {
            count: segment_count,
            version_map_memory_in_bytes: handle.shard.unrefreshed_bytes() as u64,
            ..Segments::default()
        },
        translog: Translog {
            operations: uncommitted,
            size_in_bytes: log,
            uncommitted_operations: uncommitted,
            uncommitted_size_in_bytes: log,
            earliest_last_modified_age: handle.since_flush().as_millis() as u64,
        },
        bulk: Bulk {
            total_operations: bulks,
            total_time_in_millis: counters.bulk.millis(),
            total_size_in_bytes: load(&counters.bulk_bytes),
            avg_time_in_millis: share(counters.bulk.millis()),
            avg_size_in_bytes: share(load(&counters.bulk_bytes)),
        },
        mappings: Mappings {
            total_count: fields,
            total_segments: segment_count,
            total_segment_fields: fields * segment_count,
            average_fields_per_segment: if segments.is_empty() { 0 } else { fields },
            ..Mappings::default()
        },
        dense_vector: Vectors { value_count: segments.iter().map(|one| one.dense_values).sum() },
        sparse_vector: Vectors { value_count: segments.iter().map(|one| one.sparse_values).sum() },
        ..Sections::default()
    };
    Ok((sections.by_name()?, columns))
}

/// What the searches of one group did, with the figures that those of all searches have.
///
/// # Errors
/// If it cannot be serialised as JSON.
pub(super) fn of_group(group: &SearchGroup) -> Result<Value, EngineError> {
    let figures = Search {
        query_total: group.query.count(),
        query_time_in_millis: group.query.millis(),
        query_current: group.query.current(),
        query_failure: group.query_failure.load(Relaxed),
        fetch_total: group.fetch.count(),
        fetch_time_in_millis: group.fetch.millis(),
        fetch_current: group.fetch.current(),
        ..Search::default()
    };
    let mut figures = serde_json::to_value(figures)
        .map_err(|error| EngineError::internal(format!("statistics are not JSON: {error}")))?;
    // Contexts are counted for all searches together.
    if let Some(members) = figures.as_object_mut() {
        members.remove("open_contexts");
    }
    Ok(figures)
}

/// Adds the statistics of another index: counts are added up, ages and timestamps become the maximum, averages are
/// computed anew.
pub fn add(total: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        let Some(sum) = total.get_mut(key) else {
            total.insert(key.clone(), value.clone());
            continue;
        };
        match (sum, value) {
            (Value::Object(sum), Value::Object(value)) => add(sum, value),
            (sum @ Value::Number(_), Value::Number(value)) => {
                let largest =
                    matches!(key.as_str(), "max_unsafe_auto_id_timestamp" | "earliest_last_modified_age");
                *sum = match (sum.as_i64(), value.as_i64()) {
                    (Some(a), Some(b)) if largest => a.max(b).into(),
                    (Some(a), Some(b)) => (a + b).into(),
                    _ => (sum.as_f64().unwrap_or_default() + value.as_f64().unwrap_or_default()).into(),
                };
            }
            _ => {}
        }
    }
    let figure = |total: &Map<String, Value>, name: &str| total.get(name).and_then(Value::as_u64);
    if let Some(count) = figure(total, "total_operations") {
        for (average, sum) in
            [("avg_time_in_millis", "total_time_in_millis"), ("avg_size_in_bytes", "total_size_in_bytes")]
        {
            let sum = figure(total, sum).unwrap_or_default();
            total.insert(average.to_owned(), sum.checked_div(count).unwrap_or_default().into());
        }
    }
    if let Some(segments) = figure(total, "total_segments") {
        let fields = figure(total, "total_segment_fields").unwrap_or_default();
        total.insert(
            "average_fields_per_segment".to_owned(),
            fields.checked_div(segments).unwrap_or_default().into(),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_add_up_and_averages_are_made_anew() {
        let one = json!({
            "bulk": {"total_operations": 1, "total_time_in_millis": 10, "avg_time_in_millis": 10, "total_size_in_bytes": 5, "avg_size_in_bytes": 5},
            "segments": {"max_unsafe_auto_id_timestamp": -1, "count": 2}, "indexing": {"write_load": 0.5},
        });
        let two = json!({
            "bulk": {"total_operations": 3, "total_time_in_millis": 2, "avg_time_in_millis": 0, "total_size_in_bytes": 3, "avg_size_in_bytes": 1},
            "segments": {"max_unsafe_auto_id_timestamp": -1, "count": 1}, "indexing": {"write_load": 0.25},
        });
        let mut total = one.as_object().unwrap().clone();
        add(&mut total, two.as_object().unwrap());
        assert_eq!(
            Value::Object(total),
            json!({
                "bulk": {"total_operations": 4, "total_time_in_millis": 12, "avg_time_in_millis": 3, "total_size_in_bytes": 8, "avg_size_in_bytes": 2},
                "segments": {"max_unsafe_auto_id_timestamp": -1, "count": 3}, "indexing": {"write_load": 0.75},
            })
        );
    }
}
