//! Queries over exact values: `term`, `terms`, `terms_set`, `range`, `exists`, `ids`.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::dsl::{Common, Context, members, not_supported, single_field, unknown_token, value};
use super::rewrite::rewrite;
use super::shape::{
    Shape, clause, common, count, either, field_or_value, flag, list, object, of_field, one, scalar, several,
    text,
};
use super::{no_children, separated};
use crate::{Clause, Query, QueryKind, Rewrite};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};
use sparrow_wire::version::has_forms_of_8;

/// A `term` query: documents with one exact value in a field.
#[derive(Debug, Clone, PartialEq)]
pub struct TermQuery {
    /// Path of the field to search.
    pub field: String,
    /// String, number or boolean.
    pub value: Value,
    /// ASCII case is ignored (keywords only).
    pub case_insensitive: bool,
}

/// A `terms` query: any of several exact values; score 1.
#[derive(Debug, Clone, PartialEq)]
pub struct TermsQuery {
    /// Path of the field to search.
    pub field: String,
    /// Strings, numbers or booleans, of which there may be many in many places of a query.
    pub values: Arc<[Value]>,
}

/// An `exists` query: documents with a value in the field; score 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ExistsQuery {
    /// Field path, of an object also; `*` and trailing wildcards are allowed.
    pub field: String,
}

/// An `ids` query: documents by `_id`; score 1.
#[derive(Debug, Clone, PartialEq)]
pub struct IdsQuery {
    /// The ids of the documents.
    pub values: Vec<String>,
}

/// A `terms` query whose values are read from another document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TermsLookupQuery {
    /// Path of the field to search.
    pub field: String,
    /// Name of the index of the document that is read.
    pub index: String,
    /// `_id` of the document that is read.
    pub id: String,
    /// Routing of the document that is read, which its index may require.
    pub routing: Option<String>,
    /// Path of the values in the document.
    pub path: String,
}

/// A `range` query; an absent bound is open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RangeQuery {
    /// Path of the field to search.
    pub field: String,
    /// Lower bound, exclusive.
    pub gt: Option<Value>,
    /// Lower bound, inclusive.
    pub gte: Option<Value>,
    /// Upper bound, exclusive.
    pub lt: Option<Value>,
    /// Upper bound, inclusive.
    pub lte: Option<Value>,
    /// Date format of the bounds instead of the field's; `||` separates alternatives.
    pub format: Option<String>,
    /// Time zone of bounds that state none, and of date rounding: `+01:00`, `Z` or `UTC`.
    pub time_zone: Option<String>,
    /// How a value that is a range itself has to lie to the asked one; of a single value, all relations say the same.
    pub relation: Relation,
}

/// How a range of a document lies to the one that is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Relation {
    /// They have a value in common.
    #[default]
    Intersects,
    /// That of the document has all values of the other.
    Contains,
    /// The other has all values of that of the document.
    Within,
}

/// Whether case is ignored.
pub(super) fn caseless() -> Shape {
    flag().about("upper and lower case are the same").preset(false)
}

/// What the body of a `term` query holds.
pub(super) fn term_shape() -> Shape {
    field_or_value(&["value", "term"], [("case_insensitive", caseless())])
}

/// Reads a `term` query.
pub(super) fn term(body: &Node, _: Context) -> Result<Query, BodyError> {
    let exact = exact_value("term", &["value", "term"], body)?;
    Ok(exact.common.query(QueryKind::Term(TermQuery {
        field: exact.field,
        value: exact.value,
        case_insensitive: exact.case_insensitive,
    })))
}

/// What the body of a `terms` query holds.
pub(super) fn terms_shape() -> Shape {
    let lookup = object([("index", text()), ("id", text()), ("path", text()), ("routing", text())])
        .needs(&["index", "id", "path"])
        .about("terms of a document");
    object(common()).by_field(either([list(scalar()), lookup]))
}

