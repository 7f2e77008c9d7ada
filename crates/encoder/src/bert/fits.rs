//! What the kernels ask of the weights of an encoder, and which of it some weights do not fulfil.

use crate::fixed::Precision;
use crate::packed::BertShape;
use crate::table::Table;

use super::kernels::{Linear, STEP};
use super::weights::{LayerWeights, LinearWeights, NormWeights, Refused, Weights};

impl Weights {
    /// The shape of the encoder, if the kernels can compute it.
    ///
    /// # Errors
    /// [`Refused`], with what they do not take.
    pub(super) fn shape(&self, tied: bool) -> Result<BertShape, Refused> {
        let Weights { width, heads, .. } = *self;
        let modern = self.modern.as_ref().map(|modern| modern.shape);
        let positions = modern.map_or(self.positions.len(), |modern| modern.positions.saturating_mul(width));
        tables_fit(width, heads, self.words.len(), positions)?;
        if let Some(modern) = &self.modern {
            norm_fits(&modern.final_norm, width, "its last normalisation")?;
        }
        are_finite(&self.positions, "its position embeddings")?;
        if !self.second_type.is_empty() {
            has_length(self.second_type.len(), width, "its embeddings of token types")?;
        }
        are_finite(&self.second_type, "its embeddings of token types")?;
        norm_fits(&self.embedding_norm, width, "the normalisation of its embeddings")?;
        layers_fit(&self.layers, 0, width, modern.is_some())?;
        transform_fits(self.transform.as_ref(), width)?;
        let (layers, types) = (self.layers.len(), !self.second_type.is_empty());
        let transform = self.transform.is_some();
        Ok(BertShape { width, heads, layers, transform, tied, types, int8: false, modern })
    }

    /// Reads the word embeddings.
    ///
    /// # Errors
    /// [`Refused::NotFinite`] or [`Refused::Io`].
    pub(super) fn word_table(&self, precision: Precision) -> Result<Table, Refused> {
        let words = Table::of_words(&self.words, self.width, precision)?;
        words.ok_or_else(|| Refused::NotFinite("its word embeddings".into()))
    }
}

/// # Errors
/// [`Refused::Length`], [`Refused::Epsilon`] or [`Refused::NotFinite`].
pub(super) fn norm_fits(norm: &NormWeights, width: usize, what: &str) -> Result<(), Refused> {
    if !(norm.epsilon.is_finite() && norm.epsilon >= 0.0) {
        return Err(Refused::Epsilon(norm.epsilon));
    }
    has_length(norm.scale.len(), width, what)?;
    has_length(norm.shift.len(), width, what)?;
    are_finite(&norm.scale, what)?;
    are_finite(&norm.shift, what)
}

/// Whether the kernels can compute some layers, of which the first has a number.
///
/// # Errors
/// [`Refused`].
pub(super) fn layers_fit(
    layers: &[LayerWeights],
    first: usize,
    width: usize,
    modern: bool,
) -> Result<(), Refused> {
    for (number, layer) in (first..).zip(layers) {
        let what = &in_layer(number);
        let inner = layer.inner.bias.len();
        if !is_aligned(inner) {
            return Err(Refused::Width {
                what: format!("the width inside of its layer [{number}]"),
                width: inner,
            });
        }
        for linear in [&layer.query, &layer.key, &layer.value, &layer.attended] {
            linear_fits(linear, (width, width), what)?;
        }
        linear_fits(&layer.inner, (width, inner), what)?;
        if layer.gate.is_some() != modern {
            return Err(Refused::Gate(number));
        }
        if let Some(gate) = &layer.gate {
            linear_fits(gate, (width, inner), what)?;
        }
        linear_fits(&layer.outer, (inner, width), what)?;
        if !(modern && is_none(&layer.attention_norm)) {
            norm_fits(&layer.attention_norm, width, what)?;
        }
        norm_fits(&layer.output_norm, width, what)?;
    }
    Ok(())
}

/// Whether the kernels can compute the transform of a masked language model.
///
/// # Errors
/// [`Refused`].
pub(super) fn transform_fits(
    transform: Option<&(LinearWeights, NormWeights)>,
    width: usize,
) -> Result<(), Refused> {
    let Some((linear, norm)) = transform else { return Ok(()) };
    linear_fits(linear, (width, width), TRANSFORM)?;
    norm_fits(norm, width, TRANSFORM)
}

/// The transform of a masked language model, as errors name it.
pub(super) const TRANSFORM: &str = "the transform of its masked language model";

/// What belongs to a layer, as errors name it.
pub(super) fn in_layer(number: usize) -> String {
    format!("its layer [{number}]")
}

fn linear_fits(linear: &LinearWeights, (inputs, outputs): (usize, usize), what: &str) -> Result<(), Refused> {
    has_length(linear.bias.len(), outputs, what)?;
    has_length(linear.weights.len(), inputs.saturating_mul(outputs), what)?;
    are_finite(&linear.bias, what)
}

/// Whether a normalisation has no parameters, so that it is skipped.
pub(super) fn is_none(norm: &NormWeights) -> bool {
    norm.scale.is_empty() && norm.shift.is_empty()
}

fn is_aligned(size: usize) -> bool {
    size > 0 && size.is_multiple_of(STEP)
}

/// # Errors
/// [`Refused::NotFinite`].
pub(super) fn are_finite(values: &[f32], what: &str) -> Result<(), Refused> {
    match values.iter().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err(Refused::NotFinite(what.to_owned())),
    }
}

/// Whether the scales of the outputs and the factors of the inputs of a linear map of bytes can be computed with.
///
/// # Errors
/// [`Refused::NotFinite`] or [`Refused::Factors`].
pub(super) fn scales_fit(scales: &[f32], factors: &[f32], what: &str) -> Result<(), Refused> {
    are_finite(scales, what)?;
    if Linear::are_factors(factors) { Ok(()) } else { Err(Refused::Factors(what.to_owned())) }
}

fn has_length(length: usize, wanted: usize, what: &str) -> Result<(), Refused> {
    match length == wanted {
        true => Ok(()),
        false => Err(Refused::Length { what: what.to_owned(), length, wanted }),
    }
}

/// Whether tables of `words` and `positions` numbers are those of hidden states of `width` numbers, which `heads` share.
///
/// # Errors
/// [`Refused::Heads`], [`Refused::Width`] or [`Refused::Rows`].
pub(super) fn tables_fit(width: usize, heads: usize, words: usize, positions: usize) -> Result<(), Refused> {
    if !is_aligned(width) {
        return Err(Refused::Width { what: "the width of its hidden states".into(), width });
    }
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(Refused::Heads { width, heads });
    }
    if !is_aligned(width / heads) {
        return Err(Refused::Width {
            what: "the width of each of its attention heads".into(),
            width: width / heads,
        });
    }
    for (length, what) in [(words, "word embeddings"), (positions, "position embeddings")] {
        if length == 0 || !length.is_multiple_of(width) {
            return Err(Refused::Rows { what, length, width });
        }
    }
    Ok(())
}
