//! Sections of a search that select a part of the documents or weight indices: `slice`, `pit` and `indices_boost`.

use sparrow_wire::BodyError;
use std::time::Duration;

use sparrow_index::query::sorted::{ColumnKey, ColumnKind, Missing, Slice, SortMode, SortValue};
use sparrow_mapping::{FieldType, Mapping};

use super::error::{SearchError, Shard};
use sparrow_call::params::parse_duration;
use sparrow_query::dsl::value;
use sparrow_wire::json::{Json, Node};

/// One of several slices into which the documents of a search are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceOf {
    id: u32,
    max: u32,
    field: Option<String>,
}

impl SliceOf {
    /// The number of the slice, from 0, and the number of slices, if documents are divided by their ids.
    ///
    /// # Errors
    /// When they are divided by a field.
    pub fn by_id(&self) -> Result<(u32, u32), SearchError> {
        match self.field.as_deref() {
            None | Some("_id" | "_doc" | "_seq_no") => Ok((self.id, self.max)),
            Some(field) => Err(SearchError::illegal(format!(
                "[slice] by the field [{field}] is not supported in this context"
            ))),
        }
    }

    /// The number of slices.
    pub fn slices(&self) -> usize {
        self.max as usize
    }

    /// The slice as it applies to one index.
    ///
    /// # Errors
    /// When the field that divides the documents is not numeric.
    pub fn bind(&self, mapping: &Mapping, shard: &Shard) -> Result<Slice, SearchError> {
        let column = match self.field.as_deref() {
            None | Some("_id" | "_doc" | "_seq_no") => None,
            Some(path) => {
                let kind = match mapping.field(path) {
                    Some(FieldType::UnsignedLong) => Some(ColumnKind::Unsigned),
                    Some(FieldType::Date { .. } | FieldType::DateNanos { .. }) => Some(ColumnKind::Long),
                    Some(whole) if whole.is_integer() => Some(ColumnKind::Long),
                    Some(float) if float.is_float() => Some(ColumnKind::Double),
                    Some(_) => None,
                    None => {
                        return Err(SearchError::OfShard {
                            shard: Box::new(shard.clone()),
                            kind: "illegal_argument_exception",
                            reason: format!("field {path} not found"),
                        });
                    }
                };
                let kind = kind.ok_or_else(|| SearchError::OfShard {
                    shard: Box::new(shard.clone()),
                    kind: "illegal_argument_exception",
                    reason: format!("cannot load numeric doc values on {path}"),
                })?;
                let missing = Missing::Value(SortValue::Long(0));
                Some(ColumnKey {
                    path: mapping.concrete(path).into_owned(),
                    kind,
                    mode: SortMode::Min,
                    missing,
                    nested: Vec::new(),
                })
            }
        };
        Ok(Slice { id: self.id, max: self.max, column })
    }
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
            _ => return Err(BodyError::unknown_field("slice", member, &["id", "max", "field"])),
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
            _ => return Err(BodyError::unknown_field("point_in_time", member, &["id", "keep_alive"])),
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
