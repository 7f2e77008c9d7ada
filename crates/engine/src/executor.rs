//! The engine's threads: lanes of worker threads for short operations, and a thread of its own for each long one.
//!
//! Workers block on the encoder's queue and on the disk, so there are more of them than cores. The encoder
//! bounds its own work by having its own threads. Reads that need a core are bounded here: more of them at
//! once than there are cores would slow them all down and leave the thread that accepts requests no time. A
//! read that takes long is no longer counted, so that short ones get past it.

mod inline;
mod job;
mod queue;
mod shedding;
mod state;

use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

use sparrow_admin::lanes::LaneStats;
use sparrow_request::error::EngineError;
use sparrow_request::operation::Lane;
use sparrow_request::request::{CancelFlag, Reply};
use sparrow_request::rights::Holder;
use sparrow_runtime::{niceness, time_slice};

use self::inline::{Inline, Limits};
pub(crate) use self::job::Load;
use self::job::{Job, guarded};
use self::queue::Queue;

/// Most long operations that may run at once. Each has a thread.
const LONG_CAPACITY: usize = 128;

type Done = Box<dyn FnOnce(Result<Reply, EngineError>) + Send>;

/// Runs each operation of the engine on the lane of worker threads that it belongs to.
pub(crate) struct Executor {
    read: Arc<Queue>,
    infer: Arc<Queue>,
    write: Arc<Queue>,
    look: Arc<Queue>,
    trial: Arc<Queue>,
    watch: Arc<Queue>,
    health: Arc<Queue>,
    /// Owners of the long operations that are running now.
    long: Arc<Mutex<Vec<Option<Holder>>>>,
    inline: Inline,
}

impl Executor {
    /// Starts the worker threads for a machine with `cores` cores. A worker calls `rest` once it has become idle.
    pub(crate) fn new(cores: usize, rest: Option<fn(bool)>) -> Self {
        let start = |name, workers, at_once, prepare| Queue::start(name, workers, at_once, prepare, rest);
        // Enough readers that their texts fill a batch of the encoder while others score.
        let readers = (cores * 8).clamp(16, 128);
        Self {
            read: start("search", readers, cores, time_slice::shorten),
            infer: start("inference", readers, cores, time_slice::shorten),
            write: start("write", (cores * 2).max(8), usize::MAX, niceness::step_behind_searches),
            look: start("metadata", cores.clamp(4, 16), usize::MAX, time_slice::shorten),
            trial: start("trial", cores.clamp(2, 16), usize::MAX, || ()),
            watch: start("watch", 2, usize::MAX, time_slice::shorten),
            health: start("health", 1, usize::MAX, time_slice::shorten),
            long: Arc::default(),
            inline: Inline::new(),
        }
    }

    /// Attempts to carry out a read on the calling thread, which it holds up for a moment at most; `work` stops
    /// when its flag is set. `None` if a worker has to do it, also where `work` has begun.
    pub(crate) fn attempt(
        &self,
        lane: Lane,
        work: impl FnOnce(&CancelFlag) -> Result<Reply, EngineError>,
    ) -> Option<Result<Reply, EngineError>> {
        self.inline.attempt(self.queue(lane)?, Limits::of(lane), work)
    }

    /// Runs `work` and hands its result to `done`, whatever happens.
    pub(crate) fn run(
        &self,
        lane: Lane,
        load: Load,
        cancel: &CancelFlag,
        work: impl FnOnce() -> Result<Reply, EngineError> + Send + 'static,
        done: Done,
    ) {
        self.post(lane, load, cancel, done, move |done| done(guarded(work)));
    }

    /// Queues `work`, which gets `done` and calls it now or later. If no worker can take it, `done` is called with the reason.
    pub(crate) fn post(
        &self,
        lane: Lane,
        load: Load,
        cancel: &CancelFlag,
        done: Done,
        work: impl FnOnce(Done) + Send + 'static,
    ) {
        let slot = Arc::new(Mutex::new(Some(done)));
        let job: Job = {
            let slot = slot.clone();
            Box::new(move || {
                let done = slot.lock().take();
                if let Some(done) = done {
                    work(done);
                }
            })
        };
        let sent = match self.queue(lane) {
            Some(queue) => queue.send(job, load, cancel),
            None => self.run_long(job, load.owner),
        };
        if let Err(error) = sent
            && let Some(done) = slot.lock().take()
        {
            done(Err(error));
        }
    }

    /// The queue of a lane; none for [`Lane::Long`], whose operations have threads of their own.
    fn queue(&self, lane: Lane) -> Option<&Arc<Queue>> {
        Some(match lane {
            Lane::Read => &self.read,
            Lane::Infer => &self.infer,
            Lane::Write => &self.write,
            Lane::Look => &self.look,
            Lane::Trial => &self.trial,
            Lane::Watch => &self.watch,
            Lane::Health => &self.health,
            Lane::Long => return None,
        })
    }

    /// Runs a long operation, of which a restricted key may have as many as it leaves free for others.
    fn run_long(&self, job: Job, owner: Option<Holder>) -> Result<(), EngineError> {
        let running = {
            let mut owners = self.long.lock();
            let held = owners.iter().map(Option::as_ref);
            Holder::check_share(owner.as_ref(), held, LONG_CAPACITY)
                .map_err(|capacity| EngineError::Rejected { queue: "management", capacity })?;
            owners.push(owner.clone());
            Running { all: Arc::clone(&self.long), owner }
        };
        let job = move || {
            let _running = running;
            time_slice::restore();
            job();
        };
        let spawned = thread::Builder::new().name("sparrow-long".into()).spawn(job);
        spawned.map(drop).map_err(|error| EngineError::internal(format!("no thread: {error}")))
    }

    /// Statistics of the search lane and of the write lane, in this order.
    pub(crate) fn stats(&self) -> [LaneStats; 2] {
        [self.read.stats(), self.write.stats()]
    }

    /// Stops the workers once they have done everything that is queued already.
    pub(crate) fn close(&self) {
        for lane in [&self.read, &self.infer, &self.write, &self.look, &self.trial, &self.watch, &self.health]
        {
            lane.close();
        }
        self.inline.close();
    }
}

/// Counts one long operation as running until it is dropped.
struct Running {
    all: Arc<Mutex<Vec<Option<Holder>>>>,
    owner: Option<Holder>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut owners = self.all.lock();
        if let Some(place) = owners.iter().position(|owner| *owner == self.owner) {
            owners.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests;
