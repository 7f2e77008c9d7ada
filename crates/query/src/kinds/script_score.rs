//! `script_score`: a query whose scores are computed by a script.

use std::fmt;

use super::dsl::{Common, Context, members, parse_query, unknown_field, unknown_token, value};
use crate::script::{self, Params, Script};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

/// A `script_score` query.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptScoreQuery {
    /// The query that hits have to match.
    pub query: Box<Query>,
    /// Script that works out the scores.
    pub script: Script,
    /// Lowest score of a hit.
    pub min_score: Option<f32>,
}

const CLAUSE: &str = "script_score";

/// Reads a `script_score` query.
pub(super) fn script_score(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    let mut common = Common::default();
    let (mut query, mut script, mut min_score) = (None, None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "query" if node.as_object().is_some() => query = Some(parse_query(node, context)?),
            "script" => script = Some(read(member)?),
            "min_score" => min_score = Some(value::float(node)?),
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => {
                return Err(unknown_field(
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

/// A script: its text, or an object with `source`, `params` and `lang`.
fn read(member: &Member) -> Result<script::Script, BodyError> {
    let node = &member.value;
    let (mut source, mut params) = (None, Params::new());
    match &node.json {
        Json::String(text) => source = Some(text.to_string()),
        Json::Object(inner) => {
            for part in inner {
                match (&*part.name, &part.value.json) {
                    ("source" | "inline", Json::String(text)) => source = Some(text.to_string()),
                    ("lang", Json::String(lang)) if **lang == *"painless" || **lang == *"expression" => {}
                    ("lang", _) => {
                        return Err(BodyError::illegal(format!(
                            "script_lang not supported [{}]",
                            value::text(&part.value)?
                        )));
                    }
                    ("params", Json::Object(given)) => {
                        params = given.iter().filter_map(parameter).collect();
                    }
                    ("params", Json::Null) => {}
                    ("options", Json::Object(_)) => {}
                    ("id", _) => {
                        return Err(BodyError::illegal("stored scripts are not supported by this server"));
                    }
                    _ => return Err(unknown_field("script", part, &["source", "lang", "params"])),
                }
            }
        }
        _ => return Err(unknown_token(CLAUSE, member)),
    }
    let Some(source) = source else {
        return Err(BodyError::illegal("must specify <source> for an inline script"));
    };
    script::parse(&source, &params).map_err(|problem| {
        BodyError::illegal(format!(
            "script [{}] is not supported by this server: {problem}; scripts are expressions over numbers, [_score], \
             [params] and cosineSimilarity, dotProduct, l1norm and l2norm of dense_vector fields",
            shortened(&source)
        ))
    })
}

/// Name and value of a parameter that is a number or an array of numbers; `None` for any other, which is reported where the script
/// uses it.
fn parameter(member: &Member) -> Option<(String, Vec<f64>)> {
    let number = |node: &Node| match node.to_value() {
        serde_json::Value::Number(number) => number.as_f64(),
        _ => None,
    };
    let numbers = match member.value.as_array() {
        Some(items) => items.iter().map(number).collect::<Option<Vec<f64>>>()?,
        None => vec![number(&member.value)?],
    };
    Some((member.name.to_string(), numbers))
}

fn shortened(source: &str) -> String {
    let source = source.trim();
    match source.char_indices().nth(100) {
        None => source.to_owned(),
        Some((end, _)) => format!("{}…", &source[..end]),
    }
}

impl Clause for ScriptScoreQuery {
    fn lucene_name(&self) -> &'static str {
        "ScriptScoreQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "script_score ({}, script: {})", self.query, self.script.source)
    }

    fn children(&self) -> Vec<&Query> {
        vec![&self.query]
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        vec![&mut self.query]
    }
}
