//! The Node addon: converts between JavaScript values and the engine's types, and nothing else.
//!
//! No request is interpreted here, no body is parsed and no error sentence is written. Every call hands its bytes to the
//! engine, which answers from its own threads through one function of JavaScript's for all answers (see [`outbox`]), so the
//! event loop does not wait; only a short read is carried out at once where the caller allows it.

// Where tests are compiled, napi makes nothing known to JavaScript, so nothing is used.
#![cfg_attr(test, allow(dead_code))]

#[cfg(not(all(windows, target_env = "gnu")))]
mod allocator;
mod fusion;
mod log;
mod outbox;
mod reply;
mod shape;
mod zstd_codec;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use napi::bindgen_prelude::{Buffer, Either, Function, Object};
use napi::{Env, Error, Result, Status};
use napi_derive::napi;
use parking_lot::Mutex;
use sparrow_engine::{CancelFlag, Engine, EngineError, EngineOptions, Reply, Request, time_slice};

use crate::outbox::{Answer, Outbox};
use crate::reply::NativeReply;

/// Request bodies of at least this many bytes are shared with JavaScript: copying them would hold up the event loop, and a
/// reference costs less.
const LARGE: usize = 128 * 1024;

/// The body of a request, as the thread that runs the request gets it.
enum Body {
    Copied(Vec<u8>),
    /// JavaScript's own bytes, which nobody changes until the request is answered.
    Shared(Buffer),
}

impl Default for Body {
    fn default() -> Self {
        Body::Copied(Vec::new())
    }
}

impl Body {
    fn of(bytes: Buffer) -> Self {
        if bytes.len() < LARGE { Body::Copied(bytes.to_vec()) } else { Body::Shared(bytes) }
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        match self {
            Body::Copied(bytes) => bytes,
            Body::Shared(bytes) => bytes,
        }
    }
}

/// The flags that cancel the running requests, by the number that the caller gave each of them.
type Running = Arc<Mutex<HashMap<u32, CancelFlag>>>;

/// One open data directory with everything that serves it.
#[napi]
pub struct NativeEngine {
    /// The engine; none once it is closed. Each running request holds a reference as well, and whichever is dropped last releases
    /// the data directory: nobody else can open that while anything still writes.
    engine: Mutex<Option<Arc<Engine>>>,
    running: Running,
    outbox: Arc<Outbox>,
}

#[napi]
impl NativeEngine {
    /// Opens a data directory. `options` is an `EngineOptions` as JSON. Resolves once the write-ahead log is replayed and
    /// the deployments that ran before are started, or with the error that prevented it. `onReplies` gets the answers to
    /// all requests, as many at once as are there.
    #[napi(
        catch_unwind,
        ts_args_type = "options: string, onReplies: (replies: Array<NativeReply>) => void",
        ts_return_type = "Promise<NativeEngine | NativeReply>"
    )]
    pub fn open<'env>(
        env: &'env Env,
        options: String,
        on_replies: Function<'env, Vec<NativeReply>, ()>,
    ) -> Result<Object<'env>> {
        log::install();
        let options: EngineOptions = parse("engine options", &options)?;
        #[cfg(not(all(windows, target_env = "gnu")))]
        let options = EngineOptions { release_memory: Some(allocator::release_memory), ..options };
        let outbox = Outbox::new(&on_replies)?;
        let (deferred, promise) = env.create_deferred()?;
        spawn("sparrow-open", move || {
            let opened = Engine::open(options);
            deferred.resolve(move |_| {
                Ok(match opened {
                    Ok(engine) => Either::A(NativeEngine {
                        engine: Mutex::new(Some(engine)),
                        running: Running::default(),
                        outbox,
                    }),
                    Err(error) => Either::B(NativeReply::new(0, Err(error))),
                })
            });
        })?;
        // Every request and every answer passes through this thread. Not before, as the engine's threads would inherit it.
        time_slice::shorten();
        Ok(promise)
    }

    /// Starts one request. `request` is a `Request` as JSON, `body` the bytes as they came, and `handle` a number that no
    /// other running request has: the answer bears it, and `cancel` finds this one by it. If `inline`, a short read is
    /// answered at once, as the result, unless another request runs: the event loop is held up for one millisecond at most, for two
    /// by a text that is encoded, and for what cannot be stopped.
    #[napi(catch_unwind)]
    pub fn execute(
        &self,
        handle: u32,
        request: String,
        body: Option<Buffer>,
        inline: bool,
    ) -> Result<Option<NativeReply>> {
        let request: Request = parse("request", &request)?;
        let named = request.named.clone();
        let engine = self.engine.lock().clone();
        if let Some(engine) = engine.as_ref().filter(|_| inline && self.rests())
            && let Some(result) = engine.attempt(&request, body.as_deref().unwrap_or_default())
        {
            return Ok(Some(Answer { handle, result, named }.into()));
        }
        let body = body.map_or_else(Body::default, Body::of);
        let cancel = CancelFlag::default();
        self.running.lock().insert(handle, cancel.clone());
        let (running, outbox) = (Arc::clone(&self.running), Arc::clone(&self.outbox));
        let done = move |result| {
            running.lock().remove(&handle);
            outbox.send(Answer { handle, result, named });
        };
        match engine {
            Some(engine) => engine.submit(request, body, cancel, done),
            None => done(Err(EngineError::internal("the engine is closed"))),
        }
        Ok(None)
    }

    /// Whether no request runs, and JavaScript has all answers.
    fn rests(&self) -> bool {
        self.running.lock().is_empty() && self.outbox.is_empty()
    }

    /// Asks a running request to stop; it then answers with an error. Does nothing if it has already answered.
    #[napi(catch_unwind)]
    pub fn cancel(&self, handle: u32) {
        if let Some(cancel) = self.running.lock().get(&handle) {
            cancel.cancel();
        }
    }

    /// Bytes that the process may still allocate, by the limit of the cluster's settings; without bodies and answers that JavaScript
    /// keeps.
    #[napi(catch_unwind)]
    pub fn room(&self) -> f64 {
        self.engine.lock().as_ref().map_or(f64::MAX, |engine| engine.room() as f64)
    }

    /// Says how many bytes of bodies JavaScript keeps now, also of requests that have not come whole.
    #[napi(catch_unwind)]
    pub fn keep_bodies(&self, bytes: f64) {
        if let Some(engine) = self.engine.lock().as_ref() {
            engine.keep_bodies(bytes as usize);
        }
    }

    /// Flushes everything and releases the data directory. Requests after this are refused; those under way are waited for, a few
    /// seconds at most.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred()?;
        let engine = self.engine.lock().take();
        spawn("sparrow-close", move || {
            if let Some(engine) = engine {
                engine.close();
                release(engine);
            }
            deferred.resolve(|_| Ok(()));
        })?;
        Ok(promise)
    }
}

