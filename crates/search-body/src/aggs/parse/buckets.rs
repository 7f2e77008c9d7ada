//! Parsers of bucket aggregations; those of equal intervals are in `histograms`.

use serde_json::Value;
use sparrow_aggregations::{
    AggregationKind, Filters, Order, OrderBy, Range, RangeBucket, Selection, Terms, ValueSource,
};

use super::parameter_reader::ParameterReader;
use super::shape::*;
use sparrow_mapping::geo::meters_of_unit;
use sparrow_query::dsl::{self, Context};
use sparrow_query::geo::{Validation, distance_type, point};
use sparrow_tantivy_index::query::sorted::Distance;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

/// Number of buckets of a `terms` aggregation that names no `size`.
const DEFAULT_SIZE: usize = 10;

pub fn terms_shape() -> Shape {
    of_values(typed(), of_terms()).and([("include", choice(true)), ("exclude", choice(false)), terms_hint()])
}

/// What `terms` and `multi_terms` have in common.
pub(super) fn of_terms() -> [Named; 7] {
    [
        size(),
        shard_size(),
        min_doc_count(1),
        ("shard_min_doc_count", int()),
        order(),
        ("collect_mode", one(&["depth_first", "breadth_first"])),
        ("show_term_doc_count_error", flag().preset(false)),
    ]
}

pub(super) fn size() -> Named {
    ("size", int().about("buckets that are answered").preset(DEFAULT_SIZE))
}

pub(super) fn terms_hint() -> Named {
    ("execution_hint", one(&["map", "global_ordinals"]))
}

/// Which values have buckets: those of a regular expression, of a list, or, if that `may_part`, of a part of all.
pub(super) fn choice(may_part: bool) -> Shape {
    let part = may_part.then(|| object([("partition", int()), ("num_partitions", int())]));
    either([text(), list(scalar())].into_iter().chain(part))
}

