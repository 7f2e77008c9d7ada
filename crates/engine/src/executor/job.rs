//! An operation that a lane carries out.

use sparrow_request::caught;
use sparrow_request::error::EngineError;
use sparrow_request::request::Reply;
use sparrow_request::rights::Holder;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// How much memory a request holds while it waits for a worker, and whose it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load {
    /// The restricted key that sent the request; `None` for all callers without restrictions together.
    pub(crate) owner: Option<Holder>,
    /// Size of the request's body in bytes, which stays in memory while the request waits.
    pub(crate) bytes: usize,
}

/// Runs `work` for one request. If it panics, which is a bug of Sparrow, the request gets a 500 and the server stays up.
pub(super) fn guarded(work: impl FnOnce() -> Result<Reply, EngineError>) -> Result<Reply, EngineError> {
    caught(work).unwrap_or_else(|message| {
        tracing::error!(message, "an operation panicked");
        Err(EngineError::internal(format!("internal error: {message}")))
    })
}
