//! The policy that decides which segments are merged in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;
use tantivy::indexer::{LogMergePolicy, MergeCandidate, MergePolicy};

use crate::options::IndexOptions;

/// Share of deleted documents (0 to 1) above which a segment is merged for that reason alone.
const DELETED_SHARE: f32 = 0.3;
/// Number of documents below which a merge is postponed until there are enough segments: it would be repeated
/// every few deletions, and its timing would decide which deleted documents still count in scores.
const WORTHWHILE: u32 = 1000;
/// Number of segments from which a merge is worthwhile however few documents they have.
const MANY: usize = 8;

/// Number of reasons for which no merge is to begin in the background.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pauses(Arc<AtomicUsize>);

impl Pauses {
    /// Keeps background merges from beginning until the result is dropped. Those that run go on.
    pub(crate) fn begin(&self) -> Pause {
        self.0.fetch_add(1, Relaxed);
        Pause(self.clone())
    }
}

/// Guard of [`Pauses::begin`].
pub(crate) struct Pause(Pauses);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Merges segments of similar size, and any segment with many deleted documents.
#[derive(Debug)]
pub(crate) struct Tiers {
    levels: LogMergePolicy,
    pauses: Pauses,
}

impl Tiers {
    pub(crate) fn new(options: &IndexOptions, pauses: &Pauses) -> Box<Self> {
        let mut tiers = LogMergePolicy::default();
        tiers.set_min_num_segments(MANY);
        tiers.set_del_docs_ratio_before_merge(DELETED_SHARE);
        tiers.set_max_docs_before_merge(options.max_docs_before_merge);
        Box::new(Self { levels: tiers, pauses: pauses.clone() })
    }
}

impl MergePolicy for Tiers {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        if self.pauses.0.load(Relaxed) > 0 {
            return Vec::new();
        }
        let documents = |id: &SegmentId| {
            segments.iter().find(|segment| segment.id() == *id).map_or(0, SegmentMeta::max_doc)
        };
        let mut candidates = self.levels.compute_merge_candidates(segments);
        candidates.retain(|MergeCandidate(ids)| {
            ids.len() >= MANY || ids.iter().map(documents).sum::<u32>() >= WORTHWHILE
        });
        candidates
    }
}

#[cfg(test)]
mod tests {
    use tantivy::Index;
    use tantivy::schema::Schema;

    use super::*;

    #[test]
    fn no_merge_begins_while_there_is_a_pause() {
        let index = Index::create_in_ram(Schema::builder().build());
        let id = |number: usize| SegmentId::from_uuid_string(&format!("{number:032x}")).unwrap();
        let segments: Vec<SegmentMeta> =
            (0..MANY).map(|number| index.new_segment_meta(id(number), WORTHWHILE)).collect();
        let pauses = Pauses::default();
        let tiers = Tiers::new(&IndexOptions::default(), &pauses);
        let merges = || tiers.compute_merge_candidates(&segments).len();
        assert_eq!(merges(), 1);
        let (one, other) = (pauses.begin(), pauses.begin());
        drop(one);
        assert_eq!(merges(), 0);
        drop(other);
        assert_eq!(merges(), 1);
    }
}
