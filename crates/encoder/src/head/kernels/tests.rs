//! Every available implementation against scalar.

use proptest::prelude::*;

use super::{
    Bound, Bounds, DIM_STEP, Document, Kernels, Limits, PANEL, Pair, Panel, ROW_STEP, Rows, available,
    choose, scalar,
};
use crate::testing::states;

/// Dimensions and token counts around the lane and block sizes of all implementations.
const DIMS: &[usize] = &[4, 8, 12, 60, 64, 68, 128, 384];
const TOKENS: &[usize] = &[0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 23, 24, 25, 40];

struct Case {
    weights: Vec<i8>,
    values: Vec<i8>,
    dims: usize,
    limits: Limits,
    bounds: Bounds,
}

impl Case {
    fn new(levels: i8, dims: usize, tokens: usize, mut next: impl FnMut() -> i8) -> Self {
        // Numbers of 8 bits become numbers of `levels`.
        let within = |number: i8| (i32::from(number.max(-127)) * i32::from(levels) / 127) as i8;
        let weights = (0..dims * PANEL).map(|_| within(next())).collect();
        let values: Vec<i8> = (0..dims * tokens).map(|_| within(next())).collect();
        let mut bounds = Bounds::empty();
        let parts = [
            &mut bounds.scale,
            &mut bounds.spread,
            &mut bounds.residual,
            &mut bounds.slack,
            &mut bounds.bias,
        ];
        for (kind, numbers) in parts.into_iter().enumerate() {
            for number in numbers.iter_mut() {
                let unit = f32::from(next()) / 127.0;
                // The bias is signed and large enough that some pairs pass and some do not.
                *number = if kind == 4 { unit * 40.0 } else { unit.abs() * 0.01 };
            }
        }
        // Beyond the vocabulary.
        bounds.bias[31] = f32::NEG_INFINITY;
        let limits = Limits { scale: 0.03, error: 0.2, norm: 9.0, reach: 3.0 };
        Self { weights, values, dims, limits, bounds }
    }

    fn tokens(&self) -> usize {
        self.values.len() / self.dims
    }

    /// Index of a term's weight for a dimension in a panel, and in rows.
    fn places(&self, term: usize, dim: usize) -> [usize; 2] {
        [dim / DIM_STEP * PANEL * DIM_STEP + term * DIM_STEP + dim % DIM_STEP, term * self.dims + dim]
    }

    /// The pairs that one implementation finds at the first look, and those that it keeps at the second look of all
    /// pairs whose index `some` accepts.
    fn run(&self, kernels: &Kernels, some: impl Fn(usize) -> bool) -> (Vec<Pair>, Vec<Pair>) {
        let values: Vec<u8> =
            self.values.iter().map(|v| (*v as u8).wrapping_add(kernels.levels.shift)).collect();
        let document = Document::new(&values, self.tokens(), self.dims, self.limits);
        let sum = |term: usize, of: usize| -> i32 {
            (0..self.dims).map(|dim| i32::from(self.weights[self.places(term, dim)[of]])).sum()
        };
        let mut bounds = self.bounds.clone();
        bounds.sums = std::array::from_fn(|term| sum(term, 0));
        let mut found = Vec::new();
        kernels.screen(&Panel::new(&self.weights, &bounds), &document, 0, &mut Vec::new(), &mut found);
        // They come by token; in which order the terms come is up to the implementation.
        assert!(found.is_sorted_by_key(|pair| pair.token));
        found.sort_by_key(|pair| (pair.token, pair.term));
        let all = (0..self.tokens() * PANEL).filter(|at| some(*at));
        let mut kept: Vec<Pair> =
            all.map(|at| Pair { term: (at % PANEL) as u32, token: (at / PANEL) as u32 }).collect();
        if self.dims.is_multiple_of(ROW_STEP) {
            let bounds: Vec<Bound> = (0..PANEL)
                .map(|term| Bound {
                    scale: bounds.scale[term],
                    spread: bounds.spread[term],
                    residual: bounds.residual[term],
                    bias: bounds.bias[term],
                    sum: sum(term, 1),
                })
                .collect();
            let left = kernels.refine(&Rows::new(&self.weights, self.dims, &bounds), &document, &mut kept);
            kept.truncate(left);
        }
        (found, kept)
    }

    fn check(&self, kernels: &Kernels) {
        for step in [1, 3, 1000] {
            let some = |at: usize| at.is_multiple_of(step);
            assert_eq!(self.run(kernels, some), self.run(&scalar::KERNELS, some), "{}", kernels.name);
        }
    }
}

/// A random number generator with a fixed seed, so that failures can be repeated.
fn bytes(seed: u64) -> impl FnMut() -> i8 {
    let mut next = states(seed);
    move || (next() >> 24) as i8
}

