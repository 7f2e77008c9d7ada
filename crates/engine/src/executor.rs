//! The engine's threads: lanes of workers for short operations, a thread of its own for each long one.
//!
//! Workers block: on the encoder's queue, on the disk. So there are more of them than cores; the work that needs a
//! core is bounded elsewhere (the encoder has its own threads). Reads that need a core themselves are bounded here: more of them at once
//! than there are cores would make all of them slower, and leave the thread that takes requests no time. One that takes long is
//! no longer counted, so that short ones get past it.

mod lane;
mod shedding;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::EngineError;
use crate::request::{CancelFlag, Reply};
pub(crate) use lane::{Lane, lane_of};
use shedding::Shedding;

/// Waiting operations above which a lane refuses more.
const LANE_CAPACITY: usize = 2000;

/// Bytes of waiting bodies above which a lane refuses more, unless nothing waits.
const LANE_BYTES: usize = 256 << 20;

/// How long the first that waits may have waited before a lane refuses more: so many times as long as an operation takes, and
/// within these bounds. An answer that comes later than that is of no use to most who wait for it.
const PATIENCE_TIMES: u32 = 3;
const PATIENCE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// How long an operation is one of those of which only some run at once: usually, and while a lane lets only a few wait. Then a
/// machine that is slow for being busy would soon have all workers at work.
const SHORT: Duration = Duration::from_millis(100);
const SHORT_WHEN_SHEDDING: Duration = Duration::from_secs(1);

/// Long operations that may run at once. Each has a thread.
const LONG_CAPACITY: usize = 128;

type Done = Box<dyn FnOnce(Result<Reply, EngineError>) + Send>;
type Job = Box<dyn FnOnce() + Send>;

/// Workers and what waits for them. A job goes to the worker that became idle last: its stack and its core's caches
/// are still warm, and of many workers only as many run as are needed.
struct Queue {
    name: &'static str,
    /// Operations that may run at once, besides those that wait for something or have run for long.
    at_once: usize,
    state: Mutex<State>,
    /// One for each worker.
    bells: Vec<Condvar>,
}

struct Waiting {
    job: Job,
    /// Whether anybody still wants it.
    cancel: CancelFlag,
    since: Instant,
    bytes: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Bytes of their bodies.
    waiting_bytes: usize,
    /// How long an operation takes, the later ones counting more.
    usual: Duration,
    /// Whether only a few may wait.
    shedding: Shedding,
    /// A job for each idle worker that was woken for it.
    handed: Vec<Option<Job>>,
    /// Since when each worker needs a core.
    begun: Vec<Option<Instant>>,
    /// The idle worker that looks when one more may run.
    watcher: Option<usize>,
    /// Idle workers, the last one on top.
    idle: Vec<usize>,
    closed: bool,
    /// Jobs that workers began.
    started: u64,
    rejected: u64,
    /// Most workers that were busy at once.
    largest: usize,
}

impl State {
    /// Whether an operation that holds so many bytes may not wait.
    fn refuses(&mut self, bytes: usize, at_once: usize) -> bool {
        let now = Instant::now();
        let patience = (self.usual * PATIENCE_TIMES).clamp(*PATIENCE.start(), *PATIENCE.end());
        let is_late = self.waiting.front().is_some_and(|first| now.duration_since(first.since) > patience);
        let is_large = !self.waiting.is_empty() && self.waiting_bytes + bytes > LANE_BYTES;
        let is_shed = self.shedding.refuses(self.waiting.len(), at_once, is_late, now);
        self.waiting.len() >= LANE_CAPACITY || is_shed || is_large
    }

    /// Whether one more may run now.
    fn may_begin(&self, at_once: usize, now: Instant) -> bool {
        let at_once = (at_once - usize::from(self.shedding.is_on())).max(1);
        let short = self.short();
        let working = self.begun.iter().flatten().filter(|begun| now.duration_since(**begun) < short);
        self.closed || working.count() < at_once
    }

    /// How long an operation is one of those of which only some run at once.
    fn short(&self) -> Duration {
        if self.shedding.is_on() { SHORT_WHEN_SHEDDING } else { SHORT }
    }

    /// The operation that a worker is to begin now, if there is one.
    fn take_next(&mut self, worker: usize, at_once: usize) -> Option<Job> {
        if self.waiting.is_empty() {
            return None;
        }
        let now = Instant::now();
        if !self.may_begin(at_once, now) {
            return None;
        }
        let Waiting { job, bytes, .. } = self.waiting.pop_front()?;
        self.waiting_bytes -= bytes;
        self.begun[worker] = Some(now);
        self.started += 1;
        Some(job)
    }

