//! Random sparse fields and the plain model that tests compare with.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::frame::FORMER_WINDOW;
use crate::{Format, PostingsBuilder, PostingsReader, stored_weight};

/// A field as a list of documents; `None` has no value.
pub(crate) struct Model {
    pub(crate) docs: Vec<Option<Vec<(String, f32)>>>,
}

pub(crate) type Reader = PostingsReader<std::sync::Arc<[u8]>>;

impl Model {
    /// Random model of `num_docs` documents over `vocabulary` tokens, whose frequencies range from one in
    /// every document to one in 10,000.
    pub(crate) fn random(seed: u64, num_docs: usize, vocabulary: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let shapes: Vec<(String, f64, u8)> = (0..vocabulary)
            .map(|i| (format!("tök{i}"), 10_f64.powf(-rng.random_range(0.0..4.0)), rng.random_range(0..4)))
            .collect();
        let docs = (0..num_docs)
            .map(|_| {
                if rng.random_bool(0.1) {
                    return None;
                }
                let mut tokens: Vec<_> = shapes
                    .iter()
                    .flat_map(|(token, density, shape)| {
                        let present = rng.random_bool(*density);
                        present.then(|| (token.clone(), weight(&mut rng, *shape)))
                    })
                    .collect();
                tokens.reverse();
                Some(tokens)
            })
            .collect();
        Self { docs }
    }

    fn builder(&self) -> PostingsBuilder {
        let mut builder = PostingsBuilder::new();
        for (doc, tokens) in self.docs.iter().enumerate() {
            if let Some(tokens) = tokens {
                builder.add(doc as u32, tokens.iter().map(|(token, weight)| (token.as_bytes(), *weight)));
            }
        }
        builder
    }

    pub(crate) fn bytes(&self, format: Format) -> Vec<u8> {
        self.builder().finish(self.docs.len() as u32, format)
    }

    /// The same field as earlier builds wrote it, in windows of [`FORMER_WINDOW`]; `None` if it is too short
    /// to differ.
    pub(crate) fn former_reader(&self) -> Option<Reader> {
        let num_docs = self.docs.len() as u32;
        let bytes = (num_docs > FORMER_WINDOW)
            .then(|| self.builder().finish_in_windows(num_docs, Format::V3, FORMER_WINDOW))?;
        Some(PostingsReader::open(bytes.into()).unwrap())
    }

    pub(crate) fn reader(&self, format: Format) -> Reader {
        PostingsReader::open(self.bytes(format).into()).unwrap()
    }

    /// A document's tokens with their stored weights, sorted by token; `None` if it has no value.
    pub(crate) fn stored(&self, doc: usize) -> Option<Vec<(String, f32)>> {
        let mut tokens: Vec<_> = self.docs[doc]
            .as_ref()?
            .iter()
            .filter_map(|(token, weight)| Some((token.clone(), stored_weight(*weight)?)))
            .collect();
        tokens.sort_by(|a, b| a.0.cmp(&b.0));
        Some(tokens)
    }
}

/// A random weight of one of four shapes: few distinct values (ties), SPLADE-like, many magnitudes, or
/// extremes.
fn weight(rng: &mut StdRng, shape: u8) -> f32 {
    match shape {
        0 => [0.5, 1.0, 1.5][rng.random_range(0..3)],
        1 => rng.random_range(0.01..3.0),
        2 => 10_f32.powf(rng.random_range(-7.0..4.0)),
        _ => [1e-30, 1e30, 6e-8, 65_504.0, 1.0][rng.random_range(0..5)],
    }
}

/// A random bitmap of documents, in which each bit is set with this probability.
pub(crate) fn random_bits(seed: u64, num_docs: usize, density: f64) -> Vec<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut words = vec![0; num_docs.div_ceil(64)];
    for doc in 0..num_docs {
        words[doc / 64] |= u64::from(rng.random_bool(density)) << (doc % 64);
    }
    words
}

/// A random query: terms with weights, some of them unknown, some repeated.
pub(crate) fn random_query(seed: u64, reader: &Reader) -> Vec<(u32, f32)> {
    let mut rng = StdRng::seed_from_u64(seed);
    let terms = [1, 2, 5, 17, 60][rng.random_range(0..5)];
    let shape = rng.random_range(0..4);
    (0..terms)
        .map(|_| {
            let weight = match shape {
                0 => 1.0,
                1 => rng.random_range(0.01..3.0),
                2 => 10_f32.powf(rng.random_range(-9.0..9.0)),
                _ => [1e-44, 1e-20, 1.0, 1e20][rng.random_range(0..4)],
            };
            (rng.random_range(0..reader.term_count() + 2), weight)
        })
        .collect()
}
