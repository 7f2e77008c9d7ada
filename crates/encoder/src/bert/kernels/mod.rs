//! Inner loops of the forward pass, one file per instruction set, chosen once per process.
//!
//! All implementations share the loops of `generic.rs` and `product.rs` and differ in the vectors only: in how many numbers are added up
//! side by side, and in whether a multiplication and an addition round once. For a sum of `n` products that is
//! `|simd − scalar| ≤ n · 2⁻²³ · Σ|aᵢbᵢ|`. The exception is attention with AMX, see `amx/attention.rs`.
#![expect(unsafe_code, reason = "SIMD intrinsics; each file states what its callers owe")]

use std::sync::OnceLock;

use crate::nibbles;
use crate::table::{GROUP, Row};

mod generic;
mod int8;
mod jobs;
mod lanes;
mod linear;
mod product;
mod scalar;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(test)]
use jobs::Function;
use jobs::Gemm;
pub use jobs::{Attention, Epilogue, Norm};
use linear::{Bytes, Order, Panels};
pub use linear::{Linear, MAX_DEPTH, STEP};

/// One implementation of the inner loops.
#[derive(Debug)]
pub struct Kernels {
    /// Name as `SPARROW_SIMD` takes it.
    pub name: &'static str,
    /// The order in which the functions read packed weights.
    pub order: Order,
    gemm: fn(&Gemm<'_>, &mut Vec<f32>, &mut [f32]),
    gemm_bytes: fn(&Gemm<'_>, &Bytes, &mut Vec<f32>, &mut [f32]),
    normalize: fn(&Norm<'_>, &mut [f32], &[f32]),
    attention: fn(&Attention<'_>, &mut Vec<f32>, &mut [f32]),
    dot: fn(Row<'_>, &[f32]) -> f32,
    #[cfg(test)]
    map: fn(Function, &mut [f32]),
}

impl Kernels {
    /// Computes `out = epilogue(input · weights + bias)`: `input` is `[rows][depth]`, `out` is `[rows][columns]`. `scratch` is reused
    /// between calls.
    ///
    /// # Panics
    /// If the lengths do not agree, or the weights were packed for another implementation.
    pub fn linear(
        &self,
        linear: &Linear,
        input: &[f32],
        epilogue: Epilogue,
        scratch: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        assert_eq!(linear.panel, 2 * self.order.lanes, "weights are packed for another instruction set");
        let rows = out.len() / linear.columns;
        assert!(
            out.len() == rows * linear.columns && input.len() == rows * linear.depth,
            "{} inputs and {} outputs do not fit {} × {}",
            input.len(),
            out.len(),
            linear.depth,
            linear.columns
        );
        let job = Gemm { linear, input, rows, stride: linear.depth, epilogue };
        match &linear.panels {
            Panels::Bytes(bytes) => (self.gemm_bytes)(&job, bytes, scratch, out),
            Panels::F32(_) | Panels::Fixed { .. } => (self.gemm)(&job, scratch, out),
        }
    }

    /// Normalises rows in place, after adding `residual` (empty: nothing) to them.
    ///
    /// # Panics
    /// If the lengths do not agree.
    pub fn normalize(&self, norm: &Norm<'_>, rows: &mut [f32], residual: &[f32]) {
        let width = norm.scale.len();
        assert!(
            width > 0 && width.is_multiple_of(STEP) && norm.shift.len() == width,
            "rows are not whole vectors"
        );
        assert!(
            rows.len().is_multiple_of(width) && (residual.is_empty() || residual.len() == rows.len()),
            "rows and residual differ"
        );
        (self.normalize)(norm, rows, residual);
    }

    /// Scaled dot-product attention of one text; `out` is `[tokens][width]`. `scratch` is memory that calls share.
    ///
    /// # Panics
    /// If the lengths do not agree.
    pub fn attention(&self, job: &Attention<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
        let Attention { qkv, tokens, width, heads, .. } = *job;
        assert!(
            heads > 0 && width.is_multiple_of(heads * STEP) && out.len() == tokens * width,
            "heads are not whole vectors"
        );
        assert_eq!(qkv.len(), 3 * out.len(), "queries, keys and values do not fit the tokens");
        (self.attention)(job, scratch, out);
    }

    /// The dot product of two rows; the order of its additions depends on nothing but their length and how the first is kept.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn dot(&self, a: Row<'_>, b: &[f32]) -> f32 {
        let fits = match a {
            Row::F32(a) => a.len() == b.len(),
            Row::Fixed { high, low, .. } => {
                high.len() == b.len() && 2 * low.len() == b.len() && b.len().is_multiple_of(GROUP)
            }
            Row::Bytes { numbers, .. } => numbers.len() == b.len() && b.len().is_multiple_of(GROUP),
            Row::Nibbles { bytes, .. } => {
                2 * bytes.len() == b.len() && b.len().is_multiple_of(nibbles::GROUP)
            }
        };
        assert!(fits, "rows differ in length");
        (self.dot)(a, b)
    }

    #[cfg(test)]
    fn map(&self, function: Function, values: &mut [f32]) {
        assert!(values.len().is_multiple_of(STEP));
        (self.map)(function, values);
    }
}

/// Makes the functions of one instruction set: the generic loops, compiled with its features.
macro_rules! kernels {
    ($name:literal, $vector:ty, $whole:ty, $($features:literal)?) => {
        pub(super) static KERNELS: $crate::bert::kernels::Kernels = $crate::bert::kernels::Kernels {
            name: $name,
            order: $crate::bert::kernels::linear::Order {
                lanes: <$vector as $crate::bert::kernels::lanes::Lanes>::LANES,
                group: <$whole as $crate::bert::kernels::int8::Whole>::GROUP,
                shift: <$whole as $crate::bert::kernels::int8::Whole>::SHIFT,
            },
            // SAFETY: this table is handed out only where the processor has the features, and `Kernels` has checked the
            // lengths.
            gemm: |job, scratch, out| unsafe { gemm(job, scratch, out) },
            // SAFETY: as above.
            gemm_bytes: |job, bytes, scratch, out| unsafe { gemm_bytes(job, bytes, scratch, out) },
            // SAFETY: as above.
            normalize: |job, rows, residual| unsafe { normalize(job, rows, residual) },
            // SAFETY: as above.
            attention: |job, scratch, out| unsafe { attention(job, scratch, out) },
            // SAFETY: as above.
            dot: |a, b| unsafe { dot(a, b) },
            #[cfg(test)]
            // SAFETY: as above.
            map: |function, values| unsafe { map(function, values) },
        };

        /// Multiplies rows with weights of f32 or 20 bits.
        ///
        /// # Safety
        /// The processor has the features, and the job was checked.
        $(#[target_feature(enable = $features)])?
        unsafe fn gemm(job: &$crate::bert::kernels::jobs::Gemm<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
            // SAFETY: the caller's promise.
            unsafe { $crate::bert::kernels::product::gemm::<$vector>(job, scratch, out) }
        }

        /// Multiplies rows with weights of 8 bits.
        ///
        /// # Safety
        /// As `gemm`.
        $(#[target_feature(enable = $features)])?
        unsafe fn gemm_bytes(
            job: &$crate::bert::kernels::jobs::Gemm<'_>,
            bytes: &$crate::bert::kernels::linear::Bytes,
            scratch: &mut Vec<f32>,
            out: &mut [f32],
        ) {
            // SAFETY: the caller's promise.
            unsafe { $crate::bert::kernels::int8::gemm::<$whole>(job, bytes, scratch, out) }
        }

        /// Normalises rows in place.
        ///
        /// # Safety
        /// As `gemm`.
        $(#[target_feature(enable = $features)])?
        unsafe fn normalize(job: &$crate::bert::kernels::jobs::Norm<'_>, rows: &mut [f32], residual: &[f32]) {
            // SAFETY: the caller's promise.
            unsafe { $crate::bert::kernels::generic::normalize::<$vector>(job, rows, residual) }
        }

        /// Computes one text's attention.
        ///
        /// # Safety
        /// As `gemm`.
        $(#[target_feature(enable = $features)])?
        unsafe fn attention(job: &$crate::bert::kernels::jobs::Attention<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
            // SAFETY: the caller's promise.
            unsafe { $crate::bert::kernels::generic::attention::<$vector>(job, scratch, out) }
        }

        /// The dot product of two rows.
        ///
        /// # Safety
        /// As `gemm`.
        $(#[target_feature(enable = $features)])?
        unsafe fn dot(a: $crate::table::Row<'_>, b: &[f32]) -> f32 {
            // SAFETY: the caller's promise.
            unsafe { $crate::bert::kernels::product::dot::<$vector>(a, b) }
        }

        /// For the tests: applies a function to each number.
        ///
        /// # Safety
        /// As `gemm`.
        #[cfg(test)]
        $(#[target_feature(enable = $features)])?
        unsafe fn map(function: $crate::bert::kernels::jobs::Function, values: &mut [f32]) {
            // SAFETY: the caller's promise.
            unsafe { $crate::bert::kernels::lanes::map::<$vector>(function, values) }
        }
    };
}
use kernels;

/// Every implementation that this processor runs, best first; the last is scalar.
pub fn available() -> &'static [&'static Kernels] {
    static AVAILABLE: OnceLock<Vec<&'static Kernels>> = OnceLock::new();
    AVAILABLE.get_or_init(|| {
        let mut implementations: Vec<&'static Kernels> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            implementations.extend(avx512::detect());
            // Beside the others in tests only: whether it is used is decided for each model, see `tiles`.
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

/// AMX's kernels in place of AVX-512's, as both take the same weights of bytes, and any others as they are: where the head may use tiles,
/// so may this.
pub fn with_tiles(kernels: &'static Kernels) -> &'static Kernels {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if kernels.name == avx512::KERNELS.name && crate::instructions::tiles().is_some() {
        return &amx::KERNELS;
    }
    kernels
}

/// The implementation that goes with the head's: the one of that name, or the best.
pub fn named(name: &str) -> &'static Kernels {
    let best = available()[0];
    available().iter().copied().find(|kernels| kernels.name == name).unwrap_or(best)
}

#[cfg(test)]
mod tests;
