//! `fields`, `docvalue_fields` and `stored_fields`: values of individual fields in addition to or instead of the source.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sparrow_mapping::{FieldType, GeoPoint, KeywordKind, Mapping, ip, java_double, values_at, wrapped};
use sparrow_request::body::tree_bytes;
use sparrow_runtime::work;
use sparrow_search_body::fields::{FieldRequest, StoredFields};
use sparrow_tantivy_index::query::sorted::{ColumnKey, ColumnKind, Missing, SortMode, SortValue};
use sparrow_tantivy_index::{DocAddress, Snapshot};
use sparrow_wire::glob;

use super::error::{SearchError, Shard};
use super::field_values::{Dates, short, typed};
use super::sort::plan::without_columns;
use super::sort::values::{format_date, format_nanos, parse_formats};
use sparrow_wire::decimal::DecimalFormat;

/// A hit's document, from which field values are read.
pub struct FieldSource<'a> {
    /// Snapshot of the document's index.
    pub snapshot: &'a Snapshot,
    /// Index that holds the document.
    pub shard: &'a Shard,
    /// Address of the document in the snapshot.
    pub addr: DocAddress,
    /// `_id` of the document.
    pub id: &'a str,
    /// Sequence number of the document's last write.
    pub seq_no: u64,
    /// Version of the document.
    pub version: u64,
    /// Stored source of the document.
    pub source: &'a [u8],
}

