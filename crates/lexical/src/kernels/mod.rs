//! SIMD kernels for the windows of [`crate::any`]; all unsafe code of the crate is here.
//!
//! All implementations are equal, bit for bit. The choice is made once; `SPARROW_SIMD` (`scalar`, `avx2`) forces one that the machine
//! has. AVX-512, which writes the wanted lanes of a vector one after another, was not faster.

#![expect(unsafe_code, reason = "vector instructions")]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

/// Number of sums processed together; the length of a window is a multiple of it.
pub(crate) const GROUP: usize = 16;

/// Documents of a window with the sums of their scores. Anything beyond `len` is ignored.
pub(crate) struct Candidates {
    docs: Vec<u32>,
    sums: Vec<f32>,
    len: usize,
}

impl Candidates {
    /// An empty list with room for `most` documents.
    pub(crate) fn new(most: usize) -> Self {
        // The last one that is not wanted is written as well.
        Self { docs: vec![0; most + 1], sums: vec![0.0; most + 1], len: 0 }
    }

    /// Removes the documents whose sums are less than `floor`.
    pub(crate) fn keep(&mut self, floor: f32) {
        let mut len = 0;
        for at in 0..self.len {
            let sum = self.sums[at];
            (self.docs[len], self.sums[len]) = (self.docs[at], sum);
            len += usize::from(sum >= floor);
        }
        self.len = len;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self) -> (&[u32], &[f32]) {
        (&self.docs[..self.len], &self.sums[..self.len])
    }

    pub(crate) fn get_mut(&mut self) -> (&[u32], &mut [f32]) {
        (&self.docs[..self.len], &mut self.sums[..self.len])
    }
}

/// One implementation of all kernels.
pub(crate) struct Implementation {
    name: &'static str,
    count: fn(&[[f32; GROUP]], f32) -> usize,
    collect: fn(&mut [[f32; GROUP]], f32, u32, &mut Candidates),
}

impl Implementation {
    /// Number of sums that are at least `floor`. The length of `sums` must be a multiple of [`GROUP`].
    pub(crate) fn count(&self, sums: &[f32], floor: f32) -> usize {
        (self.count)(sums.as_chunks().0, floor)
    }

    /// Replaces `found` by the documents whose sums are at least `floor`, and these sums; `start` is the first
    /// document of `sums`. Sets all sums to 0. The length of `sums` must be a multiple of [`GROUP`].
    pub(crate) fn collect(&self, sums: &mut [f32], floor: f32, start: u32, found: &mut Candidates) {
        (self.collect)(sums.as_chunks_mut().0, floor, start, found);
    }
}

static CHOSEN: LazyLock<Implementation> = LazyLock::new(|| {
    let wanted = std::env::var("SPARROW_SIMD").ok();
    let mut all = available();
    let position = all.iter().position(|one| Some(one.name) == wanted.as_deref());
    all.swap_remove(position.unwrap_or(0))
});

/// The implementation in use.
pub(crate) fn chosen() -> &'static Implementation {
    &CHOSEN
}

/// Implementations that this machine can run, fastest first; the scalar one is always last.
fn available() -> Vec<Implementation> {
    let mut all = Vec::new();
    #[cfg(target_arch = "x86_64")]
    all.extend(avx2::implementation());
    all.push(scalar::implementation());
    all
}
