//! The engine's threads: lanes of workers for short operations, a thread of its own for each long one.
//!
//! Workers block: on the encoder's queue, on the disk. So there are more of them than cores; the work that needs a
//! core is bounded elsewhere (the encoder has its own threads).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use parking_lot::Mutex;

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
        "reindex" | "upgrade_index" | "get_task" | "cancel_tasks" | "cancel_task" | "start_deployment"
        | "stop_deployment" | "update_deployment" | "list_tasks" => Lane::Long,
        "search" | "count" | "get_doc" | "exists_doc" | "get_source" | "mget" | "infer_trained_model" => {
            Lane::Read
        }
        _ => Lane::Write,
    }
}

struct Queue {
    name: &'static str,
    sender: Mutex<Option<Sender<Job>>>,
}

/// The lanes.
pub(crate) struct Executor {
    read: Queue,
    write: Queue,
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
        let slot = std::sync::Arc::new(Mutex::new(Some(done)));
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

    /// Lets the workers end after what waits already.
    pub(crate) fn close(&self) {
        self.read.sender.lock().take();
        self.write.sender.lock().take();
    }
}

impl Queue {
    fn start(name: &'static str, workers: usize) -> Self {
        let (sender, receiver) = bounded::<Job>(LANE_CAPACITY);
        for number in 0..workers {
            let receiver: Receiver<Job> = receiver.clone();
            let worker = move || {
                for job in receiver {
                    job();
                }
            };
            if let Err(error) = thread::Builder::new().name(format!("sparrow-{name}-{number}")).spawn(worker)
            {
                tracing::error!(%error, name, "a worker thread cannot start");
            }
        }
        Self { name, sender: Mutex::new(Some(sender)) }
    }

    fn send(&self, job: Job) -> Result<(), EngineError> {
        let sender = self.sender.lock();
        let Some(sender) = &*sender else { return Err(EngineError::internal("the engine is closed")) };
        sender.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => EngineError::Rejected { queue: self.name, capacity: LANE_CAPACITY },
            TrySendError::Disconnected(_) => EngineError::internal("the engine is closed"),
        })
    }
}

/// A panic is a bug of ours: the request gets a 500 and the server stays up.
fn guarded(work: impl FnOnce() -> Result<Reply, EngineError>) -> Result<Reply, EngineError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
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
