//! [`sparrow_file_system::durable`], with errors that name the operation and the file.

use std::path::Path;

use sparrow_file_system as files;

use crate::StorageError;

/// Replaces the file at `path` by `bytes`: after a crash it holds the old or the new content, never a mixture.
///
/// # Errors
/// [`StorageError::Io`]; readers of the file then find the old content, unless only making the new name durable failed.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    files::durable::atomic_write(path, bytes).map_err(StorageError::io("write", path))
}

/// Removes a file durably; one that is not there counts as removed.
///
/// # Errors
/// [`StorageError::Io`] when the file is there and cannot be removed.
pub fn remove_file(path: &Path) -> Result<(), StorageError> {
    files::durable::remove_file(path).map_err(StorageError::io("remove", path))
}

/// Creates a directory and its parents, durably.
///
/// # Errors
/// [`StorageError::Io`].
pub fn create_dir_all(path: &Path) -> Result<(), StorageError> {
    files::durable::create_dir_all(path).map_err(StorageError::io("create", path))
}

/// Makes created, renamed and removed entries of a directory durable.
///
/// # Errors
/// [`StorageError::Io`].
pub fn sync_dir(path: &Path) -> Result<(), StorageError> {
    files::sync_dir(path).map_err(StorageError::io("sync", path))
}

/// Removes a directory with everything in it; one that is not there counts as removed.
///
/// # Errors
/// [`StorageError::Io`]; part of it may be gone.
pub fn remove_dir_all(path: &Path) -> Result<(), StorageError> {
    files::durable::remove_dir_all(path).map_err(StorageError::io("remove", path))
}

/// Names of the entries of a directory, sorted; none when it is not there.
///
/// # Errors
/// [`StorageError::Io`].
pub fn list_dir(path: &Path) -> Result<Vec<String>, StorageError> {
    let entries = match files::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StorageError::io("list", path)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StorageError::io("list", path))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
