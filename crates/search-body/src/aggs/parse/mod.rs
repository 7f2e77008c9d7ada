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
mod shape;
mod significant;
mod tuples;
mod widths;

use std::sync::LazyLock;

use serde_json::Value;
use sparrow_aggregations::{Aggregation, AggregationKind};

use self::parameter_reader::ParameterReader;
use self::shape::{Named, Shape};
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

/// Reads the parameters of an aggregation.
type Read = fn(&mut Parser, ParameterReader<'_>) -> Result<AggregationKind, BodyError>;

/// Says what the parameters hold.
type Shows = fn() -> Shape;

/// Reads the parameters of an aggregation for which nothing else of the request matters.
macro_rules! alone {
    ($read:path) => {
        |_, reader| $read(reader)
    };
}

/// The aggregation types that are answered, what reads the parameters of each, and what these hold.
const NAMED: &[(&str, Read, Shows)] = &[
    (
        "adjacency_matrix",
        |parser, reader| tuples::adjacency_matrix(reader, parser.context),
        tuples::adjacency_matrix_shape,
    ),
    ("auto_date_histogram", alone!(widths::auto_dates), widths::auto_dates_shape),
    ("avg", alone!(metrics::stats), metrics::stats_shape),
    ("avg_bucket", alone!(pipeline::pipeline), pipeline::pipeline_shape),
    ("boxplot", alone!(metrics::median_absolute_deviation), metrics::median_absolute_deviation_shape),
    ("bucket_script", alone!(pipeline::bucket_script), pipeline::bucket_script_shape),
    ("bucket_selector", alone!(pipeline::bucket_script), pipeline::bucket_selector_shape),
    ("bucket_sort", alone!(pipeline::bucket_sort), pipeline::bucket_sort_shape),
    ("cardinality", alone!(metrics::cardinality), metrics::cardinality_shape),
    (
        "composite",
        |parser, reader| composite::composite(reader, &mut || parser.number()),
        composite::composite_shape,
    ),
    ("cumulative_sum", alone!(pipeline::pipeline), pipeline::pipeline_shape),
    ("date_histogram", alone!(histograms::date_histogram), histograms::date_histogram_shape),
    ("date_range", alone!(buckets::range), buckets::date_range_shape),
    ("derivative", alone!(pipeline::pipeline), pipeline::derivative_shape),
    ("extended_stats", alone!(metrics::stats), metrics::extended_stats_shape),
    ("extended_stats_bucket", alone!(pipeline::pipeline), pipeline::extended_stats_bucket_shape),
    ("filter", |parser, reader| buckets::filter(reader, parser.context), shape::query),
    ("filters", |parser, reader| buckets::filters(reader, parser.context), buckets::filters_shape),
    ("geo_distance", alone!(buckets::range), buckets::geo_distance_shape),
    ("geohash_grid", alone!(grids::grid), grids::geohash_grid_shape),
    ("geotile_grid", alone!(grids::grid), grids::geotile_grid_shape),
    ("global", alone!(buckets::global), || shape::object([])),
    ("histogram", alone!(histograms::histogram), histograms::histogram_shape),
    ("ip_range", alone!(addresses::ip_range), addresses::ip_range_shape),
    ("max", alone!(metrics::stats), metrics::stats_shape),
    ("max_bucket", alone!(pipeline::pipeline), pipeline::pipeline_shape),
    (
        "median_absolute_deviation",
        alone!(metrics::median_absolute_deviation),
        metrics::median_absolute_deviation_shape,
    ),
    ("min", alone!(metrics::stats), metrics::stats_shape),
    ("min_bucket", alone!(pipeline::pipeline), pipeline::pipeline_shape),
    ("missing", alone!(buckets::missing_values), buckets::missing_shape),
    ("moving_fn", alone!(moving::moving_fn), moving::moving_fn_shape),
    (
        "multi_terms",
        |parser, reader| tuples::multi_terms(reader, &mut || parser.number()),
        tuples::multi_terms_shape,
    ),
    ("nested", alone!(buckets::nested), buckets::nested_shape),
    ("normalize", alone!(pipeline::pipeline), pipeline::normalize_shape),
    ("percentile_ranks", alone!(metrics::percentiles), metrics::percentile_ranks_shape),
    ("percentiles", alone!(metrics::percentiles), metrics::percentiles_shape),
    ("percentiles_bucket", alone!(pipeline::pipeline), pipeline::percentiles_bucket_shape),
    ("range", alone!(buckets::range), buckets::range_shape),
    ("rare_terms", alone!(buckets::rare_terms), buckets::rare_terms_shape),
    ("reverse_nested", alone!(buckets::reverse_nested), buckets::reverse_nested_shape),
    ("sampler", alone!(significant::sampler), significant::sampler_shape),
    ("serial_diff", alone!(pipeline::pipeline), pipeline::serial_diff_shape),
    (
        "significant_terms",
        |parser, reader| significant::significant(reader, parser.context),
        significant::significant_terms_shape,
    ),
    (
        "significant_text",
        |parser, reader| significant::significant(reader, parser.context),
        significant::significant_text_shape,
    ),
    ("stats", alone!(metrics::stats), metrics::stats_shape),
    ("stats_bucket", alone!(pipeline::pipeline), pipeline::pipeline_shape),
    ("string_stats", alone!(metrics::string_stats), metrics::string_stats_shape),
    ("sum", alone!(metrics::stats), metrics::stats_shape),
    ("sum_bucket", alone!(pipeline::pipeline), pipeline::pipeline_shape),
    ("terms", alone!(buckets::terms), buckets::terms_shape),
    ("top_hits", Parser::top_hits, hits::top_hits_shape),
    ("top_metrics", Parser::top_metrics, tuples::top_metrics_shape),
    ("value_count", alone!(metrics::stats), metrics::stats_shape),
    ("variable_width_histogram", alone!(widths::variable_widths), widths::variable_widths_shape),
    ("weighted_avg", alone!(metrics::weighted_avg), metrics::weighted_avg_shape),
];

/// The names of the parameters of each of [`NAMED`].
static KNOWN: LazyLock<Vec<Vec<&str>>> =
    LazyLock::new(|| NAMED.iter().map(|(.., shows)| shows().names().to_vec()).collect());

/// What the section holds, as JSON Schema: an aggregation, by its name in the OpenAPI document.
pub fn schemas() -> [Named; 2] {
    let kinds = shape::object(NAMED.iter().map(|(name, _, shows)| (*name, shows())));
    let all = || shape::named("Aggregations");
    let one = kinds.and([("aggs", all()), ("aggregations", all()), ("meta", shape::open())]);
    let about = "One aggregation: a member whose name says which, and those below it in `aggs`.";
    let named = shape::map(shape::named("Aggregation")).about("Aggregations by names of your own.");
    [("Aggregations", named), ("Aggregation", one.about(about))]
}

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
        let Some(place) = NAMED.iter().position(|(named, ..)| *named == type_name) else {
            if ELSEWHERE.contains(&type_name) {
                return Err(BodyError::parsing(
                    node.at,
                    format!("[{type_name}] aggregation [{name}] is not supported by this server"),
                ));
            }
            let names: Vec<&str> =
                NAMED.iter().map(|(named, ..)| *named).chain(ELSEWHERE.iter().copied()).collect();
            return Err(BodyError::UnknownName {
                what: "aggregation",
                name: type_name.to_owned(),
                suggestions: suggestions(type_name, &names),
                at: node.at,
            });
        };
        let (parser, read, _) = NAMED[place];
        read(self, ParameterReader { parser, name, node, known: &KNOWN[place] })
    }

    fn top_metrics(&mut self, reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
        let metric = tuples::top_metrics(reader, self.hits.len(), &mut || self.number())?;
        self.hits.push(SearchBody::default());
        Ok(metric)
    }

    fn top_hits(&mut self, reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
        let (context, place) = (self.context, self.hits.len());
        let (top, shown) = hits::top_hits(reader, context, place, &mut || self.number())?;
        self.hits.push(shown);
        Ok(AggregationKind::TopHits(top))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sparrow_query::dsl::Context;
    use sparrow_wire::json::{self, Node};

    use super::{BodyError, ELSEWHERE, KNOWN, NAMED, parse};

    /// Whether a member of the body of an aggregation is one that it has, whatever it holds.
    fn is_read(kind: &str, member: &str) -> bool {
        ["1", "\"x\"", "true", "{}", "[]"].iter().any(|value| {
            let body = format!(r#"{{"a": {{"{kind}": {{"{member}": {value}}}}}}}"#);
            let (node, _): (Node, _) = json::read(body.as_bytes()).unwrap();
            match parse(&node, Context::new(10)) {
                Err(BodyError::UnknownField { field, .. }) => field != member,
                Err(BodyError::Parsing { reason, .. }) => {
                    !reason.starts_with("Unknown key") && !reason.ends_with("is not supported by this server")
                }
                _ => true,
            }
        })
    }

    #[test]
    fn what_a_body_is_said_to_hold_is_what_is_read() {
        let all: BTreeSet<&str> = KNOWN.iter().flatten().copied().collect();
        let mut wrong = Vec::new();
        // A filter is a query.
        for ((kind, ..), known) in NAMED.iter().zip(&*KNOWN).filter(|((kind, ..), _)| *kind != "filter") {
            wrong.extend(
                all.iter()
                    .filter(|member| known.contains(member) != is_read(kind, member))
                    .map(|member| format!("{kind}: {member}")),
            );
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_kind_has_one_name() {
        assert!(NAMED.is_sorted_by(|(one, ..), (next, ..)| one < next));
        assert!(ELSEWHERE.iter().all(|name| NAMED.iter().all(|(named, ..)| named != name)));
    }
}
