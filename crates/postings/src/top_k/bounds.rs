//! Upper bounds of documents' scores, for callers that add other scores to them.

use sparrow_runtime::DocId;

use crate::layout::BLOCK;

/// Relative allowance for the rounding of conversions and a few additions in single precision.
const ROUNDING: f64 = 1e-6;

/// Upper bounds of the scores of live documents that pass the filter, one for every block of 8, filled in by
/// [`PostingsReader::top_k_bounded`](crate::PostingsReader::top_k_bounded).
#[derive(Debug, Default)]
pub struct ScoreBounds {
    totals: Vec<u16>,
    /// Score per unit of `totals`; `base` is added to the product.
    unit: f32,
    base: f32,
}

impl ScoreBounds {
    /// Whether the search produced bounds; only some algorithms do.
    pub fn is_known(&self) -> bool {
        !self.totals.is_empty()
    }

    /// Upper bound of the scores of live documents that pass the filter in the block with `doc`; infinite
    /// when nothing is known.
    #[inline]
    pub fn most(&self, doc: DocId) -> f32 {
        match self.totals.get(doc as usize / BLOCK) {
            Some(total) => f32::from(*total) * self.unit + self.base,
            None => f32::INFINITY,
        }
    }

    /// Sets the bounds from upper bounds of estimates in units of `unit`; see `pruned` for how estimates
    /// relate to scores.
    pub(super) fn set(&mut self, totals: &[u16], unit: u32, units_per_score: f64, above: f64) {
        self.totals.clear();
        self.totals.extend_from_slice(totals);
        self.unit = (f64::from(unit) / units_per_score * (1.0 + ROUNDING)) as f32;
        self.base = (above / units_per_score * (1.0 + ROUNDING)) as f32;
    }
}
