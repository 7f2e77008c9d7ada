//! Fusion of ranked lists whose scores are calibrated into probabilities.

use super::key::Key;
use sparrow_search_body::calibration::{self, Calibrated};
use sparrow_search_body::fusion::{Fused, Ties};
use sparrow_search_body::retriever::Input;

/// Fuses the lists of a calibrated fusion, each sorted best first. Fused scores are probabilities, from 0 to
/// 1.
pub fn fuse_calibrated(inputs: &[Input], lists: &[&[(Key, f32)]]) -> Vec<Fused<Key>> {
    let lists: Vec<Calibrated<'_, Key>> = inputs
        .iter()
        .zip(lists)
        .map(|(input, hits)| Calibrated { hits, weight: input.weight, maps: &input.maps })
        .collect();
    calibration::fuse_calibrated(Ties::Document, &lists, |key| key.target())
}

#[cfg(test)]
#[path = "calibrated_tests.rs"]
mod tests;
