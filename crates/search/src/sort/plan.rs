//! A sort bound to one index: which column each key reads, and how its values are parsed and shown.

use std::sync::Arc;

use serde_json::Value;
use sparrow_mapping::{DateFormat, FieldType, Mapping};
use sparrow_tantivy_index::query::sorted::{
    After, ColumnKey, ColumnKind, Missing, SortKey, SortMode, SortSource, SortValue, Ties,
};

use super::values::{DEFAULT_FORMAT, Shown, parse_formats};
use crate::error::{SearchError, Shard};
use sparrow_mapping::date::DEFAULT_NANOS_FORMAT;
use sparrow_query::Query;
use sparrow_search_body::sort::{FieldDistance, Position, SortField};

/// Where a search continues.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// Behind the values of `search_after`.
    Values(Vec<Value>),
    /// Behind the last hit of a previous page.
    Position(Position),
}

/// A sort bound to one index.
pub struct Plan {
    /// Columns that the index sorts by, in order of significance.
    pub keys: Vec<SortKey>,
    /// How the values of each key are parsed from requests and shown in hits.
    pub shown: Vec<Shown>,
    /// Whether the last key is `_shard_doc`, the hit's own position, which breaks ties in any case.
    pub ends_with_place: bool,
}

/// Number of low bits of `_shard_doc` that hold the sequence number; the bits above hold the index's position
/// in the list of targets.
const PLACE_BITS: u32 = 40;

/// The `_shard_doc` value of a hit.
pub fn place(target: usize, seq_no: u64) -> i64 {
    ((target as i64) << PLACE_BITS) | (seq_no & ((1 << PLACE_BITS) - 1)) as i64
}

impl Plan {
    /// Binds the keys of a sort to an index, or to the objects of its nested field at `scope`.
    ///
    /// # Errors
    /// For keys that the index cannot sort by.
    pub fn new(
        keys: &[SortField],
        mapping: &Mapping,
        scope: Option<&str>,
        shard: &Shard,
    ) -> Result<Self, SearchError> {
        let mut plan = Plan { keys: Vec::new(), shown: Vec::new(), ends_with_place: false };
        for key in keys {
            if plan.ends_with_place {
                return Err(SearchError::illegal("[_shard_doc] must be the last key of [sort]"));
            }
            if let Some(script) = &key.script {
                let source = SortSource::Script(script.clone());
                plan.keys.push(SortKey { source, descending: key.descending });
                plan.shown.push(Shown::Double);
                continue;
            }
            if let Some(distance) = &key.distance {
                let source = distances(key, distance, mapping, scope, shard)?;
                plan.keys.push(SortKey { source, descending: key.descending });
                plan.shown.push(Shown::Double);
                continue;
            }
            let (source, shown) = match &*key.name {
                "_shard_doc" => {
                    plan.ends_with_place = true;
                    plan.shown.push(Shown::Long);
                    continue;
                }
                "_score" => (SortSource::Score, Shown::Float),
                "_doc" | "_seq_no" => (SortSource::SeqNo, Shown::Long),
                _ => column(key, mapping, scope, shard)?,
            };
            plan.keys.push(SortKey { source, descending: key.descending });
            plan.shown.push(shown);
        }
        Ok(plan)
    }

    /// The position behind which the hits of the index number `target` begin.
    ///
    /// # Errors
    /// When a `search_after` value does not fit the type of its key.
    pub fn start(&self, start: &Start, sort: &[SortField], target: usize) -> Result<After, SearchError> {
        let (values, last) = match start {
            Start::Position(position) => (position.values.clone(), Some((position.target, position.seq_no))),
            Start::Values(given) => {
                // The last key of a point in time need not be given: all hits of equal values are passed over.
                let without_place = self.ends_with_place && given.len() + 1 == self.shown.len();
                if given.len() != self.shown.len() && !without_place {
                    return Err(SearchError::illegal(format!(
                        "search_after has {} value(s) but sort has {}.",
                        given.len(),
                        self.shown.len()
                    )));
                }
                let mut values = Vec::with_capacity(given.len());
                for ((given, shown), key) in given.iter().zip(&self.shown).zip(sort) {
                    let value = shown.read(given).map_err(|cause| SearchError::AfterValue {
                        field: key.name.clone(),
                        cause: Box::new(cause),
                    })?;
                    values.push(value);
                }
                let place = if self.ends_with_place && !without_place { values.pop() } else { None };
                let last = match place {
                    Some(SortValue::Long(place)) => {
                        let seq_no = place as u64 & ((1 << PLACE_BITS) - 1);
                        Some(((place >> PLACE_BITS) as usize, seq_no))
                    }
                    _ => None,
                };
                (values, last)
            }
        };
        let ties = match last {
            None => Ties::None,
            Some((last, _)) if target < last => Ties::None,
            Some((last, _)) if target > last => Ties::All,
            Some((_, seq_no)) => Ties::After(seq_no),
        };
        Ok(After { values, ties })
    }

