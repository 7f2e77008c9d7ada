//! `more_like_this` queries.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

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
