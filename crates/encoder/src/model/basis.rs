//! `head-basis.safetensors`: the basis in which the head looks at few dimensions first. `tools/models/head_basis.py` makes it.
//!
//! A basis does not change results, only how fast they are computed, and is not part of the model's fingerprint.

use std::path::Path;

use crate::error::EncoderError;
use crate::head::Basis;

use super::safetensors;

const FILE: &str = "head-basis.safetensors";

/// Reads the basis of a model directory, if it has one.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if the file is damaged.
pub(super) fn load(dir: &Path) -> Result<Option<Basis>, EncoderError> {
    let path = dir.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.clone(), reason };
    let read = |name: &str| {
        let tensor = safetensors::find(&path, name)?;
        tensor.values.read().map_err(|error| unreadable(error.to_string()))
    };
    Basis::new(read("terms")?, read("tokens")?, read("offset")?, &read("looks")?)
        .map(Some)
        .map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::{FILE, load};

    /// The bytes of a basis file whose four tensors hold `sizes` ones each.
    fn file(sizes: [(&str, usize); 4]) -> Vec<u8> {
        let mut end = 0;
        let entries = sizes.map(|(name, size)| {
            let start = end;
            end += 4 * size;
            format!(r#""{name}":{{"dtype":"F32","shape":[{size}],"data_offsets":[{start},{end}]}}"#)
        });
        let header = format!("{{{}}}", entries.join(","));
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend(1f32.to_le_bytes().repeat(end / 4));
        bytes
    }

    #[test]
    fn a_basis_may_be_missing_but_not_damaged() {
        let dir = tempfile::tempdir().unwrap();
        assert!(load(dir.path()).unwrap().is_none());
        let path = dir.path().join(FILE);
        let good = file([("terms", 1024), ("tokens", 1024), ("offset", 32), ("looks", 7)]);
        std::fs::write(&path, &good).unwrap();
        assert!(load(dir.path()).unwrap().is_some());
        for bad in [
            file([("terms", 1023), ("tokens", 1024), ("offset", 32), ("looks", 7)]),
            file([("terms", 1024), ("tokens", 1024), ("offset", 31), ("looks", 7)]),
            file([("terms", 1024), ("tokens", 1024), ("offset", 32), ("other", 7)]),
            good[..good.len() - 1].to_vec(),
            vec![255; 9],
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(load(dir.path()).is_err());
        }
    }
}
