//! Fusion of ranked lists whose scores are calibrated into probabilities.

use super::key::Key;
use sparrow_search_body::calibration::Map;
use sparrow_search_body::fusion::{Fused, Method, Normalizer, Ranked, Ties, fuse};
use sparrow_search_body::retriever::Input;

/// Fuses the lists of a calibrated fusion, each sorted best first. Fused scores are probabilities, from 0 to
/// 1.
pub fn fuse_calibrated(inputs: &[Input], lists: &[&[(Key, f32)]]) -> Vec<Fused<Key>> {
    // A list that can find nothing says nothing. The sum of such weights is more than single precision may hold.
    let total: f64 =
        inputs.iter().filter(|input| input.map(0).is_some()).map(|input| f64::from(input.weight)).sum();
    let share = |input: &Input| match input.map(0) {
        Some(_) if total > 0.0 => (f64::from(input.weight) / total) as f32,
        _ => 0.0,
    };
    // What a list adds to the probability that a document would have without it.
    let added: Vec<Vec<(Key, f32)>> = inputs
        .iter()
        .zip(lists)
        .map(|(input, hits)| {
            let more = |(key, score): &(Key, f32)| {
                let map = input.map(key.target());
                (*key, map.map_or(0.0, |map| map.of_score(*score) - map.of_absent()))
            };
            hits.iter().map(more).collect()
        })
        .collect();
    let ranked: Vec<Ranked<'_, Key>> = inputs
        .iter()
        .zip(&added)
        .map(|(input, hits)| Ranked { hits, weight: share(input), normalizer: Normalizer::None })
        .collect();
    let mut fused = fuse(Method::Linear, Ties::Document, &ranked);
    for hit in &mut fused {
        let absent = |input: &Input| input.map(hit.doc.target()).map_or(0.0, Map::of_absent);
        let least: f32 = inputs.iter().map(|input| share(input) * absent(input)).sum();
        hit.score = (hit.score + least).clamp(0.0, 1.0);
    }
    // Sorted again: what a document gets for lists that do not hold it depends on the maps of its index.
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc)));
    fused
}

#[cfg(test)]
#[path = "calibrated_tests.rs"]
mod tests;
