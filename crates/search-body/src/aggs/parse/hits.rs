//! Parser of the `top_hits` aggregation.

use sparrow_aggregations::{HitOrder, HitOrderBy, TopHits, ValueSource};

use super::parameter_reader::ParameterReader;
use super::shape::*;
use crate::body::SearchBody;
use sparrow_query::dsl::Context;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// Number of hits per bucket where the request names no `size`.
const DEFAULT_SIZE: usize = 3;

pub fn top_hits_shape() -> Shape {
    object([
        ("from", int().preset(0)),
        ("size", int().preset(DEFAULT_SIZE)),
        ("sort", named("Sort")),
        ("_source", named("SourceSelection")),
        ("docvalue_fields", named("FieldRequests")),
        ("fields", named("FieldRequests")),
        ("stored_fields", several(text())),
        ("highlight", named("Highlight")),
        ("explain", flag()),
        ("seq_no_primary_term", flag()),
        ("track_scores", flag()),
        ("version", flag()),
    ])
}

/// Reads a `top_hits` aggregation, and the search body that says what its hits show.
pub fn top_hits(
    reader: ParameterReader<'_>,
    context: Context,
    place: usize,
    number: &mut dyn FnMut() -> usize,
) -> Result<(TopHits, SearchBody), BodyError> {
    let mut top =
        TopHits { from: 0, size: DEFAULT_SIZE, sort: Vec::new(), options: place, metrics: Vec::new() };
    let mut shown = SearchBody::default();
    for member in reader.members() {
        match (&*member.name, &member.value.json) {
            ("from", _) => top.from = reader.whole(member, 0, "from")? as usize,
            ("size", _) => top.size = reader.whole(member, 0, "size")? as usize,
            ("sort", Json::Array(items)) => {
                for item in items {
                    sort_key(&reader, item, &mut top.sort, number)?;
                }
            }
            ("sort", _) => sort_key(&reader, &member.value, &mut top.sort, number)?,
            // The others have the same meaning as in the body of a search.
            (name, _) if reader.known.contains(&name) => shown.section(member, context)?,
            (name @ "script_fields", _) => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!(
                        "[{name}] of the [top_hits] aggregation [{}] is not supported by this server",
                        reader.name
                    ),
                ));
            }
            _ => return Err(reader.unknown_key(member)),
        }
    }
    // Best first is what no order at all gives.
    if let [HitOrder { by: HitOrderBy::Score, ascending: false, .. }] = &top.sort[..] {
        top.sort.clear();
    }
    Ok((top, shown))
}

pub(super) fn sort_key(
    reader: &ParameterReader<'_>,
    node: &Node,
    orders: &mut Vec<HitOrder>,
    number: &mut dyn FnMut() -> usize,
) -> Result<(), BodyError> {
    let mut add = |name: &str, ascending: Option<bool>, missing_first: bool, mut source: ValueSource| {
        let (by, ascending) = match name {
            "_score" => (HitOrderBy::Score, ascending.unwrap_or(false)),
            "_doc" => (HitOrderBy::Doc, ascending.unwrap_or(true)),
            field => {
                source.field = field.to_owned();
                (HitOrderBy::Field(source), ascending.unwrap_or(true))
            }
        };
        orders.push(HitOrder { by, ascending, missing_first, id: number() });
    };
    let direction = |node: &Node| match &node.json {
        Json::String(text) if text.eq_ignore_ascii_case("asc") => Ok(true),
        Json::String(text) if text.eq_ignore_ascii_case("desc") => Ok(false),
        Json::String(text) => Err(BodyError::illegal(format!("Unknown sort order [{text}]"))),
        _ => Err(reader.wrong_type("sort", node)),
    };
    match &node.json {
        Json::String(name) => add(name, None, false, ValueSource::default()),
        Json::Object(members) => {
            for member in members {
                let Json::Object(parts) = &member.value.json else {
                    add(&member.name, Some(direction(&member.value)?), false, ValueSource::default());
                    continue;
                };
                let (mut ascending, mut first, mut source) = (None, false, ValueSource::default());
                for part in parts {
                    match &*part.name {
                        "order" => ascending = Some(direction(&part.value)?),
                        "missing" => match &part.value.json {
                            Json::String(text) if &**text == "_first" => first = true,
                            Json::String(text) if &**text == "_last" => first = false,
                            _ => source.missing = Some(reader.scalar(part)?),
                        },
                        "unmapped_type" => {
                            reader.text(part)?;
                        }
                        name => {
                            return Err(BodyError::parsing(
                                part.value.at,
                                format!("[{name}] of [sort] in [top_hits] is not supported by this server"),
                            ));
                        }
                    }
                }
                add(&member.name, ascending, first, source);
            }
        }
        _ => return Err(reader.wrong_type("sort", node)),
    }
    Ok(())
}
