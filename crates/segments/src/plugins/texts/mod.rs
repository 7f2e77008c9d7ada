//! The terms of texts in a segment that is being written.
//!
//! tantivy makes postings on the one thread that writes a segment, token by token. Here that thread finds the work half done: the
//! thread that prepares a document inverts each of its texts ([`TextInverter`]), so that a term comes once with all its positions, and the thread only
//! adds these to the terms of the segment ([`TermBuffer`]). At the end, tantivy's own serializers write the four files of the inverted
//! index again, with the texts in them ([`files`]): they are, byte for byte, what tantivy would have written, so nothing that reads or
//! merges segments knows the difference.

mod buffer;
mod document;
mod files;
#[cfg(test)]
mod tests;

pub use buffer::TermBuffer;
pub use document::{MAX_TERM_BYTES, TextInverter};

/// Appends a number in groups of seven bits, the lowest first; all bytes but the last have the highest bit set.
fn write_vint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what [`write_vint`] wrote, and moves behind it. The end of the bytes ends the number.
#[inline]
fn read_vint(bytes: &mut &[u8]) -> u32 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u32::from(byte & 0x7F).wrapping_shl(shift);
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    number
}
