//! Reads files of a model directory that are loaded as a whole.

use std::io;
use std::path::Path;

/// Size of the largest file that is read, in bytes: twice that of the largest published tokenizer. Opened, its words take many
/// times that.
const MOST: u64 = 64 << 20;

/// Reads a whole file. Model directories come from third parties, so only regular files are read: a device
/// never ends, and a pipe may never be ready.
///
/// # Errors
/// As [`std::fs::read`], and [`io::ErrorKind::InvalidInput`] for anything that is not a regular file or is
/// larger than 64 MiB.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A link counts as what it leads to.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    if metadata.len() > MOST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("it is larger than {} MiB", MOST >> 20),
        ));
    }
    std::fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "{}").unwrap();
        assert_eq!(read(&path).unwrap(), b"{}");
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(MOST + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "it is larger than 64 MiB");
        assert_eq!(read(dir.path()).unwrap_err().to_string(), "it is not a file");
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_not_read() {
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().to_string(), "it is not a file");
    }
}
