//! Aliases: second names of indices, each with properties for every index that it stands for.
//!
//! All of them are in one store, by the uuid of their index, so that any set of changes is one replacement of one file: after a
//! crash all of it is there or nothing. Entries of an index that does not exist are ignored, which is why an index can get its
//! aliases before it exists, and lose them after it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sparrow_query::{QueryKind, dsl, walk};
use sparrow_write_ahead_log::DataDir;

use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::shape::{self, Named, Shape};
use sparrow_write_ahead_log::stores;

use super::prepare::check_routing_length;

const STORE: &str = "aliases";

/// The aliases of one index: alias name → its properties for that index.
pub type OfIndex = BTreeMap<String, Arc<AliasSpec>>;

/// Resolves the name of an alias as a template or a request writes it, with date math, and with `{index}` for the name of the
/// index.
///
/// # Errors
/// When it cannot be parsed, or the result is not a valid alias name.
pub fn name_for(alias: &str, index: &str) -> Result<String, EngineError> {
    let name = super::date_math::resolve(&alias.replace("{index}", index))?;
    super::names::check_alias(&name)?;
    Ok(name)
}

/// The properties that an alias has for one of its indices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AliasSpec {
    /// A query in its JSON form: a search that names the index by this alias finds only the documents that match it. Reads by id
    /// ignore it, as in Elasticsearch.
    pub filter: Option<Value>,
    pub index_routing: Option<String>,
    pub search_routing: Option<String>,
    pub is_write_index: Option<bool>,
    pub is_hidden: Option<bool>,
}

impl AliasSpec {
    /// The properties that a request may give an alias.
    pub fn members() -> impl Iterator<Item = Named> {
        shape::alike("routing index_routing search_routing", shape::text())
            .chain(shape::alike("is_write_index is_hidden", shape::switch()))
            .chain([("filter", shape::named("Query"))])
    }

    /// What the definition of an alias holds.
    pub fn shape() -> Shape {
        shape::object(Self::members())
    }

