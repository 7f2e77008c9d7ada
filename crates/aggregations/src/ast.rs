//! What a request asks to be aggregated.

use serde_json::{Map, Value};

use super::rounding::Rounding;
use sparrow_query::Query;

pub use super::ast_order::*;
pub use super::ast_pipeline::*;

/// Buckets and metrics over the documents that a search matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregation {
    /// The user's name.
    pub name: String,
    /// Position in the request, unique over all levels: aggregations are numbered outermost first.
    pub id: usize,
    /// What is computed.
    pub kind: AggregationKind,
    /// What is computed for each bucket.
    pub subs: Vec<Aggregation>,
    /// Comes back as it was sent.
    pub meta: Option<Map<String, Value>>,
}

/// The kinds of aggregations.
#[derive(Debug, Clone, PartialEq)]
pub enum AggregationKind {
    /// One bucket per value.
    Terms(Terms),
    /// One bucket per range of numbers or dates.
    Range(Range),
    /// Numbers in intervals.
    Histogram(Histogram),
    /// Dates in intervals.
    DateHistogram(DateHistogram),
    /// One bucket of what a query matches.
    Filter(Query),
    /// One bucket per query.
    Filters(Filters),
    /// Documents without a value.
    Missing(ValueSource),
    /// All documents, whatever the search matches.
    Global,
    /// Buckets of tuples, in pages.
    Composite(Composite),
    /// One bucket per tuple of values.
    MultiTerms(MultiTerms),
    /// One bucket per query, and one per two queries that match the same documents.
    Adjacency(Adjacency),
    /// Count, sum, smallest, largest and what follows from them.
    Stats(StatsKind, ValueSource),
    /// Number of distinct values.
    Cardinality {
        /// Whose values.
        source: ValueSource,
        /// Up to this number the count is exact.
        precision_threshold: usize,
    },
    /// Values at ranks.
    Percentiles(Percentiles),
    /// Ranks of values.
    PercentileRanks(Percentiles),
    /// Median distance to the median.
    MedianAbsoluteDeviation(ValueSource),
    /// Average in which each value has a weight.
    WeightedAvg {
        /// Whose values.
        value: ValueSource,
        /// The weights.
        weight: ValueSource,
        /// Pattern of the value as text.
        format: Option<String>,
    },
    /// Five numbers that draw a distribution.
    Boxplot(ValueSource),
    /// Lengths and letters of texts.
    StringStats {
        /// Whose values.
        source: ValueSource,
        /// The share of each letter is shown.
        distribution: bool,
    },
    /// The best documents, or of `top_metrics` some values of them.
    TopHits(TopHits),
    /// Computed from the results of others.
    Pipeline(Pipeline),
}

/// A field whose values are aggregated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ValueSource {
    /// Path of the field.
    pub field: String,
    /// Value of documents without one.
    pub missing: Option<Value>,
    /// Pattern of values as text.
    pub format: Option<String>,
    /// Zone of dates as text, and of dates without one; `+01:00` or the like.
    pub time_zone: Option<String>,
    /// Type of the values where the field is not mapped.
    pub value_type: Option<ValueType>,
}

/// Types that `value_type` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// Text.
    String,
    /// Whole numbers.
    Long,
    /// Numbers.
    Double,
    /// Dates.
    Date,
    /// Booleans.
    Boolean,
}

/// The metrics that one pass over numbers gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StatsKind {
    /// `avg`
    Avg,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `sum`
    Sum,
    /// `value_count`
    ValueCount,
    /// `stats`
    Stats,
    /// `extended_stats`, with the width of the bounds in standard deviations.
    Extended(f64),
}

/// `terms`
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Whose values.
    pub source: ValueSource,
    /// Most buckets.
    pub size: usize,
    /// Fewest documents of a bucket.
    pub min_doc_count: u64,
    /// Most documents of a bucket, of `rare_terms`.
    pub max_doc_count: Option<u64>,
    /// Order of the buckets.
    pub order: Vec<Order>,
    /// Which values have a bucket.
    pub include: Option<Selection>,
    /// Which have none.
    pub exclude: Option<Selection>,
    /// Buckets say how far their count may be wrong (which is never).
    pub show_error: bool,
}

/// Values that are included or excluded.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// Texts that a Lucene regular expression matches.
    Regexp(String),
    /// These.
    Values(Vec<String>),
    /// The terms whose hash falls into one of several partitions.
    Partition {
        /// Which, from 0.
        partition: u64,
        /// Number of partitions.
        partitions: u64,
    },
}

/// `range` and `date_range`
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// Whose values.
    pub source: ValueSource,
    /// The ranges, as they were asked for.
    pub ranges: Vec<RangeBucket>,
    /// Buckets are members of an object.
    pub keyed: bool,
    /// `date_range`: unmapped fields count as dates.
    pub dates: bool,
}

