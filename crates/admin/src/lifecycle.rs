//! Requests that open, close, block and force-merge indices.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::index::{refuse_patterns, targets};
use sparrow_catalog::Node;
use sparrow_catalog::blocks::{self, Access};
use sparrow_catalog::{IndexHandle, ResolveOptions};
use sparrow_request::answers::ShardCounts;
use sparrow_request::error::EngineError;
use sparrow_request::name_steps::{NameSteps, is_pattern};
use sparrow_request::operation::parameters::{INDICES, TIMEOUTS};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_tasks::TaskSpec;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("close_index", Action::Close, Lane::Write, close_index)
        .about("Closes indices: they keep their data, and take no memory.")
        .takes(&[TIMEOUTS, INDICES, "wait_for_active_shards"]),
    Operation::new("open_index", Action::Open, Lane::Write, open_index)
        .about("Opens closed indices.")
        .takes(&[TIMEOUTS, INDICES, "wait_for_active_shards"]),
    Operation::new("add_block", Action::AddBlock, Lane::Write, add_block)
        .about("Blocks writes, reads or changes of metadata.")
        .takes(&[TIMEOUTS, INDICES]),
    Operation::new("remove_block", Action::RemoveBlock, Lane::Write, remove_block)
        .about("Ends a block of writes, reads or changes of metadata.")
        .takes(&[TIMEOUTS, INDICES]),
    Operation::new("force_merge", Action::ForceMerge, Lane::Long, force_merge)
        .about("Merges segments.")
        .takes(&[INDICES, "max_num_segments only_expunge_deletes flush wait_for_completion"])
        .unlisted(),
    Operation::new("clear_cache", Action::ClearCache, Lane::Write, clear_cache)
        .about("Empties caches.")
        .takes(&[INDICES, "fielddata fields query request index"]),
    Operation::new("resolve_index", Action::ResolveIndex, Lane::Look, resolve_index)
        .about("What names stand for.")
        .takes(&[INDICES]),
    Operation::new("get_data_stream", Action::GetDataStream, Lane::Look, get_data_stream)
        .about("Lists data streams; the list is always empty.")
        .takes(&["expand_wildcards include_defaults master_timeout verbose"]),
    Operation::new("delete_data_stream", Action::DeleteDataStream, Lane::Write, delete_data_stream)
        .about("Deletes data streams; there is never one to delete.")
        .takes(&["expand_wildcards", TIMEOUTS]),
    Operation::new("create_data_stream", Action::CreateDataStream, Lane::Write, refuse)
        .about("Refused: there are no data streams.")
        .takes(&[TIMEOUTS]),
];

/// `POST /{index}/_close`
fn close_index(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    refuse_patterns(node, request.part("index"))?;
    let handles = targets(node, request, ResolveOptions::metadata())?;
    handles.iter().try_for_each(|handle| handle.check_access(Access::MetadataWrite))?;
    let mut closed = Map::new();
    for handle in handles {
        if handle.is_closed() {
            handle.settle_metadata()?;
        } else {
            // What was written is in segments; the log has nothing that only an open index could show.
            handle.flush()?;
            handle.set_closed(true, &|| Ok(()))?;
        }
        closed.insert(handle.name.clone(), json!({"closed": true}));
    }
    Ok(Reply::ok(&json!({"acknowledged": true, "shards_acknowledged": true, "indices": closed})))
}

/// `POST /{index}/_open`
fn open_index(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    refuse_patterns(node, request.part("index"))?;
    let options = ResolveOptions { open: false, closed: true, ..ResolveOptions::metadata() };
    let handles = targets(node, request, options)?;
    let closed = handles.iter().filter(|handle| handle.is_closed()).count();
    if closed > 0 {
        node.cluster.check_shards(node.indices.names().open_indices(), closed)?;
    }
    for handle in handles {
        if handle.is_closed() {
            handle.check_access(Access::MetadataWrite)?;
            handle.set_closed(false, &|| node.indices.clear_leftovers())?;
        } else {
            handle.settle_metadata()?;
        }
    }
    Ok(Reply::ok(&json!({"acknowledged": true, "shards_acknowledged": true})))
}

