//! The settings for the memory limits of requests, how they are written, and the memory of the machine.

use super::watermark::Watermark;

/// Setting for the limit on what the whole process allocates, and its default.
pub const TOTAL: (&str, &str) = ("indices.breaker.total.limit", "70%");
/// Setting for the memory limit of a single request, and its default.
pub const REQUEST: (&str, &str) = ("indices.breaker.request.limit", "30%");

/// Reads a share of the memory (`40%`) or a size (`2gb`) as a number of bytes; `machine` is the memory in bytes.
pub fn parse_limit(text: &str, machine: u64) -> Option<u64> {
    match Watermark::parse(text, 0)? {
        Watermark::Used { share, .. } => Some((machine as f64 * share) as u64),
        Watermark::Free(bytes) => Some(bytes),
    }
}

/// Bytes of memory that this process may use: the limit of its control group or the machine's memory, whichever is less; 8 GiB if
/// unknown.
pub fn of_machine() -> u64 {
    let number = |path: &str| sparrow_file_system::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let allowed = groups.into_iter().find_map(number).unwrap_or(u64::MAX);
    let installed = sparrow_file_system::read_to_string("/proc/meminfo")
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
