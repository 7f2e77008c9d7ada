//! Vector instructions for the window scan of `top_k`; everything unsafe of the crate.
//!
//! A window's accumulators hold 64 documents per group, the even ones in the first 32 lanes, the
//! odd ones in the last 32 ([`lane`]): that is how widening bytes to 16 bits splits them, and
//! putting them back in order would cost more than the multiplication. Impacts count in units of
//! 1/256 of a factor: a posting adds `impact * factor >> 8`. All implementations are equal, bit
//! for bit.
//!
//! The choice is made once; `SPARROW_SIMD` (`scalar`, `avx2`, `avx512`, `neon`) forces one that the
//! machine has.

#![expect(unsafe_code, reason = "vector instructions")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_blocks;
#[cfg(target_arch = "x86_64")]
mod avx2_documents;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_blocks;
#[cfg(target_arch = "x86_64")]
mod avx512_documents;
#[cfg(target_arch = "x86_64")]
mod avx512_scores;
mod bitmap;
mod blocks;
mod cases;
mod documents;
#[cfg(target_arch = "aarch64")]
mod neon;
mod prefetch;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::LazyLock;

use crate::layout::{BLOCK, Place, Posting};
use crate::trace;

pub use cases::kernel_cases;

pub(crate) use bitmap::Bitmap;
pub(crate) use blocks::{AHEAD, BlockTerm, Blocks, BoundTerms, MAXIMUM_BLOCKS, Scope, coarse};
pub(crate) use documents::SparseIds;
pub(crate) use prefetch::{fetch, fetch_all};

/// Documents of a bitmap word, lanes of a group.
pub(crate) const GROUP: usize = 64;
/// Bytes that an implementation may read past the impacts of a window.
const SLACK: usize = 64;

/// Accumulator lane of a document, given its number in the group or in the window.
#[inline]
pub(crate) const fn lane(id: u16) -> u16 {
    (id & !63) | ((id & 1) << 5) | ((id & 63) >> 1)
}

/// The part of a dense term that is in one window.
#[derive(Clone, Copy)]
pub(crate) struct DenseTerm<'a> {
    /// One little-endian 64-bit word per group.
    pub(crate) bitmap: &'a [u8],
    /// Impacts from the window's first posting on and the bytes that follow: as many bytes as the window has
    /// documents, and 64 more.
    pub(crate) impacts: &'a [u8],
    /// Multiplier of the impacts; a posting adds `impact * factor >> 8`.
    pub(crate) factor: u16,
}

impl DenseTerm<'_> {
    /// Whether the slices cover everything that an implementation reads for this many groups.
    fn covers(&self, groups: usize) -> bool {
        self.bitmap.len() >= groups * 8 && self.impacts.len() >= groups * GROUP + SLACK
    }
}

