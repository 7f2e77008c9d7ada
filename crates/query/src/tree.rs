//! The query tree as a request states it, before it is bound to an index.
//!
//! The engine parses request JSON into this tree; nothing here knows tantivy. Field names are full
//! dotted paths as users write them, multi-fields included (`title.raw`).

mod function;
mod intervals;
mod like;
mod term;
mod text;

use serde_json::Value;

pub use sparrow_mapping::PruningConfig;
use sparrow_mapping::passages::PassageVector;

use crate::script::Script;

pub use function::*;
pub use intervals::*;
pub use like::*;
pub use term::*;
pub use text::*;

/// One clause of the tree: what it matches, how much it counts, and its `_name`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What the clause matches.
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

/// What a clause matches.
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
    /// One exact value.
    Term {
        /// Field path.
        field: String,
        /// String, number or boolean.
        value: Value,
        /// ASCII case is ignored (keywords only).
        case_insensitive: bool,
    },
    /// Any of several exact values; score 1.
    Terms {
        /// Field path.
        field: String,
        /// Strings, numbers or booleans.
        values: Vec<Value>,
    },
    /// `terms` with the values of another document: the engine replaces it by [`QueryKind::Terms`] before a
    /// search; an index answers it with an error.
    TermsLookup(TermsLookupQuery),
    /// As many of several exact values as each document asks for.
    TermsSet(TermsSetQuery),
    /// Values between bounds; score 1.
    Range(RangeQuery),
    /// Documents with a value in the field; score 1.
    Exists {
        /// Field path, of an object also; `*` and trailing wildcards are allowed.
        field: String,
    },
    /// Documents by `_id`; score 1.
    Ids {
        /// The ids.
        values: Vec<String>,
    },
    /// Keywords or terms that start with a prefix; score 1.
    Prefix {
        /// Field path.
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
        /// Field path.
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
    /// Keywords or terms near a given one.
    Fuzzy(FuzzyQuery),
    /// Lucene's query syntax.
    QueryString(QueryStringQuery),
    /// A syntax for search boxes, which no text fails to follow.
    SimpleQueryString(SimpleQueryStringQuery),
    /// Clauses joined by `must`, `should`, `filter` and `must_not`.
    Bool(BoolQuery),
    /// A query in filter context; score 1.
    ConstantScore {
        /// The query; its own scores are not computed.
        filter: Box<Query>,
    },
    /// The best of several clauses.
    DisMax {
        /// The clauses.
        queries: Vec<Query>,
        /// Share of the scores of the other matching clauses that is added.
        tie_breaker: f32,
    },
    /// A query whose hits score less where another one matches.
    Boosting(BoostingQuery),
    /// A query with scores that functions of the document change.
    FunctionScore(FunctionScoreQuery),
    /// A query with scores that a script works out.
    ScriptScore(ScriptScoreQuery),
    /// A function of a feature of the document.
    RankFeature(RankFeatureQuery),
    /// The nearer a date, the higher the score.
    DistanceFeature(DistanceFeatureQuery),
    /// `nested`: there are no nested documents, so that it only says which path is none.
    Nested {
        /// Path of the objects.
        path: String,
        /// A path that is not mapped matches nothing instead of failing.
        ignore_unmapped: bool,
    },
    /// Words by where they stand.
    Intervals(IntervalsQuery),
    /// Documents with the telling words of others, which the engine reads before a search.
    MoreLikeThis(Box<MoreLikeThisQuery>),
    /// The query, or nothing where a value does not fit its field.
    Lenient(Box<Query>),
    /// Dot product of query weights and stored weights.
    Sparse(SparseQuery),
    /// The nearest dense vectors.
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

/// `bool`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoolQuery {
    /// All must match and score.
    pub must: Vec<Query>,
    /// Some must match, see `minimum_should_match`, and score.
    pub should: Vec<Query>,
    /// All must match, without a score.
    pub filter: Vec<Query>,
    /// None may match.
    pub must_not: Vec<Query>,
    /// As in [`MatchQuery`]; absent it is 1 when there is neither `must` nor `filter`, else 0.
    pub minimum_should_match: Option<String>,
}

