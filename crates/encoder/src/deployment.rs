//! A model at work: the public face of the queue, the workers and the cache.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sparrow_types::TokenWeights;

use crate::attribution::{Attribution, attribute};
use crate::cache::{Cache, Encoding, Key, Vector};
use crate::error::EncoderError;
use crate::forward::Forward;
use crate::model::Model;
use crate::queue::{BatchContext, BatchLimits, Call, Item, Queue};
use crate::stats::{DeploymentStats, Recorder};
use crate::timings::Timings;

/// Most tokens of a batch, padding included. With the embedded sparse model and 18 tokens a text, 256, 512, 1,024 and 2,048
/// gave 1,629, 1,684, 1,684 and 1,656 texts per CPU-second (`examples/throughput.rs`); the smallest halves the time that a
/// search waits for the batch that runs when it comes.
const BATCH_TOKENS: usize = 256;
/// Searches are few and wait for nothing else: they may fill a larger batch.
const SEARCH_BATCH_TOKENS: usize = 1024;
/// Texts that are tokenized before they are queued: the workers start while the rest is tokenized.
const TOKENIZE_CHUNK: usize = 32;
/// How often a cancel flag is looked at.
const POLL: Duration = Duration::from_millis(10);
/// A wait without cancel flag and timeout; it only bounds the damage of a lost wake-up.
const LONG: Duration = Duration::from_secs(1);

/// Size of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentOptions {
    /// Worker threads, each with its own ONNX Runtime session: raises throughput and memory.
    pub allocations: usize,
    /// Threads inside one worker: lowers the latency of one text, at a worse throughput than allocations.
    pub threads_per_allocation: usize,
    /// Most texts that may wait at once. Raising it lets larger bursts wait instead of failing.
    pub queue_capacity: usize,
    /// Budget of the encoding cache; 0 switches it off.
    pub cache_bytes: usize,
}

/// Who waits for the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// A search: goes before all ingest work.
    Search,
    /// A document that is written.
    Ingest,
}

/// What became of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The vector.
    pub output: Output,
    /// Tokens that were encoded, special tokens included.
    pub token_count: u32,
    /// Tokens that were cut off: more than none means that the text was truncated. For texts of many kilobytes this is
    /// a lower bound, as their far end is never tokenized.
    pub truncated_tokens: u32,
}

/// The vector of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Token weights; a '.' inside a token is written `__`.
    Sparse(Arc<TokenWeights>),
    /// A dense vector.
    Dense(Arc<[f32]>),
}

/// A running model: a bounded queue and worker threads. Dropping it stops it.
#[derive(Debug)]
pub struct Deployment {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Length of `workers`, for those who must not wait while workers start.
    allocations: AtomicUsize,
    options: DeploymentOptions,
}

#[derive(Debug)]
struct Shared {
    model: Arc<Model>,
    queue: Queue,
    cache: Mutex<Cache>,
    recorder: Recorder,
    /// What callers encode with who stand in for a worker.
    spare: Mutex<Vec<Forward>>,
}

/// How a call wants its texts treated.
#[derive(Debug, Clone, Copy)]
struct Wishes<'a> {
    priority: Priority,
    paced: bool,
    cancel: Option<&'a AtomicBool>,
    timeout: Option<Duration>,
    timed: bool,
}

impl Deployment {
    /// Starts the workers; returns when all have loaded the model.
    ///
    /// # Errors
    /// [`EncoderError::RuntimeUnavailable`] before [`crate::init_runtime`], [`EncoderError::InvalidOption`], or what
    /// loading the graph gives.
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

