//! `more_like_this`: documents with the most characteristic words of examples.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::dsl::{Common, Context, members, value};
use super::no_children;
use super::shape::{Shape, clause, either, flag, int, list, map, num, object, open, several, text};
use super::text::{analyzer, minimum};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::json::{Json, Node};
use sparrow_wire::{BodyError, glob};

/// A `more_like_this` query, for documents that contain the most characteristic words of example texts and documents.
#[derive(Debug, Clone, PartialEq)]
pub struct MoreLikeThisQuery {
    /// Paths of `text` and `keyword` fields; none for all of them.
    pub fields: Option<Vec<String>>,
    /// The examples that hits have to resemble.
    pub like: Vec<LikeExample>,
    /// Examples whose words are ignored.
    pub unlike: Vec<LikeExample>,
    /// Words that are ignored.
    pub stop_words: Vec<String>,
    /// Largest number of words taken from each field of the example documents, and from all example texts together.
    pub max_query_terms: usize,
    /// Number of times that a word has to occur in the examples; 0 for any.
    pub min_term_freq: usize,
    /// Number of documents of the index in which a word has to occur; 0 for any.
    pub min_doc_freq: u64,
    /// Largest number of documents of the index in which a word may occur.
    pub max_doc_freq: u64,
    /// Least number of characters that a word has to have; 0 for any.
    pub min_word_length: usize,
    /// Largest number of characters that a word may have; 0 for any.
    pub max_word_length: usize,
    /// As [`super::MatchQuery::minimum_should_match`].
    pub minimum_should_match: String,
    /// Factor by which words are boosted according to how characteristic they are, relative to the least characteristic one; 0 for
    /// equal boosts.
    pub boost_terms: f32,
    /// Whether the example documents may be hits themselves.
    pub include: bool,
    /// Analyzer of texts and documents instead of the fields' own.
    pub analyzer: Option<String>,
    /// Whether a field of another type is an error; otherwise it is ignored.
    pub fail_on_unsupported_field: bool,
}

impl Default for MoreLikeThisQuery {
    fn default() -> Self {
        Self {
            fields: None,
            like: Vec::new(),
            unlike: Vec::new(),
            stop_words: Vec::new(),
            max_query_terms: 25,
            min_term_freq: 2,
            min_doc_freq: 5,
            max_doc_freq: u64::MAX,
            min_word_length: 0,
            max_word_length: 0,
            minimum_should_match: "30%".to_owned(),
            boost_terms: 0.0,
            include: false,
            analyzer: None,
            fail_on_unsupported_field: true,
        }
    }
}

/// An example of a `more_like_this` query.
#[derive(Debug, Clone, PartialEq)]
pub enum LikeExample {
    /// A text given in the request.
    Text(String),
    /// A document, from an index or given in the request.
    Document(LikeDocument),
}

/// An example document: one of an index, or one given in the request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LikeDocument {
    /// Name of the document's index; if absent, the document is read from each index that is searched.
    pub index: Option<String>,
    /// `_id` of the document; none for one that the request contains.
    pub id: Option<String>,
    /// Paths of the document's fields to use instead of the query's; `*` stands for any characters.
    pub fields: Option<Vec<String>>,
    /// Field path → name of the analyzer to use instead of the field's own.
    pub analyzers: BTreeMap<String, String>,
    /// The document's sources, each with the name of the index that it counts for, or none if it counts for all. `None` until the
    /// engine has read the document from an index.
    pub sources: Option<Vec<(Option<String>, Arc<Value>)>>,
}

const CLAUSE: &str = "more_like_this";
/// Most example documents and texts of a query: each document is read before the search.
const MAX_EXAMPLES: usize = 1_024;

/// What the body of a `more_like_this` query holds.
pub(super) fn more_like_this_shape() -> Shape {
    let document = object([
        ("_index", text()),
        ("_id", text()),
        ("doc", open()),
        ("fields", list(text())),
        ("routing", text()),
        ("_routing", text()),
        ("per_field_analyzer", map(text())),
    ]);
    let like = several(either([text(), document]));
    clause([
        ("like", like.clone()),
        ("unlike", like),
        ("fields", list(text())),
        ("stop_words", list(text())),
        ("analyzer", analyzer()),
        ("max_query_terms", int().about("terms that are chosen from the examples").preset(25)),
        ("min_term_freq", int().preset(2)),
        ("min_doc_freq", int().preset(5)),
        ("max_doc_freq", int()),
        ("min_word_length", int().preset(0)),
        ("max_word_length", int().preset(0)),
        ("minimum_should_match", minimum().preset("30%")),
        ("boost_terms", num().preset(0)),
        ("include", flag().about("the examples may be found as well").preset(false)),
        ("fail_on_unsupported_field", flag().preset(true)),
    ])
    .needs(&["like"])
}

