//! A tantivy directory whose commits are cheap and whose flushes are durable.
//!
//! A commit of a tiny segment costs about twenty fsyncs in tantivy's own directory. Here nothing is
//! synced at a commit: `meta.json` and `.managed.json` stay in memory, files are written but not synced,
//! and deletions wait. [`LazyDirectory::make_durable`] is the only durable point. Until it returns, the
//! directory on disk is exactly as openable as at the last one: its `meta.json` is the old one, and every
//! file that one names is still there. The write-ahead log covers what lies between.
//!
//! Merges may run at any time, also during a flush: a flush takes one consistent picture (meta file,
//! unsynced files, deletions) under a lock. A file is registered as unsynced when it is closed, so before
//! any meta file names it; and a file a meta file names is never among the deletions taken with it.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use sparrow_files::{self as fs, File};
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// tantivy's commit point.
pub(crate) const META: &str = "meta.json";
/// tantivy's list of files it may delete.
pub(crate) const MANAGED: &str = ".managed.json";

#[derive(Default)]
struct State {
    /// Newest content of the two meta files, once written in this process.
    meta_files: HashMap<PathBuf, Vec<u8>>,
    /// Counts writes of `meta.json`: commits and finished merges.
    generation: u64,
    unsynced: HashSet<PathBuf>,
    deleted: HashSet<PathBuf>,
    /// Files created anew under a name whose deletion a running flush may still hold.
    recreated: HashSet<PathBuf>,
    /// After a failed fsync the kernel may have dropped dirty pages and report success next time.
    poisoned: bool,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFile {
    pub name: String,
    pub bytes: u64,
}

struct Shared {
    root: PathBuf,
    state: Mutex<State>,
    /// Held by a flush from start to end.
    flush: Mutex<()>,
    /// Held while files are physically removed, and while a new searcher opens its files.
    removal: Mutex<()>,
}

/// See the module documentation. Clones share everything; [`LazyDirectory::successor`] makes an instance
/// over the same state for a reopened index.
#[derive(Clone)]
pub(crate) struct LazyDirectory {
    shared: Arc<Shared>,
    inner: MmapDirectory,
    /// A retired instance refuses to write: its index was reopened with a wider schema, and a merge
    /// that still runs in it must not touch the shared state.
    retired: Arc<AtomicBool>,
}

impl std::fmt::Debug for LazyDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LazyDirectory").field("root", &self.shared.root).finish()
    }
}

impl LazyDirectory {
    /// Opens the directory, which must exist, and removes what a crash left behind: files of segments
    /// that the durable commit does not name.
    pub fn open(root: &Path) -> tantivy::Result<Self> {
        let inner = MmapDirectory::open(root)?;
        sweep(root)?;
        Ok(Self {
            shared: Arc::new(Shared {
                root: root.to_path_buf(),
                state: Mutex::default(),
                flush: Mutex::default(),
                removal: Mutex::default(),
            }),
            inner,
            retired: Arc::default(),
        })
    }

    /// Stops this instance from writing and gives a new one over the same state.
    pub fn successor(&self) -> tantivy::Result<Self> {
        // Under the state lock, so that no write is half done.
        self.retire();
        Ok(Self {
            shared: self.shared.clone(),
            inner: MmapDirectory::open(&self.shared.root)?,
            retired: Arc::default(),
        })
    }

    /// Stops this instance from writing.
    pub fn retire(&self) {
        let _state = self.shared.state.lock();
        self.retired.store(true, Ordering::SeqCst);
    }

    /// Bytes of files that wait for the next flush to be removed.
    pub fn garbage_bytes(&self) -> u64 {
        let deleted: Vec<PathBuf> = self.shared.state.lock().deleted.iter().cloned().collect();
        let length = |path: &PathBuf| fs::metadata(self.shared.root.join(path)).map_or(0, |file| file.len());
        deleted.iter().map(length).sum()
    }

    /// Counts the commits and finished merges of this process.
    pub fn generation(&self) -> u64 {
        self.shared.state.lock().generation
    }

