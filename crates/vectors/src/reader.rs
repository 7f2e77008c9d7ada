//! Reads vectors from borrowed bytes.

use std::ops::{Deref, Range};

use sparrow_types::DocId;

use crate::error::VectorsError;
use crate::format::{HEADER, Header, f32_at, u32_at};
use crate::similarity::Similarity;

/// Vectors over bytes that someone else owns, such as a memory map.
#[derive(Debug, Clone)]
pub struct VectorsReader<B> {
    bytes: B,
    header: Header,
    inverse_at: usize,
    vectors_at: usize,
}

impl<B: Deref<Target = [u8]>> VectorsReader<B> {
    /// Opens bytes written by [`crate::VectorsBuilder`]. Checks the header, every length, and the order of the
    /// documents; [`VectorsReader::verify`] checks the rest.
    ///
    /// # Errors
    /// [`VectorsError::NotVectors`], [`VectorsError::NewerFormat`], [`VectorsError::Corrupt`].
    pub fn open(bytes: B) -> Result<Self, VectorsError> {
        let header = Header::parse(&bytes)?;
        let count = header.count as usize;
        let inverse_at = HEADER + if header.is_complete() { 0 } else { count * 4 };
        let reader = Self { bytes, header, inverse_at, vectors_at: inverse_at + count * 4 };
        if !header.is_complete() && count > 0 {
            let ascending = (1..count).all(|ord| reader.doc(ord - 1) < reader.doc(ord));
            if !ascending || reader.doc(count - 1) >= header.num_docs {
                return Err(VectorsError::Corrupt { detail: "document order" });
            }
        }
        Ok(reader)
    }

    /// Reads everything and compares it with the checksum.
    ///
    /// # Errors
    /// [`VectorsError::Corrupt`].
    pub fn verify(&self) -> Result<(), VectorsError> {
        if crc32fast::hash(&self.bytes[HEADER..]) == self.header.body_checksum {
            Ok(())
        } else {
            Err(VectorsError::Corrupt { detail: "body checksum" })
        }
    }

    /// Components of each vector.
    pub fn dims(&self) -> usize {
        self.header.dims as usize
    }

    /// Metric of the field.
    pub fn similarity(&self) -> Similarity {
        self.header.similarity
    }

    /// Number of documents that have a vector.
    pub fn len(&self) -> usize {
        self.header.count as usize
    }

    /// Whether no document has a vector.
    pub fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// Number of documents of the segment.
    pub fn num_docs(&self) -> u32 {
        self.header.num_docs
    }

    /// The vector of a document, as it was added; `None` when it has none.
    pub fn vector(&self, doc: DocId) -> Option<Vec<f32>> {
        let row = self.row(self.ord(doc)?);
        Some(row.chunks_exact(4).map(|bytes| f32_at(bytes, 0)).collect())
    }

    /// Document of the vector with this number.
    pub(crate) fn doc(&self, ord: usize) -> DocId {
        if self.header.is_complete() { ord as DocId } else { u32_at(&self.bytes, HEADER + ord * 4) }
    }

    /// Number of a document's vector.
    pub(crate) fn ord(&self, doc: DocId) -> Option<usize> {
        if self.header.is_complete() {
            return (doc < self.header.num_docs).then_some(doc as usize);
        }
        let Range { mut start, mut end } = 0..self.len();
        while start < end {
            let middle = usize::midpoint(start, end);
            match self.doc(middle).cmp(&doc) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => start = middle + 1,
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// Bytes of one vector: `dims` little endian f32, not necessarily aligned.
    pub(crate) fn row(&self, ord: usize) -> &[u8] {
        let width = self.dims() * 4;
        let start = self.vectors_at + ord * width;
        &self.bytes[start..start + width]
    }

    pub(crate) fn inverse_length(&self, ord: usize) -> f32 {
        f32_at(&self.bytes, self.inverse_at + ord * 4)
    }
}
