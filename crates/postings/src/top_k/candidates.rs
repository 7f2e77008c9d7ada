//! What the segments that are searched together found so far, and what that leaves to be found.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sparrow_types::DocId;

use super::{SharedThreshold, TopKRequest};

/// How far estimates and scores can lie apart, in units: in all segments that are searched together.
#[derive(Clone, Copy)]
pub(super) struct Errors {
    /// Units per score.
    pub(super) units: f64,
    pub(super) above: f64,
    pub(super) below: f64,
    /// Both, rounded up: how far below the k-th best estimate a document among the best can be.
    pub(super) distance: i64,
}

/// A document that can be among the best.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) estimate: u16,
    /// Number of its segment among those that are searched together.
    pub(super) segment: usize,
    pub(super) doc: DocId,
}

/// Memory of a search, kept for the next.
#[derive(Default)]
pub(super) struct CandidateScratch {
    /// The k highest estimates.
    highest: BinaryHeap<Reverse<u16>>,
    candidates: Vec<Candidate>,
}

/// The candidates of all segments, and the lowest estimate that is still wanted.
pub(super) struct TopKCandidates<'r> {
    k: usize,
    threshold: &'r SharedThreshold,
    pub(super) errors: Errors,
    scratch: CandidateScratch,
    need: i64,
}

impl<'r> TopKCandidates<'r> {
    /// Nothing, with the `k` and the threshold of a request.
    pub(super) fn new(request: &TopKRequest<'r>, errors: Errors, mut scratch: CandidateScratch) -> Self {
        scratch.highest.clear();
        scratch.candidates.clear();
        Self { k: request.k, threshold: request.threshold, errors, scratch, need: 0 }
    }

    /// Lowest estimate wanted; not positive: any.
    pub(super) fn need(&self) -> i64 {
        self.need
    }

    /// The same for kernels, which take any estimate for 0.
    pub(super) fn needed(&self) -> u32 {
        self.need.clamp(0, i64::from(u32::MAX)) as u32
    }

    /// What is needed in coarse units; `None` when no bound, which is at most 65,535 of them, reaches it.
    pub(super) fn coarse(&self, unit: u32) -> Option<u16> {
        u16::try_from(u64::from(self.needed()).div_ceil(u64::from(unit))).ok()
    }

    /// Lowest estimate of a document with this score.
    pub(super) fn estimate_of(&self, score: f32) -> i64 {
        (f64::from(score) * self.errors.units - self.errors.above).floor() as i64
    }

    /// Raises what is needed to what a score needs.
    pub(super) fn raise_to_score(&mut self, score: f32) {
        if score > 0.0 {
            self.need = self.need.max(self.estimate_of(score));
        }
    }

    /// Raises what is needed when k documents have at least this estimate.
    pub(super) fn raise_to(&mut self, estimate: u16) {
        self.need = self.need.max(i64::from(estimate) - self.errors.distance);
    }

    /// Takes a document as candidate.
    pub(super) fn push(&mut self, estimate: u16, segment: usize, doc: DocId) {
        self.scratch.candidates.push(Candidate { estimate, segment, doc });
        let highest = &mut self.scratch.highest;
        if highest.len() < self.k {
            highest.push(Reverse(estimate));
            if highest.len() < self.k {
                return;
            }
        } else if let Some(mut lowest) = highest.peek_mut() {
            if estimate <= lowest.0 {
                return;
            }
            *lowest = Reverse(estimate);
        }
        if let Some(lowest) = highest.peek() {
            let lowest = lowest.0;
            self.raise_to(lowest);
        }
    }

    /// Takes back all candidates of this segment and those after it.
    pub(super) fn forget_from(&mut self, segment: usize) {
        // Of which segments these are is not known: what the others found is only missed.
        self.scratch.highest.clear();
        self.scratch.candidates.retain(|candidate| candidate.segment < segment);
    }

    /// Tells other searches what k documents of this one certainly reach.
    pub(super) fn share(&self) {
        if self.k > 0
            && self.scratch.highest.len() == self.k
            && let Some(lowest) = self.scratch.highest.peek()
        {
            let certain = (f64::from(lowest.0) - self.errors.below) / self.errors.units;
            // Converting to f32 may round up by one part in 2^24.
            self.threshold.raise((certain * (1.0 - 1e-6)) as f32);
        }
    }

    /// Drops candidates that are not wanted any more when they have become many.
    pub(super) fn tidy(&mut self) {
        if self.scratch.candidates.len() > self.k.saturating_mul(4).saturating_add(1 << 16) {
            self.drop_unwanted();
        }
    }

    fn drop_unwanted(&mut self) {
        let need = self.need;
        self.scratch.candidates.retain(|candidate| i64::from(candidate.estimate) >= need);
    }

    /// The candidates that are wanted, segment by segment.
    pub(super) fn candidates(&mut self) -> &[Candidate] {
        self.drop_unwanted();
        self.scratch.candidates.sort_unstable_by_key(|candidate| (candidate.segment, candidate.doc));
        &self.scratch.candidates
    }

    /// Gives the buffers back for the next search.
    pub(super) fn into_scratch(self) -> CandidateScratch {
        self.scratch
    }
}
