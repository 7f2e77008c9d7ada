//! AMX or not, for one decoder: by result and by time.

use std::time::{Duration, Instant};

use super::decoder::Decoder;
use super::kernels::{self, Kernels, Tiles};
use super::{Head, NotFinite};

/// Tokens of the sample that both are timed with.
const TOKENS: usize = 64;

/// The best round of each counts: a machine that does something else hurts both.
const ROUNDS: usize = 3;

/// Logits of the sample, and the time that they took.
type Timed = (Vec<Vec<(u32, f32)>>, Duration);

impl Head {
    /// This head, or one that is looked at with AMX, where that is faster. With AMX all dimensions of a pair cost less than a few
    /// of them and a list of those that are left, or so its rate says: a basis is left out. Results are the same.
    pub(crate) fn fastest(self) -> Self {
        match kernels::tiles() {
            Some((kernels, tiles)) => self.or_tiles(kernels, tiles),
            None => self,
        }
    }

    fn or_tiles(mut self, kernels: &'static Kernels, tiles: Tiles) -> Self {
        if (kernels.levels, kernels.shift) != (self.kernels.levels, self.kernels.shift) {
            return self;
        }
        let sample = self.sample();
        let Ok(usual) = self.time(&sample) else { return self };
        let plain = || Decoder::plain(kernels, &self.rows, &self.bias, self.dims);
        let turned =
            self.decoder.is_turned().then(plain).map(|plain| std::mem::replace(&mut self.decoder, plain));
        let before = std::mem::replace(&mut self.kernels, kernels);
        let new = self.time(&sample).unwrap_or_default();
        let same = usual.0 == new.0;
        if !same {
            tracing::warn!("AMX gives other results than {} and is not used", before.name);
        }
        if !same || tiles == Tiles::IfFaster && new.1 >= usual.1 {
            self.kernels = before;
            self.decoder = turned.unwrap_or(self.decoder);
        }
        let (usual, amx) = (usual.1.as_micros(), new.1.as_micros());
        tracing::debug!(
            used = self.kernels.name,
            usual,
            amx,
            "head's kernels chosen, by µs for {TOKENS} tokens"
        );
        self
    }

    /// Hidden states as a text may have them, `[TOKENS][dims]`.
    fn sample(&self) -> Vec<f32> {
        let rows = (0..TOKENS).map(|token| token * self.terms / TOKENS);
        rows.flat_map(|term| &self.rows[term * self.dims..][..self.dims]).copied().collect()
    }

    fn time(&self, hidden: &[f32]) -> Result<Timed, NotFinite> {
        let (mut found, mut best) = (Vec::new(), Duration::MAX);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            found = self.project(hidden, std::slice::from_ref(&(0..TOKENS)), 1)?;
            best = best.min(start.elapsed());
        }
        Ok((found, best))
    }
}
