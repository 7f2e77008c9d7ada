//! The forward pass in 8 bits against the one in f32, and on all instruction sets.

use std::path::Path;

use crate::fixed::Precision;
use crate::model::weights;
use crate::pooling::mean;
use crate::stored::Stored;
use crate::testing::numbers;

use super::kernels::{Kernels, available};
use super::{Bert, LayerWeights, LinearWeights, NormWeights, Scratch, Weights};

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

const WIDTH: usize = 64;
const WORDS: usize = 200;
/// How much larger than the others some numbers are of what layer normalisations give, and which.
const OUTLIER: f32 = 20.0;
const OUTLIERS: [usize; 3] = [3, 17, 40];

/// Random weights of three layers. Some channels of what the layer normalisations give are far larger than the others, and the weights that they
/// are multiplied with as much smaller, so that all channels count the same.
fn with_outliers() -> Weights {
    let mut next = numbers(52);
    let mut some = |count: usize, size: f32| -> Vec<f32> { (0..count).map(|_| size * next()).collect() };
    let is_outlier = |channel: usize| OUTLIERS.contains(&channel);
    let norm = || NormWeights {
        scale: (0..WIDTH).map(|at| if is_outlier(at) { OUTLIER } else { 1.0 }).collect(),
        shift: vec![0.0; WIDTH],
        epsilon: 1e-12,
    };
    let mut linear = |inputs: usize, outputs: usize, after_norm: bool| {
        let mut weights = some(inputs * outputs, 0.2);
        for (row, weights) in weights.chunks_exact_mut(outputs).enumerate() {
            if after_norm && is_outlier(row) {
                weights.iter_mut().for_each(|weight| *weight /= OUTLIER);
            }
        }
        LinearWeights { weights: Stored::Here(weights), bias: some(outputs, 0.1) }
    };
    let layers = (0..3).map(|_| LayerWeights {
        query: linear(WIDTH, WIDTH, true),
        key: linear(WIDTH, WIDTH, true),
        value: linear(WIDTH, WIDTH, true),
        attended: linear(WIDTH, WIDTH, false),
        attention_norm: norm(),
        inner: linear(WIDTH, 2 * WIDTH, true),
        gate: None,
        outer: linear(2 * WIDTH, WIDTH, false),
        output_norm: norm(),
    });
    let layers = layers.collect();
    let (words, positions) = (Stored::Here(some(WORDS * WIDTH, 1.0)), some(32 * WIDTH, 0.3));
    Weights { width: WIDTH, heads: 2, words, positions, embedding_norm: norm(), layers, ..Weights::default() }
}

/// Texts of up to 30 random words.
fn random_texts(seed: u64, count: usize) -> Vec<Vec<u32>> {
    let mut next = crate::testing::states(seed);
    let mut below = |most: usize| (next() >> 33) as usize % most;
    (0..count).map(|_| (0..1 + below(30)).map(|_| below(WORDS) as u32).collect()).collect()
}

/// The mean of the channels without the outliers, whose size would hide all else, of each text's tokens.
fn ordinary(bert: &Bert, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let mut scratch = Scratch::default();
    let vector = |ids: &Vec<u32>| {
        let (hidden, _) = bert.forward(&[ids[..].into()], &mut scratch).unwrap();
        let channels = mean(hidden, WIDTH).into_iter().enumerate();
        channels.filter(|(channel, _)| !OUTLIERS.contains(channel)).map(|(_, value)| value).collect()
    };
    texts.iter().map(vector).collect()
}

/// The factors of inputs that packing takes from a sample bring the vectors of other texts nearer to those of floats, through the whole model.
#[test]
fn factors_of_the_sample_lower_the_error_of_a_whole_model() {
    let (sample, texts) = (random_texts(1, 100), random_texts(2, 50));
    for kernels in available().iter().filter(|kernels| kernels.name != "amx") {
        let vectors = |precision, sample: &[Vec<u32>]| {
            ordinary(&Bert::new(with_outliers(), None, kernels, precision, sample).unwrap(), &texts)
        };
        let expected = vectors(Precision::F32, &[]);
        let error = |sample: &[Vec<u32>]| {
            let found = vectors(Precision::Int8, sample);
            found.iter().zip(&expected).map(|(one, other)| 1.0 - cosine(one, other)).sum::<f64>()
                / texts.len() as f64
        };
        let (with, without) = (error(&sample), error(&[]));
        assert!(with < without / 2.0, "{}: {with} with factors, {without} without", kernels.name);
    }
}
