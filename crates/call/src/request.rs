//! What comes in and what goes out: operations by name, bodies as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::named::Named;
use crate::origin::Origin;
use crate::params::Params;
use crate::rights::{Action, Caller, Right};

/// One operation. The HTTP layer has matched the route and checked which parameters are allowed.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Request {
    /// Name of the operation, such as `search`.
    pub op: String,
    /// Parts of the path by name: `index`, `id`, `pipeline`, `task`, `model`.
    #[serde(default)]
    pub path: BTreeMap<String, String>,
    /// The query string.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// `X-Opaque-Id`, kept with tasks.
    #[serde(default)]
    pub opaque_id: Option<String>,
    /// The number that the HTTP layer gave the request, for what is logged about it.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The trace that the request is part of, by its `traceparent`.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// Where the indices that it names are gathered: there if the request says `true`.
    #[serde(default, deserialize_with = "crate::named::wanted")]
    pub named: Option<Named>,
    /// The action that the HTTP layer's table names for the operation, where it is one on indices.
    #[serde(default)]
    pub action: Option<Action>,
    /// Who asks: the rights of a restricted key, or none.
    #[serde(default, rename = "rights")]
    pub caller: Caller,
    /// Whether no other request is under way, and no other answer on its way to who asked.
    #[serde(skip)]
    pub alone: bool,
}

impl Request {
    /// A part of the path; empty when the route has none of this name.
    pub fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// The query string's parameters, with their types.
    pub fn params(&self) -> Params<'_> {
        Params::new(&self.query)
    }

    /// The caller's right to do on indices what the operation does.
    pub fn right(&self) -> Right<'_> {
        self.caller.to_given(self.action)
    }

    /// The identifiers of the request, for logs and tasks; `None` if it has none and nobody wants the names of its indices.
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

/// An answer: the body is JSON, or text for the `_cat` family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
    /// Whether the body is text and not JSON.
    pub text: bool,
    /// Sentences about deprecated forms that the request used.
    pub warnings: Vec<String>,
}

impl Reply {
    /// Status 200 with a JSON value.
    pub fn ok(value: &impl Serialize) -> Self {
        Self::json(200, value)
    }

    /// A JSON value with its status. Status 500 for a value that has no form in JSON, such as a map whose keys are not texts.
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::bytes(status, body),
            Err(error) => Self::json(500, &EngineError::internal(error.to_string()).body()),
        }
    }

    /// Status 200 with JSON of about so many bytes: it is written once, and not made a tree first.
    ///
    /// # Errors
    /// When the value has no form in JSON.
    pub fn written(value: &impl Serialize, bytes: usize) -> Result<Self, EngineError> {
        let mut body = Vec::with_capacity(bytes);
        serde_json::to_writer(&mut body, value).map_err(|error| EngineError::internal(error.to_string()))?;
        Ok(Self::bytes(200, body))
    }

    /// JSON that is ready to be sent.
    pub fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self { status, body, text: false, warnings: Vec::new() }
    }

    /// Status 200 with text.
    pub fn text(body: String) -> Self {
        Self { status: 200, body: body.into_bytes(), text: true, warnings: Vec::new() }
    }

    /// The usual answer of an administrative call.
    pub fn acknowledged() -> Self {
        Self::bytes(200, br#"{"acknowledged":true}"#.to_vec())
    }
}

/// Set once when a caller went away; long work looks at it.
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
