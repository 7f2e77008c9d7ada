//! Products of bytes and attention with AMX, computed by [`crate::amx`], the former from the panels of AVX-512; all other functions are
//! those of AVX-512.

use std::arch::x86_64::*;

use crate::amx;

use super::Kernels;
use super::avx512::{self, Vnni};
use super::int8::{Columns, place, quantise};
use super::jobs::{Epilogue, Gemm};
use super::linear::Bytes;

mod attention;

pub(super) static KERNELS: Kernels = Kernels {
    name: "amx",
    // SAFETY: these kernels are handed out only where the processor has the features and the system allows their use; `Kernels` has
    // checked the lengths.
    gemm_bytes: |job, bytes, scratch, out| unsafe { gemm(job, bytes, scratch, out) },
    // SAFETY: as above.
    attention: |job, scratch, out| unsafe { attention::attention(job, scratch, out) },
    ..avx512::KERNELS
};

/// For the tests: the AMX kernels, emulated on a processor that has only AVX-512.
#[cfg(test)]
pub(super) fn available() -> Option<&'static Kernels> {
    (avx512::detect().is_some() && amx::runs()).then_some(&KERNELS)
}

/// Multiplies rows, quantised to bytes, with weights of 8 bits.
///
/// # Safety
/// The processor has the features and the system lets this process use them; the job was checked.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn gemm(job: &Gemm<'_>, bytes: &Bytes, scratch: &mut Vec<f32>, out: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe {
        match job.epilogue {
            Epilogue::None => product::<false>(job, bytes, scratch, out),
            Epilogue::Gelu => product::<true>(job, bytes, scratch, out),
        }
        amx::release();
    }
}

/// [`gemm`] with or without the activation GELU.
///
/// # Safety
/// As `gemm`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn product<const GELU: bool>(job: &Gemm<'_>, bytes: &Bytes, scratch: &mut Vec<f32>, out: &mut [f32]) {
    const PANEL: usize = 32;
    let (linear, depth) = (job.linear, job.linear.depth);
    let rows = place(scratch, job.rows, depth, 4);
    // SAFETY: the place is for these rows, whose numbers are bytes; there are `rows × columns` outputs, and panels of `depth × 32`
    // weights; sums are of a row that is there.
    unsafe {
        quantise::<Vnni>(job.input, &bytes.factors, rows);
        amx::prepare(job.rows, depth);
        for column in (0..linear.columns).step_by(PANEL) {
            let columns = Columns::of(bytes, &linear.bias, column);
            let weights = bytes.numbers.as_ptr().add(column * depth);
            amx::products((rows.words.cast(), job.rows), (weights, depth), |first, rows_here, sums| {
                for row in 0..rows_here {
                    let at = sums.add(row * PANEL);
                    let sums = [_mm512_loadu_si512(at.cast()), _mm512_loadu_si512(at.add(16).cast())];
                    let row = first + row;
                    let out = out.as_mut_ptr().add(row * linear.columns + column);
                    columns.put::<Vnni, GELU>(sums, *rows.spans.add(row), out);
                }
            });
        }
    }
}
