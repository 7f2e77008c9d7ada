//! Portable kernels, with which the other implementations are compared.

use super::{Candidates, GROUP, Implementation};

pub(super) fn implementation() -> Implementation {
    Implementation { name: "scalar", count, collect }
}

fn count(sums: &[[f32; GROUP]], floor: f32) -> usize {
    sums.iter().map(|sums| sums.iter().map(|sum| u32::from(*sum >= floor)).sum::<u32>() as usize).sum()
}

fn collect(sums: &mut [[f32; GROUP]], floor: f32, start: u32, found: &mut Candidates) {
    let mut len = 0;
    for (first, sums) in (start..).step_by(GROUP).zip(sums) {
        if sums.iter().fold(0, |any, sum| any | u32::from(*sum >= floor)) != 0 {
            for (doc, sum) in (first..).zip(&*sums) {
                (found.docs[len], found.sums[len]) = (doc, *sum);
                len += usize::from(*sum >= floor);
            }
        }
        *sums = [0.0; GROUP];
    }
    found.len = len;
}
