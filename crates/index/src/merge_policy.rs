//! The policy that decides which segments are merged in the background.

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

/// Merges segments of similar size, and any segment with many deleted documents.
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
