//! The workers of a lane, and the operations that wait for them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::job::{Job, Load};
use super::state::{LANE_CAPACITY, State};
use sparrow_admin::lanes::LaneStats;
use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_request::waits::{Worker, work_for};
use sparrow_runtime::processors::Busy;

/// How long a worker has been idle when it gives the memory of its work back to the system. With a shorter
/// time, operations that come now and then would have to get it from the system each time.
pub(super) const IDLE: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(5) };

/// How many times as many threads as a lane has workers it starts at most for those who have none: an owner whose operation waits while the
/// operations of others hold all workers gets a thread for one operation at a time, which ends when nobody needs it.
const RELIEF_TIMES: usize = 4;

/// Number of operations after which the usual duration of one is known.
const ENOUGH: u64 = 16;

/// The workers of a lane and the operations that wait for them. A job goes to the worker that became idle
/// last: its stack and its core's caches are still warm, and no more workers run than are needed.
pub(super) struct Queue {
    name: &'static str,
    /// Operations that may run at once, besides those that wait for something or have run for long.
    at_once: usize,
    pub(super) state: Mutex<State>,
    /// Number of workers that are always there. Those that have higher numbers relieve them.
    workers: usize,
    /// One for each worker, to wake it.
    bells: Vec<Condvar>,
    /// Called by each worker first.
    prepare: fn(),
    /// Called once by a worker that has become idle.
    rest: Option<fn(bool)>,
}

impl Queue {
    /// Starts the workers, each of which calls `prepare` first.
    pub(super) fn start(
        name: &'static str,
        workers: usize,
        at_once: usize,
        prepare: fn(),
        rest: Option<fn(bool)>,
    ) -> Arc<Self> {
        let handed = (0..workers).map(|_| None).collect();
        let all = workers * (1 + RELIEF_TIMES);
        let state = State {
            handed,
            working: vec![None; all],
            begun: vec![None; all],
            reliefs_left: (workers..all).rev().collect(),
            ..State::default()
        };
        let bells = (0..all).map(|_| Condvar::new()).collect();
        let at_once = at_once.clamp(1, workers);
        let queue = Arc::new(Self { name, at_once, workers, state: Mutex::new(state), bells, prepare, rest });
        for number in 0..workers {
            let of_worker = Arc::clone(&queue);
            let worker = move || {
                prepare();
                work_for(Arc::new(LaneWorker { queue: Arc::clone(&of_worker), number }));
                while let Some(job) = of_worker.next(number) {
                    of_worker.carry_out(job);
                }
            };
            if let Err(error) = thread::Builder::new().name(format!("sparrow-{name}-{number}")).spawn(worker)
            {
                tracing::error!(%error, name, "a worker thread cannot start");
            }
        }
        queue
    }

    fn carry_out(&self, job: Job) {
        let begun = Instant::now();
        let busy = Busy::begin();
        job();
        drop(busy);
        self.note(begun.elapsed());
    }

    /// Starts a thread for an owner that has no worker, if somebody needs one and there may be one more.
    fn relieve(self: &Arc<Self>, state: &mut State) {
        if !state.needs_relief() {
            return;
        }
        let Some(number) = state.reliefs_left.pop() else { return };
        let queue = Arc::clone(self);
        let relief = move || {
            (queue.prepare)();
            work_for(Arc::new(LaneWorker { queue: Arc::clone(&queue), number }));
            while let Some(job) = queue.next_to_relieve(number) {
                queue.carry_out(job);
            }
        };
        state.reliefs_waiting += 1;
        if thread::Builder::new().name(format!("sparrow-{}-{number}", self.name)).spawn(relief).is_err() {
            state.reliefs_waiting -= 1;
            state.reliefs_left.push(number);
        }
    }

    /// Waits for the next job of a relief; `None` when nobody needs it any more.
    fn next_to_relieve(self: &Arc<Self>, relief: usize) -> Option<Job> {
        let mut state = self.state.lock();
        // One that has had an operation waits for the next as one that has just come.
        if state.working[relief].take().is_some() {
            state.reliefs_waiting += 1;
        }
        state.begun[relief] = None;
        loop {
            let job = state.take_at(relief, self.at_once, State::place_to_relieve);
            if job.is_some() || state.place_to_relieve().is_none() {
                state.reliefs_waiting -= 1;
                if job.is_none() {
                    state.reliefs_left.push(relief);
                }
                self.watch(&mut state);
                return job;
            }
            let end = state.next_long();
            self.bells[relief].wait_until(&mut state, end);
        }
    }

    /// Waits for the next job of a worker; `None` when the queue is closed and empty.
    fn next(self: &Arc<Self>, worker: usize) -> Option<Job> {
        let mut state = self.state.lock();
        state.begun[worker] = None;
        state.working[worker] = None;
        if let Some(job) = state.take_next(worker, self.at_once) {
            self.watch(&mut state);
            return Some(job);
        }
        if state.closed {
            return None;
        }
        state.idle.push(worker);
        let mut rest = self.rest;
        loop {
            // What waits may be all that is left to do: then no operation that comes or ends has anybody look after it.
            self.watch(&mut state);
            if state.watcher == Some(worker) && state.next_place().is_some() {
                let end = state.next_long();
                self.bells[worker].wait_until(&mut state, end);
            } else {
                state.watcher = state.watcher.filter(|watcher| *watcher != worker);
                match rest {
                    None => self.bells[worker].wait(&mut state),
                    Some(work) => {
                        let idle = self.bells[worker].wait_for(&mut state, IDLE).timed_out();
                        if idle && state.handed[worker].is_none() && state.waiting.is_empty() {
                            rest = None;
                            // Others take what comes meanwhile, and it is the last one to be woken afterwards.
                            state.idle.retain(|idle| *idle != worker);
                            MutexGuard::unlocked(&mut state, || work(true));
                            state.idle.insert(0, worker);
                        }
                    }
                }
            }
            if let Some(job) = self.take(&mut state, worker) {
                return Some(job);
            }
            if state.closed {
                return None;
            }
        }
    }

