//! Whether a large model is computed in 8 bits, where its files do not say: it is packed with floats and with bytes, both encode a sample of
//! texts, and the bytes are kept if their vectors are nearly those of the floats.

use std::path::Path;
use std::sync::Arc;

use crate::bert::Sequence;
use crate::cache::Vector;
use crate::error::EncoderError;
use crate::forward::Forward;
use crate::model::{Keep, Model, ModelKind};
use crate::sample;
use sparrow_file_system as fs;

/// Number of texts that are encoded at once.
const BATCH: usize = 10;
/// How far a model in bytes may be from the same in floats.
struct Bounds {
    /// In the mean of the texts.
    mean: f64,
    /// For a single text.
    most: f64,
}

/// What the cosines of dense vectors in bytes to those in floats lack of 1.
const COSINES: Bounds = Bounds { mean: 0.003, most: 0.01 };
/// Relative error of the dot products of a text's sparse vector with those of all texts.
const PRODUCTS: Bounds = Bounds { mean: 0.03, most: 0.1 };
/// Highest root mean square of what a cross-encoder's scores differ by, as a share of how far they spread.
const MOST_OF_SPREAD: f64 = 0.03;

/// As [`Model::load`], with a file for the packed weights of a large model, which is written when it is first loaded, and mapped from then
/// on. A file that is damaged or was made of other model files is written anew; if it cannot be written, the weights are kept in memory and
/// a warning is logged. When the file is written and the model's files do not say, they are packed in 8 bits if that changes vectors only a
/// little.
///
/// # Errors
/// As [`Model::load`].
pub fn load_packed(dir: &Path, packed: &Path) -> Result<Arc<Model>, EncoderError> {
    load(dir, Keep::large(packed))
}

fn load(dir: &Path, keep: Keep<'_>) -> Result<Arc<Model>, EncoderError> {
    if let Some(keep) = keep.chosen(dir)? {
        return Model::read(dir, Some(keep));
    }
    let packed = keep.path();
    // Both forms and the file of other weights are more than a disk may hold.
    remove(packed);
    let (in_floats, in_bytes) = (packed.with_extension("floats"), packed.with_extension("bytes"));
    let floats = Model::read(dir, Some(keep.at(&in_floats)))?;
    if !floats.is_mapped() {
        return Ok(floats);
    }
    let compared = Model::read(dir, Some(keep.at(&in_bytes).in_bytes())).and_then(|bytes| {
        let fits = bytes.is_mapped().then(|| rounds_little(&floats, &bytes)).transpose()?;
        Ok((bytes, fits))
    });
    let (chosen, kept) = match compared {
        Ok((bytes, Some(true))) => (bytes, Some(&in_bytes)),
        Ok((_, Some(false))) => (floats, Some(&in_floats)),
        // What failed today may succeed tomorrow: nothing is kept as an answer.
        Ok((_, None)) => (floats, None),
        Err(error) => {
            tracing::warn!(path = %dir.display(), %error, "the model is computed in floats, and may be in 8 bits when it is next loaded");
            (floats, None)
        }
    };
    // What is mapped stays mapped, whatever becomes of its name.
    if let Some(kept) = kept
        && let Err(error) = fs::rename(kept, packed)
    {
        tracing::warn!(path = %packed.display(), %error, "packed weights cannot be kept");
    }
    remove(&in_floats);
    remove(&in_bytes);
    Ok(chosen)
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "packed weights that nobody needs stay");
        }
        _ => {}
    }
}

/// Whether the vectors of a model in 8 bits are nearly those of the same model in floats.
fn rounds_little(floats: &Arc<Model>, bytes: &Arc<Model>) -> Result<bool, EncoderError> {
    let (expected, found) = (encode(floats)?, encode(bytes)?);
    if floats.info().kind == ModelKind::CrossEncoder {
        let (expected, found) = (scores(&expected), scores(&found));
        let share = difference(&expected, &found) / spread(&expected).max(f64::MIN_POSITIVE);
        tracing::info!(path = %floats.dir().display(), share, "differences of a model in 8 bits");
        return Ok(share <= MOST_OF_SPREAD);
    }
    let (errors, bounds): (Vec<f64>, Bounds) = if matches!(expected.first(), Some(Vector::Sparse(_))) {
        (errors_of_products(&expected, &found), PRODUCTS)
    } else {
        (expected.iter().zip(&found).map(|(one, other)| 1.0 - cosine(one, other)).collect(), COSINES)
    };
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let most = errors.iter().copied().fold(0.0, f64::max);
    tracing::info!(path = %floats.dir().display(), mean, most, "errors of a model in 8 bits");
    // NaN compares as false, so it does not pass.
    Ok(mean <= bounds.mean && most <= bounds.most)
}

