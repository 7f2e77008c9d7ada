//! A minimal reader of ONNX files, which needs no ONNX Runtime: the outputs of a graph, and fields of protobuf messages.
//!
//! ONNX is protobuf: `ModelProto.graph` is field 7, `GraphProto.output` field 12, a `ValueInfoProto` has its name in
//! field 1 and its type in field 2 (`tensor_type` 1, `shape` 2, `dim` 1, `dim_value` 1).

use std::io::{BufReader, Read};
use std::path::Path;

use sparrow_file_system::File;

use crate::error::EncoderError;

/// An output of a graph. A dimension without a number is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) shape: Vec<Option<usize>>,
}

/// The outputs of a graph. Weights are skipped, not read.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if the file is not ONNX.
pub(super) fn outputs(path: &Path) -> Result<Vec<Output>, EncoderError> {
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
    let mut fields = Fields::open(path).map_err(|error| unreadable(error.to_string()))?;
    let outputs =
        read_outputs(&mut fields).map_err(|error| unreadable(format!("not an ONNX file: {error}")))?;
    if outputs.is_empty() {
        return Err(unreadable("not an ONNX file: no outputs".into()));
    }
    Ok(outputs)
}

fn read_outputs(model: &mut Fields<BufReader<File>>) -> std::io::Result<Vec<Output>> {
    while let Some((field, value)) = model.next()? {
        let length = match value {
            WireValue::Bytes(length) if field == 7 => length,
            other => {
                model.skip(other)?;
                continue;
            }
        };
        let after = model.enter(length)?;
        let mut outputs = Vec::new();
        while let Some((field, value)) = model.next()? {
            match value {
                // 1 MiB is far more than a name and a shape take.
                WireValue::Bytes(length) if field == 12 && length < 1 << 20 => {
                    outputs.push(value_info(&model.bytes(length)?)?);
                }
                other => model.skip(other)?,
            }
        }
        model.leave(after);
        return Ok(outputs);
    }
    Ok(Vec::new())
}

fn value_info(bytes: &[u8]) -> std::io::Result<Output> {
    let mut output = Output { name: String::new(), shape: Vec::new() };
    each(bytes, |field, value| {
        match (field, value) {
            (1, Value::Bytes(name)) => output.name = String::from_utf8_lossy(name).into_owned(),
            // type → tensor_type → shape → dim → dim_value
            (2, Value::Bytes(kind)) => each_inside(kind, 1, |tensor| {
                each_inside(tensor, 2, |shape| {
                    each_inside(shape, 1, |dim| {
                        let mut size = None;
                        each(dim, |field, value| {
                            if let (1, Value::Number(number)) = (field, value) {
                                size =
                                    usize::try_from(number).ok().filter(|size| *size > 0 && *size < 1 << 32);
                            }
                            Ok(())
                        })?;
                        output.shape.push(size);
                        Ok(())
                    })
                })
            })?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(output)
}

/// A field's value inside a message in memory.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Visits the fields of a message in memory: their numbers and values.
///
/// # Errors
/// `InvalidData` if it is not protobuf, or what `visit` gives.
fn each<'a>(
    bytes: &'a [u8],
    mut visit: impl FnMut(u64, Value<'a>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut fields = Fields { reader: bytes, left: bytes.len() as u64 };
    while fields.left > 0 {
        let key = fields.varint()?;
        match key & 7 {
            0 => {
                let number = fields.varint()?;
                visit(key >> 3, Value::Number(number))?;
            }
            kind => {
                let length = match kind {
                    1 => 8,
                    2 => fields.varint()?,
                    5 => 4,
                    _ => return Err(damaged()),
                };
                if length > fields.left {
                    return Err(damaged());
                }
                let (value, rest) = fields.reader.split_at(length as usize);
                fields.reader = rest;
                fields.left -= length;
                visit(key >> 3, Value::Bytes(value))?;
            }
        }
    }
    Ok(())
}

fn each_inside<'a>(
    bytes: &'a [u8],
    wanted: u64,
    mut visit: impl FnMut(&'a [u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    each(bytes, |field, value| match value {
        Value::Bytes(value) if field == wanted => visit(value),
        _ => Ok(()),
    })
}

pub(super) fn damaged() -> std::io::Error {
    std::io::Error::from(std::io::ErrorKind::InvalidData)
}

/// Reads the fields of a protobuf message one after another; lengths are checked against the bytes that remain of it.
#[derive(Debug)]
pub(super) struct Fields<R> {
    reader: R,
    left: u64,
}

/// The value of a field in a file: a number, or the length of bytes that have not been read.
#[derive(Debug, Clone, Copy)]
pub(super) enum WireValue {
    Number(u64),
    Bytes(u64),
}

impl<R: Read> Fields<R> {
    fn varint(&mut self) -> std::io::Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.read(&mut byte)?;
            value |= u64::from(byte[0] & 0x7F) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn read(&mut self, out: &mut [u8]) -> std::io::Result<()> {
        self.left = self.left.checked_sub(out.len() as u64).ok_or_else(damaged)?;
        self.reader.read_exact(out)
    }
}

impl Fields<BufReader<File>> {
    /// Opens a file as one message.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let left = file.metadata()?.len();
        Ok(Self { reader: BufReader::new(file), left })
    }

    /// Reads the next field: its number and its value, or the length of it; `None` at the end of the message.
    pub(super) fn next(&mut self) -> std::io::Result<Option<(u64, WireValue)>> {
        if self.left == 0 {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => WireValue::Number(self.varint()?),
            1 => WireValue::Bytes(8),
            2 => WireValue::Bytes(self.varint()?),
            5 => WireValue::Bytes(4),
            _ => return Err(damaged()),
        };
        Ok(Some((key >> 3, value)))
    }

    /// Reads the bytes of a field.
    pub(super) fn bytes(&mut self, length: u64) -> std::io::Result<Vec<u8>> {
        // Before memory is taken for them.
        if length > self.left {
            return Err(damaged());
        }
        let mut bytes = vec![0; length as usize];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Skips the bytes of a field.
    pub(super) fn skip(&mut self, value: WireValue) -> std::io::Result<()> {
        let WireValue::Bytes(length) = value else { return Ok(()) };
        self.left = self.left.checked_sub(length).ok_or_else(damaged)?;
        // A relative seek keeps the buffer where it can; a plain one throws it away.
        self.reader.seek_relative(i64::try_from(length).map_err(|_| damaged())?)
    }

    /// Enters an embedded message of `length` bytes; returns the number of bytes that remain after it.
    pub(super) fn enter(&mut self, length: u64) -> std::io::Result<u64> {
        let after = self.left.checked_sub(length).ok_or_else(damaged)?;
        self.left = length;
        Ok(after)
    }

    /// Leaves an embedded message; `after` is the number that [`Fields::enter`] returned.
    pub(super) fn leave(&mut self, after: u64) {
        self.left = after;
    }
}
