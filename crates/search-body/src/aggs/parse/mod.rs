//! Parses the `aggs` section of a search into a tree.

mod addresses;
mod buckets;
mod composite;
mod grids;
mod histograms;
mod hits;
mod metrics;
mod moving;
mod parameter_reader;
mod pipeline;
mod significant;
mod tuples;
mod widths;

use serde_json::Value;
use sparrow_aggregations::{Aggregation, AggregationKind};

use self::parameter_reader::ParameterReader;
use crate::body::SearchBody;
use sparrow_query::dsl::{Context, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Member, Node};
use sparrow_wire::suggest::suggestions;

/// Deepest nesting of aggregations, in levels.
const MOST_LEVELS: usize = 30;
/// Highest number of aggregations in a request.
const MOST_AGGREGATIONS: usize = 2_000;
/// Most bytes of the `meta` of an aggregation, as JSON: each of its results repeats it.
const MOST_META: usize = 10_000;

/// Aggregation types that this server supports.
const TYPES: &[&str] = &[
    "adjacency_matrix",
    "auto_date_histogram",
    "avg",
    "avg_bucket",
    "boxplot",
    "bucket_script",
    "bucket_selector",
    "bucket_sort",
    "cardinality",
    "composite",
    "cumulative_sum",
    "date_histogram",
    "date_range",
    "derivative",
    "extended_stats",
    "extended_stats_bucket",
    "filter",
    "filters",
    "geo_distance",
    "geohash_grid",
    "geotile_grid",
    "global",
    "histogram",
    "ip_range",
    "max",
    "max_bucket",
    "median_absolute_deviation",
    "min",
    "min_bucket",
    "missing",
    "moving_fn",
    "multi_terms",
    "nested",
    "normalize",
    "percentile_ranks",
    "percentiles",
    "percentiles_bucket",
    "range",
    "rare_terms",
    "serial_diff",
    "reverse_nested",
    "sampler",
    "significant_terms",
    "significant_text",
    "stats",
    "stats_bucket",
    "string_stats",
    "sum",
    "sum_bucket",
    "terms",
    "top_hits",
    "top_metrics",
    "value_count",
    "variable_width_histogram",
    "weighted_avg",
];

/// Aggregation types of Elasticsearch that this server does not support.
const ELSEWHERE: &[&str] = &[
    "bucket_correlation",
    "bucket_count_ks_test",
    "categorize_text",
    "change_point",
    "children",
    "cumulative_cardinality",
    "diversified_sampler",
    "frequent_item_sets",
    "geo_bounds",
    "geo_centroid",
    "geo_line",
    "geohex_grid",
    "inference",
    "ip_prefix",
    "matrix_stats",
    "moving_avg",
    "moving_percentiles",
    "parent",
    "random_sampler",
    "rate",
    "scripted_metric",
    "t_test",
    "time_series",
];

/// The aggregations of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Aggregations {
    /// Top-level aggregations, each with its sub-aggregations.
    pub tree: Vec<Aggregation>,
    /// What the hits of each `top_hits` show, in the form of a search body.
    pub hits: Vec<SearchBody>,
}

/// Reads the `aggs` section of a search body.
///
/// # Errors
/// When it is malformed, or asks for an aggregation or option that this server does not support.
pub fn parse(node: &Node, context: Context) -> Result<Aggregations, BodyError> {
    let mut parser = Parser { context, numbers: 0, count: 0, hits: Vec::new() };
    let tree = parser.list(node, 0)?;
    check_places(&tree, None)?;
    Ok(Aggregations { tree, hits: parser.hits })
}

struct Parser {
    context: Context,
    /// How many ids have been handed out to aggregations, key parts and sort orders; also the next id.
    numbers: usize,
    count: usize,
    hits: Vec<SearchBody>,
}

