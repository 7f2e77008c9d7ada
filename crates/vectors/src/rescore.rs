//! Chooses the hits among the candidates of a search by their exact nearness.

use std::cmp::Ordering;
use std::ops::Deref;

use sparrow_types::{DocId, Score};

use crate::reader::VectorsReader;
use crate::rough::BATCH;
use crate::top_k::{Best, TopKRequest};

/// Candidates whose exact nearness is computed before errors are judged by it, unless more hits are wanted.
const FIRST: usize = 16;
/// Candidates whose exact nearness is computed at a time after those.
const NEXT: usize = 8;
/// Largest error to expect of an approximate nearness, as a multiple of the largest seen. Errors are sums of many
/// roundings: the largest of 16 is about 1.8 standard deviations, and none is expected beyond seven.
const MARGIN: f32 = 4.0;

/// The best of the candidates of a search.
pub(crate) struct Hits<'a, B> {
    request: &'a TopKRequest<'a>,
    reader: &'a VectorsReader<B>,
    best: Best<'a>,
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

    /// Adds candidates, given by number, whose nearness is approximate. `exact` computes the exact one of at most
    /// [`BATCH`] vectors. It is called for the nearest first, and for others only while they may still be hits,
    /// judging by the errors seen so far.
    pub(crate) fn add_rescored(
        &mut self,
        mut candidates: Vec<(usize, f32)>,
        mut exact: impl FnMut(&[u32], &mut [f32]),
    ) {
        candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        let (mut ords, mut near) = ([0; BATCH], [0.0; BATCH]);
        let mut rest = &candidates[..];
        let mut size = self.request.k.clamp(FIRST, BATCH);
        let mut largest_error = None;
        while let Some((_, nearest)) = rest.first()
            && largest_error.is_none_or(|error: f32| self.may_be_hit(nearest + MARGIN * error))
        {
            let (batch, after) = rest.split_at(size.min(rest.len()));
            (rest, size) = (after, NEXT);
            ords.iter_mut().zip(batch).for_each(|(ord, candidate)| *ord = candidate.0 as u32);
            exact(&ords[..batch.len()], &mut near[..batch.len()]);
            for ((ord, approximate), nearness) in batch.iter().zip(near) {
                let error = (nearness - approximate).abs();
                // Products that are too large for a float are no measure for others.
                let error = if error.is_nan() { f32::INFINITY } else { error };
                largest_error = Some(largest_error.map_or(error, |largest: f32| largest.max(error)));
                self.add(*ord, nearness);
            }
        }
    }

    fn may_be_hit(&self, nearness: f32) -> bool {
        let lowest = self.best.lowest().or(self.request.min_score);
        let highest = self.reader.metric().highest_score(nearness);
        // Not a number where it is unknown.
        lowest.is_none_or(|lowest| highest.partial_cmp(&lowest) != Some(Ordering::Less))
    }

    /// The hits, best first.
    pub(crate) fn finish(self) -> Vec<(DocId, Score)> {
        self.best.finish()
    }
}

#[cfg(test)]
mod tests;