    /// Sets the property `key` of an alias from a request; `false` when there is no such property.
    ///
    /// # Errors
    /// When the value has a wrong type, or is a filter that is not a query.
    pub fn set(&mut self, alias: &str, key: &str, value: &Value) -> Result<bool, EngineError> {
        match key {
            "filter" => self.filter = filter(alias, value)?,
            "routing" => {
                // For what has no routing of its own.
                let both = routing(key, value)?;
                self.index_routing = self.index_routing.take().or_else(|| both.clone());
                self.search_routing = self.search_routing.take().or(both);
            }
            "index_routing" | "indexRouting" | "index-routing" => self.index_routing = routing(key, value)?,
            "search_routing" | "searchRouting" | "search-routing" => {
                self.search_routing = routing(key, value)?
            }
            "is_write_index" => self.is_write_index = switch(key, value)?,
            "is_hidden" => self.is_hidden = switch(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the definition of an alias in the `aliases` of an index or of a template.
    ///
    /// # Errors
    /// As [`AliasSpec::set`]; an unknown member is named.
    pub fn parse(alias: &str, value: &Value) -> Result<Self, EngineError> {
        let mut spec = Self::default();
        let Some(members) = value.as_object() else {
            return Err(EngineError::illegal_argument(format!("failed to parse alias [{alias}]")));
        };
        for (key, value) in members {
            if !spec.set(alias, key, value)? {
                return Err(EngineError::illegal_argument(format!(
                    "Unknown field [{key}] in alias [{alias}]{}",
                    Self::shape().near(key)
                )));
            }
        }
        spec.check(alias)?;
        Ok(spec)
    }

    /// Reads the `aliases` of an index or of a template: alias name → definition.
    ///
    /// # Errors
    /// As [`AliasSpec::parse`], and for names that no alias may have.
    pub fn parse_all(value: &Value) -> Result<BTreeMap<String, Self>, EngineError> {
        let Some(members) = value.as_object() else {
            return Err(EngineError::parse("[aliases] must be an object"));
        };
        let parse = |(name, value): (&String, &Value)| {
            // Date math is checked now, and resolved when an index gets the alias.
            super::names::check_alias(&super::date_math::resolve(name)?)?;
            Ok((name.clone(), Self::parse(name, value)?))
        };
        members.iter().map(parse).collect()
    }

    /// Checks that the alias has a single routing value for writes.
    ///
    /// # Errors
    /// When its index routing is a list.
    pub fn check(&self, alias: &str) -> Result<(), EngineError> {
        if self.index_routing.as_deref().is_some_and(|routing| routing.contains(',')) {
            return Err(EngineError::illegal_argument(format!(
                "alias [{alias}] has several index routing values associated with it"
            )));
        }
        Ok(())
    }

    /// The alias's properties as JSON, in the form that the API shows and the store keeps.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            out.extend(value.map(|value| (name.to_owned(), value)));
        };
        put("filter", self.filter.clone());
        put("index_routing", self.index_routing.clone().map(Value::String));
        put("search_routing", self.search_routing.clone().map(Value::String));
        put("is_write_index", self.is_write_index.map(Value::Bool));
        put("is_hidden", self.is_hidden.map(Value::Bool));
        Value::Object(out)
    }

    /// Reads what [`AliasSpec::to_json`] wrote; `None` for anything else, so that nothing of it is lost.
    fn from_json(value: &Value) -> Option<Self> {
        let mut spec = Self::default();
        for (name, value) in value.as_object()? {
            match name.as_str() {
                "filter" => spec.filter = Some(value.clone()),
                "index_routing" => spec.index_routing = Some(value.as_str()?.to_owned()),
                "search_routing" => spec.search_routing = Some(value.as_str()?.to_owned()),
                "is_write_index" => spec.is_write_index = Some(value.as_bool()?),
                "is_hidden" => spec.is_hidden = Some(value.as_bool()?),
                _ => return None,
            }
        }
        Some(spec)
    }
}

fn filter(alias: &str, value: &Value) -> Result<Option<Value>, EngineError> {
    let filter = match value {
        Value::Null => return Ok(None),
        Value::Object(filter) if filter.is_empty() => return Ok(None),
        // Some clients send it as text.
        Value::String(text) => serde_json::from_str(text).map_err(|_| {
            EngineError::illegal_argument(format!("failed to parse filter for alias [{alias}]"))
        })?,
        other => other.clone(),
    };
    check_filter(&filter).map_err(|error| {
        let reason = format!("failed to parse filter for alias [{alias}]");
        EngineError::api(400, Exception::new("illegal_argument_exception", reason).because(error.exception()))
    })?;
    Ok(Some(filter))
}

/// Refuses a filter that is not a query, or that needs a model or other documents.
///
/// # Errors
/// The error that a search with this query would give.
fn check_filter(filter: &Value) -> Result<(), EngineError> {
    let query = dsl::parse_value(filter)?;
    let (mut semantic, mut model) = (None, None);
    walk::visit(&query, &mut |clause| match &clause.kind {
        QueryKind::Semantic(clause) => semantic = semantic.or(Some(&clause.field)),
        QueryKind::TextExpansion(text) => model = model.or(Some(&text.model_id)),
        QueryKind::KnnBuilder(text) => model = model.or(Some(&text.model_id)),
        _ => {}
    });
    let refused = match (semantic, model) {
        (Some(field), _) => format!("a filter cannot ask the model of field [{field}]"),
        _ if walk::names_documents(&query) => "a filter cannot look up other documents".to_owned(),
        (None, Some(model)) => format!("a filter cannot ask the model [{model}]"),
        (None, None) => return Ok(()),
    };
    Err(EngineError::illegal_argument(refused))
}

fn text(key: &str, value: &Value) -> Result<Option<String>, EngineError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(EngineError::illegal_argument(format!("[{key}] must be a string"))),
    }
}

/// Reads the value of a parameter that holds a routing; `None` if it is null or empty.
///
/// # Errors
/// When it is no text, or longer than the routing of a document may be.
fn routing(key: &str, value: &Value) -> Result<Option<String>, EngineError> {
    let routing = text(key, value)?.filter(|routing| !routing.is_empty());
    routing.as_deref().map_or(Ok(()), check_routing_length)?;
    Ok(routing)
}

fn switch(key: &str, value: &Value) -> Result<Option<bool>, EngineError> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(*value)),
        Value::String(text) if text == "true" || text == "false" => Ok(Some(text == "true")),
        other => Err(EngineError::illegal_argument(
            format!(
                "Failed to parse value [{}] as only [true] or [false] are allowed.",
                other.as_str().map_or_else(|| other.to_string(), str::to_owned)
            ) + &format!(" [{key}]"),
        )),
    }
}