impl Parser {
    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers - 1
    }

    fn list(&mut self, node: &Node, level: usize) -> Result<Vec<Aggregation>, BodyError> {
        let Some(members) = node.as_object() else {
            return Err(BodyError::parsing(
                node.at,
                format!(
                    "Unexpected token {} in [aggs]: aggregations definitions must start with the name of the \
                     aggregation.",
                    node.token()
                ),
            ));
        };
        if level >= MOST_LEVELS {
            return Err(BodyError::illegal(format!(
                "aggregations are nested deeper than [{MOST_LEVELS}] levels"
            )));
        }
        let mut all: Vec<Aggregation> = Vec::with_capacity(members.len());
        for member in members {
            self.count += 1;
            if self.count > MOST_AGGREGATIONS {
                return Err(BodyError::illegal(format!("more than [{MOST_AGGREGATIONS}] aggregations")));
            }
            let aggregation = self.aggregation(member, level)?;
            if all.iter().any(|other| other.name == aggregation.name) {
                return Err(BodyError::illegal(format!(
                    "Two sibling aggregations cannot have the same name: [{}]",
                    aggregation.name
                )));
            }
            all.push(aggregation);
        }
        Ok(all)
    }

    fn aggregation(&mut self, member: &Member, level: usize) -> Result<Aggregation, BodyError> {
        let name = &*member.name;
        if name.is_empty() || name.contains(['[', ']', '>']) {
            return Err(BodyError::parsing(
                member.at,
                format!(
                    "Invalid aggregation name [{name}]. Aggregation names can contain any character except '[', ']', \
                     and '>'"
                ),
            ));
        }
        value::check_length("the name of an aggregation", name, sparrow_wire::MOST_REPEATED)?;
        let Some(parts) = member.value.as_object() else {
            return Err(BodyError::parsing(
                member.value.at,
                format!(
                    "Aggregation definition for [{name} starts with a [{}], expected a [START_OBJECT].",
                    member.value.token()
                ),
            ));
        };
        let id = self.number();
        let mut meta = None;
        let mut subs: Option<Vec<Aggregation>> = None;
        let mut kind: Option<(&str, AggregationKind)> = None;
        for part in parts {
            let (key, node) = (&*part.name, &part.value);
            if node.as_object().is_none() {
                return Err(BodyError::parsing(
                    node.at,
                    format!(
                        "Expected [START_OBJECT] under [{key}], but got a [{}] in [{name}]",
                        node.token()
                    ),
                ));
            }
            match key {
                "meta" => {
                    let value = node.to_value();
                    let bytes = value.to_string().len();
                    if bytes > MOST_META {
                        return Err(BodyError::illegal(format!(
                            "[meta] of [{name}] has [{bytes}] bytes, at most [{MOST_META}] are possible on this server"
                        )));
                    }
                    meta = match value {
                        Value::Object(object) => Some(object),
                        _ => None,
                    };
                }
                "aggs" | "aggregations" => {
                    if subs.is_some() {
                        return Err(BodyError::parsing(
                            node.at,
                            format!("Found two sub aggregation definitions under [{name}]"),
                        ));
                    }
                    subs = Some(self.list(node, level + 1)?);
                }
                _ => {
                    if let Some((first, _)) = kind {
                        return Err(BodyError::parsing(
                            node.at,
                            format!(
                                "Found two aggregation type definitions in [{name}]: [{first}] and [{key}]"
                            ),
                        ));
                    }
                    kind = Some((key, self.kind(name, key, node)?));
                }
            }
        }
        let Some((type_name, kind)) = kind else {
            return Err(BodyError::parsing(
                member.value.end,
                format!("Missing definition for aggregation [{name}]"),
            ));
        };
        let subs = subs.unwrap_or_default();
        let aggregation = Aggregation { name: name.to_owned(), id, kind, subs, meta };
        if !aggregation.subs.is_empty() && !aggregation.is_multi_bucket() && !aggregation.is_single_bucket() {
            let what = match &aggregation.kind {
                AggregationKind::Pipeline(_) => {
                    format!("Aggregation [{name}] cannot define sub-aggregations")
                }
                _ => format!("Aggregator [{name}] of type [{type_name}] cannot accept sub-aggregations"),
            };
            return Err(match &aggregation.kind {
                AggregationKind::Pipeline(_) => BodyError::parsing(member.at, what),
                _ => BodyError::AggregationInitialization { reason: what },
            });
        }
        Ok(aggregation)
    }

    fn kind(&mut self, name: &str, type_name: &str, node: &Node) -> Result<AggregationKind, BodyError> {
        let Some(parser) = TYPES.iter().find(|parser| **parser == type_name) else {
            if ELSEWHERE.contains(&type_name) {
                return Err(BodyError::parsing(
                    node.at,
                    format!("[{type_name}] aggregation [{name}] is not supported by this server"),
                ));
            }
            let names: Vec<&'static str> = TYPES.iter().chain(ELSEWHERE).copied().collect();
            return Err(BodyError::UnknownName {
                what: "aggregation",
                name: type_name.to_owned(),
                suggestions: suggestions(type_name, &names),
                at: node.at,
            });
        };
        let reader = ParameterReader { parser, name, node };
        match *parser {
            "terms" | "rare_terms" => buckets::terms(reader),
            "multi_terms" => tuples::multi_terms(reader, &mut || self.number()),
            "adjacency_matrix" => tuples::adjacency_matrix(reader, self.context),
            "range" | "date_range" | "geo_distance" => buckets::range(reader),
            "ip_range" => addresses::ip_range(reader),
            "moving_fn" => moving::moving_fn(reader),
            "histogram" => histograms::histogram(reader),
            "date_histogram" => histograms::date_histogram(reader),
            "auto_date_histogram" => widths::auto_dates(reader),
            "variable_width_histogram" => widths::variable_widths(reader),
            "geohash_grid" | "geotile_grid" => grids::grid(reader),
            "significant_terms" | "significant_text" => significant::significant(reader, self.context),
            "sampler" => significant::sampler(reader),
            "filter" => buckets::filter(reader, self.context),
            "filters" => buckets::filters(reader, self.context),
            "missing" => buckets::missing(reader),
            "global" => buckets::global(reader),
            "nested" => buckets::nested(reader),
            "reverse_nested" => buckets::reverse_nested(reader),
            "composite" => composite::composite(reader, &mut || self.number()),
            "avg" | "min" | "max" | "sum" | "stats" | "extended_stats" | "value_count" => {
                metrics::stats(reader)
            }
            "cardinality" => metrics::cardinality(reader),
            "percentiles" | "percentile_ranks" => metrics::percentiles(reader),
            "string_stats" => metrics::string_stats(reader),
            "median_absolute_deviation" | "boxplot" => metrics::median_absolute_deviation(reader),
            "weighted_avg" => metrics::weighted_avg(reader),
            "top_metrics" => {
                let metric = tuples::top_metrics(reader, self.hits.len(), &mut || self.numbers_next())?;
                self.hits.push(SearchBody::default());
                Ok(metric)
            }
            "top_hits" => {
                let (context, place) = (self.context, self.hits.len());
                let (top, shown) = hits::top_hits(reader, context, place, &mut || self.numbers_next())?;
                self.hits.push(shown);
                Ok(AggregationKind::TopHits(top))
            }
            _ => pipeline::pipeline(reader),
        }
    }

    fn numbers_next(&mut self) -> usize {
        self.number()
    }
}

