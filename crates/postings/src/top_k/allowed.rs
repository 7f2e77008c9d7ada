//! Which documents a request allows: those that are live and pass its filter.

use sparrow_runtime::DocId;

use super::TopKRequest;

/// One bit per document for 64 documents, as an integer or as the little-endian bytes of a bitmap.
pub(super) trait Word: Copy {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl Word for u64 {
    fn of(bits: u64) -> Self {
        bits
    }

    fn bits(self) -> u64 {
        self
    }
}

impl Word for [u8; 8] {
    fn of(bits: u64) -> Self {
        bits.to_le_bytes()
    }

    fn bits(self) -> u64 {
        u64::from_le_bytes(self)
    }
}

impl<'a> TopKRequest<'a> {
    /// The same request for the part of a segment that starts at document `first`, a multiple of 64. `tie`
    /// still takes document numbers of the segment.
    pub(super) fn from(&self, first: DocId) -> Self {
        let of = |bits: Option<&'a [u64]>| bits.map(|bits| bits.get(first as usize / 64..).unwrap_or(&[]));
        Self { live: of(self.live), filter: of(self.filter), ..*self }
    }

    /// Bits of the documents of a 64-bit word that are live and pass the filter.
    pub(super) fn allowed_word(&self, word: usize) -> u64 {
        let of = |bits: Option<&[u64]>| bits.map_or(u64::MAX, |bits| bits.get(word).copied().unwrap_or(0));
        of(self.live) & of(self.filter)
    }

    /// Writes, from word `start` on, the bits of the documents below `docs` that are live and pass the
    /// filter; all others are 0.
    pub(super) fn write_allowed<W: Word>(&self, docs: usize, start: usize, words: &mut [W]) {
        let inside = docs.div_ceil(64).saturating_sub(start).min(words.len());
        let (words, behind) = words.split_at_mut(inside);
        behind.fill(W::of(0));
        let from_start = |bits: &'a [u64]| bits.get(start..).unwrap_or(&[]);
        let mut given = [self.filter, self.live].into_iter().flatten().map(from_start);
        match given.next() {
            None => words.fill(W::of(u64::MAX)),
            Some(bits) => {
                words.iter_mut().zip(bits).for_each(|(word, bits)| *word = W::of(*bits));
                words[bits.len().min(inside)..].fill(W::of(0));
            }
        }
        if let Some(bits) = given.next() {
            words.iter_mut().zip(bits).for_each(|(word, bits)| *word = W::of(word.bits() & bits));
            words[bits.len().min(inside)..].fill(W::of(0));
        }
        if docs < (start + inside) * 64
            && let Some(last) = words.last_mut()
        {
            *last = W::of(last.bits() & (u64::MAX >> (64 - docs % 64)));
        }
    }

    /// Calls `each(word number, bits)` for the words that hold a live document that passes the filter, until
    /// it returns false. For requests with a filter.
    pub(super) fn for_each_allowed_word(&self, words: usize, mut each: impl FnMut(usize, u64) -> bool) {
        let filter = self.filter.unwrap_or(&[]);
        let live = self.live.unwrap_or(&[]);
        for (number, wanted) in filter.iter().enumerate().take(words) {
            if *wanted == 0 {
                continue;
            }
            let visible = if self.live.is_some() { live.get(number).copied().unwrap_or(0) } else { u64::MAX };
            if wanted & visible != 0 && !each(number, wanted & visible) {
                return;
            }
        }
    }
}