/// A range: lower end included, upper end not.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeBucket {
    /// The name of the range in the answer, unless it is made of its ends.
    pub key: Option<String>,
    /// Lower end.
    pub from: Option<Value>,
    /// Upper end.
    pub to: Option<Value>,
}

/// `histogram`
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Whose values.
    pub source: ValueSource,
    /// Width of a bucket.
    pub interval: f64,
    /// Where buckets start.
    pub offset: f64,
    /// Fewest documents of a bucket.
    pub min_doc_count: u64,
    /// Buckets reach at least from here to there.
    pub extended_bounds: Option<(Option<f64>, Option<f64>)>,
    /// Values outside have no bucket.
    pub hard_bounds: Option<(Option<f64>, Option<f64>)>,
    /// Buckets are members of an object.
    pub keyed: bool,
    /// Order of the buckets.
    pub order: Vec<Order>,
}

/// `date_histogram`
#[derive(Debug, Clone, PartialEq)]
pub struct DateHistogram {
    /// Whose values.
    pub source: ValueSource,
    /// Where buckets start.
    pub rounding: Rounding,
    /// Fewest documents of a bucket.
    pub min_doc_count: u64,
    /// Buckets reach at least from here to there: dates as they were written.
    pub extended_bounds: Option<(Option<Value>, Option<Value>)>,
    /// Dates outside have no bucket.
    pub hard_bounds: Option<(Option<Value>, Option<Value>)>,
    /// Buckets are members of an object.
    pub keyed: bool,
    /// Order of the buckets.
    pub order: Vec<Order>,
}

/// `filters`
#[derive(Debug, Clone, PartialEq)]
pub struct Filters {
    /// The queries, with names unless they are anonymous.
    pub filters: Vec<(Option<String>, Query)>,
    /// Name of the bucket of all others, if there is one.
    pub other: Option<String>,
    /// Named buckets are members of an object.
    pub keyed: bool,
}

/// `composite`
#[derive(Debug, Clone, PartialEq)]
pub struct Composite {
    /// Parts of a key.
    pub sources: Vec<CompositeSource>,
    /// Most buckets.
    pub size: usize,
    /// Buckets come after this key, one value per source.
    pub after: Option<Vec<Value>>,
}

/// `multi_terms`
#[derive(Debug, Clone, PartialEq)]
pub struct MultiTerms {
    /// Where the parts of a key come from.
    pub key: Composite,
    /// Fewest documents of a bucket.
    pub min_doc_count: u64,
    /// Order of the buckets.
    pub order: Vec<Order>,
    /// Buckets say how far their count may be wrong (which is never).
    pub show_error: bool,
}

/// `adjacency_matrix`
#[derive(Debug, Clone, PartialEq)]
pub struct Adjacency {
    /// The queries with their names, in the order of the names.
    pub filters: Vec<(String, Query)>,
    /// Stands between two names.
    pub separator: String,
}

impl Adjacency {
    /// The number of the bucket of two queries, or of one with itself.
    pub fn slot(&self, first: usize, second: usize) -> usize {
        first * self.filters.len() + second
    }

    /// The name of a bucket.
    pub fn name(&self, slot: usize) -> String {
        let count = self.filters.len().max(1);
        let name = |place: usize| self.filters.get(place).map_or("", |(name, _)| name.as_str());
        let (first, second) = (slot / count, slot % count);
        match first == second {
            true => name(first).to_owned(),
            false => format!("{}{}{}", name(first), self.separator, name(second)),
        }
    }
}

/// One part of a composite key.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositeSource {
    /// The name of the part within the key.
    pub name: String,
    /// Whose values.
    pub source: ValueSource,
    /// What is made of a value.
    pub group: Group,
    /// Smallest first.
    pub ascending: bool,
    /// Documents without a value have buckets too.
    pub missing_bucket: bool,
    /// Whether those come first; `None` follows the order.
    pub missing_first: Option<bool>,
    /// Number of the source among all aggregations and sources.
    pub id: usize,
}

/// What a value falls into.
#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    /// Itself.
    Value,
    /// An interval of numbers.
    Interval(f64),
    /// An interval of dates.
    Date(Rounding),
}

/// `percentiles` and `percentile_ranks`
#[derive(Debug, Clone, PartialEq)]
pub struct Percentiles {
    /// Whose values.
    pub source: ValueSource,
    /// Percents, or values whose percents are asked for.
    pub points: Vec<f64>,
    /// Values are members of an object.
    pub keyed: bool,
    /// As an HDR histogram answers, with so many digits.
    pub hdr: Option<u8>,
}

