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
/// Bytes of waiting documents down to which a sender that found no room sleeps. If it was woken as soon as its document had room, it
/// would sleep again at the next one: both threads would change at every document.
const WAKING_BYTES: usize = MAX_WAITING_BYTES / 2;

#[derive(Default)]
struct Waiting {
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl Waiting {
    /// Removes the document that has waited longest; returns whether so few bytes are left that a sleeping sender is to be woken.
    fn take(&mut self) -> bool {
        if let Some(size) = self.sizes.pop_front() {
            self.bytes -= size;
        }
        self.bytes <= WAKING_BYTES
    }
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
        self.sent_together(size, 1);
    }

    /// As [`InFlightLimiter::sent`], for documents that are sent as one and have `size` bytes together: room is waited for once.
    pub fn sent_together(&self, size: usize, documents: usize) {
        let mut waiting = self.waiting.lock();
        for _ in 0..20 {
            if waiting.bytes == 0 || waiting.bytes + size <= MAX_WAITING_BYTES {
                break;
            }
            self.room.wait_for(&mut waiting, Duration::from_millis(100));
        }
        waiting.sizes.push_back(size);
        waiting.sizes.extend(std::iter::repeat_n(0, documents.saturating_sub(1)));
        waiting.bytes += size;
    }

    /// Registers that an indexing thread took a document. Several threads may take documents in another order
    /// than they were sent; the sum remains right.
    pub fn taken(&self) {
        let wakes = self.waiting.lock().take();
        if wakes {
            self.room.notify_all();
        }
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

    #[test]
    fn documents_that_are_sent_as_one_wait_as_one() {
        let limiter = InFlightLimiter::default();
        // None of them can be taken before all are sent, however much they are.
        limiter.sent_together(3 * MAX_WAITING_BYTES, 10_000);
        assert_eq!(limiter.waiting.lock().sizes.len(), 10_000);
        (0..10_000).for_each(|_| limiter.taken());
        let waiting = limiter.waiting.lock();
        assert_eq!((waiting.bytes, waiting.sizes.len()), (0, 0));
    }

    #[test]
    fn a_sender_is_woken_when_there_is_room_for_many_documents() {
        const SIZE: usize = MAX_WAITING_BYTES / 64;
        let mut waiting = Waiting { sizes: vec![SIZE; 64].into(), bytes: MAX_WAITING_BYTES };
        let woken: Vec<usize> = (1..=64).filter(|_| waiting.take()).collect();
        assert_eq!(woken, (32..=64).collect::<Vec<_>>());
        assert_eq!(waiting.bytes, 0);
    }
}