pub fn terms(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut terms = Terms {
        source: ValueSource::default(),
        size: DEFAULT_SIZE,
        min_doc_count: 1,
        max_doc_count: None,
        order: vec![
            Order { by: OrderBy::Count, ascending: false },
            Order { by: OrderBy::Key, ascending: true },
        ],
        include: None,
        exclude: None,
        show_error: false,
    };
    for member in reader.members() {
        if reader.source(member, &mut terms.source)? {
            continue;
        }
        match &*member.name {
            "size" => terms.size = reader.whole(member, 1, "size")? as usize,
            // Every index is looked at as a whole: there is nothing that a larger number would make more exact.
            "shard_size" => {
                reader.whole(member, 1, "shardSize")?;
            }
            "min_doc_count" => terms.min_doc_count = reader.whole(member, 0, "minDocCount")? as u64,
            "shard_min_doc_count" => {
                reader.whole(member, 0, "shardMinDocCount")?;
            }
            "order" => terms.order = reader.order(member)?,
            "include" => terms.include = Some(selection(&reader, member, true)?),
            "exclude" => terms.exclude = Some(selection(&reader, member, false)?),
            "show_term_doc_count_error" => terms.show_error = reader.boolean(member)?,
            "execution_hint" => execution_hint(&reader, member)?,
            "collect_mode" => match reader.text(member)?.as_str() {
                "depth_first" | "breadth_first" => {}
                other => {
                    return Err(
                        reader.invalid(member, format!("no [collect_mode] found for value [{other}]"))
                    );
                }
            },
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&terms.source)?;
    if matches!(terms.include, Some(Selection::Partition { .. })) && terms.exclude.is_some() {
        return Err(BodyError::illegal(
            "Cannot specify any exclude clause when using a partition-based include",
        ));
    }
    Ok(AggregationKind::Terms(terms))
}

/// Highest `max_doc_count` of `rare_terms`: documents in one bucket.
const MOST_RARE: i64 = 100;

pub fn rare_terms_shape() -> Shape {
    let own = [("max_doc_count", int().preset(1)), ("precision", num())];
    of_values(typed(), own).and(["include", "exclude"].map(|name| (name, choice(false))))
}

pub fn rare_terms(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut terms = Terms {
        source: ValueSource::default(),
        size: usize::MAX,
        min_doc_count: 1,
        max_doc_count: Some(1),
        order: vec![
            Order { by: OrderBy::Count, ascending: true },
            Order { by: OrderBy::Key, ascending: true },
        ],
        include: None,
        exclude: None,
        show_error: false,
    };
    for member in reader.members() {
        if reader.source(member, &mut terms.source)? {
            continue;
        }
        match &*member.name {
            "max_doc_count" => {
                let most = reader.whole(member, 1, "max_doc_count")?;
                if most > MOST_RARE {
                    return Err(reader.invalid(
                        member,
                        format!("[max_doc_count] must be smaller than {MOST_RARE} in [{}]", reader.name),
                    ));
                }
                terms.max_doc_count = Some(most as u64);
            }
            // All values are counted: there is nothing to estimate.
            "precision" => {
                let precision = reader.float(member)?;
                if precision < 0.00001 {
                    return Err(reader.invalid(member, "[precision] must be greater than 0.00001"));
                }
            }
            "include" => terms.include = Some(selection(&reader, member, false)?),
            "exclude" => terms.exclude = Some(selection(&reader, member, false)?),
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&terms.source)?;
    Ok(AggregationKind::Terms(terms))
}

/// Checks a hint about how to count. It has no effect, as there is one way to count here, but an unknown hint is a mistake.
pub(super) fn execution_hint(reader: &ParameterReader<'_>, member: &Member) -> Result<(), BodyError> {
    let hint = reader.text(member)?;
    match matches!(hint.as_str(), "map" | "global_ordinals") {
        true => Ok(()),
        false => Err(BodyError::illegal(format!(
            "Unknown `execution_hint`: [{hint}], expected any of [map, global_ordinals]"
        ))),
    }
}

pub(super) fn selection(
    reader: &ParameterReader<'_>,
    member: &Member,
    may_part: bool,
) -> Result<Selection, BodyError> {
    match &member.value.json {
        Json::String(pattern) => Ok(Selection::Regexp(pattern.to_string())),
        Json::Array(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                match &item.json {
                    Json::String(text) => values.push(text.to_string()),
                    Json::Number(text) => values.push(text.to_string()),
                    Json::Bool(value) => values.push(value.to_string()),
                    _ => {
                        return Err(reader.invalid(
                            member,
                            format!(
                                "Array elements in include/exclude clauses should be string values, not [{}]",
                                item.token()
                            ),
                        ));
                    }
                }
            }
            Ok(Selection::Values(values))
        }
        Json::Object(parts) if may_part => {
            let (mut partition, mut partitions) = (None, None);
            for part in parts {
                match &*part.name {
                    "partition" => partition = Some(reader.whole(part, 0, "partition")?),
                    "num_partitions" => partitions = Some(reader.whole(part, 1, "num_partitions")?),
                    name => {
                        return Err(reader.invalid(
                            member,
                            format!("Unknown parameter in Include/Exclude clause: {name}"),
                        ));
                    }
                }
            }
            match (partition, partitions) {
                (None, _) => {
                    Err(reader.invalid(member, "Missing [partition] parameter for partition-based include"))
                }
                (_, None) => {
                    Err(reader
                        .invalid(member, "Missing [num_partitions] parameter for partition-based include"))
                }
                (Some(partition), Some(partitions)) if partition >= partitions => Err(reader.invalid(
                    member,
                    "Partition index must be >= 0 and < num_partitions".to_owned()
                        + &format!(", got [{partition}] of [{partitions}]"),
                )),
                (Some(partition), Some(partitions)) => {
                    Ok(Selection::Partition { partition: partition as u64, partitions: partitions as u64 })
                }
            }
        }
        _ => Err(reader.wrong_type(&member.name, &member.value)),
    }
}

/// Highest number of filters or ranges in one aggregation: every document is tested against each, and each
/// filter takes one bit per document.
pub(super) const MOST_FILTERS: usize = 1_024;

pub fn range_shape() -> Shape {
    of_ranges().and([missing(), format()])
}

pub fn date_range_shape() -> Shape {
    range_shape().and([time_zone()])
}

pub fn geo_distance_shape() -> Shape {
    of_ranges()
        .and([("origin", any()), ("unit", text()), ("distance_type", text())])
        .needs(&["field", "origin", "ranges"])
}

fn of_ranges() -> Shape {
    object([field(), keyed(false), ("ranges", list(bucket_shape()))]).needs(&["field", "ranges"])
}

fn bucket_shape() -> Shape {
    object([("key", text()), ("from", any()), ("to", any())])
}

pub fn range(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let dates = reader.parser == "date_range";
    let distances = reader.parser == "geo_distance";
    let (mut origin, mut unit) = (None, 1.0);
    let mut range = Range { source: ValueSource::default(), ranges: Vec::new(), keyed: false, dates };
    for member in reader.members() {
        if reader.source(member, &mut range.source)? {
            continue;
        }
        match &*member.name {
            "keyed" => range.keyed = reader.boolean(member)?,
            "origin" if distances => {
                origin = Some(Validation::Strict.checked(point(&member.value)?, "[origin]")?);
            }
            "unit" if distances => {
                unit = meters_of_unit(&reader.text(member)?).map_err(BodyError::illegal)?;
            }
            "distance_type" if distances => distance_type(&member.value)?,
            "ranges" => {
                let Some(items) = member.value.as_array() else {
                    return Err(reader.wrong_type("ranges", &member.value));
                };
                if items.len() > MOST_FILTERS {
                    return Err(BodyError::illegal(format!(
                        "[{}] has [{}] ranges, at most [{MOST_FILTERS}] are possible on this server",
                        reader.name,
                        items.len()
                    )));
                }
                for item in items {
                    range.ranges.push(range_bucket(&reader, item)?);
                }
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&range.source)?;
    if distances {
        range.ranges.iter_mut().for_each(from_the_origin);
        let from = vec![origin.ok_or(BodyError::Required { field: "origin" })?];
        range.source.distance = Some(Distance { from, unit });
    }
    if range.ranges.is_empty() {
        return Err(BodyError::illegal(format!(
            "No [ranges] specified for the [{}] aggregation",
            reader.name
        )));
    }
    Ok(AggregationKind::Range(range))
}

/// Has a range of distances begin at 0 where it has no other beginning: its name says that it is open, and its numbers do not.
fn from_the_origin(bucket: &mut RangeBucket) {
    let number = |bound: &Option<Value>| match bound {
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_f64(),
        None => None,
    };
    if bucket.from.is_none() || number(&bucket.from) == Some(0.0) {
        let to = number(&bucket.to).map_or_else(|| "*".to_owned(), |to: f64| format!("{to:?}"));
        bucket.key.get_or_insert(format!("*-{to}"));
        bucket.from = Some(0.0.into());
    }
}

fn range_bucket(reader: &ParameterReader<'_>, node: &Node) -> Result<RangeBucket, BodyError> {
    let Some(members) = node.as_object() else { return Err(reader.wrong_type("ranges", node)) };
    let mut bucket = RangeBucket { key: None, from: None, to: None };
    for member in members {
        let end = || match member.value.json {
            Json::Null => Ok(None),
            _ => reader.scalar(member).map(Some),
        };
        match &*member.name {
            "key" => bucket.key = Some(reader.text(member)?),
            "from" => bucket.from = end()?,
            "to" => bucket.to = end()?,
            _ => return Err(BodyError::unknown_field("range", member, bucket_shape().names())),
        }
    }
    Ok(bucket)
}

pub fn filter(reader: ParameterReader<'_>, context: Context) -> Result<AggregationKind, BodyError> {
    // `{}` matched everything in old versions; it is an error in the new ones.
    Ok(AggregationKind::Filter(dsl::parse_query(reader.node, context)?))
}

pub fn filters_shape() -> Shape {
    object([
        ("filters", either([map(query()), list(query())])),
        ("other_bucket", flag()),
        ("other_bucket_key", text()),
        keyed(true),
    ])
    .needs(&["filters"])
}

pub fn filters(reader: ParameterReader<'_>, context: Context) -> Result<AggregationKind, BodyError> {
    let mut filters = Vec::new();
    let (mut other, mut other_key, mut keyed) = (None, None, true);
    let mut given = false;
    for member in reader.members() {
        match (&*member.name, &member.value.json) {
            ("filters", Json::Object(members)) => {
                given = true;
                for filter in members {
                    reader.check_name(filter)?;
                    let query = dsl::parse_query(&filter.value, context)?;
                    filters.push((Some(filter.name.to_string()), query));
                }
            }
            ("filters", Json::Array(items)) => {
                given = true;
                for item in items {
                    filters.push((None, dsl::parse_query(item, context)?));
                }
            }
            ("other_bucket", _) => other = Some(reader.boolean(member)?),
            ("other_bucket_key", _) => other_key = Some(reader.text(member)?),
            ("keyed", _) => keyed = reader.boolean(member)?,
            _ => return Err(reader.unknown_key(member)),
        }
    }
    if filters.len() > MOST_FILTERS {
        return Err(BodyError::illegal(format!(
            "[{}] has [{}] filters, at most [{MOST_FILTERS}] are possible on this server",
            reader.name,
            filters.len()
        )));
    }
    if !given || filters.is_empty() {
        return Err(BodyError::illegal("[filters] cannot be empty"));
    }
    filters.sort_by(|a, b| a.0.cmp(&b.0));
    // A key alone asks for the bucket too.
    let other = match (other, other_key) {
        (Some(false), _) | (None, None) => None,
        (_, Some(key)) => Some(key),
        (Some(true), None) => Some("_other_".to_owned()),
    };
    Ok(AggregationKind::Filters(Filters { filters, other, keyed }))
}

pub fn missing_shape() -> Shape {
    of_values(typed(), [])
}

pub fn missing_values(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut source = ValueSource::default();
    for member in reader.members() {
        if !reader.source(member, &mut source)? {
            return Err(reader.unknown(member));
        }
    }
    reader.need_field(&source)?;
    Ok(AggregationKind::Missing(source))
}

/// The path of a `nested` or `reverse_nested` aggregation.
fn path(reader: &ParameterReader<'_>) -> Result<Option<String>, BodyError> {
    let mut path = None;
    for member in reader.members() {
        match &*member.name {
            "path" => path = Some(reader.text(member)?),
            _ => return Err(reader.unknown(member)),
        }
    }
    Ok(path)
}

pub fn nested_shape() -> Shape {
    object([("path", text().about("of a nested field, whose objects are aggregated"))]).needs(&["path"])
}

pub fn reverse_nested_shape() -> Shape {
    let text = text().about("of a nested field around the objects; without it, their documents");
    object([("path", text)])
}

pub fn nested(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    match path(&reader)? {
        Some(path) => Ok(AggregationKind::Nested(path)),
        None => Err(BodyError::parsing(
            reader.node.at,
            format!("Missing [path] field for nested aggregation [{}]", reader.name),
        )),
    }
}

pub fn reverse_nested(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    path(&reader).map(AggregationKind::ReverseNested)
}

pub fn global(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    match reader.members().first() {
        Some(member) => Err(reader.unknown(member)),
        None => Ok(AggregationKind::Global),
    }
}
