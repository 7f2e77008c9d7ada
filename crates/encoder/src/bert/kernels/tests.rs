//! Every available implementation against plain f64 loops.

use proptest::prelude::*;

use super::{Attention, Epilogue, Function, Kernels, Linear, Norm, STEP, available};
use crate::fixed::Precision;
use crate::table::Table;
use crate::testing::numbers;

/// The error function by its series, exact enough for doubles up to 4.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.5 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn gelu(x: f64) -> f64 {
    x / 2.0 * (1.0 + erf(x / std::f64::consts::SQRT_2))
}

#[track_caller]
fn close(kernels: &Kernels, found: f32, expected: f64, slack: f64) {
    assert!((f64::from(found) - expected).abs() <= slack, "{}: {found}, not {expected}", kernels.name);
}

#[test]
fn exponentials_and_gelu_are_accurate() {
    for kernels in available() {
        let arguments: Vec<f32> = (0..32 * 1024).map(|at| at as f32 * (-90.0 / 32768.0)).collect();
        let mut found = arguments.clone();
        kernels.map(Function::Exp, &mut found);
        for (x, found) in arguments.iter().zip(found) {
            let expected = f64::from(x.max(-87.0)).exp();
            close(kernels, found, expected, expected * 3e-7);
        }
        let arguments: Vec<f32> = (0..32 * 1024).map(|at| (at as f32 / 16384.0 - 1.0) * 8.0).collect();
        let mut found = arguments.clone();
        kernels.map(Function::Gelu, &mut found);
        for (x, found) in arguments.iter().zip(found) {
            close(kernels, found, gelu(f64::from(*x)), 4e-7 * f64::from(x.abs()) + 1e-9);
        }
    }
}

fn check_linear(rows: usize, depth: usize, columns: usize, seed: u64) {
    let mut next = numbers(seed);
    let weights: Vec<f32> = (0..depth * columns).map(|_| next()).collect();
    let bias: Vec<f32> = (0..columns).map(|_| next()).collect();
    let input: Vec<f32> = (0..rows * depth).map(|_| next()).collect();
    for kernels in available() {
        for (precision, epilogue) in [
            (Precision::F32, Epilogue::None),
            (Precision::F32, Epilogue::Gelu),
            (Precision::Fixed, Epilogue::None),
            (Precision::Fixed, Epilogue::Gelu),
        ] {
            let weight = |row: usize, column: usize| weights[row * columns + column];
            let linear = Linear::new(kernels, depth, bias.clone(), precision, weight);
            let mut out = vec![f32::NAN; rows * columns];
            // What an earlier call has left there must not matter.
            let mut scratch = vec![f32::NAN; seed as usize % 1000];
            kernels.linear(&linear, &input, epilogue, &mut scratch, &mut out);
            for (at, found) in out.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let (mut sum, mut size) = (f64::from(bias[column]), 1.0);
                let largest =
                    (0..depth).fold(0f64, |largest, k| largest.max(f64::from(weight(k, column)).abs()));
                let mut lost = 0.0;
                for k in 0..depth {
                    let product =
                        f64::from(input[row * depth + k]) * f64::from(weights[k * columns + column]);
                    sum += product;
                    size += product.abs();
                    if precision == Precision::Fixed {
                        lost += f64::from(input[row * depth + k]).abs() * largest * 2f64.powi(-20) * 1.01;
                    }
                }
                let expected = if epilogue == Epilogue::Gelu { gelu(sum) } else { sum };
                let slack = (depth + 8) as f64 * 2f64.powi(-23) * size + 1.2 * lost;
                close(kernels, *found, expected, slack);
            }
        }
    }
}

