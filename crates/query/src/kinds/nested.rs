//! `nested`: as there are no nested documents, it is an error that names the path, or matches nothing.

use std::fmt;

use super::dsl::{Common, Context, members, not_supported, parse_query, value};
use super::no_children;
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// A `nested` query.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedQuery {
    /// Path of the objects.
    pub path: String,
    /// Whether an unmapped path matches nothing instead of being an error.
    pub ignore_unmapped: bool,
}

/// Reads a `nested` query. No field has that type, so that only the path matters.
pub(super) fn nested(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
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
    Ok(common.query(QueryKind::Nested(NestedQuery { path, ignore_unmapped })))
}

impl Clause for NestedQuery {
    fn lucene_name(&self) -> &'static str {
        "NestedQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "nested({})", self.path)
    }

    no_children!();
}