    /// When it is to be looked again whether one that runs has run for long.
    fn next_long(&self) -> Instant {
        let now = Instant::now();
        let ends = self.begun.iter().flatten().map(|begun| *begun + self.short());
        ends.filter(|end| *end > now).min().unwrap_or(now)
    }

    /// Takes out what nobody waits for.
    fn take_cancelled(&mut self) -> Vec<Job> {
        let all = std::mem::take(&mut self.waiting);
        let (gone, left): (VecDeque<_>, _) = all.into_iter().partition(|one| one.cancel.is_cancelled());
        self.waiting = left;
        self.waiting_bytes -= gone.iter().map(|one| one.bytes).sum::<usize>();
        gone.into_iter().map(|one| one.job).collect()
    }
}

/// A lane as it is now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneStats {
    pub(crate) name: &'static str,
    pub(crate) workers: usize,
    pub(crate) active: usize,
    pub(crate) waiting: usize,
    /// Most operations that may wait.
    pub(crate) capacity: usize,
    pub(crate) rejected: u64,
    pub(crate) largest: usize,
    pub(crate) completed: u64,
}

/// The lanes.
pub(crate) struct Executor {
    read: Arc<Queue>,
    write: Arc<Queue>,
    look: Arc<Queue>,
    trial: Arc<Queue>,
    watch: Arc<Queue>,
    health: Arc<Queue>,
    /// Long operations that run.
    long: Arc<AtomicUsize>,
}

impl Executor {
    /// Starts the workers of a machine with this many cores.
    pub(crate) fn new(cores: usize) -> Self {
        // Enough readers that their texts fill a batch of the encoder while others score.
        Self {
            read: Queue::start("search", (cores * 8).clamp(16, 128), cores),
            write: Queue::start("write", (cores * 2).max(8), usize::MAX),
            look: Queue::start("metadata", cores.clamp(4, 16), usize::MAX),
            trial: Queue::start("trial", cores.clamp(2, 16), usize::MAX),
            watch: Queue::start("watch", 2, usize::MAX),
            health: Queue::start("health", 1, usize::MAX),
            long: Arc::default(),
        }
    }

    /// Runs `work` and hands its result to `done`, whatever happens. `bytes` is what it holds while it waits.
    pub(crate) fn run(
        &self,
        lane: Lane,
        bytes: usize,
        cancel: &CancelFlag,
        work: impl FnOnce() -> Result<Reply, EngineError> + Send + 'static,
        done: Done,
    ) {
        self.post(lane, bytes, cancel, done, move |done| done(guarded(work)));
    }

    /// Hands `done` to `work`, which calls it now or later. If nobody can work on it, it is called with the reason.
    pub(crate) fn post(
        &self,
        lane: Lane,
        bytes: usize,
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
        let sent = match lane {
            Lane::Read => self.read.send(job, bytes, cancel),
            Lane::Write => self.write.send(job, bytes, cancel),
            Lane::Look => self.look.send(job, bytes, cancel),
            Lane::Trial => self.trial.send(job, bytes, cancel),
            Lane::Watch => self.watch.send(job, bytes, cancel),
            Lane::Health => self.health.send(job, bytes, cancel),
            Lane::Long => self.run_long(job),
        };
        if let Err(error) = sent
            && let Some(done) = slot.lock().take()
        {
            done(Err(error));
        }
    }

    fn run_long(&self, job: Job) -> Result<(), EngineError> {
        let running = Running(Arc::clone(&self.long));
        if running.0.fetch_add(1, Relaxed) >= LONG_CAPACITY {
            return Err(EngineError::Rejected { queue: "management", capacity: LONG_CAPACITY });
        }
        let job = move || {
            let _running = running;
            job();
        };
        let spawned = thread::Builder::new().name("sparrow-long".into()).spawn(job);
        spawned.map(drop).map_err(|error| EngineError::internal(format!("no thread: {error}")))
    }

    /// The lanes by name.
    pub(crate) fn stats(&self) -> [LaneStats; 2] {
        [self.read.stats(), self.write.stats()]
    }

    /// Lets the workers end after what waits already.
    pub(crate) fn close(&self) {
        for lane in [&self.read, &self.write, &self.look, &self.trial, &self.watch, &self.health] {
            lane.close();
        }
    }
}

