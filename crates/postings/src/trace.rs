//! Records which bytes of a field searches read, to measure what memory access alone costs.
//!
//! Compiled in only with the feature `trace`, which slows searches down. Not traced are the few weights that
//! do not fit their residual, and what is not part of the field: sums and bounds.

use std::ops::Range;

/// Whether this build records reads (feature `trace`).
pub(crate) const ON: bool = cfg!(feature = "trace");

/// Size of a cache line, in bytes.
#[cfg(feature = "trace")]
const LINE: usize = 64;

#[cfg(feature = "trace")]
thread_local! {
    static LINES: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Records a read of the bytes `range` of `bytes`, if tracing is compiled in.
#[inline(always)]
pub(crate) fn touch(bytes: &[u8], range: Range<usize>) {
    #[cfg(feature = "trace")]
    if range.start < range.end.min(bytes.len()) {
        let at = |place: usize| (bytes.as_ptr() as usize + place) / LINE;
        let (first, last) = (at(range.start), at(range.end.min(bytes.len()) - 1));
        LINES.with_borrow_mut(|lines| lines.extend(first..=last));
    }
    #[cfg(not(feature = "trace"))]
    let _ = (bytes, range);
}

/// The 64-byte cache lines of the field `bytes` that this thread has read since the previous call: numbers
/// counted from the field's first line, in order of reading, without repeats.
#[cfg(feature = "trace")]
pub fn take_lines(bytes: &[u8]) -> Vec<u32> {
    let base = bytes.as_ptr() as usize / LINE;
    let end = (bytes.as_ptr() as usize + bytes.len()).div_ceil(LINE);
    let mut seen = rustc_hash::FxHashSet::default();
    let mut lines = LINES.take();
    lines.retain(|line| (base..end).contains(line) && seen.insert(*line));
    lines.into_iter().map(|line| (line - base) as u32).collect()
}
