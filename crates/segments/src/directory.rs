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
//!
//! Each file's length and checksum are computed while it is written, and the durable commit lists them ([`crate::manifest`]). When
//! the directory is opened every file that the commit names is read and compared, before tantivy maps any of them.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use sparrow_file_system::{self as fs, File};
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use crate::error::IndexError;
use crate::manifest::{Checksum, Commit, META, Manifest, Meta, segment_of};
use crate::plugins::{MergeFailures, on_merge_thread};
use crate::verify::CheckedCommit;

/// Name of tantivy's list of files that it may delete.
pub const MANAGED: &str = ".managed.json";

#[derive(Default)]
struct State {
    /// Newest content of `meta.json` (without our list of files) and `.managed.json`.
    meta_files: HashMap<PathBuf, Vec<u8>>,
    /// Meta files whose newest content is not durable yet.
    changed: HashSet<PathBuf>,
    /// Length and checksum of every existing file that this process has written or checked.
    sums: HashMap<PathBuf, Checksum>,
    /// The `meta.json` that is on disk, if it has a list of files: that list, and the other members.
    durable: Option<(Manifest, Vec<u8>)>,
    /// Number of writes of `meta.json`, by commits and finished merges.
    generation: u64,
    unsynced: HashSet<PathBuf>,
    deleted: HashSet<PathBuf>,
    /// Files created anew under a name whose deletion a running flush may still hold.
    recreated: HashSet<PathBuf>,
    /// The first fsync error; nothing is made durable after it, because the kernel may have dropped dirty
    /// pages and report success next time.
    poisoned: Option<String>,
}

/// Name and size of a file that belongs to a commit.
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
    /// Number of segment files that are being written.
    writing: AtomicUsize,
    /// When the last segment file was closed, or else the directory opened.
    last_written: Mutex<Instant>,
    /// Held while files are physically removed, and while a new searcher opens its files.
    removal: Mutex<()>,
    merge_failures: Arc<MergeFailures>,
    /// The last file that could not be written in a merge, and the error; `refused` is the same for other
    /// threads. Kept because tantivy only reports that the thread has ended.
    refused_merge: Mutex<Option<(PathBuf, io::Error)>>,
    refused: Mutex<Option<(PathBuf, io::Error)>>,
}

/// tantivy directory whose only durable point is [`LazyDirectory::make_durable`]; see the module
/// documentation. Clones share everything; [`LazyDirectory::successor`] makes an instance over the same state
/// for a reopened index.
#[derive(Clone)]
pub struct LazyDirectory {
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
    /// Opens the directory, which must exist. If there is a commit in it, all its files are read and compared with what the commit
    /// says of them, and then what a crash left behind is removed: files of segments that the commit does not name.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] names the first file that differs from what was written; nothing is removed
    /// then.
    pub fn open(root: &Path) -> Result<Self, IndexError> {
        let mut state = State::default();
        if let Some(found) = CheckedCommit::read(root)? {
            let (sums, damages) = found.check(root)?;
            if let Some(damage) = damages.into_iter().next() {
                return Err(damage.into_error(root));
            }
            sweep(root, &found.meta.commit).map_err(IndexError::io(root))?;
            state.begin(found.meta, sums);
        }
        Ok(Self {
            shared: Arc::new(Shared {
                root: root.to_path_buf(),
                state: Mutex::new(state),
                flush: Mutex::default(),
                writing: AtomicUsize::default(),
                last_written: Mutex::new(Instant::now()),
                removal: Mutex::default(),
                merge_failures: Arc::default(),
                refused_merge: Mutex::default(),
                refused: Mutex::default(),
            }),
            inner: MmapDirectory::open(root).map_err(tantivy::TantivyError::from)?,
            retired: Arc::default(),
        })
    }

    /// Length and checksum of a file, if it was written or checked by this process.
    pub fn sum(&self, path: &Path) -> Option<Checksum> {
        self.shared.state.lock().sums.get(path).copied()
    }

    /// Stops this instance from writing and returns a new one over the same state.
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

    /// Whether no segment file has been written for at least `time`. A merge writes nearly all the time that
    /// it runs, and consecutive merges leave no gap.
    pub fn is_quiet(&self, time: Duration) -> bool {
        self.shared.writing.load(Ordering::Relaxed) == 0 && self.shared.last_written.lock().elapsed() >= time
    }

    /// Total size, in bytes, of files that the next flush will remove.
    pub fn garbage_bytes(&self) -> u64 {
        let state = self.shared.state.lock();
        state.deleted.iter().filter_map(|path| state.sums.get(path)).map(|sum| sum.bytes).sum()
    }

