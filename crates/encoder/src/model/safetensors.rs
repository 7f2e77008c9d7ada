//! Finds single tensors of a safetensors file.
//!
//! Layout: u64 little-endian length of a JSON header, the header (`name → {dtype, shape, data_offsets}`), the data.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use sparrow_file_system::File;

use crate::error::EncoderError;
use crate::nibbles::GROUP;
use crate::stored::{Axis, Kind, Stored, StoredBytes, StoredNibbles};

/// Most bytes of a header that is read. The format allows 100 MB, which become gigabytes when they are read; a model of a thousand tensors
/// has 100 kB.
const MAX_HEADER: u64 = 8_000_000;

/// The shape of a tensor, and where its numbers are, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) values: Stored,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

/// What a header says of its tensors, by their names. No name may be there twice, as the format has it: readers would differ in which counts.
#[derive(Debug)]
struct Entries(BTreeMap<String, serde_json::Value>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with the tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((name, entry)) = map.next_entry::<String, serde_json::Value>()? {
                    if entries.contains_key(&name) {
                        return Err(de::Error::custom(format!("tensor [{name}] is there twice")));
                    }
                    entries.insert(name, entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Once)
    }
}

/// The header of a safetensors file.
#[derive(Debug)]
pub(super) struct Tensors {
    path: PathBuf,
    /// Offset in the file of the tensors' data, in bytes.
    start: u64,
    /// Length of the tensors' data, in bytes.
    length: u64,
    entries: BTreeMap<String, serde_json::Value>,
}

impl Tensors {
    /// Reads the header; no tensor is read.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if the file is missing or damaged.
    pub(super) fn open(path: &Path) -> Result<Self, EncoderError> {
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
        let Entries(entries) =
            serde_json::from_slice(&header).map_err(|error| unreadable(error.to_string()))?;
        Ok(Self { path: path.to_path_buf(), start: 8 + length, length: total - 8 - length, entries })
    }

    /// Names of all tensors, ascending.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str).filter(|name| *name != "__metadata__")
    }

    /// Finds one tensor; its numbers are not read. `None` if no tensor has that name.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if it is of a type that weights cannot have, or extends beyond the end of the file.
    pub(super) fn find(&self, name: &str) -> Result<Option<Tensor>, EncoderError> {
        let unreadable = |reason: String| EncoderError::ModelNotReadable { path: self.path.clone(), reason };
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        let entry = Entry::deserialize(entry).map_err(|error| unreadable(error.to_string()))?;
        let [start, end] = entry.data_offsets;
        let kind = match entry.dtype.as_str() {
            "F32" => Kind::F32,
            "F16" => Kind::F16,
            "BF16" => Kind::Bf16,
            "I8" => Kind::I8,
            "U8" => Kind::U8,
            other => return Err(unreadable(format!("tensor [{name}] is of type {other}"))),
        };
        let count = entry.shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim as u64));
        let fits = end <= self.length
            && end.checked_sub(start) == count.and_then(|count| count.checked_mul(kind.width() as u64));
        if !fits {
            return Err(unreadable(format!("tensor [{name}] does not fit the file")));
        }
        let (offset, count) = (self.start + start, (end - start) as usize / kind.width());
        let values = Stored::File { path: self.path.clone(), offset, count, kind };
        match kind {
            Kind::I8 => {
                Ok(Some(Tensor { values: self.scaled(name, values, &entry.shape)?, shape: entry.shape }))
            }
            Kind::U8 => self.in_groups(name, values, &entry.shape).map(Some),
            _ => Ok(Some(Tensor { shape: entry.shape, values })),
        }
    }

    /// A matrix of 8-bit integers with the scales of its rows, which are a tensor of the same name with `_scale` behind it, `[rows, 1]`, and
    /// those of its columns with `_column_scale`, `[1, columns]`, if the file has them.
    fn scaled(&self, name: &str, numbers: Stored, shape: &[usize]) -> Result<Stored, EncoderError> {
        let scales = self.scales(&format!("{name}_scale"))?;
        let of_columns = format!("{name}_column_scale");
        let across = self.scales(&of_columns)?;
        let has_columns = self.entries.contains_key(&of_columns);
        match *shape {
            [_, columns] if has_columns && columns != across.len() => {
                Err(self.unscaled(name, "I8 has no scale for each of its columns"))
            }
            [..] if !across.iter().all(|scale| scale.is_normal() && *scale > 0.0) => {
                Err(self.unscaled(name, "I8 has a scale of a column that is not above 0 and a normal number"))
            }
            [..] if !scales.iter().all(|scale| scale.is_finite()) => {
                Err(self.unscaled(name, "I8 has a scale of a row that is not finite"))
            }
            [rows, columns] if rows == scales.len() => {
                let bytes = StoredBytes { numbers, scales, columns, axis: Axis::Rows, across };
                Ok(Stored::Bytes(Box::new(bytes)))
            }
            _ => Err(self.unscaled(name, "I8 has no scale for each of its rows")),
        }
    }

    /// A matrix of 4-bit numbers (see [`crate::nibbles`]), two in a byte: the tensor has half as many columns as the matrix, and that of its
    /// scales, of the same name with `_scale` behind it, is `[rows, columns / 32]`.
    fn in_groups(&self, name: &str, bytes: Stored, shape: &[usize]) -> Result<Tensor, EncoderError> {
        let scales = self.scales(&format!("{name}_scale"))?;
        let columns = shape.last().and_then(|half| half.checked_mul(2)).unwrap_or(0);
        match *shape {
            [rows, _]
                if columns.is_multiple_of(GROUP)
                    && rows.checked_mul(columns / GROUP) == Some(scales.len()) =>
            {
                let values = Stored::Nibbles(Box::new(StoredNibbles { bytes, scales, columns }));
                Ok(Tensor { shape: vec![rows, columns], values })
            }
            _ => Err(self.unscaled(name, "U8 has no scale for each 32 numbers of its rows")),
        }
    }

    /// The numbers of a tensor of scales; none if it is missing.
    fn scales(&self, name: &str) -> Result<Vec<f32>, EncoderError> {
        let unreadable = |reason: String| EncoderError::ModelNotReadable { path: self.path.clone(), reason };
        match self.find_floats(name)? {
            Some(scales) => scales.read().map_err(|error| unreadable(error.to_string())),
            None => Ok(Vec::new()),
        }
    }

    fn unscaled(&self, name: &str, problem: &str) -> EncoderError {
        let reason = format!("tensor [{name}] of type {problem}");
        EncoderError::ModelNotReadable { path: self.path.clone(), reason }
    }

    /// As [`Tensors::find`], for a tensor that is not of integers: the scales of one have none of their own.
    fn find_floats(&self, name: &str) -> Result<Option<Stored>, EncoderError> {
        let is_integer =
            self.entries.get(name).is_some_and(|entry| entry["dtype"] == "I8" || entry["dtype"] == "U8");
        Ok(if is_integer { None } else { self.find(name)?.map(|tensor| tensor.values) })
    }
}

