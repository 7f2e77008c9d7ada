//! `_clone`, `_shrink` and `_split`: create an index with the documents of another by copying its files.
//!
//! An index is never really divided, whatever its number of shards, so the three differ only in the numbers of shards
//! that they allow.

use std::collections::BTreeMap;

use serde_json::json;

use sparrow_catalog::Node;
use sparrow_catalog::aliases::AliasSpec;
use sparrow_catalog::{Settings, names};
use sparrow_request::body::parse_object;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::parameters::{RESIZE, TIMEOUTS};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::shape::{Shape, map, named, object};

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("clone_index", Action::Resize, Lane::Long, resize)
        .about("Copies an index.")
        .holds("CopyIndexRequest", shape)
        .takes(&[TIMEOUTS, RESIZE]),
    Operation::new("shrink_index", Action::Resize, Lane::Long, resize)
        .about("Copies an index into one of fewer shards.")
        .holds("CopyIndexRequest", shape)
        .takes(&[TIMEOUTS, RESIZE]),
    Operation::new("split_index", Action::Resize, Lane::Long, resize)
        .about("Copies an index into one of more shards.")
        .holds("CopyIndexRequest", shape)
        .takes(&[TIMEOUTS, RESIZE]),
];

/// What a request says of the new index.
fn shape() -> Shape {
    object([("settings", named("Settings")), ("aliases", map(named("Alias")))])
}

/// `PUT|POST /{index}/_clone/{target}`, `…/_shrink/{target}`, `…/_split/{target}`
fn resize(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let target = sparrow_catalog::date_math::resolve(request.part("target"))?;
    request.right().check([request.part("index")])?;
    let making = request.caller.to(Action::CreateIndex);
    making.check([target.as_str()])?;
    names::check(&target)?;
    let (mut given, mut aliases) = (json!({}), BTreeMap::new());
    for (key, value) in parse_object(body)? {
        match key.as_str() {
            "settings" => given = value,
            "aliases" => aliases = AliasSpec::parse_all(&value)?,
            other => {
                return Err(EngineError::parse(format!("[resize_request] {}", shape().unknown(other))));
            }
        }
    }
    crate::index::check_aliases(request, &target, &aliases)?;
    // The filter of an alias would not be the copy's.
    let name = sparrow_catalog::date_math::resolve(request.part("index"))?;
    if node.indices.is_alias(&name) {
        return Err(sparrow_catalog::only_an_index(&name));
    }
    let source = node.indices.get(&name, request.right())?;
    let given_settings = Settings::parse(&given)?;
    // One shard can be split in any way, several only as their documents were distributed.
    let any_way = request.op == "split_index" && source.settings().shards() == 1;
    if !any_way && given_settings.under("number_of_routing_shards").next().is_some() {
        return Err(EngineError::illegal_argument("cannot provide index.number_of_routing_shards on resize"));
    }
    let shards = shards_after(&request.op, &source.settings(), &given_settings)?;
    if !source.settings().is_blocked("write") && !source.settings().is_blocked("read_only") {
        return Err(illegal_state(format!(
            "index {} must be read-only to resize index. use \"index.blocks.write=true\"",
            source.name
        )));
    }
    let settings = source.settings().resized(&given, shards)?;
    node.indices.copy(&source, &target, settings, aliases, making)?;
    Ok(Reply::ok(&json!({"acknowledged": true, "shards_acknowledged": true, "index": target})))
}

/// The number of shards that the new index is shown with.
fn shards_after(op: &str, source: &Settings, given: &Settings) -> Result<usize, EngineError> {
    let before = source.shards();
    let asked = given.asked_shards();
    let illegal = |reason: String| Err(EngineError::illegal_argument(reason));
    match (op, asked) {
        ("clone_index", None) => Ok(before),
        ("clone_index", Some(after)) if after != before => illegal(format!(
            "the number of target shards [{after}] must be the same as the number of source shards [{before}]"
        )),
        ("shrink_index", None) => Ok(1),
        ("shrink_index", Some(after)) if after > before => illegal(format!(
            "the number of target shards [{after}] must be less that the number of source shards [{before}]"
        )),
        ("shrink_index", Some(after)) if !before.is_multiple_of(after) => {
            illegal(format!("the number of source shards [{before}] must be a multiple of [{after}]"))
        }
        ("split_index", None) => {
            Err(EngineError::invalid("index.number_of_shards is required for split operations"))
        }
        ("split_index", Some(after)) if after <= before => illegal(format!(
            "the number of source shards [{before}] must be less that the number of target shards [{after}]"
        )),
        ("split_index", Some(after)) if !after.is_multiple_of(before) => Err(illegal_state(format!(
            "the number of source shards [{before}] must be a factor of [{after}]"
        ))),
        (_, Some(after)) => Ok(after),
        (_, None) => Ok(before),
    }
}

fn illegal_state(reason: String) -> EngineError {
    // Not a 500 as there: the caller can help it.
    EngineError::api(400, Exception::new("illegal_state_exception", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(shards: Option<usize>) -> Settings {
        let value = shards.map_or_else(|| json!({}), |shards| json!({"number_of_shards": shards}));
        Settings::parse(&value).unwrap()
    }

    #[test]
    fn numbers_of_shards_divide_each_other() {
        let after = |op: &str, before: usize, asked: Option<usize>| {
            shards_after(op, &settings(Some(before)), &settings(asked)).ok()
        };
        assert_eq!(after("clone_index", 2, None), Some(2));
        assert_eq!(after("clone_index", 2, Some(6)), None);
        assert_eq!(after("shrink_index", 6, None), Some(1));
        assert_eq!(after("shrink_index", 6, Some(3)), Some(3));
        assert_eq!(after("shrink_index", 6, Some(4)), None);
        assert_eq!(after("split_index", 2, Some(4)), Some(4));
        assert_eq!(after("split_index", 2, Some(5)), None);
        assert_eq!(after("split_index", 2, None), None);
    }
}