/// A long operation, counted until this is dropped.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Queue {
    fn start(name: &'static str, workers: usize, at_once: usize) -> Arc<Self> {
        let handed = (0..workers).map(|_| None).collect();
        let state = State { handed, begun: vec![None; workers], ..State::default() };
        let bells = (0..workers).map(|_| Condvar::new()).collect();
        let at_once = at_once.clamp(1, workers);
        let queue = Arc::new(Self { name, at_once, state: Mutex::new(state), bells });
        for number in 0..workers {
            let of_worker = Arc::clone(&queue);
            let worker = move || {
                WORKER.set(Some((Arc::clone(&of_worker), number)));
                while let Some(job) = of_worker.next(number) {
                    let begun = Instant::now();
                    job();
                    of_worker.note(begun.elapsed());
                }
            };
            if let Err(error) = thread::Builder::new().name(format!("sparrow-{name}-{number}")).spawn(worker)
            {
                tracing::error!(%error, name, "a worker thread cannot start");
            }
        }
        queue
    }

    /// Waits for the next job of a worker; `None` when the queue is closed and empty.
    fn next(&self, worker: usize) -> Option<Job> {
        let mut state = self.state.lock();
        state.begun[worker] = None;
        if let Some(job) = state.take_next(worker, self.at_once) {
            self.watch(&mut state);
            return Some(job);
        }
        if state.closed {
            return None;
        }
        state.idle.push(worker);
        loop {
            if state.watcher == Some(worker) && !state.waiting.is_empty() {
                let end = state.next_long();
                self.bells[worker].wait_until(&mut state, end);
            } else {
                state.watcher = state.watcher.filter(|watcher| *watcher != worker);
                self.bells[worker].wait(&mut state);
            }
            let handed = state.handed[worker].take();
            if handed.is_some() {
                state.started += 1;
            }
            let next = handed.or_else(|| state.take_next(worker, self.at_once));
            if next.is_some() {
                state.idle.retain(|idle| *idle != worker);
                state.watcher = state.watcher.filter(|watcher| *watcher != worker);
                self.watch(&mut state);
                return next;
            }
            if state.closed {
                return None;
            }
        }
    }

    /// Lets an idle worker look after what waits, if there is one.
    fn watch(&self, state: &mut State) {
        if !state.waiting.is_empty()
            && state.watcher.is_none()
            && let Some(worker) = state.idle.last().copied()
        {
            state.watcher = Some(worker);
            self.bells[worker].notify_one();
        }
    }

    /// A worker needs a core from now on, or needs none.
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

    /// Remembers how long an operation took.
    fn note(&self, took: Duration) {
        let mut state = self.state.lock();
        state.usual = (state.usual * 15 + took) / 16;
    }

    fn stats(&self) -> LaneStats {
        let state = self.state.lock();
        let workers = self.bells.len();
        let active = workers - state.idle.len();
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

    fn send(&self, job: Job, bytes: usize, cancel: &CancelFlag) -> Result<(), EngineError> {
        let Some(job) = self.take_in(job, bytes, cancel)? else { return Ok(()) };
        // Nobody waits for those whose callers are gone: they are answered here, which takes no work.
        let gone = self.state.lock().take_cancelled();
        if !gone.is_empty() {
            gone.into_iter().for_each(|job| job());
            let Some(_) = self.take_in(job, bytes, cancel)? else { return Ok(()) };
        }
        let mut state = self.state.lock();
        state.rejected += 1;
        Err(EngineError::Rejected { queue: self.name, capacity: state.waiting.len() })
    }

    /// Hands a job to an idle worker or lets it wait; gives it back if it may not wait.
    fn take_in(&self, job: Job, bytes: usize, cancel: &CancelFlag) -> Result<Option<Job>, EngineError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(EngineError::internal("the engine is closed"));
        }
        let now = Instant::now();
        if state.waiting.is_empty()
            && state.may_begin(self.at_once, now)
            && let Some(worker) = state.idle.pop()
        {
            state.shedding.passed(now);
            state.begun[worker] = Some(now);
            state.handed[worker] = Some(job);
            state.largest = state.largest.max(self.bells.len() - state.idle.len());
            drop(state);
            self.bells[worker].notify_one();
            return Ok(None);
        }
        if state.refuses(bytes, self.at_once) {
            return Ok(Some(job));
        }
        state.waiting_bytes += bytes;
        state.waiting.push_back(Waiting { job, cancel: cancel.clone(), since: now, bytes });
        self.watch(&mut state);
        Ok(None)
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.bells.iter().for_each(|bell| {
            bell.notify_one();
        });
    }
}