/// Reads a `more_like_this` query.
pub(super) fn more_like_this(body: &Node, _: Context) -> Result<Query, BodyError> {
    let mut common = Common::default();
    let mut query = MoreLikeThisQuery::default();
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match (&*member.name, &node.json) {
            ("like", _) => query.like = examples("like", node)?,
            ("unlike", _) => query.unlike = examples("unlike", node)?,
            ("fields", Json::Array(_)) => query.fields = Some(glob::distinct("fields", value::texts(node)?)?),
            ("stop_words", Json::Array(_)) => query.stop_words = value::texts(node)?,
            (_, Json::Array(_) | Json::Object(_)) => return Err(unsupported(node, &member.name)),
            ("max_query_terms", _) => {
                query.max_query_terms = usize::try_from(value::int(node)?)
                    .ok()
                    .filter(|most| *most > 0)
                    .ok_or_else(|| BodyError::illegal("requires 'maxQueryTerms' to be greater than 0"))?;
            }
            ("min_term_freq", _) => query.min_term_freq = at_least_none(node)?,
            ("min_doc_freq", _) => query.min_doc_freq = at_least_none(node)? as u64,
            ("max_doc_freq", _) => query.max_doc_freq = at_least_none(node)? as u64,
            ("min_word_length", _) => query.min_word_length = at_least_none(node)?,
            ("max_word_length", _) => query.max_word_length = at_least_none(node)?,
            ("minimum_should_match", _) => {
                query.minimum_should_match = value::optional_text(node)?.ok_or_else(|| {
                    BodyError::illegal(format!("[{CLAUSE}] requires minimum should match to be non-null"))
                })?;
            }
            ("boost_terms", _) => query.boost_terms = value::float(node)?,
            ("include", _) => query.include = value::boolean(node)?,
            ("analyzer", _) => query.analyzer = value::optional_text(node)?,
            ("fail_on_unsupported_field", _) => query.fail_on_unsupported_field = value::boolean(node)?,
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(unsupported(node, &member.name)),
        }
    }
    if query.like.is_empty() {
        return Err(BodyError::parsing(body.end, format!("{CLAUSE} requires 'like' to be specified")));
    }
    if query.fields.as_ref().is_some_and(Vec::is_empty) {
        return Err(BodyError::parsing(body.end, format!("{CLAUSE} requires 'fields' to be non-empty")));
    }
    Ok(common.query(QueryKind::MoreLikeThis(query)))
}

fn unsupported(node: &Node, name: &str) -> BodyError {
    BodyError::parsing(node.at, format!("[mlt] query does not support [{name}]"))
}

/// Reads a whole number; anything below 0 counts as 0, which sets no bound.
fn at_least_none(node: &Node) -> Result<usize, BodyError> {
    Ok(value::int(node)?.max(0) as usize)
}

/// Reads the examples of a query: a text, a document, or an array of both.
fn examples(name: &str, node: &Node) -> Result<Vec<LikeExample>, BodyError> {
    let single = std::slice::from_ref(node);
    let items = node.as_array().unwrap_or(single);
    if items.len() > MAX_EXAMPLES {
        return Err(BodyError::illegal(format!(
            "[{CLAUSE}] takes at most [{MAX_EXAMPLES}] texts and documents in [{name}], found [{}]",
            items.len()
        )));
    }
    items
        .iter()
        .map(|item| match &item.json {
            Json::Object(_) => Ok(LikeExample::Document(document(item)?)),
            Json::Array(_) | Json::Null => Err(BodyError::illegal(format!(
                "Content of '{name}' parameter should either be a string or an object"
            ))),
            _ => Ok(LikeExample::Text(value::text(item)?)),
        })
        .collect()
}

/// Reads an example document: `{"_index": …, "_id": …}` or `{"doc": {…}}`.
fn document(node: &Node) -> Result<LikeDocument, BodyError> {
    let failed = |reason: String| BodyError::Parse {
        reason: format!("failed to parse More Like This item. {reason}"),
    };
    let mut document = LikeDocument::default();
    for member in members(node, CLAUSE)? {
        let value = &member.value;
        match (&*member.name, &value.json) {
            ("_index", _) => document.index = value::optional_text(value)?,
            ("_id", _) => document.id = value::optional_text(value)?,
            ("doc", Json::Object(_)) => {
                document.sources = Some(vec![(None, Arc::new(value.to_value()))]);
            }
            ("fields", Json::Array(_)) => {
                document.fields = Some(glob::distinct("fields", value::texts(value)?)?)
            }
            ("per_field_analyzer", Json::Object(analyzers)) => {
                for analyzer in analyzers {
                    document.analyzers.insert(analyzer.name.to_string(), value::text(&analyzer.value)?);
                }
            }
            // An index has one shard here: every document is where any routing would put it.
            ("_routing" | "routing", _) => {
                value::optional_text(value)?;
            }
            (name, _) => return Err(failed(format!("unknown field [{name}]"))),
        }
    }
    match (&document.id, &document.sources) {
        (Some(_), Some(_)) => Err(failed("either [id] or [doc] can be specified, but not both!".to_owned())),
        (None, None) => Err(failed("neither [id] nor [doc] is specified!".to_owned())),
        _ => Ok(document),
    }
}

impl Clause for MoreLikeThisQuery {
    fn lucene_name(&self) -> &'static str {
        "MoreLikeThisQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "like:{}", self.fields.as_deref().unwrap_or_default().join(","))
    }

    no_children!();

    fn names_documents(&self) -> bool {
        self.like
            .iter()
            .chain(&self.unlike)
            .any(|example| matches!(example, LikeExample::Document(LikeDocument { sources: None, .. })))
    }

    fn set_default_fields(&mut self, fields: &[String]) {
        self.fields.get_or_insert_with(|| fields.to_vec());
    }
}
