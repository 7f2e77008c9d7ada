//! The operations of all crates, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use memchr::memmem;
use serde_json::{Map, Value, json};
use sparrow_admin as admin;
use sparrow_admin::cluster::Ledger;
use sparrow_catalog::Node;
use sparrow_models::{self as models, endpoints};
use sparrow_request::body::{values, values_beside_strings};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::CAT;
use sparrow_request::operation::{Body, Declaration, Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Scope};
use sparrow_runtime::processors;
use sparrow_search::SearchService;
use sparrow_snapshots::SnapshotService;
use sparrow_tasks::api as tasks;

use crate::executor::Executor;

/// What operations need.
pub(crate) struct Parts {
    pub(crate) node: Arc<Node>,
    pub(crate) search: Arc<SearchService>,
    pub(crate) snapshots: Arc<SnapshotService>,
    /// Totals of what indices and deployments counted that no longer exist.
    pub(crate) ledger: Ledger,
    pub(crate) executor: Executor,
}

type Run = Box<dyn Fn(&Parts, &Request, &[u8], &CancelFlag) -> Result<Reply, EngineError> + Send + Sync>;

/// An operation, whichever part of [`Parts`] its function needs.
pub(crate) struct Entry {
    pub(crate) declaration: Declaration,
    pub(crate) run: Run,
}

static OPERATIONS: LazyLock<BTreeMap<&'static str, Entry>> = LazyLock::new(|| {
    let mut all = Operations::default();
    all.add(admin::OPERATIONS, |parts| &*parts.node);
    all.add(&[admin::UPGRADES], |parts| &parts.node);
    all.add(&[admin::SEARCHES], |parts| &*parts.search);
    all.add(&[admin::SNAPSHOTS], |parts| &parts.snapshots);
    all.add(sparrow_documents::OPERATIONS, |parts| &*parts.search);
    all.add(sparrow_jobs::OPERATIONS, |parts| &parts.search);
    all.add(models::OPERATIONS, |parts| &parts.node.model_service);
    all.add(sparrow_search::OPERATIONS, |parts| &*parts.search);
    all.add(sparrow_snapshots::OPERATIONS, |parts| &parts.snapshots);
    all.add(&[tasks::OPERATIONS, sparrow_tasks::reindexes::OPERATIONS], |parts| &parts.node.tasks);
    all.add(&[OF_SEVERAL_PARTS], |parts| parts);
    all.0
});

/// Operations whose functions take several members of [`Parts`].
const OF_SEVERAL_PARTS: &[Operation<Parts>] = &[
    Operation::new(
        "cat_thread_pool",
        Action::NodesStats,
        Lane::Look,
        |parts: &Parts, request, body, cancel| {
            admin::cat::node::cat_thread_pool(&parts.node, &parts.executor.stats(), request, body, cancel)
        },
    )
    .about("A table of the queues of threads.")
    .takes(&[CAT, "size"])
    .text(),
    Operation::new("instruments", Action::NodesStats, Lane::Watch, |parts: &Parts, request, body, cancel| {
        let snapshots = parts.snapshots.snapshots.counts().to_json();
        let (lanes, ledger) = (parts.executor.stats(), &parts.ledger);
        admin::cluster::instruments::instruments(
            &parts.node,
            &lanes,
            ledger,
            &snapshots,
            request,
            body,
            cancel,
        )
    })
    .about("What the engine counts, for `_nodes/stats` and `/metrics`.")
    .unlisted(),
    Operation::new(
        "put_inference",
        Action::PutInference,
        Lane::Write,
        |parts: &Parts, request, body, cancel| {
            let node = &parts.node;
            endpoints::put_endpoint(&node.model_service, &*node.indices, request, body, cancel)
        },
    )
    .about("Makes an inference endpoint: a name for a model, a task, and how texts are cut.")
    .holds("InferenceEndpointRequest", endpoints::shape)
    .takes(&["timeout"]),
    Operation::new(
        "delete_inference",
        Action::DeleteInference,
        Lane::Write,
        |parts: &Parts, request, body, cancel| {
            let node = &parts.node;
            endpoints::delete_endpoint(&node.model_service, &*node.indices, request, body, cancel)
        },
    )
    .about("Deletes an inference endpoint.")
    .takes(&["dry_run force"]),
];

