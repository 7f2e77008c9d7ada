//! Queries over exact values and patterns: `term`, `terms`, `range`, `exists`, `ids`, `prefix`, `wildcard`,
//! `regexp`, `fuzzy`.

use serde_json::Value;
use sparrow_index::query::{Query, QueryKind, RangeQuery};

use super::super::error::SearchError;
use super::super::json::{Json, Member, Node};
use super::{Common, members, not_supported, single_field, unknown_field, unknown_token, value};

/// `term`.
pub fn term(body: &Node) -> Result<Query, SearchError> {
    let exact = exact_value("term", &["value"], body)?;
    Ok(exact.common.query(QueryKind::Term {
        field: exact.field,
        value: exact.value,
        case_insensitive: exact.case_insensitive,
    }))
}

/// `prefix`.
pub fn prefix(body: &Node) -> Result<Query, SearchError> {
    let exact = exact_value("prefix", &["value"], body)?;
    Ok(exact.common.query(QueryKind::Prefix {
        field: exact.field,
        value: plain_text(&exact.value),
        case_insensitive: exact.case_insensitive,
    }))
}

/// `wildcard`.
pub fn wildcard(body: &Node) -> Result<Query, SearchError> {
    let exact = exact_value("wildcard", &["value", "wildcard"], body)?;
    Ok(exact.common.query(QueryKind::Wildcard {
        field: exact.field,
        value: plain_text(&exact.value),
        case_insensitive: exact.case_insensitive,
    }))
}

/// `regexp`.
pub fn regexp(body: &Node) -> Result<Query, SearchError> {
    let exact = exact_value("regexp", &["value"], body)?;
    if exact.case_insensitive {
        return Err(SearchError::illegal("[regexp] supports [case_insensitive] only with value [false]"));
    }
    let value = plain_text(&exact.value);
    Ok(exact.common.query(QueryKind::Regexp { field: exact.field, value }))
}

/// `fuzzy`.
pub fn fuzzy(body: &Node) -> Result<Query, SearchError> {
    const CLAUSE: &str = "fuzzy";
    let field = single_field(body, CLAUSE)?;
    let mut common = Common::default();
    let (mut term, mut fuzziness) = (None, "AUTO".to_owned());
    let (mut prefix_length, mut max_expansions) = (0, 50);
    match field.value.as_object() {
        None if field.value.is_scalar() => term = value::optional_text(&field.value)?,
        None => return Err(unknown_token(CLAUSE, field)),
        Some(options) => {
            for member in options {
                let node = &member.value;
                match &*member.name {
                    _ if !node.is_scalar() => return Err(unknown_token(CLAUSE, member)),
                    "value" => term = value::optional_text(node)?,
                    "fuzziness" => fuzziness = value::text(node)?,
                    "prefix_length" => prefix_length = value::unsigned(node, "prefix_length")?,
                    "max_expansions" => max_expansions = value::unsigned(node, "max_expansions")?,
                    // A swap of two letters is always one edit, and the rewrite is Lucene's own affair.
                    "transpositions" if value::boolean(node)? => {}
                    "rewrite" => {
                        value::text(node)?;
                    }
                    _ if common.take(CLAUSE, member)? => {}
                    _ => return Err(not_supported(CLAUSE, member)),
                }
            }
        }
    }
    let value = term.ok_or_else(|| SearchError::illegal("value cannot be null"))?;
    let field = field.name.to_string();
    Ok(common.query(QueryKind::Fuzzy { field, value, fuzziness, prefix_length, max_expansions }))
}

/// `terms`.
pub fn terms(body: &Node) -> Result<Query, SearchError> {
    const CLAUSE: &str = "terms";
    let mut common = Common::default();
    let mut found: Option<(String, Vec<Value>)> = None;
    for member in members(body, CLAUSE)? {
        match &member.value.json {
            Json::Array(items) => {
                if found.is_some() {
                    return Err(SearchError::parsing(
                        member.value.at,
                        "[terms] query does not support multiple fields",
                    ));
                }
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    match item.json {
                        Json::Null => {
                            return Err(SearchError::parsing(item.at, "No value specified for terms query"));
                        }
                        Json::Array(_) | Json::Object(_) => {
                            return Err(unknown_token(CLAUSE, member));
                        }
                        _ => values.push(item.to_value()),
                    }
                }
                found = Some((member.name.to_string(), values));
            }
            Json::Object(_) => {
                return Err(SearchError::parsing(
                    member.value.at,
                    format!("[terms] query does not support terms lookup for field [{}]", member.name),
                ));
            }
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    match found {
        Some((field, values)) => Ok(common.query(QueryKind::Terms { field, values })),
        None => Err(SearchError::parsing(
            body.end,
            "[terms] query requires a field name, followed by array of terms or a document lookup \
             specification",
        )),
    }
}

/// `range`.
pub fn range(body: &Node) -> Result<Query, SearchError> {
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
            "from" => from = bound(member)?,
            "to" => to = bound(member)?,
            "include_lower" => include_lower = value::boolean(node)?,
            "include_upper" => include_upper = value::boolean(node)?,
            "format" => range.format = value::optional_text(node)?,
            "time_zone" => range.time_zone = value::optional_text(node)?,
            // Fields hold points, for which all relations say the same.
            "relation" => {
                let relation = value::text(node)?;
                if !["intersects", "contains", "within"]
                    .iter()
                    .any(|known| relation.eq_ignore_ascii_case(known))
                {
                    return Err(SearchError::illegal(format!("{relation} is not a valid relation")));
                }
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

/// `exists`.
pub fn exists(body: &Node) -> Result<Query, SearchError> {
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
        Some(field) if !field.is_empty() => Ok(common.query(QueryKind::Exists { field })),
        _ => Err(SearchError::parsing(body.end, "[exists] must be provided with a [field]")),
    }
}

/// `ids`.
pub fn ids(body: &Node) -> Result<Query, SearchError> {
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
            _ => return Err(unknown_field(CLAUSE, member, &["values", "boost", "_name"])),
        }
    }
    Ok(common.query(QueryKind::Ids { values }))
}

/// A field and one value, as a scalar or as an object with options.
struct Exact {
    field: String,
    value: Value,
    case_insensitive: bool,
    common: Common,
}

fn exact_value(clause: &'static str, value_keys: &[&str], body: &Node) -> Result<Exact, SearchError> {
    let field = single_field(body, clause)?;
    let mut exact = Exact {
        field: field.name.to_string(),
        value: Value::Null,
        case_insensitive: false,
        common: Common::default(),
    };
    match &field.value.json {
        Json::Array(_) => {
            return Err(SearchError::parsing(
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
                    // It only chooses how Lucene runs the query; the score is 1 either way.
                    "rewrite" if clause != "term" => {
                        value::text(&member.value)?;
                    }
                    _ if member.value.is_scalar() && exact.common.take(clause, member)? => {}
                    _ => return Err(not_supported(clause, member)),
                }
            }
        }
        _ => exact.value = field.value.to_value(),
    }
    if exact.value.is_null() {
        return Err(SearchError::illegal("value cannot be null"));
    }
    Ok(exact)
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn bound(member: &Member) -> Result<Option<Value>, SearchError> {
    match member.value.json {
        Json::Null => Ok(None),
        Json::Array(_) | Json::Object(_) => Err(unknown_token("range", member)),
        _ => Ok(Some(member.value.to_value())),
    }
}
