//! Parser of the `composite` aggregation.

use std::sync::LazyLock;

use serde_json::Value;
use sparrow_aggregations::{AggregationKind, Cells, Composite, CompositeSource, Group, ValueSource};

use super::grids::{DEFAULT_ZOOM, bounds, bounds_shape, zoom, zoom_shape};
use super::histograms::{date_interval, date_offset, deprecated_interval, interval_shape, rounding};
use super::parameter_reader::ParameterReader;
use super::shape::*;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

/// Number of buckets of a page that names no `size`.
const DEFAULT_SIZE: usize = 10;
/// Highest number of sources, each of which is a part of the bucket key.
const MOST_SOURCES: usize = 32;

pub fn composite_shape() -> Shape {
    let kinds = object(SOURCES.iter().cloned());
    let after = open().about("`after_key` of the answer before");
    object([("sources", several(map(kinds))), ("size", int().preset(DEFAULT_SIZE)), ("after", after)])
        .needs(&["sources"])
}

/// The kinds of sources.
static SOURCES: LazyLock<[Named; 4]> = LazyLock::new(|| {
    let common = || {
        [
            ("order", one(&["asc", "desc"])),
            ("missing_bucket", flag().preset(false)),
            ("missing_order", one(&["first", "last", "default"]).preset("default")),
        ]
    };
    let typed = || of_values([field(), format(), value_type()], common());
    [
        ("terms", typed()),
        ("histogram", typed().and([("interval", num())]).needs(&["field", "interval"])),
        ("date_histogram", typed().and(interval_shape())),
        ("geotile_grid", of_values([field()], common()).and([zoom_shape(), bounds_shape()])),
    ]
});

pub fn composite(
    reader: ParameterReader<'_>,
    number: &mut dyn FnMut() -> usize,
) -> Result<AggregationKind, BodyError> {
    let mut sources: Option<Vec<CompositeSource>> = None;
    let mut size = DEFAULT_SIZE;
    let mut after: Option<&Member> = None;
    for member in reader.members() {
        match (&*member.name, &member.value.json) {
            ("sources", Json::Array(items)) => {
                let mut all = Vec::with_capacity(items.len());
                for item in items {
                    all.push(source(&reader, item, number)?);
                }
                sources = Some(all);
            }
            // One source may stand alone.
            ("sources", Json::Object(_)) => sources = Some(vec![source(&reader, &member.value, number)?]),
            ("size", _) => size = reader.whole(member, 1, "size")? as usize,
            ("after", Json::Object(_)) => after = Some(member),
            ("sources" | "after", _) => return Err(reader.wrong_type(&member.name, &member.value)),
            _ => return Err(reader.unknown(member)),
        }
    }
    let Some(sources) = sources else { return Err(BodyError::Required { field: "sources" }) };
    if sources.is_empty() {
        return Err(BodyError::illegal("Composite [sources] cannot be null or empty"));
    }
    if sources.len() > MOST_SOURCES {
        return Err(BodyError::illegal(format!("Composite [sources] cannot be more than [{MOST_SOURCES}]")));
    }
    let mut doubles: Vec<&str> = Vec::new();
    for (place, source) in sources.iter().enumerate() {
        if sources[..place].iter().any(|other| other.name == source.name) {
            doubles.push(&source.name);
        }
    }
    if !doubles.is_empty() {
        return Err(BodyError::illegal(format!(
            "Composite source names must be unique, found duplicates: [{}]",
            doubles.join(",")
        )));
    }
    let after = after.map(|member| after_values(&sources, member)).transpose()?;
    Ok(AggregationKind::Composite(Composite { sources, size, after }))
}

