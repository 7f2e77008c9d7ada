//! A call and its texts: what waits in the queue, and where workers put the results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use sparrow_runtime::work;

use crate::cache::{Encoding, Key};
use crate::error::EncoderError;
use crate::timings::Clock;

/// A text that waits to be encoded.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) call: Arc<Call>,
    /// Number of the text in its call.
    pub(crate) slot: usize,
    pub(crate) ids: Vec<u32>,
    /// Number of the first token of the second type (the text that follows a question).
    pub(crate) second: usize,
    pub(crate) truncated: u32,
    pub(crate) key: Option<Key>,
    /// In each round at most one text of each call is read; set when it is queued.
    pub(crate) round: u64,
}

/// One call of [`crate::Deployment::encode`], in which workers store its results.
#[derive(Debug)]
pub(crate) struct Call {
    state: Mutex<CallState>,
    done: Condvar,
    abandoned: AtomicBool,
    /// Measures the phases of the call, if it is timed.
    clock: Option<Mutex<Clock>>,
    /// Stands for who sent the request that it is for.
    pub(super) owner: u64,
}

#[derive(Debug)]
struct CallState {
    results: Vec<Option<Encoding>>,
    missing: usize,
    error: Option<EncoderError>,
}

impl Call {
    /// A call in which the results found in the cache are already filled in.
    pub(crate) fn new(results: Vec<Option<Encoding>>, timed: bool) -> Arc<Self> {
        let missing = results.iter().filter(|result| result.is_none()).count();
        Arc::new(Self {
            state: Mutex::new(CallState { results, missing, error: None }),
            done: Condvar::new(),
            abandoned: AtomicBool::new(false),
            clock: timed.then(Mutex::default),
            owner: work::owner(),
        })
    }

    /// The clock of a call that is timed; `None` for other calls.
    pub(crate) fn clock(&self) -> Option<&Mutex<Clock>> {
        self.clock.as_ref()
    }

    /// Notes that the caller no longer waits for the results.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Whether the caller no longer waits for the results.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// The error of the call, if it has failed.
    pub(crate) fn error(&self) -> Option<EncoderError> {
        self.state.lock().error.clone()
    }

    /// Stores the result of one text.
    pub(crate) fn complete(&self, slot: usize, encoding: Encoding) {
        let mut state = self.state.lock();
        if state.results[slot].replace(encoding).is_none() {
            state.missing -= 1;
        }
        if state.missing == 0 {
            self.done.notify_all();
        }
    }

    /// Fails the call; the first error is kept.
    pub(crate) fn fail(&self, error: EncoderError) {
        self.abandon();
        self.state.lock().error.get_or_insert(error);
        self.done.notify_all();
    }

    /// Waits up to `patience`; returns the results or the error, or `None` if the call is still running.
    pub(crate) fn wait(&self, patience: Duration) -> Option<Result<Vec<Encoding>, EncoderError>> {
        let mut state = self.state.lock();
        if state.missing > 0 && state.error.is_none() {
            self.done.wait_for(&mut state, patience);
        }
        if let Some(error) = &state.error {
            return Some(Err(error.clone()));
        }
        (state.missing == 0).then(|| Ok(state.results.drain(..).flatten().collect()))
    }
}
