//! From weights as files hold them to an encoder: packed in memory, or into a file that is then mapped. Either way they are
//! read one by one.

use std::sync::Arc;

use crate::fixed::Precision;
use crate::numbers::Numbers;
use crate::packed::{BertShape, Packed, Packer, Unusable};
use crate::stored::Stored;
use crate::table::Table;

use super::kernels::{self, Kernels, Linear};
use super::{Bert, Layer, LayerWeights, LinearWeights, NormWeights, Weights};

/// Why an encoder cannot be packed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// Its shape is not one that the kernels take (all widths multiples of 32, a head's too), or a weight is not finite.
    #[error("its shape is not one that the kernels take, or a weight is not finite")]
    Unfit,
    /// It cannot be read, or what is made of it cannot be written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Weights {
    /// Numbers of all weights but the word embeddings, about.
    pub(crate) fn size(&self) -> usize {
        let layer = |layer: &LayerWeights| -> usize {
            [&layer.query, &layer.key, &layer.value, &layer.attended, &layer.inner, &layer.outer]
                .map(|linear| linear.weights.len())
                .iter()
                .sum()
        };
        self.positions.len() + self.layers.iter().map(layer).sum::<usize>()
    }

    /// What is told of it, if the kernels take it.
    fn shape(&self, tied: bool) -> Result<BertShape, Refused> {
        let Weights { width, heads, .. } = *self;
        let norm_fits = |norm: &NormWeights| {
            norm.scale.len() == width
                && norm.shift.len() == width
                && finite(&norm.scale)
                && finite(&norm.shift)
        };
        let linear_fits = |linear: &LinearWeights, inputs: usize, outputs: usize| {
            linear.bias.len() == outputs && linear.weights.len() == inputs * outputs && finite(&linear.bias)
        };
        let layer_fits = |layer: &LayerWeights| {
            let inner = layer.inner.bias.len();
            aligned(inner)
                && [&layer.query, &layer.key, &layer.value, &layer.attended]
                    .into_iter()
                    .all(|linear| linear_fits(linear, width, width))
                && linear_fits(&layer.inner, width, inner)
                && linear_fits(&layer.outer, inner, width)
                && norm_fits(&layer.attention_norm)
                && norm_fits(&layer.output_norm)
        };
        let fits = tables_fit(width, heads, self.words.len(), self.positions.len())
            && finite(&self.positions)
            && norm_fits(&self.embedding_norm)
            && self.layers.iter().all(layer_fits)
            && self
                .transform
                .as_ref()
                .is_none_or(|(linear, norm)| linear_fits(linear, width, width) && norm_fits(norm));
        let layers = self.layers.len();
        let shape = BertShape { width, heads, layers, transform: self.transform.is_some(), tied };
        fits.then_some(shape).ok_or(Refused::Unfit)
    }
}

fn aligned(size: usize) -> bool {
    size > 0 && size.is_multiple_of(kernels::STEP)
}

fn finite(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite())
}

fn tables_fit(width: usize, heads: usize, words: usize, positions: usize) -> bool {
    heads > 0
        && aligned(width)
        && width.is_multiple_of(heads)
        && aligned(width / heads)
        && [words, positions].iter().all(|length| *length > 0 && length.is_multiple_of(width))
}

/// The numbers, if they are finite.
fn read(stored: &Stored) -> Result<Vec<f32>, Refused> {
    let values = stored.read()?;
    if finite(&values) { Ok(values) } else { Err(Refused::Unfit) }
}

