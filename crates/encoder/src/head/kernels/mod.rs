//! Inner loops of the SPLADE head, one file per instruction set, chosen once per process.
//!
//! All implementations work on one panel of [`PANEL`] vocabulary terms and one document and find the same pairs as [`scalar`]. The order of
//! the pairs and of the bits of a mask may differ.
#![expect(unsafe_code, reason = "SIMD intrinsics; each file states what its callers owe")]

use std::sync::OnceLock;

use crate::instructions::{self, Tiles, wanted};
use crate::numbers::{LINE, prefetch_line};

use super::NotFinite;
use super::quantize::{Quantized, Turned};

mod scalar;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

/// Vocabulary terms in a panel: the integer dot products of a token with them fill two AVX-512 registers.
pub const PANEL: usize = 32;

/// Dimensions are padded to a multiple of this: one integer dot product instruction takes four.
pub const DIM_STEP: usize = 4;

/// Widest hidden state whose integer dot products stay exact in i32 (`127 · 255 · dims < 2³¹`, and `127 · 127 · dims < 2³⁰`).
pub const MAX_DIMS: usize = 65_536;

/// The rows of the second look are padded to a multiple of this many bytes, the width of the widest register.
pub const ROW_STEP: usize = 64;

/// The numbers of [`PANEL`] terms that bound their logits, given integer dot products: see [`thresholds`].
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
    fn admits(&self, dot: i32, shift: u8, limits: &Limits) -> bool {
        let dot = dot - i32::from(shift) * self.sum;
        let margin = self.spread * limits.error + self.residual * limits.norm;
        // Written so that a NaN passes: the exact step decides.
        let ruled_out = dot as f32 * (self.scale * limits.scale) + margin + self.bias <= 0.0;
        !ruled_out
    }
}

/// Quantised weights of [`PANEL`] terms, which are multiplied with a token together.
///
/// `weights` is `[dims / 4][PANEL][4]` of values in −levels..=levels: the four bytes that one dot product instruction takes
/// for a term lie together.
#[derive(Debug, Clone, Copy)]
pub struct Panel<'a> {
    weights: &'a [i8],
    bounds: &'a Bounds,
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

    fn dims(&self) -> usize {
        self.weights.len() / PANEL
    }
}

/// Quantised weights of terms, which are multiplied with a token one by one: `[terms][dims]`, with `dims` a multiple of [`ROW_STEP`].
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    weights: &'a [i8],
    dims: usize,
    bounds: &'a [Bound],
}

impl<'a> Rows<'a> {
    /// Prefetches what [`Kernels::refine`] will read of the terms of some pairs, into the first-level cache (`NEAR`) or the second-level
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
    /// Factor of the rounding errors before quantisation (see [`super`]); multiplied by a term's `slack`.
    pub reach: f32,
}

/// The quantised hidden states of one document.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    values: &'a [u8],
    tokens: usize,
    limits: Limits,
}

impl<'a> Document<'a> {
    /// A document of `values`, `[tokens][dims]`: numbers in −levels..=levels with [`Kernels::shift`] added to each (wrapping: with a shift
    /// of 0 they are signed bytes). Values that the sums of [`Bounds`] do not count have no shift.
    ///
    /// # Panics
    /// If the lengths do not agree.
    pub fn new(values: &'a [u8], tokens: usize, dims: usize, limits: Limits) -> Self {
        assert_eq!(values.len(), tokens * dims, "hidden states do not fit the token count");
        Self { values, tokens, limits }
    }
}