    /// The model at work.
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
        self.run(texts, Wishes { priority, paced: false, cancel, timeout, timed: false }).map(|done| done.0)
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
            Some(weights) => texts.iter().map(|text| self.shared.weigh_tokens(text, weights)).collect(),
            None => self.encode(texts, Priority::Search, cancel, timeout),
        }
    }

    /// Encodes search texts as [`Deployment::encode_queries`] does, and says where the time goes.
    ///
    /// # Errors
    /// As [`Deployment::encode`].
    pub fn encode_queries_timed(
        &self,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
    ) -> Result<(Vec<Encoded>, Timings), EncoderError> {
        if self.shared.model.query_weights.is_some() {
            let started = Instant::now();
            let encoded = self.encode_queries(texts, cancel, None)?;
            // A table lookup for each token: all of it is tokenization.
            let tokenize = started.elapsed();
            return Ok((encoded, Timings { texts: texts.len(), tokenize, ..Timings::default() }));
        }
        let wishes = Wishes { priority: Priority::Search, paced: false, cancel, timeout: None, timed: true };
        self.run(texts, wishes)
    }

    /// Encodes texts at the pace of the queue: waits for room instead of failing, and leaves half of the queue to those
    /// who do not wait.
    ///
    /// # Errors
    /// As [`Deployment::encode`], without [`EncoderError::QueueFull`] and [`EncoderError::Timeout`].
    pub fn encode_paced(
        &self,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, EncoderError> {
        let wishes = Wishes { priority: Priority::Ingest, paced: true, cancel, timeout: None, timed: false };
        self.run(texts, wishes).map(|done| done.0)
    }

    /// Encodes a text as a document and says which words each of its tokens comes from. On the calling thread, beside
    /// the queue: for the few texts of an explanation. `None` for models that cannot say it.
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
        let found = attribute(&shared.model, &mut forward, text);
        shared.spare.lock().push(forward);
        found
    }

    /// Changes the number of worker threads; returns when new ones are ready and surplus ones have left.
    ///
    /// # Errors
    /// [`EncoderError::InvalidOption`] for 0, or what loading the graph gives; the workers that were there stay.
    pub fn set_allocations(&self, allocations: usize) -> Result<(), EncoderError> {
        at_least_one("number_of_allocations", allocations)?;
        self.resize(allocations)
    }

    /// Sends all workers away without stopping: texts that come wait until [`Deployment::set_allocations`] brings
    /// workers back. Batches that run finish first.
    ///
    /// # Errors
    /// None so far.
    pub fn park(&self) -> Result<(), EncoderError> {
        self.resize(0)?;
        // What callers encoded with, and what was remembered, is memory that a sleeping deployment does not need.
        self.shared.spare.lock().clear();
        Ok(())
    }

    /// Worker threads now; 0 when parked or stopped.
    pub fn allocations(&self) -> usize {
        self.allocations.load(Ordering::Relaxed)
    }

    fn resize(&self, allocations: usize) -> Result<(), EncoderError> {
        let mut workers = self.workers.lock();
        let present = workers.len();
        let added = (present..allocations)
            .map(|_| Forward::new(&self.shared.model, self.options.threads_per_allocation))
            .collect::<Result<Vec<_>, _>>()?;
        self.shared.queue.set_workers(allocations);
        for (worker, forward) in (present..).zip(added) {
            let shared = Arc::clone(&self.shared);
            let spawned = std::thread::Builder::new()
                .name(format!("encoder-{worker}"))
                .spawn(move || shared.work(worker, forward));
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

    /// Current figures.
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

    /// Stops: waiting calls fail with [`EncoderError::Stopped`], running batches finish. Waits for the workers.
    pub fn stop(&self) {
        self.shared.queue.stop();
        let workers = std::mem::take(&mut *self.workers.lock());
        workers.into_iter().for_each(join);
        self.allocations.store(0, Ordering::Relaxed);
    }

    fn run(&self, texts: &[&str], wishes: Wishes<'_>) -> Result<(Vec<Encoded>, Timings), EncoderError> {
        let shared = &*self.shared;
        let result = shared.run(texts, wishes);
        match &result {
            Err(EncoderError::QueueFull { requested, .. }) => shared.recorder.rejected(*requested as u64),
            Err(EncoderError::Timeout { .. }) => shared.recorder.timed_out(texts.len() as u64),
            _ => {}
        }
        let (encodings, timings) = result?;
        Ok((encodings.into_iter().map(|encoding| shared.readable(encoding)).collect(), timings))
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// The caller's side: cache, places, tokens, then waiting.
    fn run(&self, texts: &[&str], wishes: Wishes<'_>) -> Result<(Vec<Encoding>, Timings), EncoderError> {
        // A timeout beyond the reach of the clock is none.
        let deadline =
            wishes.timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        let keys = self.keys(texts);
        let known = self.look_up(texts.len(), &keys);
        let missing: Vec<usize> = (0..texts.len()).filter(|slot| known[*slot].is_none()).collect();
        let call = Call::new(known, wishes.timed);
        let timings = || match call.clock() {
            None => Timings::default(),
            Some(clock) => clock.lock().timings(texts.len(), texts.len() - missing.len()),
        };
        if let ([text], [_], Priority::Search) = (texts, &missing[..], wishes.priority) {
            check(&call, wishes.cancel, deadline)?;
            if self.run_here(text, &call, &keys)? {
                return wait(&call, wishes.cancel, deadline).map(|encodings| (encodings, timings()));
            }
        }
        let outcome = self
            .submit(texts, &keys, &missing, &call, wishes, deadline)
            .and_then(|()| wait(&call, wishes.cancel, deadline));
        if outcome.is_err() {
            self.queue.withdraw(&call);
        }
        outcome.map(|encodings| (encodings, timings()))
    }

    fn keys(&self, texts: &[&str]) -> Option<Vec<Key>> {
        // Not one statement: the lock must not be held while texts are hashed.
        let enabled = self.cache.lock().enabled();
        let fingerprint = &self.model.info().fingerprint;
        enabled.then(|| texts.iter().map(|text| Key::new(fingerprint, text)).collect())
    }

    fn look_up(&self, texts: usize, keys: &Option<Vec<Key>>) -> Vec<Option<Encoding>> {
        let Some(keys) = keys else { return vec![None; texts] };
        let mut cache = self.cache.lock();
        let known: Vec<_> = keys.iter().map(|key| cache.get(key)).collect();
        drop(cache);
        let hits = known.iter().flatten().count();
        if hits > 0 {
            self.recorder.hits(hits as u64);
        }
        known
    }

    /// Tokenizes and queues, a chunk at a time.
    fn submit(
        &self,
        texts: &[&str],
        keys: &Option<Vec<Key>>,
        missing: &[usize],
        call: &Arc<Call>,
        wishes: Wishes<'_>,
        deadline: Option<(Instant, Duration)>,
    ) -> Result<(), EncoderError> {
        let mut places = if wishes.paced { None } else { Some(self.queue.reserve(missing.len())?) };
        let chunk = if wishes.paced { self.queue.paced_chunk() } else { TOKENIZE_CHUNK };
        for slots in missing.chunks(chunk) {
            check(call, wishes.cancel, deadline)?;
            while wishes.paced && places.is_none() {
                places = self.queue.reserve_paced(slots.len(), POLL)?;
                check(call, wishes.cancel, deadline)?;
            }
            let items = slots
                .iter()
                .map(|&slot| self.item(texts[slot], slot, keys, call))
                .collect::<Result<Vec<_>, _>>()
                .inspect_err(|_| self.recorder.failed(slots.len() as u64))?;
            if let Some(clock) = call.clock() {
                clock.lock().queued();
            }
            if let Some(places) = &mut places {
                places.push(items, wishes.priority)?;
            }
            places = places.filter(|_| !wishes.paced);
        }
        Ok(())
    }

    fn item(
        &self,
        text: &str,
        slot: usize,
        keys: &Option<Vec<Key>>,
        call: &Arc<Call>,
    ) -> Result<Item, EncoderError> {
        let started = call.clock().map(|_| Instant::now());
        let tokens = self.model.tokenizer.encode(text)?;
        if let (Some(clock), Some(started)) = (call.clock(), started) {
            clock.lock().tokenized(started.elapsed());
        }
        let key = keys.as_ref().map(|keys| keys[slot]);
        Ok(Item { call: Arc::clone(call), slot, ids: tokens.ids, truncated: tokens.truncated, key })
    }

    /// The worker's side: batches until there is no more to do.
    fn work(&self, worker: usize, mut forward: Forward) {
        while let Some(mut batch) = self.queue.take(worker, |context| self.limits(context)) {
            batch.retain(|item| !item.call.is_abandoned());
            if !batch.is_empty() {
                self.run_batch(&mut forward, batch);
            }
            self.queue.done();
        }
    }

    /// Encodes a lone search text on this thread, if a worker is idle and the model needs no session of its own for that.
    fn run_here(&self, text: &str, call: &Arc<Call>, keys: &Option<Vec<Key>>) -> Result<bool, EncoderError> {
        if !self.model.is_native() {
            return Ok(false);
        }
        let Some(_place) = self.queue.stand_in()? else { return Ok(false) };
        let item = self.item(text, 0, keys, call).inspect_err(|_| self.recorder.failed(1))?;
        let spare = self.spare.lock().pop();
        let mut forward = match spare {
            Some(forward) => forward,
            None => Forward::new(&self.model, 1)?,
        };
        self.run_batch(&mut forward, vec![item]);
        self.spare.lock().push(forward);
        Ok(true)
    }

    fn limits(&self, context: &BatchContext) -> BatchLimits {
        // Logits in memory are 120 kB a token.
        let tokens = match context.priority {
            Priority::Search if !self.model.materialises_logits() => SEARCH_BATCH_TOKENS,
            Priority::Search | Priority::Ingest => BATCH_TOKENS,
        };
        BatchLimits { tokens, workers: context.workers }
    }

    fn run_batch(&self, forward: &mut Forward, batch: Vec<Item>) {
        let started = Instant::now();
        let ids: Vec<&[u32]> = batch.iter().map(|item| item.ids.as_slice()).collect();
        match guarded(forward, &ids) {
            Ok(vectors) => self.deliver(&batch, vectors, started, started.elapsed()),
            // One bad text must not fail the others.
            Err(_) if batch.len() > 1 => {
                batch.into_iter().for_each(|item| self.run_batch(forward, vec![item]))
            }
            Err(error) => {
                tracing::warn!(%error, "a text could not be encoded");
                self.recorder.failed(batch.len() as u64);
                batch.into_iter().for_each(|item| item.call.fail(error.clone()));
            }
        }
    }

    fn deliver(&self, batch: &[Item], vectors: Vec<Vector>, started: Instant, busy: Duration) {
        let tokens = batch.iter().map(|item| item.ids.len() as u64).sum();
        let cut = batch
            .iter()
            .filter(|item| item.truncated > 0)
            .fold((0, 0), |(texts, tokens), item| (texts + 1, tokens + u64::from(item.truncated)));
        // Counted before the callers wake up, so that they find their texts in the figures.
        self.recorder.answered(batch.len() as u64, busy, tokens, cut);
        let encodings: Vec<Encoding> = batch
            .iter()
            .zip(vectors)
            .map(|(item, vector)| Encoding {
                vector,
                token_count: item.ids.len() as u32,
                truncated: item.truncated,
            })
            .collect();
        if batch.iter().any(|item| item.key.is_some()) {
            let mut cache = self.cache.lock();
            for (item, encoding) in batch.iter().zip(&encodings) {
                if let Some(key) = item.key {
                    cache.insert(key, encoding.clone());
                }
            }
        }
        for (item, encoding) in batch.iter().zip(encodings) {
            if let Some(clock) = item.call.clock() {
                clock.lock().batch(started, busy);
            }
            item.call.complete(item.slot, encoding);
        }
    }

    /// A query's own tokens with their weights from the model's table.
    fn weigh_tokens(&self, text: &str, weights: &[f32]) -> Result<Encoded, EncoderError> {
        let started = Instant::now();
        let tokens = self.model.tokenizer.encode(text)?;
        let pairs =
            self.model.tokenizer.content(&tokens).iter().filter_map(|&id| {
                Some((self.model.vocabulary.token(id)?.into(), *weights.get(id as usize)?))
            });
        let output = Output::Sparse(Arc::new(TokenWeights::from_pairs(pairs.collect())));
        let cut = (u64::from(tokens.truncated > 0), u64::from(tokens.truncated));
        self.recorder.answered(1, started.elapsed(), tokens.ids.len() as u64, cut);
        Ok(Encoded { output, token_count: tokens.ids.len() as u32, truncated_tokens: tokens.truncated })
    }

    fn readable(&self, encoding: Encoding) -> Encoded {
        let output = match encoding.vector {
            Vector::Dense(vector) => Output::Dense(vector),
            Vector::Sparse(pairs) => Output::Sparse(Arc::new(self.model.vocabulary.readable(&pairs))),
        };
        Encoded { output, token_count: encoding.token_count, truncated_tokens: encoding.truncated }
    }
}

/// Why a call should not go on, if it should not.
fn check(
    call: &Call,
    cancel: Option<&AtomicBool>,
    deadline: Option<(Instant, Duration)>,
) -> Result<(), EncoderError> {
    if cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        return Err(EncoderError::Cancelled);
    }
    if let Some((end, timeout)) = deadline
        && Instant::now() >= end
    {
        return Err(EncoderError::Timeout {
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
    }
    // An earlier chunk failed: its error is the call's.
    match call.error() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn wait(
    call: &Call,
    cancel: Option<&AtomicBool>,
    deadline: Option<(Instant, Duration)>,
) -> Result<Vec<Encoding>, EncoderError> {
    loop {
        let mut patience = if cancel.is_some() { POLL } else { LONG };
        if let Some((end, _)) = deadline {
            patience = patience.min(end.saturating_duration_since(Instant::now()));
        }
        if let Some(outcome) = call.wait(patience) {
            return outcome;
        }
        check(call, cancel, deadline)?;
    }
}

/// A panic of one batch is an error of its texts, not the end of the worker.
fn guarded(forward: &mut Forward, ids: &[&[u32]]) -> Result<Vec<Vector>, EncoderError> {
    catch_unwind(AssertUnwindSafe(|| forward.run(ids))).unwrap_or_else(|_| {
        Err(EncoderError::Runtime { phase: "infer", reason: "the worker panicked".into() })
    })
}

fn at_least_one(option: &'static str, value: usize) -> Result<(), EncoderError> {
    if value == 0 { Err(EncoderError::InvalidOption { option, value, minimum: 1 }) } else { Ok(()) }
}

fn join(worker: JoinHandle<()>) {
    if worker.join().is_err() {
        tracing::error!("an encoder worker panicked");
    }
}