impl Bert {
    /// Packs an encoder in memory. `words` are the word embeddings, if somebody has them already.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn new(
        weights: Weights,
        words: Option<Arc<Table>>,
        kernels: &'static Kernels,
        precision: Precision,
    ) -> Result<Self, Refused> {
        let BertShape { width, heads, .. } = weights.shape(words.is_some())?;
        let words = match words {
            Some(words) => words,
            None => Arc::new(Table::new(read(&weights.words)?, width, precision)),
        };
        let layers = weights
            .layers
            .into_iter()
            .map(|layer| pack(layer, (width, heads), kernels, precision))
            .collect::<Result<Vec<_>, _>>()?;
        let transform = match weights.transform {
            Some((linear, norm)) => Some((plain(linear, width, kernels, precision)?, norm)),
            None => None,
        };
        let (positions, embedding_norm) = (weights.positions.into(), weights.embedding_norm);
        Ok(Self { kernels, width, heads, words, positions, embedding_norm, layers, transform })
    }

    /// Packs an encoder into a file, layer by layer, in 20 bits. Tied word embeddings are left to the decoder.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn store(
        weights: Weights,
        tied: bool,
        kernels: &Kernels,
        file: &mut Packer,
    ) -> Result<BertShape, Refused> {
        let shape = weights.shape(tied)?;
        if !tied {
            Table::new(read(&weights.words)?, shape.width, Precision::Fixed).store("words", file)?;
        }
        file.put("positions", &weights.positions)?;
        put_norm(file, "embedding_norm", &weights.embedding_norm)?;
        for (number, layer) in weights.layers.into_iter().enumerate() {
            let layer = pack(layer, (shape.width, shape.heads), kernels, Precision::Fixed)?;
            for (name, linear) in layer.linears() {
                linear.store(&format!("layer.{number}.{name}"), file)?;
            }
            put_norm(file, &format!("layer.{number}.attention_norm"), &layer.attention_norm)?;
            put_norm(file, &format!("layer.{number}.output_norm"), &layer.output_norm)?;
        }
        if let Some((linear, norm)) = weights.transform {
            plain(linear, shape.width, kernels, Precision::Fixed)?.store("transform", file)?;
            put_norm(file, "transform.norm", &norm)?;
        }
        Ok(shape)
    }

    /// What [`Bert::store`] packed for the same kernels. `rows` are the decoder's.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if a part is missing or of another shape.
    pub(crate) fn open(
        packed: &Packed,
        rows: Option<&Arc<Table>>,
        kernels: &'static Kernels,
    ) -> Result<Self, Unusable> {
        const UNFIT: Unusable = Unusable::Damaged("a section is of another length");
        let BertShape { width, heads, layers, transform, tied } = packed.facts.bert;
        let words = match rows.filter(|_| tied) {
            Some(rows) => Arc::clone(rows),
            None => Arc::new(Table::open("words", width, packed)?),
        };
        let positions: Numbers<f32> = packed.get("positions")?;
        if !tables_fit(width, heads, words.len(), positions.len()) {
            return Err(UNFIT);
        }
        let norm = |name: &str| {
            let values: Numbers<f32> = packed.get(name)?;
            let (&epsilon, values) = values.split_last().ok_or(UNFIT)?;
            let (scale, shift) = values.split_at_checked(width).ok_or(UNFIT)?;
            let norm = NormWeights { scale: scale.to_vec(), shift: shift.to_vec(), epsilon };
            if norm.shift.len() == width { Ok(norm) } else { Err(UNFIT) }
        };
        let linear = |name: &str, depth: usize, columns: Option<usize>| {
            let linear = Linear::open(kernels, name, depth, packed)?;
            let fits = columns.is_none_or(|columns| columns == linear.columns()) && linear.columns() > 0;
            if fits { Ok(linear) } else { Err(UNFIT) }
        };
        let layers = (0..layers).map(|number| {
            let name = |part: &str| format!("layer.{number}.{part}");
            let inner = linear(&name("inner"), width, None)?;
            Ok(Layer {
                qkv: linear(&name("qkv"), width, width.checked_mul(3))?,
                attended: linear(&name("attended"), width, Some(width))?,
                attention_norm: norm(&name("attention_norm"))?,
                outer: linear(&name("outer"), inner.columns(), Some(width))?,
                inner,
                output_norm: norm(&name("output_norm"))?,
            })
        });
        Ok(Self {
            kernels,
            width,
            heads,
            words,
            positions,
            embedding_norm: norm("embedding_norm")?,
            layers: layers.collect::<Result<Vec<_>, Unusable>>()?,
            transform: match transform {
                true => Some((linear("transform", width, Some(width))?, norm("transform.norm")?)),
                false => None,
            },
        })
    }
}

impl Layer {
    fn linears(&self) -> [(&'static str, &Linear); 4] {
        [("qkv", &self.qkv), ("attended", &self.attended), ("inner", &self.inner), ("outer", &self.outer)]
    }
}

fn put_norm(file: &mut Packer, name: &str, norm: &NormWeights) -> std::io::Result<()> {
    file.put(name, &[&norm.scale[..], &norm.shift, &[norm.epsilon]].concat())
}

fn pack(
    layer: LayerWeights,
    (width, heads): (usize, usize),
    kernels: &Kernels,
    precision: Precision,
) -> Result<Layer, Refused> {
    let scale = 1.0 / ((width / heads) as f32).sqrt();
    let factor = |part: usize| if part == 0 { scale } else { 1.0 };
    let parts = [layer.query, layer.key, layer.value];
    let bias = (0..3 * width).map(|at| parts[at / width].bias[at % width] * factor(at / width)).collect();
    let mut weights = Vec::with_capacity(3);
    for part in &parts {
        weights.push(read(&part.weights)?);
    }
    let qkv = Linear::new(kernels, width, bias, precision, |row, column| {
        weights[column / width][row * width + column % width] * factor(column / width)
    });
    let inner = layer.inner.bias.len();
    Ok(Layer {
        qkv,
        attended: plain(layer.attended, width, kernels, precision)?,
        attention_norm: layer.attention_norm,
        inner: plain(layer.inner, width, kernels, precision)?,
        outer: plain(layer.outer, inner, kernels, precision)?,
        output_norm: layer.output_norm,
    })
}

fn plain(
    linear: LinearWeights,
    inputs: usize,
    kernels: &Kernels,
    precision: Precision,
) -> Result<Linear, Refused> {
    let columns = linear.bias.len();
    let weights = read(&linear.weights)?;
    Ok(Linear::new(kernels, inputs, linear.bias, precision, |row, column| weights[row * columns + column]))
}
