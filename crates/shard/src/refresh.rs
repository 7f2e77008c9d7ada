//! Making writes searchable.

use std::sync::atomic::Ordering;

use crate::error::ShardError;
use crate::shard::{Phase, Shard};

/// Most requests that wait for the regular refresh; one more refreshes at once, as Elasticsearch does beyond
/// `index.max_refresh_listeners`. Each of them holds a thread here.
const MOST_WAITING: usize = 3;

impl Shard {
    /// Notes that something was written.
    pub fn mark_dirty(&self) {
        self.dirty.store(true, Ordering::Relaxed);
    }

    /// Whether a refresh would show something new.
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    /// How many refreshes there were.
    pub fn refreshes(&self) -> u64 {
        self.visibility.done()
    }

    /// Makes everything written searchable.
    ///
    /// # Errors
    /// [`ShardError::Closed`]; what keeps the segments from committing. What was written stays written.
    pub fn refresh(&self) -> Result<(), ShardError> {
        let _one = self.refreshing.lock();
        let number = self.visibility.begin();
        let result = self.refresh_now();
        if result.is_err() {
            self.mark_dirty();
        }
        self.visibility.end(number, &result);
        result
    }

    fn refresh_now(&self) -> Result<(), ShardError> {
        let index = {
            // Under the write lock, so that every version taken here is in the index's buffer and in the commit.
            let mut state = self.state.lock();
            if state.phase == Phase::Closed {
                return Err(ShardError::Closed);
            }
            self.complete(&mut state)?;
            self.dirty.store(false, Ordering::Relaxed);
            self.versions.lock().start_refresh();
            let index = self.index();
            if let Err(error) = index.commit() {
                self.rolled_back(&mut state, error)?;
                if let Err(error) = index.commit() {
                    let reason = format!("the segments lost their buffer twice: {error}");
                    state.reopen = true;
                    self.rolled_back(&mut state, error)?;
                    return Err(ShardError::Refresh { reason });
                }
                self.dirty.store(false, Ordering::Relaxed);
            }
            index
        };
        index.publish()?;
        self.versions.lock().finish_refresh();
        Ok(())
    }

    /// Waits for a refresh that shows everything written before the call. The regular refresh does it; with `regular` false, or
    /// when enough others wait, the shard is refreshed at once.
    ///
    /// # Errors
    /// [`ShardError::Refresh`] when the refresh fails; [`ShardError::Closed`]; [`ShardError::Cancelled`].
    pub fn wait_for_refresh(&self, regular: bool, cancelled: &dyn Fn() -> bool) -> Result<(), ShardError> {
        if !self.is_dirty() && !self.refreshing.is_locked() {
            return Ok(());
        }
        if regular && self.visibility.wait(MOST_WAITING, cancelled)? {
            return Ok(());
        }
        self.refresh()
    }
}
