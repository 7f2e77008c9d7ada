//! Cuts a masked language model before its last projection, so that the logits need never exist.
//!
//! Known forms of the end of a graph: `logits = MatMul(hidden, W) + b`, with `W` a weight `[dims, terms]` or the
//! transpose of a weight `[terms, dims]`; with or without the bias. Anything else runs whole. The file is not changed:
//! a shorter graph is built in memory, field by field (numbers of `onnx.proto3` are named below).

use std::path::Path;

use crate::error::EncoderError;
use crate::packed::Identity;
use crate::stored::Stored;

use super::decoder::Source;
use super::graph::{FLOAT, Graph, Node, graph_bytes, parse_weight};
use super::layout::{ForwardPass, Layout};
use super::onnx::{GRAPH_INITIALIZER, GRAPH_NODE, GRAPH_OUTPUT, MODEL_GRAPH, Value, each, emit};
use super::skeleton;

/// The last projection of a graph, and the output before it.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Name of the hidden states, `[texts, tokens, dims]`, which the projection takes and the shortened graph outputs.
    pub(super) hidden: String,
    pub(super) head: Source,
}

/// The last projection of a graph; `None` if the graph is not of a known form.
pub(super) fn decoder(path: &Path, logits: &str) -> Option<Decoder> {
    let bytes = skeleton::read(path).ok()?;
    let decoder = head(&bytes, path, logits).ok().flatten();
    tracing::debug!(path = %path.display(), split = decoder.is_some(), "decoder of a plain export");
    decoder
}

/// A graph without its last projection, for ONNX Runtime. The bytes are made for each session and then dropped, as they contain a copy of
/// all other weights.
#[derive(Debug)]
pub(crate) struct CutGraph {
    layout: Layout,
    /// Identity of the model's files when they were loaded; `None` if one was missing.
    files: Option<Identity>,
}

impl CutGraph {
    pub(super) fn new(layout: Layout, files: Option<Identity>) -> Self {
        Self { layout, files }
    }

    /// Reads the file and returns the bytes of the shortened graph.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if the model's files have changed since it was loaded.
    pub(crate) fn read(&self) -> Result<Vec<u8>, EncoderError> {
        let changed = |path: &Path| EncoderError::ModelNotReadable {
            path: path.to_path_buf(),
            reason: "the file was changed after the model was loaded".into(),
        };
        let ForwardPass::Graph { onnx, output } = &self.layout.forward else {
            return Err(changed(&self.layout.tokenizer));
        };
        let split = shorter(onnx, output);
        let same = self.files.is_some() && self.files == self.layout.identity(String::new());
        split.filter(|_| same).ok_or_else(|| changed(onnx))
    }
}

fn shorter(path: &Path, logits: &str) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    cut_off(&bytes, path, logits).ok().flatten()
}

fn head(bytes: &[u8], path: &Path, logits: &str) -> std::io::Result<Option<Decoder>> {
    let graph = Graph::parse(graph_bytes(bytes)?)?;
    let Some(cut) = find(&graph, path, logits.as_bytes()) else { return Ok(None) };
    let Ok(hidden) = String::from_utf8(cut.hidden) else { return Ok(None) };
    Ok(Some(Decoder { hidden, head: cut.head }))
}

fn cut_off(bytes: &[u8], path: &Path, logits: &str) -> std::io::Result<Option<Vec<u8>>> {
    let graph_bytes = graph_bytes(bytes)?;
    let graph = Graph::parse(graph_bytes)?;
    let Some(cut) = find(&graph, path, logits.as_bytes()) else { return Ok(None) };

    // Weights and nodes that others use as well stay; an unused one would only cost memory.
    let kept: Vec<&Node<'_>> = graph
        .nodes
        .iter()
        .enumerate()
        .filter(|(at, _)| !cut.nodes.contains(at))
        .map(|(_, node)| node)
        .collect();
    let used = |name: &[u8]| kept.iter().any(|node| node.inputs.contains(&name));
    let mut shorter = Vec::with_capacity(graph_bytes.len());
    let mut node = 0;
    each(graph_bytes, |field, value| {
        let keep = match (field, value) {
            (GRAPH_NODE, _) => {
                node += 1;
                !cut.nodes.contains(&(node - 1))
                    || graph.nodes[node - 1].outputs.iter().any(|name| used(name))
            }
            (GRAPH_INITIALIZER, Value::Bytes(weight)) => {
                let name = parse_weight(weight)?.name;
                !cut.weights.contains(&name) || used(name)
            }
            (GRAPH_OUTPUT, _) => false,
            _ => true,
        };
        if keep {
            emit(&mut shorter, field, value);
        }
        Ok(())
    })?;
    // ValueInfoProto { name, type: { tensor_type: { elem_type: FLOAT } } }: the shape is inferred.
    let mut output = Vec::new();
    emit(&mut output, 1, Value::Bytes(&cut.hidden));
    emit(&mut output, 2, Value::Bytes(&[0x0A, 2, 8, FLOAT as u8]));
    emit(&mut shorter, GRAPH_OUTPUT, Value::Bytes(&output));

    let mut model = Vec::with_capacity(shorter.len() + 1024);
    each(bytes, |field, value| {
        emit(&mut model, field, if field == MODEL_GRAPH { Value::Bytes(&shorter) } else { value });
        Ok(())
    })?;
    Ok(Some(model))
}

