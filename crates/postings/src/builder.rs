//! Builder for the postings of one sparse field in one segment, in memory.

use std::io::{self, Write};

use sparrow_runtime::DocId;

use crate::frame::Format;
use crate::quantize::half_bits;
use crate::term_table::TermTable;
use crate::writer::FieldWriter;

/// Collects the token weights of a segment's documents.
///
/// Tokens are interned. A posting takes 3 to 4 bytes while it waits: the distance to the term's
/// previous document as a variable-length number, and the half-precision weight.
#[derive(Default)]
pub struct PostingsBuilder {
    terms: TermTable,
    buffers: Vec<TermBuffer>,
    presence: Vec<u64>,
    next_doc: DocId,
    memory: usize,
}

#[derive(Default)]
struct TermBuffer {
    /// Last document with the term, plus 1.
    next_doc: DocId,
    len: u32,
    postings: Vec<u8>,
}

impl PostingsBuilder {
    /// A builder without any documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a document's tokens, in any order. Of a repeated token the highest weight stays;
    /// weights are rounded to half precision ([`crate::stored_weight`]), and those that are not
    /// positive are left out, as are tokens that are not UTF-8. A document that is never added has
    /// no value, one added without tokens has an empty one.
    ///
    /// # Panics
    /// When documents do not ascend, or at `DocId::MAX`.
    pub fn add<T: AsRef<[u8]>>(&mut self, doc: DocId, tokens: impl IntoIterator<Item = (T, f32)>) {
        assert!(doc >= self.next_doc && doc < i32::MAX as u32, "documents must ascend");
        self.next_doc = doc + 1;
        let word = doc as usize / 64;
        if self.presence.len() <= word {
            self.presence.resize(word + 1, 0);
        }
        self.presence[word] |= 1 << (doc % 64);
        for (token, weight) in tokens {
            if let Some(bits) = half_bits(weight) {
                self.add_posting(doc, token.as_ref(), bits);
            }
        }
    }

    fn add_posting(&mut self, doc: DocId, token: &[u8], bits: u16) {
        let new = self.buffers.len() as u32;
        let Some(term) = self.terms.number(token, new) else { return };
        if term == new {
            self.buffers.push(TermBuffer::default());
            self.memory += TermTable::MEMORY + size_of::<TermBuffer>() + token.len();
        }
        let buffer = &mut self.buffers[term as usize];
        if buffer.next_doc == doc + 1 {
            let at = buffer.postings.len() - 2;
            let previous = u16::from_le_bytes([buffer.postings[at], buffer.postings[at + 1]]);
            buffer.postings[at..].copy_from_slice(&previous.max(bits).to_le_bytes());
            return;
        }
        let capacity = buffer.postings.capacity();
        let mut distance = doc - buffer.next_doc;
        // Five bytes for the longest distance, two for the weight; one extension of the vector.
        let (mut posting, mut len) = ([0; 7], 0);
        while distance >= 128 {
            posting[len] = distance as u8 | 128;
            len += 1;
            distance >>= 7;
        }
        posting[len] = distance as u8;
        posting[len + 1..len + 3].copy_from_slice(&bits.to_le_bytes());
        buffer.postings.extend_from_slice(&posting[..len + 3]);
        buffer.next_doc = doc + 1;
        buffer.len += 1;
        self.memory += buffer.postings.capacity() - capacity;
    }

    /// Whether no document was added.
    pub fn is_empty(&self) -> bool {
        self.next_doc == 0
    }

    /// Approximate memory used by the builder, in bytes.
    pub fn mem_usage(&self) -> usize {
        self.memory + self.presence.capacity() * 8
    }

    /// The finished field of a segment with `num_docs` documents.
    ///
    /// # Panics
    /// When a document at or above `num_docs` was added.
    pub fn finish(self, num_docs: u32, format: Format) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.write_to(num_docs, format, &mut bytes) {
            Ok(()) => bytes,
            // A Vec takes every write; the tokens of one memory budget stay far below 4 GiB.
            Err(error) => unreachable!("writing to memory failed: {error}"),
        }
    }

    /// Writes the finished field of a segment with `num_docs` documents.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    ///
    /// # Panics
    /// When a document at or above `num_docs` was added.
    pub fn write_to(self, num_docs: u32, format: Format, out: &mut dyn Write) -> io::Result<()> {
        self.write_with(num_docs, FieldWriter::new(out, format, num_docs)?)
    }

    /// Builds the field like [`Self::finish`], but with `window` documents per window.
    #[cfg(test)]
    pub(crate) fn finish_in_windows(self, num_docs: u32, format: Format, window: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let writer = FieldWriter::in_windows(&mut bytes, format, num_docs, window).unwrap();
        self.write_with(num_docs, writer).unwrap();
        bytes
    }

    fn write_with(self, num_docs: u32, mut writer: FieldWriter<'_>) -> io::Result<()> {
        assert!(self.next_doc <= num_docs, "document {} of {num_docs}", self.next_doc.wrapping_sub(1));
        let mut buffers = self.buffers;
        let (mut docs, mut weights) = (Vec::new(), Vec::new());
        for (token, term) in self.terms.sorted() {
            let buffer = std::mem::take(&mut buffers[term as usize]);
            docs.clear();
            weights.clear();
            buffer.decode(&mut docs, &mut weights);
            writer.add_term(&token, &docs, &weights)?;
        }
        writer.finish(&self.presence)
    }
}

impl TermBuffer {
    fn decode(&self, docs: &mut Vec<u32>, weights: &mut Vec<u16>) {
        let mut bytes = self.postings.iter().copied();
        let mut next = || bytes.next().unwrap_or(0);
        let mut next_doc = 0;
        for _ in 0..self.len {
            let (mut distance, mut shift) = (0, 0);
            loop {
                let byte = next();
                distance |= u32::from(byte & 127) << shift;
                shift += 7;
                if byte < 128 {
                    break;
                }
            }
            let doc = next_doc + distance;
            next_doc = doc + 1;
            docs.push(doc);
            weights.push(u16::from_le_bytes([next(), next()]));
        }
    }
}
