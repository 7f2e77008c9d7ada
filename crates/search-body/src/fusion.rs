//! Fusion: combines several ranked lists into one.
//!
//! * Reciprocal rank fusion: a document scores `Σ weight / (rank_constant + rank)` over the lists that contain it,
//!   with ranks counted from 1. Only ranks count, so scores of different kinds need no common scale.
//!   Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion outperforms Condorcet" (SIGIR 2009).
//! * Linear: a document scores `Σ weight · normalizer(score)`; a list without the document adds nothing.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// How the scores of a document in several lists are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reciprocal rank fusion.
    Rrf {
        /// Added to each rank, from 1: the higher it is, the smaller the advantage of the first ranks.
        rank_constant: u32,
    },
    /// Sum of the normalized scores, each multiplied by its list's weight.
    Linear,
}

/// How a linear fusion brings the scores of one list to a common scale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Normalizer {
    /// Scores are used as they are.
    #[default]
    None,
    /// `(score - min) / (max - min)` over the list within its window; if all scores are equal, they are used as they are.
    MinMax,
    /// `score / √Σ score²` over the list within its window.
    L2Norm,
    /// Number of standard deviations by which a score exceeds the mean of the list within its window; 0 below the mean, so that no
    /// list reduces what another gives a document. Not in Elasticsearch.
    ZScore,
    /// As `zscore`, but over [`RARITY_AMONG`] documents, of which those that the list lacks have the score 0: the fewer documents a list has,
    /// the more each of them counts. 0 in a list of so many documents and more. Not in Elasticsearch.
    Rarity,
    /// The probability that the document is relevant, by the model's own calibration: see [`super::calibration`]. Not in
    /// Elasticsearch.
    Calibrated,
}

/// Documents among which [`Normalizer::Rarity`] sees those of a list: as many as the short form fuses of a list.
const RARITY_AMONG: usize = 100;

impl Normalizer {
    /// Name of the normalizer in requests.
    pub fn name(self) -> &'static str {
        match self {
            Normalizer::None => "none",
            Normalizer::MinMax => "minmax",
            Normalizer::L2Norm => "l2_norm",
            Normalizer::ZScore => "zscore",
            Normalizer::Rarity => "rarity",
            Normalizer::Calibrated => "calibrated",
        }
    }

    /// All normalizers.
    pub const ALL: [Normalizer; 6] = [
        Normalizer::None,
        Normalizer::MinMax,
        Normalizer::L2Norm,
        Normalizer::ZScore,
        Normalizer::Rarity,
        Normalizer::Calibrated,
    ];

    /// The normalizer with this name, in upper or lower case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|normalizer| normalizer.name().eq_ignore_ascii_case(name))
    }

    /// A function that normalizes the scores of a list: `(score - offset) / divisor`, and for `zscore` at least 0. For `minmax` and
    /// `zscore`, equal scores become 1, as those of a list with a single hit do (Elasticsearch 8.19's `MinMaxScoreNormalizer`).
    pub fn normalize(self, scores: impl Iterator<Item = f32> + Clone) -> impl Fn(f32) -> f32 {
        // Of infinite scores there are no differences.
        let finite = |score: f32| score.clamp(f32::MIN, f32::MAX);
        // The norm or the range of the highest scores may be no number. A power of two changes no digit of what is computed.
        let is_high = |score: f32| finite(score).abs() > 2f32.powi(96);
        let scale = match self {
            Normalizer::None | Normalizer::Calibrated => 1.0,
            _ if scores.clone().any(is_high) => 2f32.powi(-64),
            _ => 1.0,
        };
        let scaled = move |score: f32| finite(score) * scale;
        let scores = scores.map(scaled);
        /// A range, norm or deviation below this counts as 0.
        const EPSILON: f32 = 1e-6;
        const EQUAL: (f32, f32) = (0.0, 0.0);
        let is_zero = |value: f32| value < EPSILON * scale;
        let (offset, divisor) = match self {
            // Calibrated scores are mapped before they come here.
            Normalizer::None | Normalizer::Calibrated => (0.0, 1.0),
            Normalizer::MinMax => {
                let (min, max) =
                    scores.fold((f32::INFINITY, f32::NEG_INFINITY), |(min, max), s| (min.min(s), max.max(s)));
                if is_zero(max - min) { EQUAL } else { (min, max - min) }
            }
            Normalizer::L2Norm => {
                let norm = scores.map(|score| f64::from(score) * f64::from(score)).sum::<f64>().sqrt() as f32;
                if is_zero(norm) { (0.0, 1.0) } else { (0.0, norm) }
            }
            Normalizer::Rarity if scores.clone().nth(RARITY_AMONG - 1).is_some() => (f32::MAX, 1.0),
            Normalizer::ZScore | Normalizer::Rarity => {
                let hits = scores.clone().count();
                let count = if self == Normalizer::Rarity { RARITY_AMONG } else { hits.max(1) } as f64;
                let mean = scores.clone().map(f64::from).sum::<f64>() / count;
                let absent = (count - hits as f64) * mean.powi(2);
                let squares = scores.map(|score| (f64::from(score) - mean).powi(2)).sum::<f64>() + absent;
                let deviation = (squares / count).sqrt() as f32;
                if is_zero(deviation) { EQUAL } else { (mean as f32, deviation) }
            }
        };
        let least = match self {
            Normalizer::ZScore | Normalizer::Rarity => 0.0,
            _ => f32::NEG_INFINITY,
        };
        move |score| if divisor == 0.0 { 1.0 } else { ((scaled(score) - offset) / divisor).max(least) }
    }
}

