//! Queries that change the scores of others, or score by features of documents.

use serde_json::Value;

use super::Query;

/// `boosting`.
#[derive(Debug, Clone, PartialEq)]
pub struct BoostingQuery {
    /// What matches.
    pub positive: Box<Query>,
    /// What lowers the score.
    pub negative: Box<Query>,
    /// Factor for the scores of hits that match `negative`; not negative.
    pub negative_boost: f32,
}

/// `function_score`.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionScoreQuery {
    /// What matches.
    pub query: Box<Query>,
    /// The functions; without any the score is the query's.
    pub functions: Vec<ScoreFunction>,
    /// How the results of the functions are joined.
    pub score_mode: ScoreMode,
    /// How they are joined with the score of the query.
    pub boost_mode: BoostMode,
    /// Most that the functions give.
    pub max_boost: f32,
    /// Hits below are none.
    pub min_score: Option<f32>,
}

/// One function of a `function_score`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreFunction {
    /// Documents it is for; all if absent.
    pub filter: Option<Query>,
    /// Factor of the result.
    pub weight: f32,
    /// What it computes.
    pub kind: FunctionKind,
}

/// What a function of a `function_score` computes.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionKind {
    /// 1.
    Weight,
    /// A function of a number of the document.
    FieldValueFactor {
        /// Field path.
        field: String,
        /// Factor of the value.
        factor: f32,
        /// Applied after the factor.
        modifier: Modifier,
        /// Value of documents without one; an error if absent.
        missing: Option<f64>,
    },
    /// A number from 0 to 1 that is the same for equal seeds and values of the field.
    Random {
        /// The seed.
        seed: u64,
        /// Field path; `None` or `_seq_no` for the sequence number.
        field: Option<String>,
    },
    /// The nearer a number or date, the higher.
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

/// A decay function. `origin`, `scale` and `offset` are numbers, or dates and spans of time.
#[derive(Debug, Clone, PartialEq)]
pub struct DecayFunction {
    /// The curve.
    pub curve: DecayCurve,
    /// Field path.
    pub field: String,
    /// Where the result is 1; absent it is now, for dates.
    pub origin: Option<Value>,
    /// Distance at which the result is `decay`.
    pub scale: Option<Value>,
    /// Up to this distance the result is 1.
    pub offset: Option<Value>,
    /// Between 0 and 1.
    pub decay: f64,
    /// Which of several values counts.
    pub multi_value: MultiValue,
}

/// Curve of a decay function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecayCurve {
    Gauss,
    Exp,
    Linear,
}

impl DecayCurve {
    /// Name in requests.
    pub fn name(self) -> &'static str {
        match self {
            DecayCurve::Gauss => "gauss",
            DecayCurve::Exp => "exp",
            DecayCurve::Linear => "linear",
        }
    }
}

/// Which of the distances of several values counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MultiValue {
    #[default]
    Min,
    Max,
    Avg,
    Sum,
}

/// How the results of several functions are joined.
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

/// How the result of the functions is joined with the score of the query.
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

/// `rank_feature`.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFeatureQuery {
    /// Path of a `rank_feature` field, or of a `rank_features` field with a feature after a dot.
    pub field: String,
    /// How the feature becomes a score.
    pub function: RankFunction,
}

/// How a feature becomes a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankFunction {
    /// `S / (S + pivot)`; without a pivot it is about the mean of the feature.
    Saturation { pivot: Option<f32> },
    /// `ln(scaling_factor + S)`.
    Log { scaling_factor: f32 },
    /// `S^exponent / (S^exponent + pivot^exponent)`.
    Sigmoid { pivot: f32, exponent: f32 },
    /// `S`.
    Linear,
}

/// `distance_feature` on a date.
#[derive(Debug, Clone, PartialEq)]
pub struct DistanceFeatureQuery {
    /// Path of a date field.
    pub field: String,
    /// A date, date math allowed.
    pub origin: Value,
    /// A span of time such as `7d`: where the score is half.
    pub pivot: String,
}
