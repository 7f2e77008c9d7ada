//! Aggregations of the results of others.

use super::ast_order::{MetricPath, Order};

/// Aggregations of results.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// What is computed.
    pub kind: PipelineKind,
    /// Path of the metric that the pipeline reads.
    pub path: MetricPath,
    /// What buckets without a value count as.
    pub gaps: GapPolicy,
    /// Pattern of the value as text.
    pub format: Option<String>,
}

/// What becomes of buckets without documents, or without a number, when the numbers of buckets are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GapPolicy {
    /// They have no number, even if their metric gives one for no documents, such as a sum.
    #[default]
    Skip,
    /// Their number is zero.
    InsertZeros,
    /// They have the number that their metric gives, if any.
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
    /// `extended_stats_bucket`, with the width of the bounds in standard deviations.
    ExtendedStats(f64),
    /// `percentiles_bucket`
    Percentiles {
        /// Which percents.
        percents: Vec<f64>,
        /// Values are members of an object.
        keyed: bool,
    },
    /// `cumulative_sum`
    CumulativeSum,
    /// `derivative`, per so many milliseconds if a unit is given.
    Derivative(Option<f64>),
    /// `serial_diff`: the change since so many buckets before.
    SerialDiff(usize),
    /// `normalize`
    Normalize(Normalization),
    /// `bucket_sort`
    Sort {
        /// Order; empty keeps it.
        order: Vec<Order>,
        /// Buckets passed over.
        from: usize,
        /// Most buckets.
        size: Option<usize>,
    },
}

impl PipelineKind {
    /// Whether it stands beside the aggregation it reads rather than below it.
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
            PipelineKind::Normalize(_) => "normalize",
            PipelineKind::Sort { .. } => "bucket_sort",
        }
    }
}

/// What `normalize` makes of the numbers of all buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalization {
    /// From 0 to 1.
    Rescale01,
    /// From 0 to 100.
    Rescale0100,
    /// Each value as a share of the sum.
    PercentOfSum,
    /// Distance to the average, as a part of the span.
    Mean,
    /// Distance to the average in standard deviations.
    ZScore,
    /// The exponential of each value as a share of the sum of exponentials.
    Softmax,
}

impl Normalization {
    /// By the name of the method.
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
