//! Operations that are durable when they return.

use std::io::{self, Write};
use std::path::Path;

use crate::file::File;
use crate::operations;

/// Atomically replaces the file at `path` by `bytes`: after a crash it has either the old or the new content, never a
/// mixture.
///
/// # Errors
/// If the disk reports an error. Either content may then be found after a crash; readers see the old one, unless the
/// rename has already happened.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    })()
    .and_then(|()| operations::rename(&temporary, path));
    if let Err(error) = written {
        // A half-written file must not stay: on a full disk it would hold on to space.
        let _ = operations::remove_file(&temporary);
        return Err(error);
    }
    sync_parent(path)
}

/// Removes a file durably. A missing file counts as removed, so that an attempt that failed after the removal can be
/// repeated.
///
/// # Errors
/// If the file exists and cannot be removed, or if the removal cannot be made durable.
pub fn remove_file(path: &Path) -> io::Result<()> {
    operations::remove_file(path).or_else(operations::unless_missing)?;
    sync_parent(path).or_else(operations::unless_missing)
}

/// Creates a folder and its parents, durably.
///
/// # Errors
/// When the disk refuses.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
        && !parent.is_dir()
    {
        create_dir_all(parent)?;
    }
    operations::create_dir_all(path)?;
    sync_parent(path)
}

/// Removes a folder with everything in it, durably; one that is not there counts as removed.
///
/// # Errors
/// When the disk refuses; part of it may be gone.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    match operations::remove_dir_all(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => operations::sync_dir(parent),
        _ => Ok(()),
    }
}
