//! The `_cat` requests: tables for people to read.

pub mod node;
pub mod overview;
pub mod shards;
pub mod snapshots;
mod table;

use self::table::{Cell, Column, Table, number, text};
use crate::alias_reads::{Choice, is_expression};
use sparrow_catalog::Node;
use sparrow_catalog::ResolveOptions;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{CAT, INDICES};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("cat_aliases", Action::GetAliases, Lane::Look, cat_aliases)
        .about("A table of aliases.")
        .takes(&[CAT, INDICES])
        .text(),
    Operation::new("cat_indices", Action::Stats, Lane::Look, cat_indices)
        .about("A table of indices.")
        .takes(&[CAT, INDICES, "health pri include_unloaded_segments"])
        .text(),
];

/// The version of Elasticsearch whose interface this is.
const VERSION: &str = "8.19.21";

/// The time of day, such as `12:34:56` in UTC, of a moment in seconds since the epoch.
fn time_of_day(seconds: u64) -> String {
    let day = seconds % 86_400;
    format!("{:02}:{:02}:{:02}", day / 3600, day / 60 % 60, day % 60)
}

const INDEX_COLUMNS: &[Column] = &[
    text("health", &["h"], "current health status"),
    text("status", &["s"], "open/close status"),
    text("index", &["i", "idx"], "index name"),
    text("uuid", &["id", "uuid"], "index uuid"),
    number("pri", &["p", "shards.primary", "shardsPrimary"], "number of primary shards"),
    number("rep", &["r", "shards.replica", "shardsReplica"], "number of replica shards"),
    number("docs.count", &["dc", "docsCount"], "available docs"),
    number("docs.deleted", &["dd", "docsDeleted"], "deleted docs"),
    text("creation.date", &["cd"], "index creation date (millisecond value)").on_request(),
    text("creation.date.string", &["cds"], "index creation date (as string)").on_request(),
    number("store.size", &["ss", "storeSize"], "store size of primaries & replicas"),
    number("pri.store.size", &[], "store size of primaries"),
    number("dataset.size", &[], "total size of dataset (including the cache for partially mounted indices)"),
    number("segments.count", &["sc", "segmentsCount"], "number of segments").on_request(),
    number("pri.segments.count", &[], "number of segments").on_request(),
];

/// `GET /_cat/indices`
fn cat_indices(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let wanted_health = match params.get("health") {
        None => None,
        Some(colour) => Some(
            ["green", "yellow", "red"].into_iter().find(|it| it.eq_ignore_ascii_case(colour)).ok_or_else(
                || EngineError::illegal_argument(format!("unknown cluster health status [{colour}]")),
            )?,
        ),
    };
    let names = node.indices.names();
    let indices = names.index_names(
        request.part("index"),
        &ResolveOptions::everything().with(&params)?,
        request.right(),
    )?;
    let mut table = Table::new(INDEX_COLUMNS);
    for name in indices {
        let Some(handle) = names.indices.get(&name) else {
            let uuid = names.broken.get(&name).map(|broken| broken.uuid.clone());
            if wanted_health.is_none_or(|wanted| wanted == "red") {
                table.row(vec!["red".into(), "open".into(), name.into(), uuid.into(), 1usize.into()]);
            }
            continue;
        };
        let replicas = handle.settings().replicas();
        let health = handle.health();
        if wanted_health.is_some_and(|wanted| wanted != health) {
            continue;
        }
        let created = handle.metadata.read().creation_millis;
        let mut row: Vec<Cell> = vec![
            health.into(),
            if handle.is_closed() { "close" } else { "open" }.into(),
            name.into(),
            handle.uuid.clone().into(),
            1usize.into(),
            replicas.into(),
        ];
        if handle.is_closed() {
            row.extend([Cell::Nothing, Cell::Nothing]);
        } else {
            let Some(stats) = handle.unless_gone(request, handle.index().stats())? else { continue };
            row.extend([
                stats.docs.into(),
                stats.deleted.into(),
                created.to_string().into(),
                sparrow_mapping::date::format_millis(created as i64).into(),
                Cell::Bytes(stats.bytes),
                Cell::Bytes(stats.bytes),
                Cell::Bytes(stats.bytes),
                stats.segments.into(),
                stats.segments.into(),
            ]);
        }
        table.row(row);
    }
    table.reply(&params)
}

const ALIASES: &[Column] = &[
    text("alias", &["a"], "alias name"),
    text("index", &["i", "idx"], "index alias points to"),
    text("filter", &["f", "fi"], "filter"),
    text("routing.index", &["ri", "routingIndex"], "index routing"),
    text("routing.search", &["rs", "routingSearch"], "search routing"),
    text("is_write_index", &["w", "isWriteIndex"], "write index"),
];

/// `GET /_cat/aliases[/{name}]`
fn cat_aliases(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let options = ResolveOptions::everything().with(&params)?;
    let names = node.indices.names();
    let wanted: Vec<&str> = request.part("name").split(',').filter(|name| !name.is_empty()).collect();
    let right = request.right();
    right.check(wanted.iter().copied().filter(|name| !is_expression(name)))?;
    let mut table = Table::new(ALIASES);
    let of_indices = names.aliases_by_index();
    let mut choice = Choice::new(&wanted, right);
    for index in names.index_names("", &options, right)? {
        for (alias, spec) in of_indices.get(index.as_str()).into_iter().flatten() {
            let choice = choice.of(alias)?;
            if !choice.chosen || !choice.is_seen {
                continue;
            }
            let or_dash = |text: Option<String>| Cell::Text(text.unwrap_or_else(|| "-".to_owned()));
            table.row(vec![
                alias.as_str().into(),
                index.clone().into(),
                if spec.filter.is_some() { "*" } else { "-" }.into(),
                or_dash(spec.index_routing.clone()),
                or_dash(spec.search_routing.clone()),
                or_dash(spec.is_write_index.map(|write| write.to_string())),
            ]);
        }
    }
    table.reply(&params)
}
