//! The small tables of `_cat`: health, counts, the master and templates.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cat::table::{Cell, Column, Table, number, text};
use sparrow_catalog::Node;
use sparrow_catalog::ResolveOptions;
use sparrow_request::HOST;
use sparrow_request::NODE_NAME;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{CAT, INDICES};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search::SearchService;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("cat_help", Action::Main, Lane::Look, cat_help)
        .about("Names the tables.")
        .takes(&["help s"])
        .text(),
    Operation::new("cat_health", Action::Health, Lane::Look, cat_health)
        .about("Health in one line.")
        .takes(&[CAT, "ts"])
        .text(),
    Operation::new("cat_master", Action::Main, Lane::Look, cat_master)
        .about("The node, in one line.")
        .takes(&[CAT])
        .text(),
    Operation::new("cat_templates", Action::GetTemplate, Lane::Look, cat_templates)
        .about("A table of templates.")
        .takes(&[CAT])
        .text(),
    Operation::new(
        "cat_component_templates",
        Action::GetComponentTemplate,
        Lane::Look,
        cat_component_templates,
    )
    .about("A table of component templates.")
    .takes(&[CAT])
    .text(),
];

pub(crate) const SEARCHES: &[Operation<SearchService>] =
    &[Operation::new("cat_count", Action::Search, Lane::Read, cat_count)
        .about("The number of documents.")
        .takes(&[CAT, INDICES])
        .text()];

/// The paths that `GET /_cat` lists.
const TABLES: &[&str] = &[
    "/_cat/allocation",
    "/_cat/shards",
    "/_cat/shards/{index}",
    "/_cat/master",
    "/_cat/nodes",
    "/_cat/tasks",
    "/_cat/indices",
    "/_cat/indices/{index}",
    "/_cat/segments",
    "/_cat/segments/{index}",
    "/_cat/count",
    "/_cat/count/{index}",
    "/_cat/recovery",
    "/_cat/recovery/{index}",
    "/_cat/health",
    "/_cat/pending_tasks",
    "/_cat/aliases",
    "/_cat/aliases/{alias}",
    "/_cat/thread_pool",
    "/_cat/thread_pool/{thread_pools}",
    "/_cat/plugins",
    "/_cat/fielddata",
    "/_cat/fielddata/{fields}",
    "/_cat/nodeattrs",
    "/_cat/repositories",
    "/_cat/snapshots",
    "/_cat/snapshots/{repository}",
    "/_cat/templates",
    "/_cat/component_templates",
    "/_cat/ml/trained_models",
    "/_cat/ml/trained_models/{model_id}",
];

/// `GET /_cat`
fn cat_help(_: &Node, _: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    Ok(Reply::text(format!("=^.^=\n{}\n", TABLES.join("\n"))))
}

/// The current time in seconds since the epoch, and its time of day.
fn now() -> (u64, String) {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    (seconds, crate::cat::time_of_day(seconds))
}

const HEALTH: &[Column] = &[
    text("epoch", &["t", "time"], "seconds since 1970-01-01 00:00:00"),
    text("timestamp", &["ts", "hms", "hhmmss"], "time in HH:MM:SS"),
    text("cluster", &["cl"], "cluster name"),
    text("status", &["st"], "health status"),
    number("node.total", &["nt", "nodeTotal"], "total number of nodes"),
    number("node.data", &["nd", "nodeData"], "number of nodes that can store data"),
    number("shards", &["t", "sh", "shards.total", "shardsTotal"], "total number of shards"),
    number("pri", &["p", "shards.primary", "shardsPrimary"], "number of primary shards"),
    number("relo", &["r", "shards.relocating", "shardsRelocating"], "number of relocating nodes"),
    number("init", &["i", "shards.initializing", "shardsInitializing"], "number of initializing nodes"),
    number("unassign", &["u", "shards.unassigned", "shardsUnassigned"], "number of unassigned shards"),
    number(
        "unassign.pri",
        &["up", "shards.unassigned.primary", "shardsUnassignedPrimary"],
        "number of unassigned primary shards",
    ),
    number("pending_tasks", &["pt", "pendingTasks"], "number of pending tasks"),
    number("max_task_wait_time", &["mtwt", "maxTaskWaitTime"], "wait time of longest task pending"),
    number("active_shards_percent", &["asp", "activeShardsPercent"], "active number of shards in percent"),
];

