//! Which bytes of a field searches read, for measuring what the memory alone costs.
//!
//! Only with the feature `trace`, which slows searches down; without it nothing is left of it. Not traced are the few
//! weights that do not fit their residual, and what is not part of the field: sums and bounds.

use std::ops::Range;

/// Whether reads are recorded.
pub(crate) const ON: bool = cfg!(feature = "trace");

/// Bytes that are read at once.
#[cfg(feature = "trace")]
const LINE: usize = 64;

#[cfg(feature = "trace")]
thread_local! {
    static LINES: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Records that bytes are read.
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

/// The lines of 64 bytes that this thread read of `bytes`, a field's, since it was asked last: numbers of lines from
/// the first on, in the order of reading, repeated ones left out.
#[cfg(feature = "trace")]
pub fn take_lines(bytes: &[u8]) -> Vec<u32> {
    let base = bytes.as_ptr() as usize / LINE;
    let end = (bytes.as_ptr() as usize + bytes.len()).div_ceil(LINE);
    let mut seen = rustc_hash::FxHashSet::default();
    let mut lines = LINES.take();
    lines.retain(|line| (base..end).contains(line) && seen.insert(*line));
    lines.into_iter().map(|line| (line - base) as u32).collect()
}
