//! Pipeline aggregations, which are computed from the results of others.

use sparrow_query::script::QueryScript;

use super::ast_order::{MetricPath, Order, OrderBy};

/// A pipeline aggregation: computed from the results of another aggregation.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Type of the pipeline aggregation, with its parameters.
    pub kind: PipelineKind,
    /// Path of the metric that the pipeline reads; empty if its type has paths of its own.
    pub path: MetricPath,
    /// How buckets without a value are treated.
    pub gaps: GapPolicy,
    /// Pattern by which the result is formatted as text, such as `0.00`.
    pub format: Option<String>,
}

/// The `gap_policy`: what happens to buckets without documents, or without a number, when a pipeline reads the
/// buckets' numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GapPolicy {
    /// Such buckets are skipped, even if their metric yields a number for no documents, as a sum does.
    #[default]
    Skip,
    /// Such buckets count as zero.
    InsertZeros,
    /// Such buckets keep the number that their metric yields, if any.
    KeepValues,
}

/// Kinds of pipeline aggregations.
#[derive(Debug, Clone, PartialEq)]
pub enum PipelineKind {
    /// `avg_bucket`
    Avg,
    /// `max_bucket`
    Max,
    /// `min_bucket`
    Min,
    /// `sum_bucket`
    Sum,
    /// `stats_bucket`
    Stats,
    /// `extended_stats_bucket`, with the distance of its bounds from the mean, in standard deviations.
    ExtendedStats(f64),
    /// `percentiles_bucket`
    Percentiles {
        /// Percentages for which a percentile is computed, from 0 to 100.
        percents: Vec<f64>,
        /// Whether the response has the percentiles as members of an object rather than as a list.
        keyed: bool,
    },
    /// `cumulative_sum`
    CumulativeSum,
    /// `derivative`: the change from the previous bucket; also per unit, if one is given, in milliseconds.
    Derivative(Option<f64>),
    /// `serial_diff`: the change from the bucket this many places before.
    SerialDiff(usize),
    /// `moving_fn`: a function over the numbers of the buckets in a window.
    Moving(MovingWindow),
    /// `normalize`
    Normalize(Normalization),
    /// `bucket_script`: the number that a script makes of others.
    Script(BucketScript),
    /// `bucket_selector`: the buckets that a script does not want are dropped.
    Selector(BucketScript),
    /// `bucket_sort`
    Sort {
        /// Sort keys of the buckets, the most significant first; if empty, their order is kept.
        order: Vec<Order>,
        /// Number of leading buckets that are dropped.
        from: usize,
        /// Largest number of buckets kept; `None` for all.
        size: Option<usize>,
    },
}

/// A script over numbers of each bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketScript {
    /// The script.
    pub script: QueryScript,
    /// Names of the numbers in `params`, and the paths to them.
    pub paths: Vec<(String, MetricPath)>,
}

impl BucketScript {
    /// Names of the numbers in `params`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|(name, _)| name.as_str())
    }
}

impl Pipeline {
    /// The paths to the numbers that the pipeline reads.
    pub fn paths(&self) -> Vec<&MetricPath> {
        match &self.kind {
            PipelineKind::Script(script) | PipelineKind::Selector(script) => {
                script.paths.iter().map(|(_, path)| path).collect()
            }
            PipelineKind::Sort { order, .. } => order
                .iter()
                .filter_map(|key| match &key.by {
                    OrderBy::Metric(path) => Some(path),
                    OrderBy::Count | OrderBy::Key => None,
                })
                .collect(),
            _ => vec![&self.path],
        }
    }
}

impl PipelineKind {
    /// Whether the pipeline is a sibling of the aggregation that it reads, rather than its sub-aggregation.
    pub fn is_sibling(&self) -> bool {
        matches!(
            self,
            PipelineKind::Avg
                | PipelineKind::Max
                | PipelineKind::Min
                | PipelineKind::Sum
                | PipelineKind::Stats
                | PipelineKind::ExtendedStats(_)
                | PipelineKind::Percentiles { .. }
        )
    }

    /// Name of the aggregation's type in requests.
    pub fn type_name(&self) -> &'static str {
        match self {
            PipelineKind::Avg => "avg_bucket",
            PipelineKind::Max => "max_bucket",
            PipelineKind::Min => "min_bucket",
            PipelineKind::Sum => "sum_bucket",
            PipelineKind::Stats => "stats_bucket",
            PipelineKind::ExtendedStats(_) => "extended_stats_bucket",
            PipelineKind::Percentiles { .. } => "percentiles_bucket",
            PipelineKind::CumulativeSum => "cumulative_sum",
            PipelineKind::Derivative(_) => "derivative",
            PipelineKind::SerialDiff(_) => "serial_diff",
            PipelineKind::Moving(_) => "moving_fn",
            PipelineKind::Normalize(_) => "normalize",
            PipelineKind::Script(_) => "bucket_script",
            PipelineKind::Selector(_) => "bucket_selector",
            PipelineKind::Sort { .. } => "bucket_sort",
        }
    }
}

/// The window of `moving_fn`, and what is made of its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MovingWindow {
    /// Largest number of buckets in the window.
    pub window: usize,
    /// By how many buckets the window is moved; with 0 it ends before the bucket.
    pub shift: i64,
    /// The function over the numbers in the window.
    pub function: MovingFunction,
}

/// The functions that a script of `moving_fn` can call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MovingFunction {
    /// `max`
    Max,
    /// `min`
    Min,
    /// `sum`
    Sum,
    /// `unweightedAvg`
    Average,
    /// `linearWeightedAvg`
    LinearAverage,
    /// `stdDev`, from the average.
    Deviation,
    /// `ewma`, with the weight of each new number.
    ExponentialAverage(f64),
}

/// Method by which `normalize` scales the numbers of all buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalization {
    /// To the range from 0 to 1: the smallest number becomes 0, the largest 1.
    Rescale01,
    /// To the range from 0 to 100: the smallest number becomes 0, the largest 100.
    Rescale0100,
    /// To each number's share of the sum.
    PercentOfSum,
    /// To the distance from the mean, divided by the difference between the largest and the smallest number.
    Mean,
    /// To the distance from the mean, in standard deviations.
    ZScore,
    /// To the exponential of each number as a share of the sum of all exponentials.
    Softmax,
}

impl Normalization {
    /// The method with this name in requests, such as `rescale_0_1`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "rescale_0_1" => Normalization::Rescale01,
            "rescale_0_100" => Normalization::Rescale0100,
            "percent_of_sum" => Normalization::PercentOfSum,
            "mean" => Normalization::Mean,
            "z-score" => Normalization::ZScore,
            "softmax" => Normalization::Softmax,
            _ => return None,
        })
    }
}