/// The nodes and weights that are removed from a graph, and the output that remains.
struct Cut<'a> {
    hidden: Vec<u8>,
    nodes: Vec<usize>,
    weights: Vec<&'a [u8]>,
    head: Source,
}

fn find<'a>(graph: &Graph<'a>, path: &Path, logits: &[u8]) -> Option<Cut<'a>> {
    let mut nodes = vec![graph.producer(logits)?];
    let mut weights = Vec::new();
    let last = &graph.nodes[nodes[0]];
    let mut product = last;
    let mut bias = None;
    if last.operator == b"Add" {
        let [left, right] = last.inputs[..] else { return None };
        let (bias_name, product_name) =
            if graph.weight(left).is_some() { (left, right) } else { (right, left) };
        let weight = graph.weight(bias_name)?;
        bias = Some(weight.stored(path).filter(|_| weight.dims.len() == 1 && weight.is_inside())?);
        weights.push(weight.name);
        nodes.push(graph.producer(product_name)?);
        product = &graph.nodes[*nodes.last()?];
    }
    let [hidden, matrix] = product.inputs[..] else { return None };
    if product.operator != b"MatMul" || graph.weight(hidden).is_some() {
        return None;
    }
    let (weight, transposed) = match graph.weight(matrix) {
        Some(weight) => (weight, true),
        None => {
            let node = graph.producer(matrix)?;
            let [inner] = graph.nodes[node].inputs[..] else { return None };
            // A matrix has but one transpose, so the attribute need not be read.
            if graph.nodes[node].operator != b"Transpose" {
                return None;
            }
            nodes.push(node);
            (graph.weight(inner)?, false)
        }
    };
    weights.push(weight.name);
    let [first, second] = weight.dims[..] else { return None };
    let (first, second) = (usize::try_from(first).ok()?, usize::try_from(second).ok()?);
    if first == 0 || second == 0 {
        return None;
    }
    let rows = weight.stored(path).filter(|_| weight.is_inside())?;
    let (dims, terms) = if transposed { (first, second) } else { (second, first) };
    let bias = bias.unwrap_or_else(|| Stored::Here(vec![0.0; terms]));
    let head = Source { rows, transposed, bias, terms, dims };
    (head.bias.len() == terms).then(|| Cut { hidden: hidden.to_vec(), nodes, weights, head })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::{cut_off, decoder, head, shorter};
    use crate::model::onnx::outputs;

    fn plain_model() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plain-mlm/model.onnx")
    }

    #[test]
    fn what_is_not_a_known_graph_stays_whole() {
        let path = Path::new("model.onnx");
        assert!(head(b"", path, "logits").unwrap().is_none());
        assert!(cut_off(&[0x3A, 0], path, "logits").unwrap().is_none());
        assert!(head(&[0x3A, 5, 1], path, "logits").is_err());
        assert!(cut_off(&[0x3A, 5, 1], path, "logits").is_err());
        assert!(decoder(Path::new("/nowhere"), "logits").is_none());
        assert!(decoder(&plain_model(), "another output").is_none());
    }

    #[test]
    fn the_shorter_graph_has_the_hidden_states_as_its_output() {
        let split = decoder(&plain_model(), "logits").unwrap();
        assert_eq!((split.head.terms, split.head.dims), (13, 6));
        let file = tempfile::NamedTempFile::new().unwrap();
        let graph = shorter(&plain_model(), "logits").unwrap();
        std::fs::write(file.path(), &*graph).unwrap();
        let found = outputs(file.path()).unwrap();
        assert_eq!(found.iter().map(|output| output.name.as_str()).collect::<Vec<_>>(), [split.hidden]);
        let whole = std::fs::read(plain_model()).unwrap();
        // 13 · 6 weights and 13 biases are gone.
        assert!(whole.len() - graph.len() > 13 * 7 * 4);
    }

    proptest! {
        /// A damaged file gives an error or another model, and never a panic.
        #[test]
        fn damaged_files_do_not_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), keep in any::<prop::sample::Index>()) {
            let mut bytes = std::fs::read(plain_model()).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            let all = |bytes: &[u8]| {
                std::fs::write(file.path(), bytes).unwrap();
                (decoder(file.path(), "logits").is_some(), cut_off(bytes, file.path(), "logits").is_ok(), outputs(file.path()).is_ok())
            };
            all(&bytes);
            bytes.truncate(keep.index(bytes.len()));
            all(&bytes);
        }
    }
}
