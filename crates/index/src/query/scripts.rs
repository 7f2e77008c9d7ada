//! Scripts while a search runs: bound to a snapshot, and asked from whichever thread scores a document.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;
use sparrow_query::script::QueryScript;
use sparrow_scripts::{ScriptError, Value};
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

/// A script, and which documents of each segment it may run on.
#[derive(Clone)]
pub(super) struct ScoringScript {
    script: DocumentScript,
    segments: Arc<FxHashMap<SegmentId, SegmentSnapshot>>,
}

impl ScoringScript {
    pub fn new(snapshot: &Snapshot, script: &QueryScript) -> Self {
        let segments = snapshot.segments().iter().zip(snapshot.searcher().segment_readers());
        let segments = segments.map(|(segment, reader)| (reader.segment_id(), segment.clone())).collect();
        Self { script: snapshot.script(script), segments: Arc::new(segments) }
    }

    /// As [`DocumentScript::needs_score`].
    pub fn needs_score(&self) -> bool {
        self.script.needs_score()
    }
}

/// A script over one segment that may be asked from any thread: each runs a machine of its own, which lives no longer than the
/// others that the thread has begun since.
pub(super) struct SharedSegmentScript {
    script: DocumentScript,
    reader: SegmentReader,
    segment: Option<SegmentSnapshot>,
    number: u64,
}

/// Machines that a thread keeps.
const KEPT_MACHINES: usize = 64;

thread_local! {
    /// A machine is not sent between threads, while what scores documents has to be.
    static MACHINES: RefCell<Vec<(u64, Box<SegmentScript>)>> = const { RefCell::new(Vec::new()) };
}

impl SharedSegmentScript {
    pub fn new(script: &ScoringScript, reader: &SegmentReader) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let segment = script.segments.get(&reader.segment_id()).cloned();
        Self { script: script.script.clone(), reader: reader.clone(), segment, number: NUMBERS.fetch_add(1, Ordering::Relaxed) }
    }

    /// Whether a document is visible: neither deleted, nor hidden by the filter of an alias, nor of another nested view. What a
    /// script throws tells about the documents that it runs on.
    pub fn is_visible(&self, doc: DocId) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.is_live(doc))
    }

    /// As [`SegmentScript::run`], and what `read` makes of the value.
    ///
    /// # Errors
    /// As [`SegmentScript::run`].
    pub fn run<T>(
        &self,
        doc: DocId,
        score: Option<f64>,
        read: impl FnOnce(Value) -> T,
    ) -> Result<T, ScriptError> {
        // Taken out, as a script may score by another one.
        let kept = MACHINES.with_borrow_mut(|kept| {
            let at = kept.iter().rposition(|(number, _)| *number == self.number)?;
            Some(kept.swap_remove(at).1)
        });
        let mut running = kept.unwrap_or_else(|| Box::new(self.script.open(&self.reader)));
        let result = running.run(doc, score).map(read);
        MACHINES.with_borrow_mut(|kept| {
            if kept.len() >= KEPT_MACHINES {
                kept.remove(0);
            }
            kept.push((self.number, running));
        });
        result
    }
}

impl Drop for SharedSegmentScript {
    fn drop(&mut self) {
        // A thread that ends has none left.
        let _ = MACHINES.try_with(|kept| kept.borrow_mut().retain(|(number, _)| *number != self.number));
    }
}
