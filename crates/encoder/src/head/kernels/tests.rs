//! Every available implementation against scalar.

use proptest::prelude::*;

use super::{DIM_STEP, Document, Kernels, Limits, PANEL, Panel, available, choose, scalar};

/// Dimensions and token counts around the lane and block sizes of all implementations.
const DIMS: &[usize] = &[4, 8, 12, 60, 64, 68, 128, 384];
const TOKENS: &[usize] = &[0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 23, 24, 25, 40];

struct Case {
    weights: Vec<i8>,
    values: Vec<i8>,
    corrections: Vec<i32>,
    dims: usize,
    limits: Limits,
    per_term: [[f32; PANEL]; 4],
}

impl Case {
    fn new(dims: usize, tokens: usize, mut next: impl FnMut() -> i8) -> Self {
        let weights = (0..dims * PANEL).map(|_| next().max(-127)).collect();
        let values: Vec<i8> = (0..dims * tokens).map(|_| next().max(-127)).collect();
        let corrections = values
            .chunks_exact(dims)
            .map(|token| -128 * token.iter().map(|v| i32::from(*v)).sum::<i32>())
            .collect();
        let mut per_term = [[0f32; PANEL]; 4];
        for (kind, numbers) in per_term.iter_mut().enumerate() {
            for number in numbers.iter_mut() {
                let unit = f32::from(next()) / 127.0;
                // The bias is signed and large enough that some terms pass and some do not.
                *number = if kind == 3 { unit * 40.0 } else { unit.abs() * 0.01 };
            }
        }
        let limits = Limits { scale: 0.03, error: 0.2, norm: 9.0 };
        Self { weights, values, corrections, dims, limits, per_term }
    }

    fn check(&self, kernels: &Kernels) {
        let panel = Panel::new(
            &self.weights,
            &self.per_term[0],
            &self.per_term[1],
            &self.per_term[2],
            &self.per_term[3],
        );
        let document = Document::new(&self.values, &self.corrections, self.dims, self.limits);
        let name = kernels.name;
        assert_eq!(
            kernels.maxima(&panel, &document),
            scalar::KERNELS.maxima(&panel, &document),
            "maxima, {name}"
        );
        assert_eq!(
            kernels.candidates(&panel, &document),
            scalar::KERNELS.candidates(&panel, &document),
            "candidates, {name}"
        );
    }
}

/// A fixed generator, so that a failure repeats.
fn bytes(seed: u64) -> impl FnMut() -> i8 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as i8
    }
}

#[test]
fn scalar_maxima_equal_the_definition() {
    let case = Case::new(8, 3, bytes(5));
    let panel =
        Panel::new(&case.weights, &case.per_term[0], &case.per_term[1], &case.per_term[2], &case.per_term[3]);
    let document = Document::new(&case.values, &case.corrections, case.dims, case.limits);
    let found = scalar::KERNELS.maxima(&panel, &document);
    for (term, found) in found.iter().enumerate() {
        let expected = (0..3).map(|token| {
            (0..8)
                .map(|dim| {
                    let weight =
                        case.weights[dim / DIM_STEP * PANEL * DIM_STEP + term * DIM_STEP + dim % DIM_STEP];
                    i32::from(weight) * i32::from(case.values[token * 8 + dim])
                })
                .sum::<i32>()
        });
        assert_eq!(Some(*found), expected.max(), "term {term}");
    }
}

#[test]
fn all_implementations_equal_scalar_around_lane_sizes() {
    for kernels in available() {
        for &dims in DIMS {
            for &tokens in TOKENS {
                Case::new(dims, tokens, bytes((dims * 1000 + tokens) as u64)).check(kernels);
            }
        }
    }
}

#[test]
fn extreme_values_do_not_saturate() {
    for kernels in available() {
        for (weight, value) in [(127i8, 127i8), (-127, 127), (127, -127), (-127, -127)] {
            let mut turn = 0usize;
            let dims = 128;
            let case = Case::new(dims, 5, || {
                turn += 1;
                if turn <= dims * PANEL { weight } else { value }
            });
            case.check(kernels);
        }
    }
}

#[test]
fn an_unknown_instruction_set_falls_back_to_the_best() {
    assert_eq!(choose(Some("z80")).name, available()[0].name);
    assert_eq!(choose(None).name, available()[0].name);
    assert_eq!(choose(Some("scalar")).name, "scalar");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_implementations_equal_scalar(steps in 1usize..40, tokens in 0usize..40, seed in any::<u64>()) {
        for kernels in available() {
            Case::new(steps * DIM_STEP, tokens, bytes(seed)).check(kernels);
        }
    }
}
