//! The reference implementation in plain loops: always compiled, and the fallback on every processor.

use crate::head::quantize::Quantized;

use super::{DIM_STEP, Document, Kernels, Levels, PANEL, Pair, Panel, Rows, keep, thresholds};

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    levels: Levels { most: 127, shift: 0 },
    quantise: Quantized::whole,
    quantise_turned: Quantized::turned,
    screen,
    collect,
    refine,
    release: || {},
};

fn screen(panel: &Panel<'_>, document: &Document<'_>, masks: &mut [u32]) {
    let thresholds = thresholds(panel.bounds, &document.limits, 0);
    let dims = panel.dims();
    for (token, mask) in masks.iter_mut().enumerate() {
        let mut dots = [0i32; PANEL];
        let columns = panel.weights.chunks_exact(PANEL * DIM_STEP);
        for (four, column) in document.values[token * dims..][..dims].chunks_exact(DIM_STEP).zip(columns) {
            for (dot, weights) in dots.iter_mut().zip(column.chunks_exact(DIM_STEP)) {
                for (weight, value) in weights.iter().zip(four) {
                    *dot += i32::from(*weight) * i32::from(*value as i8);
                }
            }
        }
        *mask = above(&dots, &thresholds);
    }
}

/// A mask with bit `i` set if dot product `i` is above threshold `i`.
pub(super) fn above(dots: &[i32; PANEL], thresholds: &[i32; PANEL]) -> u32 {
    let pairs = dots.iter().zip(thresholds).enumerate();
    pairs.fold(0, |mask, (term, (dot, threshold))| mask | u32::from(dot > threshold) << term)
}

pub(super) fn collect(masks: &[u32], first: u32, pairs: &mut Vec<Pair>) {
    for (token, &mask) in masks.iter().enumerate() {
        let mut left = mask;
        while left != 0 {
            pairs.push(Pair { term: first + left.trailing_zeros(), token: token as u32 });
            left &= left - 1;
        }
    }
}

pub(super) fn refine(rows: &Rows<'_>, document: &Document<'_>, pairs: &mut [Pair]) -> usize {
    keep(rows, document, 0, pairs, |row, values| {
        row.iter().zip(values).map(|(w, v)| i32::from(*w) * i32::from(*v as i8)).sum()
    })
}
