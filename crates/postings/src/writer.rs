//! Writes a sparse field term by term, in one pass and with one term's postings in memory.

use std::io::{self, Write};

use crate::block_max_bounds::codes_for;
use crate::frame::{Footer, Format, HEADER_BYTES, header, window_for};
use crate::layout::{CHUNK_BITMAP, CHUNK_LEVELS, REGION, level_place};
use crate::quantize::{ESCAPE, Scale, half_value};
use crate::record::{Kind, Record, Shape};

/// Streaming writer: terms in bytewise token order, then [`Self::finish`].
pub(crate) struct FieldWriter<'w> {
    out: &'w mut dyn Write,
    format: Format,
    shape: Shape,
    position: u64,
    crc: crc32fast::Hasher,
    token_offsets: Vec<u8>,
    token_bytes: Vec<u8>,
    records: Vec<u8>,
    term_count: u32,
    posting_count: u64,
    blob: Vec<u8>,
}

impl<'w> FieldWriter<'w> {
    pub(crate) fn new(out: &'w mut dyn Write, format: Format, num_docs: u32) -> io::Result<Self> {
        Self::in_windows(out, format, num_docs, window_for(num_docs))
    }

    /// Starts a field whose windows span `window` documents.
    pub(crate) fn in_windows(
        out: &'w mut dyn Write,
        format: Format,
        num_docs: u32,
        window: u32,
    ) -> io::Result<Self> {
        let mut writer = Self {
            out,
            format,
            shape: Shape::new(num_docs, window),
            position: 0,
            crc: crc32fast::Hasher::new(),
            token_offsets: 0_u32.to_le_bytes().to_vec(),
            token_bytes: Vec::new(),
            records: Vec::new(),
            term_count: 0,
            posting_count: 0,
            blob: Vec::new(),
        };
        writer.write(&header(format))?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.crc.update(bytes);
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Adds a term: documents ascending, weights as half bits, both of the same length. A term
    /// without postings is left out.
    pub(crate) fn add_term(&mut self, token: &str, docs: &[u32], weights: &[u16]) -> io::Result<()> {
        let Some(max) = weights.iter().copied().max() else { return Ok(()) };
        let df = docs.len() as u32;
        let kind = match self.format {
            Format::V1 => Kind::Plain,
            Format::V3 => self.shape.kind_for(df),
        };
        let mut blob = std::mem::take(&mut self.blob);
        blob.clear();
        if kind == Kind::Dense {
            // Levels and bitmaps start on a cache line.
            let padding = self.position.next_multiple_of(64) - self.position;
            self.write(&[0; 64][..padding as usize])?;
        }
        let mut record = Record { blob: self.position, df, escapes: 0, max, kind };
        match kind {
            Kind::Plain => {
                for (doc, weight) in docs.iter().zip(weights) {
                    blob.extend_from_slice(&doc.to_le_bytes());
                    blob.extend_from_slice(&half_value(*weight).to_le_bytes());
                }
            }
            Kind::Rare => {
                docs.iter().for_each(|doc| blob.extend_from_slice(&doc.to_le_bytes()));
                weights.iter().for_each(|weight| blob.extend_from_slice(&weight.to_le_bytes()));
            }
            Kind::Sparse => {
                self.encode_windows(docs, &mut blob);
                record.escapes = encode_weights(max, weights, &mut blob);
            }
            Kind::Dense => {
                let scale = Scale::new(max);
                let impacts: Vec<u8> = weights.iter().map(|weight| scale.impact(*weight)).collect();
                self.encode_bitmap(docs, &impacts, &mut blob);
                record.escapes = encode_weights(max, weights, &mut blob);
            }
        }
        debug_assert_eq!(blob.len() as u64, record.blob_bytes(&self.shape));
        self.write(&blob)?;
        self.blob = blob;
        record.encode(self.format, &mut self.records);
        self.token_bytes.extend_from_slice(token.as_bytes());
        let end = u32::try_from(self.token_bytes.len())
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "tokens of a segment exceed 4 GiB"))?;
        self.token_offsets.extend_from_slice(&end.to_le_bytes());
        self.term_count += 1;
        self.posting_count += u64::from(df);
        Ok(())
    }

    fn encode_windows(&self, docs: &[u32], blob: &mut Vec<u8>) {
        let mut at = 0;
        let Shape { window: size, windows, .. } = self.shape;
        for window in 0..=windows {
            let start = window as u64 * u64::from(size);
            while at < docs.len() && u64::from(docs[at]) < start {
                at += 1;
            }
            blob.extend_from_slice(&(at as u32).to_le_bytes());
        }
        docs.iter().for_each(|doc| blob.extend_from_slice(&((doc % size) as u16).to_le_bytes()));
    }

    fn encode_bitmap(&self, docs: &[u32], impacts: &[u8], blob: &mut Vec<u8>) {
        let chunks = self.shape.chunks;
        let mut highest = vec![0_u8; chunks * 128];
        for (doc, impact) in docs.iter().zip(impacts) {
            let block = &mut highest[*doc as usize / 8];
            *block = (*block).max(*impact);
        }
        let codes = codes_for(&highest);
        blob.resize(chunks * (CHUNK_LEVELS + CHUNK_BITMAP), 0);
        let (levels, bitmap) = blob.split_at_mut(chunks * CHUNK_LEVELS);
        for (block, highest) in highest.iter().enumerate() {
            let (byte, shift) = level_place(block % 128);
            let level = codes.partition_point(|code| code < highest) as u8;
            levels[block / 128 * CHUNK_LEVELS + byte] |= level << shift;
        }
        docs.iter().for_each(|doc| bitmap[*doc as usize / 8] |= 1 << (doc % 8));
        let (mut rank, mut region) = (0_u32, 0);
        let mut regions = Vec::new();
        let mut ranks = Vec::with_capacity(chunks * 16);
        for (at, bits) in bitmap.as_chunks::<16>().0.iter().enumerate() {
            if at % (REGION as usize / 128) == 0 {
                region = rank;
                regions.extend_from_slice(&region.to_le_bytes());
            }
            ranks.extend_from_slice(&((rank - region) as u16).to_le_bytes());
            rank += u128::from_le_bytes(*bits).count_ones();
        }
        blob.extend_from_slice(&ranks);
        blob.extend_from_slice(&regions);
        blob.extend_from_slice(&codes);
    }

    /// Writes the sections that follow the postings. `presence` has a bit per document, set if it has the
    /// field.
    pub(crate) fn finish(mut self, presence: &[u64]) -> io::Result<()> {
        let postings_end = self.position;
        if self.format == Format::V3 {
            // A kernel reads up to a window of impacts, and a vector more, behind any impact.
            self.write(&vec![0; self.shape.window as usize + 128])?;
        }
        let postings_crc = std::mem::take(&mut self.crc).finalize();
        let presence_at = self.position;
        let words = self.shape.num_docs.div_ceil(64) as usize;
        let mut bits = Vec::with_capacity(words * 8);
        for word in 0..words {
            bits.extend_from_slice(&presence.get(word).copied().unwrap_or(0).to_le_bytes());
        }
        self.write(&bits)?;
        let token_offsets = self.position;
        let offsets = std::mem::take(&mut self.token_offsets);
        self.write(&offsets)?;
        let token_bytes = self.position;
        let text = std::mem::take(&mut self.token_bytes);
        self.write(&text)?;
        let records_at = self.position;
        let records = std::mem::take(&mut self.records);
        self.write(&records)?;
        let footer = Footer {
            format: self.format,
            num_docs: self.shape.num_docs,
            docs_with_field: presence.iter().map(|word| word.count_ones()).sum(),
            term_count: self.term_count,
            window: self.shape.window,
            posting_count: self.posting_count,
            postings_end,
            presence: presence_at,
            token_offsets,
            token_bytes,
            records: records_at,
            footer: self.position,
            postings_crc,
            directory_crc: self.crc.finalize(),
        };
        debug_assert!(presence_at >= HEADER_BYTES as u64);
        self.out.write_all(&footer.encode())
    }
}

/// Appends impacts, residuals and escapes; returns the number of escapes.
fn encode_weights(max: u16, weights: &[u16], blob: &mut Vec<u8>) -> u32 {
    let scale = Scale::new(max);
    let impacts = blob.len();
    blob.extend(weights.iter().map(|weight| scale.impact(*weight)));
    let mut escapes = Vec::new();
    for (position, weight) in weights.iter().enumerate() {
        let residual = scale.residual(blob[impacts + position], *weight);
        blob.push(residual);
        if residual == ESCAPE {
            escapes.push(position as u32);
        }
    }
    escapes.iter().for_each(|position| blob.extend_from_slice(&position.to_le_bytes()));
    escapes.iter().for_each(|position| blob.extend_from_slice(&weights[*position as usize].to_le_bytes()));
    escapes.len() as u32
}
