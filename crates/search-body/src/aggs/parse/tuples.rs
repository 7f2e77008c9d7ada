//! Aggregations over several fields or queries at once: `multi_terms`, `adjacency_matrix`, `top_metrics`.

use std::sync::LazyLock;

use sparrow_aggregations::{
    Adjacency, AggregationKind, Composite, CompositeSource, Group, HitOrder, HitOrderBy, MultiTerms, Order,
    OrderBy, TopHits, ValueSource,
};

use super::buckets::of_terms;
use super::hits::sort_key;
use super::parameter_reader::ParameterReader;
use super::shape::*;
use sparrow_query::dsl::{self, Context};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// Highest number of filters in an `adjacency_matrix`: the lowest limit that Elasticsearch sets on the
/// clauses of a `bool`.
const MOST_FILTERS: usize = 100;
/// Highest `size` of `top_metrics`, in documents (`index.top_metrics_max_size`).
const MOST_METRICS: usize = 10;

pub fn multi_terms_shape() -> Shape {
    object([("terms", list(PART.clone()))]).and(of_terms()).needs(&["terms"])
}

/// A part of the key.
static PART: LazyLock<Shape> = LazyLock::new(|| of_values(typed(), [time_zone()]));

pub fn multi_terms(
    reader: ParameterReader<'_>,
    number: &mut dyn FnMut() -> usize,
) -> Result<AggregationKind, BodyError> {
    let mut multi = MultiTerms {
        key: Composite { sources: Vec::new(), size: 10, after: None },
        min_doc_count: 1,
        order: vec![
            Order { by: OrderBy::Count, ascending: false },
            Order { by: OrderBy::Key, ascending: true },
        ],
        show_error: false,
    };
    for member in reader.members() {
        match (&*member.name, &member.value.json) {
            ("terms", Json::Array(items)) => {
                for item in items {
                    multi.key.sources.push(part(&reader, item, number)?);
                }
            }
            ("size", _) => multi.key.size = reader.whole(member, 1, "size")? as usize,
            ("shard_size", _) => {
                reader.whole(member, 1, "shard_size")?;
            }
            ("min_doc_count", _) => {
                multi.min_doc_count = reader.whole(member, 0, "min_doc_count")? as u64;
            }
            ("shard_min_doc_count", _) => {
                reader.whole(member, 0, "shard_min_doc_count")?;
            }
            ("order", _) => multi.order = reader.order(member)?,
            ("show_term_doc_count_error", _) => multi.show_error = reader.boolean(member)?,
            ("collect_mode", _) => match reader.text(member)?.as_str() {
                "depth_first" | "breadth_first" => {}
                other => {
                    return Err(
                        reader.invalid(member, format!("no [collect_mode] found for value [{other}]"))
                    );
                }
            },
            ("terms", _) => return Err(reader.wrong_type("terms", &member.value)),
            _ => return Err(reader.unknown(member)),
        }
    }
    match multi.key.sources.len() {
        0 => Err(BodyError::Required { field: "terms" }),
        1 => Err(BodyError::illegal(format!(
            "The [terms] parameter in the aggregation [{}] must contain at least 2 fields",
            reader.name
        ))),
        _ => Ok(AggregationKind::MultiTerms(multi)),
    }
}

fn part(
    reader: &ParameterReader<'_>,
    node: &Node,
    number: &mut dyn FnMut() -> usize,
) -> Result<CompositeSource, BodyError> {
    let Some(members) = node.as_object() else { return Err(reader.wrong_type("terms", node)) };
    let reader = ParameterReader { known: PART.names(), ..*reader };
    let mut source = ValueSource::default();
    for member in members {
        if !reader.source(member, &mut source)? {
            return Err(reader.unknown(member));
        }
    }
    reader.need_field(&source)?;
    Ok(CompositeSource {
        name: source.field.clone(),
        source,
        group: Group::Value,
        ascending: true,
        missing_bucket: false,
        missing_first: None,
        id: number(),
    })
}

pub fn adjacency_matrix_shape() -> Shape {
    object([("filters", map(query())), ("separator", text().preset("&"))]).needs(&["filters"])
}

