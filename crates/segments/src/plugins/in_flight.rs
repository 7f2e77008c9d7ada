//! Limits the bytes of documents that wait between `add` and an indexing thread.
//!
//! tantivy's own queue holds 10,000 documents, whatever their size: with long documents that is far
//! more memory than the indexing budget. The writer waits here instead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::merges::{MergeCounters, MergeFailures};

/// Most bytes of waiting documents; a larger document is let through alone.
const MAX_WAITING_BYTES: usize = 8 << 20;

#[derive(Default)]
struct Waiting {
    sizes: VecDeque<usize>,
    bytes: usize,
}

/// Tracks documents that were sent to the indexing threads and not yet taken, and makes senders wait.
#[derive(Default)]
pub struct InFlightLimiter {
    waiting: Mutex<Waiting>,
    room: Condvar,
    /// Counters of this index's merges.
    pub merges: MergeCounters,
}

impl InFlightLimiter {
    /// A limiter that records failed merges in `failures`, which the index's directory shares.
    pub fn with(failures: Arc<MergeFailures>) -> Self {
        Self { merges: MergeCounters::with(failures), ..Self::default() }
    }

    /// Waits until there is room, at most 2 s, and registers a document of `size` bytes. Does not wait longer
    /// because an indexing thread that has died takes no documents; the next `add` or commit then reports its
    /// error.
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

    /// Registers that an indexing thread took a document. Several threads may take documents in another order
    /// than they were sent; the sum remains right.
    pub fn taken(&self) {
        let mut waiting = self.waiting.lock();
        if let Some(size) = waiting.sizes.pop_front() {
            waiting.bytes -= size;
        }
        drop(waiting);
        self.room.notify_all();
    }

    /// Forgets all waiting documents, after a commit or rollback.
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
