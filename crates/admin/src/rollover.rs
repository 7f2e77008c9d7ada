//! `_rollover`: points an alias to a new index when the current one meets given conditions.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use sparrow_catalog::Node;
use sparrow_catalog::alias_changes::AliasChange;
use sparrow_catalog::aliases::AliasSpec;
use sparrow_catalog::blocks::Access;
use sparrow_catalog::templates::Body;
use sparrow_catalog::{IndexHandle, date_math, names, now_millis};
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{RESIZE, TIMEOUTS};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::params::parse_duration;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Right};
use sparrow_wire::shape::{Shape, alike, int, object, text};
use sparrow_wire::size::parse_size;

pub(crate) const OPERATIONS: &[Operation<Node>] =
    &[Operation::new("rollover", Action::Rollover, Lane::Write, rollover)
        .about("Lets an alias point to a new index, if conditions hold.")
        .holds("RolloverRequest", shape)
        .takes(&[TIMEOUTS, RESIZE])];

/// Digits that the number at the end of a name has at least.
const DIGITS: usize = 6;

/// What a request holds.
fn shape() -> Shape {
    object([("conditions", conditions_shape())]).and(Body::members())
}

fn conditions_shape() -> Shape {
    object(alike("max_docs max_primary_shard_docs min_docs min_primary_shard_docs", int()))
        .and(alike("max_age max_size max_primary_shard_size min_age min_size min_primary_shard_size", text()))
}

/// A condition in the form that the response shows, and whether it is met.
struct Condition {
    text: String,
    /// Whether it is a minimum (`min_…`), which must be met in addition to any `max_…`.
    least: bool,
    holds: bool,
}

/// `POST /{alias}/_rollover[/{new_index}]`
fn rollover(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let dry_run = params.bool("dry_run", false)?;
    if params.bool("lazy", false)? {
        return Err(EngineError::illegal_argument("lazy rollover can be applied only on a data stream"));
    }
    let alias = request.part("index");
    let mut given = Body::default();
    let mut conditions = Map::new();
    for (key, value) in &parse_object(body)? {
        match (key.as_str(), value) {
            ("conditions", Value::Object(members)) => conditions = members.clone(),
            ("conditions", _) => {
                return Err(EngineError::parse("[rollover_request] [conditions] must be an object"));
            }
            _ if given.set(key, value)? => {}
            (other, _) => {
                return Err(EngineError::parse(format!("[rollover_request] {}", shape().unknown(other))));
            }
        }
    }
    request.right().check([alias])?;
    let names = node.indices.names();
    let refused = |reason: String| Err(EngineError::illegal_argument(reason));
    if names.indices.contains_key(alias) || names.broken.contains_key(alias) {
        return refused(
            "rollover target is a [concrete index] but one of [alias,data_stream] was expected".to_owned(),
        );
    }
    if !names.aliases.contains_key(alias) {
        return refused(format!("rollover target [{alias}] does not exist"));
    }
    let Ok(Some(old)) = names.write_index(alias) else {
        return refused(format!("rollover target [{alias}] does not point to a write index"));
    };
    if given.aliases.contains_key(alias) {
        return refused(format!(
            "Rollover alias [{alias}] can't be specified in the body: the new index gets it anyway"
        ));
    }
    let handle = node.indices.write_target(alias, request.right())?;
    handle.check_access(Access::MetadataWrite)?;
    // The next name follows from the alias; one that the request chooses has to be the caller's to take.
    let mut making = Right::unlimited();
    let provided = match request.part("target") {
        "" => {
            let provided = handle.metadata.read().provided_name.clone().unwrap_or_else(|| old.clone());
            next_name(&old, &provided)?
        }
        name => {
            making = request.caller.to(Action::CreateIndex);
            name.to_owned()
        }
    };
    let new = date_math::resolve(&provided)?;
    making.check([new.as_str()])?;
    crate::index::check_aliases(request, &new, &given.aliases)?;
    names::check(&new)?;
    names.check_free(&new)?;
    let conditions = judged(&handle, &conditions)?;
    let maxima = conditions.iter().filter(|one| !one.least);
    let (mut any, mut none) = (false, true);
    for one in maxima {
        none = false;
        any |= one.holds;
    }
    let met = (any || none) && conditions.iter().all(|one| !one.least || one.holds);
    let rolls = met && !dry_run;
    if rolls {
        let planned = node.indices.planned_as(&new, &provided, &given)?;
        node.indices.create_and_change(planned, making, &|names| {
            // Somebody else may have rolled it over, or taken it away, since the conditions were judged.
            if !matches!(names.write_index(alias), Ok(Some(index)) if index == old) {
                let reason =
                    format!("rollover target [{alias}] does not point to write index [{old}] any longer");
                return Err(EngineError::illegal_argument(reason));
            }
            // As it is now: its filter may have been changed meanwhile.
            let spec = names.aliases.get(alias).and_then(|indices| indices.get(&old));
            let spec = spec.map(|spec| AliasSpec::clone(spec)).unwrap_or_default();
            let (index, alias) = (old.clone(), alias.to_owned());
            let aliases = BTreeMap::from([(alias.clone(), spec.clone())]);
            let change = match spec.is_write_index {
                Some(true) => {
                    let spec = AliasSpec { is_write_index: Some(false), ..spec };
                    AliasChange::Add { index, alias, spec: spec.into() }
                }
                _ => AliasChange::Remove { index, alias, must_exist: true },
            };
            Ok((vec![change], aliases))
        })?;
    }
    let shown: Map<String, Value> = conditions.into_iter().map(|one| (one.text, one.holds.into())).collect();
    Ok(Reply::ok(&json!({
        "acknowledged": rolls,
        "shards_acknowledged": rolls,
        "old_index": old,
        "new_index": new,
        "rolled_over": rolls,
        "dry_run": dry_run,
        "lazy": false,
        "conditions": shown,
    })))
}

