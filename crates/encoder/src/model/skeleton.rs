//! An ONNX file without its large weights: in place of their numbers it says where in the file they are.
//!
//! Everything else is the same protobuf, so that all code that reads a graph in memory can read a skeleton. A file of any size takes little
//! memory until its weights are read one by one ([`crate::stored`]).

use std::io::BufReader;
use std::path::Path;

use sparrow_files::File;

use super::onnx::{
    Fields, GRAPH_INITIALIZER, MODEL_GRAPH, TENSOR_FLOATS, TENSOR_RAW, Value, WireValue, emit,
};

/// Number of a field that only Sparrow uses: in place of the numbers of a tensor, the number of the replaced field, and the offset and
/// length of its bytes in the file, as three 64-bit integers.
pub(super) const TENSOR_PLACE: u64 = 0x5350_4C43;

/// Most bytes of a weight that is kept in a skeleton: biases, normalisations, lists of positions.
const LONGEST_KEPT: u64 = 256 << 10;

/// Reads a file without its large weights.
///
/// # Errors
/// `InvalidData` if it is not protobuf, or what the system says.
pub(super) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = Fields::open(path)?;
    let mut out = Vec::new();
    message(&mut file, &mut out, 0)?;
    Ok(out)
}

/// Copies the rest of a message: the model (depth 0), its graph (1) or a weight of that (2).
fn message(file: &mut Fields<BufReader<File>>, out: &mut Vec<u8>, depth: usize) -> std::io::Result<()> {
    while let Some((field, value)) = file.next()? {
        let length = match value {
            WireValue::Number(number) => {
                emit(out, field, Value::Number(number));
                continue;
            }
            WireValue::Bytes(length) => length,
        };
        if let (0, MODEL_GRAPH) | (1, GRAPH_INITIALIZER) = (depth, field) {
            let after = file.enter(length)?;
            let mut inner = Vec::new();
            message(file, &mut inner, depth + 1)?;
            file.leave(after);
            emit(out, field, Value::Bytes(&inner));
        } else if depth == 2 && matches!(field, TENSOR_RAW | TENSOR_FLOATS) && length > LONGEST_KEPT {
            let place = [field, file.place(), length].map(u64::to_le_bytes).concat();
            file.skip(value)?;
            emit(out, TENSOR_PLACE, Value::Bytes(&place));
        } else if field == TENSOR_PLACE {
            // Nobody but us says this.
            file.skip(value)?;
        } else {
            emit(out, field, Value::Bytes(&file.bytes(length)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{TENSOR_PLACE, read};
    use crate::model::graph::{Graph, graph_bytes};
    use crate::model::onnx::{GRAPH_INITIALIZER, MODEL_GRAPH, Value, emit};
    use crate::stored::Stored;

    /// A model with one weight `w` of `count` floats in field number `field`, after a field [`TENSOR_PLACE`] with the bytes `before`; also
    /// the floats.
    fn model(count: u64, field: u64, before: &[u8]) -> (tempfile::NamedTempFile, Vec<f32>) {
        let numbers: Vec<f32> = (0..count).map(|number| number as f32).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let (mut tensor, mut graph, mut model) = (Vec::new(), Vec::new(), Vec::new());
        emit(&mut tensor, 1, Value::Number(count));
        emit(&mut tensor, 2, Value::Number(1));
        emit(&mut tensor, TENSOR_PLACE, Value::Bytes(before));
        emit(&mut tensor, field, Value::Bytes(&bytes));
        emit(&mut tensor, 8, Value::Bytes(b"w"));
        emit(&mut graph, 2, Value::Bytes(b"a name"));
        emit(&mut graph, GRAPH_INITIALIZER, Value::Bytes(&tensor));
        emit(&mut model, 1, Value::Number(8));
        emit(&mut model, MODEL_GRAPH, Value::Bytes(&graph));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), model).unwrap();
        (file, numbers)
    }

    #[test]
    fn large_weights_stay_in_the_file_and_small_ones_do_not() {
        for (count, field, large) in
            [(100_000, 9, true), (100_000, 4, true), (1000, 9, false), (1000, 4, false)]
        {
            // A place that the file itself names is not believed.
            let (file, numbers) = model(count, field, &[1; 24]);
            let bytes = read(file.path()).unwrap();
            assert!(!large || bytes.len() < 200, "{}", bytes.len());
            let graph = Graph::parse(graph_bytes(&bytes).unwrap()).unwrap();
            let stored = graph.weight(b"w").unwrap().stored(file.path()).unwrap();
            assert_eq!(matches!(stored, Stored::File { .. }), large);
            assert_eq!(stored.read().unwrap(), numbers);
        }
    }

    #[test]
    fn a_file_that_ends_early_is_an_error() {
        let (file, _) = model(100_000, 9, &[]);
        let whole = std::fs::read(file.path()).unwrap();
        for length in [whole.len() - 1, whole.len() / 2, 40, 5, 1] {
            std::fs::write(file.path(), &whole[..length]).unwrap();
            assert!(read(file.path()).is_err(), "{length}");
        }
    }
}
