//! A running model: the public interface to its queue, workers and cache.

mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sparrow_runtime::{niceness, time_slice};

pub use self::shared::LoneText;
use self::shared::{CallOptions, PendingCall, Shared};
use crate::attribution::{Attribution, attribute};
use crate::cache::Cache;
use crate::encoded::{Encoded, Output, Scored};
use crate::error::EncoderError;
use crate::forward::Forward;
use crate::model::Model;
use crate::queue::{Priority, Queue};
use crate::stats::{DeploymentStats, Recorder};
use crate::timings::Timings;

/// Size of a deployment: threads, queue and cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentOptions {
    /// Number of worker threads, each with its own ONNX Runtime session; more raise throughput and memory
    /// use.
    pub allocations: usize,
    /// Number of threads inside one worker; more lower the latency of a single text, but raise throughput
    /// less than allocations do.
    pub threads_per_allocation: usize,
    /// Highest number of texts that may wait at the same time. A higher one lets larger bursts wait instead
    /// of failing.
    pub queue_capacity: usize,
    /// Size limit of the encoding cache, in bytes; 0 switches it off.
    pub cache_bytes: usize,
}

/// A running model: a bounded queue and worker threads. Dropping it stops it.
#[derive(Debug)]
pub struct Deployment {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Length of `workers`, for callers that must not wait while workers start.
    allocations: AtomicUsize,
    options: DeploymentOptions,
}

impl Deployment {
    /// Starts the workers; returns when all have loaded the model.
    ///
    /// # Errors
    /// [`EncoderError::RuntimeUnavailable`] without a library where the model needs it,
    /// [`EncoderError::InvalidOption`], or the error of loading the graph.
    pub fn start(model: Arc<Model>, options: DeploymentOptions) -> Result<Deployment, EncoderError> {
        at_least_one("number_of_allocations", options.allocations)?;
        at_least_one("threads_per_allocation", options.threads_per_allocation)?;
        at_least_one("queue_capacity", options.queue_capacity)?;
        let shared = Arc::new(Shared {
            model,
            queue: Queue::new(options.queue_capacity, 0),
            cache: Mutex::new(Cache::new(options.cache_bytes)),
            recorder: Recorder::new(),
            spare: Mutex::default(),
        });
        let deployment = Deployment {
            shared,
            workers: Mutex::default(),
            allocations: AtomicUsize::new(0),
            options: options.clone(),
        };
        deployment.set_allocations(options.allocations)?;
        Ok(deployment)
    }

    /// The model that is running.
    pub fn model(&self) -> &Arc<Model> {
        &self.shared.model
    }

