//! The SPLADE head: hidden states to token weights, with logits never materialised.
//!
//! A term's weight is `ln(1 + max(0, max_t(w·h_t) + b))` over the tokens t of a text (SPLADE v2, arXiv:2109.10086). The
//! maximum goes before bias, ReLU and logarithm, which are all increasing. Nearly all pairs of a term and a token have a
//! negative logit and play no part in this, so the head looks at all pairs with integer dot products, and at those that
//! are left in f32. With a [`Basis`] it looks twice: first at a few dimensions of all pairs, then at all dimensions of the
//! pairs that are left (under one in a hundred).
//!
//! # Why no pair is missed
//! Per term `w = s·q + e` and per token `h = a·p + d`, with integer vectors `q`, `p` and the quantisation errors `e`, `d`
//! known exactly. Then `w·h = s·a·(q·p) + s·q·d + e·h`, and by Cauchy-Schwarz
//!
//! `w·h ≤ s·a·(q·p) + ‖s·q‖·‖d‖ + ‖e‖·‖h‖`.
//!
//! The norms are computed once per term, and once per document as the largest of its tokens; a pair is ruled out only if
//! the right side plus the bias is not positive. The roundings of f32 (in the bound itself, and in the exact step, whose
//! sum of `n` products is off by at most `n·2⁻²³·‖w‖·‖h‖` in any order) are covered by enlarging the norms: see
//! [`quantize`] and [`decoder`]. The alternative, a fixed margin (0.25 in the prototype), is cheaper by a few candidates
//! and proves nothing.
//!
//! # The first look
//! Let `P`, `Q` be the matrices of the basis and `k` its offset, as the f32 numbers that they are. The term becomes
//! `w' = P·w + ε`, rounded as it comes, and a token `z' = Q·h + k + η`. Whatever `P`, `Q` and `k` are,
//!
//! `w·h = w'·z' − w'·k − w'·η + (w − Qᵀw')·h`,
//!
//! because `(Qᵀw')·h = w'·(Q·h)`. The bias takes `w'·k`. Sums of `n` products of f32 are off by at most `γ = (n + 16)·2⁻²⁴`
//! of the sum of their absolute values, which gives `‖ε‖ ≤ γ·‖P‖·‖w‖` and `‖η‖ ≤ γ·(‖Q‖·‖h‖ + ‖k‖)` in Frobenius norms, and
//!
//! `‖w − Qᵀw'‖ ≤ ‖(1 − QᵀP)·w‖ + ‖Qᵀε‖ ≤ (‖1 − QᵀP‖ + γ·‖Q‖·‖P‖)·‖w‖`.
//!
//! So the slack of a pair is at most `((‖1 − QᵀP‖ + γ·‖Q‖·‖P‖)·‖w‖ + γ·‖Q‖·‖w'‖)·(‖h‖ + ‖k‖/‖Q‖)`: a number of the term times
//! one of the document. Of `w'·z'` the first dimensions are quantised as above, and the rest is at most the product of the
//! rests' norms: both are rounded up to a whole number of the scale and become one more dimension.

use std::ops::Range;
use std::sync::Arc;

use crate::bert::kernels::{self as f32_kernels, Epilogue, Linear};
use crate::fixed::Precision;
use crate::table::{Row, Table};

pub(crate) use basis::Basis;
use decoder::{Decoder, Looks};
use kernels::{Kernels, MAX_DIMS, PANEL, Pair, prefetch};
pub(crate) use quantize::NotFinite;

mod basis;
mod decoder;
pub(crate) mod kernels;
mod packing;
mod quantize;
mod tiles;

/// A decoder: one row of weights and a bias for each vocabulary term. Shared by all allocations of a model.
pub(crate) struct Head {
    /// The inner loops that are used: those that the decoder was quantised for, or others that take the same numbers.
    kernels: &'static Kernels,
    terms: usize,
    dims: usize,
    /// `[terms][dims]`, for the exact step.
    rows: Arc<Table>,
    /// The bias of each term.
    bias: Vec<f32>,
    decoder: Decoder,
}

/// Tokens of a batch below which the work is not spread over threads, as starting them would take longer.
const MIN_TOKENS_FOR_THREADS: usize = 32;

/// Terms of one matrix product of [`Head::positions`]: few enough that their rows stay in the second-level cache.
const TERMS_AT_ONCE: usize = 256;

/// Pairs of a document that the second look and the exact step take at once: enough for prefetching to be in time, few enough that the rows
/// of all documents of a batch stay in the second-level cache. It also bounds memory when hardly anything is ruled out (the pairs of one
/// panel come on top).
const PAIRS_AT_ONCE: usize = 512;

