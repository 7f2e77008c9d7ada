//! Kernels that look up and bound single documents, for filters that few documents pass.

use super::blocks::{BlockTerm, CHUNK_BLOCKS, coarse};
use super::{Bitmap, GROUP, Implementation};
use crate::bytes::u32_at;
use crate::layout::{CHUNK, CHUNK_BITMAP, CHUNK_LEVELS, Place, Posting, RANKED, level_place};

/// Number of ids that are compared at once, around the estimated position of a document.
pub(super) const NEAR: usize = 64;

/// Ids of a sparse term with their window directory, laid out as `record` describes.
#[derive(Clone, Copy)]
pub(crate) struct SparseIds<'a> {
    /// Number of postings before each window, little-endian `u32`s.
    pub(crate) windows: &'a [u8],
    /// Ids of all windows and the bytes that follow in the file, so that 64 can be compared at once in short
    /// lists, too.
    pub(crate) ids: &'a [[u8; 2]],
    /// Number of `ids` that belong to the term.
    pub(crate) count: usize,
}

impl Implementation {
    /// Number of bits set in `words`.
    pub(crate) fn count(&self, words: &[u64]) -> u64 {
        (self.count)(words)
    }

    /// Looks up the documents of `places` in a dense term and writes those found to the start of `found`,
    /// which has room for all; their `of` is the index in `places` plus `first`. Returns how many were found.
    pub(crate) fn find_dense(
        &self,
        bitmap: &Bitmap<'_>,
        places: &[Place],
        first: u32,
        found: &mut [Posting],
    ) -> usize {
        (self.find_dense)(bitmap, places, first, &mut found[..places.len()])
    }

    /// Looks up the documents of `places` in a sparse term; parameters and result as for
    /// [`Self::find_dense`].
    pub(crate) fn find_sparse(
        &self,
        list: &SparseIds<'_>,
        places: &[Place],
        first: u32,
        found: &mut [Posting],
    ) -> usize {
        (self.find_sparse)(list, places, first, &mut found[..places.len()])
    }

    /// Appends the indexes of the bits set in the first 1,024 `words`, ascending.
    pub(crate) fn list(&self, words: &[u64], ids: &mut Vec<u16>) {
        let words = &words[..words.len().min((1 << 16) / GROUP)];
        // An implementation may write a group behind the last.
        ids.reserve((words.len() + 1) * GROUP);
        (self.list)(words, ids);
    }

    /// Writes the maximum of every 32 numbers; an incomplete last group is left out.
    pub(crate) fn highest(&self, numbers: &[u16], highest: &mut [u16]) {
        let groups = (numbers.len() / 32).min(highest.len());
        (self.highest)(&numbers[..groups * 32], &mut highest[..groups]);
    }

