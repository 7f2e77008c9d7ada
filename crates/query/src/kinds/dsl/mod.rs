//! Reads request JSON into the query tree: what the kinds of query, each of which reads its own, have in common. A key, query or
//! parameter that is not known is an error that names it, in the words of the recorded answers; nothing is ignored silently.

pub mod value;

use serde_json::Value;

pub use super::pinned::Pinned;
use super::{Query, QueryKind, read};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Location, Member, Node};

/// Deepest nesting of compound queries (`indices.query.bool.max_nested_depth`).
const MAX_DEPTH: usize = 30;

/// What parsing a clause has to know of the request around it.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Number of hits asked for: the default `k` of a kNN clause.
    pub size: usize,
    depth: usize,
}

impl Context {
    /// Context of a request for `size` hits.
    pub fn new(size: usize) -> Self {
        Self { size, depth: 0 }
    }

    pub(crate) fn nested(self) -> Result<Self, BodyError> {
        if self.depth >= MAX_DEPTH {
            return Err(BodyError::illegal(
                "The nested depth of the query exceeds the maximum nested depth for queries set in \
                 [indices.query.bool.max_nested_depth]",
            ));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

/// Default `size` of a search, and default number of neighbours of a kNN clause.
pub const DEFAULT_SIZE: usize = 10;

/// Reads a query on its own, without encoding its texts. Positions in errors count from the query's own start.
///
/// # Errors
/// When it is not a valid query.
pub fn parse_value(query: &Value) -> Result<Query, BodyError> {
    let text = query.to_string();
    let (node, _) = sparrow_wire::json::read(text.as_bytes())?;
    parse_query(&node, Context::new(DEFAULT_SIZE))
}

/// Reads one query: an object whose single key names it.
///
/// # Errors
/// When the object is empty, names no known query, or its content is wrong.
pub fn parse_query(node: &Node, context: Context) -> Result<Query, BodyError> {
    let Some(members) = node.as_object() else {
        return Err(BodyError::parsing(node.at, "[_na] query malformed, must start with start_object"));
    };
    let Some(first) = members.first() else {
        return Err(BodyError::illegal(format!("query malformed, empty clause found at [{}]", node.end)));
    };
    let name = &*first.name;
    if first.value.as_object().is_none() {
        return Err(BodyError::parsing(
            first.value.at,
            format!("[{name}] query malformed, no start_object after query name"),
        ));
    }
    let query = read(name, &first.value, context)?;
    match members.get(1) {
        Some(second) => Err(BodyError::parsing(
            second.at,
            format!("[{name}] malformed query, expected [END_OBJECT] but found [FIELD_NAME]"),
        )),
        None => Ok(query),
    }
}

/// Reads a single query or an array of queries.
pub(crate) fn one_or_many(node: &Node, context: Context) -> Result<Vec<Query>, BodyError> {
    match node.as_array() {
        Some(items) => items.iter().map(|item| parse_query(item, context)).collect(),
        None => Ok(vec![parse_query(node, context)?]),
    }
}

/// `boost` and `_name`, which every query has.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) boost: f32,
    pub(crate) name: Option<String>,
}

impl Default for Common {
    fn default() -> Self {
        Self { boost: 1.0, name: None }
    }
}

impl Common {
    /// Reads the member if it is `boost` or `_name`; `false` otherwise.
    pub(crate) fn take(&mut self, clause: &str, member: &Member) -> Result<bool, BodyError> {
        match &*member.name {
            "boost" => {
                self.boost = value::float(&member.value)?;
                if self.boost < 0.0 {
                    return Err(BodyError::illegal(format!(
                        "negative [boost] are not allowed in [{clause}], use a value between 0 and \
                         1 to deboost"
                    )));
                }
                Ok(true)
            }
            "_name" => {
                self.name = value::name(&member.value)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(crate) fn query(self, kind: QueryKind) -> Query {
        Query { kind, boost: self.boost, name: self.name }
    }
}

/// The error for a key that a query does not have.
pub(crate) fn not_supported(clause: &str, member: &Member) -> BodyError {
    let at = member.value.at;
    if member.value.is_scalar() {
        BodyError::parsing(at, format!("[{clause}] query does not support [{}]", member.name))
    } else {
        unknown_token(clause, member)
    }
}

/// The error for a known key whose value has the wrong type.
pub(crate) fn unknown_token(clause: &str, member: &Member) -> BodyError {
    BodyError::parsing(
        member.value.at,
        format!("[{clause}] unknown token [{}] after [{}]", member.value.token(), member.name),
    )
}

/// The members of a node that has to be an object.
pub(crate) fn members<'a>(node: &'a Node, clause: &str) -> Result<&'a [Member], BodyError> {
    node.as_object().ok_or_else(|| {
        BodyError::parsing(
            node.at,
            format!("[{clause}] expected [START_OBJECT] but found [{}]", node.token()),
        )
    })
}

/// The single field of a clause such as `{"match": {"title": …}}`.
pub(crate) fn single_field<'a>(body: &'a Node, clause: &str) -> Result<&'a Member, BodyError> {
    let members = members(body, clause)?;
    let Some(first) = members.first() else {
        return Err(BodyError::illegal(format!("[{clause}] requires fieldName")));
    };
    match members.get(1) {
        Some(second) => Err(BodyError::parsing(
            second.at,
            format!(
                "[{clause}] query doesn't support multiple fields, found [{}] and [{}]",
                first.name, second.name
            ),
        )),
        None => Ok(first),
    }
}

/// The error for a query without a text, at the position of its closing brace.
pub(crate) fn no_text(at: Location) -> BodyError {
    BodyError::parsing(at, "No text specified for text query")
}
