//! NEON: bytes expanded 8 at a time by a table look-up, multiplied 4 at a time.

use std::arch::aarch64::*;

use super::{DenseTerm, GROUP, Implementation, scalar};
use crate::bytes::u64_at;

/// NEON implementation, or `None` if this machine lacks the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    let scalar = scalar::implementation();
    std::arch::is_aarch64_feature_detected!("neon").then_some(Implementation {
        name: "neon",
        scanned_share: scalar.scanned_share,
        add_dense,
        to_lanes: scalar.to_lanes,
        nonzero: scalar.nonzero,
        at_least,
        rank: scalar.rank,
        scatter: scalar.scatter,
        mask: scalar.mask,
        mark: scalar.mark,
        bounds: scalar.bounds,
        wanted_bounds: scalar.wanted_bounds,
        scopes: scalar.scopes,
        coarse_bounds: scalar.coarse_bounds,
        start: scalar.start,
        select: scalar.select,
        first_highest: scalar.first_highest,
        find_blocks: scalar.find_blocks,
        add_blocks: scalar.add_blocks,
        count: scalar.count,
        find_dense: scalar.find_dense,
        find_sparse: scalar.find_sparse,
        list: scalar.list,
        highest: scalar.highest,
        bound_documents: scalar.bound_documents,
        strict: scalar.strict,
    })
}

/// For every 8-bit mask, a byte shuffle that expands packed bytes to the set bits' positions; 255 yields 0.
static PLACES: [[u8; 8]; 256] = {
    let mut places = [[255; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut bit, mut next) = (0, 0);
        while bit < 8 {
            if mask >> bit & 1 == 1 {
                places[mask][bit] = next;
                next += 1;
            }
            bit += 1;
        }
        mask += 1;
    }
    places
};

fn add_dense(sums: &mut [u16], wanted: &[u64], terms: &[DenseTerm<'_>]) {
    for term in terms {
        // SAFETY: implementation() found the instructions; Implementation::add_dense checked that
        // `sums` is whole groups and that the term covers them.
        unsafe { pass(sums, wanted, term) }
    }
}

/// # Safety
/// `sums` holds whole groups; the term's impacts have 64 bytes per group and 64 more.
#[target_feature(enable = "neon")]
unsafe fn pass(sums: &mut [u16], wanted: &[u64], term: &DenseTerm<'_>) {
    let mut impacts = term.impacts.as_ptr();
    for (group, (sums, wanted)) in sums.chunks_exact_mut(GROUP).zip(wanted).enumerate() {
        let mask = u64_at(term.bitmap, group * 8);
        if *wanted == 0 || mask == 0 {
            // SAFETY: at most 64 impacts per group are consumed.
            impacts = unsafe { impacts.add(mask.count_ones() as usize) };
            continue;
        }
        for (pair, bytes) in mask.to_le_bytes().as_chunks::<2>().0.iter().enumerate() {
            let mut expanded = [vdup_n_u8(0); 2];
            for (byte, slot) in bytes.iter().zip(&mut expanded) {
                // SAFETY: before group g at most 64·g impacts were consumed, and at most 8 per step
                // since, so 8 bytes from here are inside the slice; a row of places is 8 bytes.
                unsafe {
                    *slot = vtbl1_u8(vld1_u8(impacts), vld1_u8(PLACES[usize::from(*byte)].as_ptr()));
                    impacts = impacts.add(byte.count_ones() as usize);
                }
            }
            let both = vreinterpretq_u16_u8(vcombine_u8(expanded[0], expanded[1]));
            let even = contribution(vandq_u16(both, vdupq_n_u16(0xff)), term.factor);
            let odd = contribution(vshrq_n_u16(both, 8), term.factor);
            let lanes = sums.as_mut_ptr();
            // SAFETY: `pair` is below 4, so 8 lanes at 8·pair and at 32 + 8·pair are in the group.
            unsafe {
                let at = lanes.add(pair * 8);
                vst1q_u16(at, vaddq_u16(vld1q_u16(at), even));
                let at = lanes.add(32 + pair * 8);
                vst1q_u16(at, vaddq_u16(vld1q_u16(at), odd));
            }
        }
    }
}

/// `impact * factor >> 8` of eight impacts; fits 16 bits.
#[target_feature(enable = "neon")]
fn contribution(impacts: uint16x8_t, factor: u16) -> uint16x8_t {
    let low = vshrn_n_u32(vmull_n_u16(vget_low_u16(impacts), factor), 8);
    let high = vshrn_n_u32(vmull_n_u16(vget_high_u16(impacts), factor), 8);
    vcombine_u16(low, high)
}

fn at_least(sums: &[u16], floor: u16, bits: &mut [u64]) {
    // SAFETY: implementation() found the instructions.
    unsafe { at_least_groups(sums, floor, bits) }
}

/// Sets the bits of documents whose sum is at least `floor`. Few groups have one: the others are skipped by
/// their maximum.
#[target_feature(enable = "neon")]
fn at_least_groups(sums: &[u16], floor: u16, bits: &mut [u64]) {
    for (sums, word) in sums.chunks_exact(GROUP).zip(bits) {
        let mut highest = vdupq_n_u16(0);
        for lanes in sums.chunks_exact(8) {
            // SAFETY: the chunk holds 8 lanes.
            highest = vmaxq_u16(highest, unsafe { vld1q_u16(lanes.as_ptr()) });
        }
        if vmaxvq_u16(highest) < floor {
            *word = 0;
        } else {
            (scalar::implementation().at_least)(sums, floor, std::slice::from_mut(word));
        }
    }
}