/// Rows that the exact step prefetches ahead of the one that it multiplies.
const EXACT_AHEAD: usize = 8;

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Head").field("terms", &self.terms).field("dims", &self.dims).finish_non_exhaustive()
    }
}

impl Head {
    /// Quantises a decoder for one implementation of the inner loops. `rows` is `[terms][dims]`, `bias` is `[terms]`; with a basis, most
    /// pairs are ruled out by a few dimensions.
    ///
    /// # Errors
    /// A message that says which lengths do not fit or which numbers are not finite.
    pub(crate) fn new(
        kernels: &'static Kernels,
        rows: Vec<f32>,
        bias: Vec<f32>,
        dims: usize,
        basis: Option<&Basis>,
        precision: Precision,
    ) -> Result<Self, String> {
        if !rows.iter().all(|weight| weight.is_finite()) {
            return Err("decoder holds a weight that is not finite".into());
        }
        Self::over(kernels, Arc::new(Table::new(rows, dims, precision)), bias, dims, basis)
    }

    /// As [`Head::new`], over rows that are a table already, which others may share.
    ///
    /// # Errors
    /// As [`Head::new`].
    pub(crate) fn over(
        kernels: &'static Kernels,
        table: Arc<Table>,
        bias: Vec<f32>,
        dims: usize,
        basis: Option<&Basis>,
    ) -> Result<Self, String> {
        let terms = bias.len();
        if dims == 0 || dims > MAX_DIMS || terms == 0 || Some(table.len()) != terms.checked_mul(dims) {
            return Err(format!("decoder of {} weights is not {terms} rows of {dims}", table.len()));
        }
        // What the looks bound is what the exact step computes with.
        let rows = table.values();
        if !rows.iter().chain(&bias).all(|weight| weight.is_finite()) {
            return Err("decoder holds a weight that is not finite".into());
        }
        let decoder = match basis {
            None => Decoder::plain(kernels, &rows, &bias, dims),
            Some(basis) if basis.dims() == dims && basis.looks.len() == terms => {
                Decoder::turned(kernels, &rows, &bias, basis)
            }
            Some(basis) => {
                return Err(format!(
                    "basis of {} terms and {} dimensions is not for {terms} and {dims}",
                    basis.looks.len(),
                    basis.dims()
                ));
            }
        };
        drop(rows);
        Ok(Self { kernels, terms, dims, rows: table, bias, decoder })
    }

