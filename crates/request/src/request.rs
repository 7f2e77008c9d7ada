//! Requests and replies: operations by name, bodies as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde::{Deserialize, Serialize};
use sparrow_runtime::work::{self, Output};

use crate::error::EngineError;
use crate::named::Named;
use crate::origin::Origin;
use crate::params::Params;
use crate::rights::{Action, Caller, Right};

/// A request for one operation. The HTTP layer has already matched the route and checked which parameters are
/// allowed.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Request {
    /// Name of the operation, such as `search`.
    pub op: String,
    /// Parts of the path by name: `index`, `id`, `pipeline`, `task`, `model`.
    #[serde(default)]
    pub path: BTreeMap<String, String>,
    /// Parameters of the query string by name.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// `X-Opaque-Id`, kept with tasks.
    #[serde(default)]
    pub opaque_id: Option<String>,
    /// The id that the HTTP layer assigned to the request, for log entries about it.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The trace to which the request belongs, from its `traceparent` header.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// The version of Elasticsearch's interface that the request speaks; `None` for the usual one.
    #[serde(default)]
    pub version: Option<u8>,
    /// Where index names that the request refers to are collected; `None` unless the HTTP layer sends `true` for it.
    #[serde(default, deserialize_with = "crate::named::wanted")]
    pub named: Option<Named>,
    /// The action that the HTTP layer's table assigns to the operation, if it is an action on indices.
    #[serde(default)]
    pub action: Option<Action>,
    /// Who sent the request: a restricted key with its rights, or a caller without restrictions.
    #[serde(default, rename = "rights")]
    pub caller: Caller,
}

impl Request {
    /// A part of the path; empty when the route has none of this name.
    pub fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// Typed access to the parameters of the query string.
    pub fn params(&self) -> Params<'_> {
        Params::new(&self.query)
    }

    /// The caller's right to carry out the operation's action on indices.
    pub fn right(&self) -> Right<'_> {
        self.caller.to_given(self.action)
    }

    /// The identifiers of the request, for logs and tasks; `None` if there are none and index names are not
    /// collected.
    pub fn origin(&self) -> Option<Arc<Origin>> {
        let Self { request_id, trace_id, opaque_id, named, .. } = self;
        (request_id.is_some() || trace_id.is_some() || opaque_id.is_some() || named.is_some()).then(|| {
            Arc::new(Origin {
                request_id: request_id.clone(),
                trace_id: trace_id.clone(),
                opaque_id: opaque_id.clone(),
                named: named.clone(),
            })
        })
    }
}

/// A response, whose body is JSON, or text for the `_cat` operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// The complete response body.
    pub body: Vec<u8>,
    /// Whether the body is text and not JSON.
    pub text: bool,
    /// Sentences about deprecated forms that the request used.
    pub warnings: Vec<String>,
    /// Index, id and, if it has one, routing of the document that the request created.
    pub created: Option<Vec<String>>,
    /// Whether parts of a request that was carried out were refused, as its key may not use the indices that they name.
    pub refused_parts: bool,
    /// Tokens that a model has read for the request, where the request asks for nothing but that.
    pub tokens: Option<u32>,
}

impl Reply {
    /// Status 200 with a JSON value.
    pub fn ok(value: &impl Serialize) -> Self {
        Self::json(200, value)
    }

    /// A response with the given status and a JSON value. If the value cannot be written, as the request has to stop or a map has
    /// keys that are not strings, it is the response for that error.
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        match Self::written(value, 0) {
            Ok(reply) => Self { status, ..reply },
            Err(error) => Self::bytes(error.status(), error.body().to_string().into_bytes()),
        }
    }

    /// A response with status 200 and a JSON value of about `bytes` bytes, which is serialized directly, without
    /// building a tree.
    ///
    /// # Errors
    /// If the value cannot be written as JSON, or the request has to stop.
    pub fn written(value: &impl Serialize, bytes: usize) -> Result<Self, EngineError> {
        let mut body = Vec::new();
        work::grow(&mut body, bytes)?;
        write_json(value, &mut body)?;
        Ok(Self::bytes(200, body))
    }

    /// A response with the given status and finished JSON.
    pub fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            body,
            text: false,
            warnings: Vec::new(),
            created: None,
            refused_parts: false,
            tokens: None,
        }
    }

    /// Says whether parts were refused for want of a right.
    #[must_use]
    pub fn with_refused_parts(self, refused: bool) -> Self {
        Self { refused_parts: refused, ..self }
    }

    /// Says how many tokens a model has read.
    #[must_use]
    pub fn with_tokens(self, tokens: u32) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Status 200 with text.
    pub fn text(body: String) -> Self {
        Self { text: true, ..Self::bytes(200, body.into_bytes()) }
    }

    /// The response `{"acknowledged":true}`, usual for administrative operations.
    pub fn acknowledged() -> Self {
        Self::bytes(200, br#"{"acknowledged":true}"#.to_vec())
    }
}

/// Writes a value as JSON to the end of an answer.
///
/// # Errors
/// If the request has to stop, or the value cannot be written as JSON.
pub fn write_json(value: &impl Serialize, answer: &mut Vec<u8>) -> Result<(), EngineError> {
    serde_json::to_writer(Output::new(answer), value).map_err(|error| match work::check() {
        Err(stopped) => stopped.into(),
        Ok(()) => EngineError::internal(error.to_string()),
    })
}

/// Cancellation flag, set once when the client disconnects and checked by long-running work.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether the work should stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// The flag itself, for layers that poll it.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

impl From<Arc<AtomicBool>> for CancelFlag {
    /// Shares a flag that something else sets, such as the cancellation of a task.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}
