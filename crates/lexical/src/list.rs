//! Posting lists, read from the bytes that tantivy writes.
//!
//! tantivy's readers decode each block that they come to, with its frequencies. These decode documents only of blocks
//! that may hold a wanted one, and frequencies only where a score is wanted. A test compares both.
//!
//! A list is a skip list, with an entry for each full block, and the blocks themselves: differences of documents, then
//! frequencies, packed with as many bits as the largest needs. What fills no block is at the end, in variable length.
//!
//! Checksums are compared when an index is opened. Should bytes be damaged afterwards, no document is read from a skip
//! list of the wrong length, nor from a block that does not end with the document that the skip list says.

use bitpacking::{BitPacker, BitPacker4x};
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, TERMINATED};

use crate::varint;

/// Number of documents in a full block.
pub const BLOCK: usize = BitPacker4x::BLOCK_LEN;

/// Most bits of packed differences with which the sum of a block's documents always fits 32 bits.
const MAX_SAFE_BITS: u8 = 24;

/// The documents of a segment that contain one term, ascending, with the term's frequency in each.
#[derive(Clone, Copy)]
pub struct PostingList<'a> {
    skips: &'a [u8],
    /// Size of a skip list entry in bytes: 5, 8 or 12.
    entry: usize,
    data: &'a [u8],
    doc_freq: u32,
    /// Number of documents in the segment.
    max_doc: DocId,
}

/// Skip list entry: describes a full block.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Last document of the block.
    pub last: DocId,
    doc_bits: u8,
    /// Whether differences between documents (and frequencies) are stored minus one.
    strict: bool,
    count_bits: u8,
    /// Number of the term's positions in the block: the sum of the frequencies.
    positions: u32,
    /// Length code and frequency code of the block's highest-scoring document.
    best: (u8, u8),
}

impl Entry {
    /// Reads an entry of 5, 8 or 12 bytes.
    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (last, bits, size) = (number(0), bytes[4], bytes.len());
        let (count_bits, best) =
            if size > 5 { (bytes[5], (bytes[size - 2], bytes[size - 1])) } else { (0, (0, 0)) };
        let positions = if size > 8 { number(6) } else { 0 };
        Self { last, doc_bits: bits & 0x1f, strict: bits & 0x40 != 0, count_bits, positions, best }
    }

    /// Size of the block's packed documents in bytes.
    fn doc_bytes(&self) -> usize {
        usize::from(self.doc_bits) * BLOCK / 8
    }

    /// Size of the block's packed data in bytes.
    pub fn bytes(&self) -> usize {
        (usize::from(self.doc_bits) + usize::from(self.count_bits)) * BLOCK / 8
    }

    /// Length code and frequency of the block's highest-scoring document, by the segment's own average length.
    pub fn best(&self) -> (u8, f32) {
        // The highest code stands for all frequencies above.
        let frequency = if self.best.1 == u8::MAX { u32::MAX as f32 } else { f32::from(self.best.1) };
        (self.best.0, frequency)
    }
}

impl<'a> PostingList<'a> {
    /// Opens a term's posting list among the postings of its field in a segment of `max_doc` documents. A damaged
    /// list is an empty one.
    pub fn open(postings: &'a [u8], term: &TermInfo, option: IndexRecordOption, max_doc: DocId) -> Self {
        let entry = match option {
            IndexRecordOption::Basic => 5,
            IndexRecordOption::WithFreqs => 8,
            IndexRecordOption::WithFreqsAndPositions => 12,
        };
        let parts = || {
            let mut data = postings.get(term.postings_range.clone())?;
            let blocks = term.doc_freq as usize / BLOCK;
            let length = if blocks > 0 { varint::read(&mut data) as usize } else { 0 };
            data.split_at_checked(length).filter(|_| length == blocks * entry)
        };
        match parts() {
            Some((skips, data)) => Self { skips, entry, data, doc_freq: term.doc_freq, max_doc },
            None => Self { skips: &[], entry, data: &[], doc_freq: 0, max_doc },
        }
    }

    /// Number of documents that contain the term.
    pub fn doc_freq(&self) -> u32 {
        self.doc_freq
    }

    /// Number of full blocks.
    pub fn blocks(&self) -> usize {
        self.doc_freq as usize / BLOCK
    }

    /// Skip list entry of the full block with this index.
    #[inline]
    pub fn entry(&self, block: usize) -> Entry {
        Entry::read(&self.skips[block * self.entry..(block + 1) * self.entry])
    }

    /// The entries of all full blocks.
    #[inline]
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.skips.chunks_exact(self.entry).map(Entry::read)
    }

    /// Last document of the full block with this index; [`TERMINATED`] for the incomplete block after them.
    #[inline]
    pub fn last(&self, block: usize) -> DocId {
        match self.skips.get(block * self.entry..block * self.entry + 4) {
            Some(bytes) => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            None => TERMINATED,
        }
    }

    fn has_counts(&self) -> bool {
        self.entry > 5
    }
}

/// A decoded block of a list.
pub(crate) struct Block {
    /// The block's documents, ascending, filled up with [`TERMINATED`].
    docs: [DocId; BLOCK],
    counts: [u32; BLOCK],
    /// Number of documents in the block.
    len: usize,
    /// Byte offset of the frequencies in the list's data; `None` once they are decoded.
    counts_at: Option<usize>,
}

impl Block {
    pub(crate) fn new() -> Self {
        Self { docs: [TERMINATED; BLOCK], counts: [1; BLOCK], len: 0, counts_at: None }
    }