/// Finds one tensor of a file; its numbers are not read.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if the file is damaged or has no such tensor.
pub(super) fn find(path: &Path, name: &str) -> Result<Tensor, EncoderError> {
    Tensors::open(path)?.find(name)?.ok_or_else(|| EncoderError::ModelNotReadable {
        path: path.to_path_buf(),
        reason: format!("no tensor [{name}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::find;

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
        let a = find(file.path(), "a").unwrap();
        assert_eq!((a.shape, a.values.read().unwrap()), (vec![1, 2], vec![1.5, -2.0]));
        let values = |name| find(file.path(), name).unwrap().values.read().unwrap();
        assert_eq!((values("h"), values("b")), (vec![1.5], vec![1.5]));
        assert!(find(file.path(), "c").is_err());
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused() {
        let entry = r#""a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        let error = find(file(&format!("{{{entry},{entry}}}"), &[0; 4]).path(), "a").unwrap_err().to_string();
        assert!(error.contains("tensor [a] is there twice"), "{error}");
    }

    #[test]
    fn bytes_have_scales_for_rows_and_perhaps_for_columns() {
        let mut data = vec![1u8, 2, 3, 253];
        for scale in [0.5f32, 2.0, 1.0, 10.0] {
            data.extend_from_slice(&scale.to_le_bytes());
        }
        let of = |columns: &str| {
            let header = format!(
                r#"{{"w":{{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]}},"w_scale":{{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]}}{columns}}}"#
            );
            let file = file(&header, &data);
            find(file.path(), "w").map(|tensor| tensor.values.read().unwrap())
        };
        assert_eq!(of("").unwrap(), [0.5, 1.0, 6.0, -6.0]);
        let columns = |shape: &str, offsets: &str| {
            of(&format!(r#","w_column_scale":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}"#))
        };
        assert_eq!(columns("[1,2]", "[12,20]").unwrap(), [0.5, 10.0, 6.0, -60.0]);
        assert!(columns("[1,1]", "[12,16]").is_err());
        assert!(columns("[1,4]", "[4,20]").is_err());
        assert!(of(r#","w_column_scale":{"dtype":"I8","shape":[1,2],"data_offsets":[0,2]}"#).is_err());
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
            assert!(find(file(&header, &data).path(), "a").is_err(), "{header}");
        }
        let short = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(short.path(), [255u8; 9]).unwrap();
        assert!(find(short.path(), "a").is_err());
    }
}