/// The content of the store of aliases.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stored {
    /// Index uuid → its aliases.
    pub(super) by_index: BTreeMap<String, OfIndex>,
    /// Uuid of an index that is being created → aliases of other indices, by their uuid, that come into force as soon as it exists.
    pub(super) with: BTreeMap<String, BTreeMap<String, OfIndex>>,
    /// Uuids of indices that were removed together with a change of aliases, whose own files may still be there.
    pub(super) removed: BTreeSet<String>,
}

impl Stored {
    /// Reads the store of aliases.
    ///
    /// # Errors
    /// When it cannot be read, or holds anything unknown.
    pub(super) fn load(data: &DataDir) -> Result<Self, EngineError> {
        let mut value = stores::read_members(data, STORE)?;
        let damaged = |what: &str| {
            EngineError::from(stores::damaged(data, STORE, format!("[{what}] is not what was written")))
        };
        let by_index = match value.shift_remove("by_index") {
            None => BTreeMap::new(),
            Some(indices) => parse_indices(indices).map_err(|what| damaged(&what))?,
        };
        let mut stored = Self { by_index, ..Self::default() };
        match value.shift_remove("with") {
            None => {}
            Some(Value::Object(members)) => {
                for (uuid, indices) in members {
                    stored.with.insert(uuid, parse_indices(indices).map_err(|what| damaged(&what))?);
                }
            }
            Some(_) => return Err(damaged("with")),
        }
        match value.shift_remove("removed") {
            None => {}
            Some(Value::Array(uuids)) => {
                for uuid in uuids {
                    let Value::String(uuid) = uuid else { return Err(damaged("removed")) };
                    stored.removed.insert(uuid);
                }
            }
            Some(_) => return Err(damaged("removed")),
        }
        match value.keys().next() {
            None => Ok(stored),
            Some(unknown) => Err(damaged(unknown)),
        }
    }

    /// Replaces the store, durably and atomically.
    ///
    /// # Errors
    /// When it cannot be written; the old one is then still there.
    pub(super) fn save(&self, data: &DataDir) -> Result<(), EngineError> {
        let mut members = json!({"by_index": indices_json(&self.by_index), "removed": self.removed});
        let with = self.with.iter().filter(|(_, changes)| !changes.is_empty());
        let with: Map<String, Value> =
            with.map(|(uuid, changes)| (uuid.clone(), indices_json(changes))).collect();
        if !with.is_empty() {
            members["with"] = with.into();
        }
        Ok(data.write_json(STORE, &members)?)
    }

    /// Index uuid → the aliases in force. Changes that depend on an index count only if its uuid is among `uuids`.
    pub(super) fn in_force(self, uuids: &[String]) -> BTreeMap<String, OfIndex> {
        let mut by_index = self.by_index;
        let with = self.with.into_iter().filter(|(uuid, _)| uuids.contains(uuid));
        by_index.extend(with.flat_map(|(_, changes)| changes));
        by_index
    }
}

/// Reads a JSON object of index uuid → aliases. An error names the member that has another form.
fn parse_indices(value: Value) -> Result<BTreeMap<String, OfIndex>, String> {
    let Value::Object(indices) = value else { return Err("aliases by index".to_owned()) };
    let mut by_index = BTreeMap::new();
    for (uuid, aliases) in indices {
        let Value::Object(aliases) = aliases else { return Err(uuid) };
        let mut of_index = OfIndex::new();
        for (name, spec) in aliases {
            let Some(spec) = AliasSpec::from_json(&spec) else { return Err(name) };
            of_index.insert(name, Arc::new(spec));
        }
        by_index.insert(uuid, of_index);
    }
    Ok(by_index)
}

/// The JSON object that [`parse_indices`] reads. An index that has lost all its aliases is kept as an empty object.
fn indices_json(by_index: &BTreeMap<String, OfIndex>) -> Value {
    let of = |aliases: &OfIndex| -> Map<String, Value> {
        aliases.iter().map(|(name, spec)| (name.clone(), spec.to_json())).collect()
    };
    Value::Object(by_index.iter().map(|(uuid, aliases)| (uuid.clone(), of(aliases).into())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routing_may_be_as_long_as_that_of_a_document() {
        let set = |key: &str, length: usize| AliasSpec::default().set("a", key, &json!("r".repeat(length)));
        for key in ["routing", "index_routing", "search_routing"] {
            assert!(set(key, 32_766).expect("as long as it may be"));
            let refused = set(key, 32_767).expect_err("longer than it may be");
            assert!(refused.to_string().contains("routing is too long"), "{refused}");
        }
    }
}
