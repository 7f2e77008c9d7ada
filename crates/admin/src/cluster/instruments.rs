//! Figures of the whole process for `GET /metrics`; called by the HTTP layer, not a route of its own.
//!
//! Nothing is counted only for this: the figures that the statistics of indices, lanes and deployments keep are added up when they are
//! requested.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::lanes::LaneStats;
use crate::stats;
use sparrow_catalog::{BackgroundTask, Node};
use sparrow_models::DeploymentTotals;
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply, Request};

/// Counters of indices, by their section and name in `_stats`; they never decrease.
const COUNTED: &str = "indexing.index_total indexing.index_time_in_millis indexing.index_failed indexing.delete_total \
                       get.total get.time_in_millis search.query_total search.query_time_in_millis search.query_failure \
                       search.fetch_total search.fetch_time_in_millis search.scroll_total merges.total \
                       merges.total_time_in_millis merges.total_docs merges.total_size_in_bytes refresh.total \
                       refresh.total_time_in_millis flush.total flush.total_time_in_millis bulk.total_operations \
                       bulk.total_time_in_millis bulk.total_size_in_bytes";

/// Gauges of indices, by their section and name in `_stats`; they may increase and decrease.
const MEASURED: &str = "docs.count docs.deleted store.size_in_bytes segments.count segments.version_map_memory_in_bytes \
                        translog.operations translog.size_in_bytes search.open_contexts search.query_current \
                        merges.current merges.current_size_in_bytes dense_vector.value_count sparse_vector.value_count";

/// The counters of deleted or reopened indices and of stopped deployments, which are added to those that exist so that sums never decrease.
/// Counts made after the last request for statistics and before a deletion are lost.
#[derive(Debug, Default)]
pub struct Ledger {
    indices: Mutex<Sums>,
    deployments: Mutex<Sums>,
}

/// The last known counters by name of their owner, and the sums of the owners that are gone.
#[derive(Debug, Default)]
struct Sums {
    seen: HashMap<String, Vec<u64>>,
    gone: Vec<u64>,
}

