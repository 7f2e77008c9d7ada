//! Collects the vectors of one field while a segment is written.

use sparrow_types::DocId;

use crate::error::VectorsError;
use crate::format::Header;
use crate::similarity::Similarity;

/// Collects vectors in memory and turns them into the bytes that [`crate::VectorsReader`] opens.
#[derive(Debug)]
pub struct VectorsBuilder {
    dims: usize,
    similarity: Similarity,
    docs: Vec<DocId>,
    values: Vec<f32>,
}

impl VectorsBuilder {
    /// An empty builder for vectors of `dims` components.
    pub fn new(dims: usize, similarity: Similarity) -> Self {
        Self { dims, similarity, docs: Vec::new(), values: Vec::new() }
    }

    /// Adds the vector of a document. Documents come in ascending order; those without a vector are left out.
    ///
    /// # Errors
    /// [`VectorsError::Dimensions`], [`VectorsError::NotFinite`], [`VectorsError::OutOfOrder`]; nothing was added.
    pub fn add(&mut self, doc: DocId, vector: &[f32]) -> Result<(), VectorsError> {
        if vector.len() != self.dims {
            return Err(VectorsError::Dimensions { expected: self.dims, found: vector.len() });
        }
        if !vector.iter().all(|component| component.is_finite()) {
            return Err(VectorsError::NotFinite);
        }
        if let Some(&previous) = self.docs.last()
            && previous >= doc
        {
            return Err(VectorsError::OutOfOrder { doc, previous });
        }
        self.docs.push(doc);
        self.values.extend_from_slice(vector);
        Ok(())
    }

    /// Bytes held in memory.
    pub fn mem_usage(&self) -> usize {
        (self.docs.capacity() + self.values.capacity()) * 4
    }

    /// Writes the bytes for a segment of `num_docs` documents.
    ///
    /// # Errors
    /// [`VectorsError::OutOfOrder`] when a document is not below `num_docs`.
    pub fn finish(self, num_docs: u32) -> Result<Vec<u8>, VectorsError> {
        if let Some(&last) = self.docs.last()
            && last >= num_docs
        {
            return Err(VectorsError::OutOfOrder { doc: num_docs, previous: last });
        }
        let count = self.docs.len() as u32;
        let mut header =
            Header { similarity: self.similarity, dims: self.dims as u32, num_docs, count, body_checksum: 0 };
        let mut body = Vec::with_capacity(self.docs.len() * (8 + self.dims * 4));
        if !header.is_complete() {
            body.extend(self.docs.iter().flat_map(|doc| doc.to_le_bytes()));
        }
        for vector in self.values.chunks_exact(self.dims.max(1)) {
            let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let inverse = if length > 0.0 { (1.0 / length) as f32 } else { 0.0 };
            body.extend_from_slice(&inverse.to_le_bytes());
        }
        body.extend(self.values.iter().flat_map(|component| component.to_le_bytes()));
        header.body_checksum = crc32fast::hash(&body);
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }
}
