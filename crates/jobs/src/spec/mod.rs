//! The specification of a job, parsed from its request: copy, update or delete the documents of a query.

mod parts;
mod reindex;
mod remote;
mod write_again;

#[cfg(test)]
mod tests;

pub(crate) use self::reindex::shape as reindex_shape;
pub(crate) use self::write_again::{shape as delete_shape, update_shape};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sparrow_query::Query;

use sparrow_catalog::ResolveOptions;
use sparrow_mapping::SourceSelection;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::name_steps;
use sparrow_request::request::Request;
use sparrow_request::rights::{Action, Caller, Right};
use sparrow_scripts::ChangeScript;
use sparrow_search::{Order, SearchService};

/// Most parts of a job that run side by side (`index.max_slices_per_scroll`).
const MOST_SLICES: u64 = 1024;

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Reindex,
    UpdateByQuery,
    DeleteByQuery,
}

impl Kind {
    /// The action name of the job's task, as in Elasticsearch.
    pub fn action(self) -> &'static str {
        match self {
            Self::Reindex => "indices:data/write/reindex",
            Self::UpdateByQuery => "indices:data/write/update/byquery",
            Self::DeleteByQuery => "indices:data/write/delete/byquery",
        }
    }

    /// The name of the endpoint without its underscore.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reindex => "reindex",
            Self::UpdateByQuery => "update_by_query",
            Self::DeleteByQuery => "delete_by_query",
        }
    }
}

/// A request, checked.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    /// Expressions for the indices to read.
    pub sources: Vec<String>,
    pub resolve: ResolveOptions,
    /// The query, whose texts have not been encoded yet.
    pub query: Option<Query>,
    /// The order in which documents are processed; `None` for the order in which they were written.
    pub order: Option<Order>,
    /// Documents of a batch.
    pub batch: usize,
    pub max_docs: Option<u64>,
    /// Most documents that are taken from one index.
    pub terminate_after: Option<usize>,
    /// Whether version conflicts are only counted and do not stop the job.
    pub proceed: bool,
    /// Documents per second; infinite for no throttle.
    pub requests_per_second: f64,
    pub refresh: bool,
    pub slices: Slices,
    /// The only slice that is to be processed, under manual slicing: its number and the number of slices.
    pub part: Option<(u32, u32)>,
    pub operation: Operation,
    /// The caller of the request, whose rights the job has.
    pub caller: Caller,
    /// The request itself, with which the job is resumed after a crash.
    saved: Saved,
}

/// What is done with a document.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// Copies the document to the destination.
    Copy(Box<Destination>),
    /// Writes the document again in place, through a pipeline if one is given.
    Update {
        pipeline: Option<String>,
        script: Option<ChangeScript>,
    },
    Delete,
}

/// The destination of copies, and how they are written.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    pub index: String,
    /// Whether the destination must be an alias.
    pub require_alias: bool,
    pub pipeline: Option<String>,
    /// What changes documents before they are copied.
    pub script: Option<ChangeScript>,
    pub create: bool,
    pub version_type: VersionType,
    pub routing: Routing,
    /// The fields to copy.
    pub selection: SourceSelection,
}

/// The routing of copies, before scripts and pipelines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Routing {
    /// That of the source.
    Keep,
    Discard,
    /// This routing, whatever the source has (`"routing": "=<value>"`).
    Set(String),
}

impl Routing {
    /// The routing of the copy of a document with this routing.
    pub(super) fn of_copy(&self, source: Option<String>) -> Option<String> {
        match self {
            Self::Keep => source,
            Self::Discard => None,
            Self::Set(routing) => Some(routing.clone()),
        }
    }
}

/// Whose versions copies have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionType {
    /// The destination's own counter.
    Internal,
    /// The versions of the source; only higher ones are written.
    External,
    /// The versions of the source; equal ones are written too.
    ExternalOrEqual,
}

/// The number of slices that a job is divided into, which run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slices {
    /// The smallest number of shards that any of the source indices has configured.
    Auto,
    Number(u32),
}

/// A request as it came.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Saved {
    kind: Kind,
    index: String,
    parameters: BTreeMap<String, String>,
    body: String,
    /// The rights of the API key of the request; `None` for an unrestricted caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rights: Option<Value>,
    /// What earlier versions stored of a key's rights, which is not enough to resume a job.
    #[serde(default, skip_serializing)]
    visible: Option<Value>,
    #[serde(default, skip_serializing)]
    writable: Option<Value>,
}

impl Spec {
    /// Reads a request.
    ///
    /// # Errors
    /// The error that Elasticsearch returns for it.
    pub fn parse(kind: Kind, request: &Request, body: &[u8]) -> Result<Self, EngineError> {
        match kind {
            Kind::Reindex => reindex::parse(request, body),
            Kind::UpdateByQuery | Kind::DeleteByQuery => write_again::parse(kind, request, body),
        }
    }