pub fn adjacency_matrix(reader: ParameterReader<'_>, context: Context) -> Result<AggregationKind, BodyError> {
    let mut filters = None;
    let mut separator = "&".to_owned();
    for member in reader.members() {
        match (&*member.name, &member.value.json) {
            ("separator", _) => separator = reader.text(member)?,
            ("filters", Json::Object(members)) => {
                let mut named: Vec<(String, _)> = Vec::with_capacity(members.len());
                for filter in members {
                    reader.check_name(filter)?;
                    named.push((filter.name.to_string(), dsl::parse_query(&filter.value, context)?));
                }
                named.sort_by(|a, b| a.0.cmp(&b.0));
                filters = Some(named);
            }
            ("filters", _) => return Err(reader.wrong_type("filters", &member.value)),
            _ => return Err(reader.unknown(member)),
        }
    }
    let Some(filters) = filters.filter(|filters| !filters.is_empty()) else {
        return Err(BodyError::illegal(format!("[{}] is missing : filters parameter", reader.name)));
    };
    if filters.len() > MOST_FILTERS {
        return Err(BodyError::illegal(format!(
            "Number of filters is too large, must be less than or equal to: [{MOST_FILTERS}] but was [{}]. You can \
             increase this limit by scaling up your java heap or number of CPUs",
            filters.len()
        )));
    }
    Ok(AggregationKind::Adjacency(Adjacency { filters, separator }))
}

pub fn top_metrics_shape() -> Shape {
    let size = ("size", int().preset(1));
    object([("metrics", several(metric_shape())), ("sort", named("Sort")), size]).needs(&["metrics", "sort"])
}

fn metric_shape() -> Shape {
    object([field()]).needs(&["field"])
}

pub fn top_metrics(
    reader: ParameterReader<'_>,
    place: usize,
    number: &mut dyn FnMut() -> usize,
) -> Result<AggregationKind, BodyError> {
    let mut top = TopHits { from: 0, size: 1, sort: Vec::new(), options: place, metrics: Vec::new() };
    for member in reader.members() {
        match (&*member.name, &member.value.json) {
            ("metrics", Json::Array(items)) => {
                for item in items {
                    top.metrics.push(metric(&reader, item)?);
                }
            }
            ("metrics", _) => top.metrics.push(metric(&reader, &member.value)?),
            ("sort", Json::Array(items)) => {
                for item in items {
                    sort_key(&reader, item, &mut top.sort, number)?;
                }
            }
            ("sort", _) => sort_key(&reader, &member.value, &mut top.sort, number)?,
            ("size", _) => {
                top.size = reader.whole(member, 1, "size")? as usize;
                if top.size > MOST_METRICS {
                    return Err(reader.invalid(
                        member,
                        format!(
                            "[top_metrics.size] must not be more than [{MOST_METRICS}] but was [{}]. This limit can be \
                             set by changing the [index.top_metrics_max_size] index level setting.",
                            top.size
                        ),
                    ));
                }
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    if top.metrics.is_empty() {
        return Err(BodyError::Required { field: "metrics" });
    }
    match top.sort.len() {
        0 => return Err(BodyError::Required { field: "sort" }),
        1 => {}
        _ => return Err(BodyError::illegal("[top_metrics] only supports sorting by one field")),
    }
    for field in &top.metrics {
        let source = ValueSource { field: field.clone(), ..ValueSource::default() };
        let by = HitOrderBy::Field(source);
        top.sort.push(HitOrder { by, ascending: true, missing_first: false, id: number() });
    }
    Ok(AggregationKind::TopHits(top))
}

fn metric(reader: &ParameterReader<'_>, node: &Node) -> Result<String, BodyError> {
    let Some(members) = node.as_object() else { return Err(reader.wrong_type("metrics", node)) };
    let mut field = None;
    for member in members {
        match &*member.name {
            "field" => field = Some(reader.text(member)?),
            _ => return Err(reader.unknown_in(&metric_shape(), member)),
        }
    }
    field.ok_or(BodyError::Required { field: "field" })
}
