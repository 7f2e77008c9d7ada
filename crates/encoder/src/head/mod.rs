//! The SPLADE head: hidden states to token weights, with logits never materialised.
//!
//! A term's weight is `ln(1 + max(0, max_t(w·h_t) + b))` over the tokens t of a text (SPLADE v2, arXiv:2109.10086). The
//! maximum goes before bias, ReLU and logarithm, which are all increasing. For nearly all of the vocabulary that
//! maximum is negative, so the head works in two steps: integer dot products of quantised weights and hidden states,
//! the running maximum kept in registers, rule out most terms; the rest is computed exactly in f32.
//!
//! # Why no term is missed
//! Per term `w = s·q + e` and per token `h = a·p + d`, with integer vectors `q`, `p` and the quantisation errors `e`, `d`
//! known exactly. Then `w·h = s·a·(q·p) + s·q·d + e·h`, and by Cauchy-Schwarz
//!
//! `max_t w·h_t ≤ s·a·max_t(q·p_t) + ‖s·q‖·max_t‖d_t‖ + ‖e‖·max_t‖h_t‖`.
//!
//! The norms are computed once per term and once per document; a term is ruled out only if the right side plus its bias
//! is not positive. The roundings of f32 (in the bound itself, and in the exact step, whose sum of `n` products is off by
//! at most `n·2⁻²³·‖w‖·‖h‖` in any order) are covered by enlarging the norms: see [`inflate`] and [`Head::new`]. The
//! alternative, a fixed margin (0.25 in the prototype), is cheaper by a few candidates and proves nothing.

use std::ops::Range;
use std::sync::Arc;

use crate::bert::kernels::{self as f32_kernels, Epilogue, Linear};
use crate::numbers::Numbers;

use kernels::{DIM_STEP, Document, Kernels, Limits, MAX_DIMS, PANEL, Panel};

pub(crate) mod kernels;
mod packing;
mod quantize;

use quantize::Quantized;

/// A decoder: one row of weights and a bias for each vocabulary term. Shared by all allocations of a model.
pub(crate) struct Head {
    levels: i8,
    terms: usize,
    dims: usize,
    /// `[terms][dims]`, for the exact step.
    rows: Arc<Numbers<f32>>,
    /// One per term.
    bias: Vec<f32>,
    panels: Numbers<i8>,
    scale: Vec<[f32; PANEL]>,
    spread: Vec<[f32; PANEL]>,
    residual: Vec<[f32; PANEL]>,
    /// The bias, rounded up; negative infinity beyond the vocabulary.
    bias_above: Vec<[f32; PANEL]>,
}

/// Hidden states held a NaN or an infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotFinite;

/// Less work than this is not spread over threads: starting them costs more.
const MIN_TOKENS_FOR_THREADS: usize = 32;

/// Candidates of one matrix product in the exact step: few enough that it stays in the second-level cache.
const CANDIDATES_AT_ONCE: usize = 256;

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Head").field("terms", &self.terms).field("dims", &self.dims).finish_non_exhaustive()
    }
}

