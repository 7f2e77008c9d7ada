//! How much memory requests may take: the limits, from the settings of the cluster and the memory of the machine.

use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_types::work::Memory;

use crate::cluster::ClusterSettings;
use crate::indices::Watermark;

/// Limit of all requests together.
pub(crate) const TOTAL: (&str, &str) = ("indices.breaker.total.limit", "50%");
/// Limit of each.
pub(crate) const REQUEST: (&str, &str) = ("indices.breaker.request.limit", "30%");

/// Least that a limit is: a server whose administrator could not ask it anything could not be helped.
const LEAST: u64 = 1 << 20;

/// Memory with the limits that the settings say.
pub(crate) fn limited_by(settings: &ClusterSettings) -> Arc<Memory> {
    let memory = Memory::new(0, 0);
    apply(&memory, settings);
    Arc::new(memory)
}

/// Sets the limits to what the settings say now.
pub(crate) fn apply(memory: &Memory, settings: &ClusterSettings) {
    let machine = of_machine();
    let limit = |(name, default): (&str, &str)| {
        let given = settings.text(name);
        let bytes = given.as_deref().and_then(|text| parse_limit(text, machine));
        let bytes = bytes.or_else(|| parse_limit(default, machine)).unwrap_or(u64::MAX);
        usize::try_from(bytes.max(LEAST)).unwrap_or(usize::MAX)
    };
    memory.limit(limit(TOTAL), limit(REQUEST));
}

/// Reads a share of the memory (`40%`) or a number of bytes (`2gb`).
pub(crate) fn parse_limit(text: &str, machine: u64) -> Option<u64> {
    match Watermark::parse(text, 0)? {
        Watermark::Used { share, .. } => Some((machine as f64 * share) as u64),
        Watermark::Free(bytes) => Some(bytes),
    }
}

/// The section `breakers` of the statistics of a node.
pub(crate) fn breakers(memory: &Memory) -> Value {
    let figures = memory.figures();
    let breaker = |limit: usize, tripped: u64| {
        json!({
            "limit_size_in_bytes": limit,
            "limit_size": sparrow_types::work::Size(limit as u64).to_string(),
            "estimated_size_in_bytes": figures.used,
            "estimated_size": sparrow_types::work::Size(figures.used as u64).to_string(),
            "overhead": 1.0,
            "tripped": tripped,
        })
    };
    json!({
        "request": breaker(figures.request_limit, figures.request_tripped),
        "parent": breaker(figures.total_limit, figures.total_tripped),
    })
}

/// Bytes that this process may use: what its control group allows, or what the machine has.
fn of_machine() -> u64 {
    let number = |path: &str| sparrow_files::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let allowed = groups.into_iter().find_map(number).unwrap_or(u64::MAX);
    let installed = sparrow_files::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("MemTotal:").map(str::to_owned)))
        .and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024);
    // Elsewhere than on Linux nobody says: what a small machine has.
    allowed.min(installed.unwrap_or(8 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shares_or_bytes() {
        assert_eq!(parse_limit("25%", 1 << 30), Some(1 << 28));
        assert_eq!(parse_limit("2gb", 0), Some(2 << 30));
        for wrong in ["101%", "-1%", "x%", "lots", "2"] {
            assert_eq!(parse_limit(wrong, 1), None, "{wrong}");
        }
        assert!(of_machine() > 1 << 28);
    }
}