/// A worker that needs a core again when this is dropped, also by a panic.
struct Back(Arc<Queue>, usize);

impl Drop for Back {
    fn drop(&mut self) {
        self.0.needs_core(self.1, Some(Instant::now()));
    }
}

thread_local! {
    /// The lane and the number of the worker that this thread is.
    static WORKER: RefCell<Option<(Arc<Queue>, usize)>> = const { RefCell::new(None) };
}

/// Does what needs no core of this thread, such as waiting for the encoder: another operation of its lane may run meanwhile.
pub(crate) fn waiting<T>(work: impl FnOnce() -> T) -> T {
    let worker = WORKER.with_borrow(Clone::clone);
    let Some((queue, number)) = worker else { return work() };
    queue.needs_core(number, None);
    let _back = Back(queue, number);
    work()
}

/// A panic is a bug of ours: the request gets a 500 and the server stays up.
fn guarded(work: impl FnOnce() -> Result<Reply, EngineError>) -> Result<Reply, EngineError> {
    caught(work).unwrap_or_else(|message| {
        tracing::error!(message, "an operation panicked");
        Err(EngineError::internal(format!("internal error: {message}")))
    })
}

/// What `work` gives, or the message with which it panicked.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use crate::request::Request;

    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_worker_lives_on() {
        let executor = Executor::new(1);
        for lane in [Lane::Read, Lane::Write, Lane::Look, Lane::Trial, Lane::Watch, Lane::Health, Lane::Long]
        {
            for _ in 0..20 {
                let (sender, receiver) = mpsc::channel();
                executor.run(
                    lane,
                    0,
                    &CancelFlag::default(),
                    || panic!("expected by the test"),
                    Box::new(move |result| sender.send(result).unwrap()),
                );
                let error = receiver.recv().unwrap().unwrap_err();
                assert_eq!(error.status(), 500);
                assert!(error.reason().contains("expected by the test"));
            }
        }
        executor.close();
        let (sender, receiver) = mpsc::channel();
        executor.run(
            Lane::Read,
            0,
            &CancelFlag::default(),
            || Ok(Reply::acknowledged()),
            Box::new(move |result| sender.send(result).unwrap()),
        );
        assert!(receiver.recv().unwrap().is_err());
    }
    /// Workers that are kept busy until the sender is dropped.
    fn busy(executor: &Executor, lane: Lane, workers: usize) -> mpsc::Sender<()> {
        let (sender, receiver) = mpsc::channel::<()>();
        let receiver = Arc::new(Mutex::new(receiver));
        let (begun, begins) = mpsc::channel();
        for _ in 0..workers {
            let (receiver, begun) = (receiver.clone(), begun.clone());
            let wait = move || {
                begun.send(()).unwrap();
                let _ = receiver.lock().recv();
                Ok(Reply::acknowledged())
            };
            executor.run(lane, 0, &CancelFlag::default(), wait, Box::new(|_| {}));
        }
        begins.iter().take(workers).for_each(drop);
        sender
    }

    fn refused(executor: &Executor, lane: Lane, bytes: usize) -> bool {
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |result: Result<Reply, EngineError>| {
            let _ = sender.send(result.is_err());
        });
        executor.run(lane, bytes, &CancelFlag::default(), || Ok(Reply::acknowledged()), done);
        receiver.recv_timeout(Duration::from_millis(20)).unwrap_or(false)
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_in_time() {
        let executor = Executor::new(1);
        let held = busy(&executor, Lane::Write, 8);
        // The largest body waits if nothing else does.
        assert!(!refused(&executor, Lane::Write, LANE_BYTES * 2));
        assert!(refused(&executor, Lane::Write, 1));
        drop(held);
        let held = busy(&executor, Lane::Read, 16);
        assert!(!refused(&executor, Lane::Read, 1));
        assert!(!refused(&executor, Lane::Read, 1));
        thread::sleep(*PATIENCE.start());
        assert!(refused(&executor, Lane::Read, 1));
        // Health is asked meanwhile.
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |result: Result<Reply, EngineError>| sender.send(result).unwrap());
        executor.run(Lane::Health, 0, &CancelFlag::default(), || Ok(Reply::acknowledged()), done);
        assert!(receiver.recv_timeout(Duration::from_secs(5)).unwrap().is_ok());
        drop(held);
    }

    #[test]
    fn reads_run_as_the_cores_allow_and_get_past_those_that_wait_or_take_long() {
        let executor = Executor::new(1);
        // What takes long holds the only core for a short time only.
        let begun = Instant::now();
        let held = busy(&executor, Lane::Read, 1);
        assert!(is_answered(&executor, Lane::Read));
        assert!(begun.elapsed() >= SHORT, "one after the other");
        // What waits for the encoder holds none.
        let (sender, receiver) = mpsc::channel::<()>();
        let (begins, begun) = mpsc::channel();
        let wait = move || {
            waiting(|| {
                begins.send(()).unwrap();
                let _ = receiver.recv();
            });
            Ok(Reply::acknowledged())
        };
        executor.run(Lane::Read, 0, &CancelFlag::default(), wait, Box::new(|_| {}));
        begun.recv().unwrap();
        let working = executor.read.state.lock().begun.iter().flatten().count();
        assert_eq!(working, 1, "only the long one needs a core");
        assert!(is_answered(&executor, Lane::Read));
        drop((held, sender));
    }

    #[test]
    fn overload_makes_the_queue_short_until_it_is_over() {
        let executor = Executor::new(2);
        let held = busy(&executor, Lane::Read, 16);
        let cancel = CancelFlag::default();
        for _ in 0..10 {
            executor.run(Lane::Read, 0, &cancel, || Ok(Reply::acknowledged()), Box::new(|_| {}));
        }
        assert!(!refused(&executor, Lane::Read, 1), "as many as come");
        thread::sleep(*PATIENCE.start());
        assert!(refused(&executor, Lane::Read, 1), "the first is late");
        executor.read.state.lock().waiting.iter().for_each(|one| one.cancel.cancel());
        assert!(!refused(&executor, Lane::Read, 1));
        assert!(!refused(&executor, Lane::Read, 1));
        assert!(refused(&executor, Lane::Read, 1), "only as many as are worked on at once");
        drop(held);
    }

    #[test]
    fn what_nobody_waits_for_any_longer_keeps_nobody_out() {
        let executor = Executor::new(1);
        let held = busy(&executor, Lane::Write, 8);
        let cancel = CancelFlag::default();
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |result: Result<Reply, EngineError>| drop(sender.send(result)));
        executor.run(Lane::Write, LANE_BYTES * 2, &cancel, || Err(EngineError::Cancelled), done);
        assert!(refused(&executor, Lane::Write, 1));
        cancel.cancel();
        assert!(!refused(&executor, Lane::Write, 1));
        assert!(matches!(receiver.recv().unwrap(), Err(EngineError::Cancelled)));
        drop(held);
    }

    #[test]
    fn long_operations_are_bounded_and_can_be_seen_and_ended_all_the_same() {
        let executor = Executor::new(1);
        let held = busy(&executor, Lane::Long, LONG_CAPACITY);
        assert!(refused(&executor, Lane::Long, 0));
        for op in ["list_tasks", "get_task", "cancel_task", "cancel_tasks", "instruments"] {
            assert!(is_answered(&executor, lane(op, "")), "{op}");
        }
        assert_eq!(lane("get_task", "true"), Lane::Long, "who waits is one of them");
        drop(held);
    }

    #[test]
    fn what_writes_nothing_keeps_no_write_waiting() {
        let executor = Executor::new(1);
        let held: Vec<_> = ["simulate_pipeline", "analyze", "cat_indices", "index_stats", "get_mapping"]
            .map(|op| {
                let lane = lane(op, "");
                assert_ne!(lane, Lane::Write, "{op}");
                lane
            })
            .into_iter()
            .take(1)
            .map(|lane| busy(&executor, lane, 2))
            .collect();
        assert!(is_answered(&executor, lane("index_doc", "")));
        assert!(is_answered(&executor, lane("get_mapping", "")), "and no look at the metadata");
        drop(held);
    }

    fn lane(op: &str, wait: &str) -> Lane {
        let mut request = Request { op: op.to_owned(), ..Request::default() };
        if !wait.is_empty() {
            request.query.insert("wait_for_completion".to_owned(), wait.to_owned());
        }
        lane_of(&request)
    }

    /// Whether an operation is carried out while others are held.
    fn is_answered(executor: &Executor, lane: Lane) -> bool {
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |result: Result<Reply, EngineError>| {
            let _ = sender.send(result.is_ok());
        });
        executor.run(lane, 0, &CancelFlag::default(), || Ok(Reply::acknowledged()), done);
        receiver.recv_timeout(Duration::from_secs(20)).unwrap_or(false)
    }
}
