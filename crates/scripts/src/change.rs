//! Scripts that change documents as they are written: those of `_update`, `_update_by_query` and `_reindex`.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value as Json};
use sparrow_runtime::work;

use crate::cache::Cache;
use crate::context::Context;
use crate::error::ScriptError;
use crate::machine::Machine;
use crate::script::Script;
use crate::source::ScriptSource;
use crate::value::Value;

/// What `ctx` has of a document besides its fields.
const METADATA: [&str; 4] = ["_index", "_id", "_version", "_routing"];

/// Longest time that scripts may take for all documents of one request.
const LONGEST: Duration = Duration::from_secs(30);

/// The request that a script belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// `_update`, and updates in `_bulk`.
    Update,
    /// `_update_by_query`.
    UpdateByQuery,
    /// `_reindex`, whose scripts may also change where a document goes.
    Reindex,
}

impl Changes {
    fn context(self) -> &'static Context {
        const UPDATE: Context = Context { name: "update", variables: &["ctx"], functions: &[] };
        const BY_QUERY: Context = Context { name: "update_by_query", ..UPDATE };
        const REINDEX: Context = Context { name: "reindex", ..UPDATE };
        match self {
            Self::Update => &UPDATE,
            Self::UpdateByQuery => &BY_QUERY,
            Self::Reindex => &REINDEX,
        }
    }
}

/// A document as a script finds it.
#[derive(Debug)]
pub struct Found<'a> {
    /// The index that it is written to.
    pub index: &'a str,
    /// The document's id; none if it gets one when it is written.
    pub id: Option<&'a str>,
    /// The document's version; none for an upsert, whose document does not exist yet.
    pub version: Option<u64>,
    /// The routing that the document was written with.
    pub routing: Option<&'a str>,
    /// The document's fields, a JSON object.
    pub source: &'a Json,
}

/// What a script has decided to do with a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Write it with these fields. A script of `_reindex` may have changed its metadata: names are those of `ctx`.
    Write {
        /// The fields.
        source: Map<String, Json>,
        /// `_index`, `_id`, `_version` and `_routing`, if they were changed.
        metadata: Map<String, Json>,
    },
    /// Delete it.
    Delete,
    /// Leave it as it is.
    Noop,
}

/// A script that changes documents, with its constants.
#[derive(Debug, Clone)]
pub struct ChangeScript {
    script: Arc<Script>,
    params: Option<Arc<Map<String, Json>>>,
    changes: Changes,
}

impl ChangeScript {
    /// Reads and compiles the `script` of a request.
    ///
    /// # Errors
    /// As [`ScriptSource::parse`] and [`Script::compile`].
    pub fn parse(given: &Json, changes: Changes) -> Result<Self, ScriptError> {
        let ScriptSource { source, params, .. } = ScriptSource::parse(given)?.inline()?;
        let script = Cache::shared().get(&source, changes.context())?;
        Ok(Self { script, params, changes })
    }

    /// Runs the script on a document.
    ///
    /// # Errors
    /// When it fails, or leaves something in `ctx` that cannot be done.
    pub fn decide(&self, found: &Found<'_>) -> Result<Decision, ScriptError> {
        let is_new = found.version.is_none() && self.changes == Changes::Update;
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
        let version = found.version.and_then(|version| i64::try_from(version).ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        let before = [
            text(Some(found.index)),
            text(found.id),
            version.map_or(Value::Null, Value::Long),
            text(found.routing),
        ];
        let given = [
            ("op", text(Some(if is_new { "create" } else { "index" }))),
            ("_now", Value::Long(now)),
            ("_source", Value::from_json(found.source)),
        ];
        let ctx = Value::map(METADATA.into_iter().zip(before).chain(given));
        let mut machine = Machine::new(Arc::clone(&self.script), self.params.clone());
        machine.set("ctx", ctx.clone());
        let began = Instant::now();
        if work::time_spent() > LONGEST {
            return Err(ScriptError::Context {
                reason: format!("the scripts of the request took longer than [{}s]", LONGEST.as_secs()),
            });
        }
        let run = machine.run(&mut ());
        work::spend_time(began.elapsed());
        run?;
        let Json::Object(mut ctx) = machine.to_json(&ctx)? else { return Ok(Decision::Noop) };
        let op = ctx.remove("op").unwrap_or_default();
        let allowed: &[&str] = if is_new { &["create", "noop"] } else { &["delete", "index", "noop"] };
        match op.as_str() {
            Some("noop" | "none") => return Ok(Decision::Noop),
            Some("delete") if !is_new => return Ok(Decision::Delete),
            Some("index") if !is_new => {}
            Some("create") if is_new => {}
            other => {
                let shown = other.map_or_else(|| op.to_string(), str::to_owned);
                return Err(ScriptError::Context {
                    reason: format!("[op] must be one of {}, not [{shown}]", allowed.join(", ")),
                });
            }
        }
        let Some(Json::Object(source)) = ctx.remove("_source") else {
            return Err(ScriptError::Context { reason: "[_source] must be a map".to_owned() });
        };
        let metadata = self.changed(found, ctx)?;
        Ok(Decision::Write { source, metadata })
    }

    /// The metadata that the script has changed.
    fn changed(&self, found: &Found<'_>, ctx: Map<String, Json>) -> Result<Map<String, Json>, ScriptError> {
        let before = |name: &str| match name {
            "_index" => Json::from(found.index),
            "_id" => found.id.map_or(Json::Null, Json::from),
            "_version" => found.version.map_or(Json::Null, Json::from),
            _ => found.routing.map_or(Json::Null, Json::from),
        };
        let mut changed = Map::new();
        for name in METADATA {
            let after = ctx.get(name).cloned().unwrap_or_default();
            if after == before(name) {
                continue;
            }
            let reason = match (self.changes, name, &after) {
                (Changes::Update | Changes::UpdateByQuery, ..) => format!("[{name}] cannot be updated"),
                (_, "_index", Json::Null) => "[_index] cannot be null".to_owned(),
                (_, "_index" | "_id" | "_routing", Json::String(_) | Json::Null)
                | (_, "_version", Json::Null) => String::new(),
                (_, "_version", Json::Number(number)) if number.is_u64() => String::new(),
                (_, "_version", _) => "[_version] must be a number or null".to_owned(),
                _ => format!("[{name}] must be a string"),
            };
            if !reason.is_empty() {
                return Err(ScriptError::Context { reason });
            }
            changed.insert(name.to_owned(), after);
        }
        if let Some(name) = ctx.keys().find(|name| *name != "_now" && !METADATA.contains(&name.as_str())) {
            return Err(ScriptError::Context {
                reason: format!(
                    "unexpected metadata key [{name}] in [ctx]: fields of the document are in [ctx._source]"
                ),
            });
        }
        Ok(changed)
    }
}