impl FieldSource<'_> {
    /// Checks that the search may go on.
    ///
    /// # Errors
    /// When it was cancelled or its time is over.
    fn check(&self) -> Result<(), SearchError> {
        work::check().map_err(|stopped| self.stopped(stopped))
    }

    fn stopped(&self, stopped: work::Stopped) -> SearchError {
        SearchError::Query { shard: Box::new(self.shard.clone()), source: stopped.into() }
    }

    fn refused(&self, reason: String) -> SearchError {
        SearchError::OfShard {
            shard: Box::new(self.shard.clone()),
            kind: "illegal_argument_exception",
            reason,
        }
    }

    /// The values of all requested fields, by name. Fields without values are left out.
    ///
    /// # Errors
    /// For formats that a field does not support, and for fields without columns.
    pub fn read(
        &self,
        fields: &[FieldRequest],
        docvalues: &[FieldRequest],
        stored: Option<&StoredFields>,
    ) -> Result<Map<String, Value>, SearchError> {
        let mut out = Map::new();
        let mapping = self.snapshot.mapping();
        for request in docvalues {
            self.check()?;
            for (path, field_type) in matching(mapping, &request.pattern) {
                let exact = path == request.pattern;
                let values = self.docvalues(path, field_type, request.format.as_deref(), exact)?;
                append(&mut out, path, values);
            }
            match &*request.pattern {
                name @ "_seq_no" => append(&mut out, name, vec![self.seq_no.into()]),
                name @ "_version" => append(&mut out, name, vec![self.version.into()]),
                _ => {}
            }
        }
        let stored: &[String] = match stored {
            Some(StoredFields::Some(patterns)) => patterns,
            Some(StoredFields::Nothing) | None => &[],
        };
        if fields.is_empty() && stored.is_empty() {
            return Ok(out);
        }
        if !fields.is_empty() && !mapping.source_filter().enabled {
            return Err(self.refused(format!(
                "Unable to retrieve the requested [fields] since _source is disabled in the mappings for index [{}]",
                self.shard.index
            )));
        }
        work::room_for(self.source.len() + tree_bytes(self.source))
            .map_err(|stopped| self.stopped(stopped))?;
        let source: Value = serde_json::from_slice(self.source).unwrap_or_default();
        out.extend(stored_values(mapping, &source, stored));
        let mut wanted = Vec::new();
        for request in fields {
            self.check()?;
            match &*request.pattern {
                "_id" => insert(&mut out, "_id", vec![self.id.into()]),
                "_ignored" => {
                    let ignored = self.snapshot.ignored_fields(self.addr).map_err(|source| {
                        SearchError::Query { shard: Box::new(self.shard.clone()), source }
                    })?;
                    insert(&mut out, "_ignored", ignored.into_iter().map(Value::from).collect());
                }
                "_index" => insert(&mut out, "_index", vec![self.shard.index.as_str().into()]),
                name @ ("_seq_no" | "_primary_term" | "_source" | "_field_names") => {
                    return Err(self.refused(format!(
                        "error fetching [{name}]: Cannot fetch values for internal field [{name}]."
                    )));
                }
                _ => {}
            }
            let format = request.format.as_deref();
            wanted.extend(
                matching(mapping, &request.pattern)
                    .into_iter()
                    .map(|(path, field_type)| (path, field_type, format)),
            );
            if request.include_unmapped {
                let mut unmapped = Vec::new();
                leaves(&source, "", &mut unmapped);
                for (path, value) in unmapped {
                    let mapped = !matches!(mapping.field(&path), None | Some(FieldType::Object { .. }));
                    if !mapped && glob::matches(&request.pattern, &path) {
                        match out.get_mut(&path) {
                            Some(Value::Array(values)) => values.push(value.clone()),
                            _ => insert(&mut out, &path, vec![value.clone()]),
                        }
                    }
                }
            }
        }
        let scope = self.snapshot.place_of(self.addr).pop().map(|(path, _)| path);
        out.append(&mut self.values_of(&source, scope.as_deref(), &wanted)?);
        Ok(out)
    }

    /// The values of fields in a document, or in an object of the nested field at `scope`. Those of objects inside it are in lists, one
    /// entry for each object that has any, under the path of their nested field.
    fn values_of(
        &self,
        source: &Value,
        scope: Option<&str>,
        wanted: &[(&str, &FieldType, Option<&str>)],
    ) -> Result<Map<String, Value>, SearchError> {
        let mapping = self.snapshot.mapping();
        let mut out = Map::new();
        let mut inside: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for field @ (path, field_type, format) in wanted {
            match mapping.nested_inside(scope, path) {
                Some(nested) => inside.entry(nested).or_default().push(*field),
                None => insert(&mut out, path, self.source_values(source, path, field_type, *format)?),
            }
        }
        for (nested, wanted) in inside {
            let mut objects = Vec::new();
            values_at(source, nested, &mut objects);
            let mut shown = Vec::new();
            for object in objects.into_iter().filter(|value| value.is_object()) {
                self.check()?;
                let alone = wrapped(nested, object);
                let values = self.values_of(&alone, Some(nested), &wanted)?;
                let relative = |(path, value): (String, Value)| match path.strip_prefix(nested) {
                    Some(rest) => (rest.trim_start_matches('.').to_owned(), value),
                    None => (path, value),
                };
                if !values.is_empty() {
                    shown.push(values.into_iter().map(relative).collect::<Map<_, _>>().into());
                }
            }
            insert(&mut out, nested, shown);
        }
        Ok(out)
    }

    /// A field's values as the mapping reads them from the source, with dates in the requested format.
    fn source_values(
        &self,
        source: &Value,
        path: &str,
        field_type: &FieldType,
        format: Option<&str>,
    ) -> Result<Vec<Value>, SearchError> {
        // Every document has it, whether its source says so or not.
        if let FieldType::Keyword { kind: KeywordKind::Constant(Some(value)), .. } = field_type {
            return Ok(vec![Value::from(&**value)]);
        }
        if let FieldType::TokenCount { .. } = field_type {
            // The source has the text.
            return self.docvalues(path, field_type, format, false);
        }
        let dates = match (field_type.date_formats(), format) {
            (Some(formats), None) => Some((formats.to_vec(), formats.to_vec())),
            (Some(formats), Some(format)) => {
                let shown = parse_formats(format).map_err(|reason| self.refused(reason))?;
                Some((formats.to_vec(), shown))
            }
            (None, None) => None,
            (None, Some(_)) => {
                let name = field_type.name();
                return Err(self.refused(format!("Field [{path}] of type [{name}] doesn't support formats.")));
            }
        };
        Ok(source_values(self.snapshot.mapping(), source, path, field_type, dates.as_ref()))
    }

    /// A field's values from its column.
    fn docvalues(
        &self,
        path: &str,
        field_type: &FieldType,
        format: Option<&str>,
        exact: bool,
    ) -> Result<Vec<Value>, SearchError> {
        let off = self.snapshot.mapping().parameter(path, "doc_values") == Some(&Value::Bool(false));
        let is_point = matches!(field_type, FieldType::GeoPoint);
        if let Some(reason) =
            without_columns(path, field_type, off, &self.shard.index).filter(|_| off || !is_point)
        {
            return if exact { Err(self.refused(reason)) } else { Ok(Vec::new()) };
        }
        let format = format.filter(|format| *format != "use_field_mapping");
        let mut decimal = None;
        let formats = match (field_type, format) {
            (FieldType::Date { formats } | FieldType::DateNanos { formats }, None) => formats.clone(),
            (FieldType::Date { .. } | FieldType::DateNanos { .. }, Some(format)) => {
                parse_formats(format).map_err(|reason| self.refused(reason))?
            }
            (_, None) => Vec::new(),
            (other, Some(format)) if other.is_integer() || other.is_float() => {
                decimal = Some(DecimalFormat::parse(format).ok_or_else(|| {
                    self.refused(format!("[format] [{format}] of [{path}] is not supported by this server"))
                })?);
                Vec::new()
            }
            (other, Some(format)) => {
                return Err(self.refused(format!(
                    "Field [{path}] of type [{}] doesn't support formats, but [{format}] was given",
                    other.name()
                )));
            }
        };
        let kind = match field_type {
            texts if texts.has_text_column() => ColumnKind::Keyword,
            FieldType::UnsignedLong => ColumnKind::Unsigned,
            float if float.is_float() => ColumnKind::Double,
            _ => ColumnKind::Long,
        };
        let key = ColumnKey {
            path: self.snapshot.mapping().concrete(path).into_owned(),
            kind,
            mode: SortMode::Min,
            missing: Missing::Last,
            nested: Vec::new(),
        };
        let values = self
            .snapshot
            .column_values(self.addr, &key)
            .map_err(|source| SearchError::Query { shard: Box::new(self.shard.clone()), source })?;
        if let Some(decimal) = decimal {
            return Ok(values.iter().map(|number| decimal.write(as_double(number)).into()).collect());
        }
        Ok(values
            .into_iter()
            .map(|value| match (value, field_type) {
                (SortValue::Null, _) => Value::Null,
                (SortValue::Text(text), FieldType::Ip) => ip::shown(&text).into(),
                (SortValue::Text(text), _) => Value::from(&*text),
                (SortValue::Long(number), FieldType::Boolean) => Value::Bool(number != 0),
                (SortValue::Long(millis), FieldType::Date { .. }) => format_date(&formats, millis).into(),
                (SortValue::Long(nanos), FieldType::DateNanos { .. }) => format_nanos(&formats, nanos).into(),
                (SortValue::Long(encoded), FieldType::GeoPoint) => {
                    let GeoPoint { lat, lon } = GeoPoint::decoded(encoded);
                    format!("{}, {}", java_double(lat), java_double(lon)).into()
                }
                (SortValue::Long(number), _) => number.into(),
                (SortValue::Unsigned(number), _) => number.into(),
                (SortValue::Double(number), FieldType::Float | FieldType::HalfFloat) => short(number as f32),
                (SortValue::Double(number), _) => number.into(),
            })
            .collect())
    }
}

