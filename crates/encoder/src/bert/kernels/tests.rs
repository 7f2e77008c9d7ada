//! Every available implementation against plain f64 loops.

use proptest::prelude::*;

use super::{Attention, Epilogue, Function, Kernels, Linear, Norm, STEP, available};
use crate::fixed::Precision;
use crate::nibbles;
use crate::stored::Stored;
use crate::table::{GROUP, Row, Table};
use crate::testing::numbers;

/// The error function by its power series, accurate in f64 for arguments up to 4.
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
            let linear = Linear::new(kernels.order, depth, bias.clone(), precision, weight);
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
    check_window(tokens, heads, depth, seed, size, usize::MAX);
    check_window(tokens, heads, depth, seed, size, 3);
}

fn check_window(tokens: usize, heads: usize, depth: usize, seed: u64, size: f32, window: usize) {
    let width = heads * depth;
    let mut next = numbers(seed);
    let qkv: Vec<f32> = (0..tokens * 3 * width).map(|_| next() * size).collect();
    let at = |token: usize, part: usize, dim: usize| f64::from(qkv[token * 3 * width + part * width + dim]);
    let mut expected = vec![0f64; tokens * width];
    for head in 0..heads {
        let dims = head * depth..(head + 1) * depth;
        for query in 0..tokens {
            let scores: Vec<f64> = (0..tokens)
                .map(|key| match query.abs_diff(key) {
                    apart if apart > window => f64::NEG_INFINITY,
                    _ => dims.clone().map(|dim| at(query, 0, dim) * at(key, 1, dim)).sum(),
                })
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
        kernels.attention(&Attention { qkv: &qkv, tokens, width, heads, window }, &mut scratch, &mut out);
        // Tiles take a number as the sum of two with 8 bits each, and leave out products of both lower ones.
        let bits = if kernels.name == "amx" { 4e-5 } else { 1e-5 };
        let slack = f64::from(size) * bits * f64::from(1.0 + size * size);
        out.iter().zip(&expected).for_each(|(found, expected)| close(kernels, *found, *expected, slack));
    }
}

/// Outputs of every implementation for weights of scale 1 without a bias, each against the first.
fn of_all(
    input: &[f32],
    (depth, columns): (usize, usize),
    weight: impl Fn(usize, usize) -> i8 + Copy,
) -> Vec<(&'static Kernels, Vec<f32>)> {
    let of = |kernels: &'static Kernels| {
        let linear = Linear::of_bytes(kernels.order, depth, vec![0.0; columns], vec![1.0; columns], weight);
        let mut out = vec![f32::NAN; input.len() / depth * columns];
        // What an earlier call has left there must not matter.
        kernels.linear(&linear, input, Epilogue::None, &mut vec![f32::NAN; 77], &mut out);
        (kernels, out)
    };
    available().iter().map(|kernels| of(kernels)).collect()
}

/// Compares implementations on rows of integers that are their own quantisation: their least number is 0 and their largest 255, so that
/// their scale rounds to 1. Sums of products below 2²⁴ are then exact in an output, and larger ones are rounded once.
fn check_bytes(rows: usize, depth: usize, columns: usize, next: &mut dyn FnMut(usize) -> usize) {
    let weights: Vec<i8> = (0..depth * columns).map(|_| next(256) as u8 as i8).collect();
    let mut input: Vec<f32> = (0..rows * depth).map(|_| next(256) as f32).collect();
    for row in input.chunks_exact_mut(depth) {
        row[..2].copy_from_slice(&[0.0, 255.0]);
    }
    let weight = |row: usize, column: usize| weights[row * columns + column];
    let scale = 255.0 * (1.0 / 255.0);
    for (kernels, found) in of_all(&input, (depth, columns), weight) {
        for (at, found) in found.iter().enumerate() {
            let row = &input[at / columns * depth..][..depth];
            let product =
                |(at_row, value): (usize, &f32)| *value as i64 * i64::from(weight(at_row, at % columns));
            let sum: i64 = row.iter().enumerate().map(product).sum();
            assert_eq!(*found, sum as f32 * scale, "{}: {rows} × {depth} × {columns} at {at}", kernels.name);
        }
    }
}