    /// The `sort` member of a hit, as a JSON array.
    pub fn write(&self, values: &[SortValue], target: usize, seq_no: u64) -> Box<str> {
        let mut out = String::from("[");
        for (number, (value, shown)) in values.iter().zip(&self.shown).enumerate() {
            if number > 0 {
                out.push(',');
            }
            shown.write(value, &mut out);
        }
        if self.ends_with_place {
            if !values.is_empty() {
                out.push(',');
            }
            out.push_str(&place(target, seq_no).to_string());
        }
        out.push(']');
        out.into()
    }
}

/// The column that a sort key reads, and how its values are shown; both depend on the field's type.
fn column(
    key: &SortField,
    mapping: &Mapping,
    scope: Option<&str>,
    shard: &Shard,
) -> Result<(SortSource, Shown), SearchError> {
    let refused = |kind: &'static str, reason: String| SearchError::OfShard {
        shard: Box::new(shard.clone()),
        kind,
        reason,
    };
    let query = |reason: String| refused("query_shard_exception", reason);
    if key.name == "_index" {
        // The same for all documents of an index.
        let column = ColumnKey {
            path: "_index".to_owned(),
            kind: ColumnKind::Keyword,
            mode: SortMode::Min,
            missing: Missing::Value(SortValue::Text(shard.index.as_str().into())),
            nested: Vec::new(),
        };
        return Ok((SortSource::Column(column), Shown::Text));
    }
    if key.name == "_id" {
        return Err(refused(
            "illegal_argument_exception",
            "Fielddata access on the _id field is disallowed, you can re-enable it by updating the dynamic \
             cluster setting: indices.id_field_data.enabled"
                .to_owned(),
        ));
    }
    let path = mapping.concrete(&key.name);
    let field_type = match mapping.field(&path) {
        Some(FieldType::Object { .. }) | None => match &key.unmapped_type {
            None => return Err(query(format!("No mapping found for [{}] in order to sort on", key.name))),
            Some(name) => unmapped(name).ok_or_else(|| {
                refused("illegal_argument_exception", format!("No mapper found for type [{name}]"))
            })?,
        },
        Some(field_type) => {
            let no_columns = mapping.parameter(&path, "doc_values") == Some(&Value::Bool(false));
            if let Some(reason) = without_columns(&path, field_type, no_columns, &shard.index) {
                return Err(refused("illegal_argument_exception", reason));
            }
            field_type.clone()
        }
    };
    let keyword = field_type.has_text_column();
    if keyword && matches!(key.mode, Some(SortMode::Sum | SortMode::Avg | SortMode::Median)) {
        return Err(query("we only support AVG, MEDIAN and SUM on number based fields".to_owned()));
    }
    if keyword && key.numeric_type.is_some() {
        return Err(query(format!(
            "[numeric_type] option cannot be set on a non-numeric field, got {}",
            field_type.name()
        )));
    }
    if let Some(format) = &key.format
        && field_type.date_formats().is_none()
        && (keyword || matches!(field_type, FieldType::Boolean))
    {
        return Err(refused(
            "illegal_argument_exception",
            format!(
                "Field [{path}] of type [{}] doesn't support formats, but [{format}] was given",
                field_type.name()
            ),
        ));
    }
    let (kind, shown) =
        kinds(key, &field_type).map_err(|reason| refused("illegal_argument_exception", reason))?;
    let mode = key.mode.unwrap_or(if key.descending { SortMode::Max } else { SortMode::Min });
    let missing = missing(key, kind, &shown)?;
    let nested = nested(key, mapping, scope).map_err(query)?;
    let column = ColumnKey { path: path.into_owned(), kind, mode, missing, nested };
    Ok((SortSource::Column(column), shown))
}

