//! Counts the matching documents (`hits.total`) in the search by blocks.

use super::scratch::Scratch;
use super::search::Search;
use crate::bytes::u64_at;
use crate::record::Kind;
use crate::term::Postings;
use crate::{kernels, trace};
use std::cmp::Reverse;

/// Number of the most frequent dense terms that are marked before checking whether many documents remain.
const FREQUENT: usize = 4;
/// Bitmap words that are counted between checks whether enough were found.
const PIECE: usize = 256;

/// Counts the documents of each segment's most frequent term if those reach `wanted` together, which saves
/// looking at the other terms; usually they do.
pub(super) fn count_frequent(searches: &mut [Search<'_, '_, '_>], wanted: u64, scratch: &mut Scratch) {
    let (mut counts, mut likely) = (Vec::with_capacity(searches.len()), 0);
    for expected in searches.iter().map(Search::expected) {
        counts.push(expected.least);
        likely += expected.likely;
    }
    if counts.iter().sum::<u64>() < wanted && likely > wanted + wanted / 8 {
        let mut before = 0;
        for (search, count) in searches.iter().zip(&mut counts) {
            *count = search.matched_by_most_frequent(wanted - before.min(wanted), scratch);
            before += *count;
        }
    }
    if counts.iter().sum::<u64>() >= wanted {
        let mut before = 0;
        for (search, count) in searches.iter_mut().zip(counts) {
            // As counting would, no more when the limit is reached.
            search.matched = if before < wanted { count } else { 0 };
            before += count;
            search.request.count_limit = 0;
        }
    }
}

/// Estimated number of documents that match because they have the segment's most frequent term.
struct Expected {
    /// Lower limit, as if all deleted documents had the term; 0 if there is a filter.
    least: u64,
    /// Expected number, as if deletes and filter were independent of the term.
    likely: u64,
}

impl Search<'_, '_, '_> {
    /// Postings of the most frequent term: a dense one if there is any, since dense terms are in more
    /// documents than others.
    fn most_frequent(&self) -> Option<Postings<'_>> {
        let some = if self.dense.is_empty() { self.others } else { self.dense };
        some.iter().map(|i| &self.clauses[*i].postings).max_by_key(|postings| postings.df()).copied()
    }

    /// Estimates from the document counts alone, without reading postings.
    fn expected(&self) -> Expected {
        let most = u64::from(self.most_frequent().map_or(0, |postings| postings.df_of(self.num_docs)));
        let docs = self.num_docs;
        let deleted = self.request.live.map_or(0, |live| {
            let (whole, last) = (docs as usize / 64, (1 << (docs % 64)) - 1);
            let rest = live.get(whole).map_or(0, |word| u64::from((word & last).count_ones()));
            let whole = live.get(..whole).unwrap_or(live);
            u64::from(docs) - kernels::chosen().count(whole) - rest
        });
        let docs = u64::from(docs.max(1));
        let passed = self.passed.unwrap_or(docs);
        Expected {
            least: if self.request.filter.is_some() { 0 } else { most.saturating_sub(deleted) },
            // All below 2^31: no product of two overflows.
            likely: most * passed / docs * (docs - deleted) / docs,
        }
    }

    /// Number of allowed documents that have the most frequent term, or 0 if that is not dense. Stops some
    /// time after reaching `wanted`.
    fn matched_by_most_frequent(&self, wanted: u64, scratch: &mut Scratch) -> u64 {
        let Some(postings) = self.most_frequent().filter(|postings| postings.kind() == Kind::Dense) else {
            return 0;
        };
        let allowed = &mut scratch.allowed;
        let bitmap = postings.bitmap().bits.as_chunks::<8>().0;
        let words = (self.num_docs as usize).div_ceil(64).min(bitmap.len());
        let mut matched = 0;
        for start in (0..words).step_by(PIECE) {
            if matched >= wanted {
                break;
            }
            let groups = PIECE.min(words - start);
            if self.fill_allowed(start, groups, allowed) {
                let bitmap = &bitmap[start..start + groups];
                trace::touch(bitmap.as_flattened(), 0..groups * 8);
                allowed.iter_mut().zip(bitmap).for_each(|(word, bits)| *word &= u64::from_le_bytes(*bits));
                matched += kernels::chosen().count(allowed);
            }
        }
        matched
    }

    /// Counts the matching documents, window by window, until the limit is reached. The sparse terms must
    /// have been added to the sums of all documents, rounded up.
    pub(super) fn count(&mut self, scratch: &mut Scratch) {
        if self.matched >= self.request.count_limit {
            return;
        }
        let Scratch { allowed, matches, blocks, .. } = scratch;
        let mut frequent = self.dense.to_vec();
        frequent.sort_unstable_by_key(|i| Reverse(self.clauses[*i].postings.df()));
        let window = self.window_size;
        let words = (self.num_docs as usize).div_ceil(64);
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

    /// Marks every allowed document that has one of the dense clauses; documents that are not allowed may be
    /// marked or not.
    fn mark_open(&self, start: usize, allowed: &[u64], clauses: &[usize], matches: &mut [u64]) {
        let bitmaps: Vec<&[u8]> = clauses.iter().map(|i| self.clauses[*i].postings.bitmap().bits).collect();
        for (word, (matches, allowed)) in matches.iter_mut().zip(allowed).enumerate() {
            for bits in &bitmaps {
                if allowed & !*matches == 0 {
                    break;
                }
                *matches |= u64_at(bits, (start + word) * 8);
            }
        }
    }
}
