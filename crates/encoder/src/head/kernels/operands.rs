//! What the kernels of the head compute with: panels and rows of terms, documents, pairs of both, and their bounds.

use crate::numbers::{LINE, prefetch_line};

/// Vocabulary terms in a panel: the integer dot products of a token with them fill two AVX-512 registers.
pub const PANEL: usize = 32;

/// Dimensions are padded to a multiple of this: one integer dot product instruction takes four.
pub const DIM_STEP: usize = 4;

/// Widest hidden state whose integer dot products stay exact in i32 (`127 · 255 · dims < 2³¹`, and `127 · 127 · dims < 2³⁰`).
pub const MAX_DIMS: usize = 65_536;

/// The rows of the second look are padded to a multiple of this many bytes, the width of the widest register.
pub const ROW_STEP: usize = 64;

/// The integers that weights and values are quantised to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// Quantised weights and values are integers from `-most` to `most`.
    pub most: i8,
    /// Added to each value of a document that may be negative, as x86 multiplies unsigned by signed bytes; subtracting the shift times the
    /// sum of the weights undoes it. Values that cannot be negative are not shifted and are at most `most + shift`.
    pub shift: u8,
}

/// The numbers of [`PANEL`] terms that bound their logits, given integer dot products: see `thresholds`.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Scale of the quantised weights.
    pub scale: [f32; PANEL],
    /// Factor of [`Limits::error`] in each term's margin.
    pub spread: [f32; PANEL],
    /// Factor of [`Limits::norm`] in each term's margin.
    pub residual: [f32; PANEL],
    /// Factor of [`Limits::reach`] in each term's margin.
    pub slack: [f32; PANEL],
    /// The bias, rounded up; negative infinity beyond the vocabulary.
    pub bias: [f32; PANEL],
    /// Sum of each term's quantised weights, without those for values that have no shift.
    pub sums: [i32; PANEL],
}

impl Bounds {
    /// Bounds of a panel without terms.
    pub fn empty() -> Self {
        let zero = [0.0; PANEL];
        Self {
            scale: [1.0; PANEL],
            spread: zero,
            residual: zero,
            slack: zero,
            bias: [f32::NEG_INFINITY; PANEL],
            sums: [0; PANEL],
        }
    }
}

/// The numbers of one term that bound its logit, as in [`Bounds`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Bound {
    /// Scale of the quantised weights.
    pub scale: f32,
    /// Factor of [`Limits::error`] in the term's margin.
    pub spread: f32,
    /// Factor of [`Limits::norm`] in the term's margin.
    pub residual: f32,
    /// The bias, rounded up.
    pub bias: f32,
    /// Sum of the quantised weights.
    pub sum: i32,
}

impl Bound {
    /// Whether the logit may be positive, given the integer dot product with a token whose values all have `shift` added.
    #[inline(always)]
    pub(super) fn admits(&self, dot: i32, shift: u8, limits: &Limits) -> bool {
        let dot = dot - i32::from(shift) * self.sum;
        let margin = self.spread * limits.error + self.residual * limits.norm;
        // Written so that a NaN passes: the exact step decides.
        let ruled_out = dot as f32 * (self.scale * limits.scale) + margin + self.bias <= 0.0;
        !ruled_out
    }
}

/// Quantised weights of [`PANEL`] terms, which are multiplied with a token together.
///
/// `weights` is `[dims / 4][PANEL][4]` of values in −most..=most: the four bytes that one dot product instruction takes
/// for a term lie together.
#[derive(Debug, Clone, Copy)]
pub struct Panel<'a> {
    pub(super) weights: &'a [i8],
    pub(super) bounds: &'a Bounds,
}

impl<'a> Panel<'a> {
    /// A panel of `dims × PANEL` quantised weights.
    ///
    /// # Panics
    /// If `weights` is not a whole number of steps.
    pub fn new(weights: &'a [i8], bounds: &'a Bounds) -> Self {
        assert!(weights.len().is_multiple_of(PANEL * DIM_STEP), "panel is not a whole number of steps");
        Self { weights, bounds }
    }

    pub(super) fn dims(&self) -> usize {
        self.weights.len() / PANEL
    }
}

/// Quantised weights of terms, which are multiplied with a token one by one: `[terms][dims]`, with `dims` a multiple of [`ROW_STEP`].
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub(super) weights: &'a [i8],
    pub(super) dims: usize,
    pub(super) bounds: &'a [Bound],
}

impl<'a> Rows<'a> {
    /// Prefetches what [`Kernels::refine`](super::Kernels::refine) will read of the terms of some pairs, into the first-level cache (`NEAR`) or the second-level
    /// cache.
    ///
    /// # Panics
    /// If a pair is of no term.
    pub fn prefetch<const NEAR: bool>(&self, pairs: &[Pair]) {
        for pair in pairs {
            prefetch::<NEAR, _>(&self.weights[pair.term as usize * self.dims..][..self.dims]);
            prefetch::<NEAR, _>(std::slice::from_ref(&self.bounds[pair.term as usize]));
        }
    }

    /// Rows over their parts.
    ///
    /// # Panics
    /// If the lengths of the parts do not fit one another.
    pub fn new(weights: &'a [i8], dims: usize, bounds: &'a [Bound]) -> Self {
        assert!(dims.is_multiple_of(ROW_STEP), "rows are not a whole number of steps");
        assert_eq!(weights.len(), bounds.len() * dims, "rows and bounds differ");
        Self { weights, dims, bounds }
    }
}

/// A term and a token whose logit may be positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Index of the term in the decoder's order.
    pub term: u32,
    /// Index of the token in the document.
    pub token: u32,
}

/// The numbers of one document that bound its logits, given integer dot products.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Scale of the document's quantised hidden states.
    pub scale: f32,
    /// Largest Euclidean norm of a token's quantisation error; multiplied by a term's `spread`.
    pub error: f32,
    /// Largest Euclidean norm of a token's quantised values times their scale; multiplied by a term's `residual`.
    pub norm: f32,
    /// Factor of the rounding errors before quantisation (see [`crate::head`]); multiplied by a term's `slack`.
    pub reach: f32,
}

/// The quantised hidden states of one document.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub(super) values: &'a [u8],
    pub(super) tokens: usize,
    pub(super) limits: Limits,
}

impl<'a> Document<'a> {
    /// A document of `values`, `[tokens][dims]`: numbers in −most..=most with [`Levels::shift`] added to each (wrapping: with a shift
    /// of 0 they are signed bytes). Values that the sums of [`Bounds`] do not count have no shift.
    ///
    /// # Panics
    /// If the lengths do not agree.
    pub fn new(values: &'a [u8], tokens: usize, dims: usize, limits: Limits) -> Self {
        assert_eq!(values.len(), tokens * dims, "hidden states do not fit the token count");
        Self { values, tokens, limits }
    }
}

/// Prefetches a row: into the first-level cache (`NEAR`) if it will be read soon, into the second-level cache if later. Rows of pairs are
/// scattered in memory, and the processor cannot predict them.
#[inline(always)]
pub fn prefetch<const NEAR: bool, T>(row: &[T]) {
    for line in 0..size_of_val(row).div_ceil(LINE) {
        prefetch_line::<NEAR>(row.as_ptr().cast::<u8>().wrapping_add(line * LINE));
    }
}
