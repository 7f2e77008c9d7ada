//! Weights of an ONNX model that are stored in other files.

use std::io::BufReader;
use std::path::Path;

use sparrow_file_system::File;

use crate::error::EncoderError;

use super::onnx::{Fields, WireValue, damaged};

/// Whether any weight of a model, in whichever of its graphs, is stored in another file.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if the file is not ONNX.
pub(super) fn is_used(path: &Path) -> Result<bool, EncoderError> {
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
    Fields::open(path)
        .and_then(|mut model| external(&mut model, Message::Model, 0))
        .map_err(|error| unreadable(format!("not an ONNX file: {error}")))
}

/// Messages of ONNX that may hold tensors.
#[derive(Debug, Clone, Copy)]
enum Message {
    Model,
    Graph,
    Function,
    Node,
    Attribute,
    SparseTensor,
    Tensor,
}

/// Most levels of nested messages in a graph, whose nodes may contain graphs; no exporter comes near this.
const DEEPEST: usize = 64;

/// Looks at a message and at all messages in it. The numbers of weights are skipped, not read.
fn external(fields: &mut Fields<BufReader<File>>, message: Message, depth: usize) -> std::io::Result<bool> {
    if depth > DEEPEST {
        return Err(damaged());
    }
    let mut is_external = false;
    while let Some((field, value)) = fields.next()? {
        let inner = match (message, field) {
            (Message::Model, 7) | (Message::Attribute, 6 | 11) => Message::Graph,
            (Message::Model, 25) => Message::Function,
            (Message::Graph, 1) | (Message::Function, 7) => Message::Node,
            (Message::Graph, 5) | (Message::Attribute, 5 | 10) | (Message::SparseTensor, 1 | 2) => {
                Message::Tensor
            }
            (Message::Graph, 15) | (Message::Attribute, 22 | 23) => Message::SparseTensor,
            (Message::Node, 5) | (Message::Function, 11) => Message::Attribute,
            // `external_data`, and `data_location` of `EXTERNAL`.
            (Message::Tensor, 13 | 14) => {
                is_external |= field == 13 || matches!(value, WireValue::Number(1..));
                fields.skip(value)?;
                continue;
            }
            _ => {
                fields.skip(value)?;
                continue;
            }
        };
        if let WireValue::Bytes(length) = value {
            let after = fields.enter(length)?;
            is_external |= external(fields, inner, depth + 1)?;
            fields.leave(after);
        }
    }
    Ok(is_external)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::is_used;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend_from_slice(bytes);
        out
    }

    #[test]
    fn weights_in_other_files_are_found_wherever_they_are() {
        let plain =
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/plain-mlm/model.onnx"));
        assert!(!is_used(&plain).unwrap());
        let is_used = |bytes: &[u8]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            is_used(file.path())
        };
        let tensor = [14 << 3, 1];
        let initializer = field(7, &field(5, &tensor));
        assert!(is_used(&initializer).unwrap());
        // The value of a constant, inside the branch of an `If`.
        let branch = field(6, &field(1, &field(5, &field(5, &tensor))));
        assert!(is_used(&field(7, &field(1, &field(5, &branch)))).unwrap());
        assert!(!is_used(&field(7, &field(5, &[14 << 3, 0]))).unwrap());
        assert!(is_used(&[7 << 3 | 2, 9, 1]).is_err());
    }
}
