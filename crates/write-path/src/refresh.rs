//! Making writes searchable.

use sparrow_tantivy_index::IndexError;

use crate::error::ShardError;
use crate::shard::{Shard, WriteState};

/// Most requests that wait for the regular refresh; one more triggers a refresh at once, as Elasticsearch
/// does beyond `index.max_refresh_listeners`. Each waiting request occupies a thread.
const MOST_WAITING: usize = 3;

impl Shard {
    /// Records that there is a write which is not searchable yet.
    pub(crate) fn mark_dirty(&self) {
        self.visibility.note_write();
    }

    /// Whether a refresh would show something new.
    pub fn is_dirty(&self) -> bool {
        self.visibility.is_dirty()
    }

    /// Number of refreshes so far: all that succeeded, and those that failed before the last of them.
    pub fn refreshes(&self) -> u64 {
        self.visibility.done()
    }

    /// Makes everything written searchable.
    ///
    /// # Errors
    /// [`ShardError::Closed`]; why the segments cannot commit. Writes are not lost.
    pub fn refresh(&self) -> Result<(), ShardError> {
        let _one = self.refreshing.lock();
        let running = Running { shard: self, number: self.visibility.begin(), ended: false };
        let result = self.refresh_now(running.number);
        running.end(&result);
        result
    }

    fn refresh_now(&self, number: u64) -> Result<(), ShardError> {
        // Most of the waiting for the disk is done before writers have to wait for this.
        if !(self.options.acknowledges_early)() {
            self.sync_log()?;
        }
        let index = {
            // Under the write lock, so that every version taken here is in the index's buffer and in the commit.
            let mut state = self.state.lock();
            self.before_commit(&mut state)?;
            self.complete(&mut state)?;
            self.visibility.take(number);
            self.versions.lock().start_refresh(|| self.wal.durable());
            let index = self.index();
            if let Err(error) = guarded(&mut state, || index.commit()) {
                self.rolled_back(&mut state, error)?;
                if let Err(error) = guarded(&mut state, || index.commit()) {
                    let failed = ShardError::refresh(&error);
                    state.reopen = true;
                    self.rolled_back(&mut state, error)?;
                    return Err(failed);
                }
                self.visibility.take(number);
            }
            index
        };
        index.publish()?;
        let shown = self.versions.lock().finish_refresh();
        drop(shown);
        Ok(())
    }

    /// Waits for a refresh that shows everything written before the call. Normally that is the regular
    /// refresh; if `regular` is false, or enough requests already wait, the shard is refreshed at once.
    ///
    /// # Errors
    /// [`ShardError::Refresh`] when the refresh fails; [`ShardError::Closed`]; [`ShardError::Cancelled`].
    pub fn wait_for_refresh(&self, regular: bool, cancelled: &dyn Fn() -> bool) -> Result<(), ShardError> {
        // Somebody who is not waited for has to refresh what no refresh has taken yet.
        let most = if regular || !self.is_dirty() { MOST_WAITING } else { 0 };
        if self.visibility.wait(most, cancelled)? {
            return Ok(());
        }
        self.refresh()
    }
}

/// Runs a change or commit of the segments' buffer. If `change` panics, the buffer stays marked as
/// incomplete.
pub(crate) fn guarded(
    state: &mut WriteState,
    change: impl FnOnce() -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let before = state.incomplete.replace(None);
    let result = change();
    state.incomplete = before;
    result
}

/// A running refresh. If it panics it counts as failed: those who wait for it get an error, and the next
/// refresh shows the writes.
struct Running<'a> {
    shard: &'a Shard,
    number: u64,
    ended: bool,
}

impl Running<'_> {
    fn end(mut self, result: &Result<(), ShardError>) {
        self.note(result);
        self.ended = true;
    }

    fn note(&self, result: &Result<(), ShardError>) {
        if result.is_err() {
            self.shard.versions.lock().keep_refreshing();
            self.shard.mark_dirty();
        }
        self.shard.visibility.end(self.number, result);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.note(&Err(ShardError::Refresh {
                reason: "the refresh panicked".to_owned(),
                disk_full: false,
            }));
        }
    }
}
