//! Candidates of the segments that are searched together, and the estimate that further ones must reach.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sparrow_runtime::DocId;

use super::{SharedThreshold, TopKRequest};

/// How far estimates and scores can differ, in estimate units; the maximum over all segments that are
/// searched together.
#[derive(Clone, Copy)]
pub(super) struct Errors {
    /// Estimate units per score of 1.
    pub(super) units: f64,
    pub(super) above: f64,
    pub(super) below: f64,
    /// `above + below`, rounded up: how far below the k-th best estimate a document among the best can be.
    pub(super) distance: i64,
}

/// A document that can be among the best.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) estimate: u16,
    /// Index of the segment among those that are searched together.
    pub(super) segment: usize,
    pub(super) doc: DocId,
}

/// Buffers of a search, reused by the next.
#[derive(Default)]
pub(super) struct CandidateScratch {
    /// The k highest estimates.
    highest: BinaryHeap<Reverse<u16>>,
    candidates: Vec<Candidate>,
}

/// Candidates of all segments, and the estimate that a document must reach to become one.
pub(super) struct TopKCandidates<'r> {
    k: usize,
    threshold: &'r SharedThreshold,
    pub(super) errors: Errors,
    scratch: CandidateScratch,
    need: i64,
}

impl<'r> TopKCandidates<'r> {
    /// Starts without candidates, with the `k` and the threshold of a request.
    pub(super) fn new(request: &TopKRequest<'r>, errors: Errors, mut scratch: CandidateScratch) -> Self {
        scratch.highest.clear();
        scratch.candidates.clear();
        Self { k: request.k, threshold: request.threshold, errors, scratch, need: 0 }
    }

    /// Lowest estimate that a candidate may have; 0 or less admits any.
    pub(super) fn need(&self) -> i64 {
        self.need
    }

    /// [`Self::need`] as the kernels take it: 0 if negative.
    pub(super) fn needed(&self) -> u32 {
        self.need.clamp(0, i64::from(u32::MAX)) as u32
    }

    /// [`Self::needed`] in coarse units of `unit`, rounded up; `None` when it exceeds 65,535, which no bound
    /// does.
    pub(super) fn coarse(&self, unit: u32) -> Option<u16> {
        u16::try_from(u64::from(self.needed()).div_ceil(u64::from(unit))).ok()
    }

    /// Lowest estimate that a document with this score can have.
    pub(super) fn estimate_of(&self, score: f32) -> i64 {
        (f64::from(score) * self.errors.units - self.errors.above).floor() as i64
    }

    /// Raises the required estimate to the lowest that a document with this score can have.
    pub(super) fn raise_to_score(&mut self, score: f32) {
        if score > 0.0 {
            self.need = self.need.max(self.estimate_of(score));
        }
    }

    /// Raises the required estimate, given that k documents have at least `estimate`.
    pub(super) fn raise_to(&mut self, estimate: u16) {
        self.need = self.need.max(i64::from(estimate) - self.errors.distance);
    }

    /// Adds a document to the candidates.
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

    /// Removes all candidates of this segment and of those after it.
    pub(super) fn forget_from(&mut self, segment: usize) {
        // Of which segments these are is not known: what the others found is only missed.
        self.scratch.highest.clear();
        self.scratch.candidates.retain(|candidate| candidate.segment < segment);
    }

    /// Raises the shared threshold to the score that k candidates of this search certainly reach.
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

    /// Drops candidates below the required estimate once there are many, more than 4 k + 65,536.
    pub(super) fn tidy(&mut self) {
        if self.scratch.candidates.len() > self.k.saturating_mul(4).saturating_add(1 << 16) {
            self.drop_unwanted();
        }
    }

    fn drop_unwanted(&mut self) {
        let need = self.need;
        self.scratch.candidates.retain(|candidate| i64::from(candidate.estimate) >= need);
    }

    /// Candidates that reach the required estimate, ordered by segment, then document.
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
