//! Cuts a masked language model before its last projection, so that the logits need never exist.
//!
//! Known forms of the end of a graph: `logits = MatMul(hidden, W) + b`, with `W` a weight `[dims, terms]` or the
//! transpose of a weight `[terms, dims]`; with or without the bias. Anything else runs whole. The file is not changed:
//! a shorter graph is built in memory, field by field (numbers of `onnx.proto3` are named below).

use std::path::Path;
use std::sync::Arc;

use crate::head::{Basis, Head, kernels as head_kernels};

use super::graph::{
    FLOAT, GRAPH_INITIALIZER, GRAPH_NODE, GRAPH_OUTPUT, Graph, MODEL_GRAPH, Node, graph_bytes, parse_weight,
};
use super::onnx::{Value, damaged, each};

/// What was cut from a graph.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Where the graph was cut: its output `[texts, tokens, dims]`.
    pub(super) hidden: String,
    pub(super) head: Head,
}

/// The last projection of a graph; `None` if the graph is not of a known form.
pub(super) fn decoder(path: &Path, logits: &str, basis: Option<&Basis>) -> Option<Decoder> {
    let bytes = std::fs::read(path).ok()?;
    let found = head(&bytes, logits, basis).ok().flatten();
    tracing::debug!(path = %path.display(), split = found.is_some(), "decoder of a plain export");
    found
}

/// The graph without its last projection, for the runtime; `None` if it is not of a known form.
pub(super) fn shorter(path: &Path, logits: &str) -> Option<Arc<[u8]>> {
    let bytes = std::fs::read(path).ok()?;
    cut_off(&bytes, logits).ok().flatten()
}

fn head(bytes: &[u8], logits: &str, basis: Option<&Basis>) -> std::io::Result<Option<Decoder>> {
    let graph = Graph::parse(graph_bytes(bytes)?)?;
    let Some(cut) = find(&graph, logits.as_bytes()) else { return Ok(None) };
    let Ok(hidden) = String::from_utf8(cut.hidden) else { return Ok(None) };
    let (dims, terms) = (cut.dims, cut.bias.len());
    let head = Head::new(head_kernels::chosen(), cut.rows, cut.bias, dims, basis).map_err(|_| damaged())?;
    tracing::debug!(dims, terms, "decoder split from the graph");
    Ok(Some(Decoder { hidden, head }))
}

fn cut_off(bytes: &[u8], logits: &str) -> std::io::Result<Option<Arc<[u8]>>> {
    let graph_bytes = graph_bytes(bytes)?;
    let graph = Graph::parse(graph_bytes)?;
    let Some(cut) = find(&graph, logits.as_bytes()) else { return Ok(None) };

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
    Ok(Some(model.into()))
}

/// What is cut off.
struct Cut<'a> {
    hidden: Vec<u8>,
    nodes: Vec<usize>,
    weights: Vec<&'a [u8]>,
    rows: Vec<f32>,
    bias: Vec<f32>,
    dims: usize,
}

fn find<'a>(graph: &Graph<'a>, logits: &[u8]) -> Option<Cut<'a>> {
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
        bias = Some(weight.values().filter(|_| weight.dims.len() == 1)?);
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
    let values = weight.values()?;
    let (dims, terms, rows) = if transposed {
        let mut rows = vec![0f32; values.len()];
        for (dim, column) in values.chunks_exact(second).enumerate() {
            for (term, value) in column.iter().enumerate() {
                rows[term * first + dim] = *value;
            }
        }
        (first, second, rows)
    } else {
        (second, first, values)
    };
    let bias = bias.unwrap_or_else(|| vec![0.0; terms]);
    (bias.len() == terms).then(|| Cut { hidden: hidden.to_vec(), nodes, weights, rows, bias, dims })
}

/// Writes a field. Fixed-width numbers do not occur in the messages copied here: `each` gives bytes for length-delimited
/// fields and for those alike, so a graph with one would be damaged, and the runtime would say so.
fn emit(out: &mut Vec<u8>, field: u64, value: Value<'_>) {
    match value {
        Value::Number(number) => {
            varint(out, field << 3);
            varint(out, number);
        }
        Value::Bytes(bytes) => {
            varint(out, field << 3 | 2);
            varint(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
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
        assert!(head(b"", "logits", None).unwrap().is_none());
        assert!(cut_off(&[0x3A, 0], "logits").unwrap().is_none());
        assert!(head(&[0x3A, 5, 1], "logits", None).is_err());
        assert!(cut_off(&[0x3A, 5, 1], "logits").is_err());
        assert!(decoder(Path::new("/nowhere"), "logits", None).is_none());
        assert!(decoder(&plain_model(), "another output", None).is_none());
    }

    #[test]
    fn the_shorter_graph_has_the_hidden_states_as_its_output() {
        let split = decoder(&plain_model(), "logits", None).unwrap();
        assert_eq!((split.head.terms(), split.head.dims()), (13, 6));
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
        /// Damaged files are errors, or other models, and never a panic.
        #[test]
        fn damaged_files_do_not_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), keep in any::<prop::sample::Index>()) {
            let mut bytes = std::fs::read(plain_model()).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = (head(&bytes, "logits", None), cut_off(&bytes, "logits"));
            bytes.truncate(keep.index(bytes.len()));
            let _ = (head(&bytes, "logits", None), cut_off(&bytes, "logits"));
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            let _ = outputs(file.path());
        }
    }
}
