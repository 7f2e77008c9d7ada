//! The write-ahead log: makes an acknowledged write durable before its segment exists.
//!
//! Appending is cheap and ordered; [`Wal::sync`] makes everything appended so far durable, and callers that
//! wait at the same time share one fsync (group commit). After a failed write or fsync nothing can be known
//! about the file's end, so the log refuses further writes (as PostgreSQL does since the fsync findings of 2018)
//! until [`Wal::reopen`] has cut the file behind what was known to be durable and begun another one.

mod failed;
mod files;
mod mark;
mod record;
mod replay;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex, MutexGuard};
use sparrow_file_system::{self as fs, File};
use sparrow_runtime::processors::pause;

use self::failed::Failed;
pub use self::files::Generation;
use self::files::{OpenedFile, create_file, log_files, next_file};
use self::mark::{Mark, SyncMarkFile};
use self::record::{FILE_HEADER, MAX_PAYLOAD, RECORD_HEADER};
pub use self::replay::{Replay, Salvaged, salvage};
use crate::durable;
use crate::error::StorageError;

/// Position of a record: how many records were appended before it since the log was opened, plus one.
pub type Lsn = u64;

/// Buffered bytes above which an append writes them to the file, without waiting for the disk.
const WRITE_THRESHOLD: usize = 1 << 20;

/// Buffered bytes above which a writer waits for the thread that is writing the file. Where writes are
/// acknowledged before they are durable nobody else waits for the disk, and a stalled one would let the
/// buffer take all memory.
const MOST_BUFFERED: usize = 64 << 20;

/// An open write-ahead log. Shared between threads by reference.
#[derive(Debug)]
pub struct Wal {
    directory: PathBuf,
    state: Mutex<State>,
    synced: Condvar,
    marks: Mutex<SyncMarkFile>,
}

#[derive(Debug)]
struct State {
    file: std::sync::Arc<File>,
    path: PathBuf,
    generation: Generation,
    /// Framed records that are not written to the file yet.
    buffer: Vec<u8>,
    /// Bytes written to the current file, synced or not.
    written: u64,
    /// Bytes of the current file that are synced.
    durable_bytes: u64,
    appended: Lsn,
    durable: Lsn,
    /// Total size, in bytes, of older files that are still kept.
    older_bytes: u64,
    /// Whether a thread is working on the file without holding the lock: syncing it, starting the next one,
    /// or reopening the log.
    busy: bool,
    /// Whether that thread is starting the next file.
    rolling: bool,
    poisoned: Option<String>,
    /// Number of records in `buffer`, once an attempt to reopen the log has moved the file's unsynced records
    /// into it; `None` before.
    collected: Option<u64>,
    /// Positions of records that failures lost for good, oldest first: above the first number of each pair,
    /// up to the second.
    lost: Vec<(Lsn, Lsn)>,
}

impl Wal {
    /// Opens the log in `directory`, checks it, truncates a torn tail, and starts a new file for appends. If
    /// the disk has no room for that, the log is still read, but refuses writes until [`Wal::reopen`].
    ///
    /// # Errors
    /// [`StorageError::WalCorrupt`] when acknowledged records are damaged, [`StorageError::Io`].
    pub fn open(directory: &Path) -> Result<(Self, Replay), StorageError> {
        durable::create_dir_all(directory)?;
        let files = log_files(directory)?;
        let mark = Mark::read(directory);
        replay::check_marked(directory, &files, mark)?;
        let last = replay::last_begun(&files);
        for (generation, path) in &files {
            let durable = mark.filter(|mark| mark.generation == *generation).map_or(0, |mark| mark.bytes);
            replay::check_and_repair(path, *generation >= last, durable)?;
        }
        let generation = files.last().map_or(1, |(generation, _)| generation + 1);
        // Files without even a header were removed by the check.
        let kept: Vec<PathBuf> =
            files.into_iter().map(|(_, path)| path).filter(|path| path.exists()).collect();
        let length = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
        // What a killed process wrote without a sync is read now, so it has to stay: an older file has no torn tail.
        let synced = kept.last().map_or(Ok(()), |last| replay::sync(last));
        let next = synced.and_then(|()| create_file(directory, generation));
        let begun = match (next, kept.last()) {
            (Ok((file, path)), _) => {
                OpenedFile { file, path, generation, bytes: FILE_HEADER as u64, poisoned: None }
            }
            (Err(error), Some(last)) => OpenedFile {
                file: File::append(last).map_err(StorageError::io("open", last))?,
                path: last.clone(),
                generation: generation - 1,
                bytes: length(last),
                poisoned: Some(error.to_string()),
            },
            (Err(error), None) => return Err(error),
        };
        let older_bytes = kept.iter().filter(|path| **path != begun.path).map(length).sum();
        let wal = Self {
            directory: directory.to_path_buf(),
            state: Mutex::new(State {
                file: std::sync::Arc::new(begun.file),
                path: begun.path,
                generation: begun.generation,
                buffer: Vec::new(),
                written: begun.bytes,
                durable_bytes: begun.bytes,
                appended: 0,
                durable: 0,
                older_bytes,
                busy: false,
                rolling: false,
                poisoned: begun.poisoned,
                collected: None,
                lost: Vec::new(),
            }),
            synced: Condvar::new(),
            marks: Mutex::new(SyncMarkFile::open(directory, mark)),
        };
        Ok((wal, Replay::new(kept)))
    }

