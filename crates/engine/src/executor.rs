//! The engine's threads: lanes of workers for short operations, a thread of its own for each long one.
//!
//! Workers block: on the encoder's queue, on the disk. So there are more of them than cores; the work that needs a
//! core is bounded elsewhere (the encoder has its own threads).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use crate::error::EngineError;
use crate::request::{Reply, Request};

/// Waiting operations above which a lane refuses more.
const LANE_CAPACITY: usize = 2000;

type Done = Box<dyn FnOnce(Result<Reply, EngineError>) + Send>;
type Job = Box<dyn FnOnce() + Send>;

/// Which threads run an operation, so that a bulk load does not starve searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Operations that may wait for minutes.
    Long,
}

/// The lane of an operation.
pub(crate) fn lane_of(request: &Request) -> Lane {
    match request.op.as_str() {
        "reindex" | "update_by_query" | "delete_by_query" | "upgrade_index" | "force_merge" | "get_task"
        | "cancel_tasks" | "cancel_task" | "instruments" | "start_deployment" | "stop_deployment"
        | "update_deployment" | "list_tasks" | "cluster_health" | "clone_index" | "shrink_index"
        | "split_index" | "put_repository" | "get_repository" | "delete_repository" | "verify_repository"
        | "cleanup_repository" | "create_snapshot" | "get_snapshot" | "snapshot_status"
        | "clone_snapshot" | "delete_snapshot" | "restore_snapshot" | "cat_snapshots" => Lane::Long,
        "search"
        | "knn_search"
        | "explain"
        | "msearch"
        | "scroll"
        | "clear_scroll"
        | "open_point_in_time"
        | "close_point_in_time"
        | "field_caps"
        | "validate_query"
        | "search_shards"
        | "count"
        | "get_doc"
        | "exists_doc"
        | "get_source"
        | "mget"
        | "term_vectors"
        | "multi_term_vectors"
        | "infer_trained_model" => Lane::Read,
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

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
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
}

impl Executor {
    /// Starts the workers of a machine with this many cores.
    pub(crate) fn new(cores: usize) -> Self {
        // Enough readers that their texts fill a batch of the encoder while others score.
        Self {
            read: Queue::start("search", (cores * 8).clamp(16, 128)),
            write: Queue::start("write", (cores * 2).max(8)),
        }
    }

    /// Runs `work` and hands its result to `done`, whatever happens.
    pub(crate) fn run(
        &self,
        lane: Lane,
        work: impl FnOnce() -> Result<Reply, EngineError> + Send + 'static,
        done: Done,
    ) {
        let slot = Arc::new(Mutex::new(Some(done)));
        let answer = {
            let slot = slot.clone();
            move |result| {
                if let Some(done) = slot.lock().take() {
                    done(result);
                }
            }
        };
        let job: Job = {
            let answer = answer.clone();
            Box::new(move || answer(guarded(work)))
        };
        let refused = match lane {
            Lane::Read => self.read.send(job).err(),
            Lane::Write => self.write.send(job).err(),
            Lane::Long => thread::Builder::new()
                .name("sparrow-long".into())
                .spawn(job)
                .err()
                .map(|error| EngineError::internal(format!("no thread: {error}"))),
        };
        if let Some(error) = refused {
            answer(Err(error));
        }
    }

    /// The lanes by name.
    pub(crate) fn stats(&self) -> [LaneStats; 2] {
        [self.read.stats(), self.write.stats()]
    }

    /// Lets the workers end after what waits already.
    pub(crate) fn close(&self) {
        self.read.close();
        self.write.close();
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
                    job();
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
        if let Some(job) = state.waiting.pop_front() {
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

    fn send(&self, job: Job) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(EngineError::internal("the engine is closed"));
        }
        if let Some(worker) = state.idle.pop() {
            state.handed[worker] = Some(job);
            state.largest = state.largest.max(self.bells.len() - state.idle.len());
            drop(state);
            self.bells[worker].notify_one();
            return Ok(());
        }
        if state.waiting.len() >= LANE_CAPACITY {
            state.rejected += 1;
            return Err(EngineError::Rejected { queue: self.name, capacity: LANE_CAPACITY });
        }
        state.waiting.push_back(job);
        Ok(())
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

    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_worker_lives_on() {
        let executor = Executor::new(1);
        for lane in [Lane::Read, Lane::Write, Lane::Long] {
            for _ in 0..20 {
                let (sender, receiver) = mpsc::channel();
                executor.run(
                    lane,
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
            || Ok(Reply::acknowledged()),
            Box::new(move |result| sender.send(result).unwrap()),
        );
        assert!(receiver.recv().unwrap().is_err());
    }
}