impl Head {
    /// Quantises a decoder for one implementation. `rows` is `[terms][dims]`, `bias` is `[terms]`.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub(crate) fn new(
        kernels: &Kernels,
        rows: Vec<f32>,
        bias: Vec<f32>,
        dims: usize,
    ) -> Result<Self, String> {
        let levels = f32::from(kernels.levels);
        let terms = bias.len();
        if dims == 0 || dims > MAX_DIMS || terms == 0 || rows.len() != terms * dims {
            return Err(format!("decoder of {} weights is not {terms} rows of {dims}", rows.len()));
        }
        if !rows.iter().chain(&bias).all(|weight| weight.is_finite()) {
            return Err("decoder holds a weight that is not finite".into());
        }
        let padded = dims.next_multiple_of(DIM_STEP);
        let count = terms.div_ceil(PANEL);
        let mut packed = Numbers::zeros(count * padded * PANEL);
        let panels = packed.own();
        let mut head = Self {
            levels: kernels.levels,
            terms,
            dims,
            panels: Numbers::default(),
            scale: vec![[0.0; PANEL]; count],
            spread: vec![[0.0; PANEL]; count],
            residual: vec![[0.0; PANEL]; count],
            bias_above: vec![[f32::NEG_INFINITY; PANEL]; count],
            rows: Arc::default(),
            bias: Vec::new(),
        };
        // The exact step and the bound add up n products, and a few single operations: n + 16 roundings.
        let rounding = (dims + 16) as f64 * 2f64.powi(-23);
        for (term, (row, bias)) in rows.chunks_exact(dims).zip(&bias).enumerate() {
            let (panel, lane) = (term / PANEL, term % PANEL);
            let largest = row.iter().fold(0f32, |max, weight| max.max(weight.abs()));
            let scale = if largest > 0.0 { largest / levels } else { 1.0 };
            let (mut exact, mut kept, mut lost) = (0f64, 0f64, 0f64);
            let out = &mut panels[panel * padded * PANEL..][..padded * PANEL];
            for (dim, &weight) in row.iter().enumerate() {
                let quantised = (weight / scale).round().clamp(-levels, levels);
                let product = f64::from(scale) * f64::from(quantised);
                exact += f64::from(weight).powi(2);
                kept += product.powi(2);
                lost += (f64::from(weight) - product).powi(2);
                out[dim / DIM_STEP * PANEL * DIM_STEP + lane * DIM_STEP + dim % DIM_STEP] = quantised as i8;
            }
            let (exact, kept, lost) = (exact.sqrt(), kept.sqrt(), lost.sqrt());
            head.scale[panel][lane] = scale;
            head.spread[panel][lane] = inflate(kept);
            head.residual[panel][lane] = inflate(lost + rounding * (exact + kept));
            head.bias_above[panel][lane] = bias + bias.abs() * 2f32.powi(-19);
        }
        head.panels = packed;
        head.rows = Arc::new(rows.into());
        head.bias = bias;
        Ok(head)
    }

    /// Vocabulary terms.
    pub(crate) fn terms(&self) -> usize {
        self.terms
    }

    /// The decoder's weights, `[terms][dims]`; with tied weights also the word embeddings.
    pub(crate) fn rows(&self) -> &Arc<Numbers<f32>> {
        &self.rows
    }

    /// Width of a hidden state.
    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    /// Positive maximal logits, ascending by term, for each document. `hidden` is `[rows][dims]`; a document is a range
    /// of its rows. `threads` above 1 share the vocabulary.
    ///
    /// # Errors
    /// [`NotFinite`] if a hidden state is not a number.
    ///
    /// # Panics
    /// If the decoder was quantised for other kernels.
    pub(crate) fn project(
        &self,
        kernels: &Kernels,
        hidden: &[f32],
        documents: &[Range<usize>],
        threads: usize,
    ) -> Result<Vec<Vec<(u32, f32)>>, NotFinite> {
        assert_eq!(self.levels, kernels.levels, "decoder is quantised for another instruction set");
        let quantised = documents
            .iter()
            .map(|rows| {
                Quantized::new(&hidden[rows.start * self.dims..rows.end * self.dims], self.dims, self.levels)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let count = self.scale.len();
        let tokens: usize = documents.iter().map(Range::len).sum();
        let threads = if tokens < MIN_TOKENS_FOR_THREADS { 1 } else { threads.clamp(1, count) };
        if threads == 1 {
            return Ok(self.project_panels(kernels, hidden, documents, &quantised, 0..count));
        }
        let share = count.div_ceil(threads);
        let parts: Vec<Vec<Vec<(u32, f32)>>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    let range = (thread * share).min(count)..((thread + 1) * share).min(count);
                    let quantised = &quantised;
                    scope.spawn(move || self.project_panels(kernels, hidden, documents, quantised, range))
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut merged = vec![Vec::new(); documents.len()];
        for part in parts {
            for (all, mut some) in merged.iter_mut().zip(part) {
                all.append(&mut some);
            }
        }
        Ok(merged)
    }

    /// Panels outside, documents inside: a panel stays in the first-level cache while the batch passes by.
    fn project_panels(
        &self,
        kernels: &Kernels,
        hidden: &[f32],
        documents: &[Range<usize>],
        quantised: &[Quantized],
        panels: Range<usize>,
    ) -> Vec<Vec<(u32, f32)>> {
        let padded = self.dims.next_multiple_of(DIM_STEP);
        let views: Vec<Document<'_>> = quantised.iter().map(|document| document.view(padded)).collect();
        let mut found = vec![Vec::new(); documents.len()];
        for index in panels {
            let panel = Panel::new(
                &self.panels[index * padded * PANEL..][..padded * PANEL],
                &self.scale[index],
                &self.spread[index],
                &self.residual[index],
                &self.bias_above[index],
            );
            for (document, candidates) in views.iter().zip(&mut found) {
                let mut mask = kernels.candidates(&panel, document);
                while mask != 0 {
                    candidates.push((index * PANEL) as u32 + mask.trailing_zeros());
                    mask &= mask - 1;
                }
            }
        }
        documents
            .iter()
            .zip(found)
            .map(|(rows, candidates)| {
                self.exact(kernels, &hidden[rows.start * self.dims..rows.end * self.dims], &candidates)
            })
            .collect()
    }

    /// The positive maximal logits among `candidates`, in f32: their rows become a small matrix, so that this is a matrix
    /// product and not a dot product at a time (which took a tenth of the whole encoding).
    fn exact(&self, kernels: &Kernels, hidden: &[f32], candidates: &[u32]) -> Vec<(u32, f32)> {
        let products = f32_kernels::named(kernels.name);
        let mut found = Vec::with_capacity(candidates.len() / 2);
        let mut dots = Vec::new();
        let mut maxima = [0f32; CANDIDATES_AT_ONCE];
        for some in candidates.chunks(CANDIDATES_AT_ONCE) {
            let rows = some.iter().map(|&term| &self.rows[term as usize * self.dims..][..self.dims]);
            let linear = Linear::from_columns(products, self.dims, rows);
            let columns = linear.columns();
            dots.resize(hidden.len() / self.dims * columns, 0.0);
            products.linear(&linear, hidden, Epilogue::None, &mut dots);
            let maxima = &mut maxima[..columns];
            maxima.fill(f32::NEG_INFINITY);
            for token in dots.chunks_exact(columns) {
                for (max, &dot) in maxima.iter_mut().zip(token) {
                    *max = if dot > *max { dot } else { *max };
                }
            }
            found.extend(some.iter().zip(maxima).filter_map(|(&term, max)| {
                let logit = *max + self.bias[term as usize];
                (logit > 0.0).then_some((term, logit))
            }));
        }
        found
    }
}

impl Head {
    /// The row of `hidden` (`[rows][dims]`) at which each of some terms has its maximal logit; of several equal ones
    /// the first.
    pub(crate) fn positions(&self, kernels: &Kernels, hidden: &[f32], terms: &[u32]) -> Vec<u32> {
        let products = f32_kernels::named(kernels.name);
        let mut found = Vec::with_capacity(terms.len());
        let mut dots = Vec::new();
        for some in terms.chunks(CANDIDATES_AT_ONCE) {
            let rows = some.iter().map(|&term| &self.rows[term as usize * self.dims..][..self.dims]);
            let linear = Linear::from_columns(products, self.dims, rows);
            let columns = linear.columns();
            dots.resize(hidden.len() / self.dims * columns, 0.0);
            products.linear(&linear, hidden, Epilogue::None, &mut dots);
            found.extend((0..some.len()).map(|column| {
                let (mut best, mut place) = (f32::NEG_INFINITY, 0);
                for (row, token) in dots.chunks_exact(columns).enumerate() {
                    if token[column] > best {
                        (best, place) = (token[column], row as u32);
                    }
                }
                place
            }));
        }
        found
    }
}

/// Rounds a norm up by one part in a thousand, far more than its own computation can be off.
fn inflate(norm: f64) -> f32 {
    (norm * (1.0 + 2f64.powi(-10))) as f32
}

/// The document's part of the bound; see [`Quantized::new`].
fn limits(scale: f32, error: f32, norm: f32) -> Limits {
    Limits { scale, error, norm }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::kernels::{PANEL, available};
    use super::{Head, NotFinite};

    /// A small generator: values in −1..1.
    fn numbers(seed: u64) -> impl FnMut() -> f32 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// At the position found, a term has the logit that the head gives it.
        #[test]
        fn positions_are_those_of_the_maxima(
            dims in 1usize..40, terms in 1usize..300, tokens in 1usize..20, seed in any::<u64>(),
        ) {
            let mut next = numbers(seed);
            let rows: Vec<f32> = (0..terms * dims).map(|_| next()).collect();
            let hidden: Vec<f32> = (0..tokens * dims).map(|_| next()).collect();
            let bias: Vec<f32> = (0..terms).map(|_| next()).collect();
            for kernels in available() {
                let head = Head::new(kernels, rows.clone(), bias.clone(), dims).unwrap();
                let found = head.project(kernels, &hidden, std::slice::from_ref(&(0..tokens)), 1).unwrap();
                let wanted: Vec<u32> = found[0].iter().map(|(term, _)| *term).collect();
                let positions = head.positions(kernels, &hidden, &wanted);
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

        /// Biases sit just below the typical maximum, so that many logits are close to 0 on either side.
        #[test]
        fn no_positive_term_is_missed(
            dims in 1usize..70, terms in 1usize..100, lengths in prop::collection::vec(1usize..15, 1..4),
            threads in 1usize..4, seed in any::<u64>(), outlier in 1f32..50.0,
        ) {
            let mut next = numbers(seed);
            let rows: Vec<f32> = (0..terms * dims).map(|_| next()).collect();
            let tokens: usize = lengths.iter().sum();
            let hidden: Vec<f32> =
                (0..tokens * dims).map(|at| if at % 61 == 0 { next() * outlier } else { next() }).collect();
            let all = reference(&rows, &vec![0.0; terms], dims, &hidden);
            let bias: Vec<f32> = all.iter().map(|logit| next() * 0.05 - *logit as f32).collect();
            let mut start = 0;
            let documents: Vec<_> = lengths.iter().map(|length| { start += length; start - length..start }).collect();
            for kernels in available() {
                let head = Head::new(kernels, rows.clone(), bias.clone(), dims).unwrap();
                let found = head.project(kernels, &hidden, &documents, threads).unwrap();
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
        let head = Head::new(kernels, rows, bias, dims).unwrap();
        let quantised = super::Quantized::new(&hidden, dims, kernels.levels).unwrap();
        for index in 0..terms / PANEL {
            let panel = super::Panel::new(
                &head.panels[index * dims * PANEL..][..dims * PANEL],
                &head.scale[index],
                &head.spread[index],
                &head.residual[index],
                &head.bias_above[index],
            );
            assert_eq!(kernels.candidates(&panel, &quantised.view(dims)), 0);
        }
    }

    /// One large number sets the scale, so that all others are rounded away, and the other side lies in their direction:
    /// Cauchy-Schwarz is an equality, and the whole positive logit is quantisation error.
    #[test]
    fn both_parts_of_the_margin_are_needed() {
        let dims = 64;
        let coarse: Vec<f32> = (0..dims).map(|dim| if dim == 0 { 127.0 } else { 0.49 }).collect();
        let flat: Vec<f32> = (0..dims).map(|dim| if dim == 0 { 0.0 } else { 1.0 }).collect();
        let logit = 0.49 * (dims - 1) as f32;
        for (row, hidden) in [(&coarse, &flat), (&flat, &coarse)] {
            for kernels in available() {
                let head = Head::new(kernels, row.clone(), vec![0.01 - logit], dims).unwrap();
                let found = head.project(kernels, hidden, std::slice::from_ref(&(0..1)), 1).unwrap();
                assert_eq!(found[0].len(), 1, "{}", kernels.name);
            }
        }
    }

    #[test]
    fn a_hidden_state_that_is_not_finite_is_an_error() {
        let head = Head::new(available()[0], vec![1.0; 40 * 8], vec![0.0; 40], 8).unwrap();
        for bad in [f32::NAN, f32::INFINITY] {
            let mut hidden = vec![0.5; 16];
            hidden[9] = bad;
            let document = std::slice::from_ref(&(0..2));
            assert_eq!(head.project(available()[0], &hidden, document, 1), Err(NotFinite));
        }
    }

    #[test]
    fn decoders_that_do_not_fit_are_refused() {
        assert!(Head::new(available()[0], vec![1.0; 7], vec![0.0; 2], 4).is_err());
        assert!(Head::new(available()[0], vec![f32::NAN; 8], vec![0.0; 2], 4).is_err());
        assert!(Head::new(available()[0], vec![], vec![], 4).is_err());
    }
}
