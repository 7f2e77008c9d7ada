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

/// The documents of a snapshot that scores may be computed of: neither deleted, nor hidden by the filter of an alias, nor objects of a
/// nested field or of another nested view. What a computation fails with tells about the document that it is of.
#[derive(Clone)]
pub(super) struct VisibleDocs(Arc<FxHashMap<SegmentId, SegmentSnapshot>>);

impl VisibleDocs {
    pub fn new(snapshot: &Snapshot) -> Self {
        let segments = snapshot.segments().iter().zip(snapshot.searcher().segment_readers());
        Self(Arc::new(segments.map(|(segment, reader)| (reader.segment_id(), segment.clone())).collect()))
    }

    /// Those of one segment.
    pub fn of(&self, reader: &SegmentReader) -> VisibleInSegment {
        VisibleInSegment(self.0.get(&reader.segment_id()).cloned())
    }
}

/// The documents of one segment that scores may be computed of.
pub(super) struct VisibleInSegment(Option<SegmentSnapshot>);

impl VisibleInSegment {
    pub fn contains(&self, doc: DocId) -> bool {
        self.0.as_ref().is_some_and(|segment| segment.is_live(doc))
    }
}

/// A script, and which documents of each segment it may run on.
#[derive(Clone)]
pub(super) struct ScoringScript {
    pub script: DocumentScript,
    docs: VisibleDocs,
}

impl ScoringScript {
    pub fn new(snapshot: &Snapshot, script: &QueryScript) -> Self {
        Self { script: snapshot.script(script), docs: VisibleDocs::new(snapshot) }
    }

    /// The script over the documents of one segment, for any thread.
    pub fn open(&self, reader: &SegmentReader) -> VisibleScript {
        VisibleScript {
            script: SharedSegmentScript::new(self.script.clone(), reader),
            docs: self.docs.of(reader),
        }
    }
}

/// A script over one segment, and the documents on which it may run.
pub(super) struct VisibleScript {
    pub script: SharedSegmentScript,
    pub docs: VisibleInSegment,
}