/// `PUT /{index}/_block/{block}`
fn add_block(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let blocked = set_block(node, request, &json!(true), "blocked")?;
    let any = !blocked.is_empty();
    Ok(Reply::ok(&json!({"acknowledged": any, "shards_acknowledged": any, "indices": blocked})))
}

/// `DELETE /{index}/_block/{block}`
fn remove_block(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let unblocked = set_block(node, request, &Value::Null, "unblocked")?;
    Ok(Reply::ok(&json!({"acknowledged": !unblocked.is_empty(), "indices": unblocked})))
}

/// Gives the block that the path names a value in each index, and lists them, with `done` as the name of what became of each.
fn set_block(node: &Node, request: &Request, value: &Value, done: &str) -> Result<Vec<Value>, EngineError> {
    let block = request.part("block");
    if !blocks::is_known(block) {
        return Err(EngineError::illegal_argument(format!("No block found with name {block}")));
    }
    let change = json!({format!("index.blocks.{block}"): value});
    let mut changed = Vec::new();
    for handle in targets(node, request, ResolveOptions::metadata())? {
        // Writes that are under way end first, so that none is acknowledged behind the block.
        handle.replace_metadata(&handle.changer()?, |metadata| {
            metadata.settings = metadata.settings.updated(&change, &handle.name, &handle.uuid)?;
            Ok(())
        })?;
        changed.push(json!({"name": handle.name, done: true}));
    }
    Ok(changed)
}

/// The options of a force merge.
#[derive(Debug, Clone, Copy)]
struct ForceMerge {
    /// Most segments that remain of an index; −1 for what the merge policy decides.
    max_num_segments: i64,
    only_expunge_deletes: bool,
    flush: bool,
}

impl ForceMerge {
    fn run(self, handles: &[Arc<IndexHandle>]) -> Result<Value, EngineError> {
        for handle in handles {
            handle.refresh()?;
            let stats = handle.index().stats()?;
            let needed = if self.only_expunge_deletes {
                stats.deleted > 0
            } else {
                // As in Lucene, a single segment stays as it is, deleted documents and all. But a segment of Lucene has its graph from
                // the start, and ours gets it by a merge.
                self.max_num_segments > 0 && stats.segments as i64 > self.max_num_segments
                    || stats.segments == 1 && handle.index().lacks_graphs()
            };
            if needed {
                handle.shard.merge().map_err(|error| handle.failed(error))?;
            }
            if self.flush {
                handle.flush()?;
            }
        }
        Ok(json!({"_shards": ShardCounts::all(handles.len())}))
    }
}

/// `POST /{index}/_forcemerge`
fn force_merge(node: &Node, request: &Request, _: &[u8], cancel: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let wanted = ForceMerge {
        max_num_segments: params.integer("max_num_segments")?.unwrap_or(-1),
        only_expunge_deletes: params.bool("only_expunge_deletes", false)?,
        flush: params.bool("flush", true)?,
    };
    if wanted.only_expunge_deletes && wanted.max_num_segments != -1 {
        return Err(EngineError::invalid(
            "cannot set only_expunge_deletes and max_num_segments at the same time, those two parameters are \
             mutually exclusive",
        ));
    }
    if wanted.max_num_segments == 0 || wanted.max_num_segments < -1 {
        return Err(EngineError::illegal_argument(format!(
            "[max_num_segments] must be greater than 0 but was [{}]",
            wanted.max_num_segments
        )));
    }
    let wait = params.bool("wait_for_completion", true)?;
    let handles = targets(node, request, ResolveOptions::default())?;
    handles.iter().try_for_each(|handle| handle.check_access(Access::MetadataWrite))?;
    let description = format!(
        "Force-merge indices [{}], maxSegments[{}], onlyExpungeDeletes[{}], flush[{}]",
        request.part("index"),
        wanted.max_num_segments,
        wanted.only_expunge_deletes,
        wanted.flush
    );
    let mut spec = TaskSpec::new("indices:admin/forcemerge", description).of(request);
    if !wait {
        spec = spec.persistent();
    }
    let task = node.tasks.spawn(spec, move |_| wanted.run(&handles))?;
    if wait {
        return Ok(Reply::ok(&task.wait(&|| cancel.is_cancelled())?));
    }
    Ok(Reply::ok(&json!({"task": task.id()})))
}

