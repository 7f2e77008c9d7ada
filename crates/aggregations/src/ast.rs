//! Aggregations of a search request, parsed.

use serde_json::{Map, Value};

use super::cells::Cells;
use super::rounding::Rounding;
use sparrow_query::{GeoArea, Query};
use sparrow_tantivy_index::query::sorted::Distance;
use sparrow_wire::Zone;

pub use super::ast_order::*;
pub use super::ast_pipeline::*;
pub use super::ast_ranges::*;

/// An aggregation: buckets or metrics over the documents that a search matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregation {
    /// Name that the user gave the aggregation, unique among its siblings.
    pub name: String,
    /// Position in the request, unique over all levels: aggregations are numbered outermost first.
    pub id: usize,
    /// Type of the aggregation, with its parameters.
    pub kind: AggregationKind,
    /// Sub-aggregations, computed for each bucket.
    pub subs: Vec<Aggregation>,
    /// The user's `meta` object, returned unchanged in the response.
    pub meta: Option<Map<String, Value>>,
}

/// The kinds of aggregations.
#[derive(Debug, Clone, PartialEq)]
pub enum AggregationKind {
    /// One bucket per value.
    Terms(Terms),
    /// One bucket per range of numbers or dates.
    Range(Range),
    /// `ip_range`: one bucket per range of addresses.
    AddressRanges(AddressRanges),
    /// `histogram`: one bucket per interval of numbers.
    Histogram(Histogram),
    /// `date_histogram`: one bucket per interval of dates.
    DateHistogram(DateHistogram),
    /// `auto_date_histogram`: at most so many buckets of dates, whose interval follows from that.
    AutoDates(AutoDates),
    /// `variable_width_histogram`: at most so many buckets of numbers that are near to each other.
    VariableWidths(VariableWidths),
    /// `geohash_grid` and `geotile_grid`: one bucket per cell of a grid over the earth.
    Grid(Grid),
    /// `significant_terms` and `significant_text`: one bucket per value that is more frequent here than elsewhere.
    Significant(Significant),
    /// `sampler`: one bucket with so many of the best documents.
    Sampler(usize),
    /// `filter`: one bucket with the documents that a query matches.
    Filter(Query),
    /// `filters`: one bucket per query.
    Filters(Filters),
    /// `missing`: one bucket with the documents that have no value.
    Missing(ValueSource),
    /// `global`: one bucket with all documents of the index, whatever the search matches.
    Global,
    /// `nested`: the objects of the nested field at this path that are in the documents.
    Nested(String),
    /// `reverse_nested`: the documents around objects, or the objects of the nested field at this path around them.
    ReverseNested(Option<String>),
    /// `composite`: one bucket per tuple of values, returned in pages.
    Composite(Composite),
    /// `multi_terms`: one bucket per tuple of values, the most frequent first unless ordered otherwise.
    MultiTerms(MultiTerms),
    /// `adjacency_matrix`: one bucket per query, and one per pair of queries, with the documents that match both.
    Adjacency(Adjacency),
    /// Metrics based on the count, sum, minimum and maximum of the values, or derived from them.
    Stats(StatsKind, ValueSource),
    /// `cardinality`: number of distinct values.
    Cardinality {
        /// Field whose distinct values are counted.
        source: ValueSource,
        /// Number of distinct values up to which the count is exact.
        precision_threshold: usize,
    },
    /// `percentiles`: values below which given percentages of all values lie.
    Percentiles(Percentiles),
    /// `percentile_ranks`: percentages of all values that lie below given values.
    PercentileRanks(Percentiles),
    /// `median_absolute_deviation`: median of the values' distances to their median.
    MedianAbsoluteDeviation(ValueSource),
    /// `weighted_avg`: average in which each value has a weight.
    WeightedAvg {
        /// Field whose values are averaged.
        value: ValueSource,
        /// Field that holds the weights.
        weight: ValueSource,
        /// Number pattern by which the average is formatted as text, such as `#,##0.00`.
        format: Option<String>,
    },
    /// `boxplot`: minimum, maximum, quartiles and ends of the whiskers.
    Boxplot(ValueSource),
    /// `string_stats`: lengths of texts, and frequencies of the characters in them.
    StringStats {
        /// Field whose texts are examined.
        source: ValueSource,
        /// Whether the response includes the share of each character.
        distribution: bool,
    },
    /// `top_hits`: the best documents of each bucket; or `top_metrics`: some of their values.
    TopHits(TopHits),
    /// A pipeline aggregation, computed from the results of other aggregations.
    Pipeline(Pipeline),
}

