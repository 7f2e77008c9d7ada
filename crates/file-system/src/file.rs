//! Open files, whose operations can be observed.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::call::{Call, HandleId, Kind, run, run_write};

/// `ENXIO`, which has this number on every Unix.
const NO_SUCH_DEVICE: i32 = 6;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// An open file: an observable wrapper of `std::fs::File` that knows its path. Files are only written sequentially.
#[derive(Debug)]
pub struct File {
    file: fs::File,
    path: PathBuf,
    handle: HandleId,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it does not exist, cannot be read, or is not a regular file but a folder, pipe or device, as for all that open files.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::opened(path.as_ref(), Kind::Open, fs::OpenOptions::new().read(true))
    }

    /// Creates a file, or empties the one that is there, and opens it for writing.
    ///
    /// # Errors
    /// When the folder is not there, or does not let it be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = fs::OpenOptions::new();
        Self::opened(path.as_ref(), Kind::Create, options.write(true).create(true).truncate(true))
    }

    /// Creates a file and opens it for writing at its end.
    ///
    /// # Errors
    /// When there is a file of this name, or as [`File::create`].
    pub fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::opened(path.as_ref(), Kind::Create, fs::OpenOptions::new().append(true).create_new(true))
    }

    /// Opens a file for writing at its end, and keeps what is in it.
    ///
    /// # Errors
    /// When it is not there or cannot be written.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::opened(path.as_ref(), Kind::OpenForWriting, fs::OpenOptions::new().append(true))
    }

    /// Opens a file for holding a lock on it; creates it when it is not there.
    ///
    /// # Errors
    /// When it cannot be opened or created.
    pub fn open_or_create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = fs::OpenOptions::new();
        Self::opened(path.as_ref(), Kind::Create, options.write(true).create(true).truncate(false))
    }

    fn opened(path: &Path, kind: Kind, options: &mut fs::OpenOptions) -> io::Result<Self> {
        let not_regular =
            || io::Error::other("not a regular file; move it away, or put the file back that belongs there");
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;

            // Without this flag, opening a pipe would block until another process opens its other end.
            options.custom_flags(libc::O_NONBLOCK);
        }
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        let call = Call { handle: Some(handle), ..Call::on(kind, path) };
        let file = run(&call, || options.open(path)).map_err(|error| {
            // What Unix says of a pipe that nobody reads, and of a socket.
            let other = cfg!(unix) && error.raw_os_error() == Some(NO_SUCH_DEVICE);
            if other { not_regular() } else { error }
        })?;
        match file.metadata()?.is_file() {
            true => Ok(Self { file, path: path.to_path_buf(), handle }),
            false => Err(not_regular()),
        }
    }

    fn call(&self, kind: Kind) -> Call<'_> {
        Call { handle: Some(self.handle), ..Call::on(kind, &self.path) }
    }

    /// Makes content and metadata durable.
    ///
    /// # Errors
    /// When the disk refuses: what was written since the last success may be lost.
    pub fn sync_all(&self) -> io::Result<()> {
        run(&self.call(Kind::Sync), || self.file.sync_all())
    }

    /// Makes the content durable, with as much metadata as reading it takes.
    ///
    /// # Errors
    /// As [`File::sync_all`].
    pub fn sync_data(&self) -> io::Result<()> {
        run(&self.call(Kind::Sync), || self.file.sync_data())
    }

    /// Truncates the file to `length` bytes, or extends it to that with zeros.
    ///
    /// # Errors
    /// If the file is not open for writing or the disk reports an error.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        run(&Call { length, ..self.call(Kind::SetLength) }, || {
            if cfg!(windows) {
                // There, who has opened a file for appending alone may not cut it.
                return fs::OpenOptions::new().write(true).open(&self.path)?.set_len(length);
            }
            self.file.set_len(length)
        })
    }

    /// Length, times and permissions.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn metadata(&self) -> io::Result<fs::Metadata> {
        self.file.metadata()
    }

    /// Locks the file for this process until it is closed.
    ///
    /// # Errors
    /// `WouldBlock` when another process holds it.
    pub fn try_lock(&self) -> Result<(), fs::TryLockError> {
        run(&self.call(Kind::Lock), || Ok(())).map_err(fs::TryLockError::Error)?;
        self.file.try_lock()
    }

    /// The system's file, for mapping it into memory.
    ///
    /// # Errors
    /// When an observer lets mappings fail.
    pub fn mappable(&self) -> io::Result<&fs::File> {
        run(&self.call(Kind::Map), || Ok(&self.file))
    }
}

impl Read for File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self).read(bytes)
    }
}

impl Read for &File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        run(&self.call(Kind::Read), || (&self.file).read(bytes))
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        run_write(&Call { bytes, ..self.call(Kind::Write) }, |bytes| (&self.file).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_appended_to_can_be_cut_and_goes_on_at_its_new_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut made = File::create_new(&path).unwrap();
        made.write_all(b"one two").unwrap();
        made.set_len(3).unwrap();
        made.write_all(b" three").unwrap();
        made.sync_all().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one three");

        let mut opened = File::append(&path).unwrap();
        opened.set_len(4).unwrap();
        opened.write_all(b"four").unwrap();
        opened.sync_data().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one four");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_and_a_pipe_that_nobody_writes_into_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        sparrow_fuzzing::make_pipe(&pipe).unwrap();
        for path in [folder.path(), &pipe] {
            for opened in
                [File::open(path), File::open_or_create(path), File::create(path), File::append(path)]
            {
                let sentence = opened.unwrap_err().to_string();
                // The system itself says that it is a folder, as soon as it is opened for writing.
                let own = sentence.starts_with("not a regular file; move it away");
                assert!(own || sentence.contains("directory"), "{}: {sentence}", path.display());
            }
        }
    }
}