    /// Decodes the documents of a block whose bytes start at `offset`; `before` is the last document of the preceding
    /// block. A damaged block has no documents.
    pub fn decode(&mut self, list: &PostingList<'_>, block: usize, offset: usize, before: DocId) {
        if block >= list.blocks() {
            return self.decode_rest(list, offset, before);
        }
        let entry = list.entry(block);
        let packed = list.data.get(offset..).unwrap_or_default();
        if packed.len() < entry.doc_bytes() || entry.last >= list.max_doc {
            return self.clear();
        }
        let packer = BitPacker4x::new();
        let used = if entry.strict {
            let before = (before != 0).then_some(before);
            packer.decompress_strictly_sorted(before, packed, &mut self.docs, entry.doc_bits)
        } else {
            packer.decompress_sorted(before, packed, &mut self.docs, entry.doc_bits)
        };
        // Only sums of such wide differences can exceed 32 bits, and be in no order.
        let may_wrap = entry.doc_bits > MAX_SAFE_BITS && !self.docs.is_sorted();
        if self.docs[BLOCK - 1] != entry.last || may_wrap {
            return self.clear();
        }
        self.len = BLOCK;
        self.counts_at = Some(offset + used);
    }

    fn clear(&mut self) {
        self.docs.fill(TERMINATED);
        self.len = 0;
        self.counts_at = None;
    }

    fn decode_rest(&mut self, list: &PostingList<'_>, offset: usize, before: DocId) {
        self.len = list.doc_freq as usize % BLOCK;
        self.docs[self.len..].fill(TERMINATED);
        self.counts_at = None;
        let mut rest = if self.len == 0 { &[][..] } else { list.data.get(offset..).unwrap_or_default() };
        let mut doc = before;
        for slot in &mut self.docs[..self.len] {
            doc = doc.saturating_add(varint::read(&mut rest));
            *slot = doc;
        }
        if self.len > 0 && doc >= list.max_doc {
            return self.clear();
        }
        for slot in &mut self.counts[..self.len] {
            *slot = if list.has_counts() { varint::read(&mut rest) } else { 1 };
        }
    }

    /// The block's documents and the term's frequency in each, decoding the frequencies if needed. `list` and `block`
    /// must be those that were decoded.
    pub fn with_counts(&mut self, list: &PostingList<'_>, block: usize) -> (&[DocId], &[u32]) {
        if let Some(offset) = self.counts_at.take() {
            if list.has_counts() {
                let entry = list.entry(block);
                let packed = list.data.get(offset..).unwrap_or_default();
                if entry.count_bits > 32 || packed.len() < entry.bytes() - entry.doc_bytes() {
                    self.clear();
                    return (&[], &[]);
                }
                BitPacker4x::new().decompress(packed, &mut self.counts, entry.count_bits);
                if entry.strict {
                    self.counts.iter_mut().for_each(|count| *count = count.wrapping_add(1));
                }
            } else {
                self.counts.fill(1);
            }
        }
        (&self.docs[..self.len], &self.counts[..self.len])
    }

    /// Index of the first document at or after `target`, which must not be beyond the last document of a full block.
    #[inline]
    pub fn find(&self, target: DocId) -> usize {
        let mut at = 0;
        for step in [64, 32, 16, 8, 4, 2, 1] {
            at += if self.docs[at + step - 1] < target { step } else { 0 };
        }
        at
    }

    #[inline]
    pub fn doc(&self, at: usize) -> DocId {
        self.docs[at]
    }
}

/// Cursor in a posting list, which only moves forward.
pub struct Cursor<'a> {
    list: PostingList<'a>,
    number: usize,
    offset: usize,
    /// Last document of the block before.
    before: DocId,
    last: DocId,
    /// Number of the term's positions in all preceding blocks.
    positions: u64,
    block: Block,
    decoded: bool,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor before the first document; [`Cursor::seek`] has to be called first.
    pub fn new(list: PostingList<'a>) -> Self {
        let last = list.last(0);
        let block = Block::new();
        Self { list, number: 0, offset: 0, before: 0, last, positions: 0, block, decoded: false, at: 0 }
    }

    /// Moves to the first document at or after `target` and returns it. Targets must not decrease from call to call.
    #[inline]
    pub fn seek(&mut self, target: DocId) -> DocId {
        if self.last < target {
            self.skip(target);
        }
        if !self.decoded {
            self.block.decode(&self.list, self.number, self.offset, self.before);
            self.decoded = true;
            self.at = 0;
        }
        if self.block.docs[self.at] < target {
            // Where each document is gone to, it is the next one.
            let next = self.at + 1;
            let is_next = self.block.docs.get(next).is_some_and(|doc| *doc >= target);
            self.at = if is_next { next } else { self.block.find(target) };
        }
        self.block.docs[self.at]
    }

    fn skip(&mut self, target: DocId) {
        while self.last < target {
            let entry = self.list.entry(self.number);
            self.offset += entry.bytes();
            self.positions += u64::from(entry.positions);
            self.before = self.last;
            self.number += 1;
            self.last = self.list.last(self.number);
        }
        self.decoded = false;
    }

    /// Frequency of the term in the current document.
    #[inline]
    pub fn count(&mut self) -> u32 {
        self.block.with_counts(&self.list, self.number).1.get(self.at).copied().unwrap_or(1)
    }

    /// Number of the term's positions in all documents before the current one.
    pub fn positions_before(&mut self) -> u64 {
        let (_, counts) = self.block.with_counts(&self.list, self.number);
        self.positions + counts.iter().take(self.at).map(|count| u64::from(*count)).sum::<u64>()
    }
}
