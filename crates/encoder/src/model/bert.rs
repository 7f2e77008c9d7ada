//! Recognises BERT in an ONNX graph, so that its forward pass can be our own.
//!
//! The form is the one that `tools/models/bert_onnx.py` writes, or the same with token types, looked up positions and the
//! mask widened axis by axis, as exporters of PyTorch models write them. It is checked node by node from the output to the
//! inputs: every operator, constant and attribute on the way. Names of weights play no role. Any other graph is left to
//! ONNX Runtime.

use std::path::Path;

use crate::bert::{LayerWeights, LinearWeights, NormWeights, Weights};
use crate::stored::{Axis, Stored, StoredBytes};

use super::graph::{Graph, Node, Weight, graph_bytes};
use super::skeleton;

/// Most layers of a graph that is recognised: a damaged graph may contain a loop.
const MAX_LAYERS: usize = 100;

/// The parameters of the encoder that computes `output`, the large ones still in the file; `None` if the graph is not of the
/// known form.
pub(crate) fn recognise(path: &Path, output: &str) -> Option<Weights> {
    let bytes = skeleton::read(path).ok()?;
    let graph = Graph::parse(graph_bytes(&bytes).ok()?).ok()?;
    let reader = Reader { graph: &graph, path };
    let model = reader.model(output.as_bytes());
    tracing::debug!(path = %path.display(), recognised = model.is_some(), "forward pass in own code");
    model
}

struct Reader<'g, 'a> {
    graph: &'g Graph<'a>,
    path: &'g Path,
}

/// The parameters of a layer's attention that were found in the graph, and the name of its input.
struct AttentionParts<'a> {
    input: &'a [u8],
    heads: usize,
    query: LinearWeights,
    key: LinearWeights,
    value: LinearWeights,
}

