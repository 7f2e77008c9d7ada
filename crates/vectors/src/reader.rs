//! Reads vectors from encoded bytes that it does not own.

use std::ops::{Deref, Range};

use sparrow_runtime::DocId;

use crate::builder;
use crate::element::{Element, Metric};
use crate::error::VectorsError;
use crate::format::{BEFORE_SHORT, CodeKind, HEADER, Header, Layout, f32_at, u32_at};
use crate::kernels::Rows;
use crate::quantise::{Int8, Short};
use crate::short::ShortQuery;

/// Vectors of one field over bytes with another owner, such as a memory map.
#[derive(Debug, Clone)]
pub struct VectorsReader<B> {
    bytes: B,
    header: Header,
    layout: Layout,
}

impl<B: Deref<Target = [u8]>> VectorsReader<B> {
    /// Opens bytes written by [`crate::VectorsBuilder`]. Checks the header, every length, and the order of the
    /// documents; [`VectorsReader::verify`] checks the rest.
    ///
    /// # Errors
    /// [`VectorsError::NotVectors`], [`VectorsError::NewerFormat`], [`VectorsError::Corrupt`].
    pub fn open(bytes: B) -> Result<Self, VectorsError> {
        let (header, layout) = Header::parse(&bytes)?;
        let count = header.count as usize;
        let reader = Self { bytes, header, layout };
        if !header.is_complete() && count > 0 {
            let ascending = (1..count).all(|ord| reader.doc(ord - 1) < reader.doc(ord));
            if !ascending || reader.doc(count - 1) >= header.num_docs {
                return Err(VectorsError::Corrupt { detail: "document order" });
            }
        }
        Ok(reader)
    }

    /// Reads all bytes and checks them against the checksum.
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

    /// Element type, similarity and dimensions of the vectors.
    pub fn metric(&self) -> Metric {
        self.header.metric
    }

    /// Number of dimensions of each vector.
    pub fn dims(&self) -> usize {
        self.header.metric.dims
    }

    /// Whether the vectors also have codes.
    pub fn has_codes(&self) -> bool {
        self.header.codes != CodeKind::None
    }

    /// How many bits the vectors' codes have, if fewer than 8.
    pub(crate) fn short_codes(&self) -> Option<Short> {
        match self.header.codes {
            CodeKind::Short(short) => Some(short),
            CodeKind::None | CodeKind::Int8 { .. } => None,
        }
    }

    /// The query in the form that is compared with codes of fewer than 8 bits, given the inverse of its length; `None` if the vectors have no such codes.
    pub(crate) fn short_query(&self, query: &[f32], inverse_length: f32) -> Option<ShortQuery> {
        let short = self.short_codes()?;
        let mut centre = Vec::with_capacity(self.dims());
        builder::decode(Element::Float, &self.bytes[self.layout.scales..self.layout.vectors], &mut centre);
        Some(ShortQuery::new(short, self.metric(), query, inverse_length, &centre))
    }

    /// Whether the vectors have 8-bit codes that will do where `int8` is asked for: clipped ones only if it clips too.
    pub(crate) fn has_codes_for(&self, int8: Int8) -> bool {
        matches!(self.header.codes, CodeKind::Int8 { whole } if whole || !int8.is_whole())
    }

    /// Whether the vectors have 8-bit codes that stand for each component within half a step.
    pub(crate) fn has_whole_codes(&self) -> bool {
        self.header.codes == CodeKind::Int8 { whole: true }
    }

    /// Whether nothing is to be gained by writing the vectors anew.
    pub fn is_current(&self) -> bool {
        self.header.version >= BEFORE_SHORT
    }

    /// Number of documents that have a vector.
    pub fn len(&self) -> usize {
        self.header.count as usize
    }

    /// Whether no document has a vector.
    pub fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// Whether every document has a vector, so that a vector's number is its document's.
    pub fn is_complete(&self) -> bool {
        self.header.is_complete()
    }

    /// Number of documents of the segment.
    pub fn num_docs(&self) -> u32 {
        self.header.num_docs
    }

    /// The vector that was added for a document; `None` if it has none.
    pub fn vector(&self, doc: DocId) -> Option<Vec<f32>> {
        let row = self.row(self.ord(doc)?);
        let mut vector = Vec::new();
        builder::decode(self.metric().element, row, &mut vector);
        Some(vector)
    }

    /// Document of the vector with this number.
    pub(crate) fn doc(&self, ord: usize) -> DocId {
        if self.header.is_complete() { ord as DocId } else { u32_at(&self.bytes, HEADER + ord * 4) }
    }

    /// Number of a document's vector; `None` if it has none.
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

    /// Bytes of one vector, not necessarily aligned.
    pub(crate) fn row(&self, ord: usize) -> &[u8] {
        let width = self.header.metric.element.row_bytes(self.dims());
        let start = self.layout.vectors + ord * width;
        &self.bytes[start..start + width]
    }

    /// Rows of all vectors, indexed by vector number.
    pub(crate) fn rows(&self) -> Rows<'_> {
        let width = self.header.metric.element.row_bytes(self.dims());
        Rows::new(&self.bytes[self.layout.vectors..self.layout.codes], width)
    }

    /// Rows of all vectors' codes, indexed by vector number; only with [`VectorsReader::has_codes`].
    pub(crate) fn code_rows(&self) -> Rows<'_> {
        let width = self.short_codes().map_or(self.dims(), |short| short.row_bytes(self.dims()));
        Rows::new(&self.bytes[self.layout.codes..self.layout.end], width)
    }

    /// 8-bit codes of one vector; only where [`VectorsReader::has_codes_for`] is true.
    pub(crate) fn codes(&self, ord: usize) -> &[u8] {
        let start = self.layout.codes + ord * self.dims();
        &self.bytes[start..start + self.dims()]
    }

    /// Factor by which a vector's 8-bit codes must be multiplied; only with such codes.
    pub(crate) fn scale(&self, ord: usize) -> f32 {
        f32_at(&self.bytes, self.layout.scales + ord * 4)
    }

    /// 1 / length of a float vector.
    pub(crate) fn inverse_length(&self, ord: usize) -> f32 {
        f32_at(&self.bytes, self.layout.norms + ord * 4)
    }

    /// Squared length of a byte vector.
    pub(crate) fn squared_length(&self, ord: usize) -> u32 {
        u32_at(&self.bytes, self.layout.norms + ord * 4)
    }
}
