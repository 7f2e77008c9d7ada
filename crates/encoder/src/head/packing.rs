//! A decoder without a basis in a file of packed weights.

use std::sync::Arc;

use crate::numbers::AlignedSlice;
use crate::packed::{HeadShape, Packed, Packer, Unusable};
use crate::table::Table;

use super::Head;
use super::decoder::Decoder;
use super::kernels::{Bounds, DIM_STEP, Kernels, MAX_DIMS, PANEL};

impl Head {
    /// Writes a decoder that has no basis.
    ///
    /// # Errors
    /// The error of writing the file.
    pub(crate) fn store(&self, file: &mut Packer) -> std::io::Result<HeadShape> {
        debug_assert!(!self.decoder.is_turned());
        self.rows.store("head.rows", file)?;
        file.put("head.bias", &self.bias)?;
        file.put("head.panels", &self.decoder.weights)?;
        let per_term = |of: PerTerm| -> Vec<f32> { self.decoder.bounds.iter().flat_map(of).collect() };
        for (name, of) in PER_TERM {
            file.put(name, &per_term(of))?;
        }
        Ok(HeadShape { terms: self.terms, dims: self.dims })
    }

    /// Opens the decoder that [`Head::store`] wrote for the same kernels.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if a part is missing or of another length.
    pub(crate) fn open(
        packed: &Packed,
        shape: HeadShape,
        kernels: &'static Kernels,
    ) -> Result<Self, Unusable> {
        let HeadShape { terms, dims } = shape;
        let rows = Table::open("head.rows", dims, false, packed)?;
        let bias: AlignedSlice<f32> = packed.get("head.bias")?;
        let panels: AlignedSlice<i8> = packed.get("head.panels")?;
        let count = terms.div_ceil(PANEL);
        let per_term = |(name, _)| packed.get::<f32>(name);
        let [scale, spread, residual, bias_above, sums] = PER_TERM.map(per_term);
        let per_term = [scale?, spread?, residual?, bias_above?, sums?];
        let fits = (1..=MAX_DIMS).contains(&dims)
            && terms > 0
            && bias.len() == terms
            && Some(rows.len()) == terms.checked_mul(dims)
            && Some(panels.len()) == (count * PANEL).checked_mul(dims.next_multiple_of(DIM_STEP))
            && per_term.iter().all(|values| values.len() == count * PANEL);
        if !fits {
            return Err(Unusable::Damaged("a section of the decoder is of another length"));
        }
        let [scale, spread, residual, bias_above, sums] =
            per_term.map(|values| values.as_chunks().0.to_vec());
        let bounds = (0..count).map(|panel| Bounds {
            scale: scale[panel],
            spread: spread[panel],
            residual: residual[panel],
            slack: [0.0; PANEL],
            bias: bias_above[panel],
            sums: sums[panel].map(|sum: f32| sum as i32),
        });
        let decoder = Decoder::of_panels(dims, terms, panels, bounds.collect());
        let (rows, bias) = (Arc::new(rows), bias.to_vec());
        Ok(Self { kernels, terms, dims, rows, bias, decoder })
    }
}

/// Selects one number of each term from a panel's bounds.
type PerTerm = fn(&Bounds) -> [f32; PANEL];

/// The sections with one f32 for each term, padded to whole panels: name, and the member of [`Bounds`]. A sum of at most [`MAX_DIMS`] bytes
/// is an integer that an f32 represents exactly.
const PER_TERM: [(&str, PerTerm); 5] = [
    ("head.scale", |bounds| bounds.scale),
    ("head.spread", |bounds| bounds.spread),
    ("head.residual", |bounds| bounds.residual),
    ("head.bias_above", |bounds| bounds.bias),
    ("head.sums", |bounds| bounds.sums.map(|sum| sum as f32)),
];