#[test]
fn bytes_are_multiplied_exactly() {
    // Rows around each number that a tile takes.
    let mut state = numbers(7);
    let mut next = |below: usize| ((f64::from(state()) + 1.0) / 2.0 * below as f64) as usize % below;
    for rows in [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 24, 25, 37] {
        check_bytes(rows, 32, 32, &mut next);
        check_bytes(rows, 416, 96, &mut next);
    }
    check_bytes(3, 1536, 32, &mut next);
}

#[test]
fn the_largest_sums_of_bytes_do_not_overflow() {
    for depth in [32, 512, super::MAX_DEPTH] {
        for extreme in [-128i8, 127] {
            // One number is 0, so that the others are 255 steps above it.
            let mut input = vec![255.0; depth];
            input[0] = 0.0;
            let sum = (depth as i64 - 1) * 255 * i64::from(extreme);
            for (kernels, found) in of_all(&input, (depth, 32), |_, _| extreme) {
                let expected = sum as f32 * (255.0 * (1.0 / 255.0));
                assert!(found.iter().all(|found| *found == expected), "{}: {found:?}", kernels.name);
            }
        }
    }
}

/// All implementations quantise a row to the same integers, which products with weights of a single one in each column show.
#[test]
fn rows_are_quantised_alike_everywhere() {
    let mut next = numbers(11);
    let depth = 64;
    let mut rows: Vec<Vec<f32>> = vec![vec![0.0; depth], vec![-3.25; depth], vec![1e-42; depth]];
    for size in [1e-30, 1e-3, 1.0, 40.0, 1e30] {
        for shift in [0.0, -1.0, 2.0] {
            rows.push((0..depth).map(|_| (next() + shift) * size).collect());
        }
    }
    // Halves between two steps go to the even one.
    rows.push((0..depth).map(|at| if at == 63 { 255.0 } else { at as f32 / 2.0 }).collect());
    for row in rows {
        let least = row.iter().copied().fold(f32::INFINITY, f32::min);
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let scale = (f64::from(most) - f64::from(least)) / 255.0;
        let whole = |found: &[f32]| -> Vec<i64> {
            found
                .iter()
                .map(|found| ((f64::from(*found) - f64::from(least)) / scale.max(1e-300)).round() as i64)
                .collect()
        };
        let all = of_all(&row, (depth, depth), |row, column| i8::from(row == column));
        for (kernels, found) in &all {
            assert_eq!(whole(found), whole(&all[0].1), "{}: {row:?}", kernels.name);
            for (found, value) in found.iter().zip(&row) {
                let slack = scale * 0.5001 + f64::from(value.abs().max(least.abs())) * 3e-7;
                close(kernels, *found, f64::from(*value), slack.max(1e-38));
            }
        }
    }
}

/// A number a thousand times as large as the others would round these away, unless a factor makes it as small as they are.
#[test]
fn factors_keep_the_small_numbers_of_a_row() {
    let (mut next, depth, columns) = (numbers(13), 64, 32);
    let weights: Vec<f32> = (0..depth * columns).map(|_| next()).collect();
    let mut input: Vec<f32> = (0..depth).map(|_| next()).collect();
    input[7] = 1000.0;
    let mut factors = vec![1.0; depth];
    factors[7] = 0.001;
    // The weights of the large number are as much smaller, so that all products count.
    let weight = |row: usize, column: usize| weights[row * columns + column] * factors[row];
    let expected = |column: usize| -> f64 {
        (0..depth).map(|row| f64::from(input[row]) * f64::from(weight(row, column))).sum()
    };
    for kernels in available() {
        let error = |linear: &Linear| -> f64 {
            let mut out = vec![f32::NAN; columns];
            kernels.linear(linear, &input, Epilogue::None, &mut Vec::new(), &mut out);
            let errors = out.iter().enumerate().map(|(at, found)| (f64::from(*found) - expected(at)).abs());
            errors.fold(0.0, f64::max)
        };
        let of = |weight: &dyn Fn(usize, usize) -> f32| {
            Linear::new(kernels.order, depth, vec![0.0; columns], Precision::Int8, weight)
        };
        let plain = error(&of(&weight));
        let with = of(&|row, column| weight(row, column) / factors[row]).with_factors(factors.clone());
        assert!(error(&with) < 0.1 && plain > 1.0, "{}: {} and {plain}", kernels.name, error(&with));
    }
}

