//! Queries that change the scores of other queries, or score by numeric features of documents.

use serde_json::Value;

use super::Query;

/// A `boosting` query.
#[derive(Debug, Clone, PartialEq)]
pub struct BoostingQuery {
    /// The query that hits have to match.
    pub positive: Box<Query>,
    /// The query whose matches get lower scores.
    pub negative: Box<Query>,
    /// Factor for the scores of hits that match `negative`; not negative.
    pub negative_boost: f32,
}

/// A `function_score` query.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionScoreQuery {
    /// The query that hits have to match.
    pub query: Box<Query>,
    /// The functions; without any, hits keep the query's score.
    pub functions: Vec<ScoreFunction>,
    /// How the results of several functions are combined.
    pub score_mode: ScoreMode,
    /// How the functions' result is combined with the score of the query.
    pub boost_mode: BoostMode,
    /// Upper limit of the functions' combined result.
    pub max_boost: f32,
    /// Lowest score that a hit may have.
    pub min_score: Option<f32>,
}

/// One function of a `function_score`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreFunction {
    /// Query that selects the documents to which the function applies; all if absent.
    pub filter: Option<Query>,
    /// Factor by which the result is multiplied.
    pub weight: f32,
    /// What the function computes.
    pub kind: FunctionKind,
}

/// What a function of a `function_score` computes.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionKind {
    /// The constant 1.
    Weight,
    /// A numeric field of the document, after a factor and a modifier.
    FieldValueFactor {
        /// Path of the numeric field.
        field: String,
        /// Factor by which the field's value is multiplied.
        factor: f32,
        /// Function that is applied to the product of value and factor.
        modifier: Modifier,
        /// Value for documents that have none; without it they are an error.
        missing: Option<f64>,
    },
    /// A pseudo-random number from 0 to 1, the same for equal seeds and field values.
    Random {
        /// Seed of the random numbers.
        seed: u64,
        /// Path of the field; `None` or `_seq_no` for the document's sequence number.
        field: Option<String>,
    },
    /// A function that falls with the distance of a number or date from an origin.
    Decay(Box<DecayFunction>),
}

/// How a `field_value_factor` changes its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Modifier {
    #[default]
    None,
    Log,
    Log1p,
    Log2p,
    Ln,
    Ln1p,
    Ln2p,
    Square,
    Sqrt,
    Reciprocal,
}

/// A function that falls from 1 with the distance from an origin. `origin`, `scale` and `offset` are numbers or, for a date field,
/// dates and durations.
#[derive(Debug, Clone, PartialEq)]
pub struct DecayFunction {
    /// Shape of the curve.
    pub curve: DecayCurve,
    /// Path of the numeric or date field.
    pub field: String,
    /// Value at which the result is 1; by default the current time, for date fields.
    pub origin: Option<Value>,
    /// Distance at which the result is `decay`.
    pub scale: Option<Value>,
    /// Distance from the origin up to which the result stays 1.
    pub offset: Option<Value>,
    /// Result at the distance `scale`, between 0 and 1.
    pub decay: f64,
    /// Which value of a field with several values counts.
    pub multi_value: MultiValue,
}

/// Shape of a decay function's curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecayCurve {
    Gauss,
    Exp,
    Linear,
}

impl DecayCurve {
    /// Name of the curve in requests.
    pub fn name(self) -> &'static str {
        match self {
            DecayCurve::Gauss => "gauss",
            DecayCurve::Exp => "exp",
            DecayCurve::Linear => "linear",
        }
    }
}

/// Which distance counts if a field has several values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MultiValue {
    #[default]
    Min,
    Max,
    Avg,
    Sum,
}

/// How the results of several functions are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScoreMode {
    #[default]
    Multiply,
    Sum,
    Avg,
    First,
    Max,
    Min,
}

/// How the result of the functions is combined with the score of the query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoostMode {
    #[default]
    Multiply,
    Replace,
    Sum,
    Avg,
    Max,
    Min,
}

/// A `rank_feature` query.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFeatureQuery {
    /// Path of a `rank_feature` field, or of a `rank_features` field with a feature after a dot.
    pub field: String,
    /// How a feature's value becomes a score.
    pub function: RankFunction,
}

/// How the value `S` of a feature becomes a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankFunction {
    /// `S / (S + pivot)`; the default pivot is approximately the mean of the feature.
    Saturation { pivot: Option<f32> },
    /// `ln(scaling_factor + S)`.
    Log { scaling_factor: f32 },
    /// `S^exponent / (S^exponent + pivot^exponent)`.
    Sigmoid { pivot: f32, exponent: f32 },
    /// `S`.
    Linear,
}

/// A `distance_feature` query on a date field.
#[derive(Debug, Clone, PartialEq)]
pub struct DistanceFeatureQuery {
    /// Path of a date field.
    pub field: String,
    /// The date from which distances are measured; date math is allowed.
    pub origin: Value,
    /// Duration such as `7d`: the distance at which the score is half of its maximum.
    pub pivot: String,
}
