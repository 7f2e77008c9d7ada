//! `wrapper`: another query in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::dsl::{Context, members, parse_query, unknown_token};
use super::shape::{Shape, object, text};
use crate::Query;
use sparrow_wire::BodyError;
use sparrow_wire::json::{self, Json, Node};

/// What the body of a `wrapper` query holds.
pub(super) fn wrapper_shape() -> Shape {
    object([("query", text().about("a query in JSON, in base64"))]).needs(&["query"])
}

/// Reads a `wrapper` query, which contains another query in base64.
pub(super) fn wrapper(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
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