/// A sum that became too large shows in all that is computed from it, so that no text gets a vector that means nothing.
#[test]
fn what_is_not_finite_is_not_hidden() {
    let (mut next, depth, heads, tokens) = (numbers(17), 64, 2, 5);
    let linear = |kernels: &Kernels| {
        let weight = |row: usize, column: usize| ((row * 7 + column) % 5) as f32 - 2.0;
        Linear::new(kernels.order, depth, vec![0.0; 32], Precision::Int8, weight)
    };
    let input: Vec<f32> = (0..depth).map(|_| next()).collect();
    let qkv: Vec<f32> = (0..tokens * 3 * depth).map(|_| next()).collect();
    for (kernels, odd) in available()
        .iter()
        .flat_map(|kernels| [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(|odd| (kernels, odd)))
    {
        let mut exponential = [f32::NAN; STEP];
        kernels.map(Function::Exp, &mut exponential);
        assert!(exponential.iter().all(|value| value.is_nan()), "{}", kernels.name);
        for at in [0, 1, 31, 40, 63] {
            let mut rows = [&input[..], &input].concat();
            rows[at] = odd;
            let mut out = vec![0.0; 2 * 32];
            kernels.linear(&linear(kernels), &rows, Epilogue::None, &mut Vec::new(), &mut out);
            assert!(out[..32].iter().all(|value| value.is_nan()), "{} {odd} at {at}: {out:?}", kernels.name);
            assert!(out[32..].iter().all(|value| value.is_finite()), "another row");
        }
        // A query, and a key, whose head is the second: one number of it is enough.
        for (part, token) in [(0, 3), (1, 2)] {
            let mut qkv = qkv.clone();
            qkv[token * 3 * depth + part * depth + 33] = odd;
            let job = Attention { qkv: &qkv, tokens, width: depth, heads, window: usize::MAX };
            let mut out = vec![0.0; tokens * depth];
            kernels.attention(&job, &mut Vec::new(), &mut out);
            for (at, row) in out.chunks_exact(depth).enumerate() {
                assert!(row[..32].iter().all(|value| value.is_finite()), "another head");
                // An infinite key may be one that nothing looks at, with a score of minus infinity.
                let is_hit = if part == 0 { at == token } else { odd.is_nan() };
                assert!(
                    !is_hit || row[32..].iter().all(|value| value.is_nan()),
                    "{} {odd}: {row:?}",
                    kernels.name
                );
            }
        }
    }
}

/// A score that is larger than all others by far takes all of the weight, however large it is.
#[test]
fn the_largest_score_of_all_takes_its_value() {
    let (tokens, width) = (5, 32);
    for size in [1e3f32, 1e5, 1e10, 1e18] {
        let mut qkv = vec![0.0; tokens * 3 * width];
        for (token, row) in qkv.chunks_exact_mut(3 * width).enumerate() {
            row[0] = size;
            row[width] = if token == 3 { size } else { -size };
            row[2 * width..].fill(token as f32);
        }
        for kernels in available() {
            let mut out = vec![f32::NAN; tokens * width];
            let job = Attention { qkv: &qkv, tokens, width, heads: 1, window: usize::MAX };
            kernels.attention(&job, &mut Vec::new(), &mut out);
            assert!(out.iter().all(|found| (*found - 3.0).abs() < 1e-6), "{} {size}: {out:?}", kernels.name);
        }
    }
}

#[test]
fn products_of_rows_of_all_kinds() {
    let mut next = numbers(5);
    for width in [1, 7, 31, 32, 64, 96, 160, 768] {
        let (row, token): (Vec<f32>, Vec<f32>) = (0..width).map(|_| (next(), next())).unzip();
        for precision in [Precision::F32, Precision::Fixed, Precision::Int8] {
            let rows = [vec![1.0; width], row.clone()].concat();
            let table = match precision {
                // Bytes are of whole groups, as word embeddings are.
                Precision::Int8 if !width.is_multiple_of(STEP) => continue,
                Precision::Int8 => Table::of_words(&Stored::Here(rows), width, precision).unwrap().unwrap(),
                _ => Table::new(rows, width, precision),
            };
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
fn products_of_rows_of_four_bits() {
    let mut next = numbers(6);
    for groups in [1, 2, 5, 24] {
        let token: Vec<f32> = (0..groups * GROUP).map(|_| next()).collect();
        let bytes: Vec<u8> = (0..groups * GROUP / 2).map(|at| (at * 37 % 251) as u8).collect();
        let scales: Vec<f32> = (0..groups).map(|_| next()).collect();
        let mut values = Vec::new();
        nibbles::append(&bytes, &scales, &mut values);
        let products = values.iter().zip(&token).map(|(a, b)| f64::from(*a) * f64::from(*b));
        let (sum, size) =
            products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()));
        for kernels in available() {
            let found = kernels.dot(Row::Nibbles { bytes: &bytes, scales: &scales }, &token);
            close(kernels, found, sum, (values.len() + 8) as f64 * 2f64.powi(-23) * size);
        }
    }
}

#[test]
fn attention_of_all_lengths() {
    for tokens in [1, 2, 3, 5, 6, 7, 11, 12, 13, 15, 16, 17, 31, 32, 33, 65, 130] {
        check_attention(tokens, 2, 64, tokens as u64, 1.0);
        check_attention(tokens, 1, 32, tokens as u64, 3.0);
    }
    for (tokens, heads, depth) in [(33, 1, 96), (49, 3, 128), (300, 1, 32)] {
        check_attention(tokens, heads, depth, 1, 1.0);
        check_window(tokens, heads, depth, 2, 1.0, 0);
    }
    check_attention(0, 2, 32, 0, 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn products_equal_the_definition(rows in 0usize..40, depth in 1usize..70, panels in 1usize..4, seed in any::<u64>()) {
        check_linear(rows, depth, panels * STEP, seed);
    }

    /// Products of 8 bits are off by at most the rounding of half a step for each number of a row and of a column.
    #[test]
    fn products_of_eight_bits_are_near_the_definition(
        rows in 0usize..30,
        depth in 1usize..6,
        panels in 1usize..4,
        gelu_too: bool,
        seed in any::<u64>(),
    ) {
        let (depth, columns) = (depth * STEP, panels * STEP);
        let mut next = numbers(seed);
        let mut some = |count: usize| (0..count).map(|_| next()).collect::<Vec<f32>>();
        let (weights, bias, input) = (some(depth * columns), some(columns), some(rows * depth));
        let epilogue = if gelu_too { Epilogue::Gelu } else { Epilogue::None };
        for kernels in available() {
            let weight = |row: usize, column: usize| weights[row * columns + column];
            let linear = Linear::new(kernels.order, depth, bias.clone(), Precision::Int8, weight);
            let mut out = vec![f32::NAN; rows * columns];
            kernels.linear(&linear, &input, epilogue, &mut Vec::new(), &mut out);
            for (at, found) in out.iter().enumerate() {
                let (row, column) = (&input[at / columns * depth..][..depth], at % columns);
                let products = row.iter().enumerate();
                let sum: f64 = products.map(|(k, value)| f64::from(*value) * f64::from(weight(k, column))).sum();
                let sum = sum + f64::from(bias[column]);
                // Numbers are below 1: steps of a row are below 2/255, those of a column below 1/127.
                let lost = depth as f64 * (1.0 / 255.0 + 0.5 / 127.0) * 1.01;
                close(kernels, *found, if gelu_too { gelu(sum) } else { sum }, 1.2 * lost);
            }
        }
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