/// Checks rules that depend on an aggregation's parent and siblings.
fn check_places(list: &[Aggregation], parent: Option<&Aggregation>) -> Result<(), BodyError> {
    for aggregation in list {
        if let (AggregationKind::Global, Some(parent)) = (&aggregation.kind, parent) {
            return Err(BodyError::AggregationExecution {
                reason: format!(
                    "Aggregation [{}] cannot have a global sub-aggregation [{}]. Global aggregations can only be \
                     defined as top level aggregations",
                    parent.name, aggregation.name
                ),
            });
        }
        // A sample is drawn before documents are collected, when it is not known yet which bucket each of them will be in.
        if let (AggregationKind::Sampler(_), Some(parent)) = (&aggregation.kind, parent) {
            return Err(BodyError::illegal(format!(
                "[sampler] aggregation [{}] inside of [{}] is not supported by this server: it is possible at the top level only",
                aggregation.name, parent.name
            )));
        }
        if let (AggregationKind::Composite(_), Some(parent)) = (&aggregation.kind, parent)
            && !matches!(parent.kind, AggregationKind::Filter(_) | AggregationKind::Nested(_))
        {
            return Err(BodyError::illegal(format!(
                "[composite] aggregation cannot be used with a parent aggregation of type: [{}]",
                parent.type_name()
            )));
        }
        pipeline::check(aggregation, list, parent)?;
        sparrow_aggregations::pipeline_order(&aggregation.subs).map_err(|name| {
            BodyError::illegal(format!("Cyclical dependency found with pipeline aggregator [{name}]"))
        })?;
        check_places(&aggregation.subs, Some(aggregation))?;
    }
    Ok(())
}
