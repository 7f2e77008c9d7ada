//! Packs the weights of an encoder in memory, or into a file that is then mapped. Either way, the weights are read one by one.

use std::sync::Arc;

use crate::fixed::Precision;
use crate::numbers::AlignedSlice;
use crate::packed::{BertShape, Packed, Packer, Unusable};
use crate::stored::{Axis, Stored, StoredBytes};
use crate::table::Table;

use super::Bert;
use super::fits::{
    TRANSFORM, are_finite, in_layer, is_none, layers_fit, norm_fits, scales_fit, tables_fit, transform_fits,
};
use super::kernels::{self, Kernels, Linear};
use super::layers::{Layer, Layers};
use super::modern::Modern;
use super::sampled::{Largest, Sampled, factors};
use super::weights::{LayerWeights, LinearWeights, ModernWeights, NormWeights, Refused, Upper, Weights};

impl Weights {
    /// Numbers of all weights but the word embeddings, about.
    pub(crate) fn size(&self) -> usize {
        let layer = |layer: &LayerWeights| -> usize {
            let gate = layer.gate.as_ref().map_or(0, |gate| gate.weights.len());
            [&layer.query, &layer.key, &layer.value, &layer.attended, &layer.inner, &layer.outer]
                .map(|linear| linear.weights.len())
                .iter()
                .sum::<usize>()
                + gate
        };
        self.positions.len() + self.layers.iter().map(layer).sum::<usize>()
    }
}

/// Reads the numbers of a weight, all of which must be finite.
fn read(stored: &Stored, what: &str) -> Result<Vec<f32>, Refused> {
    let values = stored.read()?;
    are_finite(&values, what)?;
    Ok(values)
}

