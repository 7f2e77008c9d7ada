//! Chooses the hits among the candidates of a search by their exact nearness.

use std::ops::Deref;

use sparrow_runtime::{DocId, Score};

use crate::reader::VectorsReader;
use crate::rough::BATCH;
use crate::top_k::{Best, TopKRequest};

/// Candidates whose exact nearness is computed first, unless more hits are wanted.
const FIRST: usize = 16;
/// Candidates whose exact nearness is computed at a time after those.
const NEXT: usize = 8;

/// The best of the candidates of a search.
pub(crate) struct Hits<'a, B> {
    request: &'a TopKRequest<'a>,
    reader: &'a VectorsReader<B>,
    best: Best<'a>,
}

/// A vector, given by number, that is at most so near.
#[derive(Clone, Copy)]
struct AtMost {
    ord: u32,
    nearness: f32,
}

impl<'a, B: Deref<Target = [u8]>> Hits<'a, B> {
    /// Chooses among at most `candidates` vectors of `reader`.
    pub(crate) fn new(request: &'a TopKRequest<'a>, reader: &'a VectorsReader<B>, candidates: usize) -> Self {
        Self { request, reader, best: Best::new(request, request.k, candidates) }
    }

    /// Adds a candidate, given by number, with its exact nearness.
    pub(crate) fn add(&mut self, ord: usize, nearness: f32) {
        let score = self.reader.metric().score_of_nearness(nearness);
        if self.request.min_score.is_none_or(|floor| score >= floor) {
            self.best.offer(self.reader.doc(ord), score);
        }
    }

    /// Adds candidates, given by number, whose nearness is approximate. `error` is the largest difference of a vector's
    /// exact nearness to its approximate one; not finite if it is not known. `exact` computes the exact ones of at most
    /// [`BATCH`] vectors, and is called for those only that may be hits.
    pub(crate) fn add_rescored(
        &mut self,
        candidates: &[(usize, f32)],
        error: impl Fn(usize) -> f64,
        mut exact: impl FnMut(&[u32], &mut [f32]),
    ) {
        let at_most = |(ord, nearness): &(usize, f32)| {
            let highest = f64::from(*nearness) + error(*ord);
            // Rounded up. What is no number, or was too large for one on the way, says nothing.
            let known = nearness.is_finite() && highest.is_finite();
            AtMost {
                ord: *ord as u32,
                nearness: if known { (highest as f32).next_up() } else { f32::INFINITY },
            }
        };
        let mut candidates: Vec<AtMost> = candidates.iter().map(at_most).collect();
        candidates.sort_unstable_by(|a, b| b.nearness.total_cmp(&a.nearness));
        let (mut ords, mut near) = ([0; BATCH], [0.0; BATCH]);
        let mut rest = &candidates[..];
        let mut size = self.request.k.clamp(FIRST, BATCH);
        while let Some(nearest) = rest.first()
            && self.may_be_hit(nearest.nearness)
            && !self.request.is_cancelled()
        {
            let (batch, after) = rest.split_at(size.min(rest.len()));
            rest = after;
            ords.iter_mut().zip(batch).for_each(|(ord, candidate)| *ord = candidate.ord);
            exact(&ords[..batch.len()], &mut near[..batch.len()]);
            batch
                .iter()
                .zip(near)
                .for_each(|(candidate, nearness)| self.add(candidate.ord as usize, nearness));
            let is_known = |next: &AtMost| next.nearness < f32::INFINITY;
            let looks_again = self.best.lowest().is_some() && rest.first().is_some_and(is_known);
            size = if looks_again { NEXT } else { BATCH };
        }
    }

    /// Whether a vector that is at most so near may be among the hits.
    fn may_be_hit(&self, nearness: f32) -> bool {
        let lowest = self.best.lowest().or(self.request.min_score);
        lowest.is_none_or(|lowest| self.reader.metric().highest_score(nearness) >= lowest)
    }

    /// The hits, best first.
    pub(crate) fn finish(self) -> Vec<(DocId, Score)> {
        self.best.finish()
    }
}

#[cfg(test)]
mod tests;
