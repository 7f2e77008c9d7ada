//! Statistics of indices: `_stats`, `_segments`, `_recovery`, and the part of `_nodes/stats` about indices.

mod metrics;
pub(crate) mod segments;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};
use sparrow_runtime::work;

pub(crate) use self::metrics::no_figures;
pub use self::metrics::{add, sections};
pub use self::segments::LUCENE;
use sparrow_catalog::Node;
use sparrow_catalog::{IndexHandle, ResolveOptions};
use sparrow_mapping::FieldType;
use sparrow_request::answers::ShardCounts;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::params::Params;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::glob;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("index_stats", Action::Stats, Lane::Look, index_stats)
        .about("What indices hold, and what was done with them.")
        .takes(&[
            INDICES,
            "completion_fields fielddata_fields fields forbid_closed_indices groups",
            "include_segment_file_sizes include_unloaded_segments level",
        ]),
    Operation::new("node_indices", Action::NodesStats, Lane::Look, node_indices)
        .about("Sums over indices, for `_nodes/stats`."),
];

/// Which sections a request asks for.
pub struct RequestedSections(Option<Vec<String>>);

impl RequestedSections {
    /// Reads a list of metrics; an empty one means all.
    ///
    /// # Errors
    /// Illegal argument for an unknown metric, or for `_all` together with other metrics.
    pub fn parse(list: &str, path: &str) -> Result<Self, EngineError> {
        let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let metrics: Vec<&'static str> = metrics::METRICS.split(' ').collect();
        if !check_metrics(&names, &metrics, path)? {
            return Ok(Self(None));
        }
        let section = |name: &str| if name == "merge" { "merges" } else { name }.to_owned();
        Ok(Self(Some(names.into_iter().map(section).collect())))
    }

    /// Keeps only the requested sections of `all`.
    pub fn of(&self, all: Map<String, Value>) -> Map<String, Value> {
        match &self.0 {
            None => all,
            Some(wanted) => all.into_iter().filter(|(name, _)| wanted.contains(name)).collect(),
        }
    }
}

/// Checks the names of metrics; whether only some are requested, and not all.
///
/// # Errors
/// Illegal argument that names the unknown metric and similar ones.
pub fn check_metrics(names: &[&str], metrics: &[&'static str], path: &str) -> Result<bool, EngineError> {
    if names.is_empty() || names == ["_all"] {
        return Ok(false);
    }
    let list = names.join(",");
    if names.contains(&"_all") {
        return Err(EngineError::illegal_argument(format!(
            "request [{path}/{list}] contains _all and individual metrics [{list}]"
        )));
    }
    let unknown: Vec<&str> = names.iter().copied().filter(|name| !metrics.contains(name)).collect();
    if unknown.is_empty() {
        return Ok(true);
    }
    let words: Vec<String> = unknown
        .iter()
        .map(|name| match sparrow_wire::suggest::suggestions(name, metrics).as_slice() {
            [] => format!("[{name}]"),
            [one] => format!("[{name}] -> did you mean [{one}]?"),
            several => format!("[{name}] -> did you mean any of [{}]?", several.join(", ")),
        })
        .collect();
    let plural = if unknown.len() > 1 { "s" } else { "" };
    Err(EngineError::illegal_argument(format!(
        "request [{path}/{list}] contains unrecognized metric{plural}: {}",
        words.join(", ")
    )))
}

/// The granularity of statistics.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Level {
    Cluster,
    Indices,
    Shards,
}

impl Level {
    /// Parses the parameter `level`; `lowest` is the name of the coarsest level that the request allows.
    ///
    /// # Errors
    /// Illegal argument for an unknown level.
    pub fn parse(params: &Params<'_>, default: Self, lowest: &str) -> Result<Self, EngineError> {
        match params.get("level").map(str::to_ascii_lowercase).as_deref() {
            None | Some("") => Ok(default),
            Some("cluster") if lowest == "cluster" => Ok(Self::Cluster),
            Some("node") if lowest == "node" => Ok(Self::Cluster),
            Some("indices") => Ok(Self::Indices),
            Some("shards") => Ok(Self::Shards),
            Some(other) => Err(EngineError::illegal_argument(format!(
                "level parameter must be one of [{lowest}] or [indices] or [shards] but was [{other}]"
            ))),
        }
    }
}