impl<'a> Reader<'_, 'a> {
    fn model(&self, output: &[u8]) -> Option<Weights> {
        let mut weights = Weights::default();
        let mut at = match self.node(output, b"Identity") {
            Some(node) => *node.inputs.first()?,
            None => self.graph.nodes.get(self.graph.producer(output)?)?.outputs.first().copied()?,
        };
        let (norm, before) = self.norm(at)?;
        if let Some(dense) = self.gelu(before) {
            let (linear, input) = self.linear(dense)?;
            weights.transform = Some((linear, norm));
            at = input;
        }
        for _ in 0..MAX_LAYERS {
            let (norm, sum) = self.norm(at)?;
            let [left, right] = self.node(sum, b"Add")?.inputs[..] else { return None };
            // Word, type and position; without types, word and position.
            let (words, types) = match self.node(left, b"Add").map(|sum| &sum.inputs[..]) {
                Some(&[words, types]) if self.node(types, b"Gather").is_some() => (words, Some(types)),
                _ => (left, None),
            };
            if self.node(words, b"Gather").is_some() {
                weights.embedding_norm = norm;
                self.embeddings(words, right, &mut weights)?;
                if let Some(types) = types {
                    self.add_first_type(types, &mut weights)?;
                }
                weights.layers.reverse();
                return Some(weights);
            }
            let (layer, heads, input) = self.layer(norm, left, right)?;
            if weights.heads != 0 && weights.heads != heads {
                return None;
            }
            weights.heads = heads;
            weights.layers.push(layer);
            at = input;
        }
        None
    }

    /// Finds the word and position embeddings, the summands of the first normalisation's input, and puts them into `weights`.
    fn embeddings(&self, words: &[u8], positions: &[u8], weights: &mut Weights) -> Option<()> {
        let gather = self.node(words, b"Gather")?;
        let [table, b"input_ids"] = gather.inputs[..] else { return None };
        let (dims, words) = self.stored(table)?;
        let positions = self.positions(positions)?;
        if gather.int("axis").unwrap_or(0) != 0 {
            return None;
        }
        let (position_dims, positions) = self.values(positions)?;
        let [_, width] = dims[..] else { return None };
        if position_dims.len() != 2 || position_dims[1] != width {
            return None;
        }
        weights.width = width;
        weights.words = words;
        weights.positions = positions;
        Some(())
    }

    /// The name of the position table. A text takes its first rows, either by a slice of the table or by looking up a slice of 0, 1, 2, ...
    fn positions(&self, name: &[u8]) -> Option<&'a [u8]> {
        let Some(gather) = self.node(name, b"Gather") else { return self.beginning(name, 0) };
        let [table, places] = gather.inputs[..] else { return None };
        let places = self.integers(self.beginning(places, 1)?)?;
        let counted = places.iter().zip(0..).all(|(place, number)| *place == number);
        // The runtime would fail on a text that is longer than this list: all of the table must be in it.
        let (dims, _) = self.stored(table)?;
        let fits = counted && gather.int("axis").unwrap_or(0) == 0 && dims.first() == Some(&places.len());
        fits.then_some(table)
    }

    /// The name of the value of which the graph takes the first elements, as many as a text has tokens: `Slice(this, [0], Slice(Shape(ids),
    /// [1], [2]), [axis])`.
    fn beginning(&self, name: &[u8], on: i64) -> Option<&'a [u8]> {
        let [whole, from, to, axis] = self.node(name, b"Slice")?.inputs[..] else { return None };
        let [shape, first, last] = self.node(to, b"Slice")?.inputs[..] else { return None };
        let shaped = self.node(shape, b"Shape")?;
        let fits = shaped.inputs[..] == [b"input_ids"]
            && shaped.int("start").is_none()
            && self.integers(from)? == [0]
            && self.integers(axis)? == [on]
            && self.integers(first)? == [1]
            && self.integers(last)? == [2];
        fits.then_some(whole)
    }

    /// Adds the first row of the token type table to the position embeddings: all tokens are of type 0.
    fn add_first_type(&self, types: &[u8], weights: &mut Weights) -> Option<()> {
        let gather = self.node(types, b"Gather")?;
        let [table, b"token_type_ids"] = gather.inputs[..] else { return None };
        let (dims, table) = self.values(table)?;
        if gather.int("axis").unwrap_or(0) != 0 || dims.len() != 2 || dims[1] != weights.width {
            return None;
        }
        for row in weights.positions.chunks_exact_mut(weights.width) {
            row.iter_mut().zip(&table).for_each(|(position, kind)| *position += kind);
        }
        Some(())
    }

    /// Recognises a layer, given its last normalisation and the two summands of that one's input; also the name of the layer's input.
    fn layer(
        &self,
        output_norm: NormWeights,
        outer: &[u8],
        middle: &'a [u8],
    ) -> Option<(LayerWeights, usize, &'a [u8])> {
        let (outer, activated) = self.linear(outer)?;
        let (inner, same) = self.linear(self.gelu(activated)?)?;
        if same != middle {
            return None;
        }
        let (attention_norm, sum) = self.norm(middle)?;
        let [attended, residual] = self.node(sum, b"Add")?.inputs[..] else { return None };
        let (attended, context) = self.linear(attended)?;
        let AttentionParts { input, heads, query, key, value } = self.attention(context)?;
        if input != residual {
            return None;
        }
        let layer = LayerWeights {
            query,
            key,
            value,
            attended,
            attention_norm,
            inner,
            gate: None,
            outer,
            output_norm,
        };
        Some((layer, heads, input))
    }

    fn attention(&self, context: &[u8]) -> Option<AttentionParts<'a>> {
        let joined = self.node(context, b"Reshape")?;
        let [ordered, joined_shape] = joined.inputs[..] else { return None };
        let back = self.node(ordered, b"Transpose")?;
        let [product] = back.inputs[..] else { return None };
        let [attention, value] = self.node(product, b"MatMul")?.inputs[..] else { return None };
        let softmax = self.node(attention, b"Softmax")?;
        let [masked] = softmax.inputs[..] else { return None };
        let [scaled, bias] = self.node(masked, b"Add")?.inputs[..] else { return None };
        let [scores, divisor] = self.node(scaled, b"Div")?.inputs[..] else { return None };
        let [query, key] = self.node(scores, b"MatMul")?.inputs[..] else { return None };
        let (query, query_input, heads, depth) = self.heads(query, &[0, 2, 1, 3])?;
        let (key, key_input, key_heads, key_depth) = self.heads(key, &[0, 2, 3, 1])?;
        let (value, input, value_heads, value_depth) = self.heads(value, &[0, 2, 1, 3])?;
        let width = i64::try_from(heads * depth).ok()?;
        let fits = back.ints("perm")? == [0, 2, 1, 3]
            && softmax.int("axis").unwrap_or(-1) == -1
            && self.integers(joined_shape)? == [0, 0, width]
            && self.is_mask(bias)?
            && self.is_constant(divisor, (depth as f32).sqrt())
            && [key_input, input] == [query_input; 2]
            && [(key_heads, key_depth), (value_heads, value_depth)] == [(heads, depth); 2];
        fits.then_some(AttentionParts { input, heads, query, key, value })
    }

    /// A projection whose columns are split into heads: its weights, its input, heads and width of a head.
    fn heads(&self, name: &[u8], order: &[i64]) -> Option<(LinearWeights, &'a [u8], usize, usize)> {
        let transpose = self.node(name, b"Transpose")?;
        let [shaped] = transpose.inputs[..] else { return None };
        let [projected, shape] = self.node(shaped, b"Reshape")?.inputs[..] else { return None };
        let [0, 0, heads, depth] = self.integers(shape)?[..] else { return None };
        let (heads, depth) = (usize::try_from(heads).ok()?, usize::try_from(depth).ok()?);
        let (linear, input) = self.linear(projected)?;
        let fits = heads.checked_mul(depth)? == linear.bias.len() && transpose.ints("perm")? == order;
        fits.then_some((linear, input, heads, depth))
    }

    /// Whether a value is 0 for tokens and a large negative number for padding: `(1 − mask) · large`.
    fn is_mask(&self, name: &[u8]) -> Option<bool> {
        let [padding, large] = self.node(name, b"Mul")?.inputs[..] else { return None };
        let [one, wide] = self.node(padding, b"Sub")?.inputs[..] else { return None };
        let (_, large) = self.values(large)?;
        let fits = self.is_wide_mask(wide)?
            && self.is_constant(one, 1.0)
            && large.len() == 1
            && large[0] <= -10_000.0;
        Some(fits)
    }

    /// Whether a value is the attention mask as floats, `[texts, 1, 1, tokens]`: cast to floats and then widened by both axes at once, or
    /// widened one axis at a time and then cast.
    fn is_wide_mask(&self, name: &[u8]) -> Option<bool> {
        let one_input = |name: &[u8], operator: &[u8]| match self.node(name, operator)?.inputs[..] {
            [input] => Some(input),
            _ => None,
        };
        let widened = |name: &[u8]| match self.node(name, b"Unsqueeze")?.inputs[..] {
            [inner, axes] => Some((inner, self.integers(axes)?)),
            _ => None,
        };
        let mask = if let Some((cast, axes)) = widened(name) {
            (axes == [1, 2]).then_some(one_input(cast, b"Cast")?)?
        } else {
            let (inner, outer_axis) = widened(one_input(name, b"Cast")?)?;
            let (mask, inner_axis) = widened(inner)?;
            (outer_axis == [2] && inner_axis == [1]).then_some(mask)?
        };
        Some(mask == b"attention_mask")
    }

    /// `MatMul(x, weight) + bias`, in either order: the weights and the name of x.
    fn linear(&self, name: &[u8]) -> Option<(LinearWeights, &'a [u8])> {
        let [left, right] = self.node(name, b"Add")?.inputs[..] else { return None };
        let (product, bias) = if self.graph.weight(left).is_some() { (right, left) } else { (left, right) };
        let [input, weight] = self.node(product, b"MatMul")?.inputs[..] else { return None };
        let (dims, weights) = self.stored(weight)?;
        let (_, bias) = self.values(bias)?;
        (dims.len() == 2 && dims[1] == bias.len()).then_some((LinearWeights { weights, bias }, input))
    }

    /// A normalisation over the last axis: its weights and the name of its input.
    fn norm(&self, name: &[u8]) -> Option<(NormWeights, &'a [u8])> {
        let node = self.node(name, b"LayerNormalization")?;
        let [input, scale, shift] = node.inputs[..] else { return None };
        let (_, scale) = self.values(scale)?;
        let (_, shift) = self.values(shift)?;
        let epsilon = node.float("epsilon").unwrap_or(1e-5);
        let fits = node.int("axis").unwrap_or(-1) == -1 && scale.len() == shift.len();
        fits.then_some((NormWeights { scale, shift, epsilon }, input))
    }

    /// `x · (erf(x / √2) + 1) · ½`: the name of x.
    fn gelu(&self, name: &[u8]) -> Option<&'a [u8]> {
        let [product, half] = self.node(name, b"Mul")?.inputs[..] else { return None };
        let [x, shifted] = self.node(product, b"Mul")?.inputs[..] else { return None };
        let [erf, one] = self.node(shifted, b"Add")?.inputs[..] else { return None };
        let [scaled] = self.node(erf, b"Erf")?.inputs[..] else { return None };
        let [same, root] = self.node(scaled, b"Div")?.inputs[..] else { return None };
        let fits = same == x
            && self.is_constant(half, 0.5)
            && self.is_constant(one, 1.0)
            && self.is_constant(root, std::f32::consts::SQRT_2);
        fits.then_some(x)
    }

    fn node(&self, name: &[u8], operator: &[u8]) -> Option<&Node<'a>> {
        let node = &self.graph.nodes[self.graph.producer(name)?];
        (node.operator == operator && node.outputs.len() == 1).then_some(node)
    }

    /// The shape and the numbers of a small weight, read at once.
    fn values(&self, name: &[u8]) -> Option<(Vec<usize>, Vec<f32>)> {
        let (dims, stored) = self.stored(name)?;
        Some((dims, stored.read().ok()?))
    }

    /// The shape of a weight and where its numbers are; it may be stored in half precision and cast, or in bytes with scales.
    fn stored(&self, name: &[u8]) -> Option<(Vec<usize>, Stored)> {
        let weight = match self.graph.weight(name) {
            Some(weight) => weight,
            None if self.node(name, b"DequantizeLinear").is_some() => return self.stored_bytes(name),
            None => {
                let [stored] = self.node(name, b"Cast")?.inputs[..] else { return None };
                self.graph.weight(stored)?
            }
        };
        Some((shape(weight)?, weight.stored(self.path)?))
    }

    /// The shape of a matrix of bytes with a scale for each row or column, and where its numbers are.
    fn stored_bytes(&self, name: &[u8]) -> Option<(Vec<usize>, Stored)> {
        let node = self.node(name, b"DequantizeLinear")?;
        // No third input: zero is the zero point.
        let [numbers, scales] = node.inputs[..] else { return None };
        let (numbers, scales) = (self.graph.weight(numbers)?, self.graph.weight(scales)?.values(self.path)?);
        let dims = shape(numbers)?;
        let [rows, columns] = dims[..] else { return None };
        let axis = match node.int("axis").unwrap_or(1) {
            0 | -2 => Axis::Rows,
            1 | -1 => Axis::Columns,
            _ => return None,
        };
        let wanted = if axis == Axis::Rows { rows } else { columns };
        // One scale for all would do as well, but nobody writes it with an axis.
        let fits = scales.len() == wanted && node.int("block_size").unwrap_or(0) == 0;
        let numbers = fits.then(|| numbers.stored_bytes(self.path))??;
        Some((dims, Stored::Bytes(Box::new(StoredBytes { numbers, scales, columns, axis }))))
    }

    fn integers(&self, name: &[u8]) -> Option<Vec<i64>> {
        self.graph.weight(name)?.integers()
    }

    fn is_constant(&self, name: &[u8], value: f32) -> bool {
        let number = self.graph.weight(name).and_then(|weight| weight.values(self.path));
        number.is_some_and(|number| number.len() == 1 && (number[0] - value).abs() <= value.abs() * 1e-6)
    }
}

