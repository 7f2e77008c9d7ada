//! Bytes of documents that wait between `add` and an indexing thread.
//!
//! tantivy's own queue holds 10,000 documents, whatever their size: with long documents that is far
//! more memory than the indexing budget. The writer waits here instead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::merges::{MergeCounters, MergeFailures};

/// Upper bound of waiting bytes; one larger document still passes alone.
const MAX_WAITING_BYTES: usize = 8 << 20;

#[derive(Default)]
struct Waiting {
    sizes: VecDeque<usize>,
    bytes: usize,
}

/// Counts what was sent to the indexing threads and not taken yet.
#[derive(Default)]
pub struct InFlightLimiter {
    waiting: Mutex<Waiting>,
    room: Condvar,
    /// What the same plugin merges.
    pub merges: MergeCounters,
}

impl InFlightLimiter {
    /// A limiter of an index whose directory notes failed merges too.
    pub fn with(failures: Arc<MergeFailures>) -> Self {
        Self { merges: MergeCounters::with(failures), ..Self::default() }
    }

    /// Waits for room and registers a document. Gives up waiting after a while, since an indexing thread
    /// that died takes no more documents: the next `add` or commit then reports its error.
    pub fn sent(&self, size: usize) {
        let mut waiting = self.waiting.lock();
        for _ in 0..20 {
            if waiting.bytes == 0 || waiting.bytes + size <= MAX_WAITING_BYTES {
                break;
            }
            self.room.wait_for(&mut waiting, Duration::from_millis(100));
        }
        waiting.sizes.push_back(size);
        waiting.bytes += size;
    }

    /// An indexing thread took a document. With several threads the sizes may be taken in another
    /// order than sent, the sum stays right.
    pub fn taken(&self) {
        let mut waiting = self.waiting.lock();
        if let Some(size) = waiting.sizes.pop_front() {
            waiting.bytes -= size;
        }
        drop(waiting);
        self.room.notify_all();
    }

    /// Nothing waits any more: after a commit or rollback.
    pub fn reset(&self) {
        *self.waiting.lock() = Waiting::default();
        self.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_sender_waits_until_something_is_taken() {
        let limiter = Arc::new(InFlightLimiter::default());
        limiter.sent(MAX_WAITING_BYTES);
        let passed = Arc::new(AtomicBool::new(false));
        let sender = std::thread::spawn({
            let (limiter, passed) = (limiter.clone(), passed.clone());
            move || {
                limiter.sent(1);
                passed.store(true, Ordering::SeqCst);
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!passed.load(Ordering::SeqCst));
        limiter.taken();
        sender.join().unwrap();
        assert_eq!(limiter.waiting.lock().bytes, 1);
        limiter.reset();
        limiter.taken();
        assert_eq!(limiter.waiting.lock().bytes, 0);
    }
}