/// The statistics of one index.
#[derive(Serialize)]
struct IndexStats<'a> {
    uuid: &'a str,
    health: &'static str,
    status: &'static str,
    primaries: &'a Map<String, Value>,
    /// The sum over primaries and replicas, which equals `primaries`, as there are no replicas.
    total: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<Value>,
}

/// `GET [/{index}]/_stats[/{metric}]`
fn index_stats(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let path = match request.part("index") {
        "" => "/_stats".to_owned(),
        index => format!("/{index}/_stats"),
    };
    let wanted = RequestedSections::parse(request.part("metric"), &path)?;
    let level = Level::parse(&params, Level::Indices, "cluster")?;
    let forbid_closed = params.bool("forbid_closed_indices", true)?;
    let unloaded = params.bool("include_unloaded_segments", false)?;
    params.bool("include_segment_file_sizes", false)?;
    let groups: Vec<&str> =
        params.get("groups").into_iter().flat_map(|list| list.split(',')).map(str::trim).collect();
    let options = ResolveOptions { forbid_closed, ..ResolveOptions::default() }.with(&params)?;
    let handles = node.indices.resolve(request.part("index"), options, request.right())?;
    let mut total = Map::new();
    let mut shown = Map::new();
    let (mut shards, mut successful) = (0, 0);
    for handle in &handles {
        let read = metrics::sections_and_columns(handle);
        let Some((mut figures, columns)) = handle.unless_gone(request, read)? else { continue };
        if handle.is_closed() && !unloaded {
            // Elsewhere, a closed index keeps none of them open.
            figures["segments"] = metrics::no_segments()?;
        }
        let mut figures = with_fields(wanted.of(figures), &params, columns);
        with_groups(&mut figures, handle, &groups)?;
        successful += 1;
        // A figure of nodes.
        figures.remove("mappings");
        shards += 1 + handle.settings().replicas();
        add(&mut total, &figures);
        if level == Level::Cluster {
            continue;
        }
        let index = IndexStats {
            uuid: &handle.uuid,
            health: handle.health(),
            status: if handle.is_closed() { "close" } else { "open" },
            primaries: &figures,
            total: &figures,
            shards: (level == Level::Shards).then(|| json!({"0": [shard(node, handle, &figures)]})),
        };
        shown.insert(handle.name.clone(), json!(index));
    }
    let total = Value::Object(total);
    let mut body = json!({
        "_shards": ShardCounts::new(shards, successful),
        "_all": {"primaries": total, "total": total},
    });
    if level != Level::Cluster {
        body["indices"] = shown.into();
    }
    Ok(Reply::ok(&body))
}

/// Adds the member `fields` to field data and completions if the request asks for it: the fields that its patterns match.
fn with_fields(
    mut figures: Map<String, Value>,
    params: &Params<'_>,
    columns: metrics::TextColumns,
) -> Map<String, Value> {
    let sections = [
        ("fielddata", "fielddata_fields", "memory_size_in_bytes", columns.field_data),
        ("completion", "completion_fields", "size_in_bytes", columns.completions),
    ];
    for (section, parameter, size, mut fields) in sections {
        let asked: Vec<&str> = ["fields", parameter].iter().filter_map(|name| params.get(name)).collect();
        let Some(Value::Object(figures)) = figures.get_mut(section).filter(|_| !asked.is_empty()) else {
            continue;
        };
        let patterns = asked.iter().flat_map(|list| list.split(','));
        fields.retain(|path, _| patterns.clone().any(|pattern| glob::matches(pattern.trim(), path)));
        let fields: Map<String, Value> =
            fields.into_iter().map(|(path, bytes)| (path, json!({size: bytes}))).collect();
        figures.insert("fields".to_owned(), fields.into());
    }
    figures
}

