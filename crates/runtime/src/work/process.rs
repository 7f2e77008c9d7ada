//! How much memory the process has: what it has allocated, and what the system says.
//!
//! The latter is more: an allocator keeps blocks that were freed for a while, and JavaScript and the encoder's runtime have memory of
//! their own.

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Bytes that the process has allocated and not freed, without what threads have not settled yet.
pub(super) static LIVE: AtomicIsize = AtomicIsize::new(0);

/// Bytes that the process has allocated through [`Counted`](super::Counted) and not freed, accurate to 64 KiB for each thread.
pub(super) fn live() -> usize {
    usize::try_from(LIVE.load(Relaxed)).unwrap_or(0)
}

/// Bytes that may be allocated before the memory is read anew: 1 MiB.
const READ_EVERY: usize = 1 << 20;

/// Reads the process's memory now and then.
#[derive(Debug)]
pub(super) struct Resident {
    /// `/proc/self/statm`, held open: under load there may be no descriptor for it.
    #[cfg(target_os = "linux")]
    statm: Option<std::fs::File>,
    /// Bytes that were to be allocated so far.
    asked: AtomicUsize,
    last: AtomicUsize,
}

impl Resident {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            statm: std::fs::File::open("/proc/self/statm").ok(),
            asked: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
        }
    }

    /// Bytes that the process has as its own, not mapped from files, read anew; 0 if the system does not say.
    pub(super) fn now(&self) -> usize {
        let bytes = self.anonymous();
        self.last.store(bytes, Relaxed);
        bytes
    }

    /// Does not allocate, since the allocator calls it.
    fn anonymous(&self) -> usize {
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::fs::FileExt as _;

            let mut text = [0; 128];
            let length = self.statm.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
            length.map_or(0, |length| pages_of(&text[..length]).saturating_mul(page_bytes()))
        }
        #[cfg(not(target_os = "linux"))]
        0
    }

    /// Bytes that the process has as its own, not mapped from files, with `more`, if that is more than `limit`; `None` as well if the
    /// system does not say. What is beyond the limit is read anew each time, since it is given back soon.
    pub(super) fn beyond(&self, limit: usize, more: usize) -> Option<usize> {
        let before = self.asked.fetch_add(more, Relaxed);
        let is_old = before % READ_EVERY + more >= READ_EVERY;
        let limit = limit.saturating_sub(more);
        if is_old || self.last.load(Relaxed) > limit {
            self.now();
        }
        let last = self.last.load(Relaxed);
        (last > limit).then(|| last.saturating_add(more))
    }
}

/// Pages of a line of `statm` (all, resident, shared, …) that are resident and not shared.
#[cfg(target_os = "linux")]
fn pages_of(line: &[u8]) -> usize {
    let mut numbers = line.split(u8::is_ascii_whitespace).map(|word| {
        word.iter().fold(0_usize, |sum, digit| {
            sum.saturating_mul(10).saturating_add(usize::from(digit.wrapping_sub(b'0')))
        })
    });
    let (resident, shared) = (numbers.nth(1).unwrap_or(0), numbers.next().unwrap_or(0));
    resident.saturating_sub(shared)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library does not say how large a page is")]
fn page_bytes() -> usize {
    // SAFETY: it reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_from_files_does_not_count() {
        assert_eq!(pages_of(b"900 500 120 1 0 300 0\n"), 380);
        assert_eq!(pages_of(b""), 0);
    }
}