    /// Restores the job's specification from what [`Spec::to_saved`] returned.
    ///
    /// # Errors
    /// If it is malformed, or was stored by an earlier version without the rights of its key.
    pub fn from_saved(saved: &Value) -> Result<Self, EngineError> {
        let saved: Saved = serde_json::from_value(saved.clone()).map_err(|error| {
            EngineError::internal(format!("the request of a job cannot be read: {error}"))
        })?;
        if saved.visible.is_some() || saved.writable.is_some() {
            return Err(EngineError::internal(
                "the job was started by a restricted key under an earlier version, and its rights are not known",
            ));
        }
        let request = Request {
            path: std::iter::once(("index".to_owned(), saved.index)).collect(),
            query: saved.parameters,
            caller: Caller::from_saved(saved.rights)?,
            ..Request::default()
        };
        Self::parse(saved.kind, &request, saved.body.as_bytes())
    }

    /// The right that the caller needs for the documents that are read; jobs that update or delete them need the right to do that, too.
    pub fn right_to_read(&self) -> Right<'_> {
        let read = self.caller.to(Action::Search);
        match self.kind() {
            Kind::Reindex => read,
            Kind::UpdateByQuery => read.and(Action::UpdateByQuery),
            Kind::DeleteByQuery => read.and(Action::DeleteByQuery),
        }
    }

    /// The right that the caller needs for an index that is written.
    pub fn right_to_write(&self) -> Right<'_> {
        match &self.operation {
            Operation::Copy(destination) if destination.create => self.caller.to(Action::Create),
            Operation::Copy(_) | Operation::Update { .. } => self.caller.to(Action::Overwrite),
            Operation::Delete => self.caller.to(Action::Delete),
        }
    }

    /// Checks the caller's right to write an index that a pipeline sends a document to.
    ///
    /// # Errors
    /// 403 without that right; 400 for an invalid name.
    pub fn check_written(&self, index: &str) -> Result<(), EngineError> {
        self.right_to_write().check([sparrow_catalog::concrete_name(index)?.as_str()])
    }

    /// Checks the caller's right to delete documents of an index, as a script may ask for.
    ///
    /// # Errors
    /// 403 without that right; 400 for an invalid name.
    pub fn check_deleted(&self, index: &str) -> Result<(), EngineError> {
        self.caller.to(Action::Delete).check([sparrow_catalog::concrete_name(index)?.as_str()])
    }

    /// The request as JSON, with which the job is resumed after a crash.
    pub fn to_saved(&self) -> Value {
        // Strings and maps of strings always serialise.
        serde_json::to_value(&self.saved).unwrap_or_default()
    }

    pub fn kind(&self) -> Kind {
        self.saved.kind
    }

    /// Description of the task.
    pub fn description(&self) -> String {
        let sources = self.sources.join(", ");
        match &self.operation {
            Operation::Copy(destination) => format!("reindex from [{sources}] to [{}]", destination.index),
            Operation::Update { .. } | Operation::Delete => {
                let name = self.kind().name().replace('_', "-");
                if sources.is_empty() {
                    format!("{name} [all indices]")
                } else {
                    format!("{name} [{sources}]")
                }
            }
        }
    }

    /// The destination of a copy; `None` for other jobs.
    pub fn destination(&self) -> Option<&Destination> {
        match &self.operation {
            Operation::Copy(destination) => Some(destination),
            Operation::Update { .. } | Operation::Delete => None,
        }
    }

    /// Checks the caller's rights, and that a copy does not write into an index that it reads. A missing index is an error only later.
    ///
    /// # Errors
    /// 403, or a validation error.
    pub fn check_destination(&self, service: &SearchService) -> Result<(), EngineError> {
        for source in &self.sources {
            service
                .indices
                .names()
                .index_names(source, &self.resolve, self.right_to_read())
                .or_else(allowed)?;
        }
        let Some(given) = self.destination() else { return Ok(()) };
        self.check_written(&given.index)?;
        if given.require_alias && !service.indices.is_alias(&given.index) {
            let name = &given.index;
            let reason = format!(
                "no such index [{name}] and [require_alias] request flag is [true] and [{name}] is not an alias"
            );
            let exception = Exception::new("index_not_found_exception", reason).with("index", name.as_str());
            return Err(EngineError::api(404, exception));
        }
        let destination = service
            .indices
            .write_target(&given.index, self.right_to_write())
            .map(|handle| handle.name.clone());
        let destination = destination.unwrap_or_else(|_| given.index.clone());
        for source in &self.sources {
            let handles = service
                .indices
                .resolve(source, self.resolve.clone(), self.right_to_read())
                .or_else(allowed)?;
            if handles.iter().any(|handle| handle.name == destination) {
                return Err(EngineError::invalid(format!(
                    "reindex cannot write into an index its reading from [{}]",
                    given.index
                )));
            }
        }
        Ok(())
    }
}

/// Turns errors into empty results, but for those of missing rights (403) and of too many names (429).
fn allowed<T>(error: EngineError) -> Result<Vec<T>, EngineError> {
    name_steps::check()?;
    if [403, 429].contains(&error.status()) { Err(error) } else { Ok(Vec::new()) }
}

/// The form of a request that is stored for resuming its job.
fn saved(kind: Kind, request: &Request, body: &[u8]) -> Saved {
    Saved {
        kind,
        index: request.part("index").to_owned(),
        parameters: request.query.clone(),
        body: String::from_utf8_lossy(body).into_owned(),
        rights: request.caller.to_saved(),
        visible: None,
        writable: None,
    }
}
