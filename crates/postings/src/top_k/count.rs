//! `hits.total` of the search by blocks.

use std::cmp::Reverse;
use std::ops::Deref;

use super::pruned::{Scratch, Search};
use crate::bytes::u64_at;
use crate::{kernels, trace};

/// So many of the most frequent dense terms are marked before asking whether many documents are left.
const FREQUENT: usize = 4;

impl<B> Search<'_, '_, '_, B>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    /// Lower bound of the matching documents that needs no look at them: those of the most frequent term, were all
    /// deleted documents among them.
    pub(super) fn certainly_matched(&self) -> u64 {
        if self.request.filter.is_some() {
            return 0;
        }
        let most = self.clauses.iter().map(|clause| clause.postings.df()).max().unwrap_or(0);
        let docs = self.reader.num_docs();
        let deleted = self.request.live.map_or(0, |live| {
            let (whole, last) = (docs as usize / 64, (1 << (docs % 64)) - 1);
            let rest = live.get(whole).map_or(0, |word| u64::from((word & last).count_ones()));
            let whole = live.get(..whole).unwrap_or(live);
            u64::from(docs) - kernels::chosen().count(whole) - rest
        });
        u64::from(most).saturating_sub(deleted)
    }

    /// Counts the matching documents, window by window, as far as wanted. The sparse terms were added
    /// to the sums of all documents, rounded up.
    pub(super) fn count(&mut self, scratch: &mut Scratch) {
        let Scratch { allowed, matches, blocks, .. } = scratch;
        let mut frequent = self.dense.to_vec();
        frequent.sort_unstable_by_key(|i| Reverse(self.clauses[*i].postings.df()));
        let window = self.reader.window();
        let words = (self.reader.num_docs() as usize).div_ceil(64);
        for start in (0..words).step_by(window as usize / 64) {
            if self.matched >= self.request.count_limit || self.request.is_cancelled() {
                return;
            }
            let groups = (window as usize / 64).min(words - start);
            if !self.fill_allowed(start, groups, allowed) {
                continue;
            }
            matches.clear();
            matches.resize(groups, 0);
            let first = self.sums_at + start * 64;
            kernels::chosen().mark(blocks.sums_of(first..first + groups * 64), matches);
            for (place, i) in frequent.iter().enumerate() {
                if place == FREQUENT {
                    let open = matches
                        .iter()
                        .zip(&*allowed)
                        .filter(|(matches, allowed)| **allowed & !**matches != 0);
                    if open.count() * 4 < groups {
                        self.mark_open(start, allowed, &frequent[FREQUENT..], matches);
                        break;
                    }
                }
                self.mark_dense(start, *i, matches);
            }
            self.matched += matches
                .iter()
                .zip(&*allowed)
                .map(|(matches, allowed)| u64::from((matches & allowed).count_ones()))
                .sum::<u64>();
        }
    }

    pub(super) fn mark_dense(&self, start: usize, clause: usize, matches: &mut [u64]) {
        let bitmap = self.clauses[clause].postings.bitmap().bits.get(start * 8..).unwrap_or(&[]);
        trace::touch(bitmap, 0..matches.len() * 8);
        for (word, bytes) in matches.iter_mut().zip(bitmap.as_chunks::<8>().0) {
            *word |= u64::from_le_bytes(*bytes);
        }
    }

    /// Marks the allowed documents that have one of the dense clauses; others may be left out.
    fn mark_open(&self, start: usize, allowed: &[u64], clauses: &[usize], matches: &mut [u64]) {
        for (word, (matches, allowed)) in matches.iter_mut().zip(allowed).enumerate() {
            for i in clauses {
                if allowed & !*matches == 0 {
                    break;
                }
                *matches |= u64_at(self.clauses[*i].postings.bitmap().bits, (start + word) * 8);
            }
        }
    }
}
