//! Inner loops of the SPLADE head, one file per instruction set, chosen once per process.
//!
//! All work on one panel of [`PANEL`] vocabulary terms and one document, and are bit-equal to [`scalar`].
#![expect(unsafe_code, reason = "SIMD intrinsics; each file states what its callers owe")]

use std::sync::OnceLock;

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

/// Vocabulary terms of one panel: their running maxima fill two AVX-512 registers.
pub const PANEL: usize = 32;

/// Dimensions are padded to a multiple of this: one integer dot product instruction takes four.
pub const DIM_STEP: usize = 4;

/// Widest hidden state whose integer dot products stay exact in i32 (`127 · 255 · dims < 2³¹`).
pub const MAX_DIMS: usize = 65_536;

/// Quantised weights of [`PANEL`] terms.
///
/// `weights` is `[dims / 4][PANEL][4]` of values in −127..=127: the four bytes that one dot product instruction takes
/// for a term lie together.
#[derive(Debug, Clone, Copy)]
pub struct Panel<'a> {
    weights: &'a [i8],
    scale: &'a [f32; PANEL],
    spread: &'a [f32; PANEL],
    residual: &'a [f32; PANEL],
    bias: &'a [f32; PANEL],
}

impl<'a> Panel<'a> {
    /// A panel over its parts; `weights` are `dims × PANEL` quantised weights, the others one number per term: see
    /// [`Limits`] for their meaning.
    ///
    /// # Panics
    /// If `weights` is not a whole number of steps.
    pub fn new(
        weights: &'a [i8],
        scale: &'a [f32; PANEL],
        spread: &'a [f32; PANEL],
        residual: &'a [f32; PANEL],
        bias: &'a [f32; PANEL],
    ) -> Self {
        assert!(weights.len().is_multiple_of(PANEL * DIM_STEP), "panel is not a whole number of steps");
        Self { weights, scale, spread, residual, bias }
    }

    fn dims(&self) -> usize {
        self.weights.len() / PANEL
    }
}

/// What bounds the true maximal logit of a document, given its integer maxima.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Scale of the document's quantised hidden states.
    pub scale: f32,
    /// Largest Euclidean norm of a token's quantisation error; multiplied by a term's `spread`.
    pub error: f32,
    /// Largest Euclidean norm of a token's hidden state; multiplied by a term's `residual`.
    pub norm: f32,
}

/// The quantised hidden states of one document.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    values: &'a [i8],
    corrections: &'a [i32],
    limits: Limits,
}

impl<'a> Document<'a> {
    /// A document over its parts: `values` is `[tokens][dims]` in −127..=127, `corrections` holds −128 × the sum of
    /// each token's values (the unsigned instructions add 128 to every weight).
    ///
    /// # Panics
    /// If the lengths do not agree.
    pub fn new(values: &'a [i8], corrections: &'a [i32], dims: usize, limits: Limits) -> Self {
        assert_eq!(values.len(), corrections.len() * dims, "hidden states do not fit the token count");
        Self { values, corrections, limits }
    }

    fn tokens(&self) -> usize {
        self.corrections.len()
    }
}

/// One implementation of the inner loops.
#[derive(Debug)]
pub struct Kernels {
    /// Name as `SPARROW_SIMD` takes it.
    pub name: &'static str,
    /// For the tests: what `candidates` works with.
    #[cfg(test)]
    maxima: fn(&Panel<'_>, &Document<'_>, &mut [i32; PANEL]),
    candidates: fn(&Panel<'_>, &Document<'_>) -> u32,
}

impl Kernels {
    /// For each term of the panel the largest integer dot product over the document's tokens; `i32::MIN` without
    /// tokens.
    ///
    /// # Panics
    /// If panel and document differ in dimensions.
    #[cfg(test)]
    pub fn maxima(&self, panel: &Panel<'_>, document: &Document<'_>) -> [i32; PANEL] {
        check(panel, document);
        let mut out = [i32::MIN; PANEL];
        (self.maxima)(panel, document, &mut out);
        out
    }

    /// Bit i is set if the logit of term i may be positive for some token: no term whose exact f32 logit is positive is
    /// missed (see [`super`] for the bound).
    ///
    /// # Panics
    /// If panel and document differ in dimensions.
    pub fn candidates(&self, panel: &Panel<'_>, document: &Document<'_>) -> u32 {
        check(panel, document);
        (self.candidates)(panel, document)
    }
}

/// The SIMD files rely on this: a token's row is as long as a panel's column.
fn check(panel: &Panel<'_>, document: &Document<'_>) {
    assert_eq!(
        document.values.len(),
        document.tokens() * panel.dims(),
        "panel and document differ in dimensions"
    );
}

/// The shared last step: an upper bound of the exact maximal logit, compared with 0. Inlined into each implementation,
/// so that it is compiled with its instruction set; no multiplication is fused with an addition, so all give the same.
#[inline(always)]
fn select(maxima: &[i32; PANEL], panel: &Panel<'_>, limits: &Limits) -> u32 {
    let mut mask = 0u32;
    for (term, &max) in maxima.iter().enumerate() {
        let approximate = max as f32 * (panel.scale[term] * limits.scale);
        let margin = panel.spread[term] * limits.error + panel.residual[term] * limits.norm;
        // Written so that a NaN counts as a candidate: the exact computation decides.
        let ruled_out = approximate + margin + panel.bias[term] <= 0.0;
        mask |= u32::from(!ruled_out) << term;
    }
    mask
}

/// Every implementation that this processor runs, best first; the last is scalar.
pub fn available() -> &'static [&'static Kernels] {
    static AVAILABLE: OnceLock<Vec<&'static Kernels>> = OnceLock::new();
    AVAILABLE.get_or_init(|| {
        let mut found: Vec<&'static Kernels> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            found.extend(avx512::detect());
            found.extend(avx2::detect());
        }
        #[cfg(target_arch = "aarch64")]
        found.extend(neon::detect());
        found.push(&scalar::KERNELS);
        found
    })
}

/// The implementation of this process: the best available one, or the one that the environment variable
/// `SPARROW_SIMD` names.
pub fn chosen() -> &'static Kernels {
    static CHOSEN: OnceLock<&'static Kernels> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let wanted = std::env::var("SPARROW_SIMD").ok();
        let kernels = choose(wanted.as_deref());
        tracing::debug!(kernels = kernels.name, "encoder kernels chosen");
        kernels
    })
}

fn choose(wanted: Option<&str>) -> &'static Kernels {
    let best = available()[0];
    let Some(wanted) = wanted.filter(|name| !name.is_empty()) else { return best };
    available().iter().copied().find(|kernels| kernels.name == wanted).unwrap_or_else(|| {
        tracing::warn!(wanted, used = best.name, "SPARROW_SIMD names no instruction set of this processor");
        best
    })
}

#[cfg(test)]
mod tests;
