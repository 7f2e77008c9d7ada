//! The state that callers and workers of a deployment share, and the code of both sides.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sparrow_runtime::{TokenWeights, attempt};

use crate::bert::Sequence;
use crate::cache::{Cache, Encoding, Key, Vector};
use crate::encoded::{Encoded, Output};
use crate::error::EncoderError;
use crate::forward::Forward;
use crate::model::Model;
use crate::queue::{BatchContext, BatchLimits, Call, Item, Priority, Queue};
use crate::stats::Recorder;
use crate::timings::Timings;
use crate::tokenizer::{Question, Tokens};

/// Most tokens of a batch, padding included. With the embedded sparse model and 18 tokens a text, 256, 512, 1,024 and 2,048
/// gave 1,629, 1,684, 1,684 and 1,656 texts per CPU-second (`examples/throughput.rs`); the smallest halves the time that a
/// search waits for the batch that runs when it comes.
const BATCH_TOKENS: usize = 256;
/// As `BATCH_TOKENS`, while there are no searches: weights and panels of the embedded sparse model do not stay in the second-level cache
/// from one batch to the next, and 384 or 512 tokens take 0.965 and 0.952 of the time of 256 (passages of 116 tokens). The first search
/// waits no longer than for a text of 512 tokens, which is a batch by itself.
const CALM_BATCH_TOKENS: usize = 512;
/// Searches are few and wait for nothing else: they may fill a larger batch.
const SEARCH_BATCH_TOKENS: usize = 1024;
/// Texts that are tokenized before they are queued: the workers start while the rest is tokenized.
const TOKENIZE_CHUNK: usize = 32;
/// Most tokens of a text that an attempt to answer without another thread encodes: nothing stops a model within a text.
const MOST_TOKENS_OF_ATTEMPT: usize = 32;
/// Interval at which a waiting call checks its cancel flag.
const POLL: Duration = Duration::from_millis(10);
/// Interval at which a wait without cancel flag and timeout checks its state, which bounds the delay after a lost wake-up.
const LONG: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Shared {
    pub model: Arc<Model>,
    pub queue: Queue,
    pub cache: Mutex<Cache>,
    pub recorder: Recorder,
    /// The encoders of callers that stand in for a worker, kept between calls.
    pub spare: Mutex<Vec<Forward>>,
}

/// Returns the error with which a call must end, if it was cancelled or is out of time.
type GoesOn<'a> = &'a dyn Fn() -> Result<(), EncoderError>;

/// Which thread encodes the only text of a call, if a worker is idle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoneText {
    /// The calling one, which would only wait, before the call returns.
    #[default]
    ByCaller,
    /// A worker: the caller has something else to do meanwhile.
    ByWorker,
}

/// How a call wants its texts treated.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallOptions<'a> {
    pub priority: Priority,
    pub paced: bool,
    pub cancel: Option<&'a AtomicBool>,
    pub timeout: Option<Duration>,
    pub timed: bool,
    pub lone_text: LoneText,
    /// The question that a cross-encoder reads together with each text.
    pub question: Option<&'a str>,
}

/// What all texts of a call share: its results, its cache keys and its question.
struct Common {
    call: Arc<Call>,
    keys: Option<Vec<Key>>,
    question: Option<Question>,
}

/// A call whose texts are encoded or wait for a worker. If it is dropped before [`PendingCall::finish`], its waiting texts are removed from
/// the queue.
#[derive(Debug)]
pub(super) struct PendingCall<'a> {
    shared: &'a Shared,
    call: Arc<Call>,
    pub texts: usize,
    cached: usize,
    cancel: Option<&'a AtomicBool>,
    deadline: Option<(Instant, Duration)>,
    finished: bool,
}

impl PendingCall<'_> {
    /// Waits until workers have encoded the texts that were in no cache; returns all, in the order of the texts.
    pub fn finish(mut self) -> Result<(Vec<Encoding>, Timings), EncoderError> {
        let encodings = wait(&self.call, self.cancel, self.deadline)?;
        self.finished = true;
        let timings = match self.call.clock() {
            None => Timings::default(),
            Some(clock) => clock.lock().timings(self.texts, self.cached),
        };
        Ok((encodings, timings))
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.shared.queue.withdraw(&self.call);
        }
    }
}