/// The distances that a `_geo_distance` key sorts by.
fn distances(
    key: &SortField,
    of: &FieldDistance,
    mapping: &Mapping,
    scope: Option<&str>,
    shard: &Shard,
) -> Result<SortSource, SearchError> {
    let FieldDistance { field, distance, ignore_unmapped } = of;
    let refused = |reason: String| SearchError::OfShard {
        shard: Box::new(shard.clone()),
        kind: "query_shard_exception",
        reason,
    };
    match mapping.field(field) {
        Some(FieldType::GeoPoint) if mapping.parameter(field, "doc_values") == Some(&Value::Bool(false)) => {
            return Err(refused(format!(
                "Can't load fielddata on [{field}] because fielddata is unsupported on fields of type [geo_point]. Use \
                 doc values instead."
            )));
        }
        Some(FieldType::GeoPoint) => {}
        None if *ignore_unmapped => {}
        None => {
            return Err(refused(format!("failed to find mapper for [{field}] for geo distance based sort")));
        }
        Some(other) => {
            return Err(refused(format!(
                "field [{field}] is of type [{}], but [_geo_distance] sorts by [geo_point] fields",
                other.name()
            )));
        }
    }
    let named = SortField { name: field.clone(), ..key.clone() };
    let column = ColumnKey {
        path: mapping.concrete(field).into_owned(),
        kind: ColumnKind::Double,
        mode: key.mode.unwrap_or(if key.descending { SortMode::Max } else { SortMode::Min }),
        missing: Missing::Value(SortValue::Double(f64::INFINITY)),
        nested: nested(&named, mapping, scope).map_err(refused)?,
    };
    Ok(SortSource::Distance(column, distance.clone()))
}

/// The nested fields on the way from what is sorted to the objects whose values count.
///
/// # Errors
/// If they are not those around the field.
fn nested(
    key: &SortField,
    mapping: &Mapping,
    scope: Option<&str>,
) -> Result<Vec<(String, Option<Query>)>, String> {
    let mut levels = Vec::new();
    for (path, filter) in &key.nested {
        if !mapping.nested_fields().contains(path) {
            return Err(format!("[nested] failed to find nested object under path [{path}]"));
        }
        let last = levels.last().map_or(scope, |(last, _): &(String, _)| Some(last));
        if mapping.is_nested_inside(last, path) {
            levels.push((path.clone(), filter.clone()));
        } else if !levels.is_empty()
            || !scope.is_some_and(|scope| scope == path || mapping.is_nested_inside(Some(path), scope))
        {
            return Err(format!("[nested] path [{path}] of [sort] is not inside the one before it"));
        }
    }
    let reached = levels.last().map_or(scope, |(path, _)| Some(path));
    match mapping.nested_inside(reached, &key.name) {
        Some(_) if levels.is_empty() && !(scope.is_none() && mapping.is_included(&key.name)) => Err(format!(
            "it is mandatory to set the [nested] context on the nested sort field: [{}].",
            key.name
        )),
        Some(path) if !levels.is_empty() => {
            Err(format!("[nested] of [sort] by [{}] ends before the nested field [{path}]", key.name))
        }
        _ => Ok(levels),
    }
}

/// Why a field has no column to sort or collapse by, as an error message; `None` if it has one.
pub fn without_columns(path: &str, field_type: &FieldType, off: bool, index: &str) -> Option<String> {
    match field_type {
        FieldType::Text { .. } if !field_type.has_text_column() => Some(format!(
            "Fielddata is disabled on [{path}] in [{index}]. Text fields are not optimised for operations that \
             require per-document field data like aggregations and sorting, so these operations are disabled \
             by default. Please use a keyword field instead. Alternatively, set fielddata=true on [{path}] in \
             order to load field data by uninverting the inverted index. Note that this can use significant \
             memory."
        )),
        FieldType::SparseVector | FieldType::RankFeatures | FieldType::SemanticText(_) => {
            Some(format!("[{}] fields do not support sorting, scripting or aggregating", field_type.name()))
        }
        FieldType::Completion(_) => {
            Some(format!("Fielddata is not supported on field [{path}] of type [completion]"))
        }
        FieldType::DenseVector { .. } | FieldType::Binary | FieldType::Range(_) => {
            Some(format!("Field [{path}] of type [{}] doesn't support sort", field_type.name()))
        }
        FieldType::GeoPoint => Some(
            "can't sort on geo_point field without using specific sorting feature, like geo_distance"
                .to_owned(),
        ),
        _ if off => Some(format!(
            "Can't load fielddata on [{path}] because fielddata is unsupported on fields of type [{}]. Use doc \
             values instead.",
            field_type.name()
        )),
        _ => None,
    }
}

