//! The query tree as a request states it, before it is bound to an index.
//!
//! [`crate::dsl`] parses request JSON into this tree; nothing here knows tantivy. Field names are full dotted paths as users write
//! them, multi-fields included (`title.raw`).

mod function;
mod intervals;
mod like;
mod term;
mod text;

use std::sync::Arc;

use serde_json::Value;

pub use sparrow_mapping::PruningConfig;
use sparrow_mapping::passages::PassageVector;

use crate::script::Script;

pub use function::*;
pub use intervals::*;
pub use like::*;
pub use term::*;
pub use text::*;

/// One clause of a query: what it matches, the boost of its score, and its `_name`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The kind of the clause, with its parameters.
    pub kind: QueryKind,
    /// Multiplies the score of the clause; not negative.
    pub boost: f32,
    /// The `_name` under which a hit may report this clause in `matched_queries`.
    pub name: Option<String>,
}

impl Query {
    /// A clause with boost 1 and no name.
    pub fn new(kind: QueryKind) -> Self {
        Self { kind, boost: 1.0, name: None }
    }

    /// Every document, score 1.
    pub fn match_all() -> Self {
        Self::new(QueryKind::MatchAll)
    }

    /// A copy of the clause with another boost.
    #[must_use]
    pub fn with_boost(mut self, boost: f32) -> Self {
        self.boost = boost;
        self
    }
}

impl From<QueryKind> for Query {
    fn from(kind: QueryKind) -> Self {
        Self::new(kind)
    }
}

/// The kind of a clause, which says what it matches, with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryKind {
    /// Every document; score 1.
    MatchAll,
    /// No document.
    MatchNone,
    /// Analysed text against one field.
    Match(MatchQuery),
    /// Analysed text as a phrase.
    MatchPhrase(MatchPhraseQuery),
    /// Analysed text as a phrase whose last term is a prefix.
    MatchPhrasePrefix(MatchPhrasePrefixQuery),
    /// Analysed text against one field, its last term a prefix.
    MatchBoolPrefix(MatchQuery),
    /// Analysed text against several fields.
    MultiMatch(MultiMatchQuery),
    /// Analysed text against several fields as if they were one.
    CombinedFields(CombinedFieldsQuery),
    /// Documents with one exact value in a field.
    Term {
        /// Path of the field to search.
        field: String,
        /// String, number or boolean.
        value: Value,
        /// ASCII case is ignored (keywords only).
        case_insensitive: bool,
    },
    /// Any of several exact values; score 1.
    Terms {
        /// Path of the field to search.
        field: String,
        /// Strings, numbers or booleans, of which there may be many in many places of a query.
        values: Arc<[Value]>,
    },
    /// `terms` with the values of another document: the engine replaces it by [`QueryKind::Terms`] before a
    /// search; an index answers it with an error.
    TermsLookup(TermsLookupQuery),
    /// Documents with several exact values, of which each document says how many it needs.
    TermsSet(TermsSetQuery),
    /// Documents with a value between bounds; score 1.
    Range(RangeQuery),
    /// Documents with a value in the field; score 1.
    Exists {
        /// Field path, of an object also; `*` and trailing wildcards are allowed.
        field: String,
    },
    /// Documents by `_id`; score 1.
    Ids {
        /// The ids of the documents.
        values: Vec<String>,
    },
    /// Keywords or terms that start with a prefix; score 1.
    Prefix {
        /// Path of the field to search.
        field: String,
        /// The prefix, not analysed.
        value: String,
        /// ASCII case is ignored.
        case_insensitive: bool,
        /// How the matching terms score.
        rewrite: Rewrite,
    },
    /// Keywords or terms that match a pattern of `*` and `?`; score 1.
    Wildcard {
        /// Path of the field to search.
        field: String,
        /// The pattern, not analysed.
        value: String,
        /// ASCII case is ignored.
        case_insensitive: bool,
        /// How the matching terms score.
        rewrite: Rewrite,
    },
    /// Keywords or terms that a regular expression matches as a whole; score 1.
    Regexp(RegexpQuery),
    /// Keywords or terms within an edit distance of a given one.
    Fuzzy(FuzzyQuery),
    /// A query string in Lucene's syntax.
    QueryString(QueryStringQuery),
    /// A query string in a simple syntax for search boxes, in which every text is valid.
    SimpleQueryString(SimpleQueryStringQuery),
    /// Clauses joined by `must`, `should`, `filter` and `must_not`.
    Bool(BoolQuery),
    /// A query in filter context; score 1.
    ConstantScore {
        /// The query that has to match; its own scores are not computed.
        filter: Box<Query>,
    },
    /// Documents that match any of several clauses, with the score of the best one.
    DisMax {
        /// The clauses.
        queries: Vec<Query>,
        /// Share of the scores of the other matching clauses that is added.
        tie_breaker: f32,
    },
    /// A query whose hits score less if they also match another one.
    Boosting(BoostingQuery),
    /// A query whose scores are changed by functions of the document.
    FunctionScore(FunctionScoreQuery),
    /// A query whose scores are computed by a script.
    ScriptScore(ScriptScoreQuery),
    /// Documents scored by a function of a numeric feature.
    RankFeature(RankFeatureQuery),
    /// Documents scored by the distance of a date: the nearer, the higher.
    DistanceFeature(DistanceFeatureQuery),
    /// `nested`: as there are no nested documents, it is an error that names the path, or matches nothing.
    Nested {
        /// Path of the objects.
        path: String,
        /// Whether an unmapped path matches nothing instead of being an error.
        ignore_unmapped: bool,
    },
    /// Documents by the positions and order of words in a text.
    Intervals(IntervalsQuery),
    /// Documents with the most characteristic words of example documents, which the engine reads before a search.
    MoreLikeThis(Box<MoreLikeThisQuery>),
    /// A query that matches nothing, instead of failing, where a value does not fit its field.
    Lenient(Box<Query>),
    /// Documents scored by the dot product of query weights and stored token weights.
    Sparse(SparseQuery),
    /// Documents with the nearest dense vectors.
    Knn(KnnQuery),
    /// `text_expansion` or `sparse_vector` with text: the engine replaces it by [`QueryKind::Sparse`]
    /// before a search; an index answers it with an error.
    TextExpansion(TextExpansionQuery),
    /// A text against the passages of a `semantic_text` field.
    Semantic(SemanticQuery),
    /// kNN with a text: the engine replaces it by [`QueryKind::Knn`] before a search; an index
    /// answers it with an error.
    KnnBuilder(KnnBuilderQuery),
}

