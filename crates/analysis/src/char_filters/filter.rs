//! What a char filter is: a change of a text that keeps track of the offsets before.

use std::fmt::Debug;

/// A char filter: changes a text and records how offsets in it map to the text before.
pub(crate) trait CharFilter: Debug + Send + Sync {
    /// Changes a text. May stop early once `is_stopped` returns true; the result must then not be used.
    fn filter(&self, text: &str, is_stopped: &dyn Fn() -> bool) -> Filtered;

    /// Whether the filter works on single characters and so is allowed in a normalizer.
    fn normalizes(&self) -> bool {
        false
    }
}

/// A changed text, with the mapping of its offsets.
#[derive(Debug)]
pub(crate) struct Filtered {
    pub text: String,
    pub offsets: OffsetMap,
}

/// Mapping of byte offsets from a changed text to the text before the change.
#[derive(Debug, Default)]
pub(crate) struct OffsetMap(Vec<Anchor>);

#[derive(Debug, Clone, Copy)]
struct Anchor {
    /// Byte offset in the changed text from which this anchor applies.
    at: usize,
    /// Corresponding byte offset in the text before.
    before: usize,
    /// Whether later offsets, up to the next anchor, keep their distance to this one; otherwise they all map to
    /// `before`.
    moves: bool,
}

impl OffsetMap {
    /// Byte offset before the change that corresponds to `offset` after it.
    pub fn correct(&self, offset: usize) -> usize {
        match self.0.partition_point(|anchor| anchor.at <= offset).checked_sub(1).map(|at| self.0[at]) {
            None => offset,
            Some(Anchor { at, before, moves: true }) => before + (offset - at),
            Some(Anchor { before, .. }) => before,
        }
    }

    /// Records that the bytes of `before` became `length` bytes at `at`; `last` is the length of the last character
    /// of `before`. Must be called in the order of the text.
    pub(super) fn replaced(&mut self, at: usize, length: usize, before: std::ops::Range<usize>, last: usize) {
        if length == before.len() {
            return;
        }
        if length > before.len() {
            // The bytes beyond the old length map to the last character of the replaced text.
            self.0.push(Anchor { at: at + before.len(), before: before.end - last, moves: false });
        }
        self.0.push(Anchor { at: at + length, before: before.end, moves: true });
    }
}

/// Length in bytes of the last character of `text[range]`, 0 for an empty range.
pub(super) fn last_len(text: &str, range: &std::ops::Range<usize>) -> usize {
    text[range.clone()].chars().next_back().map_or(0, char::len_utf8)
}
