//! Map between the documents and the passages of a segment.
//!
//! The vectors of a `semantic_text` field are numbered by passage, not by document: postings, dense vectors and
//! graphs over them are the usual parts in an id space of their own. This part ties the two together:
//!
//! ```text
//! magic "SPRWPSG1" · documents u32 · passages u32 · CRC-32 of the rest u32 · 0 u32
//! first passage of each document, and the number of all u32 * (documents + 1)
//! document of each passage u32 * passages
//! ```

use std::io::{self, Write};
use std::sync::Arc;

use sparrow_postings::{DROPPED, PostingsBuilder};
use sparrow_runtime::{DocId, PackedTokens, TokenIter};
use sparrow_vectors::{Metric, VectorsError};
use tantivy::directory::OwnedBytes;

use super::values::{VectorFields, encode_tokens, encode_vector};
use sparrow_mapping::passages::{Passage, PassageVector};

const MAGIC: &[u8; 8] = b"SPRWPSG1";
const HEADER: usize = 24;

/// Encodes a field's passages for an indexing thread: `p`, then per passage the length (u32) of its value and
/// the value. A value is a sparse or dense vector as of a field with one value, or both: `h`, the length of
/// the sparse one (u32), the sparse and the dense one. `metric` maps a number of dimensions to the metric of
/// dense vectors.
pub fn encode_passages(chunks: &[Passage], metric: impl Fn(usize) -> Metric) -> Vec<u8> {
    let mut bytes = vec![b'p'];
    for chunk in chunks {
        let value = match &chunk.vector {
            PassageVector::Sparse(tokens) => encode_tokens(&packed(tokens)),
            PassageVector::Dense(vector) => encode_vector(metric(vector.len()), vector),
            PassageVector::Hybrid { sparse, dense } => {
                let sparse = encode_tokens(&packed(sparse));
                let mut value = vec![b'h'];
                value.extend((sparse.len() as u32).to_le_bytes());
                value.extend(sparse);
                value.extend(encode_vector(metric(dense.len()), dense));
                value
            }
        };
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(value);
    }
    bytes
}

fn packed(tokens: &[(Box<str>, f32)]) -> PackedTokens {
    tokens.iter().map(|(token, weight)| (&**token, *weight)).collect()
}

/// Passages of one field of the segment that is being written.
#[derive(Default)]
pub(super) struct PassageBuilder {
    /// Number of the first passage of each document so far.
    starts: Vec<u32>,
    count: u32,
    pub(super) sparse: Option<PostingsBuilder>,
    pub(super) dense: VectorFields,
}