fn after_values(sources: &[CompositeSource], member: &Member) -> Result<Vec<Value>, BodyError> {
    let given = member.value.as_object().unwrap_or_default();
    if given.len() != sources.len() {
        return Err(BodyError::illegal(format!(
            "[after] has {} value(s) but [sources] has {}",
            given.len(),
            sources.len()
        )));
    }
    let mut values = Vec::with_capacity(sources.len());
    for source in sources {
        let Some(member) = given.iter().find(|value| *value.name == source.name) else {
            return Err(BodyError::illegal(format!("Missing value for [after.{}]", source.name)));
        };
        if !member.value.is_scalar() {
            return Err(BodyError::illegal(format!(
                "Invalid value for [after.{}], expected a single value",
                source.name
            )));
        }
        values.push(member.value.to_value());
    }
    Ok(values)
}

/// Reads one source, `{name: {type: {...}}}`.
fn source(
    reader: &ParameterReader<'_>,
    node: &Node,
    number: &mut dyn FnMut() -> usize,
) -> Result<CompositeSource, BodyError> {
    let Some([named]) = node.as_object() else {
        return Err(reader.wrong_type("sources", node));
    };
    reader.check_name(named)?;
    let Some([typed]) = named.value.as_object() else {
        return Err(reader.wrong_type("sources", &named.value));
    };
    let Some(&(parser, ref shape)) = SOURCES.iter().find(|(parser, _)| *parser == &*typed.name) else {
        return Err(BodyError::illegal(format!("invalid source type: {}", typed.name)));
    };
    let name = named.name.to_string();
    let inner = ParameterReader { parser, name: reader.name, node: &typed.value, known: shape.names() };
    let Some(members) = typed.value.as_object() else {
        return Err(reader.wrong_type("sources", &typed.value));
    };
    let mut composite = CompositeSource {
        name,
        source: ValueSource::default(),
        group: Group::Value,
        ascending: true,
        missing_bucket: false,
        missing_first: None,
        id: number(),
    };
    let (mut interval, mut offset, mut width) = (None, 0, None);
    let (mut cells, mut within) = (Cells::Tiles(DEFAULT_ZOOM), None);
    for member in members {
        if inner.source(member, &mut composite.source)? {
            continue;
        }
        match (&*member.name, parser) {
            ("order", _) => {
                composite.ascending = match inner.text(member)?.to_ascii_lowercase().as_str() {
                    "asc" => true,
                    "desc" => false,
                    other => {
                        return Err(inner.invalid(member, format!("Unknown sort order [{other}]")));
                    }
                };
            }
            ("missing_bucket", _) => composite.missing_bucket = inner.boolean(member)?,
            ("missing_order", _) => {
                composite.missing_first = match inner.text(member)?.as_str() {
                    "first" => Some(true),
                    "last" => Some(false),
                    "default" => None,
                    other => {
                        return Err(inner.invalid(member, format!("Unknown missing order [{other}]")));
                    }
                };
            }
            ("interval", "histogram") => {
                let value = inner.float(member)?;
                if !(value > 0.0 && value.is_finite()) {
                    return Err(
                        inner.invalid(member, "[interval] must be greater than 0 for [histogram] source")
                    );
                }
                width = Some(value);
            }
            ("calendar_interval" | "fixed_interval", "date_histogram") => {
                date_interval(&inner, member, &mut interval)?;
            }
            ("precision", "geotile_grid") => cells = zoom(&inner, member)?,
            ("bounds", "geotile_grid") => within = Some(bounds(&inner, member)?),
            ("interval", "date_histogram") => return Err(deprecated_interval(&inner, member)),
            ("offset", "date_histogram") => offset = date_offset(&inner, member)?,
            _ => return Err(inner.unknown(member)),
        }
    }
    if composite.missing_first.is_some() && !composite.missing_bucket {
        return Err(BodyError::illegal("missingOrder can only be set if missingBucket is true"));
    }
    inner.need_field(&composite.source)?;
    composite.group = match parser {
        "histogram" => match width {
            Some(width) => Group::Interval(width),
            None => return Err(BodyError::Required { field: "interval" }),
        },
        "date_histogram" => Group::Date(rounding(&composite.source, interval, offset)?),
        "geotile_grid" => Group::Cells(cells, within),
        _ => Group::Value,
    };
    Ok(composite)
}
