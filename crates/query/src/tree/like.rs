//! `more_like_this`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// `more_like_this`: documents with the telling words of others.
#[derive(Debug, Clone, PartialEq)]
pub struct MoreLikeThisQuery {
    /// Paths of `text` and `keyword` fields; none for all of them.
    pub fields: Option<Vec<String>>,
    /// What hits are to be like.
    pub like: Vec<LikeExample>,
    /// Whose words do not count.
    pub unlike: Vec<LikeExample>,
    /// Words that do not count.
    pub stop_words: Vec<String>,
    /// Most words of each field of documents, and of all texts together.
    pub max_query_terms: usize,
    /// How often a word has to be in the examples; 0 for any.
    pub min_term_freq: usize,
    /// In how many documents of the index a word has to be; 0 for any.
    pub min_doc_freq: u64,
    /// In how many it may be.
    pub max_doc_freq: u64,
    /// Characters of the shortest word; 0 for any.
    pub min_word_length: usize,
    /// Characters of the longest word; 0 for any.
    pub max_word_length: usize,
    /// As in [`super::MatchQuery`].
    pub minimum_should_match: String,
    /// How much more a word counts that is more telling than the least telling one; 0 for all alike.
    pub boost_terms: f32,
    /// The examples are hits, too.
    pub include: bool,
    /// Analyzer of texts and documents instead of the fields' own.
    pub analyzer: Option<String>,
    /// A field of another type is an error; else it is passed over.
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

/// A text or a document.
#[derive(Debug, Clone, PartialEq)]
pub enum LikeExample {
    /// A text.
    Text(String),
    /// A document.
    Document(LikeDocument),
}

/// A document of an index, or one that the request brings along.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LikeDocument {
    /// Index of the document; without one, the document of each index that is searched.
    pub index: Option<String>,
    /// `_id` of the document; none for one that the request contains.
    pub id: Option<String>,
    /// Paths of the fields that count of it, instead of the query's; `*` stands for any characters.
    pub fields: Option<Vec<String>>,
    /// Analyzers instead of the fields' own.
    pub analyzers: BTreeMap<String, String>,
    /// What is in it. A document of an index has none before the engine has read it; a source that names an index
    /// counts for searches of that index only.
    pub sources: Option<Vec<(Option<String>, Arc<Value>)>>,
}
