//! Operations on files and folders by path.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::call::{Call, Kind, run};
use crate::file::File;

/// Size of the largest file that is read as a whole, in bytes: far more than any that is written to be read so. A file may have
/// been replaced by one without an end.
pub const MOST_WHOLE: u64 = 256 << 20;

/// Reads a whole file of up to [`MOST_WHOLE`] bytes.
///
/// # Errors
/// As `std::fs::read`; for a larger file.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let too_large = || {
        let limit = MOST_WHOLE >> 20;
        io::Error::other(format!(
            "larger than {limit} MiB, which no such file is; move it away, or put back the one that belongs there"
        ))
    };
    let length = file.metadata()?.len();
    if length > MOST_WHOLE {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(length as usize);
    // It may grow meanwhile.
    file.take(MOST_WHOLE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_WHOLE { Err(too_large()) } else { Ok(bytes) }
}

/// Reads a whole file as text.
///
/// # Errors
/// As [`read`]; if it is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Creates a file, or replaces its content. Nothing is durable afterwards; see [`crate::durable::atomic_write`].
///
/// # Errors
/// As `std::fs::write`.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    File::create(path)?.write_all(bytes.as_ref())
}

/// Renames an entry of a folder; one that has the new name is replaced.
///
/// # Errors
/// As `std::fs::rename`.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    run(&Call { to: Some(to), ..Call::on(Kind::Rename, from) }, || fs::rename(from, to))
}

/// Gives a file a second name.
///
/// # Errors
/// As `std::fs::hard_link`.
pub fn hard_link(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    run(&Call { to: Some(to), ..Call::on(Kind::Link, from) }, || fs::hard_link(from, to))
}

/// Gives a file that never changes a second name, or copies it where the file system cannot link; a file that has the name is
/// replaced. A copy's content is durable when this returns; the new name is not (see [`sync_dir`]).
///
/// # Errors
/// When it can neither be linked nor copied.
pub fn link_or_copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    if hard_link(&from, &to).is_err() {
        // A file system over a network may link and yet report an error. Emptying what has the name would then empty the
        // original, also for those who have it mapped: the name has to go before anything is written.
        remove_file(&to).or_else(unless_missing)?;
        let mut copy = File::create_new(to)?;
        io::copy(&mut File::open(from)?, &mut copy)?;
        copy.sync_data()?;
    }
    Ok(())
}

/// Copies the content of a file; returns its length in bytes. The copy is not durable.
///
/// # Errors
/// When the one cannot be read or the other cannot be written.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    io::copy(&mut File::open(from)?, &mut File::create(to)?)
}

/// Removes a file.
///
/// # Errors
/// As `std::fs::remove_file`.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    run(&Call::on(Kind::Remove, path), || fs::remove_file(path))
}

/// Turns the error for a missing file or folder into success, for removals.
pub(crate) fn unless_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Creates a folder.
///
/// # Errors
/// As `std::fs::create_dir`.
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    run(&Call::on(Kind::CreateFolder, path), || fs::create_dir(path))
}

/// Creates a folder and the folders that it lies in; those that are there stay.
///
/// # Errors
/// As `std::fs::create_dir_all`.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    if path.is_dir() || path.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_dir_all(parent)?;
    }
    match create_dir(path) {
        Err(_) if path.is_dir() => Ok(()),
        result => result,
    }
}

/// Removes a folder with everything in it.
///
/// # Errors
/// As `std::fs::remove_dir_all`; part of it may be gone.
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    run(&Call::on(Kind::RemoveFolder, path), || fs::remove_dir_all(path))
}

/// The entries of a folder.
///
/// # Errors
/// As `std::fs::read_dir`.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<fs::ReadDir> {
    let path = path.as_ref();
    run(&Call::on(Kind::List, path), || fs::read_dir(path))
}

/// Length, times and permissions of a file or folder.
///
/// # Errors
/// As `std::fs::metadata`.
pub fn metadata(path: impl AsRef<Path>) -> io::Result<fs::Metadata> {
    fs::metadata(path)
}

/// Removes all permissions of users other than the owner from a file or folder; symbolic links are followed. Does
/// nothing on systems without Unix permissions, where those of the folder apply.
///
/// # Errors
/// If it does not exist, belongs to another user, or is on a file system without permissions.
pub fn close_to_others(path: impl AsRef<Path>) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        let path = path.as_ref();
        let rights = fs::metadata(path)?.permissions().mode();
        if rights & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(rights & !0o077))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Capacity of a file system and the space left on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes of the file system.
    pub total: u64,
    /// Space in bytes that is still available to this process.
    pub available: u64,
}

/// Capacity and free space of the file system that holds a file or folder.
///
/// # Errors
/// If the operating system reports an error.
pub fn space(path: impl AsRef<Path>) -> io::Result<Space> {
    let stats = fs4::statvfs(path)?;
    Ok(Space { total: stats.total_space(), available: stats.available_space() })
}

/// Whether there is a file or folder of this name.
pub fn exists(path: impl AsRef<Path>) -> bool {
    path.as_ref().exists()
}

/// Makes the content of a file durable that nobody has open for writing.
///
/// # Errors
/// When the file cannot be opened or the disk refuses.
pub fn sync_data(path: impl AsRef<Path>) -> io::Result<()> {
    // Windows only syncs what is open for writing.
    let file = if cfg!(windows) { File::append(path)? } else { File::open(path)? };
    file.sync_data()
}

/// Makes the names in a folder durable: entries that were created, renamed and removed.
///
/// # Errors
/// When the folder cannot be opened or the disk refuses.
pub fn sync_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    run(&Call::on(Kind::SyncFolder, path), || {
        // Windows cannot open a directory as a file; its metadata is journalled.
        if cfg!(windows) {
            return Ok(());
        }
        fs::File::open(path)?.sync_all()
    })
}

/// Says that a library is about to map a file into memory.
///
/// # Errors
/// When an observer lets mappings fail.
pub fn about_to_map(path: &Path) -> io::Result<()> {
    run(&Call::on(Kind::Map, path), || Ok(()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::call::{Observer, Verdict, observe};

    /// Observer under which linking files reports an error, either after the link was made or (unless `done`) without
    /// making it.
    struct Links {
        done: bool,
    }

    impl Observer for Links {
        fn before(&self, call: &Call<'_>) -> Verdict {
            let error = || io::Error::other("injected: the answer was lost");
            match call.kind {
                Kind::Link if self.done => Verdict::Torn(0, error()),
                Kind::Link => Verdict::Fail(error()),
                _ => Verdict::Allow,
            }
        }
    }

    #[test]
    fn the_original_keeps_its_content_when_a_link_was_made_and_yet_failed() {
        for done in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let _guard = observe(folder.path(), Arc::new(Links { done }));
            let (from, to) = (folder.path().join("from"), folder.path().join("to"));
            fs::write(&from, "content").unwrap();
            let open = fs::File::open(&from).unwrap();
            link_or_copy(&from, &to).unwrap();
            assert_eq!(open.metadata().unwrap().len(), 7, "who has the file open or mapped sees all of it");
            assert_eq!(fs::read(&from).unwrap(), b"content");
            assert_eq!(fs::read(&to).unwrap(), b"content");
        }
    }
}