#[test]
fn scalar_equals_the_definition() {
    let (dims, tokens) = (64, 9);
    let mut case = Case::new(127, dims, tokens, bytes(5));
    case.limits.scale = 0.3;
    let bounds = &case.bounds;
    let (found, kept) = case.run(&scalar::KERNELS, |_| true);
    let mut passed = 0;
    for token in 0..tokens {
        for term in 0..PANEL {
            for (of, pairs) in [&found, &kept].into_iter().enumerate() {
                let dot: f64 = (0..dims)
                    .map(|dim| {
                        let weight = case.weights[case.places(term, dim)[of]];
                        f64::from(weight) * f64::from(case.values[token * dims + dim])
                    })
                    .sum();
                // Only the first look has a slack.
                let slack = if of == 0 { bounds.slack[term] } else { 0.0 };
                let unit = f64::from(bounds.scale[term]) * f64::from(case.limits.scale);
                let logit = unit * dot
                    + f64::from(bounds.spread[term]) * f64::from(case.limits.error)
                    + f64::from(bounds.residual[term]) * f64::from(case.limits.norm)
                    + f64::from(slack) * f64::from(case.limits.reach)
                    + f64::from(bounds.bias[term]);
                let passes = pairs.contains(&Pair { term: term as u32, token: token as u32 });
                // Around the threshold the kernels may let one more through.
                assert!(passes || logit <= unit * 1e-3, "term {term}, token {token}: {logit}");
                assert!(!passes || logit > -3.0 * unit, "term {term}, token {token}: {logit}");
                passed += usize::from(passes);
            }
        }
    }
    assert!(passed > 0 && passed < 2 * tokens * PANEL, "the test tests nothing");
}

#[test]
fn scales_that_have_lost_their_digits_let_all_pass() {
    for kernels in available() {
        let mut case = Case::new(kernels.levels.most, 64, 3, bytes(9));
        case.bounds.scale = [0.1; PANEL];
        case.bounds.residual = [0.1; PANEL];
        case.bounds.bias = [-1e30; PANEL];
        let limits = case.limits;
        for limits in [Limits { norm: f32::INFINITY, ..limits }, Limits { error: f32::NAN, ..limits }] {
            case.limits = limits;
            let (found, kept) = case.run(kernels, |_| true);
            assert_eq!((found.len(), kept.len()), (3 * PANEL, 3 * PANEL), "{}: {limits:?}", kernels.name);
        }
        case.limits = Limits { scale: 0.0, ..limits };
        assert_eq!(case.run(kernels, |_| true).0.len(), 3 * PANEL, "{}", kernels.name);
    }
}

#[test]
fn all_implementations_equal_scalar_around_lane_sizes() {
    for kernels in available() {
        for &dims in DIMS {
            for &tokens in TOKENS {
                Case::new(kernels.levels.most, dims, tokens, bytes((dims * 1000 + tokens) as u64))
                    .check(kernels);
            }
        }
    }
}

#[test]
fn extreme_values_do_not_saturate() {
    for kernels in available() {
        let largest = kernels.levels.most;
        for (weight, value) in
            [(largest, largest), (-largest, largest), (largest, -largest), (-largest, -largest)]
        {
            let mut case = Case::new(kernels.levels.most, 128, 5, bytes(3));
            case.weights.fill(weight);
            case.values.fill(value);
            let dot = 128 * i32::from(weight) * i32::from(value);
            let (one, zero) = ([1.0; PANEL], [0.0; PANEL]);
            case.limits = Limits { scale: 1.0, error: 0.0, norm: 0.0, reach: 0.0 };
            for (less, expected) in [(0, 5 * PANEL), (3, 0)] {
                let bias = [(-dot - less) as f32 + 0.5; PANEL];
                case.bounds =
                    Bounds { scale: one, spread: zero, residual: zero, slack: zero, bias, sums: [0; PANEL] };
                let (found, kept) = case.run(kernels, |_| true);
                assert_eq!((found.len(), kept.len()), (expected, expected), "{}", kernels.name);
            }
        }
    }
}

#[test]
fn an_unknown_instruction_set_falls_back_to_the_best() {
    assert_eq!(choose(Some("z80")).name, available()[0].name);
    assert_eq!(choose(None).name, available()[0].name);
    assert_eq!(choose(Some("scalar")).name, "scalar");
    assert_eq!(choose(Some("amx")).name, available()[0].name, "decided for each decoder");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_implementations_equal_scalar(steps in 1usize..40, tokens in 0usize..40, seed in any::<u64>()) {
        for kernels in available() {
            Case::new(kernels.levels.most, steps * DIM_STEP, tokens, bytes(seed)).check(kernels);
        }
    }
}