/// The shape of a weight.
fn shape(weight: &Weight<'_>) -> Option<Vec<usize>> {
    weight.dims.iter().map(|dim| usize::try_from(*dim).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Axis, Stored, recognise};

    fn package(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages").join(name).join("model.onnx")
    }

    #[test]
    fn the_embedded_models_are_recognised() {
        for (name, output, shape) in [
            ("model-splade-tiny", "hidden", (128, 2, 2, true)),
            ("model-minilm-l6", "last_hidden_state", (384, 12, 6, false)),
        ] {
            let found = recognise(&package(name), output).unwrap();
            let transform = found.transform.is_some();
            assert_eq!((found.width, found.heads, found.layers.len(), transform), shape);
            assert_eq!((found.words.len(), found.positions.len()), (30522 * shape.0, 512 * shape.0));
        }
    }

    #[test]
    fn other_graphs_are_not() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        for (name, output) in [("plain-mlm", "logits"), ("dense-cls", "last_hidden_state")] {
            assert!(recognise(&fixtures.join(name).join("model.onnx"), output).is_none());
        }
        assert!(recognise(&package("model-splade-tiny"), "embedding").is_none());
        assert!(recognise(Path::new("/nowhere"), "hidden").is_none());
    }

    /// A graph of the form that exporters write is recognised: that of `benches/peers/random-splade.mjs` with `{ layers: 1, width: 32,
    /// heads: 1, inner: 32, terms: 13, positions: 16 }`.
    #[test]
    fn the_form_of_exporters_is_recognised() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/exported-mlm/model.onnx");
        let found = recognise(&path, "hidden").unwrap();
        assert_eq!((found.width, found.heads, found.layers.len()), (32, 1, 1));
        assert_eq!((found.words.len(), found.positions.len()), (13 * 32, 16 * 32));
        let bytes = std::fs::read(&path).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let changed_path = dir.path().join("model.onnx");
        // Another buffer of positions, other inputs of the nodes (which come after the declarations): another model.
        let position = [14i64.to_le_bytes(), 15i64.to_le_bytes()].concat();
        for (from, to) in [
            (&position[..], &[14i64.to_le_bytes(), 14i64.to_le_bytes()].concat()[..]),
            (b"token_type_ids", b"token_kind_ids"),
            (b"attention_mask", b"attention_task"),
        ] {
            let at = bytes.windows(from.len()).rposition(|window| window == from).unwrap();
            let mut bytes = bytes.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            std::fs::write(&changed_path, bytes).unwrap();
            assert!(recognise(&changed_path, "hidden").is_none());
        }
    }

    /// Weights of 8 bits, with a scale for each output and each word, are recognised and stay of 8 bits.
    #[test]
    fn weights_of_bytes_stay_bytes() {
        let found = recognise(&package("model-minilm-l6"), "last_hidden_state").unwrap();
        let axis = |stored: &Stored| match stored {
            Stored::Bytes(bytes) => Some((bytes.axis, bytes.columns, bytes.scales.len())),
            _ => None,
        };
        assert_eq!(axis(&found.words), Some((Axis::Rows, 384, 30522)));
        assert_eq!(axis(&found.layers[5].inner.weights), Some((Axis::Columns, 1536, 1536)));
        // Numbers are whole ones times a scale, and the largest of each row is 127 of them.
        let Stored::Bytes(bytes) = &found.words else { panic!("no bytes") };
        let (whole, values) = (bytes.bytes().unwrap(), found.words.read().unwrap());
        for row in [0, 101, 30521] {
            let place = row * 384..(row + 1) * 384;
            assert_eq!(whole[place.clone()].iter().map(|byte| byte.unsigned_abs()).max(), Some(127));
            for (whole, value) in whole[place.clone()].iter().zip(&values[place]) {
                assert_eq!(f32::from(*whole) * bytes.scales[row], *value);
            }
        }
    }

    /// A graph with a changed constant, operator or attribute is not recognised.
    #[test]
    fn a_changed_graph_is_left_to_the_runtime() {
        let bytes = std::fs::read(package("model-splade-tiny")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let head = package("model-splade-tiny").with_file_name("head.safetensors");
        std::fs::copy(head, dir.path().join("head.safetensors")).unwrap();
        let path = dir.path().join("model.onnx");
        let changed = |from: &[u8], to: &[u8]| {
            let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
            let mut bytes = bytes.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            std::fs::write(&path, bytes).unwrap();
            recognise(&path, "hidden")
        };
        assert!(changed(b"Softmax", b"Softmax").is_some());
        assert!(changed(b"Softmax", b"Softplu").is_none());
        assert!(changed(b"\x22\x03Erf", b"\x22\x03Tan").is_none());
        assert!(changed(b"head.safetensors", b"gone.safetensors").is_none());
        assert!(changed(&0.5f32.to_le_bytes(), &0.25f32.to_le_bytes()).is_none());
    }
}
