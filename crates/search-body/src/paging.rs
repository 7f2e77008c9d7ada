//! Sections of a search that select a part of the documents or weight indices: `slice`, `pit` and `indices_boost`.

use crate::shape::{Shape, int, object, text, time};
use sparrow_wire::BodyError;
use std::time::Duration;

use sparrow_query::dsl::value;
use sparrow_request::params::parse_duration;
use sparrow_wire::json::{Json, Node};

/// One of several slices into which the documents of a search are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceOf {
    /// The number of the slice, from 0.
    pub id: u32,
    /// The number of slices.
    pub max: u32,
    /// The field by whose values documents are divided. If it is not given, they are divided by their ids.
    pub field: Option<String>,
}

impl SliceOf {
    /// The number of slices.
    pub fn slices(&self) -> usize {
        self.max as usize
    }
}

pub(crate) fn slice_shape() -> Shape {
    object([("id", int()), ("max", int()), ("field", text())]).needs(&["id", "max"])
}

/// Reads the `slice` section.
///
/// # Errors
/// On unknown keys and numbers out of range.
pub fn parse_slice(node: &Node) -> Result<SliceOf, BodyError> {
    let (mut id, mut max, mut field) = (None, None, None);
    for member in node.as_object().unwrap_or_default() {
        let within = |error: BodyError| error.within("slice", &member.name, member.value.at);
        match &*member.name {
            "id" => {
                let number = value::int(&member.value).map_err(within)?;
                id = Some(
                    u32::try_from(number)
                        .map_err(|_| within(BodyError::illegal("id must be greater than or equal to 0")))?,
                );
            }
            "max" => {
                let number = value::int(&member.value).map_err(within)?;
                let number = u32::try_from(number).ok().filter(|number| *number > 1);
                max = Some(number.ok_or_else(|| within(BodyError::illegal("max must be greater than 1")))?);
            }
            "field" => field = Some(value::text(&member.value).map_err(within)?),
            _ => return Err(BodyError::unknown_field("slice", member, slice_shape().names())),
        }
    }
    let id = id.ok_or(BodyError::Required { field: "id" })?;
    let max = max.ok_or(BodyError::Required { field: "max" })?;
    if id >= max {
        return Err(BodyError::illegal("max must be greater than id"));
    }
    Ok(SliceOf { id, max, field })
}

/// The point in time that a search uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointInTime {
    /// Id of the point in time.
    pub id: String,
    /// How much longer it is kept open; as long as before if absent.
    pub keep_alive: Option<Duration>,
}

pub(crate) fn pit_shape() -> Shape {
    object([("id", text()), ("keep_alive", time())]).needs(&["id"])
}

/// Reads the `pit` section.
///
/// # Errors
/// On unknown keys and malformed values.
pub fn parse_pit(node: &Node) -> Result<PointInTime, BodyError> {
    let (mut id, mut keep_alive) = (None, None);
    for member in node.as_object().unwrap_or_default() {
        let within = |error: BodyError| error.within("point_in_time", &member.name, member.value.at);
        match &*member.name {
            "id" => id = Some(value::text(&member.value).map_err(within)?),
            "keep_alive" => {
                let text = value::text(&member.value).map_err(within)?;
                keep_alive = parse_duration("keep_alive", &text)
                    .map_err(|error| within(BodyError::illegal(error.reason())))?;
            }
            _ => return Err(BodyError::unknown_field("point_in_time", member, pit_shape().names())),
        }
    }
    match id {
        Some(id) if !id.is_empty() => Ok(PointInTime { id, keep_alive }),
        _ => Err(BodyError::illegal("point int time id is not provided")),
    }
}

/// Parses the `indices_boost` section: index expressions with factors, of which the first that matches an index counts.
///
/// # Errors
/// On anything but expressions and numbers.
pub fn parse_indices_boost(node: &Node) -> Result<Vec<(String, f32)>, BodyError> {
    let mut boosts = Vec::new();
    match &node.json {
        Json::Object(members) => {
            for member in members {
                boosts.push((member.name.to_string(), value::float(&member.value)?));
            }
        }
        Json::Array(items) => {
            for item in items {
                let Some([member]) = item.as_object() else {
                    return Err(BodyError::parsing(
                        item.at,
                        format!("Expected [FIELD_NAME] in [indices_boost] but found [{}]", item.token()),
                    ));
                };
                boosts.push((member.name.to_string(), value::float(&member.value)?));
            }
        }
        _ => {
            return Err(BodyError::parsing(
                node.at,
                format!("Unknown key for a {} in [indices_boost].", node.token()),
            ));
        }
    }
    if let Some((index, boost)) = boosts.iter().find(|(_, boost)| *boost < 0.0) {
        return Err(BodyError::illegal(format!(
            "negative [boost] are not allowed in [indices_boost] for [{index}]: [{boost}]"
        )));
    }
    Ok(boosts)
}
