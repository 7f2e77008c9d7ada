//! Replaces the segments by a rewritten form of them.
//!
//! ```text
//! flush ── rewrite into another folder ── replay the log ── (writes wait) replay the rest ── the owner notes the folder ── swap
//! ```
//!
//! Searches and writes go to the old form until the swap. The new folder's commit covers what the flush covered, and nothing trims
//! the log meanwhile, so a crash at any point finds one whole form: the old one before the owner noted the new folder, and after
//! that the new one with the log behind it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_mapping::Mapping;
use sparrow_tantivy_index::{Format, IndexError, RewriteProgress, RewriteStats, SparrowIndex};
use sparrow_write_ahead_log::Generation;

use crate::error::ShardError;
use crate::recovery;
use crate::shard::Shard;
use crate::writer::Writer;

impl Shard {
    /// Rewrites the segments into `target` in the current format and uses them from then on. `note` is called under the write
    /// lock, when the new form is whole, and makes it the one that is opened next time.
    ///
    /// # Errors
    /// [`ShardError::Cancelled`], [`ShardError::Closed`], or what fails. The old form is then the one in use.
    pub fn rewrite<E: From<ShardError>>(
        &self,
        target: &Path,
        progress: &mut dyn FnMut(RewriteProgress),
        cancel: &AtomicBool,
        note: impl FnOnce(&Writer<'_>) -> Result<(), E>,
    ) -> Result<RewriteStats, E> {
        let _kept = KeepLog::start(&self.rewriting);
        let old = self.index();
        self.flush()?;
        let stats = old.rewrite(target, Format::CURRENT, progress, cancel).map_err(|error| match error {
            IndexError::Cancelled => ShardError::Cancelled,
            other => other.into(),
        })?;
        sparrow_write_ahead_log::durable::sync_dir(&self.options.root).map_err(ShardError::from)?;
        let (new, covered) =
            SparrowIndex::open(target, &old.mapping(), &self.options.index).map_err(ShardError::from)?;
        let caught_up = self.catch_up(&new, covered).unwrap_or(CaughtUp { seq_no: covered, generation: 0 });
        self.swap(&old, new, covered, caught_up, note)?;
        Ok(stats)
    }

    /// Applies most of what was written meanwhile, so that writes are blocked only for the rest. Returns how
    /// far it came, or `None` if a concurrent write interfered (a half-written record, a mapping just
    /// widened); then everything is applied again under the lock.
    fn catch_up(&self, new: &SparrowIndex, covered: Option<u64>) -> Option<CaughtUp> {
        let replay = || -> Result<CaughtUp, ShardError> {
            // What is written from here on lies in files of its own, and only those are read again.
            let generation = {
                let _writers = self.state.lock();
                self.wal.roll()?
            };
            let log = self.wal.replay()?;
            let mapping: Arc<Mapping> = self.index().mapping();
            new.update_mapping(&mapping)?;
            let replayed = recovery::apply(log, new, &*self.options.reread, covered)?;
            new.refresh()?;
            Ok(CaughtUp { seq_no: replayed.last_seq_no.max(covered), generation })
        };
        match replay() {
            // A wider mapping means that documents were read by one that lacked their fields.
            Ok(caught_up) if *new.mapping() == *self.index().mapping() => Some(caught_up),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(index = &*self.options.name, %error, "catching up with writes is left to the swap");
                None
            }
        }
    }

    fn swap<E: From<ShardError>>(
        &self,
        old: &Arc<SparrowIndex>,
        new: SparrowIndex,
        covered: Option<u64>,
        caught_up: CaughtUp,
        note: impl FnOnce(&Writer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // A flush of the old form that still ran would trim the log of what the new one lacks.
        let _no_flush = self.flushing.lock();
        let _no_refresh = self.refreshing.lock();
        let mut writer = self.changer()?;
        // The log may be cut back behind what it gives to read.
        writer.state.phase.takes_writes()?;
        // A recovery in between took back what was never durable, and the copy may have it.
        if !Arc::ptr_eq(old, &self.index()) {
            let reason = "the segments were opened anew while they were rewritten".to_owned();
            return Err(ShardError::Refresh { reason, disk_full: false }.into());
        }
        let apply = || -> Result<(), ShardError> {
            new.update_mapping(&self.index().mapping())?;
            let log = self.wal.replay_from(caught_up.generation)?;
            recovery::apply(log, &new, &*self.options.reread, caught_up.seq_no)?;
            // Whatever a search could see, and more, has to be there when the new form answers.
            Ok(new.refresh()?)
        };
        apply()?;
        if let Err(error) = note(&writer) {
            // A restart may find either folder noted. Both are whole as long as the log keeps what came after them.
            self.folder_is_uncertain.store(true, Ordering::SeqCst);
            return Err(error);
        }
        *self.index.write() = Arc::new(new);
        // A flush of the old form may have gone further.
        self.flushed.store(covered.map_or(0, |last| last + 1), Ordering::Release);
        writer.state.incomplete = None;
        drop(writer);
        // Its threads may take a moment to end, and no write has to wait for that.
        old.retire();
        Ok(())
    }
}

/// How much of the log the new segments contain.
struct CaughtUp {
    /// Highest sequence number that the new segments contain.
    seq_no: Option<u64>,
    /// Generation of the log from which on later writes are found.
    generation: Generation,
}

/// Guard that keeps the log from being trimmed; released also when a rewrite panics.
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
