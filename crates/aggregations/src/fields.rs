//! Fields as aggregations see them: the type of their values, how values are formatted, and where they are stored.

use std::sync::Arc;

use serde_json::Value;

use super::ast::{ValueSource, ValueType};
use super::error::AggregationError;
use super::format::{Decimal, ValueFormat, date_format};
use super::key::Key;
use sparrow_mapping::{DateFormat, FieldType, IGNORED, Mapping, ROUTING, date, ip, java_string};
use sparrow_segments::schema::{SEQ_NO, VERSION};
use sparrow_tantivy_index::Snapshot;
use sparrow_tantivy_index::query::sorted::Distance;
use sparrow_tantivy_index::query::{DateRequest, QueryError, keyword_column, number_column};
use sparrow_wire::version::has_forms_of_8;
use sparrow_wire::{Zone, deprecation};

/// Types of values as aggregations tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Text,
    /// Signed integers.
    Long,
    /// Unsigned integers.
    Unsigned,
    /// Floating-point numbers.
    Double,
    /// Booleans.
    Boolean,
    /// Dates, in milliseconds since the epoch.
    Date,
}

impl Kind {
    /// Whether keys are numbers.
    pub fn is_numeric(self) -> bool {
        self != Kind::Text
    }
}

/// A field resolved in one index: the type, format and place of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The type of the values.
    pub kind: Kind,
    /// How values are formatted as text.
    pub format: ValueFormat,
    /// Formats in which dates in requests are parsed.
    pub dates: Vec<DateFormat>,
    /// Time zone of dates that do not state one.
    pub time_zone: Option<String>,
    /// Value used for documents that have none.
    pub missing: Option<Key>,
    /// Where the values are stored.
    pub place: Place,
}

impl Resolved {
    /// As a key of a sort, which compares and shows a `date_nanos` in nanoseconds.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        if let (Place::Nanos(column), None) = (&self.place, &self.missing) {
            (self.kind, self.place) = (Kind::Long, Place::Numbers(column.clone()));
            self.format = ValueFormat::Raw;
        }
        self
    }
}

/// Where the values of a field are stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// Nowhere: the field is not mapped.
    Nowhere,
    /// In the column of keywords with this name.
    Texts(String),
    /// In the column of numbers with this name.
    Numbers(String),
    /// In the column of numbers with this name, as nanoseconds since the epoch; the values are milliseconds.
    Nanos(String),
    /// As points in the column of this name, whose distances are the values.
    Distances(String, Distance),
    /// In the column of keywords with this name, as ranges of numbers or dates of this type.
    Ranges(String, FieldType),
    /// In the mapping: all documents have this one value.
    Constant(Arc<str>),
}

/// Types of values that an aggregation accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Values of all types.
    Any,
    /// Numbers, dates and booleans; unmapped fields count as numbers.
    Numbers,
    /// Numbers, dates and booleans; unmapped fields count as dates.
    Dates,
    /// Numbers only.
    OnlyNumbers,
    /// Texts only.
    OnlyTexts,
}

/// Whether a parameter of a field that switches something is on, as it is unless the mapping says otherwise.
fn is_on(mapping: &Mapping, path: &str, parameter: &str) -> bool {
    mapping.parameter(path, parameter).is_none_or(|value| value != false && value != "false")
}

/// The index in which fields are resolved, and the current time.
pub struct Fields<'a> {
    /// Snapshot of the index.
    pub root: &'a Arc<Snapshot>,
    /// The documents that are aggregated: those of the index, or the objects of a nested field.
    pub snapshot: &'a Arc<Snapshot>,
    /// Name of the index.
    pub index: &'a str,
    /// Current time, in milliseconds since the epoch.
    pub now: i64,
}

