//! Which segments are merged in the background.

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;
use tantivy::indexer::{LogMergePolicy, MergeCandidate, MergePolicy};

use crate::options::IndexOptions;

/// Share of deleted documents at which a segment is merged for that alone.
const DELETED_SHARE: f32 = 0.3;
/// A merge of fewer documents than these is left until enough segments are there: it would be repeated with every few
/// deletes, and how soon it comes would decide what deleted documents still count in scores.
const WORTHWHILE: u32 = 1000;
/// Segments from which on a merge is always worth its while.
const MANY: usize = 8;

/// Tiers by size; segments with many deleted documents are merged for that alone.
#[derive(Debug)]
pub(crate) struct Tiers(LogMergePolicy);

impl Tiers {
    pub(crate) fn new(options: &IndexOptions) -> Box<Self> {
        let mut tiers = LogMergePolicy::default();
        tiers.set_min_num_segments(MANY);
        tiers.set_del_docs_ratio_before_merge(DELETED_SHARE);
        tiers.set_max_docs_before_merge(options.max_docs_before_merge);
        Box::new(Self(tiers))
    }
}

impl MergePolicy for Tiers {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let documents = |id: &SegmentId| {
            segments.iter().find(|segment| segment.id() == *id).map_or(0, SegmentMeta::max_doc)
        };
        let mut candidates = self.0.compute_merge_candidates(segments);
        candidates.retain(|MergeCandidate(ids)| {
            ids.len() >= MANY || ids.iter().map(documents).sum::<u32>() >= WORTHWHILE
        });
        candidates
    }
}
