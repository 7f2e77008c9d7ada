//! The engine's threads: lanes of workers for short operations, a thread of its own for each long one.
//!
//! Workers block: on the encoder's queue, on the disk. So there are more of them than cores; the work that needs a
//! core is bounded elsewhere (the encoder has its own threads).

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use sparrow_admin::lanes::LaneStats;
use sparrow_call::caught;
use sparrow_call::error::EngineError;
use sparrow_call::request::{CancelFlag, Reply, Request};

/// Waiting operations above which a lane refuses more.
const LANE_CAPACITY: usize = 2000;

/// Bytes of waiting bodies above which a lane refuses more, unless nothing waits.
const LANE_BYTES: usize = 256 << 20;

/// How long the first that waits may have waited before a lane refuses more: so many times as long as an operation takes, and
/// within these bounds. An answer that comes later than that is of no use to most who wait for it.
const PATIENCE_TIMES: u32 = 3;
const PATIENCE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// Long operations that may run at once. Each has a thread.
const LONG_CAPACITY: usize = 128;

type Done = Box<dyn FnOnce(Result<Reply, EngineError>) + Send>;
type Job = Box<dyn FnOnce() + Send>;

/// Which threads run an operation, so that a bulk load does not starve searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Questions about indices, settings and counts: they wait for no write, and no write waits for them.
    Look,
    /// Trials of pipelines and analyzers, which may take long and change nothing.
    Trial,
    /// Looking at other operations and ending them, and the figures of the process: answered however many long ones there are.
    Watch,
    /// Whether the server is well: answered however busy the others are.
    Health,
    /// Operations that may wait for minutes.
    Long,
}

/// The lane of an operation.
pub(crate) fn lane_of(request: &Request) -> Lane {
    match request.op.as_str() {
        "cluster_health" => Lane::Health,
        "instruments" => Lane::Watch,
        "get_task" | "list_tasks" | "cancel_tasks" | "cancel_task" => {
            let waits = request.query.get("wait_for_completion").is_some_and(|text| text != "false");
            if waits { Lane::Long } else { Lane::Watch }
        }
        "simulate_pipeline" | "simulate_index_template" | "analyze" => Lane::Trial,
        "get_index"
        | "exists_index"
        | "get_mapping"
        | "get_field_mapping"
        | "get_settings"
        | "get_alias"
        | "exists_alias"
        | "resolve_index"
        | "get_data_stream"
        | "get_index_template"
        | "get_component_template"
        | "get_template"
        | "get_pipeline"
        | "get_cluster_settings"
        | "cluster_state"
        | "cluster_figures"
        | "node_indices"
        | "index_stats"
        | "index_segments"
        | "recovery"
        | "pending_tasks"
        | "remote_info"
        | "upgrade_assistance"
        | "ml_info"
        | "get_trained_models"
        | "trained_model_stats"
        | "get_inference" => Lane::Look,
        "reindex" | "update_by_query" | "delete_by_query" | "upgrade_index" | "force_merge"
        | "start_deployment" | "stop_deployment" | "update_deployment" | "clone_index" | "shrink_index"
        | "split_index" | "put_repository" | "get_repository" | "delete_repository" | "verify_repository"
        | "cleanup_repository" | "create_snapshot" | "get_snapshot" | "snapshot_status"
        | "clone_snapshot" | "delete_snapshot" | "snapshot_keys" | "restore_snapshot" | "cat_snapshots" => {
            Lane::Long
        }
        "search"
        | "knn_search"
        | "explain"
        | "msearch"
        | "rank_eval"
        | "scroll"
        | "clear_scroll"
        | "open_point_in_time"
        | "close_point_in_time"
        | "field_caps"
        | "validate_query"
        | "search_shards"
        | "count"
        | "cat_count"
        | "get_doc"
        | "exists_doc"
        | "get_source"
        | "mget"
        | "term_vectors"
        | "multi_term_vectors"
        | "infer_trained_model"
        | "infer" => Lane::Read,
        op if op.starts_with("cat_") => Lane::Look,
        _ => Lane::Write,
    }
}

/// Workers and what waits for them. A job goes to the worker that became idle last: its stack and its core's caches
/// are still warm, and of many workers only as many run as are needed.
struct Queue {
    name: &'static str,
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
    /// A job for each idle worker that was woken for it.
    handed: Vec<Option<Job>>,
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
    fn refuses(&self, bytes: usize) -> bool {
        let patience = (self.usual * PATIENCE_TIMES).clamp(*PATIENCE.start(), *PATIENCE.end());
        let is_late = self.waiting.front().is_some_and(|first| first.since.elapsed() > patience);
        let is_large = !self.waiting.is_empty() && self.waiting_bytes + bytes > LANE_BYTES;
        self.waiting.len() >= LANE_CAPACITY || is_late || is_large
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
            read: Queue::start("search", (cores * 8).clamp(16, 128)),
            write: Queue::start("write", (cores * 2).max(8)),
            look: Queue::start("metadata", cores.clamp(4, 16)),
            trial: Queue::start("trial", cores.clamp(2, 16)),
            watch: Queue::start("watch", 2),
            health: Queue::start("health", 1),
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
    fn start(name: &'static str, workers: usize) -> Arc<Self> {
        let state = State { handed: (0..workers).map(|_| None).collect(), ..State::default() };
        let bells = (0..workers).map(|_| Condvar::new()).collect();
        let queue = Arc::new(Self { name, state: Mutex::new(state), bells });
        for number in 0..workers {
            let of_worker = Arc::clone(&queue);
            let worker = move || {
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
        if let Some(Waiting { job, bytes, .. }) = state.waiting.pop_front() {
            state.waiting_bytes -= bytes;
            state.started += 1;
            return Some(job);
        }
        if state.closed {
            return None;
        }
        state.idle.push(worker);
        loop {
            self.bells[worker].wait(&mut state);
            if let Some(job) = state.handed[worker].take() {
                state.started += 1;
                return Some(job);
            }
            if state.closed {
                return None;
            }
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
        gone.into_iter().for_each(|job| job());
        let Some(_) = self.take_in(job, bytes, cancel)? else { return Ok(()) };
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
        if let Some(worker) = state.idle.pop() {
            state.handed[worker] = Some(job);
            state.largest = state.largest.max(self.bells.len() - state.idle.len());
            drop(state);
            self.bells[worker].notify_one();
            return Ok(None);
        }
        if state.refuses(bytes) {
            return Ok(Some(job));
        }
        state.waiting_bytes += bytes;
        state.waiting.push_back(Waiting { job, cancel: cancel.clone(), since: Instant::now(), bytes });
        Ok(None)
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.bells.iter().for_each(|bell| {
            bell.notify_one();
        });
    }
}

/// A panic is a bug of ours: the request gets a 500 and the server stays up.
fn guarded(work: impl FnOnce() -> Result<Reply, EngineError>) -> Result<Reply, EngineError> {
    caught(work).unwrap_or_else(|message| {
        tracing::error!(message, "an operation panicked");
        Err(EngineError::internal(format!("internal error: {message}")))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

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