    /// Keeps files from being removed while it lives.
    pub fn hold_files(&self) -> MutexGuard<'_, ()> {
        self.shared.removal.lock()
    }

    /// Whether an fsync failed.
    pub fn is_poisoned(&self) -> bool {
        self.shared.state.lock().poisoned
    }

    /// Newest `meta.json`.
    pub fn read_meta(&self) -> Result<Vec<u8>, OpenReadError> {
        self.atomic_read(Path::new(META))
    }

    /// Puts a new `meta.json` in place, in memory like any commit.
    pub fn write_meta(&self, bytes: &[u8]) -> io::Result<()> {
        self.atomic_write(Path::new(META), bytes)
    }

    /// Replaces `target` by `replacement`, a file of this directory. The content is synced first, as
    /// `target` may belong to the durable commit.
    pub fn replace(&self, replacement: &Path, target: &Path) -> io::Result<()> {
        let root = &self.shared.root;
        File::open(root.join(replacement))?.sync_data()?;
        fs::rename(root.join(replacement), root.join(target))?;
        self.shared.state.lock().unsynced.remove(replacement);
        Ok(())
    }

    /// Makes the newest commit durable, then removes the files whose deletion waited for it.
    ///
    /// # Errors
    /// Any I/O error poisons the directory: it can be read, but no later flush succeeds.
    pub fn make_durable(&self) -> io::Result<()> {
        let _flush = self.shared.flush.lock();
        let (unsynced, deleted, meta_files) = {
            let mut state = self.shared.state.lock();
            if state.poisoned {
                return Err(io::Error::other("poisoned by an earlier fsync failure"));
            }
            state.recreated.clear();
            (
                std::mem::take(&mut state.unsynced),
                std::mem::take(&mut state.deleted),
                state.meta_files.clone(),
            )
        };
        if let Err(error) = self.sync(&unsynced, &deleted, &meta_files) {
            self.shared.state.lock().poisoned = true;
            return Err(error);
        }
        let _removal = self.shared.removal.lock();
        let state = self.shared.state.lock();
        for path in deleted.difference(&state.recreated) {
            match fs::remove_file(self.shared.root.join(path)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "could not remove an old segment file");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Links the files of the durable commit into `target`, an empty directory, which is an index of its own then;
    /// copies where the file system cannot link. Says which files there are, with their bytes.
    ///
    /// No file goes meanwhile: they are only removed by a flush, and that waits. Durable when it returns.
    pub fn link_commit(&self, target: &Path) -> io::Result<Vec<CommitFile>> {
        let _flush = self.shared.flush.lock();
        let root = &self.shared.root;
        let meta = fs::read(root.join(META))?;
        let live = live_segments(&meta)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "meta.json lists no segments"))?;
        let mut files = Vec::new();
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_of_commit(&live, name) == Some(true)) else {
                continue;
            };
            let copy = target.join(name);
            // Files of segments never change, so a link is as good as a copy.
            if fs::hard_link(entry.path(), &copy).is_err() {
                fs::copy(entry.path(), &copy)?;
                File::open(&copy)?.sync_data()?;
            }
            files.push(CommitFile { name: name.to_owned(), bytes: fs::metadata(&copy)?.len() });
        }
        // A segment of the commit without any file is found when the copy is opened.
        let mut managed: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        managed.push(META);
        let managed = serde_json::to_vec(&managed)?;
        for (name, bytes) in [(MANAGED, &managed), (META, &meta)] {
            let mut file = File::create(target.join(name))?;
            file.write_all(bytes)?;
            file.sync_all()?;
            files.push(CommitFile { name: name.to_owned(), bytes: bytes.len() as u64 });
        }
        // As tantivy's directory does it: where directories cannot be opened, there is nothing to sync.
        if cfg!(not(windows)) {
            File::open(target)?.sync_all()?;
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn sync(
        &self,
        unsynced: &HashSet<PathBuf>,
        deleted: &HashSet<PathBuf>,
        meta_files: &HashMap<PathBuf, Vec<u8>>,
    ) -> io::Result<()> {
        for path in unsynced.difference(deleted) {
            File::open(self.shared.root.join(path))?.sync_data()?;
        }
        fs::sync_dir(&self.shared.root)?;
        // The list of managed files first: it may name too much, never too little.
        for name in [MANAGED, META] {
            if let Some(bytes) = meta_files.get(Path::new(name)) {
                fs::durable::atomic_write(&self.shared.root.join(name), bytes)?;
            }
        }
        Ok(())
    }

    fn refuse_if_retired(&self) -> io::Result<()> {
        if self.retired.load(Ordering::SeqCst) {
            return Err(io::Error::other("the index was reopened"));
        }
        Ok(())
    }
}