/// `POST /{index}/_cache/clear`: does nothing but check the request. Cached filters are never wrong and are dropped
/// when memory is short, so nothing needs to be cleared.
fn clear_cache(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    for part in ["fielddata", "query", "request"] {
        params.bool(part, false)?;
    }
    let handles = targets(node, request, ResolveOptions::default())?;
    Ok(Reply::ok(&json!({"_shards": ShardCounts::all(handles.len())})))
}

/// An index that an expression resolves to, as the response shows it.
#[derive(Serialize)]
struct ResolvedIndex<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<&'a str>,
    attributes: Vec<&'static str>,
}

/// `GET /_resolve/index/{name}`
fn resolve_index(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let options = ResolveOptions::metadata().with(&request.params())?;
    let names = node.indices.names();
    let expression = request.part("name");
    let direct = names.index_names(
        expression,
        &ResolveOptions { only_indices: true, ..options.clone() },
        request.right(),
    )?;
    let mut indices = Vec::new();
    let of_indices = names.aliases_by_index();
    let mut steps = NameSteps::default();
    for name in direct {
        let mut aliases: Vec<&str> = Vec::new();
        for (alias, spec) in of_indices.get(name.as_str()).into_iter().flatten() {
            steps.add(1)?;
            if request.caller.knows(alias) && (options.hidden || spec.is_hidden != Some(true)) {
                aliases.push(alias);
            }
        }
        let handle = names.indices.get(&name);
        let state = if handle.is_some_and(|handle| handle.is_closed()) { "closed" } else { "open" };
        let mut attributes = vec![state];
        if handle.is_some_and(|handle| handle.settings().is_hidden()) {
            attributes.push("hidden");
        }
        attributes.sort_unstable();
        indices.push(json!(ResolvedIndex { name: &name, aliases, attributes }));
    }
    let aliases: Vec<Value> = names
        .alias_names(expression, &options, request.right())?
        .into_iter()
        .map(|alias| {
            let indices: Vec<&String> =
                names.aliases.get(&alias).into_iter().flat_map(|of| of.keys()).collect();
            json!({"name": alias, "indices": indices})
        })
        .collect();
    Ok(Reply::ok(&json!({"indices": indices, "aliases": aliases, "data_streams": []})))
}

/// `GET /_data_stream[/{name}]`: an empty list, or 404 for a name that is not a pattern, as data streams are not
/// supported.
fn get_data_stream(_: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    no_data_stream(request)?;
    Ok(Reply::ok(&json!({"data_streams": []})))
}

/// `DELETE /_data_stream/{name}`: nothing to do for a pattern, with which clients tidy up, or 404.
fn delete_data_stream(_: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    no_data_stream(request)?;
    Ok(Reply::acknowledged())
}

/// Refuses names of data streams that are no patterns: none exists.
fn no_data_stream(request: &Request) -> Result<(), EngineError> {
    let names = request.part("name").split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<&str> = names.filter(|name| !is_pattern(name)).collect();
    request.right().check(names.iter().copied())?;
    match names.first() {
        Some(name) => Err(EngineError::IndexNotFound { name: (*name).to_owned() }),
        None => Ok(()),
    }
}

/// `PUT /_data_stream/{name}`: always refused, as data streams are not supported.
fn refuse(_: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    request.right().check([request.part("name")])?;
    Err(EngineError::illegal_argument(
        "data streams cannot be used on this server: use an index, or an alias with a write index",
    ))
}
