//! Bringing an index of an older postings format to the current one.
//!
//! ```text
//! flush ── rewrite into segments-<n+1> ── replay the log ── (writes wait) replay the rest ── metadata: folder ── swap
//! ```
//!
//! Searches and writes go to the old form until the swap. The new folder's commit covers what the flush covered, and
//! nothing trims the log meanwhile, so a crash at any point finds one whole form: the old one before the metadata is
//! replaced, and after that the new one with the log behind it. The folder that lost is removed at the next start,
//! if not before.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_index::{Format, IndexError, IndexOptions, RewriteProgress, RewriteStats, SparrowIndex};
use sparrow_storage::Generation;

use super::handle::{IndexHandle, remove_folder};
use super::{Indices, recovery};
use crate::error::EngineError;

impl Indices {
    /// Rewrites an index in the current format. `None` when it has that already.
    ///
    /// # Errors
    /// When it is cancelled, deleted meanwhile, or cannot be read or written. It is then what it was.
    pub(crate) fn upgrade(
        &self,
        handle: &IndexHandle,
        progress: &mut dyn FnMut(RewriteProgress),
        cancel: &AtomicBool,
    ) -> Result<Option<RewriteStats>, EngineError> {
        // Another upgrade may have been faster: what counts is the format under the lock.
        let _one = self.upgrading.lock();
        if !handle.needs_upgrade() {
            return Ok(None);
        }
        let old_folder = handle.metadata.read().folder.clone();
        let folder = next_folder(&old_folder);
        let target = handle.root().join(&folder);
        let kept = KeepLog::start(&handle.keep_log);
        let result = self
            .options(&handle.name, &handle.settings())
            .and_then(|options| handle.rewrite_into(&target, &folder, &options, progress, cancel));
        drop(kept);
        match result {
            Ok(stats) => {
                remove_folder(&handle.root().join(old_folder));
                Ok(Some(stats))
            }
            Err(error) => {
                remove_folder(&target);
                Err(error)
            }
        }
    }
}

impl IndexHandle {
    /// Whether the index is in an older format.
    pub(crate) fn needs_upgrade(&self) -> bool {
        self.index().format() != Format::CURRENT
    }

    fn rewrite_into(
        &self,
        target: &Path,
        folder: &str,
        options: &IndexOptions,
        progress: &mut dyn FnMut(RewriteProgress),
        cancel: &AtomicBool,
    ) -> Result<RewriteStats, EngineError> {
        self.flush()?;
        let stats =
            self.index().rewrite(target, Format::CURRENT, progress, cancel).map_err(|error| match error {
                IndexError::Cancelled => EngineError::Cancelled,
                other => other.into(),
            })?;
        sparrow_storage::durable::sync_dir(&self.root())?;
        let (new, covered) = SparrowIndex::open(target, &self.mapping(), options)?;
        let caught_up = self.catch_up(&new, covered).unwrap_or(CaughtUp { seq_no: covered, generation: 0 });
        self.swap(new, folder, caught_up)?;
        Ok(stats)
    }

    /// Applies most of what was written meanwhile, so that writes wait only for the rest. Gives how far it came;
    /// nothing when a write that just happened got in the way (a record half written, a mapping just widened), for
    /// then everything is applied again under the lock.
    fn catch_up(&self, new: &SparrowIndex, covered: Option<u64>) -> Option<CaughtUp> {
        let replay = || -> Result<CaughtUp, EngineError> {
            // What is written from here on lies in files of its own, and only those are read again.
            let generation = {
                let _writers = self.write.lock();
                self.wal.roll()?
            };
            let log = self.wal.replay()?;
            let mapping = self.mapping();
            new.update_mapping(&mapping)?;
            let replayed = recovery::apply(log, new, &mapping, &self.settings(), covered)?;
            new.refresh()?;
            Ok(CaughtUp { seq_no: replayed.last_seq_no.max(covered), generation })
        };
        match replay() {
            // A wider mapping means that documents were read by one that lacked their fields.
            Ok(caught_up) if *new.mapping() == *self.mapping() => Some(caught_up),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(index = self.name, %error, "catching up with writes is left to the swap");
                None
            }
        }
    }

    fn swap(&self, new: SparrowIndex, folder: &str, caught_up: CaughtUp) -> Result<(), EngineError> {
        // A flush of the old form that still ran would trim the log of what the new one lacks.
        let _no_flush = self.flush_lock.lock();
        let writers = self.write.lock();
        if writers.closed {
            return Err(EngineError::IndexNotFound { name: self.name.clone() });
        }
        let mapping = self.mapping();
        new.update_mapping(&mapping)?;
        let log = self.wal.replay_from(caught_up.generation)?;
        recovery::apply(log, &new, &mapping, &self.settings(), caught_up.seq_no)?;
        // Whatever a search could see, and more, has to be there when the new form answers.
        new.refresh()?;
        self.replace_metadata(|metadata| folder.clone_into(&mut metadata.folder))?;
        let old = std::mem::replace(&mut *self.index.write(), Arc::new(new));
        drop(writers);
        // Its threads may take a moment to end, and no write has to wait for that.
        drop(old);
        Ok(())
    }
}

/// How far a new form has come.
struct CaughtUp {
    /// It has the writes up to here.
    seq_no: Option<u64>,
    /// Those behind are in this generation of the log, or a later one.
    generation: Generation,
}

/// Keeps the log from being trimmed, also when a rewrite panics.
struct KeepLog<'a>(&'a AtomicBool);

impl<'a> KeepLog<'a> {
    fn start(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::SeqCst);
        Self(flag)
    }
}

impl Drop for KeepLog<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// `segments-2` after `segments-1`.
fn next_folder(folder: &str) -> String {
    let number = folder.rsplit('-').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(1);
    format!("segments-{}", number + 1)
}
