//! Parsers of pipeline aggregations, which work on the results of others.

use sparrow_aggregations::{
    Aggregation, AggregationKind, BucketScript, GapPolicy, MetricPath, Normalization, Order, OrderBy,
    Pipeline, PipelineKind,
};

use super::parameter_reader::{MOST_PATHS, ParameterReader, metric_path};
use super::shape::*;
use sparrow_query::dsl::value;
use sparrow_query::script::{QueryScript, ScriptUse};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

/// What the bodies of pipeline aggregations hold that read one number of each bucket.
pub fn pipeline_shape() -> Shape {
    object([("buckets_path", several(text())), gap_policy_shape(), format()]).needs(&["buckets_path"])
}

fn gap_policy_shape() -> Named {
    ("gap_policy", one(&["skip", "insert_zeros", "keep_values"]).preset("skip"))
}

pub fn derivative_shape() -> Shape {
    pipeline_shape().and([("unit", text())])
}

pub fn extended_stats_bucket_shape() -> Shape {
    pipeline_shape().and([("sigma", num().preset(2))])
}

pub fn normalize_shape() -> Shape {
    pipeline_shape().and([("method", text())]).needs(&["buckets_path", "method"])
}

pub fn percentiles_bucket_shape() -> Shape {
    pipeline_shape().and([("percents", list(num())), keyed(true)])
}

pub fn serial_diff_shape() -> Shape {
    pipeline_shape().and([("lag", int().preset(1))])
}

pub fn pipeline(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let (mut path, mut gaps, mut format, mut unit) = (None, GapPolicy::Skip, None, None);
    let (mut percents, mut keyed, mut sigma) = (vec![1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0], true, 2.0);
    let (mut lag, mut method) = (1, None);
    for member in reader.members() {
        match &*member.name {
            "buckets_path" => path = Some(single_path(&reader, member)?),
            "gap_policy" => gaps = gap_policy(&reader, member)?,
            "format" => format = Some(reader.format(member)?),
            "percents" if reader.parser == "percentiles_bucket" => {
                percents = reader.floats(member)?;
                if percents.is_empty() || percents.iter().any(|percent| !(0.0..=100.0).contains(percent)) {
                    return Err(reader.invalid(
                        member,
                        format!(
                            "percents must only contain non-null doubles from 0.0-100.0 inclusive for aggregation [{}]",
                            reader.name
                        ),
                    ));
                }
            }
            "keyed" if reader.parser == "percentiles_bucket" => keyed = reader.boolean(member)?,
            "sigma" if reader.parser == "extended_stats_bucket" => {
                sigma = reader.float(member)?;
                if sigma < 0.0 {
                    return Err(reader.invalid(
                        member,
                        format!("sigma must be a non-negative double for aggregation [{}]", reader.name),
                    ));
                }
            }
            "lag" if reader.parser == "serial_diff" => {
                lag = reader.whole(member, i64::MIN, "lag")?;
                if lag <= 0 {
                    return Err(reader.invalid(
                        member,
                        format!(
                            "Lag must be a positive, non-zero integer. Value supplied was {lag} in [{}].",
                            reader.name
                        ),
                    ));
                }
            }
            "method" if reader.parser == "normalize" => {
                let name = reader.text(member)?;
                method = Some(
                    Normalization::named(&name)
                        .ok_or_else(|| reader.invalid(member, format!("invalid method [{name}]")))?,
                );
            }
            "unit" if reader.parser == "derivative" => {
                let text = reader.text(member)?;
                unit = Some(match text.as_str() {
                    "second" | "1s" | "s" => 1e3,
                    "minute" | "1m" | "m" => 6e4,
                    "hour" | "1h" | "h" => 3.6e6,
                    "day" | "1d" | "d" => 8.64e7,
                    "week" | "1w" | "w" => 6.048e8,
                    "month" | "1M" | "M" => 2.629_746e9,
                    "quarter" | "1q" | "q" => 7.889_238e9,
                    "year" | "1y" | "y" => 3.155_695_2e10,
                    _ => return Err(reader.invalid(member, format!("unknown unit [{text}]"))),
                });
            }
            _ => {
                return Err(reader.unknown(member));
            }
        }
    }
    let Some(path) = path else {
        return Err(BodyError::parsing(
            reader.node.at,
            format!("Missing required field [buckets_path] for aggregation [{}]", reader.name),
        ));
    };
    let kind = match reader.parser {
        "avg_bucket" => PipelineKind::Avg,
        "max_bucket" => PipelineKind::Max,
        "min_bucket" => PipelineKind::Min,
        "sum_bucket" => PipelineKind::Sum,
        "stats_bucket" => PipelineKind::Stats,
        "extended_stats_bucket" => PipelineKind::ExtendedStats(sigma),
        "percentiles_bucket" => PipelineKind::Percentiles { percents, keyed },
        "serial_diff" => PipelineKind::SerialDiff(lag as usize),
        "normalize" => PipelineKind::Normalize(method.ok_or(BodyError::Required { field: "method" })?),
        "cumulative_sum" => PipelineKind::CumulativeSum,
        _ => PipelineKind::Derivative(unit),
    };
    Ok(AggregationKind::Pipeline(Pipeline { kind, path: metric_path(&path), gaps, format }))
}

