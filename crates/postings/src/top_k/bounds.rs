//! What no document's score is above, for who adds other scores to it.

use sparrow_types::DocId;

use crate::kernels::BLOCK;

/// Conversions and the sum of a few roundings in single precision, as a share of the bound.
const ROUNDING: f64 = 1e-6;

/// Upper bounds of the scores of wanted documents, one for every block of 8, left behind by
/// [`PostingsReader::top_k_bounded`](crate::PostingsReader::top_k_bounded).
#[derive(Debug, Default)]
pub struct ScoreBounds {
    totals: Vec<u16>,
    /// Score of a unit of `totals`, and what is added.
    unit: f32,
    base: f32,
}

impl ScoreBounds {
    /// Whether there are bounds: a search that took another way has none.
    pub fn is_known(&self) -> bool {
        !self.totals.is_empty()
    }

    /// No live and wanted document of the block with `doc` scores above. Infinite when nothing is known.
    #[inline]
    pub fn most(&self, doc: DocId) -> f32 {
        match self.totals.get(doc as usize / BLOCK) {
            Some(total) => f32::from(*total) * self.unit + self.base,
            None => f32::INFINITY,
        }
    }

    /// Takes the bounds of estimates in units of `unit`; see `pruned` for what estimates say of scores.
    pub(super) fn set(&mut self, totals: &[u16], unit: u32, units_per_score: f64, above: f64) {
        self.totals.clear();
        self.totals.extend_from_slice(totals);
        self.unit = (f64::from(unit) / units_per_score * (1.0 + ROUNDING)) as f32;
        self.base = (above / units_per_score * (1.0 + ROUNDING)) as f32;
    }
}
