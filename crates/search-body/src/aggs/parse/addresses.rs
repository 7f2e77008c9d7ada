//! The parser of `ip_range`.

use sparrow_aggregations::{AddressEnds, AddressRange, AddressRanges, AggregationKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

use super::buckets::MOST_FILTERS;
use super::parameter_reader::ParameterReader;
use super::shape::*;

pub fn ip_range_shape() -> Shape {
    object([field(), keyed(false), ("ranges", list(of_range()))]).needs(&["field", "ranges"])
}

fn of_range() -> Shape {
    object(["key", "from", "to", "mask"].map(|name| (name, text())))
}

pub fn ip_range(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let (mut field, mut keyed, mut items) = (None, false, None);
    for member in reader.members() {
        match &*member.name {
            "field" => field = Some(reader.text(member)?),
            "keyed" => keyed = reader.boolean(member)?,
            "ranges" => {
                let list = member.value.as_array();
                items = Some(list.ok_or_else(|| reader.wrong_type("ranges", &member.value))?);
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    let items = items.unwrap_or_default();
    if items.is_empty() {
        return Err(BodyError::illegal(format!(
            "No [ranges] specified for the [{}] aggregation",
            reader.name
        )));
    }
    if items.len() > MOST_FILTERS {
        return Err(BodyError::illegal(format!(
            "[{}] has [{}] ranges, at most [{MOST_FILTERS}] are possible on this server",
            reader.name,
            items.len()
        )));
    }
    let field = field.ok_or(BodyError::Required { field: "field" })?;
    let mut ranges = Vec::with_capacity(items.len());
    for item in items {
        ranges.push(range(&reader, &field, item)?);
    }
    let mut asked = AddressRanges { field, ranges, keyed };
    asked.sort();
    Ok(AggregationKind::AddressRanges(asked))
}

fn range(reader: &ParameterReader<'_>, field: &str, node: &Node) -> Result<AddressRange, BodyError> {
    let Some(members) = node.as_object() else { return Err(reader.wrong_type("ranges", node)) };
    let mut ends = AddressEnds::default();
    for member in members {
        let place = match &*member.name {
            "key" => &mut ends.key,
            "from" => &mut ends.from,
            "to" => &mut ends.to,
            "mask" => &mut ends.mask,
            _ => return Err(BodyError::unknown_field("range", member, of_range().names())),
        };
        if !matches!(member.value.json, Json::Null) {
            *place = Some(reader.text(member)?);
        }
    }
    AddressRange::new(field, ends).map_err(BodyError::illegal)
}
