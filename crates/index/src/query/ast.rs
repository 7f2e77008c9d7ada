//! The query tree as a request states it, before it is bound to an index.
//!
//! The engine parses request JSON into this tree; nothing here knows tantivy. Field names are full
//! dotted paths as users write them, multi-fields included (`title.raw`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sparrow_types::SeqNo;

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

    /// The same clause with another boost.
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
    /// Analysed text against several fields.
    MultiMatch(MultiMatchQuery),
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
    },
    /// Keywords or terms that match a pattern of `*` and `?`; score 1.
    Wildcard {
        /// Field path.
        field: String,
        /// The pattern, not analysed.
        value: String,
        /// ASCII case is ignored.
        case_insensitive: bool,
    },
    /// Keywords or terms that a regular expression matches as a whole; score 1.
    Regexp {
        /// Field path.
        field: String,
        /// The expression, not analysed.
        value: String,
    },
    /// Keywords or terms near a given one.
    Fuzzy {
        /// Field path.
        field: String,
        /// The term, not analysed.
        value: String,
        /// As in [`MatchQuery`].
        fuzziness: String,
        /// As in [`MatchQuery`].
        prefix_length: usize,
        /// As in [`MatchQuery`].
        max_expansions: usize,
    },
    /// Lucene's query syntax.
    QueryString(QueryStringQuery),
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
    /// The query, or nothing where a value does not fit its field.
    Lenient(Box<Query>),
    /// Dot product of query weights and stored weights.
    Sparse(SparseQuery),
    /// The nearest dense vectors.
    Knn(KnnQuery),
    /// `text_expansion` or `sparse_vector` with text: the engine replaces it by [`QueryKind::Sparse`]
    /// before a search; an index answers it with an error.
    TextExpansion(TextExpansionQuery),
    /// kNN with a text: the engine replaces it by [`QueryKind::Knn`] before a search; an index
    /// answers it with an error.
    KnnBuilder(KnnBuilderQuery),
}

/// How the terms of a text are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Operator {
    /// Any term.
    #[default]
    Or,
    /// All terms.
    And,
}

/// What a text without any term left after analysis matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ZeroTerms {
    /// Nothing.
    #[default]
    None,
    /// Everything.
    All,
}

/// `match`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchQuery {
    /// Field path.
    pub field: String,
    /// The text, or the number or boolean as text.
    pub text: String,
    /// How its terms are joined.
    pub operator: Operator,
    /// As Elasticsearch writes it: `2`, `-1`, `75%`, `-25%`, `3<90%`.
    pub minimum_should_match: Option<String>,
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// `AUTO`, `AUTO:low,high`, `0`, `1`, `2`.
    pub fuzziness: Option<String>,
    /// Characters at the start that fuzzy terms must share.
    pub prefix_length: usize,
    /// Most terms that a fuzzy term expands to; 50 unless given (0 is read as 50).
    pub max_expansions: usize,
    /// A value of a wrong type matches nothing instead of failing.
    pub lenient: bool,
    /// What a text without terms matches.
    pub zero_terms_query: ZeroTerms,
}

/// `match_phrase`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchPhraseQuery {
    /// Field path.
    pub field: String,
    /// The text.
    pub text: String,
    /// Moves allowed between the terms.
    pub slop: u32,
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// What a text without terms matches.
    pub zero_terms_query: ZeroTerms,
}

/// How the scores of several fields are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MultiMatchType {
    /// The best field counts, others by the tie breaker.
    #[default]
    BestFields,
    /// All fields add up.
    MostFields,
    /// As best fields, each field matched as a phrase.
    Phrase,
}

/// `multi_match`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MultiMatchQuery {
    /// Fields with boosts; names may hold `*`.
    pub fields: Vec<(String, f32)>,
    /// How the scores of the fields are joined.
    pub kind: MultiMatchType,
    /// Share of the other fields' scores; `None` is 0 for best fields, 1 for most fields.
    pub tie_breaker: Option<f32>,
    /// Text and options, as for one field; `field` is not read.
    pub template: MatchQuery,
    /// Moves allowed between the terms of a phrase.
    pub slop: u32,
}

/// `range`; a bound that is absent is open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RangeQuery {
    /// Field path.
    pub field: String,
    /// Greater than.
    pub gt: Option<Value>,
    /// Greater than or equal.
    pub gte: Option<Value>,
    /// Less than.
    pub lt: Option<Value>,
    /// Less than or equal.
    pub lte: Option<Value>,
    /// Date format instead of the field's, `||` between alternatives.
    pub format: Option<String>,
    /// `+01:00`, `Z`, `UTC`: zone of dates that state none and of date rounding.
    pub time_zone: Option<String>,
}