/// One implementation of the inner loops.
#[derive(Debug)]
pub struct Kernels {
    /// Name as `SPARROW_SIMD` takes it.
    pub name: &'static str,
    /// Quantised weights and values are integers from `−levels` to `levels`.
    pub levels: i8,
    /// Added to each value of a document that may be negative, as x86 multiplies unsigned by signed bytes; subtracting the shift times the
    /// sum of the weights undoes it. Values that cannot be negative are not shifted and are at most `levels + shift`.
    pub shift: u8,
    quantise: fn(&[f32], usize, usize, &Kernels) -> Result<Quantized, NotFinite>,
    quantise_turned: fn(&Turned<'_>, &Kernels) -> Result<Vec<Quantized>, NotFinite>,
    screen: fn(&Panel<'_>, &Document<'_>, &mut [u32]),
    collect: fn(&[u32], u32, &mut Vec<Pair>),
    refine: fn(&Rows<'_>, &Document<'_>, &mut [Pair]) -> usize,
    release: fn(),
}

/// Makes the functions that quantise, compiled with the features of one instruction set.
#[cfg(target_arch = "x86_64")]
macro_rules! quantisers {
    ($features:literal) => {
        /// [`Quantized::whole`], compiled with these target features.
        ///
        /// # Safety
        /// The processor has the features.
        #[target_feature(enable = $features)]
        unsafe fn quantise(
            hidden: &[f32],
            dims: usize,
            padded: usize,
            kernels: &super::Kernels,
        ) -> Result<super::Quantized, super::NotFinite> {
            super::Quantized::whole(hidden, dims, padded, kernels)
        }

        /// [`Quantized::turned`], compiled with these target features.
        ///
        /// # Safety
        /// As `quantise`.
        #[target_feature(enable = $features)]
        unsafe fn quantise_turned(
            tokens: &super::Turned<'_>,
            kernels: &super::Kernels,
        ) -> Result<Vec<super::Quantized>, super::NotFinite> {
            super::Quantized::turned(tokens, kernels)
        }
    };
}
#[cfg(target_arch = "x86_64")]
use quantisers;

impl Kernels {
    /// Quantises hidden states, `[tokens][dims]`, for this implementation, into rows of `padded` bytes, at least `dims`.
    ///
    /// # Errors
    /// [`NotFinite`] if a number is not.
    pub(super) fn quantise(
        &self,
        hidden: &[f32],
        dims: usize,
        padded: usize,
    ) -> Result<Quantized, NotFinite> {
        (self.quantise)(hidden, dims, padded, self)
    }

    /// Quantises tokens in the new basis, once for each number of dimensions of the first look.
    ///
    /// # Errors
    /// [`NotFinite`] if a number is not.
    pub(super) fn quantise_turned(&self, tokens: &Turned<'_>) -> Result<Vec<Quantized>, NotFinite> {
        (self.quantise_turned)(tokens, self)
    }

    /// The first look: bounds the logits of all terms of a panel with all tokens of a document and appends the pairs whose logit may be
    /// positive to `found`, ordered by token; `first` is the place of the panel's first term. No pair with a positive exact f32 logit is
    /// missed (see [`super`] for the bound). `masks` is scratch memory that is reused between calls.
    ///
    /// # Panics
    /// If panel and document differ in dimensions.
    pub fn screen(
        &self,
        panel: &Panel<'_>,
        document: &Document<'_>,
        first: u32,
        masks: &mut Vec<u32>,
        pairs: &mut Vec<Pair>,
    ) {
        // The SIMD files rely on this: a token's row is as long as a panel's column, and there is a mask for each token.
        assert_eq!(
            document.values.len(),
            document.tokens * panel.dims(),
            "panel and document differ in dimensions"
        );
        // Every implementation writes all of them.
        masks.resize(document.tokens, 0);
        (self.screen)(panel, document, masks);
        (self.collect)(masks, first, pairs);
    }

    /// The second look: bounds the logits of pairs in all dimensions, moves those that may be positive to the front, and returns their
    /// number.
    ///
    /// # Panics
    /// If rows and document differ in dimensions, or a pair's term or token does not exist.
    pub fn refine(&self, rows: &Rows<'_>, document: &Document<'_>, pairs: &mut [Pair]) -> usize {
        assert_eq!(
            document.values.len(),
            document.tokens * rows.dims,
            "rows and document differ in dimensions"
        );
        (self.refine)(rows, document, pairs)
    }

