//! Inner loops of the SPLADE head, one file per instruction set, chosen once per process.
//!
//! All implementations work on one panel of [`PANEL`] vocabulary terms and one document and find the same pairs as [`scalar`]. The order of
//! the pairs and of the bits of a mask may differ.
#![expect(unsafe_code, reason = "SIMD intrinsics; each file states what its callers owe")]

use std::sync::OnceLock;

use crate::instructions::{self, Tiles, wanted};

use super::quantize::{NotFinite, Quantized, Turned};

mod operands;
mod scalar;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

pub use operands::{
    Bound, Bounds, DIM_STEP, Document, Levels, Limits, MAX_DIMS, PANEL, Pair, Panel, ROW_STEP, Rows, prefetch,
};

/// One implementation of the inner loops.
#[derive(Debug)]
pub struct Kernels {
    /// Name as `SPARROW_SIMD` takes it.
    pub name: &'static str,
    /// The integers that its operands are quantised to.
    pub levels: Levels,
    quantise: fn(&[f32], usize, usize, Levels) -> Result<Quantized, NotFinite>,
    quantise_turned: fn(&Turned<'_>, Levels) -> Result<Vec<Quantized>, NotFinite>,
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
            levels: $crate::head::kernels::Levels,
        ) -> Result<$crate::head::quantize::Quantized, $crate::head::quantize::NotFinite> {
            $crate::head::quantize::Quantized::whole(hidden, dims, padded, levels)
        }

        /// [`Quantized::turned`], compiled with these target features.
        ///
        /// # Safety
        /// As `quantise`.
        #[target_feature(enable = $features)]
        unsafe fn quantise_turned(
            tokens: &$crate::head::quantize::Turned<'_>,
            levels: $crate::head::kernels::Levels,
        ) -> Result<Vec<$crate::head::quantize::Quantized>, $crate::head::quantize::NotFinite> {
            $crate::head::quantize::Quantized::turned(tokens, levels)
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
        (self.quantise)(hidden, dims, padded, self.levels)
    }

    /// Quantises tokens in the new basis, once for each number of dimensions of the first look.
    ///
    /// # Errors
    /// [`NotFinite`] if a number is not.
    pub(super) fn quantise_turned(&self, tokens: &Turned<'_>) -> Result<Vec<Quantized>, NotFinite> {
        (self.quantise_turned)(tokens, self.levels)
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