    /// Encodes texts; blocks until all are done. Texts in the cache need no place in the queue.
    ///
    /// # Errors
    /// [`EncoderError::QueueFull`] at once if there is no room for all texts, [`EncoderError::Cancelled`] soon after the
    /// flag is set, [`EncoderError::Timeout`], [`EncoderError::Stopped`], or [`EncoderError::Runtime`] if any of the texts
    /// failed. Whatever the error, no text of the call stays in the queue.
    pub fn encode(
        &self,
        texts: &[&str],
        priority: Priority,
        cancel: Option<&AtomicBool>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Encoded>, EncoderError> {
        self.run(texts, CallOptions { priority, cancel, timeout, ..CallOptions::default() })
            .map(|done| done.0)
    }

    /// Scores how well each text answers a question, with a model of kind [`crate::ModelKind::CrossEncoder`];
    /// they wait in the same queue as all other texts of the model, ahead of those of documents.
    ///
    /// # Errors
    /// As [`Deployment::encode`]; [`EncoderError::Runtime`] for a model of another kind.
    pub fn score(
        &self,
        question: &str,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Scored>, EncoderError> {
        let options = CallOptions { cancel, timeout, question: Some(question), ..CallOptions::default() };
        let scored = |encoded: Encoded| match &encoded.output {
            Output::Dense(numbers) if numbers.len() == 1 => Ok(Scored {
                score: numbers[0],
                token_count: encoded.token_count,
                truncated_tokens: encoded.truncated_tokens,
            }),
            _ => Err(EncoderError::Runtime { phase: "infer", reason: "the model gives no scores".into() }),
        };
        self.run(texts, options)?.0.into_iter().map(scored).collect()
    }

    /// Encodes search texts: like [`Deployment::encode`] with [`Priority::Search`], but a model of kind
    /// [`crate::ModelKind::SparseDocOnly`] weighs the text's own tokens by its table of inverse document frequencies.
    ///
    /// # Errors
    /// As [`Deployment::encode`].
    pub fn encode_queries(
        &self,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Encoded>, EncoderError> {
        match &self.shared.model.query_weights {
            Some(weights) => {
                texts.iter().map(|text| self.shared.weigh_tokens(text, weights, cancel)).collect()
            }
            None => self.encode(texts, Priority::Search, cancel, timeout),
        }
    }

    /// Starts to encode search texts as [`Deployment::encode_queries`] does, but leaves waiting to
    /// [`PendingQueries::finish`], so that texts for several models are encoded at the same time.
    ///
    /// # Errors
    /// As [`Deployment::encode`].
    pub fn begin_queries<'a>(
        &'a self,
        texts: &[&str],
        options: QueryOptions<'a>,
    ) -> Result<PendingQueries<'a>, EncoderError> {
        let QueryOptions { cancel, timed, lone_text } = options;
        if self.shared.model.query_weights.is_some() {
            let started = Instant::now();
            let encoded = self.encode_queries(texts, cancel, None)?;
            // A table lookup for each token: all of it is tokenization.
            let tokenize = started.elapsed();
            let timings = Timings { texts: texts.len(), tokenize, ..Timings::default() };
            return Ok(PendingQueries(Progress::Done(encoded, timings)));
        }
        let options = CallOptions { cancel, timed, lone_text, ..CallOptions::default() };
        Ok(PendingQueries(Progress::Pending(self, self.begin(texts, options)?)))
    }

    /// Encodes texts as fast as the queue allows: waits for room instead of failing, and leaves half of the
    /// queue to other callers.
    ///
    /// # Errors
    /// As [`Deployment::encode`], without [`EncoderError::QueueFull`] and [`EncoderError::Timeout`].
    pub fn encode_paced(
        &self,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, EncoderError> {
        let options =
            CallOptions { priority: Priority::Ingest, paced: true, cancel, ..CallOptions::default() };
        self.run(texts, options).map(|done| done.0)
    }

    /// Encodes a text as a document and says which words each of its tokens comes from. Runs on the calling
    /// thread without the queue, which is meant for the few texts of an explanation. `None` for models that
    /// do not tell.
    ///
    /// # Errors
    /// [`EncoderError::Stopped`], or [`EncoderError::Runtime`] if the text cannot be encoded.
    pub fn attribute(&self, text: &str) -> Result<Option<Vec<Attribution>>, EncoderError> {
        let shared = &*self.shared;
        if self.allocations.load(Ordering::Relaxed) == 0 {
            return Err(EncoderError::Stopped);
        }
        let spare = shared.spare.lock().pop();
        let mut forward = match spare {
            Some(forward) => forward,
            None => Forward::new(&shared.model, 1)?,
        };
        let attributions = attribute(&shared.model, &mut forward, text);
        shared.spare.lock().push(forward);
        attributions
    }

    /// Changes the number of worker threads; returns when new ones are ready and surplus ones have left.
    ///
    /// # Errors
    /// [`EncoderError::InvalidOption`] for 0, or the error of loading the graph; the existing workers then
    /// stay.
    pub fn set_allocations(&self, allocations: usize) -> Result<(), EncoderError> {
        at_least_one("number_of_allocations", allocations)?;
        self.resize(allocations)
    }

    /// Ends all workers without stopping the deployment: texts that come wait until
    /// [`Deployment::set_allocations`] brings workers back. Batches that run finish first.
    ///
    /// # Errors
    /// None so far.
    pub fn park(&self) -> Result<(), EncoderError> {
        self.resize(0)?;
        // What callers encoded with, and what was remembered, is memory that a sleeping deployment does not need.
        self.shared.spare.lock().clear();
        Ok(())
    }

    /// Current number of worker threads; 0 when parked or stopped.
    pub fn allocations(&self) -> usize {
        self.allocations.load(Ordering::Relaxed)
    }

    fn resize(&self, allocations: usize) -> Result<(), EncoderError> {
        let mut workers = self.workers.lock();
        let present = workers.len();
        // Also texts of searches wait for these threads, and a write may be what starts them.
        let added = (present..allocations)
            .map(|_| {
                let (model, threads) = (Arc::clone(&self.shared.model), self.options.threads_per_allocation);
                niceness::ordinarily(move || Forward::new(&model, threads))
            })
            .collect::<Result<Vec<_>, _>>()?;
        self.shared.queue.set_workers(allocations);
        for (worker, forward) in (present..).zip(added) {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name(format!("encoder-{worker}"));
            let spawned = niceness::ordinarily(move || {
                thread.spawn(move || {
                    time_slice::restore();
                    shared.work(worker, forward);
                })
            });
            match spawned {
                Ok(handle) => workers.push(handle),
                Err(error) => {
                    self.shared.queue.set_workers(workers.len());
                    return Err(EncoderError::Runtime { phase: "load", reason: error.to_string() });
                }
            }
        }
        let kept = allocations.min(workers.len());
        workers.split_off(kept).into_iter().for_each(join);
        self.allocations.store(workers.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Forgets what the statistics have counted so far.
    pub fn forget_figures(&self) {
        self.shared.recorder.reset();
    }

    /// Current statistics.
    pub fn stats(&self) -> DeploymentStats {
        DeploymentStats {
            pending: self.shared.queue.pending() as u64,
            allocations: self.allocations.load(Ordering::Relaxed),
            threads_per_allocation: self.options.threads_per_allocation,
            queue_capacity: self.options.queue_capacity,
            cache_bytes: self.options.cache_bytes,
            cache_used_bytes: self.shared.cache.lock().used(),
            ..self.shared.recorder.snapshot()
        }
    }

    /// Stops the deployment: waiting calls fail with [`EncoderError::Stopped`], running batches finish.
    /// Returns when all workers have ended.
    pub fn stop(&self) {
        self.shared.queue.stop();
        let workers = std::mem::take(&mut *self.workers.lock());
        workers.into_iter().for_each(join);
        self.allocations.store(0, Ordering::Relaxed);
    }

    fn run(&self, texts: &[&str], options: CallOptions<'_>) -> Result<(Vec<Encoded>, Timings), EncoderError> {
        self.finish(self.begin(texts, options)?)
    }

    fn begin<'a>(
        &'a self,
        texts: &[&str],
        options: CallOptions<'a>,
    ) -> Result<PendingCall<'a>, EncoderError> {
        self.shared.begin(texts, options).inspect_err(|error| self.note(error, texts.len()))
    }

    fn finish(&self, begun: PendingCall<'_>) -> Result<(Vec<Encoded>, Timings), EncoderError> {
        let texts = begun.texts;
        let (encodings, timings) = begun.finish().inspect_err(|error| self.note(error, texts))?;
        Ok((encodings.into_iter().map(|encoding| self.shared.readable(encoding)).collect(), timings))
    }

    /// Counts a failed call in the statistics.
    fn note(&self, error: &EncoderError, texts: usize) {
        match error {
            EncoderError::QueueFull { requested, .. } => self.shared.recorder.rejected(*requested as u64),
            EncoderError::Timeout { .. } => self.shared.recorder.timed_out(texts as u64),
            _ => {}
        }
    }
}

/// Options for search texts whose encoding a caller starts and waits for later.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueryOptions<'a> {
    /// Flag that ends the call when it is set.
    pub cancel: Option<&'a AtomicBool>,
    /// Whether the result includes the time spent in each phase.
    pub timed: bool,
    /// Which thread encodes the only text of a call: for the last of several models it should be the
    /// caller's.
    pub lone_text: LoneText,
}

/// Search texts that a model is encoding. Dropping it removes those that still wait from the queue.
#[derive(Debug)]
pub struct PendingQueries<'a>(Progress<'a>);

#[derive(Debug)]
enum Progress<'a> {
    Done(Vec<Encoded>, Timings),
    Pending(&'a Deployment, PendingCall<'a>),
}

impl PendingQueries<'_> {
    /// Waits for the vectors of all texts, in the order in which the texts were given.
    ///
    /// # Errors
    /// As [`Deployment::encode`].
    pub fn finish(self) -> Result<(Vec<Encoded>, Timings), EncoderError> {
        match self.0 {
            Progress::Done(encoded, timings) => Ok((encoded, timings)),
            Progress::Pending(deployment, begun) => deployment.finish(begun),
        }
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        self.stop();
    }
}

fn at_least_one(option: &'static str, value: usize) -> Result<(), EncoderError> {
    if value == 0 { Err(EncoderError::InvalidOption { option, value, minimum: 1 }) } else { Ok(()) }
}

fn join(worker: JoinHandle<()>) {
    if worker.join().is_err() {
        tracing::error!("an encoder worker panicked");
    }
}