    /// Number of commits and finished merges since the process started.
    pub fn generation(&self) -> u64 {
        self.shared.state.lock().generation
    }

    /// Prevents files from being removed while the returned guard is held.
    pub fn hold_files(&self) -> MutexGuard<'_, ()> {
        self.shared.removal.lock()
    }

    /// Whether an fsync failed.
    pub fn is_poisoned(&self) -> bool {
        self.shared.state.lock().poisoned.is_some()
    }

    /// The error that says why this directory is no longer written: a failed fsync, or a retired instance.
    pub fn poisoned(&self) -> IndexError {
        let reason = self.shared.state.lock().poisoned.clone();
        IndexError::Poisoned { reason: reason.unwrap_or_else(|| "others are taking their place".to_owned()) }
    }

    /// Newest content of `meta.json`, durable or not.
    pub fn read_meta(&self) -> Result<Vec<u8>, OpenReadError> {
        self.atomic_read(Path::new(META))
    }

    /// Replaces `meta.json` in memory, as a commit does; durable with the next flush.
    pub fn write_meta(&self, bytes: &[u8]) -> io::Result<()> {
        self.atomic_write(Path::new(META), bytes)
    }

    /// Replaces files: in each pair, the second by the first, both in this directory. Contents are synced
    /// first, as the replaced files may belong to the durable commit, which then lists both contents: after a
    /// crash either may be found.
    ///
    /// # Errors
    /// Any I/O error, which poisons the directory like a failed flush: afterwards it is unknown which content
    /// a file has and which commit is on disk.
    pub fn replace(&self, pairs: &[(PathBuf, PathBuf)]) -> io::Result<()> {
        // A flush that runs would write a list without the new contents behind the renaming.
        let _flush = self.shared.flush.lock();
        if self.is_poisoned() {
            return Err(io::Error::other("poisoned by an earlier fsync failure"));
        }
        self.replace_files(pairs).inspect_err(|error| self.shared.state.lock().poison(error))
    }

    fn replace_files(&self, pairs: &[(PathBuf, PathBuf)]) -> io::Result<()> {
        let root = &self.shared.root;
        for (replacement, _) in pairs {
            fs::sync_data(root.join(replacement))?;
        }
        let widened = {
            let mut state = self.shared.state.lock();
            let State { durable, sums, .. } = &mut *state;
            durable.as_mut().and_then(|(manifest, meta)| {
                let mut widened = false;
                for (replacement, target) in pairs {
                    let known = target.to_str().and_then(|name| manifest.files.get_mut(name));
                    if let (Some(known), Some(sum)) = (known, sums.get(replacement)) {
                        known.push(*sum);
                        widened = true;
                    }
                }
                widened.then(|| manifest.encode(meta))
            })
        };
        if let Some(bytes) = widened {
            fs::durable::atomic_write(&root.join(META), &bytes?)?;
        }
        for (replacement, target) in pairs {
            fs::rename(root.join(replacement), root.join(target))?;
            let mut state = self.shared.state.lock();
            state.unsynced.remove(replacement);
            if let Some(sum) = state.sums.remove(replacement) {
                state.sums.insert(target.clone(), sum);
            }
        }
        Ok(())
    }

    /// Makes the newest commit durable, then removes the files whose deletion waited for it.
    ///
    /// # Errors
    /// Any I/O error poisons the directory: it can be read, but no later flush succeeds.
    pub fn make_durable(&self) -> io::Result<()> {
        let _flush = self.shared.flush.lock();
        let taken = {
            let mut state = self.shared.state.lock();
            if state.poisoned.is_some() {
                return Err(io::Error::other("poisoned by an earlier fsync failure"));
            }
            state.recreated.clear();
            state.take()
        };
        let written = match self.sync(&taken) {
            Ok(written) => written,
            Err(error) => {
                self.shared.state.lock().poison(&error);
                return Err(error);
            }
        };
        self.forget_unmapped();
        let _removal = self.shared.removal.lock();
        {
            let mut state = self.shared.state.lock();
            state.durable = written.or(state.durable.take());
        }
        for path in &taken.deleted {
            // Taken for each file anew: a thread that reads or writes another file waits for one of them at most.
            let mut state = self.shared.state.lock();
            if state.recreated.contains(path) {
                continue;
            }
            state.sums.remove(path);
            match fs::remove_file(self.shared.root.join(path)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "could not remove an old segment file");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes tantivy forget the paths of files that are no longer mapped, which it only does when asked for
    /// its cache statistics.
    fn forget_unmapped(&self) {
        let _ = self.inner.get_cache_info();
    }

    /// Links the files of the durable commit into `target`, an empty directory, which then is an index of its
    /// own; copies them where the file system cannot link. Returns the files, sorted by name.
    ///
    /// No file disappears meanwhile: only a flush removes files, and it waits. Everything is durable on
    /// return.
    pub fn link_commit(&self, target: &Path) -> io::Result<Vec<CommitFile>> {
        let _flush = self.shared.flush.lock();
        let root = &self.shared.root;
        let meta = fs::read(root.join(META))?;
        let Meta { commit, manifest, .. } = Meta::decode(&meta)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "meta.json is damaged"))?;
        let mut files = Vec::new();
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| segment_of(name).is_some() && commit.names(name))
            else {
                continue;
            };
            let copy = target.join(name);
            // Files of segments never change, so a link is as good as a copy.
            fs::link_or_copy(entry.path(), &copy)?;
            files.push(CommitFile { name: name.to_owned(), bytes: fs::metadata(&copy)?.len() });
        }
        let mut managed: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        // If the folder was opened again meanwhile, some of the files may be gone: they belonged to a commit that is no longer the newest.
        if let Some(gone) =
            manifest.iter().flat_map(|list| list.files.keys()).find(|name| !managed.contains(&name.as_str()))
        {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{gone} is gone")));
        }
        managed.push(META);
        let managed = serde_json::to_vec(&managed)?;
        for (name, bytes) in [(MANAGED, &managed), (META, &meta)] {
            let mut file = File::create(target.join(name))?;
            file.write_all(bytes)?;
            file.sync_all()?;
            files.push(CommitFile { name: name.to_owned(), bytes: bytes.len() as u64 });
        }
        fs::sync_dir(target)?;
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Makes what a flush took durable; returns the new `meta.json` with its list of files, if it was
    /// written.
    fn sync(&self, taken: &FlushedState) -> io::Result<Option<(Manifest, Vec<u8>)>> {
        for path in taken.unsynced.difference(&taken.deleted) {
            fs::sync_data(self.shared.root.join(path))?;
        }
        fs::sync_dir(&self.shared.root)?;
        // The list of managed files first: it may name too much, never too little.
        if let Some(bytes) = &taken.managed {
            fs::durable::atomic_write(&self.shared.root.join(MANAGED), bytes)?;
        }
        let Some(meta) = &taken.meta else { return Ok(None) };
        let members = serde_json::from_slice(meta)?;
        let commit = Commit::of(&members).ok_or_else(|| io::Error::other("a commit without segments"))?;
        let manifest = Manifest::of(&commit, &taken.sums);
        fs::durable::atomic_write(&self.shared.root.join(META), &manifest.encode(meta)?)?;
        Ok(Some((manifest, meta.clone())))
    }

    /// Record of failed merges. This directory adds the I/O errors to it.
    pub fn merge_failures(&self) -> &Arc<MergeFailures> {
        &self.shared.merge_failures
    }

    /// The last file that could not be written outside merges, and the error, if there was one since the
    /// previous call.
    pub fn take_refusal(&self) -> Option<(PathBuf, io::Error)> {
        self.shared.refused.lock().take()
    }

    /// Same as [`LazyDirectory::take_refusal`], for files written by merges.
    pub fn take_refusal_of_merge(&self) -> Option<(PathBuf, io::Error)> {
        self.shared.refused_merge.lock().take()
    }

    /// Records an error that prevented a file from being written.
    fn note_refusal(&self, path: &Path, error: &io::Error) {
        let kept = match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        let refused = if on_merge_thread() { &self.shared.refused_merge } else { &self.shared.refused };
        *refused.lock() = Some((self.shared.root.join(path), kept));
        self.note_failure(path, error);
    }

    /// Records an error that prevented a merge from reading or writing a file. Ignored in a retired instance,
    /// whose merges are expected to fail.
    fn note_failure(&self, path: &Path, error: &io::Error) {
        if on_merge_thread() && !self.retired.load(Ordering::SeqCst) {
            let name = path.to_string_lossy();
            self.shared.merge_failures.note(name.split('.').next().unwrap_or_default(), error);
        }
    }

    fn refuse_if_retired(&self) -> io::Result<()> {
        if self.retired.load(Ordering::SeqCst) {
            return Err(io::Error::other("the index was reopened"));
        }
        Ok(())
    }
}