/// A sparse clause over token weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseQuery {
    /// Path of a `sparse_vector` or `rank_features` field.
    pub field: String,
    /// Tokens and weights as the request or the encoder gives them. A repeated token adds up.
    pub tokens: Vec<(Box<str>, f32)>,
    /// Whether frequent tokens of low weight are left out.
    pub pruning: Pruning,
    /// The name under which the request asked, for the wording of errors.
    pub origin: SparseOrigin,
}

/// Which query a sparse clause came from: Elasticsearch words the errors of each differently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SparseOrigin {
    /// `sparse_vector`.
    #[default]
    SparseVector,
    /// `weighted_tokens`.
    WeightedTokens,
    /// `text_expansion`.
    TextExpansion,
}

/// Whether a sparse clause leaves tokens out, as far as the request says it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Pruning {
    /// Every token is scored.
    #[default]
    Off,
    /// Tokens are left out; without a configuration by the field's, else by the default.
    On(Option<PruningConfig>),
    /// As the field's `index_options` say, which by default leave out nothing; a configuration takes the
    /// place of the field's.
    ByField(Option<PruningConfig>),
}

/// A text that becomes a sparse clause by the encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct TextExpansionQuery {
    /// Path of a `sparse_vector` or `rank_features` field.
    pub field: String,
    /// Model or inference id.
    pub model_id: String,
    /// The text.
    pub model_text: String,
    /// As in [`SparseQuery`].
    pub pruning: Pruning,
    /// As in [`SparseQuery`].
    pub origin: SparseOrigin,
}

/// The `k` nearest vectors of the whole index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnnQuery {
    /// Path of a `dense_vector` field.
    pub field: String,
    /// The query vector.
    pub vector: Vec<f32>,
    /// Neighbours over all segments.
    pub k: usize,
    /// Candidates looked at in each segment where not all are: more find more of the true neighbours.
    pub num_candidates: usize,
    /// `rescore_vector.oversample`: candidates found by 8-bit codes and compared exactly, as a multiple of `k`, if
    /// that is more. Scores are exact in any case.
    pub oversample: Option<f32>,
    /// Only documents that match all of these are candidates.
    pub filter: Vec<Query>,
    /// Lowest raw similarity of a neighbour.
    pub similarity: Option<f32>,
    /// What `k` follows from where the request does not say it.
    pub default_k: Option<DefaultK>,
}

/// How the `k` of a kNN clause that does not say it follows from the number of hits that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultK {
    /// As many neighbours as hits: a section or a retriever.
    Hits {
        /// Whether the request says the number of candidates, which `k` does not exceed.
        candidates_given: bool,
    },
    /// Every candidate is a neighbour, as in Elasticsearch: a query.
    Candidates,
}

/// A text that becomes a kNN clause by the encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnBuilderQuery {
    /// Model or inference id.
    pub model_id: String,
    /// The text.
    pub model_text: String,
    /// The clause, its vector still empty.
    pub knn: KnnQuery,
}

/// `script_score`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptScoreQuery {
    /// What matches.
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
    /// Components.
    Dense,
}

/// A text against the passages of a `semantic_text` field; what it comes to depends on the field's model, which may
/// differ from index to index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SemanticQuery {
    /// Path of the field.
    pub field: String,
    /// The text.
    pub text: String,
    /// The slot of the field to search; none for the one that searches read.
    pub slot: Option<String>,
    /// The text's vectors by inference id: the engine fills them in before a search. An empty dense one is that of a
    /// text without any word.
    pub vectors: Vec<(String, PassageVector)>,
    /// Documents that are found by dense passages, and candidates that are looked at for them.
    pub k: usize,
    pub num_candidates: usize,
    /// Only documents that match all of these are candidates of dense passages.
    pub filter: Vec<Query>,
    /// The vectors to search, of a model that makes both kinds; none for both. A model that makes only the other kind
    /// finds nothing.
    pub part: Option<VectorKind>,
    /// What is searched where the field is of another type; without it that is an error.
    pub otherwise: Option<Box<QueryKind>>,
}
