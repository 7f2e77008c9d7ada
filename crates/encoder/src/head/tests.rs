use proptest::prelude::*;

use super::kernels::{PANEL, available};
use super::{Basis, Head, NotFinite};
use crate::fixed::Precision;
use crate::table::Table;
use crate::testing::numbers;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// At the position that the head reports for a term, the term's logit is the one that the head computed.
    #[test]
    fn positions_are_those_of_the_maxima(
        dims in 1usize..40, terms in 1usize..300, tokens in 1usize..20, seed in any::<u64>(),
    ) {
        let mut next = numbers(seed);
        let rows: Vec<f32> = (0..terms * dims).map(|_| next()).collect();
        let hidden: Vec<f32> = (0..tokens * dims).map(|_| next()).collect();
        let bias: Vec<f32> = (0..terms).map(|_| next()).collect();
        for kernels in available() {
            let head = Head::new(kernels, rows.clone(), bias.clone(), dims, None, Precision::F32).unwrap();
            let found = head.project(&hidden, std::slice::from_ref(&(0..tokens)), 1).unwrap();
            let wanted: Vec<u32> = found[0].iter().map(|(term, _)| *term).collect();
            let positions = head.positions(&hidden, &wanted);
            prop_assert_eq!(positions.len(), wanted.len());
            for ((term, logit), position) in found[0].iter().zip(positions) {
                let at = position as usize * dims..(position as usize + 1) * dims;
                let (row, bias) = (*term as usize * dims..(*term as usize + 1) * dims, bias[*term as usize]);
                let own = reference(&rows[row], &[bias], dims, &hidden[at])[0];
                prop_assert!((own - f64::from(*logit)).abs() < 1e-4, "{own} is not {logit}");
            }
        }
    }
}

