//! Scalar reference implementation: the simplest correct loops.

use super::rows::Rows;

fn components(row: &[u8]) -> impl Iterator<Item = f32> {
    row.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

pub(super) fn dot(query: &[f32], row: &[u8]) -> f32 {
    query.iter().zip(components(row)).map(|(q, v)| q * v).sum()
}

pub(super) fn squared_distance(query: &[f32], row: &[u8]) -> f32 {
    query.iter().zip(components(row)).map(|(q, v)| (q - v) * (q - v)).sum()
}

pub(super) fn dot_i8(a: &[u8], b: &[u8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a as i8) * i32::from(*b as i8)).sum()
}

/// Number of differing bits. Works on eight bytes at a time, which is fast enough without vector
/// instructions.
pub(super) fn hamming(a: &[u8], b: &[u8]) -> u32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let whole = a.iter().zip(b).map(|(a, b)| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones());
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| (a ^ b).count_ones());
    whole.sum::<u32>() + rest.sum::<u32>()
}

pub(super) fn dots(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
    numbers.iter().zip(out).for_each(|(number, out)| *out = dot(query, rows.row(*number)));
}

pub(super) fn squared_distances(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
    numbers.iter().zip(out).for_each(|(number, out)| *out = squared_distance(query, rows.row(*number)));
}

pub(super) fn dots_i8(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    numbers.iter().zip(out).for_each(|(number, out)| *out = dot_i8(query, rows.row(*number)));
}
