//! Kernels to benchmark, each with data like that of a segment of 100,000 documents.

use super::{Bitmap, BlockTerm, Blocks, BoundTerms, DenseTerm, GROUP, Scope, available};

/// Chunks of 1,024 documents.
const CHUNKS: usize = 98;

/// Name of a kernel, name of its implementation, and a closure that runs it once.
pub type Case = (&'static str, &'static str, Box<dyn FnMut()>);

/// For benchmarks only: every kernel of every implementation that this machine can run.
///
/// `bounds`: 12 dense terms, all blocks. `add_blocks`: one dense term, every 16th block. `scatter`: one
/// sparse term in a 25th of a window's documents. `add_dense`: 12 dense terms over a window.
#[doc(hidden)]
pub fn kernel_cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for of in 0..available().len() {
        let kernels = || available().swap_remove(of);
        let name = kernels().name();
        cases.push(("bounds", name, bounds(kernels())));
        cases.push(("add_blocks", name, add_blocks(kernels())));
        cases.push(("scatter", name, scatter(kernels())));
        cases.push(("add_dense", name, add_dense(kernels())));
    }
    cases
}

/// `len` pseudo-random bytes.
fn bytes(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A bitmap with a sixteenth of its bits set, and its ranks.
fn bitmap() -> (Vec<u8>, Vec<u8>) {
    let random = bytes(CHUNKS * 128 * 4);
    let bits: Vec<u8> = random.as_chunks::<4>().0.iter().map(|[a, b, c, d]| a & b & c & d).collect();
    let mut rank = 0_u32;
    let mut ranks = Vec::new();
    for group in bits.as_chunks::<16>().0 {
        ranks.extend((rank as u16).to_le_bytes());
        rank += u128::from_le_bytes(*group).count_ones();
    }
    (bits, ranks)
}

fn bounds(kernels: super::Implementation) -> Box<dyn FnMut()> {
    let levels: Vec<Vec<u8>> = (0..12).map(|_| bytes(CHUNKS * 64)).collect();
    let (sums, wanted) = (vec![3; CHUNKS * 1024], vec![255; CHUNKS * 128]);
    let (mut totals, mut highest) = (vec![0; CHUNKS * 128], vec![0; CHUNKS * 4]);
    Box::new(move || {
        let terms: Vec<_> = levels
            .iter()
            .map(|levels| BlockTerm { levels, bounds: [7; 16], ..BlockTerm::default() })
            .collect();
        kernels.bounds(
            BoundTerms { terms: &terms, first: 0, scope: Scope::All },
            &sums,
            1000,
            &wanted,
            &mut totals,
            &mut highest,
        );
    })
}

fn add_blocks(kernels: super::Implementation) -> Box<dyn FnMut()> {
    let ((bitmap, ranks), levels, impacts) = (bitmap(), bytes(CHUNKS * 64), bytes(CHUNKS * 1024 + 8));
    let ids: Vec<u32> = (0..CHUNKS as u32 * 128).step_by(16).collect();
    let (sums, totals, wanted) = (vec![3; CHUNKS * 1024], vec![100; CHUNKS * 128], vec![255; CHUNKS * 128]);
    let mut blocks = Blocks::default();
    Box::new(move || {
        let term = BlockTerm {
            bitmap: Bitmap { bits: &bitmap, ranks: &ranks, regions: &[0; 8] },
            levels: &levels,
            impacts: &impacts,
            bounds: [7; 16],
            factor: 900,
        };
        kernels.start(&ids, &totals, &sums, &wanted, Scope::All, 1000, &mut blocks);
        kernels.add_blocks(&term, None, &mut blocks, 40, 0);
    })
}

fn scatter(kernels: super::Implementation) -> Box<dyn FnMut()> {
    let ids: Vec<[u8; 2]> = (0..16_384_u16).step_by(25).map(u16::to_le_bytes).collect();
    let (impacts, mut sums) = (bytes(ids.len()), Box::new([0; 1 << 16]));
    Box::new(move || kernels.scatter(&ids, &impacts, 900, &mut sums))
}

fn add_dense(kernels: super::Implementation) -> Box<dyn FnMut()> {
    let ((bitmap, _), impacts) = (bitmap(), bytes(16_384 + 64));
    let (mut sums, wanted) = (vec![0; 16_384], vec![u64::MAX; 16_384 / GROUP]);
    Box::new(move || {
        let term = DenseTerm { bitmap: &bitmap, impacts: &impacts, factor: 900 };
        kernels.add_dense(&mut sums, &wanted, &[term; 12]);
    })
}