    /// Waits while another thread is writing the file and at least 64 MiB are buffered.
    pub fn wait_for_room(&self) {
        let mut state = self.state.lock();
        while state.busy && state.buffer.len() >= MOST_BUFFERED {
            pause(|| self.synced.wait(&mut state));
        }
    }

    /// Appends one record. It is not durable before [`Wal::sync`] of the returned position.
    ///
    /// # Errors
    /// [`StorageError::RecordTooLarge`] (nothing was appended), [`StorageError::Poisoned`], or
    /// [`StorageError::Io`], which poisons the log.
    pub fn append(&self, payload: &[u8]) -> Result<Lsn, StorageError> {
        self.append_parts(&[payload])
    }

    /// As [`Wal::append`], for a record whose payload is the parts one after another.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn append_parts(&self, parts: &[&[u8]]) -> Result<Lsn, StorageError> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        if bytes > MAX_PAYLOAD {
            return Err(StorageError::RecordTooLarge { bytes, limit: MAX_PAYLOAD });
        }
        let mut state = self.state.lock();
        state.check_open()?;
        // What is appended while the next file is begun goes into that one.
        let durable_bytes = if state.rolling { FILE_HEADER as u64 } else { state.durable_bytes };
        record::frame(&mut state.buffer, durable_bytes, parts);
        state.appended += 1;
        let position = state.appended;
        // While somebody else works on the file, the buffer waits, so that the file has one writer.
        if state.buffer.len() >= WRITE_THRESHOLD && !state.busy {
            // A failure closes the log, and callers that wait for the record are told of it. If nobody waits, it is kept in the buffer.
            let _ = self.write(&mut state, false);
        }
        Ok(position)
    }

    /// Waits until the record at `lsn` and all before it are durable.
    ///
    /// # Errors
    /// [`StorageError::Poisoned`] or [`StorageError::Io`]: the record may or may not be there after a
    /// restart, and must not be acknowledged.
    pub fn sync(&self, lsn: Lsn) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        loop {
            if state.lost.iter().any(|(before, last)| *before < lsn && lsn <= *last) {
                let reason = "the record was lost in a failure before the log was reopened".to_owned();
                return Err(StorageError::Poisoned { reason });
            }
            if state.durable >= lsn {
                return Ok(());
            }
            state.check_open()?;
            if state.busy {
                pause(|| self.synced.wait(&mut state));
                continue;
            }
            self.write(&mut state, true)?;
        }
    }

    /// Writes the buffer to the file, and syncs it if `sync`. Appends continue meanwhile.
    ///
    /// # Errors
    /// [`StorageError::Io`], which closes the log; the buffer then has its records back, before those
    /// appended meanwhile.
    fn write(&self, state: &mut MutexGuard<'_, State>, sync: bool) -> Result<(), StorageError> {
        let (file, path) = (state.file.clone(), state.path.clone());
        let mut buffer = std::mem::take(&mut state.buffer);
        let (target, bytes) = (state.appended, state.written + buffer.len() as u64);
        let mark = Mark { generation: state.generation, bytes };
        let result = self.unlocked(state, false, || {
            if !buffer.is_empty() {
                (&*file).write_all(&buffer).map_err(StorageError::io("write", &path))?;
            }
            if sync {
                pause(|| file.sync_data()).map_err(StorageError::io("sync", &path))?;
                self.marks.lock().note(mark);
            }
            Ok(())
        });
        if matches!(result, Ok(Ok(()))) {
            state.written = bytes;
            if sync {
                (state.durable, state.durable_bytes) = (target, bytes);
            }
            if state.buffer.capacity() == 0 {
                // One huge batch must not hold its memory for ever.
                buffer.clear();
                buffer.shrink_to(4 * WRITE_THRESHOLD);
                state.buffer = buffer;
            }
        } else {
            // Reopening cuts the file behind what was durable before.
            buffer.append(&mut state.buffer);
            state.buffer = buffer;
        }
        let result: Result<(), StorageError> = result.unwrap_or_else(|panic| resume_unwind(panic));
        if let Err(error) = &result {
            state.poisoned = Some(error.to_string());
        }
        result
    }

    /// Position up to which all records are durable, except those that failures lost.
    pub fn durable(&self) -> Lsn {
        self.state.lock().durable
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// As [`Wal::sync`].
    pub fn sync_all(&self) -> Result<(), StorageError> {
        let (appended, durable) = {
            let state = self.state.lock();
            (state.appended, state.durable)
        };
        // What a failure took is no longer waited for.
        if durable >= appended { Ok(()) } else { self.sync(appended) }
    }

    /// Closes the current file and starts the next one; returns the number of the new file. Later records are
    /// in that generation or a later one, so [`Wal::trim_before`] of it drops all earlier records.
    ///
    /// # Errors
    /// As [`Wal::sync`].
    pub fn roll(&self) -> Result<Generation, StorageError> {
        loop {
            // Only a fully synced file may become an older one: older files have no torn tail.
            self.sync_all()?;
            let mut state = self.state.lock();
            state.check_open()?;
            if state.busy {
                pause(|| self.synced.wait(&mut state));
                continue;
            }
            if state.durable < state.appended {
                continue;
            }
            let generation = state.generation;
            // Appends go on while the disk works.
            let begun = self.unlocked(&mut state, true, || next_file(&self.directory, generation));
            state.go_on_in(begun.unwrap_or_else(|panic| resume_unwind(panic))?);
            return Ok(state.generation);
        }
    }

    /// Reopens a log that an earlier failure closed for writes: truncates the file to what was known to be
    /// durable and starts another one. The records cut off were never acknowledged, unless writes are
    /// acknowledged before they are durable: with `keep_unsynced`, those that can still be read are written
    /// again. Does nothing to an open log.
    ///
    /// # Errors
    /// [`StorageError::Io`] when the disk still fails; the log then stays closed.
    pub fn reopen(&self, keep_unsynced: bool) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        while state.busy {
            pause(|| self.synced.wait(&mut state));
        }
        if state.poisoned.is_none() {
            return Ok(());
        }
        if !keep_unsynced {
            // Whether or not this attempt succeeds: a later one that keeps what is unsynced must not call it durable.
            state.give_up_unsynced();
        }
        let mut failed = Failed {
            path: state.path.clone(),
            generation: state.generation,
            durable_bytes: state.durable_bytes,
            written: state.written,
            buffer: std::mem::take(&mut state.buffer),
            collected: state.collected,
            begun: None,
        };
        // Nothing is appended to a log that is closed for writes, but others ask about it.
        let attempt = self.unlocked(&mut state, false, || failed.reopen(&self.directory, keep_unsynced));
        // Also for the next attempt, if this one failed.
        (state.buffer, state.collected, state.written) = (failed.buffer, failed.collected, failed.written);
        if let Some(begun) = failed.begun {
            state.go_on_in(begun);
        }
        attempt.unwrap_or_else(|panic| resume_unwind(panic))?;
        // What could not be read any more is lost, like what was not to be kept.
        state.durable = state.appended.min(state.durable + state.collected.take().unwrap_or_default());
        state.give_up_unsynced();
        (state.buffer, state.collected) = (Vec::new(), None);
        state.poisoned = None;
        Ok(())
    }

    /// Runs an operation on the file without holding the lock, while the log counts as busy. A panic closes
    /// the log for writes, because it is unknown how much was done; it is returned, for the caller to resume.
    fn unlocked<T>(
        &self,
        state: &mut MutexGuard<'_, State>,
        rolling: bool,
        work: impl FnOnce() -> T,
    ) -> std::thread::Result<T> {
        (state.busy, state.rolling) = (true, rolling);
        let result = MutexGuard::unlocked(state, || catch_unwind(AssertUnwindSafe(work)));
        (state.busy, state.rolling) = (false, false);
        if result.is_err() {
            state.poisoned.get_or_insert_with(|| "a panic while the file was worked on".into());
        }
        // They look as soon as the caller, who has the lock, has noted what came of the work.
        self.synced.notify_all();
        result
    }

    /// Reads all records that the log keeps, oldest first, to apply them again within a running process.
    ///
    /// # Errors
    /// As [`Wal::sync`].
    pub fn replay(&self) -> Result<Replay, StorageError> {
        self.replay_from(0)
    }

    /// Same as [`Wal::replay`], without files older than `generation`.
    ///
    /// # Errors
    /// As [`Wal::sync`].
    pub fn replay_from(&self, generation: Generation) -> Result<Replay, StorageError> {
        self.sync_all()?;
        let files = log_files(&self.directory)?;
        let kept = files.into_iter().filter(|(number, _)| *number >= generation);
        Ok(Replay::new(kept.map(|(_, path)| path).collect()))
    }

    /// Removes the files older than `generation`.
    ///
    /// # Errors
    /// [`StorageError::Io`]; files that could not be removed are replayed again, which is harmless.
    pub fn trim_before(&self, generation: Generation) -> Result<(), StorageError> {
        let current = self.state.lock().generation;
        let mut kept = 0;
        for (number, path) in log_files(&self.directory)? {
            if number < generation.min(current) {
                durable::remove_file(&path)?;
            } else if number < current {
                kept += fs::metadata(&path).map_or(0, |file| file.len());
            }
        }
        let mut state = self.state.lock();
        // A file that was begun meanwhile made one of those older that are not counted.
        if state.generation == current {
            state.older_bytes = kept;
        }
        Ok(())
    }

    /// Size in bytes of the log that a restart would replay.
    pub fn size_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.older_bytes + state.written + state.buffer.len() as u64
    }

    /// Bytes appended since the log was last rolled or opened.
    pub fn bytes_since_roll(&self) -> u64 {
        let state = self.state.lock();
        state.written + state.buffer.len() as u64
    }

    /// Whether there are records that are not durable yet.
    pub fn has_unsynced(&self) -> bool {
        let state = self.state.lock();
        state.durable < state.appended
    }

    /// Whether an earlier failure closed the log for writes.
    pub fn is_poisoned(&self) -> bool {
        self.state.lock().poisoned.is_some()
    }
}

impl State {
    fn check_open(&self) -> Result<(), StorageError> {
        match &self.poisoned {
            Some(reason) => Err(StorageError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Marks all records that are not durable as lost. Consecutive losses become one range.
    fn give_up_unsynced(&mut self) {
        match self.lost.last_mut() {
            Some((_, last)) if *last == self.durable => *last = self.appended,
            _ if self.appended > self.durable => self.lost.push((self.durable, self.appended)),
            _ => {}
        }
        self.durable = self.appended;
        (self.buffer, self.collected) = (Vec::new(), Some(0));
    }

    /// Continues the log in a new file; the current one must be synced.
    fn go_on_in(&mut self, begun: OpenedFile) {
        self.older_bytes += self.written;
        self.file = std::sync::Arc::new(begun.file);
        self.path = begun.path;
        self.generation = begun.generation;
        self.written = begun.bytes;
        self.durable_bytes = begun.bytes;
    }
}

const _: () = assert!(RECORD_HEADER == 20, "the layout above says so");

#[cfg(test)]
mod tests;