#[derive(Default)]
struct Operations(BTreeMap<&'static str, Entry>);

impl Operations {
    /// Adds operations whose functions take one member of [`Parts`], which `part` picks.
    fn add<S: 'static>(&mut self, lists: &'static [&'static [Operation<S>]], part: fn(&Parts) -> &S) {
        for operation in lists.iter().copied().flatten() {
            let run: Run = Box::new(move |parts: &Parts, request, body, cancel| {
                (operation.run)(part(parts), request, body, cancel)
            });
            let declaration = operation.declaration;
            let earlier = self.0.insert(declaration.name, Entry { declaration, run });
            assert!(earlier.is_none(), "two operations are called {}", declaration.name);
        }
    }
}

/// The operation that a request names.
///
/// # Errors
/// An internal error if no operation has the name.
pub(crate) fn find(request: &Request) -> Result<&'static Entry, EngineError> {
    OPERATIONS
        .get(request.op.as_str())
        .ok_or_else(|| EngineError::internal(format!("no operation [{}]", request.op)))
}

impl Entry {
    /// Whether a request may be as short as its way to a worker and back: it reads, leaves nothing behind that is
    /// open, waits for no refresh, and names no model that would have to encode a text. A body for a model
    /// holds one text of at most 512 bytes.
    pub(crate) fn is_short(&self, request: &Request, body: &[u8]) -> bool {
        let has = |name| request.query.contains_key(name);
        let names_model = || memmem::find(body, MODEL).is_some();
        let is_small = match self.declaration.lane {
            Lane::Infer => body.len() <= SHORT_TEXT && values_beside_strings(body) <= VALUES_OF_A_TEXT,
            _ => body.len() <= SHORT_BODY,
        };
        self.declaration.is_short && is_small && !has("scroll") && !has("refresh") && !names_model()
    }

    /// Estimate of the memory that the values of a body take, in bytes, by its commas and brackets: `[1,1,…` takes a hundred times its
    /// length. Of searches in lines, as many count as are read at once; other lines are read in portions that are small.
    ///
    /// # Errors
    /// Illegal argument if a body has more values than any request has a use for, with their number: each takes hundreds of bytes, which
    /// are only counted once they are there. Documents may have as many as there is memory for.
    pub(crate) fn tree_bytes(&self, body: &[u8]) -> Result<usize, EngineError> {
        let at_once = match self.declaration.body {
            Body::Document => return Ok(sparrow_request::body::tree_bytes(body)),
            Body::Lines => return Ok(0),
            Body::None | Body::Json => self.most_values(std::iter::once(body))?,
            Body::Searches => self.most_values(body.split(|byte| *byte == b'\n'))? * processors::available(),
        };
        Ok(VALUE_BYTES * at_once)
    }

    /// The estimated number of values of the text with most of them, unless one has too many beside its strings.
    fn most_values<'a>(&self, texts: impl Iterator<Item = &'a [u8]>) -> Result<usize, EngineError> {
        let (mut most, mut found) = (0, 0);
        for text in texts {
            let values = values(text);
            most = most.max(values);
            if values > MOST_VALUES && !self.declaration.is_large {
                found = found.max(values_beside_strings(text));
            }
        }
        match found > MOST_VALUES {
            true => Err(EngineError::illegal_argument(format!(
                "the body has [{found}] values, at most [{MOST_VALUES}] are possible on this server"
            ))),
            false => Ok(most),
        }
    }
}

/// Most values of a body that is no document: ten times the terms of a query, and those of a mapping with as many fields as there may be.
const MOST_VALUES: usize = 500_000;

/// Most bytes of the body of a short operation: a vector of 1,024 numbers has 22 KB.
const SHORT_BODY: usize = 32 << 10;

/// Most bytes of a body with a short text to encode, which cannot be stopped once the model reads it.
const SHORT_TEXT: usize = 512;

/// Most values of such a body: a list with one text, and parameters.
const VALUES_OF_A_TEXT: usize = 6;

/// How the keys of queries begin that name a model, and what it is to encode.
const MODEL: &[u8] = b"\"model_";