/// A `bool` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoolQuery {
    /// Clauses that all have to match, and that count for the score.
    pub must: Vec<Query>,
    /// Clauses of which some have to match, see `minimum_should_match`, and that count for the score.
    pub should: Vec<Query>,
    /// Clauses that all have to match, without a score.
    pub filter: Vec<Query>,
    /// Clauses of which none may match.
    pub must_not: Vec<Query>,
    /// How many `should` clauses have to match, as in [`MatchQuery::minimum_should_match`]; by default 1 if there is neither `must`
    /// nor `filter`, otherwise 0.
    pub minimum_should_match: Option<String>,
}

/// A query for documents by weighted tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseQuery {
    /// Path of a `sparse_vector` or `rank_features` field.
    pub field: String,
    /// Tokens and weights from the request or the encoder. The weights of a repeated token add up.
    pub tokens: Vec<(Box<str>, f32)>,
    /// Whether tokens that are frequent and have low weights are left out.
    pub pruning: Pruning,
    /// The kind of query in the request, for the wording of errors.
    pub origin: SparseOrigin,
}

/// Which query a sparse clause came from: Elasticsearch words the errors of each differently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SparseOrigin {
    /// A `sparse_vector` query.
    #[default]
    SparseVector,
    /// A `weighted_tokens` query.
    WeightedTokens,
    /// A `text_expansion` query.
    TextExpansion,
}

/// Whether a sparse clause leaves out tokens, as far as the request says so.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Pruning {
    /// Every token is scored.
    #[default]
    Off,
    /// Tokens are left out by this configuration, else by the field's, else by the default one.
    On(Option<PruningConfig>),
    /// Tokens are left out if the field's `index_options` say so, which they do not by default; this configuration replaces the
    /// field's.
    ByField(Option<PruningConfig>),
}

/// A text that the encoder turns into a sparse clause before the search.
#[derive(Debug, Clone, PartialEq)]
pub struct TextExpansionQuery {
    /// Path of a `sparse_vector` or `rank_features` field.
    pub field: String,
    /// Id of a model or an inference endpoint.
    pub model_id: String,
    /// The text to encode.
    pub model_text: String,
    /// As [`SparseQuery::pruning`].
    pub pruning: Pruning,
    /// As [`SparseQuery::origin`].
    pub origin: SparseOrigin,
}

/// The `k` nearest vectors of the whole index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnnQuery {
    /// Path of a `dense_vector` field.
    pub field: String,
    /// The query vector.
    pub vector: Vec<f32>,
    /// Number of neighbours over all segments.
    pub k: usize,
    /// Number of candidates examined in each segment, unless all vectors are: more candidates find more of the true neighbours.
    pub num_candidates: usize,
    /// `rescore_vector.oversample`: as a multiple of `k`, the number of candidates that are found by 8-bit codes and then compared
    /// exactly where they can be hits, if that is more than `num_candidates`. Scores are exact in any case.
    pub oversample: Option<f32>,
    /// Only documents that match all of these are candidates.
    pub filter: Vec<Query>,
    /// Lowest raw similarity of a neighbour.
    pub similarity: Option<f32>,
    /// How `k` is derived if the request does not give it.
    pub default_k: Option<DefaultK>,
}

/// How the `k` of a kNN clause that does not give it is derived from the number of hits wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultK {
    /// As many neighbours as hits: for a `knn` section or a retriever.
    Hits {
        /// Whether the request gives the number of candidates, which `k` then does not exceed.
        candidates_given: bool,
    },
    /// Every candidate is a neighbour, as in Elasticsearch: for a `knn` query.
    Candidates,
}

/// A text that the encoder turns into a kNN clause before the search.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnBuilderQuery {
    /// Id of a model or an inference endpoint.
    pub model_id: String,
    /// The text to encode.
    pub model_text: String,
    /// The kNN clause, whose vector is empty until then.
    pub knn: KnnQuery,
}

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
