//! Kernels of single documents, for filters that few documents pass.

use super::blocks::{BlockTerm, CHUNK_BLOCKS, coarse};
use super::{GROUP, Implementation};
use crate::term::{CHUNK, CHUNK_BITMAP, CHUNK_LEVELS, level_place};

impl Implementation {
    /// How many bits are set.
    pub(crate) fn count(&self, words: &[u64]) -> u64 {
        (self.count)(words)
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
            term.bitmap.len() < blocks || term.levels.len() < blocks / CHUNK_BLOCKS * CHUNK_LEVELS
        }) {
            return 0;
        }
        (self.bound_documents)(terms, chunk, &ids[..len], &sums[..len], inverse, &mut totals[..len])
    }
}

pub(super) fn count(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
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
        let mut found = *sum != 0;
        *total = coarse(*sum, inverse);
        for term in terms {
            if term.bitmap[chunk * CHUNK_BITMAP + block] >> bit & 1 == 1 {
                let level = term.levels[chunk * CHUNK_LEVELS + byte] >> shift & 15;
                *total = total.wrapping_add(u16::from(term.bounds[usize::from(level)]));
                found = true;
            }
        }
        matched += u32::from(found);
    }
    matched
}
