//! A mark, the file `claimed`, in the folder of every index whose metadata is in the store. Code that removes an index's metadata
//! from the store removes the mark first. So a folder without metadata shows how that came about: without the mark, creating or
//! deleting the index was cut short, and the folder is removed; with the mark, somebody took the metadata away, and the documents
//! are kept.

use std::path::Path;

use sparrow_write_ahead_log::{DataDir, durable};

use sparrow_request::error::EngineError;

const MARK: &str = "claimed";

/// Marks the folder of an index whose metadata is in the store. Where that fails the next start tries again.
pub(super) fn mark(root: &Path) {
    let path = root.join(MARK);
    if sparrow_file_system::metadata(&path).is_ok() {
        return;
    }
    if let Err(error) = sparrow_file_system::write(&path, b"") {
        tracing::warn!(path = %path.display(), %error, "the folder of an index is not marked as one");
    }
}

/// Removes the mark, durably, so that the metadata may be removed.
///
/// # Errors
/// What the disk refuses; the mark is then still there, or is put back at the next start.
pub(super) fn withdraw(root: &Path) -> Result<(), EngineError> {
    let path = root.join(MARK);
    let removed = match sparrow_file_system::remove_file(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        removed => removed,
    };
    removed
        .and_then(|()| sparrow_file_system::sync_dir(root))
        .map_err(sparrow_write_ahead_log::StorageError::io("remove", &path))
        .map_err(EngineError::from)
}

/// Names of the folders below `indices` that have no metadata in the store: folders that once had metadata, and those that Sparrow
/// did not make.
///
/// # Errors
/// When the folders cannot be listed.
pub fn orphans(data: &DataDir, is_known: &dyn Fn(&str) -> bool) -> Result<Vec<String>, EngineError> {
    let mut folders = durable::list_dir(&data.path().join("indices"))?;
    folders.retain(|name| !is_known(name) && (is_marked(data, name) || !is_ours(&data.index_dir(name))));
    Ok(folders)
}

/// Whether the folder of this index has the mark, so that the store had metadata for it.
pub fn is_marked(data: &DataDir, uuid: &str) -> bool {
    sparrow_file_system::metadata(data.index_dir(uuid).join(MARK)).is_ok()
}

/// Whether a folder holds nothing but what creating an index puts there. The data directory may be that of another program.
fn is_ours(root: &Path) -> bool {
    let made = |name: &String| name == "wal" || name.starts_with("segments");
    durable::list_dir(root).is_ok_and(|names| names.iter().all(made))
}