/// State that a flush makes durable, taken under one lock.
struct FlushedState {
    unsynced: HashSet<PathBuf>,
    deleted: HashSet<PathBuf>,
    /// New contents of `.managed.json` and `meta.json`, where they changed since the last flush.
    managed: Option<Vec<u8>>,
    meta: Option<Vec<u8>>,
    /// Checksums of the files, if the commit point changed.
    sums: HashMap<PathBuf, Checksum>,
}

impl State {
    /// Prevents all further flushes; the first reason is kept.
    fn poison(&mut self, error: &io::Error) {
        self.poisoned.get_or_insert_with(|| error.to_string());
    }

    /// Initialises the state from a commit that was read and checked.
    fn begin(&mut self, meta: Meta, sums: HashMap<PathBuf, Checksum>) {
        // What may be removed one day is known from what is there: a damaged list of it does no harm.
        let managed: Vec<_> = sums.keys().filter_map(|path| path.to_str()).chain([META]).collect();
        self.meta_files.insert(MANAGED.into(), serde_json::json!(managed).to_string().into_bytes());
        match meta.manifest {
            Some(manifest) => self.durable = Some((manifest, meta.bytes.clone())),
            // From an older version: the next flush writes the list of files.
            None => drop(self.changed.insert(META.into())),
        }
        self.meta_files.insert(META.into(), meta.bytes);
        self.sums = sums;
    }

