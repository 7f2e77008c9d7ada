//! A script over one segment for whatever scores its documents.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use sparrow_scripts::{ScriptError, Value};
use tantivy::{DocId, SegmentReader};

use super::{DocumentScript, SegmentScript};

/// A script over one segment that may be asked from any thread: each runs a machine of its own, which lives no longer than the
/// others that the thread has begun since.
pub struct SharedSegmentScript {
    script: DocumentScript,
    reader: SegmentReader,
    number: u64,
}

/// Machines that a thread keeps.
const KEPT_MACHINES: usize = 64;

thread_local! {
    /// A machine is not sent between threads, while what scores documents has to be.
    static MACHINES: RefCell<Vec<(u64, Box<SegmentScript>)>> = const { RefCell::new(Vec::new()) };
}

impl SharedSegmentScript {
    /// The script over the documents of one segment.
    pub fn new(script: DocumentScript, reader: &SegmentReader) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self { script, reader: reader.clone(), number: NUMBERS.fetch_add(1, Ordering::Relaxed) }
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
