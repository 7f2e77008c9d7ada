//! Merging all segments into one when somebody asks for it, while documents are written and overwritten.

use std::time::Duration;

use sparrow_segments::IndexError;
use tantivy::index::SegmentId;
use tantivy::{FutureResult, SegmentMeta, TantivyError};

use crate::index::SparrowIndex;

/// Number of attempts, each of which may take as long as a merge. Every wider mapping ends one; of the others hardly more than three fail.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A merge that has begun.
pub(crate) struct StartedMerge {
    /// The segments that it merges, and the documents that they had when it began, without deleted ones.
    pub documents: Vec<(SegmentId, u32)>,
    pub end: FutureResult<Option<SegmentMeta>>,
}

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

    /// Merges all committed segments into one, waits for it and publishes it. Where documents are overwritten as fast as they are
    /// merged, small segments may be left out. Commits nothing itself: a caller that commits must learn of a failure before anyone
    /// commits again. No background merge begins meanwhile; those that are due then begin at the next commit.
    ///
    /// # Errors
    /// When the merge fails, with the error of the disk.
    pub fn merge_committed(&self) -> Result<(), IndexError> {
        let _one = self.forced_merge.lock();
        let _pause = self.lock_writer().pauses().begin();
        // They would take segments away. tantivy has one thread for merges, so this one would wait for them too.
        while self.merge_stats().current > 0 {
            std::thread::sleep(PAUSE);
        }
        let (mut smaller, mut outcome) = (0, Ok(()));
        for attempt in 0..ATTEMPTS {
            let (merge, mapping) = {
                let mut writer = self.lock_writer();
                (writer.start_merge(smaller)?, writer.mapping_epoch())
            };
            let Some(StartedMerge { documents, end }) = merge else { return self.publish() };
            let Err(error) = end.wait() else { return self.publish() };
            let writer = self.lock_writer();
            if writer.mapping_epoch() != mapping {
                // A wider mapping reopened the index, which ends its merges: it is merged as it is then.
                outcome = Err(error.into());
            } else if matches!(error, TantivyError::InvalidArgument(_)) {
                // A segment was gone when its merge ended. In the first attempt a background merge may have had it, one that had begun
                // before and could not be seen. From then on it was removed because all its documents were deleted or overwritten,
                // and those of its size go as quickly.
                if attempt > 0 {
                    smaller = smaller.max(writer.most_gone(&documents)?);
                }
                outcome = Err(error.into());
            } else {
                let refusal = writer.directory.take_refusal_of_merge();
                return Err(refusal.map_or(error.into(), |(path, source)| IndexError::Io { path, source }));
            }
            drop(writer);
            std::thread::sleep(PAUSE);
        }
        outcome
    }
}