fn check_attention(tokens: usize, heads: usize, depth: usize, seed: u64, size: f32) {
    let width = heads * depth;
    let mut next = numbers(seed);
    let qkv: Vec<f32> = (0..tokens * 3 * width).map(|_| next() * size).collect();
    let at = |token: usize, part: usize, dim: usize| f64::from(qkv[token * 3 * width + part * width + dim]);
    let mut expected = vec![0f64; tokens * width];
    for head in 0..heads {
        let dims = head * depth..(head + 1) * depth;
        for query in 0..tokens {
            let scores: Vec<f64> = (0..tokens)
                .map(|key| dims.clone().map(|dim| at(query, 0, dim) * at(key, 1, dim)).sum())
                .collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for dim in dims.clone() {
                expected[query * width + dim] =
                    powers.iter().enumerate().map(|(token, power)| power / sum * at(token, 2, dim)).sum();
            }
        }
    }
    for kernels in available() {
        let mut out = vec![f32::NAN; tokens * width];
        // What an earlier text has left there must not matter.
        let mut scratch = vec![f32::NAN; (2 * depth + 12) * tokens.next_multiple_of(STEP) + 7];
        kernels.attention(&Attention { qkv: &qkv, tokens, width, heads }, &mut scratch, &mut out);
        let slack = f64::from(size) * 1e-5 * f64::from(1.0 + size * size);
        out.iter().zip(&expected).for_each(|(found, expected)| close(kernels, *found, *expected, slack));
    }
}

#[test]
fn products_of_rows_of_both_kinds() {
    let mut next = numbers(5);
    for width in [1, 7, 31, 32, 64, 96, 160, 768] {
        let (row, token): (Vec<f32>, Vec<f32>) = (0..width).map(|_| (next(), next())).unzip();
        for precision in [Precision::F32, Precision::Fixed] {
            let table = Table::new([vec![1.0; width], row.clone()].concat(), width, precision);
            let values = table.values();
            let products = values[width..].iter().zip(&token).map(|(a, b)| f64::from(*a) * f64::from(*b));
            let (sum, size) =
                products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()));
            for kernels in available() {
                let found = kernels.dot(table.get(1).unwrap(), &token);
                close(kernels, found, sum, (width + 8) as f64 * 2f64.powi(-23) * size);
            }
        }
    }
}

#[test]
fn attention_of_all_lengths() {
    for tokens in [1, 2, 3, 5, 6, 7, 11, 12, 13, 15, 16, 17, 31, 32, 33, 65, 130] {
        check_attention(tokens, 2, 64, tokens as u64, 1.0);
        check_attention(tokens, 1, 32, tokens as u64, 3.0);
    }
    check_attention(0, 2, 32, 0, 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn products_equal_the_definition(rows in 0usize..40, depth in 1usize..70, panels in 1usize..4, seed in any::<u64>()) {
        check_linear(rows, depth, panels * STEP, seed);
    }

    #[test]
    fn rows_are_normalised(rows in 0usize..5, width in 1usize..5, residual: bool, seed in any::<u64>()) {
        let width = width * STEP;
        let mut next = numbers(seed);
        let mut some = |count: usize| (0..count).map(|_| next()).collect::<Vec<f32>>();
        let (input, rest) = (some(rows * width), some(if residual { rows * width } else { 0 }));
        let (scale, shift) = (some(width), some(width));
        for kernels in available() {
            let mut out = input.clone();
            kernels.normalize(&Norm { scale: &scale, shift: &shift, epsilon: 1e-5 }, &mut out, &rest);
            for row in 0..rows {
                let values: Vec<f64> = (0..width)
                    .map(|at| row * width + at)
                    .map(|at| f64::from(input[at]) + rest.get(at).copied().map_or(0.0, f64::from))
                    .collect();
                let mean = values.iter().sum::<f64>() / width as f64;
                let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / width as f64;
                for (at, value) in values.iter().enumerate() {
                    let expected =
                        (value - mean) / (variance + 1e-5).sqrt() * f64::from(scale[at]) + f64::from(shift[at]);
                    close(kernels, out[row * width + at], expected, 1e-5);
                }
            }
        }
    }
}
