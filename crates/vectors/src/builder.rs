//! Collects the vectors of one field while a segment is written.

use sparrow_runtime::DocId;

use crate::element::{Element, Metric};
use crate::error::VectorsError;
use crate::format::Header;
use crate::quantise::Codes;
use crate::short::{Centre, Coder};

/// Collects vectors in memory and turns them into the bytes that [`crate::VectorsReader`] opens.
#[derive(Debug)]
pub struct VectorsBuilder {
    metric: Metric,
    docs: Vec<DocId>,
    /// Encoded vectors, one after another.
    rows: Vec<u8>,
}

impl VectorsBuilder {
    /// An empty builder for vectors of this element type and dimension, compared by `metric`.
    pub fn new(metric: Metric) -> Self {
        Self { metric, docs: Vec::new(), rows: Vec::new() }
    }

    /// Adds the vector of a document. Documents must be added in ascending order; those without a vector are
    /// skipped.
    ///
    /// # Errors
    /// [`VectorsError::Dimensions`], [`VectorsError::Component`], [`VectorsError::OutOfOrder`]; nothing was added.
    pub fn add(&mut self, doc: DocId, vector: &[f32]) -> Result<(), VectorsError> {
        check_vector(self.metric, vector)?;
        if let Some(&previous) = self.docs.last()
            && previous >= doc
        {
            return Err(VectorsError::OutOfOrder { doc, previous });
        }
        self.docs.push(doc);
        encode(self.metric.element, vector, &mut self.rows);
        Ok(())
    }

    /// Bytes held in memory.
    pub fn mem_usage(&self) -> usize {
        self.docs.capacity() * 4 + self.rows.capacity()
    }

    /// Writes the bytes for a segment of `num_docs` documents, with codes beside floats if any are given.
    ///
    /// # Errors
    /// [`VectorsError::OutOfOrder`] when a document is not below `num_docs`.
    pub fn finish(self, num_docs: u32, codes: Option<Codes>) -> Result<Vec<u8>, VectorsError> {
        if let Some(&last) = self.docs.last()
            && last >= num_docs
        {
            return Err(VectorsError::OutOfOrder { doc: num_docs, previous: last });
        }
        let metric = self.metric;
        let codes = codes.filter(|_| metric.element == Element::Float);
        let mut header = Header::new(metric, codes, num_docs, self.docs.len() as u32);
        let mut body = Vec::with_capacity(self.docs.len() * 12 + self.rows.len());
        if !header.is_complete() {
            body.extend(self.docs.iter().flat_map(|doc| doc.to_le_bytes()));
        }
        let rows = || self.rows.chunks_exact(metric.element.row_bytes(metric.dims).max(1));
        if metric.element != Element::Bit {
            body.extend(rows().flat_map(|row| norm(metric.element, row)));
        }
        let mut coded = Vec::new();
        match codes {
            None => {}
            Some(Codes::Int8(int8)) => {
                let mut vector = Vec::with_capacity(metric.dims);
                for row in rows() {
                    vector.clear();
                    decode(Element::Float, row, &mut vector);
                    body.extend(int8.encode(&vector, &mut coded).to_le_bytes());
                }
            }
            Some(Codes::Short(short)) => {
                let with_length = || rows().map(|row| (row, f32::from_le_bytes(norm(Element::Float, row))));
                let mut centre = Centre::new(metric);
                with_length().for_each(|(row, inverse_length)| centre.add(row, inverse_length));
                let mut coder = Coder::new(short, metric, centre.mean());
                body.extend(coder.centre());
                with_length().for_each(|(row, inverse_length)| coder.encode(row, inverse_length, &mut coded));
            }
        }
        body.extend_from_slice(&self.rows);
        body.extend_from_slice(&coded);
        header.body_checksum = crc32fast::hash(&body);
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }
}

/// Checks that a vector or a query has the dimensions of a metric, and components that its element type can
/// hold.
pub(crate) fn check_vector(metric: Metric, vector: &[f32]) -> Result<(), VectorsError> {
    let expected = metric.element.components(metric.dims);
    if vector.len() != expected {
        return Err(VectorsError::Dimensions { expected, found: vector.len() });
    }
    if vector.iter().all(|component| metric.element.holds(*component)) {
        Ok(())
    } else {
        Err(VectorsError::Component)
    }
}

/// Appends the encoded form of a vector that [`check_vector`] accepted.
pub(crate) fn encode(element: Element, vector: &[f32], out: &mut Vec<u8>) {
    match element {
        Element::Float => out.extend(vector.iter().flat_map(|component| component.to_le_bytes())),
        Element::Byte | Element::Bit => out.extend(vector.iter().map(|component| *component as i8 as u8)),
    }
}

/// Appends the components of an encoded vector.
pub(crate) fn decode(element: Element, row: &[u8], out: &mut Vec<f32>) {
    match element {
        Element::Float => out.extend(row.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
        Element::Byte | Element::Bit => out.extend(row.iter().map(|byte| f32::from(*byte as i8))),
    }
}

/// Stored norm of an encoded float or byte vector: 1 / length as f32, or the squared length as u32.
pub(crate) fn norm(element: Element, row: &[u8]) -> [u8; 4] {
    if element == Element::Byte {
        return row
            .iter()
            .map(|byte| u32::from((*byte as i8).unsigned_abs()).pow(2))
            .sum::<u32>()
            .to_le_bytes();
    }
    let squared: f64 =
        row.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes)).powi(2)).sum();
    inverse_length(squared).to_le_bytes()
}

/// 1 / length, given the squared length; 0 for a zero vector.
pub(crate) fn inverse_length(squared: f64) -> f32 {
    if squared > 0.0 { (1.0 / squared.sqrt()) as f32 } else { 0.0 }
}
