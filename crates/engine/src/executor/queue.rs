//! The workers of a lane, and the operations that wait for them.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Load;
use super::inline::USUALLY_SHORT;
use super::shedding::Shedding;
use sparrow_admin::lanes::LaneStats;
use sparrow_call::error::EngineError;
use sparrow_call::request::CancelFlag;
use sparrow_call::rights::Holder;
use sparrow_call::waits::{Worker, work_for};
use sparrow_types::processors::Busy;

/// Number of waiting operations above which a lane refuses more.
const LANE_CAPACITY: usize = 2000;

/// Bytes of waiting bodies above which a lane refuses more, unless nothing waits.
pub(super) const LANE_BYTES: usize = 256 << 20;

/// How long the oldest waiting operation may have waited before a lane refuses more: this many times the
/// usual duration of an operation, within the bounds of [`PATIENCE`]. A later answer is of no use to most
/// clients.
const PATIENCE_TIMES: u32 = 3;
pub(super) const PATIENCE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// How long a running operation counts against the number that may run at once: normally this long, and
/// [`SHORT_WHEN_SHEDDING`] while the lane sheds load. Otherwise a machine that is slow because it is busy
/// would soon have all workers running.
pub(super) const SHORT: Duration = Duration::from_millis(100);
const SHORT_WHEN_SHEDDING: Duration = Duration::from_secs(1);

/// How long a worker has been idle when it gives the memory of its work back to the system. With a shorter
/// time, operations that come now and then would have to get it from the system each time.
pub(super) const IDLE: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(5) };

/// How many times as many workers as are free an owner may keep: of sixteen it has twelve, whose operations may all wait for a model, and
/// those of others find workers.
const OWN_TIMES: usize = 3;

/// Of so many workers one is left to callers without restrictions, whatever all restricted keys together ask for.
const ALL_BUT_ONE_OF: usize = 8;

/// How many times as many threads as a lane has workers it starts at most for those who have none: an owner whose operation waits while the
/// operations of others hold all workers gets a thread for one operation at a time, which ends when nobody needs it.
const RELIEF_TIMES: usize = 4;

/// What an owner may have waiting even where there is no room for more of others: so many operations, with so many bytes.
const FEW_WAITING: usize = 16;
const FEW_BYTES: usize = 4 << 20;

/// Number of operations after which the usual duration of one is known.
const ENOUGH: u64 = 16;

pub(super) type Job = Box<dyn FnOnce() + Send>;

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

pub(super) struct Waiting {
    job: Job,
    /// Set when the caller no longer wants the answer.
    pub(super) cancel: CancelFlag,
    since: Instant,
    bytes: usize,
    owner: Option<Holder>,
    /// In each round at most one operation of each owner begins.
    round: u64,
}

#[derive(Default)]
pub(super) struct State {
    /// In the order in which they begin: by rounds, and in each round as they came. An owner of many operations takes turns with the
    /// owners of few, whose operations would otherwise wait for all of the many.
    pub(super) waiting: VecDeque<Waiting>,
    /// Round of the operation that was taken out last.
    round: u64,
    /// Total bytes of the waiting operations' bodies.
    waiting_bytes: usize,
    /// Moving average of how long an operation takes.
    usual: Duration,
    /// Whether the lane sheds load, and so lets only a few operations wait.
    shedding: Shedding,
    /// For each worker, the job that it was woken for while idle.
    handed: Vec<Option<Job>>,
    /// For each worker, the owner of its operation; none while it has none.
    working: Vec<Option<Option<Holder>>>,
    /// For each worker, since when its operation has needed a core; none while it needs none.
    pub(super) begun: Vec<Option<Instant>>,
    /// The reliefs that have not begun an operation yet.
    reliefs_waiting: usize,
    /// Numbers of the reliefs that are not there.
    reliefs_left: Vec<usize>,
    /// The idle worker that checks when one more waiting operation may run.
    watcher: Option<usize>,
    /// Numbers of the idle workers, the one that became idle last at the end.
    idle: Vec<usize>,
    closed: bool,
    /// Number of further short operations after which one may be attempted by the thread that asks for it.
    hold_off: u32,
    /// When one may be at the earliest; none if that is over.
    not_before: Option<Instant>,
    /// Number of operations that have begun since the start.
    started: u64,
    rejected: u64,
    /// Most workers that were busy at once.
    largest: usize,
}

impl State {
    /// Whether an operation is refused instead of being queued. Whether its owner's other operations wait too long decides, and how many
    /// they are: those of others begin in turn with them.
    fn refuses(&mut self, load: &Load, at_once: usize) -> bool {
        let now = Instant::now();
        let patience = (self.usual * PATIENCE_TIMES).clamp(*PATIENCE.start(), *PATIENCE.end());
        let mut own = self.waiting.iter().filter(|one| one.owner == load.owner);
        let first = own.next();
        let is_late = first.is_some_and(|first| now.duration_since(first.since) > patience);
        // No more are counted than it takes to know that there are enough.
        let waiting = usize::from(first.is_some()) + own.take(at_once).count();
        let is_shed = self.shedding.refuses(waiting, at_once, is_late, now);
        is_shed || !self.has_room(load)
    }

    /// Whether there is room for one more waiting operation, in number and bytes. An owner of few finds a part more of it.
    fn has_room(&self, load: &Load) -> bool {
        let fits = |more: usize| {
            let bytes = self.waiting_bytes + load.bytes;
            let fits = bytes <= LANE_BYTES + LANE_BYTES / 4 * more;
            self.waiting.len() < LANE_CAPACITY + LANE_CAPACITY / 4 * more && fits
        };
        if self.waiting.is_empty() || fits(0) {
            return true;
        }
        let own = || self.waiting.iter().filter(|one| one.owner == load.owner);
        fits(1)
            && own().count() < FEW_WAITING
            && own().map(|one| one.bytes).sum::<usize>() + load.bytes <= FEW_BYTES
    }

