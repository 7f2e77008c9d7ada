//! Decides whether a decoder uses AMX, by comparing results and times on a sample.

use std::time::{Duration, Instant};

use crate::bert::{Bert, Scratch};
use crate::instructions::Tiles;

use super::decoder::Decoder;
use super::kernels::{self, Kernels};
use super::{Head, NotFinite};

/// Tokens that both are timed with: few enough that a model is not loaded noticeably later.
const TOKENS: usize = 64;

/// Distinct tokens in the sample, the rest being repetitions: the transformer of a large model takes longer on them than what is timed.
const DIFFERENT: usize = 16;

/// Rounds that are timed, of which the fastest counts, as other work of the machine may slow down some.
const ROUNDS: usize = 3;

/// Logits of the sample's tokens by term, and the time of the fastest round.
type Timed = (Vec<Vec<(u32, f32)>>, Duration);

impl Head {
    /// This head, with AMX if that is faster. With AMX all pairs are looked at in all dimensions, which may take less time than a basis and
    /// its second look; results are the same. Unless `SPARROW_SIMD` demands AMX, it is used only if it processes a sample of hidden states
    /// faster. These are computed by `bert`, because they determine how many pairs a basis leaves.
    pub(crate) fn fastest(self, bert: &Bert) -> Self {
        let Some((kernels, tiles)) = kernels::tiles() else { return self };
        if tiles == Tiles::Always {
            return self.with(kernels).0;
        }
        match self.sample(bert) {
            Some(sample) => self.faster(kernels, &sample),
            None => self,
        }
    }

    /// This head with other kernels that take the same numbers, and with panels of all dimensions; also the kernels and the decoder that it
    /// had before.
    pub(super) fn with(mut self, kernels: &'static Kernels) -> (Self, Before) {
        debug_assert_eq!(self.kernels.levels, kernels.levels, "kernels for other numbers");
        let plain = || Decoder::plain(kernels, &self.rows.values(), &self.bias, self.dims);
        let plain = self.decoder.is_turned().then(plain);
        let decoder = plain.map(|plain| std::mem::replace(&mut self.decoder, plain));
        let kernels = std::mem::replace(&mut self.kernels, kernels);
        (self, Before { kernels, decoder })
    }

    /// This head with its own kernels or with others, whichever processes the sample faster.
    pub(super) fn faster(self, kernels: &'static Kernels, sample: &[f32]) -> Self {
        let Ok(usual) = self.time(sample) else { return self };
        let (mut head, before) = self.with(kernels);
        let tiles = head.time(sample).unwrap_or_default();
        let same = usual.0 == tiles.0;
        if !same {
            tracing::warn!(
                "AMX gives other weights than {} for this model and is not used",
                before.kernels.name
            );
        }
        if !same || tiles.1 >= usual.1 {
            head.kernels = before.kernels;
            head.decoder = before.decoder.unwrap_or(head.decoder);
        }
        let (used, usual, amx) = (head.kernels.name, usual.1.as_micros(), tiles.1.as_micros());
        tracing::debug!(used, usual, amx, "kernels of the head chosen by the µs that {TOKENS} tokens take");
        head
    }

    /// Hidden states, `[TOKENS][dims]`, of tokens from all over the vocabulary; `None` if `bert` cannot compute them.
    fn sample(&self, bert: &Bert) -> Option<Vec<f32>> {
        let ids: Vec<u32> = (0..DIFFERENT).map(|at| (at * self.terms / DIFFERENT) as u32).collect();
        let mut scratch = Scratch::default();
        let (hidden, _) = bert.forward(&[ids[..].into()], &mut scratch)?;
        Some(hidden.repeat(TOKENS / DIFFERENT))
    }

    fn time(&self, hidden: &[f32]) -> Result<Timed, NotFinite> {
        let (mut projected, mut best) = (Vec::new(), Duration::MAX);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            projected = self.project(hidden, std::slice::from_ref(&(0..TOKENS)), 1)?;
            best = best.min(start.elapsed());
        }
        Ok((projected, best))
    }
}

/// The kernels and the decoder that [`Head::with`] replaced.
pub(super) struct Before {
    kernels: &'static Kernels,
    /// The former decoder; `None` if it was not replaced.
    decoder: Option<Decoder>,
}
