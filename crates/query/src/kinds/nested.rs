//! `nested`: documents by the objects of a nested field that match a query.

use std::fmt;

use super::dsl::{Common, Context, members, not_supported, parse_query, value};
use super::shape::{Shape, clause, flag, one, open, sub_query, text};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// A `nested` query.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedQuery {
    /// Path of the objects.
    pub path: String,
    /// What an object has to match.
    pub query: Box<Query>,
    /// How the scores of the objects of a document that match become its score.
    pub score_mode: NestedScore,
    /// Whether an unmapped path matches nothing instead of being an error.
    pub ignore_unmapped: bool,
    /// The `inner_hits` as they were sent: which of the objects that match are shown with a document.
    pub inner_hits: Option<Box<Node>>,
}

/// How the scores of several objects of a document become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NestedScore {
    /// Their mean.
    #[default]
    Avg,
    /// The best one.
    Max,
    /// The worst one.
    Min,
    /// Their sum.
    Sum,
    /// None: 0.
    None,
}

impl NestedScore {
    /// Reads the name of a mode; `None` for another text.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "avg" => Self::Avg,
            "max" => Self::Max,
            "min" => Self::Min,
            "sum" => Self::Sum,
            "none" => Self::None,
            _ => return None,
        })
    }

    /// The name as Lucene prints it.
    pub fn lucene_name(self) -> &'static str {
        match self {
            Self::Avg => "Avg",
            Self::Max => "Max",
            Self::Min => "Min",
            Self::Sum => "Total",
            Self::None => "None",
        }
    }
}

/// What the body of a `nested` query holds.
pub(super) fn nested_shape() -> Shape {
    clause([
        ("query", sub_query()),
        ("path", text()),
        ("ignore_unmapped", flag()),
        ("score_mode", one(&["none", "min", "max", "avg", "sum"]).preset("avg")),
        ("inner_hits", open().about("which of the objects that match are shown")),
    ])
    .needs(&["query", "path"])
    .about("documents by their objects in a field of the type `nested`")
}

/// Reads a `nested` query.
pub(super) fn nested(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    const CLAUSE: &str = "nested";
    let mut common = Common::default();
    let (mut path, mut query, mut ignore_unmapped) = (None, None, false);
    let (mut score_mode, mut inner_hits) = (NestedScore::default(), None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "query" => query = Some(Box::new(parse_query(node, context)?)),
            "path" => path = Some(value::text(node)?),
            "ignore_unmapped" => ignore_unmapped = value::boolean(node)?,
            "score_mode" => {
                let mode = value::text(node)?;
                score_mode = NestedScore::named(&mode).ok_or_else(|| {
                    BodyError::illegal(format!("No score mode for child query [{mode}] found"))
                })?;
            }
            "inner_hits" if node.as_object().is_some() => inner_hits = Some(Box::new(node.clone())),
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let missing = |what: &str| BodyError::illegal(format!("[{CLAUSE}] requires '{what}' field"));
    let query = query.ok_or_else(|| missing("query"))?;
    let path = path.ok_or_else(|| missing("path"))?;
    Ok(common.query(QueryKind::Nested(NestedQuery { path, query, score_mode, ignore_unmapped, inner_hits })))
}

impl Clause for NestedQuery {
    fn lucene_name(&self) -> &'static str {
        "ESToParentBlockJoinQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ToParentBlockJoinQuery ({})", self.query)
    }

    fn children(&self) -> Vec<&Query> {
        vec![&self.query]
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        vec![&mut self.query]
    }
}