impl Fields<'_> {
    /// Resolves the field of a source. An unmapped field has no values except those from `missing`.
    pub fn resolve(
        &self,
        source: &ValueSource,
        aggregation: &str,
        accepts: Accepts,
    ) -> Result<Resolved, AggregationError> {
        let path = &*self.snapshot.mapping().concrete(&source.field);
        let found = match &source.distance {
            Some(distance) => self.distances(path, distance)?,
            None => self.place(path, aggregation)?,
        };
        let (mut kind, place, mut dates) = match found {
            Some(field) => field,
            None => {
                let kind = match (source.value_type, accepts) {
                    (Some(ValueType::String), _) => Kind::Text,
                    (Some(ValueType::Long), _) => Kind::Long,
                    (Some(ValueType::Double), _) => Kind::Double,
                    (Some(ValueType::Date), _) | (None, Accepts::Dates) => Kind::Date,
                    (Some(ValueType::Boolean), _) => Kind::Boolean,
                    (None, Accepts::Any | Accepts::OnlyTexts) => Kind::Text,
                    (None, Accepts::Numbers | Accepts::OnlyNumbers) => Kind::Double,
                };
                (kind, Place::Nowhere, Vec::new())
            }
        };
        let fits = match accepts {
            Accepts::Any => true,
            Accepts::OnlyTexts => kind == Kind::Text,
            Accepts::Numbers | Accepts::Dates => kind.is_numeric(),
            Accepts::OnlyNumbers => matches!(kind, Kind::Long | Kind::Unsigned | Kind::Double),
        };
        // Version 8 has them as a remainder of version 7, and says so.
        let is_remainder = kind == Kind::Boolean && aggregation == "date_histogram";
        if !fits || is_remainder && !has_forms_of_8() {
            let name = self.snapshot.mapping().field(path).map_or("keyword", FieldType::name);
            return Err(unsupported(path, name, aggregation));
        }
        if is_remainder {
            deprecation::warn("Running DateHistogram aggregations on [boolean] fields is deprecated");
        }
        // A date histogram of numbers takes them for dates.
        if accepts == Accepts::Dates && kind != Kind::Date {
            kind = Kind::Date;
        }
        if kind == Kind::Date && dates.is_empty() {
            dates = date::parse_formats(date::DEFAULT_FORMAT).unwrap_or_default();
        }
        let zone = match &source.time_zone {
            Some(zone) => zone_of(zone)?,
            None => Zone::UTC,
        };
        let format = match (&source.format, kind) {
            (Some(format), Kind::Date) => {
                dates = date::parse_formats(format).map_err(AggregationError::IllegalArgument)?;
                let first = date_format(format).unwrap_or(DateFormat::StrictDateOptionalTime);
                ValueFormat::Date(first, zone)
            }
            (Some(format), Kind::Long | Kind::Unsigned | Kind::Double) => {
                ValueFormat::Decimal(Decimal::new(format))
            }
            (Some(format), Kind::Boolean) => {
                return Err(AggregationError::IllegalArgument(format!(
                    "Field [{path}] of type [boolean] does not support custom formats, got [{format}]"
                )));
            }
            (Some(format), Kind::Text) if place != Place::Nowhere => {
                return Err(AggregationError::IllegalArgument(format!(
                    "Field [{path}] of type [keyword] does not support custom formats, got [{format}]"
                )));
            }
            (_, Kind::Date) => {
                let first = dates.first().cloned().unwrap_or(DateFormat::StrictDateOptionalTime);
                ValueFormat::Date(first, zone)
            }
            (None, Kind::Boolean) => ValueFormat::Boolean,
            (None, Kind::Text) if self.snapshot.mapping().field(path) == Some(&FieldType::Ip) => {
                ValueFormat::Ip
            }
            (_, _) => ValueFormat::Raw,
        };
        let mut resolved =
            Resolved { kind, format, dates, time_zone: source.time_zone.clone(), missing: None, place };
        if let Some(missing) = &source.missing {
            if let Place::Ranges(..) = resolved.place {
                return Err(AggregationError::IllegalArgument(format!(
                    "[missing] of [{aggregation}] cannot stand for a range, and field [{path}] has ranges"
                )));
            }
            resolved.missing = Some(resolved.key(missing, self.now, false)?);
        }
        Ok(resolved)
    }

    /// Checks that the words of a field can be found.
    pub fn analyzed(&self, path: &str, aggregation: &str) -> Result<(), AggregationError> {
        let mapping = self.snapshot.mapping();
        let path = &*mapping.concrete(path);
        match mapping.field(path) {
            None => Ok(()),
            Some(FieldType::Text { .. } | FieldType::Keyword { .. }) if is_on(mapping, path, "index") => {
                Ok(())
            }
            Some(other) => Err(unsupported(path, other.name(), aggregation)),
        }
    }

    /// Where the points are whose distances are the values.
    fn distances(
        &self,
        path: &str,
        distance: &Distance,
    ) -> Result<Option<(Kind, Place, Vec<DateFormat>)>, AggregationError> {
        match self.snapshot.mapping().field(path) {
            None => Ok(None),
            Some(FieldType::GeoPoint) => {
                let place = Place::Distances(number_column(path), distance.clone());
                Ok(Some((Kind::Double, place, Vec::new())))
            }
            Some(other) => Err(unsupported(path, other.name(), "geo_distance")),
        }
    }

    fn place(
        &self,
        path: &str,
        aggregation: &str,
    ) -> Result<Option<(Kind, Place, Vec<DateFormat>)>, AggregationError> {
        let number = |kind| Ok(Some((kind, Place::Numbers(number_column(path)), Vec::new())));
        match path {
            "_index" => return Ok(Some((Kind::Text, Place::Constant(self.index.into()), Vec::new()))),
            IGNORED => return Ok(Some((Kind::Text, Place::Texts(keyword_column(path)), Vec::new()))),
            "_seq_no" => return Ok(Some((Kind::Long, Place::Numbers(SEQ_NO.to_owned()), Vec::new()))),
            "_version" => return Ok(Some((Kind::Long, Place::Numbers(VERSION.to_owned()), Vec::new()))),
            ROUTING => {
                return Err(AggregationError::IllegalArgument(
                    "Fielddata is not supported on field [_routing] of type [_routing]".to_owned(),
                ));
            }
            "_id" => {
                return Err(AggregationError::IllegalArgument(
                    "Fielddata access on the _id field is disallowed, you can re-enable it by updating the dynamic \
                     cluster setting: indices.id_field_data.enabled"
                        .to_owned(),
                ));
            }
            _ => {}
        }
        let mapping = self.snapshot.mapping();
        let Some(field_type) = mapping.field(path) else { return Ok(None) };
        let grid = matches!(aggregation, "geohash_grid" | "geotile_grid");
        if !is_on(mapping, path, "doc_values")
            && !matches!(field_type, FieldType::Object { .. } | FieldType::Text { .. })
        {
            return Err(AggregationError::IllegalArgument(format!(
                "Can't load fielddata on [{path}] because fielddata is unsupported on fields of type [{}]. Use doc \
                 values instead.",
                field_type.name()
            )));
        }
        match field_type {
            FieldType::Object { .. } => Ok(None),
            other if grid && !matches!(other, FieldType::GeoPoint) => {
                Err(unsupported(path, other.name(), aggregation))
            }
            texts if texts.has_text_column() => {
                Ok(Some((Kind::Text, Place::Texts(keyword_column(path)), Vec::new())))
            }
            // What counts points does not ask where they are.
            FieldType::GeoPoint if matches!(aggregation, "value_count" | "missing" | "cardinality") => {
                number(Kind::Long)
            }
            FieldType::GeoPoint if grid => number(Kind::Long),
            FieldType::Range(of) => {
                let column = keyword_column(path);
                let place = Place::Ranges(column.clone(), (**of).clone());
                match (aggregation, &**of) {
                    ("value_count" | "missing" | "cardinality", _) => {
                        Ok(Some((Kind::Text, Place::Texts(column), Vec::new())))
                    }
                    ("date_histogram", FieldType::Date { formats }) => {
                        Ok(Some((Kind::Date, place, formats.clone())))
                    }
                    ("histogram", of) if of.is_integer() || of.is_float() => {
                        Ok(Some((Kind::Double, place, Vec::new())))
                    }
                    _ => Err(unsupported(path, field_type.name(), aggregation)),
                }
            }
            FieldType::UnsignedLong => number(Kind::Unsigned),
            FieldType::Boolean => number(Kind::Boolean),
            FieldType::Date { formats } => {
                Ok(Some((Kind::Date, Place::Numbers(number_column(path)), formats.clone())))
            }
            FieldType::DateNanos { formats } => {
                Ok(Some((Kind::Date, Place::Nanos(number_column(path)), formats.clone())))
            }
            FieldType::Text { .. } => Err(AggregationError::IllegalArgument(format!(
                "Fielddata is disabled on [{path}] in [{}]. Text fields are not optimised for operations that require \
                 per-document field data like aggregations and sorting, so these operations are disabled by default. \
                 Please use a keyword field instead. Alternatively, set fielddata=true on [{path}] in order to load \
                 field data by uninverting the inverted index. Note that this can use significant memory.",
                self.index
            ))),
            FieldType::SemanticText(_) => Err(AggregationError::IllegalArgument(
                "[semantic_text] fields do not support sorting, scripting or aggregating".to_owned(),
            )),
            FieldType::Completion(_) => Err(AggregationError::IllegalArgument(format!(
                "Fielddata is not supported on field [{path}] of type [completion]"
            ))),
            other if other.is_integer() => number(Kind::Long),
            other if other.is_float() => number(Kind::Double),
            other => Err(unsupported(path, other.name(), aggregation)),
        }
    }
}