impl Sums {
    /// Takes the current counters of all owners; the sums over existing and former ones.
    fn add_up(&mut self, now: HashMap<String, Vec<u64>>, width: usize) -> Vec<u64> {
        self.gone.resize(width, 0);
        for (name, before) in &self.seen {
            // A counter that is less than before began anew.
            let lives =
                now.get(name).is_some_and(|now| now.iter().zip(before).all(|(now, then)| now >= then));
            if !lives {
                self.gone.iter_mut().zip(before).for_each(|(sum, count)| *sum += count);
            }
        }
        let mut sums = self.gone.clone();
        for counts in now.values() {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        self.seen = now;
        sums
    }
}

/// All figures of the node, as one JSON object; `snapshots` is the section about snapshots.
pub fn instruments(
    node: &Node,
    lanes: &[LaneStats],
    ledger: &Ledger,
    snapshots: &Value,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let (indices, counts) = indices(node, ledger, request)?;
    let memory = node.memory.figures();
    Ok(Reply::ok(&json!({
        "indices": indices,
        "counts": counts,
        "background": background(node),
        "snapshots": snapshots,
        "lanes": lanes,
        "encoder": encoder(node, ledger),
        "memory": {
            "used": memory.used, "total_limit": memory.total_limit, "request_limit": memory.request_limit,
            "total_tripped": memory.total_tripped, "request_tripped": memory.request_tripped,
        },
        "filter_cache": node.indices.filter_cache_stats(),
    })))
}

/// For each kind of background task: how often it failed, and for how many indices it fails at present.
fn background(node: &Node) -> Value {
    let names = node.indices.names();
    let failing: Vec<BackgroundTask> = names.indices.values().flat_map(|handle| handle.failing()).collect();
    let tasks = BackgroundTask::ALL.map(|task| {
        let now = failing.iter().filter(|other| **other == task).count();
        json!({"task": task.name(), "failures": node.indices.background_failures(task), "failing": now})
    });
    json!(tasks)
}

/// Two JSON objects over all open indices: their present contents (documents, bytes, segments, refresh lag), and the counters of each kind
/// of operation since the start.
fn indices(node: &Node, ledger: &Ledger, request: &Request) -> Result<(Value, Value), EngineError> {
    let names = node.indices.names();
    let mut measured: Map<String, Value> =
        MEASURED.split(' ').map(|name| (name.to_owned(), 0.into())).collect();
    let mut counted = HashMap::new();
    let mut lag = 0.0_f64;
    let (mut open, mut refusing, mut flooded) = (0_usize, 0_usize, 0_usize);
    for handle in names.indices.values().filter(|handle| !handle.is_closed()) {
        let Some(figures) = handle.unless_gone(request, stats::sections(handle))? else { continue };
        open += 1;
        refusing += usize::from(handle.refuses_writes());
        flooded += usize::from(handle.is_flooded());
        if handle.shard.is_dirty() {
            lag = lag.max(handle.since_refresh().as_secs_f64());
        }
        let of = |place: &str| {
            let (section, name) = place.split_once('.')?;
            figures.get(section)?[name].as_u64()
        };
        let count = |place| of(place).unwrap_or_default();
        counted.insert(handle.uuid.clone(), COUNTED.split(' ').map(count).collect());
        for (place, sum) in &mut measured {
            *sum = (sum.as_u64().unwrap_or_default() + count(place)).into();
        }
    }
    measured.insert("open".into(), open.into());
    measured.insert("refusing_writes".into(), refusing.into());
    measured.insert("flooded".into(), flooded.into());
    measured.insert("closed".into(), (names.indices.len() - open).into());
    measured.insert("broken".into(), names.broken.len().into());
    measured.insert("refresh_lag_seconds".into(), lag.into());
    let sums = ledger.indices.lock().add_up(counted, COUNTED.split(' ').count());
    let counts: Map<String, Value> =
        COUNTED.split(' ').zip(sums).map(|(name, sum)| (name.to_owned(), sum.into())).collect();
    Ok((measured.into(), counts.into()))
}

/// Figures of all deployments together, as users choose the ids of deployments and may create any number.
fn encoder(node: &Node, ledger: &Ledger) -> Value {
    let all = node.models.totals();
    let counted = |one: &DeploymentTotals| {
        let stats = &one.stats;
        vec![
            stats.inference_count,
            stats.cache_hit_count,
            stats.encoded_tokens,
            stats.batches,
            (stats.busy.as_secs_f64() * 1e6) as u64,
            stats.error_count,
            stats.rejected_execution_count,
            stats.timeout_count,
            stats.truncated_texts,
        ]
    };
    let now = all.iter().map(|one| (one.name.clone(), counted(one))).collect();
    let sums = ledger.deployments.lock().add_up(now, 9);
    let sum = |of: fn(&DeploymentTotals) -> u64| all.iter().map(of).sum::<u64>();
    json!({
        "deployments": all.len(),
        "allocations": sum(|one| one.stats.allocations as u64),
        "pending": sum(|one| one.stats.pending),
        "queue_capacity": sum(|one| one.stats.queue_capacity as u64),
        "cache_bytes": sum(|one| one.stats.cache_used_bytes as u64),
        "model_bytes": node.models.loaded_bytes(),
        "texts": sums[0],
        "cache_hits": sums[1],
        "tokens": sums[2],
        "batches": sums[3],
        "busy_seconds": sums[4] as f64 / 1e6,
        "errors": sums[5],
        "rejected": sums[6],
        "timeouts": sums[7],
        "truncated_texts": sums[8],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_never_fall_though_what_was_counted_goes_or_begins_anew() {
        let mut sums = Sums::default();
        let now = |all: &[(&str, u64)]| {
            all.iter().map(|(name, count)| ((*name).to_owned(), vec![*count])).collect::<HashMap<_, _>>()
        };
        assert_eq!(sums.add_up(now(&[("a", 5), ("b", 7)]), 1), [12]);
        assert_eq!(sums.add_up(now(&[("a", 6)]), 1), [13]);
        assert_eq!(sums.add_up(now(&[("a", 2), ("c", 1)]), 1), [16]);
        assert_eq!(sums.add_up(now(&[]), 1), [16]);
    }

    #[test]
    fn names_are_figures_of_the_statistics_and_end_in_their_unit() {
        let sections = stats::no_figures().unwrap();
        let names: Vec<&str> = COUNTED.split(' ').chain(MEASURED.split(' ')).collect();
        let distinct: std::collections::BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len(), "each name is there once");
        for place in names {
            let (section, name) = place.split_once('.').unwrap();
            assert!(sections[section][name].is_u64(), "[{place}] is no figure of `_stats`");
            for (what, unit) in [("time", "_in_millis"), ("size", "_in_bytes"), ("memory", "_in_bytes")] {
                assert!(!name.contains(what) || name.ends_with(unit), "[{place}] does not end in [{unit}]");
            }
        }
    }
}
