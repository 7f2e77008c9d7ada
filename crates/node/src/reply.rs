//! An answer as JavaScript gets it.

use napi::bindgen_prelude::Buffer;
use napi_derive::napi;
use sparrow_engine::{EngineError, Reply};

/// What a request came to. `ok: false` carries an error body that is ready to be sent as it is.
#[napi(object)]
pub struct NativeReply {
    /// The number that the caller gave the request.
    pub handle: u32,
    /// Whether the engine answered (`true`) or refused with an error (`false`).
    pub ok: bool,
    /// HTTP status of the answer.
    pub status: u16,
    /// The answer's bytes: JSON, or plain text.
    pub body: Buffer,
    /// Whether `body` is plain text.
    pub text: bool,
    /// Warnings about deprecated forms that the request used, one sentence each; absent without such a form.
    pub warnings: Option<Vec<String>>,
    /// The indices and aliases that the request came to; absent where it did not ask for them.
    pub named: Option<Vec<String>>,
    /// Index, id and, if it has one, routing of the document that the request created; absent if it created none.
    pub created: Option<Vec<String>>,
    /// Whether parts of the request were refused for want of a right; absent if none was.
    pub refused_parts: Option<bool>,
    /// Tokens that a model has read for the request; absent where it did not ask for that alone.
    pub tokens: Option<u32>,
    /// Whether the request was refused as a queue has no room for now; absent if not.
    pub full: Option<bool>,
}

impl NativeReply {
    pub(crate) fn new(handle: u32, result: std::result::Result<Reply, EngineError>) -> Self {
        match result {
            Ok(Reply { status, body, text, warnings, created, refused_parts, tokens }) => NativeReply {
                handle,
                ok: true,
                status,
                body: body.into(),
                text,
                warnings: (!warnings.is_empty()).then_some(warnings),
                named: None,
                created,
                refused_parts: refused_parts.then_some(true),
                tokens,
                full: None,
            },
            Err(error) => NativeReply {
                handle,
                ok: false,
                status: error.status(),
                body: error.body().to_string().into_bytes().into(),
                text: false,
                warnings: None,
                named: None,
                created: None,
                refused_parts: None,
                tokens: None,
                full: error.is_full().then_some(true),
            },
        }
    }
}