/// The values of the fields that the patterns match and the mapping marks as stored, as it reads them from the source.
pub fn stored_values(mapping: &Mapping, source: &Value, patterns: &[String]) -> Map<String, Value> {
    let mut out = Map::new();
    for (path, field_type) in patterns.iter().flat_map(|pattern| matching(mapping, pattern)) {
        if mapping.parameter(path, "store") == Some(&Value::Bool(true)) {
            let dates = field_type.date_formats().map(|formats| (formats.to_vec(), formats.to_vec()));
            insert(&mut out, path, source_values(mapping, source, path, field_type, dates.as_ref()));
        }
    }
    out
}

/// Values as the mapping reads them from the source.
fn source_values(
    mapping: &Mapping,
    source: &Value,
    path: &str,
    field_type: &FieldType,
    dates: Option<&Dates>,
) -> Vec<Value> {
    let null_value = mapping.parameter(path, "null_value");
    let source_path = &*mapping.source_path(path);
    if matches!(field_type, FieldType::GeoPoint) {
        let shown =
            |GeoPoint { lat, lon }: GeoPoint| serde_json::json!({"type": "Point", "coordinates": [lon, lat]});
        return GeoPoint::all_at(source, source_path, null_value).into_iter().map(shown).collect();
    }
    let mut raw = Vec::new();
    values_at(source, source_path, &mut raw);
    if matches!(field_type, FieldType::DenseVector { .. }) {
        return raw.into_iter().cloned().collect();
    }
    let mut values = Vec::new();
    for value in raw {
        let value = if value.is_null() { null_value } else { Some(value) };
        values.extend(value.and_then(|value| typed(field_type, value, dates)));
    }
    values
}

fn as_double(value: &SortValue) -> f64 {
    match value {
        SortValue::Long(number) => *number as f64,
        SortValue::Unsigned(number) => *number as f64,
        SortValue::Double(number) => *number,
        SortValue::Null | SortValue::Text(_) => f64::NAN,
    }
}

/// Adds values to those that are there: a field may be asked for in several formats.
fn append(out: &mut Map<String, Value>, path: &str, values: Vec<Value>) {
    match out.get_mut(path) {
        Some(Value::Array(before)) => before.extend(values),
        _ => insert(out, path, values),
    }
}

fn insert(out: &mut Map<String, Value>, path: &str, values: Vec<Value>) {
    if !values.is_empty() {
        out.insert(path.to_owned(), Value::Array(values));
    }
}

/// Path and type of the mapped fields that a pattern matches, sorted by path.
fn matching<'a>(mapping: &'a Mapping, wanted: &'a str) -> Vec<(&'a str, &'a FieldType)> {
    let mut fields: Vec<_> = mapping.named_fields().filter(|(path, _)| glob::matches(wanted, path)).collect();
    // A path in a flattened object is no field of the mapping.
    if fields.is_empty() {
        fields
            .extend(mapping.field(wanted).filter(|found| found.is_flattened()).map(|found| (wanted, found)));
    }
    fields.sort_by_key(|(path, _)| *path);
    fields
}

/// Collects path and value of every scalar in a source.
fn leaves<'a>(value: &'a Value, path: &str, out: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(inner, &path, out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, path, out)),
        Value::Null => {}
        scalar => out.push((path.to_owned(), scalar)),
    }
}