/// Signature of [`Implementation::scatter`].
type Scatter = fn(&[[u8; 2]], &[u8], u16, &mut [u16; 1 << 16]);
/// Signature of [`Implementation::bounds`].
type Bounds = fn(&[BlockTerm<'_>], usize, &[u16], u16, &[u8], &mut [u16], &mut [u16]);
/// Signature of [`Implementation::wanted_bounds`]; the flag says whether the levels count wanted documents only.
type WantedBounds = fn(&[BlockTerm<'_>], usize, &[u16], u16, &[u8], bool, &mut [u16], &mut [u16]);
/// Signature of [`Implementation::bound_documents`].
type BoundDocuments = fn(&[BlockTerm<'_>], usize, &[u16], &[u16], u16, &mut [u16]) -> u32;

/// Signature of [`Implementation::find_dense`].
type FindDense = fn(&Bitmap<'_>, &[Place], u32, &mut [Posting]) -> usize;
/// Signature of [`Implementation::find_sparse`].
type FindSparse = fn(&SparseIds<'_>, &[Place], u32, &mut [Posting]) -> usize;

/// One set of kernels, as function pointers. Call them only through the methods, which check the slices'
/// lengths.
pub(crate) struct Implementation {
    name: &'static str,
    scanned_share: f64,
    add_dense: fn(&mut [u16], &[u64], &[DenseTerm<'_>]),
    to_lanes: fn(&[[u16; GROUP]], &mut [[u16; GROUP]]),
    nonzero: fn(&[u16], &mut [u64]),
    at_least: fn(&[u16], u16, &mut [u64]),
    rank: fn(&[u8; 16], u32) -> u32,
    scatter: Scatter,
    mask: fn(&[u8], &mut [u16]),
    mark: fn(&[u16], &mut [u64]),
    bounds: Bounds,
    /// Like `bounds`, but for wanted documents only.
    wanted_bounds: WantedBounds,
    /// Whether `wanted_bounds` costs little more than `bounds`.
    scopes: bool,
    coarse_bounds: fn(&[u8; 16], u16, u32) -> [u8; 16],
    start: fn(&[u16], &[[u16; BLOCK]], u16, &mut Blocks),
    select: fn(&[u16], &[u16], u16, u32, &mut Vec<u32>),
    first_highest: fn(&[[u16; MAXIMUM_BLOCKS]], &[u16], &mut [u32]),
    find_blocks: fn(&BlockTerm<'_>, Option<&BlockTerm<'_>>, &mut Blocks),
    add_blocks: fn(&BlockTerm<'_>, &mut Blocks, u32, u32),
    count: fn(&[u64]) -> u64,
    find_dense: FindDense,
    find_sparse: FindSparse,
    list: fn(&[u64], &mut Vec<u16>),
    highest: fn(&[u16], &mut [u16]),
    bound_documents: BoundDocuments,
    /// Documents are bounded one by one if at most one in this many is wanted.
    pub(crate) strict: u64,
}

impl Implementation {
    /// Adds the contributions of dense terms to the accumulators of a window, whole groups. Groups
    /// whose word in `wanted` is 0 are passed over, which makes strict filters cheap.
    ///
    /// Terms whose slices are too short (the bytes were changed after they were checked) are left out.
    pub(crate) fn add_dense(&self, sums: &mut [u16], wanted: &[u64], terms: &[DenseTerm<'_>]) {
        let groups = (sums.len() / GROUP).min(wanted.len());
        let (sums, wanted) = (&mut sums[..groups * GROUP], &wanted[..groups]);
        for term in terms.iter().filter(|term| trace::ON && term.covers(groups)) {
            trace::touch(term.bitmap, 0..groups * 8);
            let impacts: u32 = term.bitmap[..groups * 8].iter().map(|byte| byte.count_ones()).sum();
            trace::touch(term.impacts, 0..impacts as usize);
        }
        if terms.iter().all(|term| term.covers(groups)) {
            (self.add_dense)(sums, wanted, terms);
        } else {
            let whole: Vec<_> = terms.iter().copied().filter(|term| term.covers(groups)).collect();
            (self.add_dense)(sums, wanted, &whole);
        }
    }

    /// Reorders sums from document order into the lanes of a window's accumulators; whole groups.
    pub(crate) fn to_lanes(&self, sums: &[u16], lanes: &mut [u16]) {
        (self.to_lanes)(sums.as_chunks().0, lanes.as_chunks_mut().0);
    }

    /// Sets, in document order, the bit of every document whose sum is not 0. One word per group.
    pub(crate) fn nonzero(&self, sums: &[u16], bits: &mut [u64]) {
        let groups = (sums.len() / GROUP).min(bits.len());
        (self.nonzero)(&sums[..groups * GROUP], &mut bits[..groups]);
    }

    /// Sets, in document order, the bit of every document whose sum is at least `floor`. One word per group.
    pub(crate) fn at_least(&self, sums: &[u16], floor: u16, bits: &mut [u64]) {
        let groups = (sums.len() / GROUP).min(bits.len());
        (self.at_least)(&sums[..groups * GROUP], floor, &mut bits[..groups]);
    }

    /// Number of bits set among the lowest `end` (under 128) of 128 bitmap bits.
    #[inline]
    pub(crate) fn rank(&self, block: &[u8; 16], end: u32) -> u32 {
        (self.rank)(block, end)
    }

    /// Share of a part's blocks, 0 to 1, above which scanning all its documents costs less than scoring the
    /// blocks.
    pub(crate) fn scanned_share(&self) -> f64 {
        self.scanned_share
    }

    /// Name of the instruction set it uses, as in `SPARROW_SIMD`.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

static CHOSEN: LazyLock<Implementation> = LazyLock::new(|| {
    let wanted = std::env::var("SPARROW_SIMD").ok();
    let mut all = available();
    let position = all.iter().position(|one| Some(one.name) == wanted.as_deref());
    all.swap_remove(position.unwrap_or(0))
});

/// The implementation that this process uses.
#[inline]
pub(crate) fn chosen() -> &'static Implementation {
    &CHOSEN
}

/// Name of the implementation in use, as in `SPARROW_SIMD`.
pub fn implementation_name() -> &'static str {
    CHOSEN.name()
}

/// Implementations that this machine can run, fastest first; the scalar one is always last.
pub(crate) fn available() -> Vec<Implementation> {
    let mut all = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        all.extend(avx512::implementation());
        all.extend(avx2::implementation());
    }
    #[cfg(target_arch = "aarch64")]
    all.extend(neon::implementation());
    all.push(scalar::implementation());
    all
}

#[cfg(test)]
mod tests;