    /// The job that an idle worker was handed, or else the next waiting one if it may begin.
    fn take(self: &Arc<Self>, state: &mut State, worker: usize) -> Option<Job> {
        let handed = state.handed[worker].take();
        if handed.is_some() {
            state.started += 1;
        }
        let next = handed.or_else(|| state.take_next(worker, self.at_once))?;
        state.idle.retain(|idle| *idle != worker);
        state.watcher = state.watcher.filter(|watcher| *watcher != worker);
        self.watch(state);
        Some(next)
    }

    /// Wakes an idle worker, if there is one, to start the waiting operations when they may run; for those that get none a thread is started.
    fn watch(self: &Arc<Self>, state: &mut State) {
        if state.waiting.is_empty() {
            return;
        }
        self.relieve(state);
        if state.watcher.is_none()
            && state.next_place().is_some()
            && let Some(worker) = state.idle.last().copied()
        {
            state.watcher = Some(worker);
            self.bells[worker].notify_one();
        }
    }

    /// Notes since when a worker needs a core, or with `None` that it needs none.
    fn needs_core(&self, worker: usize, begun: Option<Instant>) {
        let mut state = self.state.lock();
        state.begun[worker] = begun;
        if begun.is_none()
            && !state.waiting.is_empty()
            && let Some(idle) = state.watcher.or_else(|| state.idle.last().copied())
        {
            state.watcher = Some(idle);
            self.bells[idle].notify_one();
        }
    }

    /// Adds the duration of an operation to the moving average.
    fn note(&self, took: Duration) {
        self.state.lock().note(took);
    }

    pub(super) fn stats(&self) -> LaneStats {
        let state = self.state.lock();
        let workers = self.workers;
        let reliefs = state.working[workers..].iter().flatten().count();
        let active = workers - state.idle.len() + reliefs;
        LaneStats {
            name: self.name,
            workers,
            active,
            waiting: state.waiting.len(),
            capacity: LANE_CAPACITY,
            rejected: state.rejected,
            largest: state.largest.max(active),
            completed: state.started.saturating_sub(active as u64),
        }
    }

    /// Whether an operation may be attempted by the thread that asks for it: those of this lane are usually short, none
    /// needs a core now or waits for a worker, and none was given up lately.
    pub(super) fn may_attempt(&self, usually: Duration) -> bool {
        let mut state = self.state.lock();
        if state.not_before.is_some_and(|end| end > Instant::now()) {
            return false;
        }
        state.not_before = None;
        let short = state.started >= ENOUGH && state.usual <= usually && state.hold_off == 0;
        let idle = state.waiting.is_empty() && state.begun.iter().all(Option::is_none);
        short && idle && !state.shedding.is_on() && !state.closed
    }

    /// Notes an operation that the thread that asked for it has carried out.
    pub(super) fn note_attempt(&self, took: Duration) {
        let mut state = self.state.lock();
        state.started += 1;
        state.note(took);
    }

    /// Notes that such an operation was given up after a time: none is attempted for `pause`, and until `hold_off` short ones
    /// have been carried out.
    pub(super) fn note_given_up(&self, took: Duration, hold_off: u32, pause: Duration) {
        let mut state = self.state.lock();
        state.note(took);
        state.hold_off = hold_off;
        state.not_before = (!pause.is_zero()).then(|| Instant::now() + pause);
    }

    pub(super) fn send(
        self: &Arc<Self>,
        job: Job,
        load: Load,
        cancel: &CancelFlag,
    ) -> Result<(), EngineError> {
        let Some(job) = self.take_in(job, &load, cancel)? else { return Ok(()) };
        // Nobody waits for those whose callers are gone: they are answered here, which takes no work.
        let gone = self.state.lock().take_cancelled();
        if !gone.is_empty() {
            gone.into_iter().for_each(|job| job());
            let Some(_) = self.take_in(job, &load, cancel)? else { return Ok(()) };
        }
        let mut state = self.state.lock();
        state.rejected += 1;
        Err(EngineError::Rejected { queue: self.name, capacity: state.waiting.len() })
    }

    /// Hands a job to an idle worker or queues it; gives it back if it is refused.
    fn take_in(
        self: &Arc<Self>,
        job: Job,
        load: &Load,
        cancel: &CancelFlag,
    ) -> Result<Option<Job>, EngineError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(EngineError::internal("the engine is closed"));
        }
        let now = Instant::now();
        if state.waiting.is_empty()
            && state.may_begin(self.at_once, now)
            && state.may_have(&load.owner)
            && let Some(worker) = state.idle.pop()
        {
            state.working[worker] = Some(load.owner.clone());
            state.shedding.passed(now);
            state.begun[worker] = Some(now);
            state.handed[worker] = Some(job);
            state.largest = state.largest.max(self.workers - state.idle.len());
            drop(state);
            self.bells[worker].notify_one();
            return Ok(None);
        }
        if state.refuses(load, self.at_once) {
            return Ok(Some(job));
        }
        state.queue(job, load, cancel, now);
        self.watch(&mut state);
        Ok(None)
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.bells.iter().for_each(|bell| {
            bell.notify_one();
        });
    }
}

/// A worker of a lane.
struct LaneWorker {
    queue: Arc<Queue>,
    number: usize,
}

impl Worker for LaneWorker {
    fn needs_core(&self, needs: bool) {
        self.queue.needs_core(self.number, needs.then(Instant::now));
    }
}
