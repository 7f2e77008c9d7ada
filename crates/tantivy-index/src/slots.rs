//! Finds documents that have no passages in a slot.

use sparrow_runtime::SeqNo;
use tantivy::DocAddress;

use crate::snapshot::Snapshot;

impl Snapshot {
    /// The live documents that have passages in slot `of` and none in slot `within`, in the order of their sequence numbers.
    pub fn lacking_passages(&self, of: &str, within: &str) -> Vec<(SeqNo, DocAddress)> {
        let mut lacking = Vec::new();
        let Some(of) = self.schema().passages(of) else { return lacking };
        let within = self.schema().passages(within);
        for (ord, segment) in (0_u32..).zip(self.segments()) {
            let plugins = segment.plugins();
            let Some(all) = plugins.passages(of) else { continue };
            let some = within.and_then(|within| plugins.passages(within));
            let max_doc = self.searcher().segment_reader(ord).max_doc();
            for doc in (0..max_doc).filter(|doc| segment.is_live(*doc)) {
                let has = |map: &sparrow_segments::plugins::PassageMap| map.start(doc) < map.start(doc + 1);
                if has(all) && !some.is_some_and(has) {
                    lacking.push((segment.seq_no(doc), DocAddress::new(ord, doc)));
                }
            }
        }
        lacking.sort_unstable();
        lacking
    }
}