/// A field whose values are aggregated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ValueSource {
    /// Path of the field.
    pub field: String,
    /// Value used for documents that have none.
    pub missing: Option<Value>,
    /// Pattern by which values are formatted as text, such as `yyyy-MM-dd` or `0.00`.
    pub format: Option<String>,
    /// Time zone, such as `+01:00`, in which dates are formatted, and in which dates without a zone are read.
    pub time_zone: Option<String>,
    /// Type that values have in indices where the field is not mapped.
    pub value_type: Option<ValueType>,
    /// From where the points of a `geo_point` field are measured; the values are these distances.
    pub distance: Option<Distance>,
}

/// Types that the `value_type` parameter can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// Text: `string`.
    String,
    /// Integers: `long`.
    Long,
    /// Floating-point numbers: `double`.
    Double,
    /// Dates: `date`.
    Date,
    /// Booleans: `boolean`.
    Boolean,
}

/// Metrics that one pass over the numbers yields.
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
    /// `extended_stats`, with the distance of its bounds from the mean, in standard deviations.
    Extended(f64),
}

/// `terms`, or `rare_terms` if `max_doc_count` is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Field whose values make the buckets.
    pub source: ValueSource,
    /// Largest number of buckets returned.
    pub size: usize,
    /// Smallest number of documents of a bucket that is returned.
    pub min_doc_count: u64,
    /// Largest number of documents of a bucket that is returned; set only for `rare_terms`.
    pub max_doc_count: Option<u64>,
    /// Sort keys of the buckets, the most significant first.
    pub order: Vec<Order>,
    /// Values that get a bucket; `None` for all.
    pub include: Option<Selection>,
    /// Values that get no bucket even if included; `None` for none.
    pub exclude: Option<Selection>,
    /// Whether each bucket states by how much its count may be wrong, which is always 0.
    pub show_error: bool,
}

/// The values that `include` or `exclude` selects.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// Texts that a Lucene regular expression matches.
    Regexp(String),
    /// The listed values.
    Values(Vec<String>),
    /// The terms whose hash falls into one of several partitions.
    Partition {
        /// Number of the selected partition, from 0.
        partition: u64,
        /// Number of partitions.
        partitions: u64,
    },
}

/// `range`, `date_range` and `geo_distance`
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// Field whose values are sorted into the ranges.
    pub source: ValueSource,
    /// The ranges, in the order of the request.
    pub ranges: Vec<RangeBucket>,
    /// Whether the response has buckets as members of an object rather than as a list.
    pub keyed: bool,
    /// Whether this is a `date_range`, for which unmapped fields count as dates.
    pub dates: bool,
}

/// A range of values, including its lower end and excluding its upper end.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeBucket {
    /// Name of the range in the response; `None` to make one from its ends.
    pub key: Option<String>,
    /// Lower end, inclusive; `None` if unbounded.
    pub from: Option<Value>,
    /// Upper end, exclusive; `None` if unbounded.
    pub to: Option<Value>,
}

/// `histogram`
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Field whose values are sorted into intervals.
    pub source: ValueSource,
    /// Width of each bucket, in units of the field's values.
    pub interval: f64,
    /// Amount by which the start of every bucket is shifted from a multiple of `interval`.
    pub offset: f64,
    /// Smallest number of documents of a bucket that is returned.
    pub min_doc_count: u64,
    /// Smallest and largest value that the returned buckets have to cover, even without documents.
    pub extended_bounds: Option<(Option<f64>, Option<f64>)>,
    /// Smallest and largest value that is counted; values outside get no bucket.
    pub hard_bounds: Option<(Option<f64>, Option<f64>)>,
    /// Whether the response has buckets as members of an object rather than as a list.
    pub keyed: bool,
    /// Sort keys of the buckets, the most significant first.
    pub order: Vec<Order>,
}