impl Shared {
    /// Begins a call, up to the point where it has to wait for workers: looks its texts up in the cache, and tokenizes and queues the
    /// others; encodes a lone search text on this thread if that is possible.
    pub fn begin<'a>(
        &'a self,
        texts: &[&str],
        options: CallOptions<'a>,
    ) -> Result<PendingCall<'a>, EncoderError> {
        // A timeout beyond the reach of the clock never passes.
        let deadline =
            options.timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        let keys = self.keys(texts, options.question);
        let cached = self.look_up(texts.len(), &keys);
        let missing: Vec<usize> = (0..texts.len()).filter(|slot| cached[*slot].is_none()).collect();
        let call = Call::new(cached, options.timed);
        let begun = PendingCall {
            shared: self,
            call: Arc::clone(&call),
            texts: texts.len(),
            cached: texts.len() - missing.len(),
            cancel: options.cancel,
            deadline,
            finished: false,
        };
        let goes_on = || check(&call, options.cancel, deadline);
        let question = match options.question.filter(|_| !missing.is_empty()) {
            Some(question) => Some(self.model.tokenizer.question(question, &goes_on)?),
            None => None,
        };
        let common = Common { call: Arc::clone(&call), keys, question };
        if let ([text], [_], Priority::Search, LoneText::ByCaller) =
            (texts, &missing[..], options.priority, options.lone_text)
        {
            goes_on()?;
            if self.run_here(text, &common, &goes_on)? {
                return Ok(begun);
            }
        }
        if !missing.is_empty() && attempt::give_up() {
            return Err(EncoderError::Cancelled);
        }
        if begun.cached > 0 {
            self.recorder.hits(begun.cached as u64);
        }
        self.submit(texts, &missing, &common, options, &goes_on)?;
        Ok(begun)
    }

    fn keys(&self, texts: &[&str], question: Option<&str>) -> Option<Vec<Key>> {
        // Not one statement: the lock must not be held while texts are hashed.
        let enabled = self.cache.lock().enabled();
        let fingerprint = &self.model.info().fingerprint;
        if !enabled {
            return None;
        }
        Some(match question {
            Some(question) => {
                let key = Key::of_pairs(fingerprint, question);
                texts.iter().map(|text| key(text)).collect()
            }
            None => texts.iter().map(|text| Key::new(fingerprint, text)).collect(),
        })
    }

    fn look_up(&self, texts: usize, keys: &Option<Vec<Key>>) -> Vec<Option<Encoding>> {
        let Some(keys) = keys else { return vec![None; texts] };
        let mut cache = self.cache.lock();
        keys.iter().map(|key| cache.get(key)).collect()
    }

    /// Tokenizes and queues, a chunk at a time.
    fn submit(
        &self,
        texts: &[&str],
        missing: &[usize],
        common: &Common,
        options: CallOptions<'_>,
        goes_on: GoesOn<'_>,
    ) -> Result<(), EncoderError> {
        let mut places = if options.paced { None } else { Some(self.queue.reserve(missing.len())?) };
        let chunk = if options.paced { self.queue.paced_chunk() } else { TOKENIZE_CHUNK };
        for slots in missing.chunks(chunk) {
            goes_on()?;
            while options.paced && places.is_none() {
                places = self.queue.reserve_paced(slots.len(), POLL)?;
                goes_on()?;
            }
            let items = slots
                .iter()
                .map(|&slot| self.item(texts[slot], slot, common, goes_on))
                .collect::<Result<Vec<_>, _>>()
                .inspect_err(|_| self.recorder.failed(slots.len() as u64))?;
            if let Some(clock) = common.call.clock() {
                clock.lock().queued();
            }
            if let Some(places) = &mut places {
                places.push(items, options.priority)?;
            }
            places = places.filter(|_| !options.paced);
        }
        Ok(())
    }

    fn item(
        &self,
        text: &str,
        slot: usize,
        common: &Common,
        goes_on: GoesOn<'_>,
    ) -> Result<Item, EncoderError> {
        let Common { call, keys, question } = common;
        let started = call.clock().map(|_| Instant::now());
        let (tokens, second) = match question {
            Some(question) => self.model.tokenizer.pair(question, text, goes_on)?,
            None => {
                let tokens = self.model.tokenizer.encode_while(text, goes_on)?;
                let all = tokens.ids.len();
                (tokens, all)
            }
        };
        if let (Some(clock), Some(started)) = (call.clock(), started) {
            clock.lock().tokenized(started.elapsed());
        }
        let key = keys.as_ref().map(|keys| keys[slot]);
        let Tokens { ids, truncated } = tokens;
        Ok(Item { call: Arc::clone(call), slot, ids, second, truncated, key, round: 0 })
    }

    /// The loop of a worker: takes and encodes batches until the queue tells it to end.
    pub fn work(&self, worker: usize, mut forward: Forward) {
        while let Some(mut batch) = self.queue.take(worker, |context| self.limits(context)) {
            batch.retain(|item| !item.call.is_abandoned());
            if !batch.is_empty() {
                self.run_batch(&mut forward, batch);
            }
            self.queue.done();
        }
    }

    /// Encodes the only text of a search on this thread, if a worker is idle and the model needs no ONNX Runtime session; whether it was
    /// encoded.
    fn run_here(&self, text: &str, common: &Common, goes_on: GoesOn<'_>) -> Result<bool, EncoderError> {
        if !self.model.is_native() {
            return Ok(false);
        }
        let Some(_place) = self.queue.stand_in()? else { return Ok(false) };
        let item = self.item(text, 0, common, goes_on).inspect_err(|_| self.note_failed())?;
        if item.ids.len() > MOST_TOKENS_OF_ATTEMPT && attempt::give_up() {
            return Err(EncoderError::Cancelled);
        }
        let spare = self.spare.lock().pop();
        let mut forward = match spare {
            Some(forward) => forward,
            None => Forward::new(&self.model, 1)?,
        };
        self.run_batch(&mut forward, vec![item]);
        self.spare.lock().push(forward);
        Ok(true)
    }

    /// Counts a text that could not be read, unless it is read again by another thread.
    fn note_failed(&self) {
        if !attempt::is_given_up() {
            self.recorder.failed(1);
        }
    }

    fn limits(&self, context: &BatchContext) -> BatchLimits {
        // Logits in memory are 120 kB a token.
        let tokens = match context.priority {
            _ if self.model.materialises_logits() => BATCH_TOKENS,
            Priority::Search => SEARCH_BATCH_TOKENS,
            Priority::Ingest if context.calm && self.model.is_native() => CALM_BATCH_TOKENS,
            Priority::Ingest => BATCH_TOKENS,
        };
        BatchLimits { tokens, workers: context.workers }
    }

    fn run_batch(&self, forward: &mut Forward, batch: Vec<Item>) {
        let started = Instant::now();
        let texts: Vec<Sequence<'_>> =
            batch.iter().map(|item| Sequence { ids: &item.ids, second: item.second }).collect();
        match guarded(forward, &texts) {
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

    /// The tokens of a query with their weights from the model's table, without running the model.
    pub fn weigh_tokens(
        &self,
        text: &str,
        weights: &[f32],
        cancel: Option<&AtomicBool>,
    ) -> Result<Encoded, EncoderError> {
        let started = Instant::now();
        let goes_on = || match cancel {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(EncoderError::Cancelled),
            _ => Ok(()),
        };
        let tokens = self.model.tokenizer.encode_while(text, &goes_on)?;
        let pairs =
            self.model.tokenizer.content(&tokens).iter().filter_map(|&id| {
                Some((self.model.vocabulary.token(id)?.into(), *weights.get(id as usize)?))
            });
        let output = Output::Sparse(Arc::new(TokenWeights::from_pairs(pairs.collect())));
        let cut = (u64::from(tokens.truncated > 0), u64::from(tokens.truncated));
        self.recorder.answered(1, started.elapsed(), tokens.ids.len() as u64, cut);
        Ok(Encoded { output, token_count: tokens.ids.len() as u32, truncated_tokens: tokens.truncated })
    }

    pub fn readable(&self, encoding: Encoding) -> Encoded {
        let readable = |pairs: &[(u32, f32)]| Arc::new(self.model.vocabulary.readable(pairs));
        let output = match encoding.vector {
            Vector::Dense(vector) => Output::Dense(vector),
            Vector::Sparse(pairs) => Output::Sparse(readable(&pairs)),
            Vector::Hybrid(pairs, dense) => Output::Hybrid { sparse: readable(&pairs), dense },
        };
        Encoded { output, token_count: encoding.token_count, truncated_tokens: encoding.truncated }
    }
}

/// Checks whether a call may go on.
///
/// # Errors
/// [`EncoderError::Cancelled`] or [`EncoderError::Timeout`].
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

/// Encodes a batch; a panic becomes an error of its texts and does not end the worker.
fn guarded(forward: &mut Forward, texts: &[Sequence<'_>]) -> Result<Vec<Vector>, EncoderError> {
    catch_unwind(AssertUnwindSafe(|| forward.run(texts))).unwrap_or_else(|_| {
        Err(EncoderError::Runtime { phase: "infer", reason: "the worker panicked".into() })
    })
}