/// How documents with equal scores are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// By rank in the first list that contains either document.
    Rank,
    /// By the order of the documents themselves.
    Document,
}

/// One of the lists to fuse.
#[derive(Debug, Clone, Copy)]
pub struct Ranked<'a, D> {
    /// Documents with their scores, best first and without repeats.
    pub hits: &'a [(D, f32)],
    /// Factor of the list's contribution to the fused scores.
    pub weight: f32,
    /// How a linear fusion normalizes its scores.
    pub normalizer: Normalizer,
}

/// A document of the fused list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fused<D> {
    /// The document.
    pub doc: D,
    /// Fused score of the document.
    pub score: f32,
    /// Number of the first list that contains the document, and its rank there; no two documents have the same.
    first: (usize, u32),
}

/// Fuses ranked lists. The result depends on nothing but the lists, and its order is total.
pub fn fuse<D>(method: Method, ties: Ties, lists: &[Ranked<'_, D>]) -> Vec<Fused<D>>
where
    D: Copy + Eq + Hash + Ord,
{
    let most = lists.iter().map(|list| list.hits.len()).sum();
    let mut places: FxHashMap<D, usize> = FxHashMap::with_capacity_and_hasher(most, Default::default());
    let mut fused: Vec<Fused<D>> = Vec::with_capacity(most);
    for (number, list) in lists.iter().enumerate() {
        let normalized = match method {
            Method::Rrf { .. } => Normalizer::None,
            Method::Linear => list.normalizer,
        }
        .normalize(list.hits.iter().map(|hit| hit.1));
        for ((doc, score), rank) in list.hits.iter().zip(1u32..) {
            let added = match method {
                Method::Rrf { rank_constant } => list.weight * (1.0 / (rank_constant as f32 + rank as f32)),
                Method::Linear => list.weight * normalized(*score),
            };
            let place = match places.entry(*doc) {
                Entry::Occupied(place) => *place.get(),
                Entry::Vacant(place) => {
                    fused.push(Fused { doc: *doc, score: 0.0, first: (number, rank) });
                    *place.insert(fused.len() - 1)
                }
            };
            fused[place].score += added;
        }
    }
    for hit in &mut fused {
        // Weights are a user's: a sum may leave the range of numbers that JSON has.
        hit.score = hit.score.clamp(f32::MIN, f32::MAX);
    }
    fused.sort_unstable_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| match ties {
            Ties::Rank => by_first_rank(a, b).then_with(|| a.doc.cmp(&b.doc)),
            Ties::Document => a.doc.cmp(&b.doc),
        })
    });
    fused
}

/// Orders two documents by the first list that contains each, then by rank in it. No two documents have the same rank in one list,
/// so further lists never matter.
fn by_first_rank<D>(a: &Fused<D>, b: &Fused<D>) -> Ordering {
    a.first.cmp(&b.first)
}

#[cfg(test)]
#[path = "fusion_tests.rs"]
mod tests;
