//! Variable-length integers as written by tantivy: seven bits per byte, lowest first; the highest bit marks the last
//! byte.

/// Reads an integer of at most five bytes from the start of `bytes`, and removes it from them; 0 if there are none.
#[inline]
pub(crate) fn read(bytes: &mut &[u8]) -> u32 {
    let (mut number, mut shift) = (0, 0);
    while let [byte, rest @ ..] = *bytes {
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 != 0 || shift >= u32::BITS {
            break;
        }
    }
    number
}
