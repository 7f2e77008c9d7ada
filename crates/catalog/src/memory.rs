//! How much memory requests may use: limits from the cluster settings and the memory of the machine.

use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_runtime::work::Memory;

use super::cluster_settings::ClusterSettings;
use super::memory_limits::{REQUEST, TOTAL, of_machine, parse_limit};

/// Smallest limit, in bytes: with less, an administrator could not even send a request to raise it.
const LEAST: u64 = 1 << 20;

/// The limits on the memory of requests, from the settings.
pub fn limited_by(settings: &ClusterSettings) -> Arc<Memory> {
    let memory = Memory::new(0, 0).watched();
    apply(&memory, settings);
    Arc::new(memory)
}

/// Sets the limits to what the settings say now.
pub fn apply(memory: &Memory, settings: &ClusterSettings) {
    let machine = of_machine();
    let limit = |(name, default): (&str, &str)| {
        let given = settings.text(name);
        let bytes = given.as_deref().and_then(|text| parse_limit(text, machine));
        let bytes = bytes.or_else(|| parse_limit(default, machine)).unwrap_or(u64::MAX);
        usize::try_from(bytes.max(LEAST)).unwrap_or(usize::MAX)
    };
    memory.limit(limit(TOTAL), limit(REQUEST));
}

/// The section `breakers` of the statistics of a node.
pub fn breakers(memory: &Memory) -> Value {
    let figures = memory.figures();
    let breaker = |limit: usize, used: usize, tripped: u64| {
        json!({
            "limit_size_in_bytes": limit,
            "limit_size": sparrow_runtime::work::Size(limit as u64).to_string(),
            "estimated_size_in_bytes": used,
            "estimated_size": sparrow_runtime::work::Size(used as u64).to_string(),
            "overhead": 1.0,
            "tripped": tripped,
        })
    };
    json!({
        "request": breaker(figures.request_limit, figures.used, figures.request_tripped),
        "parent": breaker(figures.total_limit, figures.allocated, figures.total_tripped),
    })
}