    fn take(&mut self) -> FlushedState {
        let changed = std::mem::take(&mut self.changed);
        let content = |name: &str| {
            let name = Path::new(name);
            changed.contains(name).then(|| self.meta_files.get(name).cloned()).flatten()
        };
        let (managed, meta) = (content(MANAGED), content(META));
        FlushedState {
            sums: meta.as_ref().map(|_| self.sums.clone()).unwrap_or_default(),
            managed,
            meta,
            unsynced: std::mem::take(&mut self.unsynced),
            deleted: std::mem::take(&mut self.deleted),
        }
    }
}

/// Removes segment files that the durable commit does not name, and temporary files of interrupted atomic
/// writes.
fn sweep(root: &Path, commit: &Commit) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let half_written = name.starts_with(".tmp") || name.ends_with(".tmp");
        if half_written || segment_of(name).is_some() && !commit.names(name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A file being written; closing it registers it as unsynced.
struct LazyFile {
    file: File,
    directory: LazyDirectory,
    path: PathBuf,
    bytes: u64,
    checksum: crc32fast::Hasher,
}

impl Write for LazyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        let count = written.inspect_err(|error| self.directory.note_refusal(&self.path, error))?;
        self.checksum.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LazyFile {
    fn drop(&mut self) {
        let shared = &self.directory.shared;
        *shared.last_written.lock() = Instant::now();
        shared.writing.fetch_sub(1, Ordering::Relaxed);
    }
}

impl TerminatingWrite for LazyFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let mut state = self.directory.shared.state.lock();
        self.directory.refuse_if_retired()?;
        let path = std::mem::take(&mut self.path);
        let sum = Checksum { bytes: self.bytes, crc32: std::mem::take(&mut self.checksum).finalize() };
        state.sums.insert(path.clone(), sum);
        state.unsynced.insert(path);
        Ok(())
    }
}

impl Directory for LazyDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        fs::about_to_map(&self.shared.root.join(path))
            .inspect_err(|error| self.note_failure(path, error))
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
            state.sums.remove(path);
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
        state.sums.remove(path);
        state.recreated.insert(path.to_path_buf());
        let created = File::create_new(&full).inspect_err(|error| self.note_refusal(path, error));
        let file = created.map_err(wrap)?;
        self.shared.writing.fetch_add(1, Ordering::Relaxed);
        let file = LazyFile {
            file,
            directory: self.clone(),
            path: path.to_path_buf(),
            bytes: 0,
            checksum: crc32fast::Hasher::new(),
        };
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
        state.changed.insert(path.to_path_buf());
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

    /// A new file under a name whose deletion waits for a flush must survive that flush.
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
        let pairs = [(name.to_path_buf(), PathBuf::from("a.fieldnorm"))];
        directory.replace(&pairs).expect("replaced");
        // The garbage collection notices that the temporary name is not in use.
        directory.delete(name).expect("noted");
        write(b"second");
        directory.make_durable().expect("durable");
        directory.replace(&pairs).expect("the newer file is still there");
        assert_eq!(fs::read(folder.path().join("a.fieldnorm")).expect("the target"), b"second");
    }
}