/// Whether a field has field data: the terms of texts.
pub(crate) fn has_field_data(field_type: &FieldType) -> bool {
    matches!(field_type, FieldType::Text { options } if options.fielddata)
}

fn is_completion(field_type: &FieldType) -> bool {
    matches!(field_type, FieldType::Completion(_))
}

/// Adds the groups of statistics whose names match one of `patterns` to the figures of searches.
fn with_groups(
    figures: &mut Map<String, Value>,
    handle: &IndexHandle,
    patterns: &[&str],
) -> Result<(), EngineError> {
    let Some(Value::Object(search)) = figures.get_mut("search").filter(|_| !patterns.is_empty()) else {
        return Ok(());
    };
    let mut groups = Map::new();
    for (name, group) in handle.counters.groups.all() {
        work::check()?;
        let wanted = |pattern: &&str| matches!(*pattern, "_all") || glob::matches(pattern, &name);
        if patterns.iter().any(wanted) {
            groups.insert(name, metrics::of_group(&group)?);
        }
    }
    if !groups.is_empty() {
        search.insert("groups".to_owned(), groups.into());
    }
    Ok(())
}

/// The single shard of an index: its routing, its statistics and its state.
#[derive(Serialize)]
struct Shard<'a> {
    routing: Value,
    #[serde(flatten)]
    figures: &'a Map<String, Value>,
    #[serde(flatten)]
    state: Value,
}

fn shard(node: &Node, handle: &IndexHandle, figures: &Map<String, Value>) -> Value {
    let last = handle.shard.next_seq_no() as i64 - 1;
    let commits = handle.counters.flush.count() + 1;
    let path = node.data.path().display().to_string();
    let routing = json!({"state": "STARTED", "primary": true, "node": node.id(), "relocating_node": null});
    let state = json!({
        "commit": {
            "id": handle.uuid, "generation": commits, "user_data": {}, "num_docs": handle.snapshot().num_docs(),
        },
        "seq_no": {"max_seq_no": last, "local_checkpoint": last, "global_checkpoint": last},
        "retention_leases": {"primary_term": 1, "version": 0, "leases": []},
        "shard_path": {"state_path": path, "data_path": path, "is_custom_data_path": false},
        "search_idle": false,
        "search_idle_time": 0,
    });
    json!(Shard { routing, figures, state })
}

/// The section `indices` of `_nodes/stats` and `_cluster/stats`; called by the HTTP layer, not a route of its own.
///
/// The path parameters `metric` and `level` choose parts of it.
fn node_indices(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let wanted = RequestedSections::parse(request.part("metric"), "/_nodes/stats/indices")?;
    let level = Level::parse(&request.params(), Level::Cluster, "node")?;
    let mut total = Map::new();
    let mut indices = Map::new();
    for handle in open_indices(node) {
        work::check()?;
        let Some(figures) = handle.unless_gone(request, sections(&handle))? else { continue };
        let figures = wanted.of(figures);
        add(&mut total, &figures);
        match level {
            Level::Cluster => {}
            Level::Indices => {
                indices.insert(handle.name.clone(), figures.into());
            }
            Level::Shards => {
                indices.insert(handle.name.clone(), json!([{"0": shard(node, &handle, &figures)}]));
            }
        }
    }
    if total.is_empty() {
        total = wanted.of(no_figures()?);
    }
    if level != Level::Cluster {
        total.insert(if level == Level::Indices { "indices" } else { "shards" }.to_owned(), indices.into());
    }
    let ingest = node.pipelines.stats();
    let breakers = sparrow_catalog::memory::breakers(&node.memory);
    Ok(Reply::ok(&json!({"node": node.id(), "indices": total, "ingest": ingest, "breakers": breakers})))
}

/// All indices that are open.
pub fn open_indices(node: &Node) -> Vec<Arc<IndexHandle>> {
    node.indices.names().indices.values().filter(|handle| !handle.is_closed()).cloned().collect()
}

/// The health of an index, `green` or `yellow`: a single node holds no replicas, so an index configured with some is
/// yellow.
pub fn health(replicas: usize) -> &'static str {
    if replicas == 0 { "green" } else { "yellow" }
}
