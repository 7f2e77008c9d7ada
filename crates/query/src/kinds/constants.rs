//! The queries that match everything or nothing: `match_all`, `match_none`.

use std::fmt;

use super::dsl::{Common, Context, members, unknown_token};
use super::no_children;
use super::shape::{Shape, clause};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// A `match_all` query: every document; score 1.
pub struct MatchAllQuery;

/// A `match_none` query: no document.
pub struct MatchNoneQuery;

/// What the body of `match_all` or `match_none` holds.
pub(super) fn constant_shape() -> Shape {
    clause([])
}

/// Reads a `match_all` query.
pub(super) fn match_all(body: &Node, _: Context) -> Result<Query, BodyError> {
    constant("match_all", QueryKind::MatchAll, body)
}

/// Reads a `match_none` query.
pub(super) fn match_none(body: &Node, _: Context) -> Result<Query, BodyError> {
    constant("match_none", QueryKind::MatchNone, body)
}

fn constant(clause: &'static str, kind: QueryKind, body: &Node) -> Result<Query, BodyError> {
    let mut common = Common::default();
    for member in members(body, clause)? {
        if !member.value.is_scalar() {
            return Err(unknown_token(clause, member));
        }
        if !common.take(clause, member)? {
            return Err(BodyError::unknown_field(clause, member, &["boost", "_name"]));
        }
    }
    Ok(common.query(kind))
}

impl Clause for MatchAllQuery {
    fn lucene_name(&self) -> &'static str {
        "MatchAllDocsQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("*:*")
    }

    no_children!();
}

impl Clause for MatchNoneQuery {
    fn lucene_name(&self) -> &'static str {
        "MatchNoDocsQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("MatchNoDocsQuery(\"\")")
    }

    no_children!();
}
