//! AMX or not, for one decoder: by result and by time.

use std::time::{Duration, Instant};

use crate::bert::{Bert, Scratch};
use crate::instructions::Tiles;

use super::decoder::Decoder;
use super::kernels::{self, Kernels};
use super::{Head, NotFinite};

/// Tokens that both are timed with: few enough that a model is not loaded noticeably later.
const TOKENS: usize = 64;

/// Of these as many are different ones: the transformer of a large model takes longer than what is timed.
const DIFFERENT: usize = 16;

/// The best round of each counts: a machine that does something else hurts both.
const ROUNDS: usize = 3;

/// Logits of the sample, and the time that they took.
type Timed = (Vec<Vec<(u32, f32)>>, Duration);

impl Head {
    /// This head, or one that is looked at with AMX. With AMX all pairs are looked at in all dimensions, which may take less than
    /// a basis and its second look; results are the same. Unless `SPARROW_SIMD` asks for AMX, it is taken if a sample of hidden
    /// states is done sooner: those of `bert`, as how many pairs a basis leaves depends on them, so a model that ONNX Runtime
    /// runs stays as it is.
    pub(crate) fn fastest(self, bert: Option<&Bert>) -> Self {
        let Some((kernels, tiles)) = kernels::tiles() else { return self };
        if tiles == Tiles::Always {
            return self.with(kernels).0;
        }
        match bert.and_then(|bert| self.sample(bert)) {
            Some(sample) => self.faster(kernels, &sample),
            None => self,
        }
    }

    /// With all dimensions at once and other kernels for the same numbers; and what was there before.
    pub(super) fn with(mut self, kernels: &'static Kernels) -> (Self, Before) {
        debug_assert_eq!(self.kernels.levels, kernels.levels, "kernels for other numbers");
        let plain = || Decoder::plain(kernels, &self.rows.values(), &self.bias, self.dims);
        let plain = self.decoder.is_turned().then(plain);
        let decoder = plain.map(|plain| std::mem::replace(&mut self.decoder, plain));
        let kernels = std::mem::replace(&mut self.kernels, kernels);
        (self, Before { kernels, decoder })
    }

    /// As it is or with other kernels, whichever is done sooner with a sample.
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

    /// Hidden states, `[TOKENS][dims]`, of words from all over the vocabulary.
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

/// What [`Head::with`] took out.
pub(super) struct Before {
    kernels: &'static Kernels,
    /// If it is another one.
    decoder: Option<Decoder>,
}
