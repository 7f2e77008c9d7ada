//! Scripts while a search runs: bound to a snapshot, and asked from whichever thread scores a document.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sparrow_query::script::QueryScript;
use sparrow_segments::scripts::SharedSegmentScript;
pub use sparrow_segments::scripts::{DocumentScript, SegmentScript};
use tantivy::index::SegmentId;
use tantivy::{DocId, SegmentReader};

use crate::segment_snapshot::SegmentSnapshot;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Binds a script to the documents of the snapshot.
    pub fn script(&self, script: &QueryScript) -> DocumentScript {
        let segments = self.segments().iter().zip(self.searcher().segment_readers());
        let vectors = segments.map(|(segment, reader)| {
            let of_segment = self
                .schema()
                .dense_paths()
                .filter_map(|(path, field)| Some((path.to_owned(), segment.dense(field)?.clone())));
            (reader.segment_id(), of_segment.collect())
        });
        DocumentScript::new(&script.script, script.params.as_ref(), self.mapping(), vectors.collect())
    }
}

/// Which documents of each segment are visible.
pub(super) type VisibleDocs = Arc<FxHashMap<SegmentId, SegmentSnapshot>>;

/// The visible documents of a snapshot, by segment.
pub(super) fn visible_docs(snapshot: &Snapshot) -> VisibleDocs {
    let segments = snapshot.segments().iter().zip(snapshot.searcher().segment_readers());
    Arc::new(segments.map(|(segment, reader)| (reader.segment_id(), segment.clone())).collect())
}

/// A script, and which documents of each segment it may run on.
#[derive(Clone)]
pub(super) struct ScoringScript {
    pub script: DocumentScript,
    segments: VisibleDocs,
}

impl ScoringScript {
    pub fn new(snapshot: &Snapshot, script: &QueryScript) -> Self {
        Self { script: snapshot.script(script), segments: visible_docs(snapshot) }
    }

    /// The script over the documents of one segment, for any thread.
    pub fn open(&self, reader: &SegmentReader) -> VisibleScript {
        VisibleScript {
            script: SharedSegmentScript::new(self.script.clone(), reader),
            segment: self.segments.get(&reader.segment_id()).cloned(),
        }
    }
}

/// A script over one segment, and the documents on which it may run.
pub(super) struct VisibleScript {
    pub script: SharedSegmentScript,
    segment: Option<SegmentSnapshot>,
}

impl VisibleScript {
    /// Whether a document is visible: neither deleted, nor hidden by the filter of an alias, nor of another nested view. What a
    /// script throws tells about the documents that it runs on.
    pub fn is_visible(&self, doc: DocId) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.is_live(doc))
    }
}