impl PassageBuilder {
    /// Adds the passages of a document; `bytes` lacks the leading `p`. Documents must ascend. Stops at the
    /// first malformed passage.
    pub(super) fn add(&mut self, field: u32, doc: DocId, mut bytes: &[u8]) -> Result<(), VectorsError> {
        self.starts.resize(doc as usize + 1, self.count);
        while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
            let Some((value, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else {
                break;
            };
            bytes = rest;
            let known = match value.split_first() {
                Some((b'h', both)) => {
                    let Some((length, both)) = both.split_first_chunk::<4>() else { break };
                    let Some((sparse, dense)) = both.split_at_checked(u32::from_le_bytes(*length) as usize)
                    else {
                        break;
                    };
                    self.vector(field, sparse)? && self.vector(field, dense)?
                }
                _ => self.vector(field, value)?,
            };
            if !known {
                break;
            }
            self.count += 1;
        }
        Ok(())
    }

    /// Adds a vector of the next passage; returns false if its kind is unknown.
    fn vector(&mut self, field: u32, value: &[u8]) -> Result<bool, VectorsError> {
        match value.split_first() {
            Some((b's', tokens)) => {
                self.sparse.get_or_insert_default().add(self.count, TokenIter(tokens));
            }
            Some((b'd', vector)) => self.dense.add(field, self.count, vector)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Number of passages added.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn mem_usage(&self) -> usize {
        self.starts.capacity() * 4
            + self.sparse.as_ref().map_or(0, PostingsBuilder::mem_usage)
            + self.dense.mem_usage()
    }

    /// Writes the map of a segment with `num_docs` documents.
    pub(super) fn write_map(&mut self, num_docs: u32, out: &mut dyn Write) -> io::Result<()> {
        self.starts.resize(num_docs as usize + 1, self.count);
        write_map(&self.starts, out)
    }
}

/// Writes a map. `starts` has the first passage of each document, then the number of passages.
fn write_map(starts: &[u32], out: &mut dyn Write) -> io::Result<()> {
    let passages = starts.last().copied().unwrap_or(0);
    let mut body: Vec<u8> = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
    for (doc, pair) in (0u32..).zip(starts.windows(2)) {
        (pair[0]..pair[1]).for_each(|_| body.extend(doc.to_le_bytes()));
    }
    out.write_all(MAGIC)?;
    out.write_all(&(starts.len().saturating_sub(1) as u32).to_le_bytes())?;
    out.write_all(&passages.to_le_bytes())?;
    out.write_all(&crc32fast::hash(&body).to_le_bytes())?;
    out.write_all(&0u32.to_le_bytes())?;
    out.write_all(&body)
}

/// The passages of a field's documents in one segment. Cheap to clone.
#[derive(Clone)]
pub struct PassageMap {
    docs: u32,
    passages: u32,
    bytes: OwnedBytes,
}

impl PassageMap {
    /// Opens a map and validates all of it.
    ///
    /// # Errors
    /// What is malformed, as text.
    pub(super) fn open(bytes: OwnedBytes) -> Result<Self, &'static str> {
        if bytes.len() < HEADER || &bytes[..8] != MAGIC {
            return Err("not a list of passages");
        }
        let word = |at: usize| read(&bytes, at);
        let (docs, passages) = (word(8), word(12));
        let length = HEADER as u64 + (u64::from(docs) + 1 + u64::from(passages)) * 4;
        if bytes.len() as u64 != length || crc32fast::hash(&bytes[HEADER..]) != word(16) {
            return Err("the list of passages is damaged");
        }
        let map = Self { docs, passages, bytes };
        let ascending = (0..docs).all(|doc| map.start(doc) <= map.start(doc + 1));
        let known = (0..passages).all(|passage| map.doc(passage) < docs);
        if map.start(0) != 0 || map.start(docs) != passages || !ascending || !known {
            return Err("the list of passages is inconsistent");
        }
        Ok(map)
    }

    /// First passage of a document; for one without passages, that of the next document.
    pub fn start(&self, doc: DocId) -> u32 {
        read(&self.bytes, HEADER + doc.min(self.docs) as usize * 4)
    }

    /// Document of a passage; `DocId::MAX` for an unknown passage.
    pub fn doc(&self, passage: u32) -> DocId {
        if passage >= self.passages {
            return DocId::MAX;
        }
        read(&self.bytes, HEADER + (self.docs as usize + 1 + passage as usize) * 4)
    }

    /// Number of passages in the segment.
    pub fn count(&self) -> u32 {
        self.passages
    }

    /// Number of documents that have at least one passage.
    pub fn docs_with_field(&self) -> u32 {
        (0..self.docs).map(|doc| u32::from(self.start(doc) < self.start(doc + 1))).sum()
    }

    /// Bitmap of the passages whose document is in both sets. A set that is `None` contains all documents;
    /// the result is `None` if both are.
    pub fn allowed(&self, live: Option<&[u64]>, filter: Option<&[u64]>) -> Option<Vec<u64>> {
        if live.is_none() && filter.is_none() {
            return None;
        }
        let mut words = vec![0u64; self.passages.div_ceil(64) as usize];
        let word = |bits: Option<&[u64]>, at: usize| {
            bits.map_or(u64::MAX, |bits| bits.get(at).copied().unwrap_or(0))
        };
        for at in 0..self.docs.div_ceil(64) as usize {
            let mut bits = word(live, at) & word(filter, at);
            while bits != 0 {
                let doc = at as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if doc >= self.docs {
                    break;
                }
                for passage in self.start(doc)..self.start(doc + 1) {
                    words[passage as usize / 64] |= 1 << (passage % 64);
                }
            }
        }
        Some(words)
    }
}

fn read(bytes: &[u8], at: usize) -> u32 {
    let mut buffer = [0; 4];
    buffer.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(buffer)
}

/// The map of a merged segment, and the new passage numbers of each source.
pub(super) struct MergedMap {
    /// New number of each passage of each source, or [`DROPPED`]; empty for a source without any.
    pub(super) maps: Vec<Arc<[u32]>>,
    pub(super) count: u32,
    pub(super) bytes: Vec<u8>,
}

/// Merges the maps of segments whose documents are renumbered by `doc_maps`.
pub(super) fn merge(
    sources: &[Option<&PassageMap>],
    doc_maps: &[Arc<[DocId]>],
    num_docs: u32,
) -> io::Result<MergedMap> {
    let mut starts = vec![0u32; num_docs as usize + 1];
    let mut count = 0;
    let mut maps = Vec::with_capacity(sources.len());
    for (source, doc_map) in sources.iter().zip(doc_maps) {
        let mut map = vec![DROPPED; source.map_or(0, |source| source.passages as usize)];
        for (old, new) in (0u32..).zip(doc_map.iter()) {
            if *new == DROPPED || *new >= num_docs {
                continue;
            }
            starts[*new as usize] = count;
            let Some(source) = source else { continue };
            for passage in source.start(old)..source.start(old + 1) {
                map[passage as usize] = count;
                count += 1;
            }
        }
        maps.push(map.into());
    }
    starts[num_docs as usize] = count;
    let mut bytes = Vec::new();
    write_map(&starts, &mut bytes)?;
    Ok(MergedMap { maps, count, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(starts: &[u32]) -> PassageMap {
        let mut bytes = Vec::new();
        write_map(starts, &mut bytes).unwrap();
        PassageMap::open(OwnedBytes::new(bytes)).unwrap()
    }

    #[test]
    fn passages_and_documents_find_each_other() {
        let map = map(&[0, 0, 2, 2, 5]);
        assert_eq!((0..5).map(|passage| map.doc(passage)).collect::<Vec<_>>(), [1, 1, 3, 3, 3]);
        assert_eq!((0..=4).map(|doc| map.start(doc)).collect::<Vec<_>>(), [0, 0, 2, 2, 5]);
        assert_eq!((map.count(), map.docs_with_field(), map.doc(5)), (5, 2, DocId::MAX));
        assert_eq!(map.allowed(None, None), None);
        assert_eq!(map.allowed(Some(&[0b1010]), Some(&[0b1001])), Some(vec![0b11100]));
    }

    #[test]
    fn a_merge_drops_the_passages_of_deleted_documents() {
        let (first, second) = (map(&[0, 2, 3]), map(&[0, 1]));
        let maps: Vec<Arc<[DocId]>> = vec![vec![DROPPED, 0].into(), vec![1, 2].into(), vec![3].into()];
        let merged = merge(&[Some(&first), None, Some(&second)], &maps, 4).unwrap();
        assert_eq!(*merged.maps[0], [DROPPED, DROPPED, 0]);
        assert!(merged.maps[1].is_empty());
        assert_eq!(*merged.maps[2], [1]);
        let map = PassageMap::open(OwnedBytes::new(merged.bytes)).unwrap();
        assert_eq!((map.count(), map.doc(0), map.doc(1)), (merged.count, 0, 3));
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let mut good = Vec::new();
        write_map(&[0, 1, 3], &mut good).unwrap();
        for at in (0..good.len()).filter(|at| !(20..24).contains(at)) {
            let mut bad = good.clone();
            bad[at] ^= 0x11;
            assert!(PassageMap::open(OwnedBytes::new(bad)).is_err(), "byte {at}");
        }
    }
}
