//! The reference: the simplest correct loops.

use super::{DenseTerm, GROUP, Implementation, lane};
use crate::bytes::u64_at;

pub(super) fn implementation() -> Implementation {
    Implementation { name: "scalar", add_dense, nonzero, at_least, rank }
}

fn add_dense(sums: &mut [u16], wanted: &[u64], terms: &[DenseTerm<'_>]) {
    for term in terms {
        let mut impacts = term.impacts.iter();
        for (group, (sums, wanted)) in sums.chunks_exact_mut(GROUP).zip(wanted).enumerate() {
            let mut bits = u64_at(term.bitmap, group * 8);
            while bits != 0 {
                let lane = usize::from(lane(bits.trailing_zeros() as u16));
                let impact = impacts.next().copied().filter(|_| *wanted != 0).unwrap_or(0);
                sums[lane] =
                    sums[lane].wrapping_add(((u32::from(impact) * u32::from(term.factor)) >> 8) as u16);
                bits &= bits - 1;
            }
        }
    }
}

fn nonzero(sums: &[u16], bits: &mut [u64]) {
    at_least(sums, 1, bits);
}

fn at_least(sums: &[u16], floor: u16, bits: &mut [u64]) {
    for (sums, word) in sums.chunks_exact(GROUP).zip(bits) {
        *word = 0;
        for document in 0..GROUP {
            *word |= u64::from(sums[usize::from(lane(document as u16))] >= floor) << document;
        }
    }
}

fn rank(block: &[u8; 64], end: u32) -> u32 {
    let word = end as usize / 64;
    let before: u32 = (0..word).map(|i| u64_at(block, i * 8).count_ones()).sum();
    before + (u64_at(block, word * 8) & ((1 << (end % 64)) - 1)).count_ones()
}
