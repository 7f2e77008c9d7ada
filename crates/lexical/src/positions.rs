//! Where a term stands in its documents, read from the bytes that tantivy writes.

use bitpacking::{BitPacker, BitPacker4x};
use tantivy::postings::TermInfo;

use crate::list::BLOCK;
use crate::varint;

/// The positions of one term, document after document. Places in it must ascend.
pub struct Positions<'a> {
    /// Bits of each position, by full block.
    widths: &'a [u8],
    data: &'a [u8],
    number: usize,
    offset: usize,
    /// The block `number`, when it is decoded: each position less the one before in the same document.
    block: [u32; BLOCK],
    decoded: bool,
}

impl<'a> Positions<'a> {
    /// Positions of a term among those of its field.
    pub fn open(positions: &'a [u8], term: &TermInfo) -> Self {
        let mut data = &positions[term.positions_range.clone()];
        let blocks = varint::read(&mut data) as usize;
        let (widths, data) = data.split_at(blocks);
        Self { widths, data, number: 0, offset: 0, block: [0; BLOCK], decoded: false }
    }

    /// Replaces `out` by the positions of a document, each more by `shift`: `count` of them, after `before` others of the term.
    pub fn read(&mut self, before: u64, count: u32, shift: u32, out: &mut Vec<u32>) {
        out.clear();
        let mut position = shift;
        let (mut at, end) = (before as usize, before as usize + count as usize);
        while at < end {
            self.go_to(at / BLOCK);
            let here = &self.block[at % BLOCK..(end - at / BLOCK * BLOCK).min(BLOCK)];
            at += here.len();
            out.extend(here.iter().map(|step| {
                position += step;
                position
            }));
        }
    }

    fn go_to(&mut self, number: usize) {
        if self.number < number {
            let passed = &self.widths[self.number..number];
            self.offset += passed.iter().map(|bits| usize::from(*bits)).sum::<usize>() * BLOCK / 8;
            self.number = number;
            self.decoded = false;
        }
        if self.decoded {
            return;
        }
        self.decoded = true;
        let mut data = &self.data[self.offset..];
        match self.widths.get(number) {
            Some(bits) => {
                BitPacker4x::new().decompress(data, &mut self.block, *bits);
            }
            None => {
                for slot in &mut self.block {
                    *slot = varint::read(&mut data);
                }
            }
        }
    }
}
