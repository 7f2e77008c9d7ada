//! Little-endian numbers in borrowed, possibly unaligned bytes.
//!
//! Out of bounds reads give 0: positions are validated when a reader opens, and bytes changed
//! behind its back may give wrong answers, but neither a panic nor undefined behaviour.

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<N>) {
        Some(chunk) => *chunk,
        None => [0; N],
    }
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(chunk(bytes, at))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(chunk(bytes, at))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(chunk(bytes, at))
}

/// `bytes[start..start + len]`, or nothing when that is out of bounds.
#[inline]
pub(crate) fn slice(bytes: &[u8], start: usize, len: usize) -> &[u8] {
    start.checked_add(len).and_then(|end| bytes.get(start..end)).unwrap_or(&[])
}

/// First index in `0..len` for which `less` is false; `less` must be true on a prefix.
#[inline]
pub(crate) fn partition_point(len: usize, less: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if less(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
