//! Nodes and weights of an ONNX graph, as far as our own code looks at them.

use std::path::Path;

use crate::stored::{Kind, Stored};

use super::onnx::{
    GRAPH_INITIALIZER, GRAPH_NODE, MODEL_GRAPH, TENSOR_FLOATS, TENSOR_RAW, Value, damaged, each,
};
use super::skeleton::TENSOR_PLACE;

/// `TensorProto.DataType`.
pub(super) const FLOAT: u64 = 1;
const INT64: u64 = 7;
const FLOAT16: u64 = 10;
const INT8: u64 = 3;

/// A node of the graph: one operation, the names of its inputs and outputs, and its attributes.
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    pub(super) inputs: Vec<&'a [u8]>,
    pub(super) outputs: Vec<&'a [u8]>,
    pub(super) operator: &'a [u8],
    attributes: Vec<Attribute<'a>>,
}

#[derive(Debug, Default)]
struct Attribute<'a> {
    name: &'a [u8],
    float: Option<f32>,
    int: Option<i64>,
    ints: Vec<i64>,
}

impl Node<'_> {
    /// The value of a float attribute; `None` if the node has no such attribute.
    pub(super) fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name)?.float
    }

    /// The value of an integer attribute; `None` if the node has no such attribute.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.int
    }

    /// The values of an attribute that is a list of integers; `None` if the node has no such attribute.
    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        Some(&self.attribute(name)?.ints)
    }

    fn attribute(&self, name: &str) -> Option<&Attribute<'_>> {
        self.attributes.iter().find(|attribute| attribute.name == name.as_bytes())
    }
}

/// A weight: its numbers are in the graph, in the graph's file, or in a file beside it.
#[derive(Debug, Default)]
pub(super) struct Weight<'a> {
    pub(super) name: &'a [u8],
    pub(super) dims: Vec<u64>,
    kind: u64,
    raw: &'a [u8],
    floats: Vec<f32>,
    place: Option<Place>,
    external: Option<External<'a>>,
}

/// Offset and length, in bytes, of a weight's field that a skeleton leaves in the file.
#[derive(Debug)]
struct Place {
    field: u64,
    offset: u64,
    length: u64,
}

/// A file beside the graph that holds the numbers of a weight, with their offset and length in bytes.
#[derive(Debug, Default)]
struct External<'a> {
    location: &'a [u8],
    offset: u64,
    length: Option<u64>,
}

/// The nodes and the weights.
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) weights: Vec<Weight<'a>>,
}

/// The bytes of the graph inside a model (`ModelProto`).
///
/// # Errors
/// `InvalidData` if it is not protobuf.
pub(super) fn graph_bytes(model: &[u8]) -> std::io::Result<&[u8]> {
    let mut graph_bytes: &[u8] = &[];
    each(model, |field, value| {
        if let (MODEL_GRAPH, Value::Bytes(graph)) = (field, value) {
            graph_bytes = graph;
        }
        Ok(())
    })?;
    Ok(graph_bytes)
}

