//! File system operations as observers see them, and the registration of observers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

/// What is done to a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A file is created, or an existing one emptied, and opened for writing.
    Create,
    /// An existing file is opened for reading.
    Open,
    /// An existing file is opened for writing, its content kept.
    OpenForWriting,
    /// Bytes are read from an open file, or a whole file is read.
    Read,
    /// Bytes are written at the end of an open file.
    Write,
    /// An open file is cut or extended to a length.
    SetLength,
    /// The content of an open file is made durable.
    Sync,
    /// An entry of a folder is renamed, replacing any entry that has the new name.
    Rename,
    /// A file gets a second name.
    Link,
    /// A file is removed.
    Remove,
    /// A folder is created.
    CreateFolder,
    /// A folder is removed with everything in it.
    RemoveFolder,
    /// The names in a folder are made durable.
    SyncFolder,
    /// The names in a folder are read.
    List,
    /// A file is mapped into memory.
    Map,
    /// An open file is locked against other processes.
    Lock,
}

impl Kind {
    /// Whether the operation changes what is on the disk, or makes a change durable.
    pub fn changes(self) -> bool {
        !matches!(self, Self::Open | Self::Read | Self::List | Self::Map | Self::Lock)
    }
}

/// Number of an open file, unique in this process.
pub type HandleId = u64;

/// An operation that is about to happen, or just happened.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub kind: Kind,
    /// The file or folder, by the name that it was opened with.
    pub path: &'a Path,
    /// The new name of a renamed or linked file.
    pub to: Option<&'a Path>,
    /// The open file, for operations on one.
    pub handle: Option<HandleId>,
    /// The bytes being written; empty for other operations, [`Kind::SetLength`] included.
    pub bytes: &'a [u8],
    /// The new length in bytes, for [`Kind::SetLength`].
    pub length: u64,
}

impl<'a> Call<'a> {
    pub(crate) fn on(kind: Kind, path: &'a Path) -> Self {
        Self { kind, path, to: None, handle: None, bytes: &[], length: 0 }
    }
}

/// An observer's decision about an operation.
#[derive(Debug)]
pub enum Verdict {
    /// The operation runs.
    Allow,
    /// It fails with this error, and nothing was done.
    Fail(io::Error),
    /// A write stores the given number of leading bytes and then fails with the error. Any other operation takes
    /// effect, but still reports the error.
    Torn(usize, io::Error),
}

/// Watches operations. Called from any thread, possibly from several at once.
pub trait Observer: Send + Sync {
    /// Decides about an operation.
    fn before(&self, call: &Call<'_>) -> Verdict;

    /// Learns of an operation that succeeded. For a write, `call.bytes` is what was written.
    fn after(&self, call: &Call<'_>) {
        let _ = call;
    }
}

type Observers = Vec<(PathBuf, Arc<dyn Observer>)>;

static OBSERVED: AtomicBool = AtomicBool::new(false);
static OBSERVERS: RwLock<Observers> = RwLock::new(Vec::new());

/// Watches all operations on files and folders whose path begins with `root`, until the guard is dropped. For tests.
pub fn observe(root: &Path, observer: Arc<dyn Observer>) -> Guard {
    let mut observers = OBSERVERS.write();
    observers.push((root.to_path_buf(), observer));
    OBSERVED.store(true, Ordering::SeqCst);
    Guard { root: root.to_path_buf() }
}

/// Ends the observation of a folder when it is dropped.
#[derive(Debug)]
#[must_use = "the observation ends when the guard is dropped"]
pub struct Guard {
    root: PathBuf,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut observers = OBSERVERS.write();
        observers.retain(|(root, _)| *root != self.root);
        OBSERVED.store(!observers.is_empty(), Ordering::SeqCst);
    }
}

fn observer_of(path: &Path) -> Option<Arc<dyn Observer>> {
    if !OBSERVED.load(Ordering::Relaxed) {
        return None;
    }
    let observers = OBSERVERS.read();
    observers.iter().find(|(root, _)| path.starts_with(root)).map(|(_, observer)| observer.clone())
}

/// Runs an operation as its observer wants it, if it has one.
pub(crate) fn run<T>(call: &Call<'_>, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(observer) = observer_of(call.path) else { return operation() };
    match observer.before(call) {
        Verdict::Allow => {
            let result = operation()?;
            observer.after(call);
            Ok(result)
        }
        Verdict::Fail(error) => Err(error),
        Verdict::Torn(_, error) => {
            operation()?;
            observer.after(call);
            Err(error)
        }
    }
}

/// Writes bytes as the observer of the file wants it, if it has one; returns how many were written.
pub(crate) fn run_write(
    call: &Call<'_>,
    mut write: impl FnMut(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let Some(observer) = observer_of(call.path) else { return write(call.bytes) };
    let done = |written: usize| observer.after(&Call { bytes: &call.bytes[..written], ..*call });
    match observer.before(call) {
        Verdict::Allow => {
            let written = write(call.bytes)?;
            done(written);
            Ok(written)
        }
        Verdict::Fail(error) => Err(error),
        Verdict::Torn(length, error) => {
            let written = write(&call.bytes[..length.min(call.bytes.len())])?;
            done(written);
            Err(error)
        }
    }
}