pub(super) fn unsupported(path: &str, name: &str, aggregation: &str) -> AggregationError {
    AggregationError::IllegalArgument(format!(
        "Field [{path}] of type [{name}] is not supported for aggregation [{aggregation}]"
    ))
}

/// Parses a time zone, given as a name or an offset.
fn zone_of(zone: &str) -> Result<Zone, AggregationError> {
    Zone::parse(zone).ok_or_else(|| argument(QueryError::TimeZone { input: zone.to_owned() }))
}

/// Converts an error about a value in the request into an error of the aggregation.
fn argument(error: QueryError) -> AggregationError {
    match error {
        QueryError::DateFormat { input, format, .. } => AggregationError::Parse(format!(
            "failed to parse date field [{input}] with format [{format}]: [failed to parse date field [{input}] with \
             format [{format}]]"
        )),
        QueryError::TimeZone { input } => {
            AggregationError::IllegalArgument(format!("Unknown time-zone ID: {input}"))
        }
        other => AggregationError::Query(other),
    }
}

impl Resolved {
    /// The bucket key for a value in the request.
    pub fn key(&self, value: &Value, now: i64, round_up: bool) -> Result<Key, AggregationError> {
        let text = java_string(value);
        let not_a_number = || AggregationError::NumberFormat(text.clone());
        Ok(match self.kind {
            Kind::Text if self.format == ValueFormat::Ip => match ip::parse(&text) {
                Some(address) => Key::Text(ip::keyword(address).into()),
                None => return Err(AggregationError::IllegalArgument(ip::not_an_address(&text))),
            },
            Kind::Text => Key::Text(text.as_str().into()),
            Kind::Double => Key::double(text.trim().parse().map_err(|_| not_a_number())?),
            Kind::Long => match text.parse::<i64>() {
                Ok(value) => Key::Long(value),
                Err(_) => Key::Long(text.trim().parse::<f64>().map_err(|_| not_a_number())? as i64),
            },
            Kind::Unsigned => match text.parse::<u64>() {
                Ok(value) => Key::Unsigned(value),
                Err(_) => Key::Unsigned(text.trim().parse::<f64>().map_err(|_| not_a_number())? as u64),
            },
            Kind::Boolean => match (value, text.as_str()) {
                (Value::Number(number), _) => Key::Long(i64::from(number.as_f64() != Some(0.0))),
                (_, "true") => Key::Long(1),
                (_, "false") => Key::Long(0),
                _ => {
                    return Err(AggregationError::IllegalArgument(format!(
                        "Cannot parse boolean [{text}], expected either [true] or [false]"
                    )));
                }
            },
            Kind::Date => Key::Long(self.date(value, now, round_up)?),
        })
    }

    /// Parses a date in the request to milliseconds since the epoch.
    pub fn date(&self, value: &Value, now: i64, round_up: bool) -> Result<i64, AggregationError> {
        let text = java_string(value);
        let read = |formats: &[DateFormat]| {
            DateRequest::new(formats, now, self.time_zone.as_deref())?.parse(&text, round_up, true)
        };
        let text_of = read(&self.dates);
        match (&text_of, value) {
            // A number that the formats do not read is milliseconds.
            (Err(_), Value::Number(number)) => match number.as_f64() {
                Some(millis) => Ok(millis as i64),
                None => text_of.map_err(argument),
            },
            _ => text_of.map_err(argument),
        }
    }
}