/// Removes files named like segment files that the `meta.json` on disk does not name.
fn sweep(root: &Path) -> io::Result<()> {
    let meta = match fs::read(root.join(META)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // A damaged meta file is reported when tantivy opens it; nothing may be removed then.
    let Some(live) = live_segments(&meta) else { return Ok(()) };
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        // An atomic write that did not come to its rename.
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(".tmp") || name.ends_with(".tmp") || is_of_commit(&live, name) == Some(false) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The segments that a `meta.json` names, each with the number of its file of deletions; `None` for a damaged one.
fn live_segments(meta: &[u8]) -> Option<HashMap<String, Option<u64>>> {
    let meta = serde_json::from_slice::<serde_json::Value>(meta).ok()?;
    let segments = meta["segments"].as_array()?.iter().map(|segment| {
        let id = segment["segment_id"].as_str()?;
        Some((id.replace('-', ""), segment["deletes"]["opstamp"].as_u64()))
    });
    segments.collect()
}

/// Whether a file belongs to a commit with these segments; `None` where its name is not that of a segment's file.
fn is_of_commit(live: &HashMap<String, Option<u64>>, name: &str) -> Option<bool> {
    let (id, rest) = name.split_once('.')?;
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let Some(opstamp) = live.get(id) else { return Some(false) };
    Some(match rest.strip_suffix(".del") {
        Some(number) => opstamp.is_some_and(|opstamp| number == opstamp.to_string()),
        None => !rest.ends_with(".new") && rest != "store.temp",
    })
}

/// A file being written; closing it registers it for the next flush.
struct LazyFile {
    file: File,
    directory: LazyDirectory,
    path: PathBuf,
}

impl Write for LazyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for LazyFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let mut state = self.directory.shared.state.lock();
        self.directory.refuse_if_retired()?;
        state.unsynced.insert(std::mem::take(&mut self.path));
        Ok(())
    }
}

impl Directory for LazyDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        fs::about_to_map(&self.shared.root.join(path))
            .map_err(|error| OpenReadError::wrap_io_error(error, path.to_path_buf()))?;
        self.inner.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let mut state = self.shared.state.lock();
        self.refuse_if_retired().map_err(|error| DeleteError::IoError {
            io_error: Arc::new(error),
            filepath: path.to_path_buf(),
        })?;
        // A file of no durable commit goes at once, unless a flush may have it in its picture or a searcher is being opened.
        // So what small writes and their merges leave does not pile up until the next flush.
        let is_new = state.unsynced.contains(path);
        if is_new
            && let (Some(_no_flush), Some(_removal)) =
                (self.shared.flush.try_lock(), self.shared.removal.try_lock())
            && fs::remove_file(self.shared.root.join(path)).is_ok()
        {
            state.unsynced.remove(path);
            return Ok(());
        }
        state.deleted.insert(path.to_path_buf());
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        {
            let state = self.shared.state.lock();
            if state.meta_files.contains_key(path) {
                return Ok(true);
            }
            if state.deleted.contains(path) {
                return Ok(false);
            }
        }
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let wrap = |error| OpenWriteError::wrap_io_error(error, path.to_path_buf());
        let full = self.shared.root.join(path);
        let mut state = self.shared.state.lock();
        self.refuse_if_retired().map_err(wrap)?;
        // After a rollback tantivy gives the same operation stamps again, so a deletes file of the lost
        // commit may be in the way. The durable commit never has that name: its stamp is smaller.
        match fs::remove_file(&full) {
            Ok(()) => {
                state.unsynced.remove(path);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(wrap(error)),
        }
        // A deletion that still waits meant the file that had this name before, even if that one is gone
        // by now: the field norms of a segment that is widened twice go through the same temporary name.
        state.deleted.remove(path);
        state.recreated.insert(path.to_path_buf());
        let file = File::create_new(&full).map_err(wrap)?;
        let file = LazyFile { file, directory: self.clone(), path: path.to_path_buf() };
        Ok(BufWriter::new(Box::new(file)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if let Some(bytes) = self.shared.state.lock().meta_files.get(path) {
            return Ok(bytes.clone());
        }
        fs::about_to_map(&self.shared.root.join(path))
            .map_err(|error| OpenReadError::wrap_io_error(error, path.to_path_buf()))?;
        self.inner.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        self.refuse_if_retired()?;
        if path == Path::new(META) {
            state.generation += 1;
        }
        state.meta_files.insert(path.to_path_buf(), bytes.to_vec());
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file that gets the name of one whose deletion waits for a flush is not the file that was deleted.
    #[test]
    fn a_waiting_deletion_does_not_remove_a_newer_file_of_that_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = LazyDirectory::open(folder.path()).expect("a directory");
        let name = Path::new("a.fieldnorm.new");
        let write = |text: &[u8]| {
            let mut out = directory.open_write(name).expect("a file");
            out.write_all(text).expect("written");
            out.terminate().expect("closed");
        };
        write(b"first");
        directory.replace(name, Path::new("a.fieldnorm")).expect("replaced");
        // The garbage collection notices that the temporary name is not in use.
        directory.delete(name).expect("noted");
        write(b"second");
        directory.make_durable().expect("durable");
        directory.replace(name, Path::new("a.fieldnorm")).expect("the newer file is still there");
        assert_eq!(fs::read(folder.path().join("a.fieldnorm")).expect("the target"), b"second");
    }
}
