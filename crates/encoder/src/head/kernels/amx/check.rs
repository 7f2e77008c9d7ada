//! Two kernels against each other, before the first use.

use crate::head::kernels::{Bounds, DIM_STEP, Document, Kernels, Limits, PANEL, Panel};

/// Dimensions and tokens: one tile, part of one, several, and several steps.
const SHAPES: [(usize, usize); 5] = [(4, 1), (68, 5), (128, 16), (128, 37), (768, 33)];

/// Whether two implementations with the same levels give the same masks on samples in which the last digit of the integers decides: for
/// each pair of a term and a token, the threshold is once its dot product and once one less.
pub(super) fn agree(one: &Kernels, other: &Kernels) -> bool {
    let agree = (one.levels, one.shift) == (other.levels, other.shift)
        && SHAPES.iter().all(|&(dims, tokens)| agree_on(one, other, dims, tokens));
    (one.release)();
    agree
}

fn agree_on(one: &Kernels, other: &Kernels, dims: usize, tokens: usize) -> bool {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) % (2 * one.levels as u64 + 1)) as i32 - i32::from(one.levels)
    };
    let weights: Vec<i8> = (0..dims * PANEL).map(|_| next() as i8).collect();
    let values: Vec<u8> = (0..dims * tokens).map(|_| (next() as u8).wrapping_add(one.shift)).collect();
    let number =
        |token: usize, dim: usize| i32::from(values[token * dims + dim].wrapping_sub(one.shift) as i8);
    let weight = |term: usize, dim: usize| {
        i32::from(weights[(dim / DIM_STEP * PANEL + term) * DIM_STEP + dim % DIM_STEP])
    };
    let dot = |term: usize, token: usize| -> i32 {
        (0..dims).map(|dim| weight(term, dim) * number(token, dim)).sum()
    };
    let dots: Vec<[i32; PANEL]> =
        (0..tokens).map(|token| std::array::from_fn(|term| dot(term, token))).collect();
    let limits = Limits { scale: 1.0, error: 0.0, norm: 0.0, reach: 0.0 };
    let document = Document::new(&values, tokens, dims, limits);
    let mut bounds = Bounds::empty();
    bounds.sums = std::array::from_fn(|term| (0..dims).map(|dim| weight(term, dim)).sum());
    (0..2 * tokens).all(|at| {
        // The threshold becomes one less than the bias; all of these are whole numbers that an f32 holds.
        let least = |term: usize| dots[(term + at / 2) % tokens][term] + (at % 2) as i32;
        bounds.bias = std::array::from_fn(|term| -least(term) as f32);
        let panel = Panel::new(&weights, &bounds);
        let (mut masks, mut wanted) = (vec![0; tokens], vec![0; tokens]);
        (one.screen)(&panel, &document, &mut masks);
        (other.screen)(&panel, &document, &mut wanted);
        masks == wanted
    })
}
