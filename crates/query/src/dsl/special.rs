//! Queries that stand for another query, and those that Elasticsearch has and this server does not.

use crate::{Query, QueryKind, SemanticQuery};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Common, Context, members, not_supported, parse_query, unknown_field, unknown_token, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{self, Json, Node};

/// Names of Elasticsearch's queries that this server does not support.
pub const UNSUPPORTED: &[&str] = &[
    "field_masking_span",
    "geo_bounding_box",
    "geo_distance",
    "geo_grid",
    "geo_polygon",
    "geo_shape",
    "has_child",
    "has_parent",
    "parent_id",
    "percolate",
    "rule",
    "script",
    "shape",
    "span_containing",
    "span_first",
    "span_multi",
    "span_near",
    "span_not",
    "span_or",
    "span_term",
    "span_within",
];

/// The error of one of [`UNSUPPORTED`].
pub fn unsupported(name: &str, body: &Node) -> BodyError {
    BodyError::parsing(body.at, format!("[{name}] query is not supported by Sparrow"))
}

/// Reads a `wrapper` query, which contains another query in base64.
pub fn wrapper(body: &Node, context: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "wrapper";
    let mut text = None;
    for member in members(body, CLAUSE)? {
        match (&*member.name, &member.value.json) {
            ("query", Json::String(encoded)) => text = Some((encoded, member.value.at)),
            ("query", _) => return Err(unknown_token(CLAUSE, member)),
            (name, _) => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("[{CLAUSE}] query malformed, expected `query` but was {name}"),
                ));
            }
        }
    }
    let Some((encoded, at)) = text else {
        return Err(BodyError::parsing(body.end, "[wrapper] query malformed, no query"));
    };
    let malformed = |_| BodyError::parsing(at, "[wrapper] query malformed: [query] is not base64");
    let bytes = STANDARD.decode(encoded.as_bytes()).map_err(malformed)?;
    let (node, _) = json::read(&bytes)?;
    parse_query(&node, context)
}

/// Reads a `semantic` query, which compares a text with the passages of a `semantic_text` field.
pub fn semantic(body: &Node, context: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "semantic";
    let mut common = Common::default();
    let (mut field, mut text) = (None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match (&*member.name, &node.json) {
            ("field", Json::String(path)) => field = Some(path.to_string()),
            ("query", Json::String(query)) => text = Some(query.to_string()),
            (name @ ("field" | "query"), _) => {
                return Err(BodyError::ValueType {
                    parser: CLAUSE,
                    field: name.to_owned(),
                    token: node.token(),
                    at: node.at,
                });
            }
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(unknown_field(CLAUSE, member, &["field", "query", "boost", "_name"])),
        }
    }
    let (field, text) = match (field, text) {
        (Some(field), Some(text)) => (field, text),
        (None, Some(_)) => return Err(BodyError::Required { field: "field" }),
        (Some(_), None) => return Err(BodyError::Required { field: "query" }),
        (None, None) => return Err(BodyError::Required { field: "field, query" }),
    };
    if field.is_empty() {
        return Err(BodyError::illegal(format!("[{CLAUSE}] requires a field value")));
    }
    let mut clause = SemanticQuery { field, text, ..SemanticQuery::default() };
    clause.fit(context.size);
    Ok(common.query(QueryKind::Semantic(clause)))
}

/// Reads a `nested` query. No field has that type, so that only the path matters.
pub fn nested(body: &Node, context: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "nested";
    let mut common = Common::default();
    let (mut path, mut query, mut ignore_unmapped) = (None, None, false);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "query" => query = Some(parse_query(node, context)?),
            "path" => path = Some(value::text(node)?),
            "ignore_unmapped" => ignore_unmapped = value::boolean(node)?,
            "score_mode" => {
                let mode = value::text(node)?;
                if !["none", "min", "max", "avg", "sum"].contains(&mode.as_str()) {
                    return Err(BodyError::illegal(format!("No score mode for child query [{mode}] found")));
                }
            }
            // There is nothing inside that could be shown.
            "inner_hits" if node.as_object().is_some() => {}
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    if query.is_none() {
        return Err(BodyError::illegal(format!("[{CLAUSE}] requires 'query' field")));
    }
    let path = path.ok_or_else(|| BodyError::illegal(format!("[{CLAUSE}] requires 'path' field")))?;
    Ok(common.query(QueryKind::Nested { path, ignore_unmapped }))
}