/// Reads a `terms` query.
pub(super) fn terms(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "terms";
    let mut common = Common::default();
    let mut found: Option<QueryKind> = None;
    for member in members(body, CLAUSE)? {
        match &member.value.json {
            Json::Array(items) => {
                if found.is_some() {
                    return Err(several_fields(member));
                }
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    match item.json {
                        Json::Null => {
                            return Err(BodyError::parsing(item.at, "No value specified for terms query"));
                        }
                        Json::Array(_) | Json::Object(_) => {
                            return Err(unknown_token(CLAUSE, member));
                        }
                        _ => values.push(item.to_value()),
                    }
                }
                found = Some(QueryKind::Terms(TermsQuery {
                    field: member.name.to_string(),
                    values: values.into(),
                }));
            }
            Json::Object(options) => {
                if found.is_some() {
                    return Err(several_fields(member));
                }
                found = Some(QueryKind::TermsLookup(terms_lookup(&member.name, options)?));
            }
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    match found {
        Some(kind) => Ok(common.query(kind)),
        None => Err(BodyError::parsing(
            body.end,
            "[terms] query requires a field name, followed by array of terms or a document lookup \
             specification",
        )),
    }
}

fn several_fields(member: &Member) -> BodyError {
    BodyError::parsing(member.value.at, "[terms] query does not support multiple fields")
}

/// The values of another document: `{"index": …, "id": …, "path": …}`.
fn terms_lookup(field: &str, options: &[Member]) -> Result<TermsLookupQuery, BodyError> {
    const PARSER: &str = "terms_lookup";
    let mut lookup = TermsLookupQuery { field: field.to_owned(), ..Default::default() };
    for member in options {
        let slot = match &*member.name {
            "index" => &mut lookup.index,
            "id" => &mut lookup.id,
            "path" => &mut lookup.path,
            "routing" => {
                lookup.routing = value::optional_text(&member.value)?;
                continue;
            }
            _ => return Err(BodyError::unknown_field(PARSER, member, &["index", "id", "path", "routing"])),
        };
        *slot = value::text(&member.value)
            .map_err(|error| error.within(PARSER, &member.name, member.value.at))?;
    }
    for (name, text) in [("index", &lookup.index), ("id", &lookup.id), ("path", &lookup.path)] {
        if text.is_empty() {
            return Err(BodyError::Required { field: name });
        }
    }
    Ok(lookup)
}

/// What the body of a `range` query holds.
pub(super) fn range_shape() -> Shape {
    let bounds = ["gt", "gte", "lt", "lte", "from", "to"].map(|name| (name, scalar()));
    of_field(clause(bounds.into_iter().chain([
        ("include_lower", flag().preset(true)),
        ("include_upper", flag().preset(true)),
        ("format", text().about("how dates of the bounds are written")),
        ("time_zone", text()),
        ("relation", one(&["intersects", "INTERSECTS", "contains", "CONTAINS", "within", "WITHIN"])),
    ])))
}

/// Reads a `range` query.
pub(super) fn range(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "range";
    let field = single_field(body, CLAUSE)?;
    let Some(options) = field.value.as_object() else {
        return Err(not_supported(CLAUSE, field));
    };
    let mut common = Common::default();
    let mut range = RangeQuery { field: field.name.to_string(), ..Default::default() };
    let (mut include_lower, mut include_upper) = (true, true);
    let (mut from, mut to) = (None, None);
    for member in options {
        let node = &member.value;
        match &*member.name {
            "gt" => range.gt = bound(member)?,
            "gte" => range.gte = bound(member)?,
            "lt" => range.lt = bound(member)?,
            "lte" => range.lte = bound(member)?,
            "from" if has_forms_of_8() => from = bound(member)?,
            "to" if has_forms_of_8() => to = bound(member)?,
            "include_lower" if has_forms_of_8() => include_lower = value::boolean(node)?,
            "include_upper" if has_forms_of_8() => include_upper = value::boolean(node)?,
            "format" => range.format = value::optional_text(node)?,
            "time_zone" => range.time_zone = value::optional_text(node)?,
            "relation" => {
                let relation = value::text(node)?;
                range.relation = match relation.to_ascii_lowercase().as_str() {
                    "intersects" => Relation::Intersects,
                    "contains" => Relation::Contains,
                    "within" => Relation::Within,
                    _ => return Err(BodyError::illegal(format!("{relation} is not a valid relation"))),
                };
            }
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    if from.is_some() {
        *(if include_lower { &mut range.gte } else { &mut range.gt }) = from;
    }
    if to.is_some() {
        *(if include_upper { &mut range.lte } else { &mut range.lt }) = to;
    }
    Ok(common.query(QueryKind::Range(range)))
}

/// What the body of an `exists` query holds.
pub(super) fn exists_shape() -> Shape {
    clause([("field", text())]).needs(&["field"])
}

/// Reads an `exists` query.
pub(super) fn exists(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "exists";
    let mut common = Common::default();
    let mut field = None;
    for member in members(body, CLAUSE)? {
        if !member.value.is_scalar() {
            return Err(unknown_token(CLAUSE, member));
        }
        match &*member.name {
            "field" => field = value::optional_text(&member.value)?,
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    match field {
        Some(field) if !field.is_empty() => Ok(common.query(QueryKind::Exists(ExistsQuery { field }))),
        _ => Err(BodyError::parsing(body.end, "[exists] must be provided with a [field]")),
    }
}

/// What the body of an `ids` query holds.
pub(super) fn ids_shape() -> Shape {
    clause([("values", several(count()))])
}

/// Reads an `ids` query.
pub(super) fn ids(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "ids";
    let mut common = Common::default();
    let mut values = Vec::new();
    for member in members(body, CLAUSE)? {
        match &*member.name {
            "values" => {
                values = value::texts(&member.value)
                    .map_err(|error| error.within(CLAUSE, "values", member.value.at))?;
            }
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(BodyError::unknown_field(CLAUSE, member, &["values", "boost", "_name"])),
        }
    }
    Ok(common.query(QueryKind::Ids(IdsQuery { values })))
}

/// The parts that queries with a field and a single value share; the value is a scalar or in an object with options.
pub(super) struct Exact {
    pub(super) field: String,
    pub(super) value: Value,
    pub(super) case_insensitive: bool,
    pub(super) rewrite: Rewrite,
    pub(super) common: Common,
}

pub(super) fn exact_value(
    clause: &'static str,
    value_keys: &[&str],
    body: &Node,
) -> Result<Exact, BodyError> {
    let field = single_field(body, clause)?;
    let mut exact = Exact {
        field: field.name.to_string(),
        value: Value::Null,
        case_insensitive: false,
        rewrite: Rewrite::Constant,
        common: Common::default(),
    };
    match &field.value.json {
        Json::Array(_) => {
            return Err(BodyError::parsing(
                field.value.at,
                format!("[{clause}] query does not support array of values"),
            ));
        }
        Json::Object(options) => {
            for member in options {
                match &*member.name {
                    name if value_keys.contains(&name) => {
                        if !member.value.is_scalar() {
                            return Err(unknown_token(clause, member));
                        }
                        exact.value = member.value.to_value();
                    }
                    "case_insensitive" => exact.case_insensitive = value::boolean(&member.value)?,
                    "rewrite" if clause != "term" => {
                        exact.rewrite = rewrite(&member.value)?.unwrap_or_default()
                    }
                    _ if member.value.is_scalar() && exact.common.take(clause, member)? => {}
                    _ => return Err(not_supported(clause, member)),
                }
            }
        }
        _ => exact.value = field.value.to_value(),
    }
    if exact.value.is_null() {
        return Err(BodyError::illegal("value cannot be null"));
    }
    Ok(exact)
}

pub(super) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn bound(member: &Member) -> Result<Option<Value>, BodyError> {
    match member.value.json {
        Json::Null => Ok(None),
        Json::Array(_) | Json::Object(_) => Err(unknown_token("range", member)),
        _ => Ok(Some(member.value.to_value())),
    }
}

impl Clause for TermQuery {
    fn lucene_name(&self) -> &'static str {
        "TermQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.field, plain_text(&self.value))
    }

    no_children!();
}

impl Clause for TermsQuery {
    fn lucene_name(&self) -> &'static str {
        "TermsQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_values(out, &self.field, &self.values)
    }

    no_children!();
}

impl Clause for TermsLookupQuery {
    fn lucene_name(&self) -> &'static str {
        "TermsLookupQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:({}/{})", self.field, self.index, self.id)
    }

    no_children!();

    fn names_documents(&self) -> bool {
        true
    }
}

pub(super) fn write_values(out: &mut fmt::Formatter<'_>, field: &str, values: &[Value]) -> fmt::Result {
    write!(out, "{field}:(")?;
    separated(out, " ", values.iter().map(plain_text))?;
    out.write_str(")")
}

impl Clause for RangeQuery {
    fn lucene_name(&self) -> &'static str {
        "RangeQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, low) = match (&self.gte, &self.gt) {
            (Some(value), _) => ('[', plain_text(value)),
            (None, Some(value)) => ('{', plain_text(value)),
            (None, None) => ('[', "*".to_owned()),
        };
        let (high, close) = match (&self.lte, &self.lt) {
            (Some(value), _) => (plain_text(value), ']'),
            (None, Some(value)) => (plain_text(value), '}'),
            (None, None) => ("*".to_owned(), ']'),
        };
        write!(out, "{}:{open}{low} TO {high}{close}", self.field)
    }

    no_children!();
}

impl Clause for ExistsQuery {
    fn lucene_name(&self) -> &'static str {
        "ExistsQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ConstantScore(FieldExistsQuery [field={}])", self.field)
    }

    no_children!();
}

impl Clause for IdsQuery {
    fn lucene_name(&self) -> &'static str {
        "IdsQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("_id:(")?;
        separated(out, " ", &self.values)?;
        out.write_str(")")
    }

    no_children!();
}
