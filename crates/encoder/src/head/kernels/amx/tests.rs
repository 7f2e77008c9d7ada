//! Heads with AMX, and which of them use it.

use crate::amx::{allows_tiles, configured, with_error};
use crate::fixed::Precision;
use crate::head::{Basis, Head};

use super::{KERNELS, available, avx512};

/// Whether AMX products can be computed here, really or emulated; prints the reason if not.
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn can_run() -> bool {
    let can = available().is_some();
    if !can {
        eprintln!("skipped: AMX is neither here nor emulated, which takes a processor with AVX-512 and VNNI");
    }
    can
}

/// A head with a basis, and hidden states.
fn head() -> (Head, Vec<f32>) {
    let (dims, terms, tokens) = (64, 70, 20);
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| next()).collect() };
    let (rows, bias, hidden) = (numbers(terms * dims), numbers(terms), numbers(tokens * dims));
    let one: Vec<f32> = (0..dims * dims).map(|at| if at % (dims + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let basis = Basis::new(one.clone(), one, vec![0.0; dims], &vec![24.0; terms]).unwrap();
    let kernels = avx512::detect().unwrap();
    (Head::new(kernels, rows, bias, dims, Some(&basis), Precision::F32).unwrap(), hidden)
}

fn logits(head: &Head, hidden: &[f32]) -> Vec<Vec<(u32, f32)>> {
    head.project(hidden, &[0..20, 3..20, 19..20], 1).unwrap()
}

#[test]
fn a_head_gives_the_same_with_amx_and_takes_what_is_faster() {
    if !can_run() {
        return;
    }
    let (head, hidden) = head();
    let wanted = logits(&head, &hidden);
    assert!(wanted.iter().all(|found| !found.is_empty()));
    let head = head.faster(&KERNELS, &hidden.repeat(4)[..64 * 64]);
    assert_eq!(logits(&head, &hidden), wanted);
    if !allows_tiles() {
        assert_eq!(head.instructions(), "avx512", "an emulated processor is slower than a real one");
    }
    let (head, _) = head.with(&KERNELS);
    assert_eq!(head.instructions(), "amx");
    assert_eq!(logits(&head, &hidden), wanted);
    assert_eq!(configured(), [0; 64], "tiles are given back");
}

#[test]
fn a_head_whose_results_differ_stays_as_it_is() {
    if !can_run() || allows_tiles() {
        return;
    }
    let (head, hidden) = head();
    let wanted = logits(&head, &hidden);
    let sample = hidden.repeat(4)[..64 * 64].to_vec();
    let (head, found) = with_error(-1 << 24, || {
        let head = head.faster(&KERNELS, &sample);
        let found = logits(&head, &hidden);
        (head, found)
    });
    assert_eq!((head.instructions(), &found), ("avx512", &wanted));
    let (head, _) = head.with(&KERNELS);
    assert_ne!(with_error(-1 << 24, || logits(&head, &hidden)), wanted, "the test tests nothing");
}