    /// Writes upper bounds, in coarse units, of documents of a chunk: from their `sums` and the levels of the
    /// terms that they have. Returns how many have a sum or a term. `ids` count from a multiple of 1,024;
    /// `inverse` is 65,536 / unit, rounded up.
    ///
    /// Nothing is written when the slices of a term are too short (the bytes were changed after they were
    /// checked).
    pub(crate) fn bound_documents(
        &self,
        terms: &[BlockTerm<'_>],
        chunk: usize,
        ids: &[u16],
        sums: &[u16],
        inverse: u16,
        totals: &mut [u16],
    ) -> u32 {
        let len = ids.len().min(sums.len()).min(totals.len());
        let blocks = (chunk + 1) * CHUNK_BLOCKS;
        if terms.iter().any(|term| {
            term.bitmap.bits.len() < blocks || term.levels.len() < blocks / CHUNK_BLOCKS * CHUNK_LEVELS
        }) {
            return 0;
        }
        (self.bound_documents)(terms, chunk, &ids[..len], &sums[..len], inverse, &mut totals[..len])
    }
}

pub(super) fn count(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[inline(always)]
pub(super) fn find_dense(bitmap: &Bitmap<'_>, places: &[Place], first: u32, found: &mut [Posting]) -> usize {
    let mut count = 0;
    for (of, Place { doc, .. }) in (first..).zip(places) {
        let group = (doc / RANKED) as usize;
        let bits = u128::from_le_bytes(bitmap.group(group));
        let bit = 1_u128 << (doc % RANKED);
        let below = bits & (bit - 1);
        let rank = (below as u64).count_ones() + ((below >> 64) as u64).count_ones();
        // Written in any case: whether a document has a term is not to be foretold.
        found[count] = Posting { of, position: bitmap.before(group).wrapping_add(rank) };
        count += usize::from(bits & bit != 0);
    }
    count
}

/// Looks up documents in a sparse term. `near(ids, own, id)` returns a bit for each of the 64 `ids` that
/// equals `id`; only the lowest `own` bits count, since what follows may belong to another window or not be
/// an id.
#[inline(always)]
pub(super) fn find_sparse(
    &SparseIds { windows, ids, count: postings }: &SparseIds<'_>,
    places: &[Place],
    first: u32,
    found: &mut [Posting],
    near: impl Fn(&[[u8; 2]; NEAR], usize, u16) -> u64,
) -> usize {
    let postings = postings.min(ids.len());
    let mut count = 0;
    for (of, Place { window, id, share, .. }) in (first..).zip(places) {
        let window = *window as usize;
        let end = (u32_at(windows, window * 4 + 4) as usize).min(postings);
        let start = (u32_at(windows, window * 4) as usize).min(end);
        // A search by halves waits for one line after the other.
        let guess = start + (((end - start) * *share as usize) >> 16);
        let around = guess.saturating_sub(NEAR / 2).clamp(start, end.saturating_sub(NEAR).max(start));
        let is_below = |bytes: &[u8; 2]| u16::from_le_bytes(*bytes) < *id;
        let mut rest = start..end;
        if let Some(some) = ids[around..].first_chunk::<NEAR>() {
            let length = NEAR.min(end - around);
            let at = near(some, length, *id).trailing_zeros() as usize;
            found[count] = Posting { of, position: (around + at) as u32 };
            count += usize::from(at < length);
            rest = match (is_below(&some[0]), is_below(&some[NEAR - 1])) {
                (false, _) => start..around,
                (true, true) => (around + NEAR).min(end)..end,
                (true, false) => continue,
            };
            if at < length || rest.is_empty() {
                continue;
            }
        }
        let at = rest.start + ids[rest.clone()].partition_point(is_below);
        if at < rest.end && u16::from_le_bytes(ids[at]) == *id {
            found[count] = Posting { of, position: at as u32 };
            count += 1;
        }
    }
    count
}

pub(super) fn list(words: &[u64], ids: &mut Vec<u16>) {
    for (number, word) in words.iter().enumerate() {
        let mut bits = *word;
        while bits != 0 {
            ids.push((number * GROUP) as u16 + bits.trailing_zeros() as u16);
            bits &= bits - 1;
        }
    }
}

pub(super) fn highest(numbers: &[u16], highest: &mut [u16]) {
    for (highest, numbers) in highest.iter_mut().zip(numbers.as_chunks::<32>().0) {
        *highest = numbers.iter().copied().fold(0, u16::max);
    }
}

pub(super) fn bound_documents(
    terms: &[BlockTerm<'_>],
    chunk: usize,
    ids: &[u16],
    sums: &[u16],
    inverse: u16,
    totals: &mut [u16],
) -> u32 {
    let mut matched = 0;
    for ((id, sum), total) in ids.iter().zip(sums).zip(totals) {
        let in_chunk = usize::from(*id) % CHUNK as usize;
        let (block, bit) = (in_chunk / 8, in_chunk % 8);
        let (byte, shift) = level_place(block);
        let mut has_any = *sum != 0;
        *total = coarse(*sum, inverse);
        for term in terms {
            if term.bitmap.bits[chunk * CHUNK_BITMAP + block] >> bit & 1 == 1 {
                let level = term.levels[chunk * CHUNK_LEVELS + byte] >> shift & 15;
                *total = total.wrapping_add(u16::from(term.bounds[usize::from(level)]));
                has_any = true;
            }
        }
        matched += u32::from(has_any);
    }
    matched
}
