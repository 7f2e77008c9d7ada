//! Kernels of single documents, for filters that few documents pass.

use super::blocks::{BlockTerm, CHUNK_BLOCKS, coarse};
use super::{Bitmap, GROUP, Implementation};
use crate::bytes::u32_at;
use crate::layout::{CHUNK, CHUNK_BITMAP, CHUNK_LEVELS, Place, Posting, RANKED, level_place};

/// Ids that are compared at once, around a guess where most are found.
pub(super) const NEAR: usize = 64;

/// The documents of a sparse term, as `record` lays them out.
#[derive(Clone, Copy)]
pub(crate) struct SparseIds<'a> {
    /// Postings before each window.
    pub(crate) windows: &'a [u8],
    /// Of all windows, and what follows them in the file: short lists, too, are compared 64 at once.
    pub(crate) ids: &'a [[u8; 2]],
    /// How many are the term's.
    pub(crate) count: usize,
}

impl Implementation {
    /// How many bits are set.
    pub(crate) fn count(&self, words: &[u64]) -> u64 {
        (self.count)(words)
    }

    /// Writes the postings of documents in a dense term to the start of `found`, which has room for all, with places
    /// counted from `first`, and returns how many there are.
    pub(crate) fn find_dense(
        &self,
        bitmap: &Bitmap<'_>,
        places: &[Place],
        first: u32,
        found: &mut [Posting],
    ) -> usize {
        (self.find_dense)(bitmap, places, first, &mut found[..places.len()])
    }

    /// Looks up documents in a sparse term.
    pub(crate) fn find_sparse(
        &self,
        list: &SparseIds<'_>,
        places: &[Place],
        first: u32,
        found: &mut [Posting],
    ) -> usize {
        (self.find_sparse)(list, places, first, &mut found[..places.len()])
    }

    /// Appends the numbers of the bits that are set, ascending. For at most 1,024 words.
    pub(crate) fn list(&self, words: &[u64], ids: &mut Vec<u16>) {
        let words = &words[..words.len().min((1 << 16) / GROUP)];
        // An implementation may write a group behind the last.
        ids.reserve((words.len() + 1) * GROUP);
        (self.list)(words, ids);
    }

    /// Writes the highest of every 32 numbers; those behind the last 32 are left out.
    pub(crate) fn highest(&self, numbers: &[u16], highest: &mut [u16]) {
        let groups = (numbers.len() / 32).min(highest.len());
        (self.highest)(&numbers[..groups * 32], &mut highest[..groups]);
    }

    /// Writes the coarse bounds of documents of a chunk: of their `sums`, and of the levels of the terms
    /// that they have. Returns how many have a sum or a term. `ids` count from a multiple of 1,024;
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

/// `near(some ids, own, id)` has a bit for each that is equal, of the first `own` at least: what follows may be another
/// window's, or no id.
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
