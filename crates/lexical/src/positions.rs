//! Positions of a term in its documents, read from the bytes that tantivy writes.

use bitpacking::{BitPacker, BitPacker4x};
use tantivy::postings::TermInfo;

use crate::list::BLOCK;
use crate::varint;

/// Reader of one term's positions in its documents. Documents must be read in ascending order.
pub struct Positions<'a> {
    /// Bit width of the positions in each full block.
    widths: &'a [u8],
    data: &'a [u8],
    number: usize,
    offset: usize,
    /// The decoded block `number`: each position as the difference from the previous one in the same document.
    block: [u32; BLOCK],
    decoded: bool,
}

impl<'a> Positions<'a> {
    /// Opens a term's positions among those of its field. Damaged ones are in no order, or fewer.
    pub fn open(positions: &'a [u8], term: &TermInfo) -> Self {
        let mut data = positions.get(term.positions_range.clone()).unwrap_or_default();
        let blocks = varint::read(&mut data) as usize;
        let (widths, data) = data.split_at_checked(blocks).unwrap_or_default();
        Self { widths, data, number: 0, offset: 0, block: [0; BLOCK], decoded: false }
    }

    /// Replaces `out` by the positions of a document, with `shift` added to each: `count` positions, after `before`
    /// positions in earlier documents.
    pub fn read(&mut self, before: u64, count: u32, shift: u32, out: &mut Vec<u32>) {
        out.clear();
        let mut position = shift;
        // As many as there can be: what fills no block follows the full ones.
        let most = (self.widths.len() + 1) * BLOCK;
        let (mut at, end) = (before as usize, (before as usize).saturating_add(count as usize).min(most));
        while at < end {
            self.go_to(at / BLOCK);
            let here = &self.block[at % BLOCK..(end - at / BLOCK * BLOCK).min(BLOCK)];
            at += here.len();
            out.extend(here.iter().map(|step| {
                position = position.wrapping_add(*step);
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
        let mut data = self.data.get(self.offset..).unwrap_or_default();
        match self.widths.get(number) {
            Some(bits) if *bits > 32 || data.len() < usize::from(*bits) * BLOCK / 8 => self.block.fill(0),
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
