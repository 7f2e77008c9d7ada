//! `script_score` and `script`: queries whose scores are computed, or whose documents are found, by a script.

use std::fmt;

use super::dsl::{Common, Context, members, parse_query, value};
use super::no_children;
use super::shape::{Shape, clause, either, num, object, one, open, sub_query, text};
use crate::script::{QueryScript, ScriptUse};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// A `script_score` query.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptScoreQuery {
    /// The query that hits have to match.
    pub query: Box<Query>,
    /// Script that works out the scores.
    pub script: QueryScript,
    /// Lowest score of a hit.
    pub min_score: Option<f32>,
}

/// A `script` query: the documents on which a script is true; score 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptQuery {
    /// The script.
    pub script: QueryScript,
}

/// What the body of a `script_score` query holds.
pub(super) fn script_score_shape() -> Shape {
    clause([("query", sub_query()), ("script", script_shape()), ("min_score", num())])
        .needs(&["query", "script"])
}

/// A script: its text, or an object.
pub(super) fn script_shape() -> Shape {
    let whole =
        object([("source", text()), ("lang", one(&["painless"])), ("params", open()), ("options", open())]);
    either([text(), whole])
}

/// Reads a `script_score` query.
pub(super) fn script_score(body: &Node, context: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "script_score";
    let context = context.nested()?;
    let mut common = Common::default();
    let (mut query, mut script, mut min_score) = (None, None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "query" if node.as_object().is_some() => query = Some(parse_query(node, context)?),
            "script" => script = Some(QueryScript::read(node, ScriptUse::Score)?),
            "min_score" => min_score = Some(value::float(node)?),
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => {
                return Err(BodyError::unknown_field(
                    CLAUSE,
                    member,
                    &["query", "script", "min_score", "boost", "_name"],
                ));
            }
        }
    }
    let required = |field: &str| BodyError::illegal(format!("Required [{field}]"));
    Ok(common.query(QueryKind::ScriptScore(ScriptScoreQuery {
        query: Box::new(query.ok_or_else(|| required("query"))?),
        script: script.ok_or_else(|| required("script"))?,
        min_score,
    })))
}

/// What the body of a `script` query holds.
pub(super) fn script_query_shape() -> Shape {
    clause([("script", script_shape())]).needs(&["script"])
}

/// Reads a `script` query.
pub(super) fn script(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "script";
    let mut common = Common::default();
    let mut script = None;
    for member in members(body, CLAUSE)? {
        match &*member.name {
            "script" => script = Some(QueryScript::read(&member.value, ScriptUse::Filter)?),
            _ if member.value.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => return Err(BodyError::unknown_field(CLAUSE, member, &["script", "boost", "_name"])),
        }
    }
    let script = script
        .ok_or_else(|| BodyError::parsing(body.end, "script must be provided with a [script] filter"))?;
    Ok(common.query(QueryKind::Script(ScriptQuery { script })))
}

impl Clause for ScriptScoreQuery {
    fn lucene_name(&self) -> &'static str {
        "ScriptScoreQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "script_score ({}, script: {})", self.query, self.script.source())
    }

    fn children(&self) -> Vec<&Query> {
        vec![&self.query]
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        vec![&mut self.query]
    }
}

impl Clause for ScriptQuery {
    fn lucene_name(&self) -> &'static str {
        "ScriptQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ScriptQuery(script: {})", self.script.source())
    }

    no_children!();
}