/// `GET /_cat/health`
fn cat_health(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let names = node.indices.names();
    let active = names.indices.len();
    let replicas: usize = names.indices.values().map(|handle| handle.settings().replicas()).sum();
    let broken = names.broken.len();
    let is_troubled = names.indices.values().any(|handle| handle.is_troubled());
    let status = match (broken, replicas) {
        (0, 0) if !is_troubled => "green",
        (0, _) => "yellow",
        _ => "red",
    };
    let all = active + replicas + broken;
    let percent = if all == 0 { 100.0 } else { active as f64 * 100.0 / all as f64 };
    let (epoch, timestamp) = now();
    let mut row: Vec<Cell> = match params.bool("ts", true)? {
        true => vec![epoch.into(), timestamp.into()],
        false => vec![Cell::Nothing, Cell::Nothing],
    };
    row.extend(["sparrow".into(), status.into()]);
    row.extend([1, 1, active, active, 0, 0, replicas + broken, broken, 0].map(Cell::from));
    row.extend(["-".into(), format!("{percent:.1}%").into()]);
    let mut table = Table::new(HEALTH);
    table.row(row);
    table.reply(&params)
}

const COUNT: &[Column] = &[
    text("epoch", &["t", "time"], "seconds since 1970-01-01 00:00:00, that the count was executed"),
    text("timestamp", &["ts", "hms"], "time that the count was executed"),
    text("count", &["dc", "docs.count", "docsCount"], "the document count"),
];

/// `GET /_cat/count[/{index}]`
fn cat_count(
    service: &SearchService,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let options = ResolveOptions::default().with(&request.params())?;
    let mut count = 0;
    for resolved in service.indices.resolve_filtered(request.part("index"), &options, request.right())? {
        let handle = &resolved.handle;
        let snapshot =
            sparrow_search::restrict(service, handle, &handle.snapshot(), resolved.filter.as_ref())?;
        count += snapshot.num_docs();
    }
    let (epoch, timestamp) = now();
    let mut table = Table::new(COUNT);
    table.row(vec![epoch.into(), timestamp.into(), count.into()]);
    table.reply(&request.params())
}

const MASTER: &[Column] = &[
    text("id", &[], "node id"),
    text("host", &["h"], "host name"),
    text("ip", &[], "ip address "),
    text("node", &["n"], "node name"),
];

/// `GET /_cat/master`
fn cat_master(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let mut table = Table::new(MASTER);
    table.row(vec![node.id().into(), HOST.into(), HOST.into(), NODE_NAME.into()]);
    table.reply(&request.params())
}

const TEMPLATES: &[Column] = &[
    text("name", &["n"], "template name"),
    text("index_patterns", &["t"], "template index patterns"),
    text("order", &["o", "p"], "template application order/priority number"),
    text("version", &["v"], "version"),
    text("composed_of", &["c"], "component templates comprising index template"),
];

/// `GET /_cat/templates[/{name}]`
fn cat_templates(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let set = node.indices.templates.set();
    let pattern = request.part("name");
    let wanted = |name: &str| pattern.is_empty() || sparrow_wire::glob::matches(pattern, name);
    let list = |items: &[String]| format!("[{}]", items.join(", "));
    let mut table = Table::new(TEMPLATES);
    for (name, template) in set.legacy.iter().filter(|(name, _)| wanted(name)) {
        let version = template.version.map(|version| version.to_string());
        let order = template.order.to_string();
        table.row(vec![name.as_str().into(), list(&template.patterns).into(), order.into(), version.into()]);
    }
    for (name, template) in set.index.iter().filter(|(name, _)| wanted(name)) {
        table.row(vec![
            name.as_str().into(),
            list(&template.patterns).into(),
            template.priority.unwrap_or(0).to_string().into(),
            template.about.version.map(|version| version.to_string()).into(),
            list(&template.composed_of).into(),
        ]);
    }
    table.reply(&request.params())
}

const COMPONENTS: &[Column] = &[
    text("name", &["n"], "component template name"),
    text("version", &["v"], "version"),
    number("alias_count", &["a"], "number of aliases"),
    number("included_in", &["i"], "included in count"),
];

/// `GET /_cat/component_templates[/{name}]`
fn cat_component_templates(
    node: &Node,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let set = node.indices.templates.set();
    let pattern = request.part("name");
    let mut table = Table::new(COMPONENTS);
    for (name, component) in &set.component {
        if !pattern.is_empty() && !sparrow_wire::glob::matches(pattern, name) {
            continue;
        }
        let users = set.index.values().filter(|template| template.composed_of.contains(name)).count();
        table.row(vec![
            name.as_str().into(),
            component.about.version.map(|version| version.to_string()).into(),
            component.body.aliases.len().into(),
            users.into(),
        ]);
    }
    table.reply(&request.params())
}
