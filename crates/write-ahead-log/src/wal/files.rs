//! The files of the log: their names, the last one, and the next.

use std::io::Write;
use std::path::{Path, PathBuf};

use sparrow_file_system::{self as fs, File};

use super::record::{self, FILE_HEADER};
use crate::durable;
use crate::error::StorageError;

/// Number of a log file; files with lower numbers are older.
pub type Generation = u64;

/// The last file of an opened log.
pub(super) struct OpenedFile {
    pub file: File,
    pub path: PathBuf,
    pub generation: Generation,
    pub bytes: u64,
    /// Why nothing can be appended to the file; `None` if it can.
    pub poisoned: Option<String>,
}

/// Creates the file after the one of this generation.
pub(super) fn next_file(directory: &Path, generation: Generation) -> Result<OpenedFile, StorageError> {
    // A file of an attempt that failed may be in the way.
    let highest = log_files(directory)?.last().map_or(generation, |(generation, _)| *generation);
    let generation = highest.max(generation) + 1;
    let (file, path) = create_file(directory, generation)?;
    Ok(OpenedFile { file, path, generation, bytes: FILE_HEADER as u64, poisoned: None })
}

pub(super) fn path_of(directory: &Path, generation: Generation) -> PathBuf {
    directory.join(format!("wal-{generation:020}.log"))
}

pub(super) fn create_file(directory: &Path, generation: Generation) -> Result<(File, PathBuf), StorageError> {
    let path = path_of(directory, generation);
    let mut file = File::create_new(&path).map_err(StorageError::io("create", &path))?;
    let durable = file
        .write_all(&record::file_header(generation))
        .and_then(|()| file.sync_all())
        .map_err(StorageError::io("write", &path))
        .and_then(|()| durable::sync_dir(directory));
    if let Err(error) = durable {
        // A stub means nothing if it cannot be removed either, as long as it does not look like the file that was written last.
        let _ = fs::remove_file(&path).or_else(|_| file.set_len(0));
        return Err(error);
    }
    Ok((file, path))
}

/// The log's files, oldest first.
pub(super) fn log_files(directory: &Path) -> Result<Vec<(Generation, PathBuf)>, StorageError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(StorageError::io("list", directory))? {
        let entry = entry.map_err(StorageError::io("list", directory))?;
        let name = entry.file_name();
        let number =
            name.to_str().and_then(|name| name.strip_prefix("wal-")?.strip_suffix(".log")?.parse().ok());
        if let Some(number) = number {
            files.push((number, entry.path()));
        }
    }
    files.sort();
    Ok(files)
}