/// How long closing an engine waits for the requests that still use it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Drops an engine as its last user, if the other users end within [`PATIENCE`]: its data directory can then be opened again.
fn release(engine: Arc<Engine>) {
    let deadline = Instant::now() + PATIENCE;
    while Arc::strong_count(&engine) > 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(engine);
}

/// Looks at a data directory that nobody has open. Gives a report as JSON, `{data, indices, problems}`, or the error body of why it
/// could not be looked at.
#[napi(catch_unwind)]
pub fn check_data(data: String) -> NativeReply {
    NativeReply::new(
        0,
        sparrow_engine::check::check(data.as_ref()).map(|report| Reply::ok(&serde_json::json!(report))),
    )
}

/// Why a `bulk` or an `msearch` is refused whose last line does not end, for those that do not reach the engine as they came.
#[napi(catch_unwind, ts_args_type = "request: 'bulk' | 'msearch', body: Buffer")]
pub fn unterminated(request: String, body: Buffer) -> String {
    sparrow_engine::unterminated(&request, &body)
}

/// What the HTTP layer has to know of the engine's operations, of the actions that privileges are granted for, and of what the bodies of
/// queries hold, as JSON: `{operations, actions, queries}`, each an object by name.
#[napi(catch_unwind)]
pub fn declared() -> String {
    sparrow_engine::declared().to_string()
}

/// Looks at a snapshot repository. Gives a report as JSON, `{repository, snapshots, blobs, bytes, unneeded, problems}`, or the error body
/// of why it could not be looked at.
#[napi(catch_unwind)]
pub fn check_repository(repository: String) -> NativeReply {
    let checked = sparrow_engine::check::check_repository(repository.as_ref());
    NativeReply::new(0, checked.map(|report| Reply::ok(&serde_json::json!(report))))
}

/// Makes in `into` a data directory of what can be kept of a damaged one. Gives a report as JSON, `{found, into, indices, left_out}`, or
/// the error body that says why nothing could be kept. Files of `unusable`, by their paths below `data`, are left out.
#[napi(catch_unwind)]
pub fn repair_data(data: String, into: String, unusable: Vec<String>) -> NativeReply {
    let repaired = sparrow_engine::check::repair(data.as_ref(), into.as_ref(), &unusable);
    NativeReply::new(0, repaired.map(|report| Reply::ok(&serde_json::json!(report))))
}

/// Sets what the engine logs: `silent`, `error`, `warn`, `info` or `debug`, as text for people or as JSON lines.
#[napi(catch_unwind)]
pub fn configure_log(level: String, as_text: bool) {
    log::configure(&level, as_text);
}

/// Reads one of the two JSON arguments. `packages/engine` writes them, so an error means that the versions of the two do not match.
fn parse<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::new(Status::InvalidArg, format!("{what}: {error}")))
}

/// Starts a thread for opening or closing an engine, which takes seconds and happens once.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| Error::new(Status::GenericFailure, error.to_string()))
}