/// The name of the next index, with its number increased by one. Date math is kept as it is, so that the new name has
/// the current date.
fn next_name(old: &str, provided: &str) -> Result<String, EngineError> {
    let inner = provided.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    let text = inner.unwrap_or(provided);
    let numbered = text.rsplit_once('-').and_then(|(stem, digits)| {
        let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        Some((stem, digits.parse::<u64>().ok().filter(|_| all)?))
    });
    let Some((stem, number)) = numbered else {
        return Err(EngineError::illegal_argument(format!(
            "index name [{old}] does not match pattern '^.*-\\d+$'"
        )));
    };
    let next = format!("{stem}-{:0DIGITS$}", number.saturating_add(1));
    Ok(if inner.is_some() { format!("<{next}>") } else { next })
}

/// Parses the conditions and evaluates them for an index.
fn judged(handle: &IndexHandle, conditions: &Map<String, Value>) -> Result<Vec<Condition>, EngineError> {
    if conditions.is_empty() {
        return Ok(Vec::new());
    }
    let docs = handle.snapshot().num_docs();
    // The files of documents, without those of an empty index.
    let bytes: u64 = handle.index().segment_stats()?.iter().map(|segment| segment.bytes).sum();
    let age = now_millis().saturating_sub(handle.metadata.read().creation_millis);
    let mut judged = Vec::new();
    for (name, value) in conditions {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => {
                return Err(EngineError::parse(format!(
                    "[rollover_request] condition [{name}] must be a number or a string"
                )));
            }
        };
        let least = name.starts_with("min_");
        let holds = match name.as_str() {
            "max_age" | "min_age" => {
                let limit = parse_duration(name, &text)?;
                limit.is_some_and(|limit| u128::from(age) >= limit.as_millis())
            }
            "max_docs" | "min_docs" | "max_primary_shard_docs" | "min_primary_shard_docs" => {
                let limit: u64 = text.parse().map_err(|_| {
                    EngineError::illegal_argument(format!("[{name}] must be a whole number, found [{text}]"))
                })?;
                docs >= limit
            }
            "max_size" | "min_size" | "max_primary_shard_size" | "min_primary_shard_size" => {
                bytes >= parse_bytes(name, &text)?
            }
            _ => {
                let unknown = conditions_shape().unknown(name);
                return Err(EngineError::parse(format!("[conditions] {unknown}")));
            }
        };
        judged.push(Condition { text: format!("[{name}: {text}]"), least, holds });
    }
    if judged.iter().all(|one| one.least) {
        return Err(EngineError::invalid(
            "at least one max_* rollover condition must be set when using min_* conditions",
        ));
    }
    Ok(judged)
}

/// Parses a size such as `5gb`; in bytes.
fn parse_bytes(name: &str, text: &str) -> Result<u64, EngineError> {
    parse_size(text).ok_or_else(|| {
        EngineError::parse(format!(
            "failed to parse setting [{name}] with value [{text}] as a size in bytes: unit is missing or unrecognized"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_up() {
        for (name, next) in [
            ("logs-1", "logs-000002"),
            ("logs-000009", "logs-000010"),
            ("a-b-9999999", "a-b-10000000"),
            ("<logs-{now/d}-3>", "<logs-{now/d}-000004>"),
        ] {
            assert_eq!(next_name("old", name).unwrap(), next);
        }
        for bad in ["logs", "logs-", "logs-x", "logs-1x"] {
            assert!(next_name(bad, bad).unwrap_err().reason().contains("does not match pattern"));
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_bytes("max_size", "5kb").unwrap(), 5120);
        assert_eq!(parse_bytes("max_size", "1.5MB").unwrap(), 3 << 19);
        assert!(parse_bytes("max_size", "5").is_err());
    }
}
