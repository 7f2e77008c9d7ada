//! Making writes durable in segments, and trimming the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::ShardError;
use crate::refresh::guarded;
use crate::shard::{Phase, Shard};

impl Shard {
    /// Makes everything written durable in segments, and trims the log.
    ///
    /// # Errors
    /// [`ShardError::Closed`]; I/O errors, after which the log keeps everything.
    pub fn flush(&self) -> Result<(), ShardError> {
        {
            let _one = self.flushing.lock();
            // Most of the waiting for the disk is done before writers have to wait for this.
            self.sync_log()?;
            let (generation, covered, index) = {
                let mut state = self.state.lock();
                state.phase.takes_writes()?;
                self.complete(&mut state)?;
                let rolled = self.wal.roll();
                let generation = rolled.map_err(|error| self.log_failed_locked(&mut state, error.into()))?;
                let covered = self.next_seq_no().checked_sub(1);
                let index = self.index();
                // Under the write lock: no write can be lost between what is covered and the commit that says so.
                if let Err(error) = guarded(&mut state, || index.commit_covering(covered)) {
                    let failed = ShardError::refresh(&error);
                    self.rolled_back(&mut state, error)?;
                    return Err(failed);
                }
                (generation, covered, index)
            };
            index.make_durable()?;
            self.flushed.fetch_max(covered.map_or(0, |last| last + 1), Ordering::AcqRel);
            if !self.keeps_log() {
                self.wal.trim_before(generation)?;
            }
        }
        // The flush committed, so its documents can be shown as well.
        self.refresh()
    }

    /// Starts failed merges again, by committing. Does not wait for their result.
    ///
    /// # Errors
    /// [`ShardError::Closed`], [`ShardError::ReadOnly`], or why the segments cannot commit.
    pub fn retry_merges(&self) -> Result<(), ShardError> {
        let _refresh = self.refreshing.lock();
        let mut state = self.state.lock();
        state.phase.takes_writes()?;
        self.before_commit(&mut state)?;
        self.complete(&mut state)?;
        let index = self.index();
        match guarded(&mut state, || index.commit_again()) {
            Ok(()) => Ok(()),
            Err(error) => self.rolled_back(&mut state, error),
        }
    }

    /// Merges all segments into one; small ones that are being overwritten may be left. Writes and refreshes go on meanwhile.
    ///
    /// # Errors
    /// [`ShardError::Closed`]; when the merge fails.
    pub fn merge(&self) -> Result<(), ShardError> {
        loop {
            self.refresh()?;
            let index = self.index();
            let Err(error) = index.merge_committed() else {
                // Background merges of what was written meanwhile begin at a commit, and perhaps nobody writes any more.
                if index.searcher().segments().len() > 1
                    && let Err(error) = self.retry_merges()
                {
                    tracing::warn!(index = &*self.options.name, %error, "background merges begin at a later commit");
                }
                return Ok(());
            };
            let mut state = self.state.lock();
            if state.phase == Phase::Closed {
                return Err(ShardError::Closed);
            }
            // A rewrite or a recovery put other segments in the place of these, which ended their merges: those are merged.
            if !Arc::ptr_eq(&index, &self.index()) {
                continue;
            }
            return self.rolled_back(&mut state, error);
        }
    }
}
