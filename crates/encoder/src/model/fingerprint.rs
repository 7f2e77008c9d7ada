//! One hash over all files of a model.

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use sparrow_file_system::File;

use crate::error::EncoderError;

/// Hex SHA-256 over names, lengths and contents of the files, in order of their names, and the sum of their lengths.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] with the file that cannot be read.
pub(super) fn fingerprint(dir: &Path, files: &[PathBuf]) -> Result<(String, u64), EncoderError> {
    let mut files = files.to_vec();
    files.sort();
    files.dedup();
    let mut hash = Sha256::new();
    let mut total = 0;
    let mut buffer = vec![0u8; 256 * 1024];
    for path in &files {
        let unreadable = |error: std::io::Error| EncoderError::ModelNotReadable {
            path: path.clone(),
            reason: error.to_string(),
        };
        let mut file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let name = path.strip_prefix(dir).unwrap_or(path).to_string_lossy();
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(length.to_le_bytes());
        loop {
            let read = file.read(&mut buffer).map_err(unreadable)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
        }
        total += length;
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok((hex, total))
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn names_and_contents_count_and_order_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for (name, content) in [("a", "one"), ("b", "two"), ("c", "one")] {
            std::fs::write(path(name), content).unwrap();
        }
        let of = |names: &[&str]| {
            fingerprint(dir.path(), &names.iter().map(|n| path(n)).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
        assert_eq!(of(&["a", "b"]).1, 6);
        assert_ne!(of(&["a"]).0, of(&["c"]).0);
        assert_ne!(of(&["a"]).0, of(&["a", "b"]).0);
        assert!(fingerprint(dir.path(), &[path("missing")]).is_err());
    }
}