/// `date_histogram`
#[derive(Debug, Clone, PartialEq)]
pub struct DateHistogram {
    /// Field whose dates are sorted into intervals.
    pub source: ValueSource,
    /// Length, time zone and offset of the intervals, which round a date to the start of its bucket.
    pub rounding: Rounding,
    /// Smallest number of documents of a bucket that is returned.
    pub min_doc_count: u64,
    /// First and last date that the returned buckets have to cover, even without documents, as written in the
    /// request.
    pub extended_bounds: Option<(Option<Value>, Option<Value>)>,
    /// First and last date that is counted, as written in the request; dates outside get no bucket.
    pub hard_bounds: Option<(Option<Value>, Option<Value>)>,
    /// Whether the response has buckets as members of an object rather than as a list.
    pub keyed: bool,
    /// Sort keys of the buckets, the most significant first.
    pub order: Vec<Order>,
}

/// `filters`
#[derive(Debug, Clone, PartialEq)]
pub struct Filters {
    /// Queries, one per bucket, with their names; anonymous queries have none.
    pub filters: Vec<(Option<String>, Query)>,
    /// Name of the bucket for documents that no query matches; `None` for no such bucket.
    pub other: Option<String>,
    /// Whether the response has the named buckets as members of an object rather than as a list.
    pub keyed: bool,
}

/// `composite`
#[derive(Debug, Clone, PartialEq)]
pub struct Composite {
    /// Sources of the values that make up a bucket's key, the most significant first.
    pub sources: Vec<CompositeSource>,
    /// Largest number of buckets returned: the size of a page.
    pub size: usize,
    /// Key of the last bucket of the previous page, one value per source; only later buckets are returned.
    pub after: Option<Vec<Value>>,
}

/// `multi_terms`
#[derive(Debug, Clone, PartialEq)]
pub struct MultiTerms {
    /// Sources of the values that make up a bucket's key, and the largest number of buckets returned.
    pub key: Composite,
    /// Smallest number of documents of a bucket that is returned.
    pub min_doc_count: u64,
    /// Sort keys of the buckets, the most significant first.
    pub order: Vec<Order>,
    /// Whether each bucket states by how much its count may be wrong, which is always 0.
    pub show_error: bool,
}

/// `adjacency_matrix`
#[derive(Debug, Clone, PartialEq)]
pub struct Adjacency {
    /// The queries with their names, in the order of the names.
    pub filters: Vec<(String, Query)>,
    /// Separator between the two names in the key of an intersection's bucket.
    pub separator: String,
}

impl Adjacency {
    /// Number of the bucket for the intersection of two queries, given by index; for the query itself if they are
    /// equal.
    pub fn slot(&self, first: usize, second: usize) -> usize {
        first * self.filters.len() + second
    }

    /// Key of the bucket with this number: a query's name, or two names with the separator between them.
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
    /// Field whose values make this part of the key.
    pub source: ValueSource,
    /// How a value is grouped before it becomes part of the key.
    pub group: Group,
    /// Whether buckets are in ascending order of this part.
    pub ascending: bool,
    /// Whether documents without a value get buckets too, with null as this part of the key.
    pub missing_bucket: bool,
    /// Whether the buckets of documents without a value come first; `None` to sort null below all values.
    pub missing_first: Option<bool>,
    /// Id of the source, unique among all aggregations and sources of the request.
    pub id: usize,
}

/// How a value is grouped for a composite key.
#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    /// Not at all: each distinct value is a group.
    Value,
    /// By intervals of numbers with this width.
    Interval(f64),
    /// By intervals of dates.
    Date(Rounding),
    /// By the cells of a grid over the earth, of those only that meet an area.
    Cells(Cells, Option<GeoArea>),
}

