//! Scalar reference implementation: the simplest correct loops.

use super::PLANES;
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

pub(super) fn dots_int4(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    numbers.iter().zip(out).for_each(|(number, out)| *out = dot_int4(query, rows.row(*number)));
}

pub(super) fn dots_bits(planes: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    let length = planes.len() / PLANES;
    for (number, out) in numbers.iter().zip(out) {
        *out = dot_bits(planes, length, &rows.row(*number)[..length]);
    }
}

/// Product of a vector of i8 with a row of half as many bytes or more.
pub(super) fn dot_int4(query: &[u8], row: &[u8]) -> i32 {
    let (first, second) = query.split_at(query.len() / 2);
    dot_int4_halves(first, second, row)
}

/// Product of the two halves of a vector of i8 with the lower and the upper bits of a row.
pub(super) fn dot_int4_halves(first: &[u8], second: &[u8], row: &[u8]) -> i32 {
    let product = |number: u8, code: u8| i32::from(number as i8) * i32::from(code);
    let halves = first.iter().zip(second).zip(row);
    halves.map(|((first, second), codes)| product(*first, codes & 15) + product(*second, codes >> 4)).sum()
}

/// Product of a vector, given as planes of bits that begin `stride` bytes apart, with a row of bits.
pub(super) fn dot_bits(planes: &[u8], stride: usize, row: &[u8]) -> i32 {
    let common = |plane: usize| {
        let bits = &planes[plane * stride..];
        let ((bits, bits_rest), (row, row_rest)) = (bits[..row.len()].as_chunks::<8>(), row.as_chunks::<8>());
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let whole: u32 = bits.iter().zip(row).map(|(a, b)| (word(a) & word(b)).count_ones()).sum();
        let rest: u32 = bits_rest.iter().zip(row_rest).map(|(a, b)| (a & b).count_ones()).sum();
        (whole + rest) as i32
    };
    common(0) + 2 * common(1) + 4 * common(2) - 8 * common(3)
}
