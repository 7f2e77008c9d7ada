//! The memory that the system says the process has.
//!
//! It is more than what is allocated: an allocator keeps blocks that were freed for a while, and JavaScript and the encoder's runtime
//! have memory of their own.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many questions one reading answers. A thread asks for each 64 KiB that it allocates, so a reading is at most
/// 1 MiB old for each thread.
const QUESTIONS: usize = 16;

/// Reads the process's memory now and then.
#[derive(Debug, Default)]
pub(super) struct Resident {
    asked: AtomicUsize,
    last: AtomicUsize,
}

impl Resident {
    /// Bytes that the process has beyond `limit` as its own, not mapped from files; `None` if it has no more than that, or if the
    /// system does not say. What is beyond the limit is read anew each time, since it is given back soon.
    pub(super) fn beyond(&self, limit: usize) -> Option<usize> {
        let turn = self.asked.fetch_add(1, Relaxed);
        if turn.is_multiple_of(QUESTIONS) || self.last.load(Relaxed) > limit {
            self.last.store(anonymous(), Relaxed);
        }
        Some(self.last.load(Relaxed)).filter(|bytes| *bytes > limit)
    }
}

/// Bytes that are resident and not mapped from files, from `/proc/self/statm`; 0 where there is no such file. Does not allocate, since
/// the allocator calls it.
fn anonymous() -> usize {
    #[cfg(target_os = "linux")]
    {
        use std::fs::File;
        use std::os::unix::fs::FileExt as _;
        use std::sync::OnceLock;

        static STATM: OnceLock<Option<File>> = OnceLock::new();
        let Some(file) = STATM.get_or_init(|| File::open("/proc/self/statm").ok()) else { return 0 };
        let mut text = [0; 128];
        let Ok(length) = file.read_at(&mut text, 0) else { return 0 };
        pages_of(&text[..length]).saturating_mul(page_bytes())
    }
    #[cfg(not(target_os = "linux"))]
    0
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_from_files_does_not_count() {
        assert_eq!(pages_of(b"900 500 120 1 0 300 0\n"), 380);
        assert_eq!(pages_of(b""), 0);
    }
}
