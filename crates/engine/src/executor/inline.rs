//! Carrying out a short read on the thread that asks for it.
//!
//! Handing an operation to a worker and its answer back wakes two threads. Where their cores sleep, that takes
//! longer than many a read. So a read that comes alone is attempted at once, on the thread of the event loop, as
//! long as reads are usually short. That thread must not be held up: an attempt that takes longer than [`Limits`] say,
//! or that has to wait for something, is given up, and a worker carries out the operation. It ends at its next look
//! at its flag; a document, for one, is read as a whole.

mod limit;

use std::time::{Duration, Instant};

use sparrow_request::error::EngineError;
use sparrow_request::operation::Lane;
use sparrow_request::request::{CancelFlag, Reply};
use sparrow_runtime::attempt;
use sparrow_runtime::processors::Busy;

use self::limit::TimeLimit;
use super::job::guarded;
use super::queue::Queue;
use super::state::USUALLY_SHORT;

/// How long attempts of a lane may take, and how long its operations usually take where one is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    at_most: Duration,
    usually: Duration,
    /// Whether an answer that comes after the limit is used. An encoded text is complete then; a search that was stopped is not.
    takes_late: bool,
}

impl Limits {
    pub(super) const fn of(lane: Lane) -> Self {
        match lane {
            // A model reads a question in 0.3 to 0.9 ms, and cannot be stopped meanwhile.
            Lane::Infer => Self {
                at_most: Duration::from_millis(2),
                usually: Duration::from_millis(1),
                takes_late: true,
            },
            _ => Self { at_most: Duration::from_millis(1), usually: USUALLY_SHORT, takes_late: false },
        }
    }
}

/// Number of short reads that workers have to carry out after an attempt that was given up. With forty, one slow search
/// in a hundred would send about half of the short ones to workers.
const HOLD_OFF: u32 = 10;

/// How long an attempt may take until it has noticed that it is stopped.
const NOTICED: Duration = Duration::from_millis(2);

/// No attempt is made for this many times what one took beyond [`NOTICED`]. So what cannot be stopped soon, such as
/// reading a document of many megabytes, holds up the caller's thread for a fiftieth of the time at most.
const PAUSE_TIMES: u32 = 50;

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
        limits: Limits,
        work: impl FnOnce(&CancelFlag) -> Result<Reply, EngineError>,
    ) -> Option<Result<Reply, EngineError>> {
        let limit = self.limit.as_ref()?;
        if !lane.may_attempt(limits.usually) {
            return None;
        }
        let stop = CancelFlag::default();
        let begun = Instant::now();
        let result = {
            let _busy = Busy::begin();
            let _attempt = attempt::begin(stop.flag());
            let _limited = limit.begin(&stop, limits.at_most);
            guarded(|| work(&stop))
        };
        if stop.is_cancelled() {
            let took = begun.elapsed();
            lane.note_given_up(took, HOLD_OFF, took.saturating_sub(NOTICED) * PAUSE_TIMES);
            return result.ok().filter(|_| limits.takes_late).map(Ok);
        }
        lane.note_attempt(begun.elapsed());
        Some(result)
    }

    /// Ends the thread that watches over the limit; no attempts are made after that.
    pub(super) fn close(&self) {
        if let Some(limit) = &self.limit {
            limit.close();
        }
    }
}
