//! `"normalizer": "calibrated"`: the scores of lists as probabilities that a document is relevant, which mean the same for
//! every question.
//!
//! Each list has a map of its own, fitted once for each model, and once for words: a logistic function (Platt scaling) of what
//! depends on the question as little as possible. That is the cosine of dense vectors; the dot product of token weights,
//! those of the question scaled to length one; BM25, divided by a measure of what the words of the question could reach
//! ([`sparrow_index::Snapshot::unit_of_words`]). The fused score of a document is the weighted mean of its probabilities. A
//! list without the document counts as one that gives it the score of nothing in common.
//!
//! So a fused score depends on the document, the question and the statistics of the index. It depends on other hits in one
//! way: a list is read as far as its window goes, and a document behind that counts there as one that the list does not hold.
//! With a wider window its score may be higher.
//! `benches/calibration/` fits the maps. The mean of log-odds instead of probabilities fits a little better, but a list that
//! knows nothing of a document then outweighs two that are sure of it, and the order of the hits is worse.

use sparrow_encoder::Calibration;

/// Calibration of BM25 scores divided by [`sparrow_index::Snapshot::unit_of_words`]. `benches/results/calibration.json` shows how
/// well it fits.
pub const WORDS: Calibration = Calibration { slope: 5.448, intercept: -3.462 };

/// Maps the score of a hit in one list and index to a probability: the logistic function of `gain · score + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Map {
    gain: f32,
    offset: f32,
    /// Log-odds that a document which is not in the list is relevant.
    absent: f32,
}

impl Map {
    /// The map for scores of the form `unit · x + zero`, where `x` is the quantity that was calibrated.
    pub fn new(calibration: Calibration, unit: f32, zero: f32) -> Self {
        let Calibration { slope, intercept } = calibration;
        // Where no score is possible, none is above that of nothing in common.
        let gain = if unit > 0.0 { slope / unit } else { 0.0 };
        Self { gain, offset: intercept - gain * zero, absent: intercept }
    }

    /// The probability that a hit with this score is relevant, from 0 to 1; it never falls as the score rises.
    pub fn of_score(self, score: f32) -> f32 {
        logistic(self.gain * score + self.offset)
    }

    /// The probability that a document which is not in the list is relevant, from 0 to 1.
    pub fn of_absent(self) -> f32 {
        logistic(self.absent)
    }
}

fn logistic(log_odds: f32) -> f32 {
    1.0 / (1.0 + (-log_odds).exp())
}
