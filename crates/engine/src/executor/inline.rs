//! Carrying out a short read on the thread that asks for it.
//!
//! Handing an operation to a worker and its answer back wakes two threads. Where their cores sleep, that takes
//! longer than many a read. So a read that comes alone is attempted at once, on the thread of the event loop, as
//! long as reads are usually short. That thread must not be held up: an attempt that takes longer than [`LIMIT`],
//! or that has to wait for something, is given up, and a worker carries out the operation.

mod limit;

use std::time::{Duration, Instant};

use sparrow_call::attempt;
use sparrow_call::error::EngineError;
use sparrow_call::request::{CancelFlag, Reply};
use sparrow_types::processors::Busy;

use self::limit::TimeLimit;
use super::queue::Queue;

/// How long an attempt may take.
const LIMIT: Duration = Duration::from_millis(1);

/// Longest usual duration of a read with which attempts are made.
pub(super) const USUALLY_SHORT: Duration = Duration::from_micros(400);

/// What an attempt that is given up counts for in the usual duration of a read: some forty short ones have to
/// follow before the next attempt.
const GIVEN_UP: Duration = Duration::from_millis(30);

/// Attempts to carry out reads on the calling thread.
pub(super) struct Inline {
    /// None where the system has no timer for it: no attempts are made then.
    limit: Option<TimeLimit>,
}

impl Inline {
    pub(super) fn new() -> Self {
        Self { limit: TimeLimit::start() }
    }

    /// Carries out `work`, which stops when its flag is set, in place of the workers of `lane`; `None` if they
    /// have to do it.
    pub(super) fn attempt(
        &self,
        lane: &Queue,
        work: impl FnOnce(&CancelFlag) -> Result<Reply, EngineError>,
    ) -> Option<Result<Reply, EngineError>> {
        let limit = self.limit.as_ref()?;
        if !lane.is_idle_and_short() {
            return None;
        }
        let stop = CancelFlag::default();
        let begun = Instant::now();
        let result = {
            let _busy = Busy::begin();
            let _attempt = attempt::begin(&stop);
            let _limited = limit.begin(&stop, LIMIT);
            super::guarded(|| work(&stop))
        };
        if stop.is_cancelled() {
            lane.note_given_up(GIVEN_UP);
            return None;
        }
        lane.note_inline(begun.elapsed());
        Some(result)
    }

    /// Ends the thread that watches over the limit; no attempts are made after that.
    pub(super) fn close(&self) {
        if let Some(limit) = &self.limit {
            limit.close();
        }
    }
}
