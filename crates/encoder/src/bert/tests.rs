//! The forward pass in 8 bits against the one in f32, and on all instruction sets.

use std::path::Path;

use crate::fixed::Precision;
use crate::model::weights;
use crate::pooling::mean;

use super::kernels::{Kernels, available};
use super::{Bert, Scratch};

/// Ids as a tokenizer might give them: a start, words from all over the vocabulary, an end.
fn texts() -> Vec<Vec<u32>> {
    let text = |length: u32, step: u32| {
        let words = (0..length).map(|at| 1996 + at * step * 37 % 28_000);
        [101].into_iter().chain(words).chain([102]).collect()
    };
    // Numbers of rows that fall into tiles of all sizes, and one that has more than go through the feed-forward part at once.
    [(0, 1), (1, 3), (5, 7), (13, 11), (30, 5), (111, 9), (250, 2)]
        .map(|(length, step)| text(length, step))
        .to_vec()
}

fn vectors(kernels: &'static Kernels, precision: Precision, batches: &[&[&[u32]]]) -> Vec<Vec<f32>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/model-minilm-l6");
    let bert = Bert::new(weights(&package), None, kernels, precision, &[]).unwrap();
    let mut scratch = Scratch::default();
    let mut found = Vec::new();
    for texts in batches {
        let texts: Vec<_> = texts.iter().map(|ids| (*ids).into()).collect();
        let (hidden, rows) = bert.forward(&texts, &mut scratch).unwrap();
        found.extend(rows.into_iter().map(|rows| mean(&hidden[rows.start * 384..rows.end * 384], 384)));
    }
    found
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot =
        |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn eight_bits_give_nearly_the_vectors_of_f32_on_every_instruction_set() {
    let texts = texts();
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let expected = vectors(available()[0], Precision::F32, &[&texts]);
    for kernels in available().iter().filter(|kernels| kernels.name != "amx") {
        let found = vectors(kernels, Precision::Int8, &[&texts]);
        let cosines: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| cosine(a, b)).collect();
        let least = cosines.iter().copied().fold(1.0, f64::min);
        let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
        assert!(least > 0.995 && mean > 0.998, "{}: {least}, {mean} on average", kernels.name);
    }
}

/// As each row is quantised with a scale of its own, the other texts of a batch do not change a text's vector.
#[test]
fn a_text_has_the_same_vector_alone_and_in_a_batch() {
    let texts = texts();
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let alone: Vec<&[&[u32]]> = texts.chunks(1).collect();
    let kernels = available()[0];
    assert_eq!(vectors(kernels, Precision::Int8, &alone), vectors(kernels, Precision::Int8, &[&texts]));
}