impl<'a> Graph<'a> {
    /// Parses the nodes and weights of a graph.
    ///
    /// # Errors
    /// `InvalidData` if it is not protobuf.
    pub(super) fn parse(bytes: &'a [u8]) -> std::io::Result<Self> {
        let mut graph = Graph::default();
        each(bytes, |field, value| {
            match (field, value) {
                (GRAPH_NODE, Value::Bytes(bytes)) => graph.nodes.push(parse_node(bytes)?),
                (GRAPH_INITIALIZER, Value::Bytes(bytes)) => graph.weights.push(parse_weight(bytes)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(graph)
    }

    /// The index of the node that computes a value; `None` for an input or a weight.
    pub(super) fn producer(&self, name: &[u8]) -> Option<usize> {
        self.nodes.iter().position(|node| node.outputs.contains(&name))
    }

    /// A weight by its name.
    pub(super) fn weight(&self, name: &[u8]) -> Option<&Weight<'a>> {
        self.weights.iter().find(|weight| weight.name == name)
    }
}

fn parse_node(bytes: &[u8]) -> std::io::Result<Node<'_>> {
    let mut node = Node::default();
    each(bytes, |field, value| {
        match (field, value) {
            (1, Value::Bytes(name)) => node.inputs.push(name),
            (2, Value::Bytes(name)) => node.outputs.push(name),
            (4, Value::Bytes(name)) => node.operator = name,
            (5, Value::Bytes(attribute)) => node.attributes.push(parse_attribute(attribute)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(node)
}

fn parse_attribute(bytes: &[u8]) -> std::io::Result<Attribute<'_>> {
    let mut attribute = Attribute::default();
    each(bytes, |field, value| {
        match (field, value) {
            (1, Value::Bytes(name)) => attribute.name = name,
            (2, Value::Bytes(bytes)) if bytes.len() == 4 => attribute.float = Some(float(bytes)),
            (3, Value::Number(number)) => attribute.int = Some(number as i64),
            (8, Value::Number(number)) => attribute.ints.push(number as i64),
            (8, Value::Bytes(packed)) => {
                attribute.ints.extend(unpack(packed)?.into_iter().map(|number| number as i64));
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(attribute)
}

/// Reads a `TensorProto`.
///
/// # Errors
/// `InvalidData` if it is not protobuf.
pub(super) fn parse_weight(bytes: &[u8]) -> std::io::Result<Weight<'_>> {
    let mut weight = Weight::default();
    let mut external = External::default();
    let mut outside = false;
    each(bytes, |field, value| {
        match (field, value) {
            (1, Value::Number(dim)) => weight.dims.push(dim),
            (1, Value::Bytes(packed)) => weight.dims.append(&mut unpack(packed)?),
            (2, Value::Number(kind)) => weight.kind = kind,
            (TENSOR_FLOATS, Value::Bytes(floats)) => {
                weight.floats.extend(floats.chunks_exact(4).map(float));
            }
            (8, Value::Bytes(name)) => weight.name = name,
            (TENSOR_RAW, Value::Bytes(raw)) => weight.raw = raw,
            (TENSOR_PLACE, Value::Bytes(place)) => {
                // Numbers in several pieces: nobody writes that.
                if weight.place.is_some() {
                    return Err(damaged());
                }
                let &[field, offset, length] = place.as_chunks().0 else { return Err(damaged()) };
                weight.place = Some(Place {
                    field: u64::from_le_bytes(field),
                    offset: u64::from_le_bytes(offset),
                    length: u64::from_le_bytes(length),
                });
            }
            (13, Value::Bytes(entry)) => parse_external(entry, &mut external)?,
            (14, Value::Number(location)) => outside = location == 1,
            _ => {}
        }
        Ok(())
    })?;
    weight.external = outside.then_some(external);
    Ok(weight)
}

fn parse_external<'a>(entry: &'a [u8], external: &mut External<'a>) -> std::io::Result<()> {
    let (mut key, mut content): (&[u8], &[u8]) = (&[], &[]);
    each(entry, |field, value| {
        match (field, value) {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Bytes(bytes)) => content = bytes,
            _ => {}
        }
        Ok(())
    })?;
    let number = || std::str::from_utf8(content).ok().and_then(|text| text.parse().ok()).ok_or_else(damaged);
    match key {
        b"location" => external.location = content,
        b"offset" => external.offset = number()?,
        b"length" => external.length = Some(number()?),
        _ => {}
    }
    Ok(())
}

/// Decodes integers of a repeated field in the packed form, which most writers use.
fn unpack(packed: &[u8]) -> std::io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0u64, 0);
    for byte in packed {
        number |= u64::from(byte & 0x7F).checked_shl(shift).ok_or_else(damaged)?;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
            shift = 0;
        }
    }
    Ok(numbers)
}

impl Weight<'_> {
    /// Where the numbers of a weight are, if it is of f32 or f16 and has as many numbers as its shape says; `onnx` is
    /// the path of the graph.
    pub(super) fn stored(&self, onnx: &Path) -> Option<Stored> {
        match self.kind {
            FLOAT => self.stored_as(Kind::F32, onnx),
            FLOAT16 => self.stored_as(Kind::F16, onnx),
            _ => None,
        }
    }

    /// As [`Weight::stored`], for a weight of signed bytes.
    pub(super) fn stored_bytes(&self, onnx: &Path) -> Option<Stored> {
        (self.kind == INT8).then(|| self.stored_as(Kind::I8, onnx))?
    }

    fn stored_as(&self, kind: Kind, onnx: &Path) -> Option<Stored> {
        let count = usize::try_from(self.count()?).ok()?;
        let length = count.checked_mul(kind.width())? as u64;
        if let Some(external) = &self.external {
            let location = Path::new(std::str::from_utf8(external.location).ok()?);
            let inside = location.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            let fits = kind == Kind::F32 && inside && external.length.is_none_or(|said| said == length);
            let (path, offset) = (onnx.parent()?.join(location), external.offset);
            let end = offset.checked_add(length)?;
            let there = fits && std::fs::metadata(&path).is_ok_and(|file| end <= file.len());
            return there.then_some(Stored::File { path, offset, count, kind });
        }
        if let Some(place) = &self.place {
            let alone = self.raw.is_empty() && self.floats.is_empty();
            let fits = alone && place.length == length && (place.field == TENSOR_RAW || kind == Kind::F32);
            let path = onnx.to_path_buf();
            return fits.then_some(Stored::File { path, offset: place.offset, count, kind });
        }
        let mut values = Vec::new();
        if kind == Kind::F32 && self.raw.is_empty() {
            values.clone_from(&self.floats);
        } else {
            kind.decode(self.raw, &mut values);
        }
        (values.len() == count).then_some(Stored::Here(values))
    }

    /// Reads the numbers of a weight of f32 or f16, from memory or from a file.
    pub(super) fn values(&self, onnx: &Path) -> Option<Vec<f32>> {
        self.stored(onnx)?.read().ok()
    }

    /// Whether the numbers are in the graph's file.
    pub(super) fn is_inside(&self) -> bool {
        self.external.is_none()
    }

    /// The integers of a weight of 64-bit integers that is stored in the graph; `None` for any other weight.
    pub(super) fn integers(&self) -> Option<Vec<i64>> {
        (self.kind == INT64 && self.external.is_none() && self.place.is_none()).then(|| {
            let eight = |b: &[u8]| i64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
            self.raw.chunks_exact(8).map(eight).collect()
        })
    }

    fn count(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))
    }
}

/// Decodes an f32 of four bytes, little-endian.
fn float(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
