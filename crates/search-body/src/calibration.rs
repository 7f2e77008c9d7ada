//! `"normalizer": "calibrated"`: the scores of lists as probabilities that a document is relevant, which mean the same for
//! every question.
//!
//! Each list has a map of its own, fitted once for each model, and once for words: a logistic function (Platt scaling) of what
//! depends on the question as little as possible. That is the cosine of dense vectors; the dot product of token weights,
//! those of the question scaled to length one; BM25, divided by a measure of what the words of the question could reach
//! ([`sparrow_tantivy_index::Snapshot::unit_of_words`]). The fused score of a document is the weighted mean of its probabilities. A
//! list without the document counts as one that gives it the score of nothing in common.
//!
//! So a fused score depends on the document, the question and the statistics of the index. It depends on other hits in one
//! way: a list is read as far as its window goes, and a document behind that counts there as one that the list does not hold.
//! With a wider window its score may be higher.
//! `benches/calibration/` fits the maps. The mean of log-odds instead of probabilities fits a little better, but a list that
//! knows nothing of a document then outweighs two that are sure of it, and the order of the hits is worse.

use std::cmp::Ordering;
use std::hash::Hash;

use sparrow_encoder::Calibration;

use super::fusion::{Fused, Method, Normalizer, Ranked, Ties, fuse};

/// Calibration of BM25 scores divided by [`sparrow_tantivy_index::Snapshot::unit_of_words`]. `benches/results/calibration.json` shows how
/// well it fits.
pub const WORDS: Calibration = Calibration { slope: 5.448, intercept: -3.462 };

/// Maps the score of a hit in one list and index to a probability: the logistic function of `gain · score + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Map {
    /// Factor of a score.
    pub gain: f32,
    /// Log-odds of the score 0.
    pub offset: f32,
    /// Log-odds that a document which is not in the list is relevant.
    pub absent: f32,
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

/// One of the lists of a calibrated fusion.
#[derive(Debug, Clone, Copy)]
pub struct Calibrated<'a, D> {
    /// Documents with their scores, best first and without repeats.
    pub hits: &'a [(D, f32)],
    /// Weight of the list in the fused score.
    pub weight: f32,
    /// The map of the list's scores for each index.
    pub maps: &'a [Option<Map>],
}

/// The map of a list's scores for an index. An index in which the list can find nothing borrows the map of another, so that
/// absent documents can be scored; `None` if the list can find nothing in any index.
pub fn map_for(maps: &[Option<Map>], index: usize) -> Option<Map> {
    maps.get(index).copied().flatten().or_else(|| maps.iter().copied().flatten().next())
}

/// Fuses lists whose scores are calibrated. Fused scores are probabilities, from 0 to 1.
///
/// # Arguments
/// * `index`: the number of the index that a document is from.
pub fn fuse_calibrated<D>(
    ties: Ties,
    lists: &[Calibrated<'_, D>],
    index: impl Fn(&D) -> usize,
) -> Vec<Fused<D>>
where
    D: Copy + Eq + Hash + Ord,
{
    // A list that can find nothing says nothing. The sum of such weights is more than single precision may hold.
    let total: f64 =
        lists.iter().filter(|list| map_for(list.maps, 0).is_some()).map(|list| f64::from(list.weight)).sum();
    let share = |list: &Calibrated<'_, D>| match map_for(list.maps, 0) {
        Some(_) if total > 0.0 => (f64::from(list.weight) / total) as f32,
        _ => 0.0,
    };
    // What a list adds to the probability that a document would have without it.
    let added: Vec<Vec<(D, f32)>> = lists
        .iter()
        .map(|list| {
            let more = |(doc, score): &(D, f32)| {
                let map = map_for(list.maps, index(doc));
                (*doc, map.map_or(0.0, |map| map.of_score(*score) - map.of_absent()))
            };
            list.hits.iter().map(more).collect()
        })
        .collect();
    let ranked: Vec<Ranked<'_, D>> = lists
        .iter()
        .zip(&added)
        .map(|(list, hits)| Ranked { hits, weight: share(list), normalizer: Normalizer::None })
        .collect();
    let mut fused = fuse(Method::Linear, ties, &ranked);
    for hit in &mut fused {
        let absent =
            |list: &Calibrated<'_, D>| map_for(list.maps, index(&hit.doc)).map_or(0.0, Map::of_absent);
        let least: f32 = lists.iter().map(|list| share(list) * absent(list)).sum();
        hit.score = (hit.score + least).clamp(0.0, 1.0);
    }
    // Sorted again: what a document gets for lists that do not hold it depends on the maps of its index. Equal scores stay
    // in the order of the fusion unless the documents decide.
    fused.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| match ties {
            Ties::Rank => Ordering::Equal,
            Ties::Document => a.doc.cmp(&b.doc),
        })
    });
    fused
}

fn logistic(log_odds: f32) -> f32 {
    1.0 / (1.0 + (-log_odds).exp())
}
