//! AVX-512 with VNNI: one instruction multiplies and adds four bytes per 32-bit lane.

use std::arch::x86_64::*;

use super::rows::{Rows, TOGETHER, in_fours};
use super::{Implementation, avx512};

const BYTES: usize = 64;

/// AVX-512 VNNI implementation, or `None` if this machine lacks the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    let detected = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni");
    let floats = avx512::implementation().filter(|_| detected)?;
    Some(Implementation { name: "avx512_vnni", dots_i8, ..floats })
}

fn dots_i8(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // SAFETY: implementation() handed this function out only after it found the instructions.
    unsafe { dots_i8_lanes(query, rows, numbers, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dots_i8_lanes(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // The instruction wants one side without signs: rows are moved up by 128, which the sums take back.
    let moved = 128 * query.iter().map(|code| i32::from(*code as i8)).sum::<i32>();
    in_fours(rows, numbers, out, |four| sums(query, four).map(|sum| sum - moved));
}

/// Dot products of the query with rows of the same length, whose components are offset by 128.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sums(query: &[u8], rows: [&[u8]; TOGETHER]) -> [i32; TOGETHER] {
    let length = rows.iter().fold(query.len(), |length, row| length.min(row.len()));
    let up = _mm512_set1_epi8(-128);
    let mut sums = [_mm512_setzero_si512(); TOGETHER];
    let mut at = 0;
    while at + BYTES <= length {
        // SAFETY: BYTES bytes from `at` on are within the query and each row, and the loads need no alignment.
        unsafe {
            let q = _mm512_loadu_si512(query.as_ptr().add(at).cast());
            for (sum, row) in sums.iter_mut().zip(rows) {
                let row = _mm512_xor_si512(_mm512_loadu_si512(row.as_ptr().add(at).cast()), up);
                *sum = _mm512_dpbusd_epi32(*sum, row, q);
            }
        }
        at += BYTES;
    }
    if at < length {
        let tail_mask = (1_u64 << (length - at)) - 1;
        // SAFETY: the mask leaves only bytes within the query and each row; the others are not read.
        unsafe {
            let q = _mm512_maskz_loadu_epi8(tail_mask, query.as_ptr().add(at).cast());
            for (sum, row) in sums.iter_mut().zip(rows) {
                let row =
                    _mm512_xor_si512(_mm512_maskz_loadu_epi8(tail_mask, row.as_ptr().add(at).cast()), up);
                *sum = _mm512_dpbusd_epi32(*sum, row, q);
            }
        }
    }
    sums.map(|sum| _mm512_reduce_add_epi32(sum))
}