/// `query_string`.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryStringQuery {
    /// The text in Lucene's syntax.
    pub query: String,
    /// Field for terms that name none; `*` for all that can be searched.
    pub default_field: Option<String>,
    /// Fields with boosts for terms that name none; wins over `default_field`.
    pub fields: Vec<(String, f32)>,
    /// How clauses without an operator are joined.
    pub default_operator: Operator,
    /// Analyzer instead of the fields' own.
    pub analyzer: Option<String>,
    /// Parts of a wildcard term are analysed (lowercased here).
    pub analyze_wildcard: bool,
    /// Whether a term may start with `*` or `?`.
    pub allow_leading_wildcard: bool,
    /// Values of a wrong type match nothing instead of failing.
    pub lenient: bool,
    /// Slop of phrases that state none.
    pub phrase_slop: u32,
    /// Fuzziness of `~` without a number.
    pub fuzziness: Option<String>,
    /// Characters at the start that fuzzy terms must share.
    pub fuzzy_prefix_length: usize,
    /// Most terms that a fuzzy term expands to.
    pub fuzzy_max_expansions: usize,
    /// As in [`MatchQuery`].
    pub minimum_should_match: Option<String>,
    /// How the scores of several fields are joined.
    pub kind: MultiMatchType,
    /// Share of the other fields' scores.
    pub tie_breaker: Option<f32>,
    /// Escapes the whole text, so that no character is an operator.
    pub escape: bool,
    /// Zone of dates in ranges.
    pub time_zone: Option<String>,
}

impl Default for QueryStringQuery {
    fn default() -> Self {
        Self {
            query: String::new(),
            default_field: None,
            fields: Vec::new(),
            default_operator: Operator::Or,
            analyzer: None,
            analyze_wildcard: false,
            allow_leading_wildcard: true,
            lenient: false,
            phrase_slop: 0,
            fuzziness: None,
            fuzzy_prefix_length: 0,
            fuzzy_max_expansions: 50,
            minimum_should_match: None,
            kind: MultiMatchType::BestFields,
            tie_breaker: None,
            escape: false,
            time_zone: None,
        }
    }
}

impl QueryStringQuery {
    /// Lucene's syntax with every option at its default.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }
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

/// `pruning_config`: a token is left out when it is both frequent and of low weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PruningConfig {
    /// A token is frequent when its share of documents is at least this many times the average.
    pub tokens_freq_ratio_threshold: f32,
    /// A weight is low when it is at most this share of the highest query weight.
    pub tokens_weight_threshold: f32,
    /// Scores the left out tokens instead of the kept ones.
    pub only_score_pruned_tokens: bool,
}

impl Default for PruningConfig {
    fn default() -> Self {
        Self {
            tokens_freq_ratio_threshold: 5.0,
            tokens_weight_threshold: 0.4,
            only_score_pruned_tokens: false,
        }
    }
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

/// How far the number of hits is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalHits {
    /// Every hit.
    Exact,
    /// Exactly up to a number, then "at least".
    UpTo(u64),
    /// Not at all.
    Off,
}

/// What a search returns besides matching.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// Hits to return, `from` included.
    pub size: usize,
    /// Hits below this score are dropped, from the total too.
    pub min_score: Option<f32>,
    /// How far hits are counted.
    pub track_total_hits: TotalHits,
    /// Set from another thread to end the search with [`super::QueryError::Cancelled`].
    pub cancel: Option<Arc<AtomicBool>>,
    /// Once `cancel` is set, the hits found so far are returned instead of the error, where they are known one by one.
    pub partial: bool,
    /// Restricts the hits without taking part in the score.
    pub post_filter: Option<Query>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            size: 10,
            min_score: None,
            track_total_hits: TotalHits::UpTo(10_000),
            cancel: None,
            partial: false,
            post_filter: None,
        }
    }
}

/// One hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredDoc {
    /// Where the document is.
    pub addr: tantivy::DocAddress,
    /// Its score.
    pub score: f32,
    /// Sequence number of its last write.
    pub seq_no: SeqNo,
}

/// Whether a number of hits is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalRelation {
    /// Exactly so many.
    Eq,
    /// At least so many.
    Gte,
}

/// The best hits, highest score first, equal scores by sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct TopDocs {
    /// At most `size` hits.
    pub hits: Vec<ScoredDoc>,
    /// Number of hits; 0 with [`TotalRelation::Gte`] when they were not counted.
    pub total: u64,
    /// Whether `total` is exact.
    pub relation: TotalRelation,
    /// Highest score; `None` without a hit.
    pub max_score: Option<f32>,
}