/// Bytes that a value of another body takes, with what is made of it: 240 for a term of `terms`, up to 470 for an entry of `sort`.
const VALUE_BYTES: usize = 256;

/// What the HTTP layer has to know: the operations with their actions and parameters, the actions with their privileges, and what the
/// bodies of queries hold. `scripts/lib/declarations.mjs` writes it into files of TypeScript.
pub fn declared() -> Value {
    let operations: Map<String, Value> = OPERATIONS
        .values()
        .map(|Entry { declaration, .. }| (declaration.name.to_owned(), shown(declaration)))
        .collect();
    let actions: Map<String, Value> = Action::ALL
        .iter()
        .map(|action| {
            let scope = match action.scope() {
                Scope::Index => "index",
                Scope::Cluster => "cluster",
            };
            let privileges: Vec<&str> = action.privileges().collect();
            let shown = json!({"scope": scope, "privileges": privileges, "composite": action.is_composite()});
            (action.name().to_owned(), shown)
        })
        .collect();
    let bodies = OPERATIONS.values().filter_map(|Entry { declaration, .. }| declaration.holds);
    let schemas = sparrow_query::schemas()
        .into_iter()
        .chain(sparrow_search_body::schemas())
        .chain(sparrow_mapping::schemas())
        .chain(sparrow_ingest::schemas())
        .chain(sparrow_catalog::schemas())
        .chain(bodies.map(|(name, shape)| (name, shape())));
    let schemas: Map<String, Value> =
        schemas.map(|(name, schema)| (name.to_owned(), schema.into())).collect();
    json!({"operations": operations, "actions": actions, "schemas": schemas})
}

fn shown(declaration: &Declaration) -> Value {
    let body = match declaration.body {
        Body::None => "none",
        Body::Json | Body::Document => "json",
        Body::Lines | Body::Searches => "lines",
    };
    let parameters: Vec<&str> = declaration.parameters.iter().flat_map(|text| text.split(' ')).collect();
    let mut shown = json!({
        "about": declaration.about,
        "action": declaration.action.name(),
        "body": body,
        "parameters": parameters,
        "text": declaration.is_text,
        "stops": declaration.stops,
        "reads": declaration.lane.only_reads(),
        "shed": declaration.is_shed,
    });
    if let Some((name, _)) = declaration.holds {
        shown["holds"] = name.into();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_says_what_it_does_and_takes_each_parameter_once() {
        for Entry { declaration, .. } in OPERATIONS.values() {
            let name = declaration.name;
            assert!(declaration.about.ends_with(['.', '?']), "{name}: {}", declaration.about);
            let parameters: Vec<&str> =
                declaration.parameters.iter().flat_map(|text| text.split(' ')).collect();
            let distinct: std::collections::BTreeSet<&&str> = parameters.iter().collect();
            assert_eq!(distinct.len(), parameters.len(), "{name}: {parameters:?}");
            assert!(!distinct.contains(&""), "{name}: two spaces");
        }
    }

    #[test]
    fn bodies_of_the_same_name_hold_the_same() {
        let mut by_name: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, shape) in OPERATIONS.values().filter_map(|entry| entry.declaration.holds) {
            let shape = Value::from(shape());
            assert_eq!(by_name.entry(name).or_insert_with(|| shape.clone()), &shape, "{name}");
        }
        assert!(by_name.len() > 40, "{}", by_name.len());
    }

    #[test]
    fn what_looks_at_tasks_waits_on_a_long_lane_only_if_it_is_asked_to() {
        for op in ["get_task", "list_tasks", "cancel_task", "cancel_tasks"] {
            let mut request = Request { op: op.to_owned(), ..Request::default() };
            let lane = |request: &Request| find(request).unwrap().declaration.lane_of(request);
            assert_eq!(lane(&request), Lane::Watch);
            request.query.insert("wait_for_completion".to_owned(), "true".to_owned());
            assert_eq!(lane(&request), Lane::Long);
        }
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        let request = Request { op: "exists_alias".to_owned(), ..Request::default() };
        assert_eq!(find(&request).err().map(|error| error.status()), Some(500));
    }
}