impl Bert {
    /// Packs an encoder in memory. `words` are the word embeddings, if they are in memory already; `sample` are texts, as ids of tokens, by
    /// which factors are chosen where floats become bytes.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn new(
        weights: Weights,
        words: Option<Arc<Table>>,
        kernels: &'static Kernels,
        precision: Precision,
        sample: &[Vec<u32>],
    ) -> Result<Self, Refused> {
        let BertShape { width, heads, .. } = weights.shape(words.is_some())?;
        let sampled = sampled(&weights, sample, kernels, precision)?;
        let words = match words {
            Some(words) => words,
            None => Arc::new(weights.word_table(precision)?),
        };
        let list = pack_all(weights.layers, 0, (width, heads), kernels, precision, sampled)?;
        let transform = pack_transform(weights.transform, width, kernels, precision)?;
        let (positions, embedding_norm) = (Arc::new(weights.positions.into()), weights.embedding_norm);
        let second_type = weights.second_type;
        let modern = weights.modern.map(|modern| Modern::new(modern, width / heads));
        let kernels = if precision == Precision::Int8 { kernels::with_tiles(kernels) } else { kernels };
        let layers = Layers { kernels, width, heads, list };
        Ok(Self { words, positions, second_type, embedding_norm, layers, transform, modern })
    }

    /// Packs layers on top of another encoder, with which the new one shares all else, as it is computed there: with floats or bytes.
    ///
    /// # Errors
    /// [`Refused`], also if the layers below are not those of BERT.
    pub(crate) fn over(trunk: &Self, upper: Upper) -> Result<Self, Refused> {
        let Upper { layers, transform } = upper;
        let Layers { kernels, width, heads, .. } = trunk.layers;
        if trunk.modern.is_some() || trunk.transform.is_some() {
            return Err(Refused::Below);
        }
        let below = trunk.layers.list.len();
        layers_fit(&layers, below, width, false)?;
        transform_fits(transform.as_ref(), width)?;
        let precision = if trunk.is_int8() { Precision::Int8 } else { Precision::F32 };
        let own = pack_all(layers, below, (width, heads), kernels, precision, None)?;
        let list = trunk.layers.list.iter().cloned().chain(own).collect();
        Ok(Self {
            words: Arc::clone(&trunk.words),
            positions: Arc::clone(&trunk.positions),
            second_type: trunk.second_type.clone(),
            embedding_norm: trunk.embedding_norm.clone(),
            layers: Layers { kernels, width, heads, list },
            transform: pack_transform(transform, width, kernels, precision)?,
            modern: None,
        })
    }

    /// Packs an encoder into a file, layer by layer, in 20 bits or bytes. Tied word embeddings are left to the decoder. `sample` is that of
    /// [`Bert::new`].
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn store(
        weights: Weights,
        tied: bool,
        kernels: &'static Kernels,
        precision: Precision,
        sample: &[Vec<u32>],
        file: &mut Packer,
    ) -> Result<BertShape, Refused> {
        let shape = BertShape { int8: precision == Precision::Int8, ..weights.shape(tied)? };
        let mut sampled = sampled(&weights, sample, kernels, precision)?;
        if !tied {
            weights.word_table(precision)?.store("words", file)?;
        }
        if shape.modern.is_none() {
            file.put("positions", &weights.positions)?;
        }
        if shape.types {
            file.put("second_type", &weights.second_type)?;
        }
        put_norm(file, "embedding_norm", &weights.embedding_norm)?;
        for (number, layer) in weights.layers.into_iter().enumerate() {
            let shape = (shape.width, shape.heads);
            let layer = pack(layer, number, shape, kernels, precision, sampled.as_mut())?;
            if let Some(gate) = &layer.gate {
                gate.store(&format!("layer.{number}.gate"), file)?;
            }
            for (name, linear) in layer.linears() {
                linear.store(&format!("layer.{number}.{name}"), file)?;
            }
            if !is_none(&layer.attention_norm) {
                put_norm(file, &format!("layer.{number}.attention_norm"), &layer.attention_norm)?;
            }
            put_norm(file, &format!("layer.{number}.output_norm"), &layer.output_norm)?;
        }
        if let Some(modern) = &weights.modern {
            put_norm(file, "final_norm", &modern.final_norm)?;
        }
        if let Some((linear, norm)) = weights.transform {
            plain(linear, shape.width, kernels, precision, TRANSFORM)?.store("transform", file)?;
            put_norm(file, "transform.norm", &norm)?;
        }
        Ok(shape)
    }

    /// Opens the encoder that [`Bert::store`] packed for the same kernels. `rows` are the decoder's rows, for tied word embeddings.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if a part is missing or of another shape.
    pub(crate) fn open(
        packed: &Packed,
        rows: Option<&Arc<Table>>,
        kernels: &'static Kernels,
    ) -> Result<Self, Unusable> {
        const UNFIT: Unusable = Unusable::Damaged("a section is of another length");
        let BertShape { width, heads, layers, transform, tied, types, int8, modern } = packed.facts.bert;
        let precision = if int8 { Precision::Int8 } else { Precision::Fixed };
        let words = match rows.filter(|_| tied) {
            Some(rows) => Arc::clone(rows),
            None => Arc::new(Table::open("words", width, int8, packed)?),
        };
        let positions: AlignedSlice<f32> =
            if modern.is_some() { Vec::new().into() } else { packed.get("positions")? };
        let places = modern.map_or(Some(positions.len()), |modern| modern.positions.checked_mul(width));
        let second_type: AlignedSlice<f32> =
            if types { packed.get("second_type")? } else { Vec::new().into() };
        let types_fit = second_type.len() == if types { width } else { 0 }
            && packed.has("second_type") == types
            && packed.has("words.scales") != tied;
        if !types_fit || tables_fit(width, heads, words.len(), places.ok_or(UNFIT)?).is_err() {
            return Err(UNFIT);
        }
        let norm = |name: &str| {
            let values: AlignedSlice<f32> = packed.get(name)?;
            let (&epsilon, values) = values.split_last().ok_or(UNFIT)?;
            let (scale, shift) = values.split_at_checked(width).ok_or(UNFIT)?;
            let norm = NormWeights { scale: scale.to_vec(), shift: shift.to_vec(), epsilon };
            norm_fits(&norm, width, name).map_or(Err(UNFIT), |()| Ok(norm))
        };
        let linear = |name: &str, depth: usize, columns: Option<usize>| {
            let linear = Linear::open(kernels.order, name, depth, precision, packed)?;
            let fits = columns.is_none_or(|columns| columns == linear.columns()) && linear.columns() > 0;
            if fits { Ok(linear) } else { Err(UNFIT) }
        };
        let layers = (0..layers).map(|number| {
            let name = |part: &str| format!("layer.{number}.{part}");
            let inner = linear(&name("inner"), width, None)?;
            Ok(Arc::new(Layer {
                qkv: linear(&name("qkv"), width, width.checked_mul(3))?,
                attended: linear(&name("attended"), width, Some(width))?,
                attention_norm: if modern.is_some() && number == 0 {
                    NormWeights::default()
                } else {
                    norm(&name("attention_norm"))?
                },
                gate: match modern {
                    Some(_) => Some(linear(&name("gate"), width, Some(inner.columns()))?),
                    None => None,
                },
                outer: linear(&name("outer"), inner.columns(), Some(width))?,
                inner,
                output_norm: norm(&name("output_norm"))?,
            }))
        });
        let list = layers.collect::<Result<Vec<_>, Unusable>>()?;
        let kernels = if int8 { kernels::with_tiles(kernels) } else { kernels };
        Ok(Self {
            words,
            positions: Arc::new(positions),
            second_type: second_type.to_vec(),
            embedding_norm: norm("embedding_norm")?,
            layers: Layers { kernels, width, heads, list },
            transform: match transform {
                true => Some((linear("transform", width, Some(width))?, norm("transform.norm")?)),
                false => None,
            },
            modern: match modern {
                Some(shape) => {
                    let weights = ModernWeights { final_norm: norm("final_norm")?, shape };
                    Some(Modern::new(weights, width / heads))
                }
                None => None,
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

/// Packs layers, of which the first has a number.
fn pack_all(
    layers: Vec<LayerWeights>,
    first: usize,
    shape: (usize, usize),
    kernels: &Kernels,
    precision: Precision,
    mut sampled: Option<Sampled>,
) -> Result<Vec<Arc<Layer>>, Refused> {
    let pack =
        |(number, layer)| pack(layer, number, shape, kernels, precision, sampled.as_mut()).map(Arc::new);
    (first..).zip(layers).map(pack).collect()
}

/// The sample before the first layer, where floats become bytes.
fn sampled(
    weights: &Weights,
    sample: &[Vec<u32>],
    kernels: &'static Kernels,
    precision: Precision,
) -> Result<Option<Sampled>, Refused> {
    if precision == Precision::Int8 { Sampled::new(weights, sample, kernels) } else { Ok(None) }
}

fn pack_transform(
    transform: Option<(LinearWeights, NormWeights)>,
    width: usize,
    kernels: &Kernels,
    precision: Precision,
) -> Result<Option<(Linear, NormWeights)>, Refused> {
    let pack = |(linear, norm)| Ok((plain(linear, width, kernels, precision, TRANSFORM)?, norm));
    transform.map(pack).transpose()
}

fn pack(
    layer: LayerWeights,
    number: usize,
    (width, heads): (usize, usize),
    kernels: &Kernels,
    precision: Precision,
    sampled: Option<&mut Sampled>,
) -> Result<Layer, Refused> {
    let largest = match sampled {
        Some(sampled) => {
            sampled.pass(&pack(layer.clone(), number, (width, heads), kernels, Precision::F32, None)?)
        }
        None => Largest::default(),
    };
    let scale = 1.0 / ((width / heads) as f32).sqrt();
    let inner = layer.inner.bias.len();
    let what = &in_layer(number);
    let plain = |linear: LinearWeights, inputs| plain(linear, inputs, kernels, precision, what);
    Ok(Layer {
        qkv: joined(
            &[(layer.query, scale), (layer.key, 1.0), (layer.value, 1.0)],
            width,
            kernels,
            precision,
            &largest.qkv,
            what,
        )?,
        attended: plain(layer.attended, width)?,
        attention_norm: layer.attention_norm,
        inner: joined(&[(layer.inner, 1.0)], width, kernels, precision, &largest.inner, what)?,
        gate: match layer.gate {
            Some(gate) => Some(plain(gate, width)?),
            None => None,
        },
        outer: plain(layer.outer, inner)?,
        output_norm: layer.output_norm,
    })
}

fn plain(
    linear: LinearWeights,
    inputs: usize,
    kernels: &Kernels,
    precision: Precision,
    what: &str,
) -> Result<Linear, Refused> {
    joined(&[(linear, 1.0)], inputs, kernels, precision, &[], what)
}

/// Packs several linear maps of the same inputs as one, with their outputs side by side. Each has a factor for its weights and bias, and as
/// many outputs as the others. `largest` are the largest absolute values of the inputs, if they are known. `what` is what errors call them.
fn joined(
    parts: &[(LinearWeights, f32)],
    inputs: usize,
    packed_for: &Kernels,
    precision: Precision,
    largest: &[f32],
    what: &str,
) -> Result<Linear, Refused> {
    let width = parts.first().map_or(0, |(part, _)| part.bias.len());
    let place = |row: usize, column: usize| (column / width, row * width + column % width);
    let bias =
        parts.iter().flat_map(|(part, factor)| part.bias.iter().map(move |bias| bias * factor)).collect();
    if precision == Precision::Int8 && inputs > kernels::MAX_DEPTH {
        return Err(Refused::Inputs { what: what.to_owned(), inputs });
    }
    if precision == Precision::Int8
        && let Some(parts) = bytes(parts, width)
    {
        let scales: Vec<f32> = parts
            .iter()
            .flat_map(|(part, factor)| part.scales.iter().map(move |scale| scale * factor))
            .collect();
        let factors = match parts.first() {
            Some((part, _)) if !part.across.is_empty() => part.across.clone(),
            _ => vec![1.0; inputs],
        };
        scales_fit(&scales, &factors, what)?;
        let numbers = parts.iter().map(|(part, _)| part.bytes()).collect::<Result<Vec<_>, _>>()?;
        return Ok(Linear::of_bytes(packed_for.order, inputs, bias, scales, |row, column| {
            let (part, at) = place(row, column);
            numbers[part][at]
        })
        .with_factors(factors));
    }
    let weights = parts.iter().map(|(part, _)| read(&part.weights, what)).collect::<Result<Vec<_>, _>>()?;
    let weight = |row: usize, column: usize| {
        let (part, at) = place(row, column);
        weights[part][at] * parts[part].1
    };
    if largest.len() != inputs {
        return Ok(Linear::new(packed_for.order, inputs, bias, precision, weight));
    }
    let mut of_weights = vec![0f32; inputs];
    for (row, values) in weights.iter().flat_map(|part| part.chunks_exact(width).enumerate()) {
        of_weights[row] = values.iter().fold(of_weights[row], |most, weight| most.max(weight.abs()));
    }
    let factors = factors(largest, &of_weights);
    let divided = |row: usize, column: usize| weight(row, column) / factors[row];
    let linear = Linear::new(packed_for.order, inputs, bias, precision, divided);
    Ok(linear.with_factors(factors))
}

/// The weights as bytes, if each linear map is stored as one byte for each weight and a scale for each output, and all have the same scales
/// for inputs.
fn bytes(parts: &[(LinearWeights, f32)], width: usize) -> Option<Vec<(&StoredBytes, f32)>> {
    let mut pieces = Vec::with_capacity(parts.len());
    for (part, factor) in parts {
        match &part.weights {
            Stored::Bytes(bytes)
                if (bytes.axis, bytes.columns) == (Axis::Columns, width)
                    && pieces
                        .first()
                        .is_none_or(|(first, _): &(&StoredBytes, f32)| first.across == bytes.across) =>
            {
                pieces.push((&**bytes, *factor));
            }
            _ => return None,
        }
    }
    Some(pieces)
}
