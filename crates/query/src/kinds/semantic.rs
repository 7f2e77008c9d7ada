//! `semantic`: a text against the passages of a `semantic_text` field.

use std::fmt;

use super::dsl::{Common, Context, members};
use super::shape::{Shape, clause, text};
use crate::neighbours::{default_candidates, default_k};
use crate::{Clause, Query, QueryKind};
use sparrow_mapping::passages::PassageVector;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// A kind of vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorKind {
    /// Token weights.
    Sparse,
    /// Dense vectors, with one number for each dimension.
    Dense,
}

/// A text to compare with the passages of a `semantic_text` field. Which clause that becomes depends on the field's model, which
/// may differ from index to index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SemanticQuery {
    /// Path of the `semantic_text` field.
    pub field: String,
    /// The text to encode.
    pub text: String,
    /// Name of the field's slot to search; none for the one that searches normally use.
    pub slot: Option<String>,
    /// Inference id → the text's vector; the engine fills them in before a search. An empty dense vector is that of a text without
    /// words.
    pub vectors: Vec<(String, PassageVector)>,
    /// Inference id → factor on the score of its dense vectors where they are added to sparse ones; 1 for those that are not there.
    pub dense_factors: Vec<(String, f32)>,
    /// Number of documents found by dense passages, and of candidates examined for them.
    pub k: usize,
    pub num_candidates: usize,
    /// Only documents that match all of these are candidates of dense passages.
    pub filter: Vec<Query>,
    /// The kind of vectors to search, if the model makes both; none for both. A model that makes only the other kind finds nothing.
    pub part: Option<VectorKind>,
    /// The query for fields of another type; without it such a field is an error.
    pub otherwise: Option<Box<QueryKind>>,
}

/// What the body of a `semantic` query holds.
pub(super) fn semantic_shape() -> Shape {
    clause([
        ("field", text().about("a `semantic_text`")),
        ("query", text().about("what is looked for, in words of the user")),
    ])
    .needs(&["field", "query"])
    .about("the best passage of a `semantic_text`")
}

/// Reads a `semantic` query, which compares a text with the passages of a `semantic_text` field.
pub(super) fn semantic(body: &Node, context: Context) -> Result<Query, BodyError> {
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
            _ => return Err(BodyError::unknown_field(CLAUSE, member, &["field", "query", "boost", "_name"])),
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

impl SemanticQuery {
    /// The factor on the score of an endpoint's dense vectors where they are added to sparse ones.
    pub fn dense_factor(&self, inference_id: &str) -> f32 {
        self.dense_factors.iter().find(|(id, _)| id == inference_id).map_or(1.0, |(_, factor)| *factor)
    }
}

impl Clause for SemanticQuery {
    fn lucene_name(&self) -> &'static str {
        "SemanticQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "semantic({}:{})", self.field, self.text)
    }

    fn children(&self) -> Vec<&Query> {
        self.filter.iter().collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        self.filter.iter_mut().collect()
    }

    fn fit(&mut self, hits: usize) {
        self.k = default_k(hits);
        self.num_candidates = default_candidates(self.k);
    }
}