    /// Name of the instruction set that the inner loops use.
    pub(crate) fn instructions(&self) -> &'static str {
        self.kernels.name
    }

    /// Number of terms of the vocabulary.
    pub(crate) fn terms(&self) -> usize {
        self.terms
    }

    /// The decoder's weights, `[terms][dims]`; with tied weights also the word embeddings.
    pub(crate) fn rows(&self) -> &Arc<Table> {
        &self.rows
    }

    /// Width of a hidden state, in numbers.
    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    /// Positive maximal logits, ascending by term, for each document. `hidden` is `[rows][dims]`; a document is a range
    /// of its rows. `threads` above 1 share the vocabulary.
    ///
    /// # Errors
    /// [`NotFinite`] if a hidden state contains a NaN or an infinity.
    pub(crate) fn project(
        &self,
        hidden: &[f32],
        documents: &[Range<usize>],
        threads: usize,
    ) -> Result<Vec<Vec<(u32, f32)>>, NotFinite> {
        let kernels = self.kernels;
        let looked = documents
            .iter()
            .map(|rows| {
                let hidden = &hidden[rows.start * self.dims..rows.end * self.dims];
                Ok(Looked { hidden, looks: self.decoder.quantise(kernels, hidden)? })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let tokens: usize = documents.iter().map(Range::len).sum();
        let threads = if tokens < MIN_TOKENS_FOR_THREADS { 1 } else { threads };
        let mut shares = self.decoder.shares(threads);
        let mut merged = if let [all] = &shares[..] {
            self.project_panels(&looked, all.clone())
        } else {
            let parts: Vec<Vec<Vec<(u32, f32)>>> = std::thread::scope(|scope| {
                let looked = &looked;
                let workers: Vec<_> = shares
                    .drain(..)
                    .map(|share| scope.spawn(move || self.project_panels(looked, share)))
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
            merged
        };
        if self.decoder.is_turned() {
            merged.iter_mut().for_each(|weights| weights.sort_unstable_by_key(|(term, _)| *term));
        }
        Ok(merged)
    }

    /// The positive maximal logits of some panels' terms, for each document. The loop over panels is outside, so that a panel stays in the
    /// first-level cache while all documents of the batch use it.
    fn project_panels(&self, documents: &[Looked<'_>], panels: Range<usize>) -> Vec<Vec<(u32, f32)>> {
        let kernels = self.kernels;
        let mut masks = Vec::new();
        let mut work = vec![(Vec::new(), Vec::new()); documents.len()];
        let last = panels.end;
        for index in panels {
            for (document, (pairs, logits)) in documents.iter().zip(&mut work) {
                self.decoder.first_look(kernels, index, &document.looks, &mut masks, pairs);
                // All pairs of a term are in its panel, so they are looked at together.
                if pairs.len() >= PAIRS_AT_ONCE || index + 1 == last {
                    // What the exact step will read.
                    let ahead = |pairs: &[Pair]| pairs.iter().for_each(|pair| fetch::<false>(self.row(pair)));
                    self.decoder.second_look(kernels, &document.looks, pairs, ahead);
                    self.exact(document.hidden, pairs, logits);
                    pairs.clear();
                }
            }
        }
        kernels.release();
        work.into_iter().map(|(_, logits)| logits).collect()
    }

    /// The row of a pair's term.
    ///
    /// # Panics
    /// If the term is not in the vocabulary.
    fn row(&self, pair: &Pair) -> Row<'_> {
        let row = self.rows.get(self.decoder.order()[pair.term as usize] as usize);
        row.expect("a pair is of a term")
    }

    /// Computes the logits of pairs in f32 and appends each term's largest, if it is positive. The pairs must come panel by panel and
    /// include, for each term with a positive logit, the pair of its maximum.
    fn exact(&self, hidden: &[f32], pairs: &[Pair], logits: &mut Vec<(u32, f32)>) {
        let products = f32_kernels::named(self.kernels.name);
        let order = self.decoder.order();
        let mut ahead = pairs.iter().skip(EXACT_AHEAD);
        for pairs in pairs.chunk_by(|a, b| a.term as usize / PANEL == b.term as usize / PANEL) {
            let mut maxima = [f32::NEG_INFINITY; PANEL];
            for pair in pairs {
                if let Some(next) = ahead.next() {
                    fetch::<true>(self.row(next));
                }
                let token = &hidden[pair.token as usize * self.dims..][..self.dims];
                let dot = products.dot(self.row(pair), token);
                let max = &mut maxima[pair.term as usize % PANEL];
                *max = if dot > *max { dot } else { *max };
            }
            let first = pairs[0].term as usize / PANEL * PANEL;
            for (max, &term) in maxima.iter().zip(&order[first..]) {
                // Most have no pair; their bias is not looked up.
                if *max > f32::NEG_INFINITY {
                    let logit = *max + self.bias[term as usize];
                    if logit > 0.0 {
                        logits.push((term, logit));
                    }
                }
            }
        }
    }
}

/// Prefetches the memory of a row, as [`prefetch`] does.
#[inline(always)]
fn fetch<const NEAR: bool>(row: Row<'_>) {
    match row {
        Row::F32(row) => prefetch::<NEAR, _>(row),
        Row::Fixed { high, low, .. } => {
            prefetch::<NEAR, _>(high);
            prefetch::<NEAR, _>(low);
        }
        Row::Bytes { numbers, .. } => prefetch::<NEAR, _>(numbers),
        Row::Nibbles { bytes, .. } => prefetch::<NEAR, _>(bytes),
    }
}

/// A document's hidden states and their quantised forms.
struct Looked<'a> {
    /// Hidden states, `[tokens][dims]`.
    hidden: &'a [f32],
    looks: Looks,
}

impl Head {
    /// The row of `hidden` (`[rows][dims]`) at which each of some terms has its maximal logit; of several equal ones
    /// the first.
    ///
    /// # Panics
    /// If a term is not in the vocabulary.
    pub(crate) fn positions(&self, hidden: &[f32], terms: &[u32]) -> Vec<u32> {
        let products = f32_kernels::named(self.kernels.name);
        let mut places = Vec::with_capacity(terms.len());
        let (mut dots, mut rows) = (Vec::new(), Vec::new());
        for some in terms.chunks(TERMS_AT_ONCE) {
            rows.clear();
            for &term in some {
                self.rows.get(term as usize).expect("a term is in the vocabulary").append(&mut rows);
            }
            let linear = Linear::from_columns(products.order, self.dims, rows.chunks_exact(self.dims));
            let columns = linear.columns();
            dots.resize(hidden.len() / self.dims * columns, 0.0);
            products.linear(&linear, hidden, Epilogue::None, &mut Vec::new(), &mut dots);
            places.extend((0..some.len()).map(|column| {
                let (mut best, mut place) = (f32::NEG_INFINITY, 0);
                for (row, token) in dots.chunks_exact(columns).enumerate() {
                    if token[column] > best {
                        (best, place) = (token[column], row as u32);
                    }
                }
                place
            }));
        }
        places
    }
}

#[cfg(test)]
mod tests;
