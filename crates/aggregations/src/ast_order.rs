//! Sort orders of buckets, and paths to the metrics below them.

/// One sort key of buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// What this key sorts buckets by.
    pub by: OrderBy,
    /// Whether the smallest comes first.
    pub ascending: bool,
}

/// What a key sorts buckets by.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderBy {
    /// Number of documents.
    Count,
    /// Key of the bucket.
    Key,
    /// A metric below the bucket.
    Metric(MetricPath),
}

/// Path to a number in the results below a bucket, such as `filter>stats.avg`.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPath {
    /// The path as written in the request.
    pub text: String,
    /// Names of aggregations, outermost first.
    pub names: Vec<String>,
    /// Which of the metric's numbers is meant, such as `avg`, if it has several.
    pub property: Option<String>,
}