/// The column kind that values of a field type are compared as, and how they are shown.
fn kinds(key: &SortField, field_type: &FieldType) -> Result<(ColumnKind, Shown), String> {
    let formats = |given: &[DateFormat]| -> Result<Vec<DateFormat>, String> {
        match &key.format {
            Some(format) => parse_formats(format),
            None => Ok(given.to_vec()),
        }
    };
    let date = |formats, nanos| Shown::Date { formats, formatted: key.format.is_some(), nanos };
    Ok(match (key.numeric_type.as_deref(), field_type) {
        (Some("date_nanos"), FieldType::Date { formats: own }) => {
            (ColumnKind::Nanos, date(formats(own)?, true))
        }
        (None | Some("date"), FieldType::Date { formats: own }) => {
            (ColumnKind::Long, date(formats(own)?, false))
        }
        (None | Some("date_nanos"), FieldType::DateNanos { formats: own }) => {
            (ColumnKind::Long, date(formats(own)?, true))
        }
        (Some("date"), FieldType::DateNanos { formats: own }) => {
            (ColumnKind::Millis, date(formats(own)?, false))
        }
        (Some("date"), _) => (ColumnKind::Long, date(formats(&[])?, false)),
        (Some("date_nanos"), _) => (ColumnKind::Nanos, date(formats(&[])?, true)),
        (Some("double"), _) => (ColumnKind::Double, Shown::Double),
        (Some(_), _) => (ColumnKind::Long, Shown::Long),
        (None, FieldType::Ip) => (ColumnKind::Keyword, Shown::Ip),
        (None, texts) if texts.has_text_column() => (ColumnKind::Keyword, Shown::Text),
        (None, FieldType::UnsignedLong) => (ColumnKind::Unsigned, Shown::Unsigned),
        (None, FieldType::Float | FieldType::HalfFloat) => (ColumnKind::Double, Shown::Float),
        (None, FieldType::Double | FieldType::ScaledFloat { .. }) => (ColumnKind::Double, Shown::Double),
        (None, FieldType::Integer | FieldType::Short | FieldType::Byte) => (ColumnKind::Long, Shown::Int),
        (None, FieldType::Boolean) => (ColumnKind::Long, Shown::Boolean),
        (None, _) => (ColumnKind::Long, Shown::Long),
    })
}

/// The field type that `unmapped_type` names; types that sort alike share one.
fn unmapped(name: &str) -> Option<FieldType> {
    Some(match name {
        "long" => FieldType::Long,
        "integer" => FieldType::Integer,
        "short" => FieldType::Short,
        "byte" => FieldType::Byte,
        "unsigned_long" => FieldType::UnsignedLong,
        "double" | "scaled_float" => FieldType::Double,
        "float" => FieldType::Float,
        "half_float" => FieldType::HalfFloat,
        "boolean" => FieldType::Boolean,
        "date_nanos" => FieldType::DateNanos { formats: parse_formats(DEFAULT_NANOS_FORMAT).ok()? },
        "date" => FieldType::Date { formats: parse_formats(DEFAULT_FORMAT).ok()? },
        "ip" => FieldType::Ip,
        "keyword" | "version" | "constant_keyword" | "wildcard" => {
            return match sparrow_mapping::Mapping::parse(
                &serde_json::json!({"properties": {"f": {"type": "keyword"}}}),
            ) {
                Ok(mapping) => mapping.field("f").cloned(),
                Err(_) => None,
            };
        }
        _ => return None,
    })
}

fn missing(key: &SortField, kind: ColumnKind, shown: &Shown) -> Result<Missing, SearchError> {
    let first = match &key.missing {
        None => false,
        Some(Value::String(text)) if text == "_last" => false,
        Some(Value::String(text)) if text == "_first" => true,
        Some(value) => {
            if kind == ColumnKind::Keyword && *shown == Shown::Text {
                let text: Arc<str> = match value {
                    Value::String(text) => text.as_str().into(),
                    other => other.to_string().into(),
                };
                return Ok(Missing::Value(SortValue::Text(text)));
            }
            return shown.read(value).map(Missing::Value);
        }
    };
    if kind == ColumnKind::Keyword {
        return Ok(if first { Missing::First } else { Missing::Last });
    }
    // The lowest value comes first when ascending and last when descending.
    let lowest = first != key.descending;
    Ok(Missing::Value(shown.extreme(lowest)))
}
