//! Values of sparse and dense fields as bytes, on their way to the indexing threads.

use std::collections::BTreeMap;

use sparrow_runtime::{DocId, PackedTokens};
use sparrow_vectors::{Element, Metric, Similarity, VectorsBuilder, VectorsError};

/// Encodes a sparse value for an indexing thread: `s`, then the tokens as [`PackedTokens`] stores them.
pub fn encode_tokens(tokens: &PackedTokens) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + tokens.as_bytes().len());
    bytes.push(b's');
    bytes.extend_from_slice(tokens.as_bytes());
    bytes
}

/// Bytes of a dense value: `d`, similarity (u8), element type (u8), then the components as f32.
pub fn encode_vector(metric: Metric, vector: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(3 + vector.len() * 4);
    bytes.push(b'd');
    bytes.push(match metric.similarity {
        Similarity::Cosine => 0,
        Similarity::DotProduct => 1,
        Similarity::L2Norm => 2,
        Similarity::MaxInnerProduct => 3,
    });
    bytes.push(match metric.element {
        Element::Float => 0,
        Element::Byte => 1,
        Element::Bit => 2,
    });
    for component in vector {
        bytes.extend(component.to_le_bytes());
    }
    bytes
}

/// Decodes the bytes that [`encode_vector`] wrote, without the leading `d`; `None` if malformed.
fn decode_vector(bytes: &[u8], vector: &mut Vec<f32>) -> Option<Metric> {
    let ([similarity, element], components) = bytes.split_first_chunk::<2>()?;
    vector.clear();
    vector.extend(components.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk)));
    let similarity = match similarity {
        0 => Similarity::Cosine,
        1 => Similarity::DotProduct,
        2 => Similarity::L2Norm,
        3 => Similarity::MaxInnerProduct,
        _ => return None,
    };
    let (element, dims) = match element {
        0 => (Element::Float, vector.len()),
        1 => (Element::Byte, vector.len()),
        2 => (Element::Bit, vector.len() * 8),
        _ => return None,
    };
    Some(Metric { element, similarity, dims })
}

/// Vectors of the segment that is being written, by field.
#[derive(Default)]
pub(super) struct VectorFields {
    pub(super) builders: BTreeMap<u32, VectorsBuilder>,
    vector: Vec<f32>,
}

impl VectorFields {
    /// Adds a document's vector; `bytes` lacks the leading `d`. A malformed one is ignored.
    pub(super) fn add(&mut self, field: u32, doc: DocId, bytes: &[u8]) -> Result<(), VectorsError> {
        let Some(metric) = decode_vector(bytes, &mut self.vector) else { return Ok(()) };
        self.builders.entry(field).or_insert_with(|| VectorsBuilder::new(metric)).add(doc, &self.vector)
    }

    pub(super) fn mem_usage(&self) -> usize {
        self.builders.values().map(VectorsBuilder::mem_usage).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_round_trip() {
        let mut vector = Vec::new();
        for (element, dims) in [(Element::Float, 2), (Element::Byte, 2), (Element::Bit, 16)] {
            let metric = Metric { element, similarity: Similarity::L2Norm, dims };
            let bytes = encode_vector(metric, &[1.0, -2.0]);
            assert_eq!(decode_vector(&bytes[1..], &mut vector), Some(metric));
            assert_eq!(vector, [1.0, -2.0]);
        }
    }
}