/// `top_hits`
#[derive(Debug, Clone, PartialEq)]
pub struct TopHits {
    /// Hits passed over.
    pub from: usize,
    /// Hits returned.
    pub size: usize,
    /// Order; empty is by score.
    pub sort: Vec<HitOrder>,
    /// What a hit shows, in a list of the caller.
    pub options: usize,
    /// `top_metrics`: names of the fields shown, which are the last keys of `sort`.
    pub metrics: Vec<String>,
}

impl TopHits {
    /// Whether hits show their scores.
    pub fn scores_shown(&self) -> bool {
        self.sort.is_empty() || self.sort.iter().any(|key| key.by == HitOrderBy::Score)
    }
}

/// One key of the order of hits.
#[derive(Debug, Clone, PartialEq)]
pub struct HitOrder {
    /// By what.
    pub by: HitOrderBy,
    /// Smallest first.
    pub ascending: bool,
    /// Documents without a value come first.
    pub missing_first: bool,
    /// Number of the key among all aggregations and sources.
    pub id: usize,
}

/// What hits are ordered by.
#[derive(Debug, Clone, PartialEq)]
pub enum HitOrderBy {
    /// The score.
    Score,
    /// The order of writing.
    Doc,
    /// A field's smallest value, or largest when the largest comes first.
    Field(ValueSource),
}

impl Aggregation {
    /// Calls `see` on every query of the tree.
    pub fn queries_mut<'a>(&'a mut self, see: &mut dyn FnMut(&'a mut Query)) {
        match &mut self.kind {
            AggregationKind::Filter(query) => see(query),
            AggregationKind::Filters(filters) => {
                for (_, query) in &mut filters.filters {
                    see(query);
                }
            }
            AggregationKind::Adjacency(adjacency) => {
                for (_, query) in &mut adjacency.filters {
                    see(query);
                }
            }
            _ => {}
        }
        for sub in &mut self.subs {
            sub.queries_mut(see);
        }
    }

    /// Whether scores of documents are needed.
    pub fn needs_scores(&self) -> bool {
        let own = match &self.kind {
            AggregationKind::TopHits(top) => top.scores_shown(),
            _ => false,
        };
        own || self.subs.iter().any(Aggregation::needs_scores)
    }

    /// Whether it makes buckets of which each stands for a key or a range.
    pub fn is_multi_bucket(&self) -> bool {
        matches!(
            self.kind,
            AggregationKind::Terms(_)
                | AggregationKind::Range(_)
                | AggregationKind::Histogram(_)
                | AggregationKind::DateHistogram(_)
                | AggregationKind::Filters(_)
                | AggregationKind::Composite(_)
                | AggregationKind::MultiTerms(_)
                | AggregationKind::Adjacency(_)
        )
    }

    /// Whether it makes one bucket.
    pub fn is_single_bucket(&self) -> bool {
        matches!(
            self.kind,
            AggregationKind::Filter(_) | AggregationKind::Missing(_) | AggregationKind::Global
        )
    }

    /// Its type's name in requests.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            AggregationKind::Terms(terms) if terms.max_doc_count.is_some() => "rare_terms",
            AggregationKind::Terms(_) => "terms",
            AggregationKind::MultiTerms(_) => "multi_terms",
            AggregationKind::Adjacency(_) => "adjacency_matrix",
            AggregationKind::Boxplot(_) => "boxplot",
            AggregationKind::StringStats { .. } => "string_stats",
            AggregationKind::Range(range) if range.dates => "date_range",
            AggregationKind::Range(_) => "range",
            AggregationKind::Histogram(_) => "histogram",
            AggregationKind::DateHistogram(_) => "date_histogram",
            AggregationKind::Filter(_) => "filter",
            AggregationKind::Filters(_) => "filters",
            AggregationKind::Missing(_) => "missing",
            AggregationKind::Global => "global",
            AggregationKind::Composite(_) => "composite",
            AggregationKind::Stats(kind, _) => match kind {
                StatsKind::Avg => "avg",
                StatsKind::Min => "min",
                StatsKind::Max => "max",
                StatsKind::Sum => "sum",
                StatsKind::ValueCount => "value_count",
                StatsKind::Stats => "stats",
                StatsKind::Extended(_) => "extended_stats",
            },
            AggregationKind::Cardinality { .. } => "cardinality",
            AggregationKind::Percentiles(_) => "percentiles",
            AggregationKind::PercentileRanks(_) => "percentile_ranks",
            AggregationKind::MedianAbsoluteDeviation(_) => "median_absolute_deviation",
            AggregationKind::WeightedAvg { .. } => "weighted_avg",
            AggregationKind::TopHits(top) if !top.metrics.is_empty() => "top_metrics",
            AggregationKind::TopHits(_) => "top_hits",
            AggregationKind::Pipeline(pipeline) => pipeline.kind.type_name(),
        }
    }
}