    /// Releases processor state that the thread holds after calling [`Kernels::screen`] (AMX tiles); to be called before the thread does
    /// other work.
    pub fn release(&self) {
        (self.release)();
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

/// Moves the pairs that [`Bound::admits`] to the front and returns their number; `dot` computes the dot product of a term's row and a
/// token's. Inlined into each implementation so that it is compiled with its instruction set.
#[inline(always)]
fn keep(
    rows: &Rows<'_>,
    document: &Document<'_>,
    shift: u8,
    pairs: &mut [Pair],
    dot: impl Fn(&[i8], &[u8]) -> i32,
) -> usize {
    let dims = rows.dims;
    let row = |pair: &Pair| &rows.weights[pair.term as usize * dims..][..dims];
    let mut kept = 0;
    for at in 0..pairs.len() {
        let pair = pairs[at];
        let values = &document.values[pair.token as usize * dims..][..dims];
        let passes = rows.bounds[pair.term as usize].admits(dot(row(&pair), values), shift, &document.limits);
        // Without a branch: which pairs pass cannot be foreseen.
        pairs[kept] = pair;
        kept += usize::from(passes);
    }
    kept
}

/// Bound of the absolute value of thresholds (before the shift); integer dot products are below it: see [`MAX_DIMS`].
const FAR: i32 = 1 << 30;

/// For each term of a panel, the number that an integer dot product (of values with `shift` added) must exceed for the logit to be possibly
/// positive.
///
/// The logit is at most `scale · dot + margin + bias`; the margin (see [`super`]) is large enough for the roundings here.
/// Inlined into each implementation, so that it is compiled with its instruction set; no multiplication is fused with an
/// addition, so all give the same.
#[inline(always)]
fn thresholds(bounds: &Bounds, limits: &Limits, shift: u8) -> [i32; PANEL] {
    let mut out = [0; PANEL];
    for (term, out) in out.iter_mut().enumerate() {
        let margin = bounds.spread[term] * limits.error
            + bounds.residual[term] * limits.norm
            + bounds.slack[term] * limits.reach;
        let scale = bounds.scale[term] * limits.scale;
        let least = -(margin + bounds.bias[term]) / scale;
        // Written so that a NaN lets all pass, and a scale that has lost its digits as well: the exact step decides.
        let least = if least < FAR as f32 { least } else { FAR as f32 };
        let sound = scale > 1e-36 && margin + bounds.bias[term] < f32::INFINITY && least > -FAR as f32;
        let least = if sound { least } else { -FAR as f32 };
        // SAFETY: a number within ±FAR. (A conversion that saturates is done one by one.)
        let least = unsafe { least.to_int_unchecked::<i32>() };
        // One less is below, whichever way the conversion rounds.
        *out = least - 1 + i32::from(shift) * bounds.sums[term];
    }
    out
}

/// Every implementation that this processor runs, best first; the last is scalar.
pub fn available() -> &'static [&'static Kernels] {
    static AVAILABLE: OnceLock<Vec<&'static Kernels>> = OnceLock::new();
    AVAILABLE.get_or_init(|| {
        let mut implementations: Vec<&'static Kernels> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            implementations.extend(avx512::detect());
            // Beside the others in tests only: whether it is used is decided for each decoder, see `tiles`.
            #[cfg(all(test, target_os = "linux"))]
            implementations.extend(amx::available());
            implementations.extend(avx2::detect());
        }
        #[cfg(target_arch = "aarch64")]
        implementations.extend(neon::detect());
        implementations.push(&scalar::KERNELS);
        implementations
    })
}

/// The implementation of this process: the best available one, or the one that the environment variable
/// `SPARROW_SIMD` names.
pub fn chosen() -> &'static Kernels {
    static CHOSEN: OnceLock<&'static Kernels> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let kernels = choose(wanted().as_deref());
        tracing::debug!(kernels = kernels.name, "encoder kernels chosen");
        kernels
    })
}

fn choose(wanted: Option<&str>) -> &'static Kernels {
    let best = available()[0];
    let Some(wanted) = wanted.filter(|name| *name != "amx") else { return best };
    available().iter().copied().find(|kernels| kernels.name == wanted).unwrap_or_else(|| {
        tracing::warn!(wanted, used = best.name, "SPARROW_SIMD names no instruction set of this processor");
        best
    })
}

/// The implementation for AMX, where [`instructions::tiles`] allows it, and how it may be used. It takes the same panels and documents as
/// [`chosen`].
pub fn tiles() -> Option<(&'static Kernels, Tiles)> {
    let tiles = instructions::tiles()?;
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    let kernels = amx::beside_tiles();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let kernels = None;
    Some((kernels?, tiles))
}

#[cfg(test)]
mod tests;
