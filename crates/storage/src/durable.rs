//! File operations that are durable when they return.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::StorageError;

/// Replaces the file at `path` by `bytes`: after a crash it holds the old or the new content, never a mixture.
///
/// # Errors
/// [`StorageError::Io`]; the old content is then still there.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let temporary = path.with_extension("tmp");
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    })();
    if let Err(source) = written {
        // A half-written file must not stay: on a full disk it would hold on to space.
        let _ = fs::remove_file(&temporary);
        return Err(StorageError::io("write", &temporary)(source));
    }
    fs::rename(&temporary, path).map_err(StorageError::io("replace", path))?;
    sync_parent(path)
}

/// Removes a file durably; one that is not there counts as removed.
///
/// # Errors
/// [`StorageError::Io`] when the file is there and cannot be removed.
pub fn remove_file(path: &Path) -> Result<(), StorageError> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StorageError::io("remove", path)(error)),
    }
}

/// Creates a directory and its parents, durably.
///
/// # Errors
/// [`StorageError::Io`].
pub fn create_dir_all(path: &Path) -> Result<(), StorageError> {
    fs::create_dir_all(path).map_err(StorageError::io("create", path))?;
    sync_parent(path)
}

/// Makes created, renamed and removed entries of a directory durable.
///
/// # Errors
/// [`StorageError::Io`].
pub fn sync_dir(path: &Path) -> Result<(), StorageError> {
    // Windows cannot open a directory as a file; its metadata is journalled.
    if cfg!(windows) {
        return Ok(());
    }
    File::open(path).and_then(|directory| directory.sync_all()).map_err(StorageError::io("sync", path))
}

fn sync_parent(path: &Path) -> Result<(), StorageError> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => Ok(()),
    }
}

/// Removes a directory with everything in it; one that is not there counts as removed.
///
/// # Errors
/// [`StorageError::Io`]; part of it may be gone.
pub fn remove_dir_all(path: &Path) -> Result<(), StorageError> {
    match fs::remove_dir_all(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StorageError::io("remove", path)(error)),
    }
}

/// Names of the entries of a directory, sorted; none when it is not there.
///
/// # Errors
/// [`StorageError::Io`].
pub fn list_dir(path: &Path) -> Result<Vec<String>, StorageError> {
    let entries = match fs::read_dir(path) {
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