/// For each text the root of the squared errors of its dot products with all texts, as a share of the root of the squared products.
fn errors_of_products(expected: &[Vector], found: &[Vector]) -> Vec<f64> {
    let of = |at: usize| {
        let (mut errors, mut sizes) = (0.0, 0.0);
        for (one, other) in expected.iter().zip(found) {
            let exact = product(&expected[at], one);
            errors += (product(&found[at], other) - exact).powi(2);
            sizes += exact.powi(2);
        }
        (errors / sizes).sqrt()
    };
    (0..expected.len()).map(of).collect()
}

/// The vectors of the sample; for a cross-encoder the scores of each text with the one after it.
fn encode(model: &Arc<Model>) -> Result<Vec<Vector>, EncoderError> {
    let mut forward = Forward::new(model, 1)?;
    let texts: Vec<&str> = sample().collect();
    let mut vectors = Vec::with_capacity(texts.len());
    let next = texts.iter().cycle().skip(1);
    let pairs: Vec<(&str, &str)> = texts.iter().copied().zip(next.copied()).collect();
    for batch in pairs.chunks(BATCH) {
        let sequences = batch
            .iter()
            .map(|(text, next)| {
                if model.info().kind != ModelKind::CrossEncoder {
                    let ids = model.tokenizer.encode(text)?.ids;
                    return Ok((ids, None));
                }
                let question = model.tokenizer.question(text, &|| Ok(()))?;
                let (tokens, second) = model.tokenizer.pair(&question, next, &|| Ok(()))?;
                Ok((tokens.ids, Some(second)))
            })
            .collect::<Result<Vec<(Vec<u32>, Option<usize>)>, EncoderError>>()?;
        let sequences: Vec<Sequence<'_>> = sequences
            .iter()
            .map(|(ids, second)| Sequence { ids, second: second.unwrap_or(ids.len()) })
            .collect();
        vectors.extend(forward.run(&sequences)?);
    }
    Ok(vectors)
}

fn cosine(one: &Vector, other: &Vector) -> f64 {
    let length = |vector: &Vector| product(vector, vector).sqrt();
    product(one, other) / (length(one) * length(other))
}

/// The dot product of two vectors of the same model.
fn product(one: &Vector, other: &Vector) -> f64 {
    match (one, other) {
        (Vector::Dense(one), Vector::Dense(other)) => {
            one.iter().zip(other.iter()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        }
        (Vector::Sparse(one), Vector::Sparse(other)) => {
            let other: rustc_hash::FxHashMap<u32, f32> = other.iter().copied().collect();
            let of = |term: &u32| f64::from(other.get(term).copied().unwrap_or(0.0));
            one.iter().map(|(term, weight)| f64::from(*weight) * of(term)).sum()
        }
        _ => f64::NAN,
    }
}

/// The scores of a cross-encoder.
fn scores(vectors: &[Vector]) -> Vec<f64> {
    vectors
        .iter()
        .map(|vector| match vector {
            Vector::Dense(score) => score.first().map_or(f64::NAN, |score| f64::from(*score)),
            Vector::Sparse(_) | Vector::Hybrid(..) => f64::NAN,
        })
        .collect()
}

/// The root mean square of the differences.
fn difference(expected: &[f64], found: &[f64]) -> f64 {
    let squares = expected.iter().zip(found).map(|(a, b)| (a - b) * (a - b));
    (squares.sum::<f64>() / expected.len() as f64).sqrt()
}

/// The standard deviation.
fn spread(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    difference(values, &vec![mean; values.len()])
}

#[cfg(test)]
mod tests;
