//! Reads single tensors of a safetensors file as f32.
//!
//! Layout: u64 little-endian length of a JSON header, the header (`name → {dtype, shape, data_offsets}`), the data.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::EncoderError;

/// Longest header that is read; the format's own limit.
const MAX_HEADER: u64 = 100_000_000;

/// A tensor in row-major order.
#[derive(Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f32>,
}

#[derive(serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

/// Reads one tensor.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if the file is damaged or has no such tensor.
pub(super) fn read(path: &Path, name: &str) -> Result<Tensor, EncoderError> {
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
    let io = |error: std::io::Error| unreadable(error.to_string());
    let mut file = File::open(path).map_err(io)?;
    let total = file.metadata().map_err(io)?.len();
    let mut length = [0u8; 8];
    file.read_exact(&mut length).map_err(io)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER || length > total.saturating_sub(8) {
        return Err(unreadable(format!("header length {length} is out of range")));
    }
    let mut header = vec![0u8; length as usize];
    file.read_exact(&mut header).map_err(io)?;
    let mut entries: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&header).map_err(|error| unreadable(error.to_string()))?;
    let entry = entries.remove(name).ok_or_else(|| unreadable(format!("no tensor [{name}]")))?;
    let entry: Entry = serde_json::from_value(entry).map_err(|error| unreadable(error.to_string()))?;
    let [start, end] = entry.data_offsets;
    let width = match entry.dtype.as_str() {
        "F32" => 4,
        "F16" | "BF16" => 2,
        other => return Err(unreadable(format!("tensor [{name}] is of type {other}"))),
    };
    let count = entry.shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim as u64));
    let fits = end <= total - 8 - length
        && end.checked_sub(start) == count.and_then(|count| count.checked_mul(width));
    if !fits {
        return Err(unreadable(format!("tensor [{name}] does not fit the file")));
    }
    file.seek(SeekFrom::Start(8 + length + start)).map_err(io)?;
    let mut values = Vec::with_capacity((end - start) as usize / width as usize);
    // In pieces: the bytes and the numbers are never both in memory as a whole.
    let mut left = (end - start) as usize;
    let mut buffer = vec![0u8; 1 << 16];
    while left > 0 {
        let piece = &mut buffer[..left.min(1 << 16)];
        file.read_exact(piece).map_err(io)?;
        match entry.dtype.as_str() {
            "F32" => {
                values.extend(piece.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            }
            "BF16" => {
                values.extend(
                    piece
                        .chunks_exact(2)
                        .map(|b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16)),
                );
            }
            _ => values.extend(piece.chunks_exact(2).map(|b| half_to_f32(u16::from_le_bytes([b[0], b[1]])))),
        }
        left -= piece.len();
    }
    Ok(Tensor { shape: entry.shape, values })
}

/// Widens an IEEE half; exact.
pub(super) fn half_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let exponent = u32::from(half >> 10 & 0x1F);
    let mantissa = u32::from(half & 0x3FF);
    match exponent {
        // Subnormal halves are multiples of 2⁻²⁴.
        0 => f32::from_bits(sign | (mantissa as f32 * 2f32.powi(-24)).to_bits()),
        0x1F => f32::from_bits(sign | 0x7F80_0000 | mantissa << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::{half_to_f32, read};

    fn file(header: &str, data: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn tensors_of_all_widths() {
        let mut data = Vec::new();
        data.extend_from_slice(&1.5f32.to_le_bytes());
        data.extend_from_slice(&(-2f32).to_le_bytes());
        data.extend_from_slice(&0x3E00u16.to_le_bytes());
        data.extend_from_slice(&0x3FC0u16.to_le_bytes());
        let file = file(
            r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},
               "h":{"dtype":"F16","shape":[1],"data_offsets":[8,10]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[10,12]}}"#,
            &data,
        );
        let a = read(file.path(), "a").unwrap();
        assert_eq!((a.shape, a.values), (vec![1, 2], vec![1.5, -2.0]));
        assert_eq!(read(file.path(), "h").unwrap().values, [1.5]);
        assert_eq!(read(file.path(), "b").unwrap().values, [1.5]);
        assert!(read(file.path(), "c").is_err());
    }

    #[test]
    fn damaged_files_are_errors() {
        let entry =
            |offsets: &str| format!(r#"{{"a":{{"dtype":"F32","shape":[2],"data_offsets":{offsets}}}}}"#);
        for (header, data) in [
            (entry("[0,8]"), vec![0u8; 7]),
            (entry("[8,0]"), vec![0; 8]),
            (entry("[0,4]"), vec![0; 8]),
            (entry("[0,18446744073709551615]"), vec![0; 8]),
            ("{".to_owned(), vec![0; 8]),
        ] {
            assert!(read(file(&header, &data).path(), "a").is_err(), "{header}");
        }
        let short = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(short.path(), [255u8; 9]).unwrap();
        assert!(read(short.path(), "a").is_err());
    }

    #[test]
    fn halves() {
        let cases = [
            (0x0000, 0.0),
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x0001, 5.960_464_5e-8),
            (0x7BFF, 65504.0),
            (0x7C00, f32::INFINITY),
        ];
        for (half, expected) in cases {
            assert_eq!(half_to_f32(half), expected, "{half:#x}");
        }
        assert!(half_to_f32(0x7E00).is_nan());
        assert!(half_to_f32(0x8000).is_sign_negative());
    }
}