    /// Queues an operation behind those of its round: the one after that of its owner's last operation, or the current one.
    fn queue(&mut self, job: Job, load: &Load, cancel: &CancelFlag, now: Instant) {
        let last = self.waiting.iter().rfind(|one| one.owner == load.owner);
        let round = last.map_or(self.round, |last| last.round + 1);
        let place = self.waiting.partition_point(|one| one.round <= round);
        let (cancel, owner) = (cancel.clone(), load.owner.clone());
        self.waiting.insert(place, Waiting { job, cancel, since: now, bytes: load.bytes, owner, round });
        self.waiting_bytes += load.bytes;
    }

    /// Whether one more operation may run now.
    fn may_begin(&self, at_once: usize, now: Instant) -> bool {
        let at_once = (at_once - usize::from(self.shedding.is_on())).max(1);
        let short = self.short();
        let working = self.begun.iter().flatten().filter(|begun| now.duration_since(**begun) < short);
        self.closed || working.count() < at_once
    }

    /// How long a running operation counts against the number that may run at once.
    fn short(&self) -> Duration {
        if self.shedding.is_on() { SHORT_WHEN_SHEDDING } else { SHORT }
    }

    /// Whether an owner may have one more worker. Callers without restrictions may have all.
    fn may_have(&self, owner: &Option<Holder>) -> bool {
        if owner.is_none() {
            return true;
        }
        let (workers, _) = self.working.split_at(self.handed.len());
        let free = workers.iter().filter(|one| one.is_none()).count();
        free > workers.len() / ALL_BUT_ONE_OF && self.of_owner(owner) < free * OWN_TIMES
    }

    /// Number of operations of an owner that have a worker.
    fn of_owner(&self, owner: &Option<Holder>) -> usize {
        self.working.iter().flatten().filter(|one| *one == owner).count()
    }

    /// The place of the first waiting operation whose owner has no worker.
    fn place_to_relieve(&self) -> Option<usize> {
        self.place_of(|owner| self.of_owner(owner) == 0)
    }

    /// Whether somebody who waits gets none of the workers, and has none. What waits for a core gets one soon.
    fn needs_relief(&self) -> bool {
        let nobody_begins = self.idle.is_empty() || self.next_place().is_none();
        nobody_begins && self.reliefs_waiting == 0 && self.place_to_relieve().is_some()
    }

    /// The place of the first waiting operation whose owner may have one more worker.
    fn next_place(&self) -> Option<usize> {
        self.place_of(|owner| self.may_have(owner))
    }

    /// The place of the first waiting operation of an owner of whom this holds.
    fn place_of(&self, holds: impl Fn(&Option<Holder>) -> bool) -> Option<usize> {
        // Very many of one owner may wait.
        let mut others: Vec<&Option<Holder>> = Vec::new();
        self.waiting.iter().position(|one| {
            if others.contains(&&one.owner) {
                return false;
            }
            let holds = holds(&one.owner);
            if !holds {
                others.push(&one.owner);
            }
            holds
        })
    }

    /// The operation that a worker is to begin now, if there is one.
    fn take_next(&mut self, worker: usize, at_once: usize) -> Option<Job> {
        self.take_at(worker, at_once, Self::next_place)
    }

    /// The operation at a place that a worker is to begin now, if it may.
    fn take_at(
        &mut self,
        worker: usize,
        at_once: usize,
        place: impl Fn(&Self) -> Option<usize>,
    ) -> Option<Job> {
        if self.waiting.is_empty() {
            return None;
        }
        let now = Instant::now();
        if !self.may_begin(at_once, now) {
            return None;
        }
        let place = place(self)?;
        let Waiting { job, bytes, owner, round, .. } = self.waiting.remove(place)?;
        self.waiting_bytes -= bytes;
        self.round = self.round.max(round);
        self.working[worker] = Some(owner);
        self.begun[worker] = Some(now);
        self.started += 1;
        Some(job)
    }

    /// When the next running operation will have run so long that it no longer counts against the limit.
    fn next_long(&self) -> Instant {
        let now = Instant::now();
        let ends = self.begun.iter().flatten().map(|begun| *begun + self.short());
        ends.filter(|end| *end > now).min().unwrap_or(now)
    }

    /// Adds the duration of an operation to the moving average.
    fn note(&mut self, took: Duration) {
        self.usual = (self.usual * 15 + took) / 16;
        if took <= USUALLY_SHORT {
            self.hold_off = self.hold_off.saturating_sub(1);
        }
    }

    /// Takes out the waiting jobs whose callers have cancelled them.
    fn take_cancelled(&mut self) -> Vec<Job> {
        let all = std::mem::take(&mut self.waiting);
        let (gone, left): (VecDeque<_>, _) = all.into_iter().partition(|one| one.cancel.is_cancelled());
        self.waiting = left;
        self.waiting_bytes -= gone.iter().map(|one| one.bytes).sum::<usize>();
        gone.into_iter().map(|one| one.job).collect()
    }
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
    pub(super) fn may_attempt(&self) -> bool {
        let mut state = self.state.lock();
        if state.not_before.is_some_and(|end| end > Instant::now()) {
            return false;
        }
        state.not_before = None;
        let short = state.started >= ENOUGH && state.usual <= USUALLY_SHORT && state.hold_off == 0;
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
