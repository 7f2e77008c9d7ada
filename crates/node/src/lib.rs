//! The Node addon: converts between JavaScript values and the engine's types, and nothing else.
//!
//! No request is interpreted here, no body is parsed and no error sentence is written. Every call hands its bytes to the
//! engine and returns a promise at once; the engine answers from one of its own threads through a deferred, so the event
//! loop never waits.

mod log;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use napi::bindgen_prelude::{Buffer, Either, Object};
use napi::{Env, Error, Result, Status};
use napi_derive::napi;
use parking_lot::Mutex;
use sparrow_engine::{CancelFlag, Engine, EngineError, EngineOptions, Reply, Request};

/// What a request came to. `ok: false` carries an error body that is ready to be sent as it is.
#[napi(object)]
pub struct NativeReply {
    /// Whether the engine answered (`true`) or refused with an error (`false`).
    pub ok: bool,
    /// HTTP status of the answer.
    pub status: u16,
    /// The answer's bytes: JSON, or plain text.
    pub body: Buffer,
    /// Whether `body` is plain text.
    pub text: bool,
}

impl From<std::result::Result<Reply, EngineError>> for NativeReply {
    fn from(result: std::result::Result<Reply, EngineError>) -> Self {
        match result {
            Ok(Reply { status, body, text }) => NativeReply { ok: true, status, body: body.into(), text },
            Err(error) => NativeReply {
                ok: false,
                status: error.status(),
                body: error.body().to_string().into_bytes().into(),
                text: false,
            },
        }
    }
}

/// Requests that are under way, by the number their caller gave them.
type Running = Arc<Mutex<HashMap<u32, CancelFlag>>>;

/// One open data directory with everything that serves it.
#[napi]
pub struct NativeEngine {
    engine: Arc<Engine>,
    running: Running,
}

#[napi]
impl NativeEngine {
    /// Opens a data directory. `options` is an `EngineOptions` as JSON. Resolves once the write-ahead log is replayed and
    /// the deployments that ran before are started, or with the error that prevented it.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeEngine | NativeReply>")]
    pub fn open(env: &Env, options: String) -> Result<Object<'_>> {
        log::install();
        let options: EngineOptions = parse("engine options", &options)?;
        let (deferred, promise) = env.create_deferred()?;
        spawn("sparrow-open", move || {
            let opened = Engine::open(options);
            deferred.resolve(move |_| {
                Ok(match opened {
                    Ok(engine) => Either::A(NativeEngine { engine, running: Running::default() }),
                    Err(error) => Either::B(NativeReply::from(Err(error))),
                })
            });
        })?;
        Ok(promise)
    }

    /// Starts one request. `request` is a `Request` as JSON, `body` the bytes as they came, and `handle` a number that no
    /// other running request has, by which `cancel` finds this one.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeReply>")]
    pub fn execute<'env>(
        &self,
        env: &'env Env,
        handle: u32,
        request: String,
        body: Option<Buffer>,
    ) -> Result<Object<'env>> {
        let request: Request = parse("request", &request)?;
        // One copy: the bytes belong to JavaScript's heap and may not be touched from another thread.
        let body = body.map(|bytes| bytes.to_vec()).unwrap_or_default();
        let (deferred, promise) = env.create_deferred()?;
        let finished = Arc::new(AtomicBool::new(false));
        let done = {
            let running = Arc::clone(&self.running);
            let finished = Arc::clone(&finished);
            move |result| {
                finished.store(true, Ordering::SeqCst);
                running.lock().remove(&handle);
                deferred.resolve(move |_| Ok(NativeReply::from(result)));
            }
        };
        let cancel = self.engine.submit(request, body, done);
        self.running.lock().insert(handle, cancel);
        // The answer may have come before the handle was stored: then nobody else takes it out again.
        if finished.load(Ordering::SeqCst) {
            self.running.lock().remove(&handle);
        }
        Ok(promise)
    }

    /// Asks a running request to stop; it then answers with an error. Does nothing if it has already answered.
    #[napi(catch_unwind)]
    pub fn cancel(&self, handle: u32) {
        if let Some(cancel) = self.running.lock().get(&handle) {
            cancel.cancel();
        }
    }

    /// Flushes everything and releases the data directory. Requests after this are refused by the engine.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred()?;
        let engine = Arc::clone(&self.engine);
        spawn("sparrow-close", move || {
            engine.close();
            deferred.resolve(|_| Ok(()));
        })?;
        Ok(promise)
    }
}

/// Reads one of the two JSON arguments. They are written by `packages/engine`, so a failure is a mismatch of versions.
fn parse<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::new(Status::InvalidArg, format!("{what}: {error}")))
}

/// Opening and closing take seconds and happen once: a thread each, apart from the engine's own.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| Error::new(Status::GenericFailure, error.to_string()))
}
