//! Vectors to search: real ones from files, or random ones shaped like SPLADE's.

use std::fs;
use std::io;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Number of terms in the vocabulary of the embedded model, and in that of the random vectors.
pub const VOCABULARY: usize = 30_522;

/// Sparse rows: row `r` has the terms `idx[ptr[r]..ptr[r + 1]]` with the weights at the same places.
pub struct Rows {
    ptr: Vec<u32>,
    idx: Vec<u32>,
    val: Vec<f32>,
}

impl Rows {
    /// Reads at most `limit` rows of `PREFIX.ptr` (u32, rows + 1), `PREFIX.idx` (u32) and
    /// `PREFIX.val` (f32), all little-endian.
    pub fn read(prefix: &Path, limit: usize) -> io::Result<Self> {
        let file = |extension: &str, most: usize| -> io::Result<Vec<[u8; 4]>> {
            use io::Read as _;
            let mut bytes = Vec::new();
            let path = format!("{}.{extension}", prefix.display());
            fs::File::open(path)?.take(most.saturating_mul(4) as u64).read_to_end(&mut bytes)?;
            Ok(bytes.as_chunks::<4>().0.to_vec())
        };
        let ptr: Vec<u32> =
            file("ptr", limit.saturating_add(1))?.into_iter().map(u32::from_le_bytes).collect();
        let count = ptr.last().copied().unwrap_or(0) as usize;
        let idx: Vec<u32> = file("idx", count)?.into_iter().map(u32::from_le_bytes).collect();
        let val: Vec<f32> = file("val", count)?.into_iter().map(f32::from_le_bytes).collect();
        let whole = ptr.is_sorted() && idx.len() == count && val.len() == count;
        if ptr.is_empty() || !whole || idx.iter().any(|term| *term as usize >= VOCABULARY) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not the rows of a sparse matrix"));
        }
        Ok(Self { ptr, idx, val })
    }

    /// `count` random rows of `terms` terms: a term's frequency falls with its rank, weights are
    /// roughly log-normal.
    pub fn random(seed: u64, count: usize, terms: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut rows = Self { ptr: vec![0], idx: Vec::new(), val: Vec::new() };
        for _ in 0..count {
            let mut row: Vec<u32> = (0..terms).map(|_| random_term(&mut rng)).collect();
            row.sort_unstable();
            row.dedup();
            rows.val.extend(row.iter().map(|_| random_weight(&mut rng)));
            rows.idx.extend(row);
            rows.ptr.push(rows.idx.len() as u32);
        }
        rows
    }

    pub fn len(&self) -> usize {
        self.ptr.len() - 1
    }

    pub fn count(&self) -> usize {
        self.idx.len()
    }

    /// Terms and weights of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f32)> + Clone + '_ {
        let range = self.ptr[row] as usize..self.ptr[row + 1] as usize;
        self.idx[range.clone()].iter().copied().zip(self.val[range].iter().copied())
    }
}

/// A random term number with skewed frequencies, as in the embedded model's real output: low numbers are
/// frequent.
fn random_term(rng: &mut StdRng) -> u32 {
    let uniform: f64 = rng.random();
    (((VOCABULARY as f64).powf(uniform * uniform.sqrt().sqrt()) * 1.8) as usize % VOCABULARY) as u32
}

fn random_weight(rng: &mut StdRng) -> f32 {
    let normal: f32 = (0..6).map(|_| rng.random::<f32>()).sum::<f32>() - 3.0;
    (normal * 1.1 - 0.6).exp().min(3.5)
}

/// A bitmap of `count` documents in which each bit is set with probability `share`.
pub fn random_bits(seed: u64, count: usize, share: f64) -> Vec<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut bits = vec![0; count.div_ceil(64)];
    (0..count).for_each(|at| bits[at / 64] |= u64::from(rng.random_bool(share)) << (at % 64));
    bits
}
