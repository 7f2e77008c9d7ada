//! A decoder in a file of packed weights.

use std::sync::Arc;

use crate::numbers::Numbers;
use crate::packed::{HeadShape, Packed, Packer, Unusable};

use super::Head;
use super::kernels::{DIM_STEP, Kernels, MAX_DIMS, PANEL};

impl Head {
    /// Writes a decoder.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn store(&self, file: &mut Packer) -> std::io::Result<HeadShape> {
        file.put("head.rows", &self.rows)?;
        file.put("head.bias", &self.bias)?;
        file.put("head.panels", &self.panels)?;
        let terms = [&self.scale, &self.spread, &self.residual, &self.bias_above];
        for (name, values) in PER_TERM.iter().zip(terms) {
            file.put(name, values.as_flattened())?;
        }
        Ok(HeadShape { terms: self.terms, dims: self.dims })
    }

    /// What [`Head::store`] wrote for the same kernels.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if a part is missing or of another length.
    pub(crate) fn open(packed: &Packed, shape: HeadShape, kernels: &Kernels) -> Result<Self, Unusable> {
        let HeadShape { terms, dims } = shape;
        let rows: Numbers<f32> = packed.get("head.rows")?;
        let bias: Numbers<f32> = packed.get("head.bias")?;
        let panels: Numbers<i8> = packed.get("head.panels")?;
        let count = terms.div_ceil(PANEL);
        let per_term = |name: &str| {
            let values: Numbers<f32> = packed.get(name)?;
            Ok::<_, Unusable>(values.as_chunks().0.to_vec())
        };
        let [scale, spread, residual, bias_above] = PER_TERM.map(per_term);
        let (scale, spread, residual, bias_above) = (scale?, spread?, residual?, bias_above?);
        let fits = (1..=MAX_DIMS).contains(&dims)
            && terms > 0
            && bias.len() == terms
            && Some(rows.len()) == terms.checked_mul(dims)
            && Some(panels.len()) == (count * PANEL).checked_mul(dims.next_multiple_of(DIM_STEP))
            && [&scale, &spread, &residual, &bias_above].iter().all(|values| values.len() == count);
        if !fits {
            return Err(Unusable::Damaged("a section of the decoder is of another length"));
        }
        let (levels, rows, bias) = (kernels.levels, Arc::new(rows), bias.to_vec());
        Ok(Self { levels, terms, dims, rows, bias, panels, scale, spread, residual, bias_above })
    }
}

/// Sections of numbers for each term, whole panels of them.
const PER_TERM: [&str; 4] = ["head.scale", "head.spread", "head.residual", "head.bias_above"];