/// `percentiles` and `percentile_ranks`
#[derive(Debug, Clone, PartialEq)]
pub struct Percentiles {
    /// Field whose values are examined.
    pub source: ValueSource,
    /// Percentages from 0 to 100 for `percentiles`; values for `percentile_ranks`.
    pub points: Vec<f64>,
    /// Whether the response has the results as members of an object rather than as a list.
    pub keyed: bool,
    /// Number of significant digits, if results are to be those of an HDR histogram.
    pub hdr: Option<u8>,
}

/// `top_hits` or `top_metrics`
#[derive(Debug, Clone, PartialEq)]
pub struct TopHits {
    /// Number of leading hits that are skipped.
    pub from: usize,
    /// Largest number of hits returned.
    pub size: usize,
    /// Sort keys of the hits, the most significant first; if empty, hits are sorted by descending score.
    pub sort: Vec<HitOrder>,
    /// Index of the options for what each hit shows, in a list kept by the caller.
    pub options: usize,
    /// Names of the fields shown by `top_metrics`, which are the last keys of `sort`; empty for `top_hits`.
    pub metrics: Vec<String>,
}

impl TopHits {
    /// Whether hits show their scores: sorted by score, at least among other keys.
    pub fn scores_shown(&self) -> bool {
        self.sort.is_empty() || self.sort.iter().any(|key| key.by == HitOrderBy::Score)
    }
}

/// One sort key of hits.
#[derive(Debug, Clone, PartialEq)]
pub struct HitOrder {
    /// What this key sorts hits by.
    pub by: HitOrderBy,
    /// Whether the smallest value comes first.
    pub ascending: bool,
    /// Whether documents without a value come first.
    pub missing_first: bool,
    /// Id of the sort key, unique among all aggregations and sources of the request.
    pub id: usize,
}

/// What hits are ordered by.
#[derive(Debug, Clone, PartialEq)]
pub enum HitOrderBy {
    /// The score of the hit.
    Score,
    /// The order in which documents were written.
    Doc,
    /// Values of a field: of several, the smallest counts in ascending order, and the largest in descending order.
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
            AggregationKind::Significant(asked) => asked.background.iter_mut().for_each(&mut *see),
            _ => {}
        }
        for sub in &mut self.subs {
            sub.queries_mut(see);
        }
    }

    /// Whether this aggregation or one below it needs the scores of documents.
    pub fn needs_scores(&self) -> bool {
        let own = match &self.kind {
            AggregationKind::TopHits(top) => top.scores_shown(),
            AggregationKind::Sampler(_) => true,
            _ => false,
        };
        own || self.subs.iter().any(Aggregation::needs_scores)
    }

    /// Whether this aggregation or one below it compares documents with those of a background.
    pub fn has_background(&self) -> bool {
        matches!(self.kind, AggregationKind::Significant(_))
            || self.subs.iter().any(Aggregation::has_background)
    }

    /// Whether the aggregation makes any number of buckets, each with a key or a range.
    pub fn is_multi_bucket(&self) -> bool {
        matches!(
            self.kind,
            AggregationKind::Terms(_)
                | AggregationKind::Range(_)
                | AggregationKind::AddressRanges(_)
                | AggregationKind::Histogram(_)
                | AggregationKind::DateHistogram(_)
                | AggregationKind::Filters(_)
                | AggregationKind::Composite(_)
                | AggregationKind::MultiTerms(_)
                | AggregationKind::Adjacency(_)
                | AggregationKind::AutoDates(_)
                | AggregationKind::VariableWidths(_)
                | AggregationKind::Grid(_)
                | AggregationKind::Significant(_)
        )
    }

    /// Whether the aggregation makes exactly one bucket.
    pub fn is_single_bucket(&self) -> bool {
        matches!(
            self.kind,
            AggregationKind::Filter(_)
                | AggregationKind::Missing(_)
                | AggregationKind::Global
                | AggregationKind::Nested(_)
                | AggregationKind::ReverseNested(_)
                | AggregationKind::Sampler(_)
        )
    }

    /// Name of the aggregation's type in requests, such as `date_histogram`.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            AggregationKind::Terms(terms) if terms.max_doc_count.is_some() => "rare_terms",
            AggregationKind::Terms(_) => "terms",
            AggregationKind::MultiTerms(_) => "multi_terms",
            AggregationKind::Adjacency(_) => "adjacency_matrix",
            AggregationKind::Boxplot(_) => "boxplot",
            AggregationKind::StringStats { .. } => "string_stats",
            AggregationKind::Range(range) if range.dates => "date_range",
            AggregationKind::Range(Range { source: ValueSource { distance: Some(_), .. }, .. }) => {
                "geo_distance"
            }
            AggregationKind::Range(_) => "range",
            AggregationKind::AddressRanges(_) => "ip_range",
            AggregationKind::Histogram(_) => "histogram",
            AggregationKind::DateHistogram(_) => "date_histogram",
            AggregationKind::AutoDates(_) => "auto_date_histogram",
            AggregationKind::VariableWidths(_) => "variable_width_histogram",
            AggregationKind::Grid(Grid { cells: Cells::Geohash(_), .. }) => "geohash_grid",
            AggregationKind::Grid(_) => "geotile_grid",
            AggregationKind::Significant(Significant { text: Some(_), .. }) => "significant_text",
            AggregationKind::Significant(_) => "significant_terms",
            AggregationKind::Sampler(_) => "sampler",
            AggregationKind::Filter(_) => "filter",
            AggregationKind::Filters(_) => "filters",
            AggregationKind::Missing(_) => "missing",
            AggregationKind::Global => "global",
            AggregationKind::Nested(_) => "nested",
            AggregationKind::ReverseNested(_) => "reverse_nested",
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