fn reference(rows: &[f32], bias: &[f32], dims: usize, hidden: &[f32]) -> Vec<f64> {
    let dot = |row: &[f32], token: &[f32]| -> f64 {
        row.iter().zip(token).map(|(w, h)| f64::from(*w) * f64::from(*h)).sum()
    };
    rows.chunks_exact(dims)
        .zip(bias)
        .map(|(row, bias)| {
            hidden.chunks_exact(dims).map(|token| dot(row, token)).fold(f64::NEG_INFINITY, f64::max)
                + f64::from(*bias)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Finds every term with a positive logit when biases are just below the typical maximum, so that many logits are
    /// close to 0 on either side.
    #[test]
    fn no_positive_term_is_missed(
        dims in 1usize..70, terms in 1usize..100, lengths in prop::collection::vec(1usize..15, 1..4),
        threads in 1usize..4, seed in any::<u64>(), outlier in 1f32..50.0, fixed: bool,
    ) {
        // Rows of 20 bits are whole groups.
        let (precision, dims) =
            if fixed { (Precision::Fixed, dims.next_multiple_of(32)) } else { (Precision::F32, dims) };
        let mut next = numbers(seed);
        let rows: Vec<f32> = (0..terms * dims).map(|_| next()).collect();
        let tokens: usize = lengths.iter().sum();
        let hidden: Vec<f32> =
            (0..tokens * dims).map(|at| if at % 61 == 0 { next() * outlier } else { next() }).collect();
        // What is looked at is the rows as they are kept.
        let rows = Table::new(rows, dims, precision).values().into_owned();
        let all = reference(&rows, &vec![0.0; terms], dims, &hidden);
        let bias: Vec<f32> = all.iter().map(|logit| next() * 0.05 - *logit as f32).collect();
        let mut start = 0;
        let documents: Vec<_> = lengths.iter().map(|length| { start += length; start - length..start }).collect();
        for kernels in available() {
            let head = Head::new(kernels, rows.clone(), bias.clone(), dims, None, precision).unwrap();
            let found = head.project(&hidden, &documents, threads).unwrap();
            for (document, found) in documents.iter().zip(&found) {
                let hidden = &hidden[document.start * dims..document.end * dims];
                let exact = reference(&rows, &bias, dims, hidden);
                // The f32 sum is off by rounding: around zero, either answer is right.
                let slack = 1e-3;
                let mut found = found.iter().peekable();
                for (term, exact) in exact.iter().enumerate() {
                    let weight = found.next_if(|(id, _)| *id == term as u32).map(|(_, logit)| f64::from(*logit));
                    match weight {
                        Some(weight) => prop_assert!((weight - exact).abs() < slack, "{}: {weight} {exact}", kernels.name),
                        None => prop_assert!(*exact < slack, "{}: missed {term}, logit {exact}", kernels.name),
                    }
                }
                prop_assert!(found.next().is_none());
            }
        }
    }
}

#[test]
fn margin_depends_on_the_error_and_lets_few_terms_through() {
    let (dims, terms) = (128, 4 * PANEL);
    let mut next = numbers(7);
    let rows: Vec<f32> = (0..terms * dims).map(|_| next()).collect();
    let hidden: Vec<f32> = (0..4 * dims).map(|_| next()).collect();
    let logits = reference(&rows, &vec![0.0; terms], dims, &hidden);
    // All logits are 5 below zero: a bound that is any good rules all of them out.
    let bias: Vec<f32> = logits.iter().map(|logit| -5.0 - *logit as f32).collect();
    let kernels = available()[0];
    let head = Head::new(kernels, rows, bias, dims, None, Precision::F32).unwrap();
    let looks = head.decoder.quantise(kernels, &hidden).unwrap();
    for panel in 0..terms / PANEL {
        let mut found = Vec::new();
        head.decoder.first_look(kernels, panel, &looks, &mut Vec::new(), &mut found);
        assert_eq!(found, []);
    }
}

/// A basis of a rotation and its inverse, with each dimension scaled up on one side and down on the other.
fn basis(dims: usize, terms: usize, next: &mut impl FnMut() -> f32) -> Basis {
    let mut one = vec![0f64; dims * dims];
    (0..dims).for_each(|at| one[at * dims + at] = 1.0);
    for _ in 0..6 * dims {
        let pick = |number: f32| ((number.abs() * dims as f32) as usize).min(dims - 1);
        let (a, b, angle) = (pick(next()), pick(next()), f64::from(next()) * 3.0);
        if a != b {
            for column in 0..dims {
                let (x, y) = (one[a * dims + column], one[b * dims + column]);
                one[a * dims + column] = x * angle.cos() - y * angle.sin();
                one[b * dims + column] = x * angle.sin() + y * angle.cos();
            }
        }
    }
    let stretch: Vec<f64> = (0..dims).map(|_| f64::from(next()).exp2()).collect();
    let side = |power: i32| {
        one.iter().enumerate().map(|(at, value)| (value * stretch[at / dims].powi(power)) as f32).collect()
    };
    let offset = (0..dims).map(|_| next()).collect();
    let looks: Vec<f32> = (0..terms).map(|_| next().abs() * dims as f32).collect();
    Basis::new(side(1), side(-1), offset, &looks).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With any basis, the result equals that of the plain head bit by bit: random numbers, rows and tokens of equal
    /// numbers, zeros, outliers, very large and very small ones; an exact basis, and two matrices that are not inverse
    /// to each other.
    #[test]
    fn a_basis_changes_nothing(
        dims in prop::sample::select(vec![32usize, 64, 96]), terms in 1usize..200,
        lengths in prop::collection::vec(1usize..30, 1..4), threads in 1usize..4, seed in any::<u64>(),
        outlier in 1f32..50.0, size in prop::sample::select(vec![1f32, 1e-20, 1e-6, 1e4, 1e9]), wrong in any::<bool>(),
    ) {
        let mut next = numbers(seed);
        let mut rows: Vec<f32> = (0..terms * dims).map(|_| next()).collect();
        rows.chunks_exact_mut(dims).for_each(|row| match (next() * 8.0) as i32 {
            5 => row.fill(next()),
            6 => row.fill(0.0),
            7 => row[0] = next() * 100.0,
            _ => {}
        });
        let tokens: usize = lengths.iter().sum();
        let mut hidden: Vec<f32> =
            (0..tokens * dims).map(|at| if at % 61 == 0 { next() * outlier } else { next() } * size).collect();
        hidden.chunks_exact_mut(dims).for_each(|token| match (next() * 8.0) as i32 {
            6 => token.fill(next() * size),
            7 => token.fill(0.0),
            _ => {}
        });
        let all = reference(&rows, &vec![0.0; terms], dims, &hidden);
        let bias: Vec<f32> = all.iter().map(|logit| (next() * 0.05 * size) - *logit as f32).collect();
        let mut basis = basis(dims, terms, &mut next);
        if wrong {
            basis.tokens.iter_mut().for_each(|value| *value += next());
        }
        let mut start = 0;
        let documents: Vec<_> = lengths.iter().map(|length| { start += length; start - length..start }).collect();
        for kernels in available() {
            let plain = Head::new(kernels, rows.clone(), bias.clone(), dims, None, Precision::F32).unwrap();
            let turned = Head::new(kernels, rows.clone(), bias.clone(), dims, Some(&basis), Precision::F32).unwrap();
            let expected = plain.project(&hidden, &documents, 1).unwrap();
            let found = turned.project(&hidden, &documents, threads).unwrap();
            prop_assert_eq!(&found, &expected, "{}", kernels.name);
            prop_assert_eq!(plain.project(&hidden, &documents, threads).unwrap(), expected);
        }
    }
}

/// If a few dimensions hold the whole logit, they rule out most pairs: otherwise a basis would be useless.
#[test]
fn a_basis_that_tells_all_leaves_few_pairs_for_the_second_look() {
    let (dims, terms, tokens) = (32, 4 * PANEL, 10);
    let mut next = numbers(3);
    let mut few = |count: usize| -> Vec<f32> {
        (0..count * dims).map(|at| if at % dims < 6 { next() } else { next() * 1e-3 }).collect()
    };
    let (rows, hidden) = (few(terms), few(tokens));
    let one: Vec<f32> = (0..dims * dims).map(|at| if at % (dims + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let basis = Basis::new(one.clone(), one, vec![0.0; dims], &vec![8.0; terms]).unwrap();
    let logits = reference(&rows, &vec![0.0; terms], dims, &hidden);
    let bias: Vec<f32> = logits.iter().map(|logit| -0.2 - *logit as f32).collect();
    for kernels in available() {
        let head =
            Head::new(kernels, rows.clone(), bias.clone(), dims, Some(&basis), Precision::F32).unwrap();
        let looks = head.decoder.quantise(kernels, &hidden).unwrap();
        for panel in 0..terms / PANEL {
            let mut found = Vec::new();
            head.decoder.first_look(kernels, panel, &looks, &mut Vec::new(), &mut found);
            assert_eq!(found, [], "{}", kernels.name);
        }
    }
}

/// The norms of the remaining dimensions are part of the bound: here the remainder points the same way on both sides,
/// and its norms are the whole logit.
#[test]
fn the_rest_counts() {
    let dims = 32;
    let row: Vec<f32> = (0..dims).map(|dim| if dim < 7 { 0.0 } else { 1.0 }).collect();
    let one: Vec<f32> = (0..dims * dims).map(|at| if at % (dims + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let basis = Basis::new(one.clone(), one, vec![0.5; dims], &[8.0]).unwrap();
    for kernels in available() {
        let head =
            Head::new(kernels, row.clone(), vec![0.01 - 25.0], dims, Some(&basis), Precision::F32).unwrap();
        let found = head.project(&row, std::slice::from_ref(&(0..1)), 1).unwrap();
        assert_eq!(found[0].len(), 1, "{}", kernels.name);
    }
}

/// Both parts of the margin are needed: one large number sets the scale, so that all others are rounded away, and the
/// other side lies in their direction. Cauchy-Schwarz is then an equality, and the whole positive logit is quantisation
/// error.
#[test]
fn both_parts_of_the_margin_are_needed() {
    let dims = 64;
    let coarse: Vec<f32> = (0..dims).map(|dim| if dim == 0 { 127.0 } else { 0.49 }).collect();
    let flat: Vec<f32> = (0..dims).map(|dim| if dim == 0 { 0.0 } else { 1.0 }).collect();
    let logit = 0.49 * (dims - 1) as f32;
    for (row, hidden) in [(&coarse, &flat), (&flat, &coarse)] {
        for kernels in available() {
            let head =
                Head::new(kernels, row.clone(), vec![0.01 - logit], dims, None, Precision::F32).unwrap();
            let found = head.project(hidden, std::slice::from_ref(&(0..1)), 1).unwrap();
            assert_eq!(found[0].len(), 1, "{}", kernels.name);
        }
    }
}

#[test]
fn a_hidden_state_that_is_not_finite_is_an_error() {
    let head = Head::new(available()[0], vec![1.0; 40 * 8], vec![0.0; 40], 8, None, Precision::F32).unwrap();
    for bad in [f32::NAN, f32::INFINITY] {
        let mut hidden = vec![0.5; 16];
        hidden[9] = bad;
        let document = std::slice::from_ref(&(0..2));
        assert_eq!(head.project(&hidden, document, 1), Err(NotFinite));
    }
}

#[test]
fn decoders_that_do_not_fit_are_refused() {
    assert!(Head::new(available()[0], vec![1.0; 7], vec![0.0; 2], 4, None, Precision::F32).is_err());
    assert!(Head::new(available()[0], vec![f32::NAN; 8], vec![0.0; 2], 4, None, Precision::F32).is_err());
    assert!(Head::new(available()[0], vec![], vec![], 4, None, Precision::F32).is_err());
    let other = basis(32, 3, &mut numbers(1));
    assert!(
        Head::new(available()[0], vec![1.0; 64], vec![0.0; 2], 32, Some(&other), Precision::F32).is_err()
    );
    assert!(
        Head::new(available()[0], vec![1.0; 192], vec![0.0; 3], 64, Some(&other), Precision::F32).is_err()
    );
    assert!(Head::new(available()[0], vec![1.0; 96], vec![0.0; 3], 32, Some(&other), Precision::F32).is_ok());
}
