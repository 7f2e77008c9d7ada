//! AVX2, BMI and POPCNT: kernels of single documents.

use std::arch::x86_64::*;

use super::x86::bits_of;
use super::{Bitmap, SparseIds};
use crate::layout::{Place, Posting};

pub(super) fn count(words: &[u64]) -> u64 {
    // SAFETY: implementation() found the instruction.
    unsafe { count_words(words) }
}

#[target_feature(enable = "popcnt")]
fn count_words(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

pub(super) fn find_dense(bitmap: &Bitmap<'_>, places: &[Place], first: u32, found: &mut [Posting]) -> usize {
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn find(bitmap: &Bitmap<'_>, places: &[Place], first: u32, found: &mut [Posting]) -> usize {
        super::documents::find_dense(bitmap, places, first, found)
    }
    // SAFETY: implementation() found the instructions.
    unsafe { find(bitmap, places, first, found) }
}

pub(super) fn find_sparse(
    list: &SparseIds<'_>,
    places: &[Place],
    first: u32,
    found: &mut [Posting],
) -> usize {
    #[target_feature(enable = "avx2,bmi1")]
    fn find(list: &SparseIds<'_>, places: &[Place], first: u32, found: &mut [Posting]) -> usize {
        super::documents::find_sparse(list, places, first, found, |near, _, id| {
            let wanted = _mm256_set1_epi16(id as i16);
            let equal = |at: usize| {
                // SAFETY: 64 ids are four vectors; unaligned.
                _mm256_cmpeq_epi16(
                    unsafe { _mm256_loadu_si256(near.as_ptr().cast::<__m256i>().add(at)) },
                    wanted,
                )
            };
            bits_of(equal(0), equal(1)) | bits_of(equal(2), equal(3)) << 32
        })
    }
    // SAFETY: implementation() found the instructions.
    unsafe { find(list, places, first, found) }
}
