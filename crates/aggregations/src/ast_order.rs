//! What buckets are ordered by, and the way to a number below them.

/// One key of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// By what.
    pub by: OrderBy,
    /// Smallest first.
    pub ascending: bool,
}

/// What buckets are ordered by.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderBy {
    /// Number of documents.
    Count,
    /// The key.
    Key,
    /// A metric below the bucket.
    Metric(MetricPath),
}

/// The way to a number in the results below a bucket: `filter>stats.avg`.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPath {
    /// As it was written.
    pub text: String,
    /// Names of aggregations, outermost first.
    pub names: Vec<String>,
    /// Which number of a metric that has several.
    pub property: Option<String>,
}