/// Reads a `buckets_path` to one number.
pub(super) fn single_path(reader: &ParameterReader<'_>, member: &Member) -> Result<String, BodyError> {
    match &member.value.json {
        Json::String(text) => Ok(text.to_string()),
        Json::Array(items) => match &items[..] {
            [Node { json: Json::String(text), .. }] => Ok(text.to_string()),
            _ => Err(reader
                .invalid(member, format!("must contain a single entry for aggregation [{}]", reader.name))),
        },
        _ => Err(reader.wrong_type("buckets_path", &member.value)),
    }
}

pub(super) fn gap_policy(reader: &ParameterReader<'_>, member: &Member) -> Result<GapPolicy, BodyError> {
    match reader.text(member)?.as_str() {
        "skip" => Ok(GapPolicy::Skip),
        "insert_zeros" => Ok(GapPolicy::InsertZeros),
        "keep_values" => Ok(GapPolicy::KeepValues),
        other => Err(reader.invalid(
            member,
            format!("Invalid gap policy: [{other}], accepted values: [insert_zeros, skip, keep_values]"),
        )),
    }
}

pub fn bucket_sort_shape() -> Shape {
    object([("from", int()), ("size", int()), gap_policy_shape(), ("sort", named("Sort"))])
}

pub fn bucket_sort(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let (mut order, mut from, mut size, mut gaps) = (Vec::new(), 0, None, GapPolicy::Skip);
    for member in reader.members() {
        match &*member.name {
            "from" => from = reader.whole(member, 0, "from")? as usize,
            "size" => size = Some(reader.whole(member, 1, "size")? as usize),
            "gap_policy" => gaps = gap_policy(&reader, member)?,
            "sort" => match &member.value.json {
                Json::Array(items) => {
                    for item in items {
                        order.extend(sort_key(&reader, item)?);
                    }
                }
                _ => order.extend(sort_key(&reader, &member.value)?),
            },
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.check_keys("sort", order.len())?;
    if order.is_empty() && from == 0 && size.is_none() {
        return Err(BodyError::Validation {
            messages: vec![format!(
                "[{}] is configured to perform nothing. Please set either of [sort, size, from] to use bucket_sort",
                reader.name
            )],
        });
    }
    Ok(AggregationKind::Pipeline(Pipeline {
        kind: PipelineKind::Sort { order, from, size },
        path: metric_path(""),
        gaps,
        format: None,
    }))
}

pub fn bucket_selector_shape() -> Shape {
    let paths = either([text(), list(text()), map(text())]);
    object([("buckets_path", paths), gap_policy_shape(), ("script", named("Script"))])
        .needs(&["buckets_path", "script"])
}

pub fn bucket_script_shape() -> Shape {
    bucket_selector_shape().and([format()])
}

/// Reads `bucket_script` and `bucket_selector`.
pub fn bucket_script(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let keeps = reader.parser == "bucket_selector";
    let used = if keeps { ScriptUse::BucketFilter } else { ScriptUse::BucketNumber };
    let (mut paths, mut script, mut gaps, mut format) = (None, None, GapPolicy::Skip, None);
    for member in reader.members() {
        match &*member.name {
            "buckets_path" => paths = Some(named_paths(&reader, member)?),
            "script" => script = Some(QueryScript::read(&member.value, used)?),
            "gap_policy" => gaps = gap_policy(&reader, member)?,
            "format" if !keeps => format = Some(reader.format(member)?),
            _ => return Err(reader.unknown(member)),
        }
    }
    let missing = |field: &str| {
        let reason =
            format!("Missing required field [{field}] for {} aggregation [{}]", reader.parser, reader.name);
        BodyError::parsing(reader.node.at, reason)
    };
    let paths = paths.ok_or_else(|| missing("buckets_path"))?;
    let script = BucketScript { script: script.ok_or_else(|| missing("script"))?, paths };
    let kind = if keeps { PipelineKind::Selector(script) } else { PipelineKind::Script(script) };
    Ok(AggregationKind::Pipeline(Pipeline { kind, path: metric_path(""), gaps, format }))
}

/// Reads the paths of a script, with the names that its numbers have in `params`: those of an object, `_value` for a single path, and
/// `_value0`, `_value1`, … for a list.
fn named_paths(
    reader: &ParameterReader<'_>,
    member: &Member,
) -> Result<Vec<(String, MetricPath)>, BodyError> {
    let path = |name: String, node: &Node| match &node.json {
        Json::String(path) => {
            value::check_length("a name in [buckets_path]", &name, sparrow_wire::MOST_REPEATED)?;
            Ok((name, metric_path(path)))
        }
        _ => Err(reader.wrong_type("buckets_path", node)),
    };
    let paths = match &member.value.json {
        Json::Object(members) => {
            members.iter().map(|member| path(member.name.to_string(), &member.value)).collect()
        }
        Json::Array(items) => {
            items.iter().enumerate().map(|(at, item)| path(format!("_value{at}"), item)).collect()
        }
        _ => path("_value".to_owned(), &member.value).map(|path| vec![path]),
    }?;
    if paths.len() > MOST_PATHS {
        return Err(reader.invalid(member, format!("[buckets_path] has more than [{MOST_PATHS}] paths")));
    }
    Ok(paths)
}

fn sort_key(reader: &ParameterReader<'_>, node: &Node) -> Result<Vec<Order>, BodyError> {
    let by = |name: &str| match name {
        "_count" => OrderBy::Count,
        "_key" => OrderBy::Key,
        path => OrderBy::Metric(metric_path(path)),
    };
    match &node.json {
        Json::String(name) => Ok(vec![Order { by: by(name), ascending: true }]),
        Json::Object(members) => {
            let mut orders = Vec::new();
            for member in members {
                let direction = match &member.value.json {
                    Json::String(direction) => direction.to_string(),
                    Json::Object(parts) => match &parts[..] {
                        [part] if &*part.name == "order" => reader.text(part)?,
                        [] => "asc".to_owned(),
                        [part, ..] => return Err(reader.unknown_in(&object([("order", text())]), part)),
                    },
                    _ => return Err(reader.wrong_type("sort", &member.value)),
                };
                let ascending = match direction.to_ascii_lowercase().as_str() {
                    "asc" => true,
                    "desc" => false,
                    other => {
                        return Err(BodyError::illegal(format!("Unknown sort order [{other}]")));
                    }
                };
                orders.push(Order { by: by(&member.name), ascending });
            }
            Ok(orders)
        }
        _ => Err(reader.wrong_type("sort", node)),
    }
}

/// Checks that a pipeline aggregation stands where the results it reads exist: beside them, or inside a
/// parent of the right type.
pub fn check(
    aggregation: &Aggregation,
    siblings: &[Aggregation],
    parent: Option<&Aggregation>,
) -> Result<(), BodyError> {
    let AggregationKind::Pipeline(pipeline) = &aggregation.kind else { return Ok(()) };
    let (name, type_name) = (&aggregation.name, aggregation.type_name());
    let fail = |message: String| Err(BodyError::Validation { messages: vec![message] });
    if pipeline.kind.is_sibling() {
        let Some(first) = pipeline.path.names.first() else {
            return fail(format!("buckets_path must be set for aggregation [{name}]"));
        };
        return match siblings.iter().find(|sibling| sibling.name == *first) {
            None => fail(format!(
                "buckets_path aggregation does not exist for aggregation [{name}]: {}",
                pipeline.path.text
            )),
            Some(read) if !read.is_multi_bucket() && !read.is_single_bucket() => fail(format!(
                "The first aggregation in buckets_path must be a multi-bucket aggregation for aggregation [{name}] \
                 found :{} for buckets path: {}",
                read.type_name(),
                pipeline.path.text
            )),
            Some(read) => check_names(read, &pipeline.path, 1),
        };
    }
    let Some(parent) = parent else {
        return fail(match &pipeline.kind {
            PipelineKind::Sort { .. }
            | PipelineKind::Normalize(_)
            | PipelineKind::Script(_)
            | PipelineKind::Selector(_) => {
                format!("{type_name} aggregation [{name}] must be declared inside of another aggregation")
            }
            _ => format!(
                "{type_name} aggregation [{name}] must have a histogram, date_histogram or auto_date_histogram as \
                 parent but doesn't have a parent"
            ),
        });
    };
    let histogram = matches!(
        parent.kind,
        AggregationKind::Histogram(_) | AggregationKind::DateHistogram(_) | AggregationKind::AutoDates(_)
    );
    let check_all = || pipeline.paths().into_iter().try_for_each(|path| check_names(parent, path, 0));
    match &pipeline.kind {
        PipelineKind::Sort { .. } | PipelineKind::Script(_) | PipelineKind::Selector(_)
            if !parent.is_multi_bucket() =>
        {
            fail(format!("{type_name} aggregation [{name}] must be declared inside of another aggregation"))
        }
        PipelineKind::Sort { .. } | PipelineKind::Script(_) | PipelineKind::Selector(_) => check_all(),
        PipelineKind::Normalize(_) if parent.is_multi_bucket() => check_all(),
        _ if histogram => check_all(),
        _ => fail(format!(
            "{type_name} aggregation [{name}] must have a histogram, date_histogram or auto_date_histogram as parent"
        )),
    }
}

/// Checks that the names of a path, from number `from` on, lead from sub-aggregation to sub-aggregation below
/// `below`.
fn check_names(below: &Aggregation, path: &MetricPath, from: usize) -> Result<(), BodyError> {
    let mut level = below;
    for (place, name) in path.names.iter().enumerate().skip(from) {
        let last = place + 1 == path.names.len();
        if last && matches!(name.as_str(), "_count" | "_key" | "_bucket_count") {
            return Ok(());
        }
        let Some(sub) = level.subs.iter().find(|sub| sub.name == *name) else {
            let which = if place == 0 { String::new() } else { format!(" [{name}]") };
            let message = format!("No aggregation{which} found for path [{}]", path.text);
            return Err(BodyError::Validation { messages: vec![message] });
        };
        level = sub;
    }
    Ok(())
}
