//! Merging all segments into one when somebody asks for it, while documents are written and overwritten.

use std::time::Duration;

use sparrow_segments::IndexError;
use tantivy::TantivyError;

use crate::index::SparrowIndex;
use crate::writer::StartedMerge;

/// Number of attempts that may fail because a segment was gone when they ended. Each takes as long as a merge; hardly more than
/// three do.
const ATTEMPTS: usize = 100;
/// The largest share of the documents (1 in so many) that a segment which is left out may have.
const SMALL: u64 = 10;
const PAUSE: Duration = Duration::from_millis(10);

impl SparrowIndex {
    /// Merges all segments into one and waits for it. Writes, refreshes and searches continue meanwhile.
    ///
    /// # Errors
    /// [`IndexError::RolledBack`] when the commit of buffered writes fails; when the merge fails.
    pub fn merge_all(&self) -> Result<(), IndexError> {
        self.commit()?;
        self.merge_committed()?;
        self.refresh()
    }

    /// Whether vectors of a published segment lack the graph that a merge would build: new segments get none.
    pub fn lacks_graphs(&self) -> bool {
        self.lock_writer().lacks_graphs()
    }

    /// Merges all committed segments into one, waits for it and publishes it. While documents are overwritten faster than they are
    /// merged, segments of less than a tenth of the documents may be left out. Commits nothing itself: a caller that commits must
    /// learn of a failure before anyone commits again. No background merge begins meanwhile; those that have become due begin at the
    /// first commit after it.
    ///
    /// # Errors
    /// When the merge fails, with the error of the disk.
    pub fn merge_committed(&self) -> Result<(), IndexError> {
        let _one = self.forced_merge.lock();
        let _pause = self.lock_writer().pauses().begin();
        // Background merges that already run would take segments away, and tantivy has one thread for merges. Those that wait for it
        // and the beginnings of merges cannot be seen, so they may cost an attempt.
        while self.merge_stats().current > 0 {
            std::thread::sleep(PAUSE);
        }
        let (mut attempts, mut left_out_up_to, mut has_run) = (0, 0, false);
        loop {
            let ended_before = self.merge_stats().total;
            let (merge, mapping) = {
                let mut writer = self.lock_writer();
                (writer.start_merge(left_out_up_to)?, writer.mapping_epoch())
            };
            let Some(StartedMerge { documents, end }) = merge else { return self.publish() };
            let Err(error) = end.wait() else { return self.publish() };
            let writer = self.lock_writer();
            if writer.mapping_epoch() != mapping {
                // A wider mapping reopened the index, which ends its merges: it is merged as it is then. The number of fields limits
                // how often.
            } else if matches!(error, TantivyError::InvalidArgument(_)) && attempts < ATTEMPTS {
                attempts += 1;
                // A segment was gone when the merge ended. Until an attempt has had its turn on the thread for merges, a background
                // merge may have had it. From then on it was removed because all its documents were overwritten or deleted, and
                // those of its size go as quickly, if they are what a client overwrites.
                if has_run {
                    let all: u64 = documents.iter().map(|(_, count)| u64::from(*count)).sum();
                    let gone = writer.largest_gone(&documents)?;
                    if u64::from(gone) <= all / SMALL {
                        left_out_up_to = left_out_up_to.max(gone);
                    }
                }
                has_run |= self.merge_stats().total > ended_before;
            } else {
                let refusal = writer.directory.take_refusal_of_merge();
                return Err(refusal.map_or(error.into(), |(path, source)| IndexError::Io { path, source }));
            }
            drop(writer);
            std::thread::sleep(PAUSE);
        }
    }
}