/// `geohash_grid` and `geotile_grid`
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Field whose points are sorted into the cells.
    pub source: ValueSource,
    /// The cells.
    pub cells: Cells,
    /// The box that a cell has to share more than its edge with; `None` for the whole earth.
    pub within: Option<GeoArea>,
    /// Largest number of buckets returned.
    pub size: usize,
}

/// `auto_date_histogram`
#[derive(Debug, Clone, PartialEq)]
pub struct AutoDates {
    /// Field whose dates are sorted into intervals.
    pub source: ValueSource,
    /// Largest number of buckets.
    pub buckets: usize,
    /// Number of the shortest unit that an interval may have, from 0 for seconds to 5 for years.
    pub least: usize,
    /// Time zone in whose local time intervals start.
    pub zone: Zone,
}

/// `variable_width_histogram`
#[derive(Debug, Clone, PartialEq)]
pub struct VariableWidths {
    /// Field whose values are grouped.
    pub source: ValueSource,
    /// Largest number of buckets.
    pub buckets: usize,
}

/// `significant_terms`, or `significant_text` if `text` is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Significant {
    /// Field whose values make the buckets.
    pub source: ValueSource,
    /// Largest number of buckets returned.
    pub size: usize,
    /// Smallest number of documents of a bucket that is returned.
    pub min_doc_count: u64,
    /// Values that get a bucket; `None` for all.
    pub include: Option<Selection>,
    /// Values that get no bucket even if included; `None` for none.
    pub exclude: Option<Selection>,
    /// How significant a value is.
    pub heuristic: Heuristic,
    /// The documents of the background; `None` for all of the index.
    pub background: Option<Query>,
    /// Where words are read from.
    pub text: Option<SignificantText>,
}

/// What only `significant_text` has.
#[derive(Debug, Clone, PartialEq)]
pub struct SignificantText {
    /// Fields of the source whose texts are analyzed; empty for that of the aggregation.
    pub sources: Vec<String>,
    /// Whether words in a sequence that an earlier document had are left out.
    pub distinct: bool,
}

/// How significant a value is, as Elasticsearch computes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Heuristic {
    /// By how much the share in the bucket is above that in the background, times how many times as large it is.
    Jlh,
    /// What the value and the bucket tell about each other.
    MutualInformation { negatives: bool, superset: bool },
    /// How unlikely the counts are, were the value independent of the bucket.
    ChiSquare { negatives: bool, superset: bool },
    /// Google's normalized distance, turned round.
    Gnd { superset: bool },
    /// The part of the background's documents with the value that is in the bucket.
    Percentage,
}
