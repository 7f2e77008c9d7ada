//! The values of a field: what type they have, how they look as text, and how they are read from a segment.

use std::sync::Arc;

use serde_json::Value;
use tantivy::columnar::{Column, ColumnIndex, DynamicColumn, StrColumn};
use tantivy::{SegmentReader, TantivyError};

use super::ast::{ValueSource, ValueType};
use super::error::AggregationError;
use super::format::{Decimal, ValueFormat, date_format};
use super::key::Key;
use crate::mapping::{DateFormat, FieldType, date, java_string};
use crate::query::{DateRequest, QueryError, keyword_column, number_column};
use crate::schema::{SEQ_NO, VERSION};
use crate::snapshot::Snapshot;
use crate::zone::Zone;

/// Types of values as aggregations tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Text,
    /// Whole numbers.
    Long,
    /// Whole numbers that are not negative.
    Unsigned,
    /// Numbers.
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

/// What the values of a field are in one index.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Their type.
    pub kind: Kind,
    /// How they look as text.
    pub format: ValueFormat,
    /// How dates are read.
    pub dates: Vec<DateFormat>,
    /// Zone of dates that state none.
    pub time_zone: Option<String>,
    /// The value of documents without one.
    pub missing: Option<Key>,
    /// Where values are.
    pub place: Place,
}

/// Where the values of a field are.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// Nowhere: the field is not mapped.
    Nowhere,
    /// In a column of keywords.
    Texts(String),
    /// In a column of numbers.
    Numbers(String),
    /// The same for all documents.
    Constant(Arc<str>),
}

/// What an aggregation can work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// All values.
    Any,
    /// Numbers, dates and booleans; unmapped fields count as numbers.
    Numbers,
    /// The same; unmapped fields count as dates.
    Dates,
    /// Numbers only.
    OnlyNumbers,
}

/// The context in which fields are looked up.
pub struct Fields<'a> {
    /// The index.
    pub snapshot: &'a Snapshot,
    /// Its name.
    pub index: &'a str,
    /// Milliseconds since the epoch.
    pub now: i64,
}

impl Fields<'_> {
    /// Looks a field up. Values of an unmapped one may still come from `missing`.
    pub fn resolve(
        &self,
        source: &ValueSource,
        aggregation: &str,
        accepts: Accepts,
    ) -> Result<Resolved, AggregationError> {
        let path = source.field.as_str();
        let (mut kind, place, mut dates) = match self.place(path, aggregation)? {
            Some(found) => found,
            None => {
                let kind = match (source.value_type, accepts) {
                    (Some(ValueType::String), _) => Kind::Text,
                    (Some(ValueType::Long), _) => Kind::Long,
                    (Some(ValueType::Double), _) => Kind::Double,
                    (Some(ValueType::Date), _) | (None, Accepts::Dates) => Kind::Date,
                    (Some(ValueType::Boolean), _) => Kind::Boolean,
                    (None, Accepts::Any) => Kind::Text,
                    (None, Accepts::Numbers | Accepts::OnlyNumbers) => Kind::Double,
                };
                (kind, Place::Nowhere, Vec::new())
            }
        };
        let fits = match accepts {
            Accepts::Any => true,
            Accepts::Numbers | Accepts::Dates => kind.is_numeric(),
            Accepts::OnlyNumbers => matches!(kind, Kind::Long | Kind::Unsigned | Kind::Double),
        };
        if !fits {
            let name = self.snapshot.mapping().field(path).map_or("keyword", FieldType::name);
            return Err(unsupported(path, name, aggregation));
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
            (_, _) => ValueFormat::Raw,
        };
        let mut resolved =
            Resolved { kind, format, dates, time_zone: source.time_zone.clone(), missing: None, place };
        if let Some(missing) = &source.missing {
            resolved.missing = Some(resolved.key(missing, self.now, false)?);
        }
        Ok(resolved)
    }

    fn place(
        &self,
        path: &str,
        aggregation: &str,
    ) -> Result<Option<(Kind, Place, Vec<DateFormat>)>, AggregationError> {
        let number = |kind| Ok(Some((kind, Place::Numbers(number_column(path)), Vec::new())));
        match path {
            "_index" => return Ok(Some((Kind::Text, Place::Constant(self.index.into()), Vec::new()))),
            "_seq_no" => return Ok(Some((Kind::Long, Place::Numbers(SEQ_NO.to_owned()), Vec::new()))),
            "_version" => return Ok(Some((Kind::Long, Place::Numbers(VERSION.to_owned()), Vec::new()))),
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
        let has_values =
            mapping.parameter(path, "doc_values").is_none_or(|value| value != false && value != "false");
        if !has_values && !matches!(field_type, FieldType::Object { .. } | FieldType::Text { .. }) {
            return Err(AggregationError::IllegalArgument(format!(
                "Can't load fielddata on [{path}] because fielddata is unsupported on fields of type [{}]. Use doc \
                 values instead.",
                field_type.name()
            )));
        }
        match field_type {
            FieldType::Object { .. } => Ok(None),
            FieldType::Keyword { .. } => {
                Ok(Some((Kind::Text, Place::Texts(keyword_column(path)), Vec::new())))
            }
            FieldType::UnsignedLong => number(Kind::Unsigned),
            FieldType::Boolean => number(Kind::Boolean),
            FieldType::Date { formats } => {
                Ok(Some((Kind::Date, Place::Numbers(number_column(path)), formats.clone())))
            }
            FieldType::Text { .. } => Err(AggregationError::IllegalArgument(format!(
                "Fielddata is disabled on [{path}] in [{}]. Text fields are not optimised for operations that require \
                 per-document field data like aggregations and sorting, so these operations are disabled by default. \
                 Please use a keyword field instead. Alternatively, set fielddata=true on [{path}] in order to load \
                 field data by uninverting the inverted index. Note that this can use significant memory.",
                self.index
            ))),
            other if other.is_integer() => number(Kind::Long),
            other if other.is_float() => number(Kind::Double),
            other => Err(unsupported(path, other.name(), aggregation)),
        }
    }
}

fn unsupported(path: &str, name: &str, aggregation: &str) -> AggregationError {
    AggregationError::IllegalArgument(format!(
        "Field [{path}] of type [{name}] is not supported for aggregation [{aggregation}]"
    ))
}

/// The zone of a name or an offset.
fn zone_of(zone: &str) -> Result<Zone, AggregationError> {
    Zone::parse(zone).ok_or_else(|| argument(QueryError::TimeZone { input: zone.to_owned() }))
}

/// The cause of a query's error as an error of an aggregation.
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
    /// The key that a value of a request stands for.
    pub fn key(&self, value: &Value, now: i64, round_up: bool) -> Result<Key, AggregationError> {
        let text = java_string(value);
        let not_a_number = || AggregationError::NumberFormat(text.clone());
        Ok(match self.kind {
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

    /// A date of a request in milliseconds.
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

    /// Opens the column of a segment.
    pub fn open(&self, reader: &SegmentReader) -> Result<Values, AggregationError> {
        let columns = reader.fast_fields();
        let column = match &self.place {
            Place::Nowhere => ColumnValues::Nothing,
            Place::Constant(text) => ColumnValues::Constant(text.clone()),
            Place::Texts(name) => match columns.str(name).map_err(QueryError::from)? {
                Some(column) => ColumnValues::Texts(column),
                None => ColumnValues::Nothing,
            },
            Place::Numbers(name) => {
                let mut found = ColumnValues::Nothing;
                for handle in columns.dynamic_column_handles(name).map_err(QueryError::from)? {
                    match handle.open().map_err(|error| QueryError::from(TantivyError::from(error)))? {
                        DynamicColumn::I64(column) => found = ColumnValues::I64(column),
                        DynamicColumn::U64(column) => found = ColumnValues::U64(column),
                        DynamicColumn::F64(column) => found = ColumnValues::F64(column),
                        DynamicColumn::Bool(column) => found = ColumnValues::Bool(column),
                        _ => {}
                    }
                }
                found
            }
        };
        let missing = match &self.missing {
            None => None,
            Some(key) => Some(self.missing_code(&column, key)?),
        };
        Ok(Values { kind: self.kind, column, missing, missing_key: self.missing.clone() })
    }

    fn missing_code(&self, column: &ColumnValues, key: &Key) -> Result<u64, AggregationError> {
        Ok(match (key, column) {
            (Key::Text(text), ColumnValues::Texts(column)) => {
                column.dictionary().term_ord(text.as_bytes())?.unwrap_or(NO_ORDINAL)
            }
            (Key::Text(_), _) => NO_ORDINAL,
            (key, _) => encode(self.kind, key),
        })
    }
}

/// Stands for a text that no document of a segment has.
const NO_ORDINAL: u64 = u64::MAX;

fn encode(kind: Kind, key: &Key) -> u64 {
    match (kind, key) {
        (_, Key::Double(bits)) => *bits,
        (_, Key::Long(value)) => *value as u64,
        (_, Key::Unsigned(value)) => *value,
        _ => 0,
    }
}

/// The values of a field in one segment. Each has a code of 64 bits that is its own within the segment: the ordinal
/// of a text, the bits of a number.
pub struct Values {
    /// Their type.
    pub kind: Kind,
    column: ColumnValues,
    /// Code for documents without a value.
    missing: Option<u64>,
    missing_key: Option<Key>,
}

enum ColumnValues {
    Nothing,
    Texts(StrColumn),
    I64(Column<i64>),
    U64(Column<u64>),
    F64(Column<f64>),
    Bool(Column<bool>),
    Constant(Arc<str>),
}

/// Room for values of a block, kept between blocks.
#[derive(Default)]
pub struct Scratch {
    u64: Vec<u64>,
    i64: Vec<i64>,
    f64: Vec<f64>,
    bool: Vec<bool>,
}

impl Values {
    /// The values of documents as codes, with the place of the document in `docs`, in the order of places.
    pub fn codes(&self, docs: &[u32], scratch: &mut Scratch, out: &mut Vec<(u32, u64)>) {
        out.clear();
        let missing = self.missing;
        let double = self.kind == Kind::Double;
        let from_f64 = |value: f64| match self.kind {
            Kind::Double => (if value == 0.0 { 0.0 } else { value }).to_bits(),
            Kind::Unsigned => value as u64,
            _ => value as i64 as u64,
        };
        match &self.column {
            ColumnValues::Nothing => {
                if let Some(missing) = missing {
                    out.extend((0..docs.len() as u32).map(|place| (place, missing)));
                }
            }
            ColumnValues::Constant(_) => out.extend((0..docs.len() as u32).map(|place| (place, 0))),
            ColumnValues::Texts(column) => {
                read(column.ords(), docs, missing, &mut scratch.u64, |ord| ord, out);
            }
            ColumnValues::I64(column) if double => {
                read(column, docs, missing, &mut scratch.i64, |value| from_f64(value as f64), out);
            }
            ColumnValues::I64(column) => {
                read(column, docs, missing, &mut scratch.i64, |value| value as u64, out);
            }
            ColumnValues::U64(column) if double => {
                read(column, docs, missing, &mut scratch.u64, |value| from_f64(value as f64), out);
            }
            ColumnValues::U64(column) => read(column, docs, missing, &mut scratch.u64, |value| value, out),
            ColumnValues::F64(column) => read(column, docs, missing, &mut scratch.f64, from_f64, out),
            ColumnValues::Bool(column) => {
                read(column, docs, missing, &mut scratch.bool, u64::from, out);
            }
        }
    }

    /// The values of documents as numbers.
    pub fn numbers(&self, docs: &[u32], scratch: &mut Scratch, out: &mut Vec<(u32, f64)>) {
        out.clear();
        let missing = self.missing.map(|code| self.number(code));
        match &self.column {
            ColumnValues::Nothing | ColumnValues::Texts(_) | ColumnValues::Constant(_) => {
                if let Some(missing) = missing {
                    out.extend((0..docs.len() as u32).map(|place| (place, missing)));
                }
            }
            ColumnValues::I64(column) => {
                read(column, docs, missing, &mut scratch.i64, |value| value as f64, out);
            }
            ColumnValues::U64(column) => {
                read(column, docs, missing, &mut scratch.u64, |value| value as f64, out);
            }
            ColumnValues::F64(column) => read(column, docs, missing, &mut scratch.f64, |value| value, out),
            ColumnValues::Bool(column) => {
                read(column, docs, missing, &mut scratch.bool, |value| f64::from(u8::from(value)), out);
            }
        }
    }

    /// The number that a code stands for; for texts it means nothing.
    pub fn number(&self, code: u64) -> f64 {
        match self.kind {
            Kind::Double => f64::from_bits(code),
            Kind::Unsigned => code as f64,
            _ => code as i64 as f64,
        }
    }

    /// How many codes there can be, if they are small numbers.
    pub fn code_limit(&self) -> Option<usize> {
        match &self.column {
            ColumnValues::Texts(column) if self.missing != Some(NO_ORDINAL) => Some(column.num_terms()),
            ColumnValues::Bool(_) => Some(2),
            _ => None,
        }
    }

    /// The dictionary of texts.
    pub fn texts(&self) -> Option<&StrColumn> {
        match &self.column {
            ColumnValues::Texts(column) => Some(column),
            _ => None,
        }
    }

    /// The keys that codes stand for, in their order.
    pub fn keys(&self, codes: &[u64]) -> Result<Vec<Key>, AggregationError> {
        let missing = || self.missing_key.clone().unwrap_or(Key::Missing);
        match (&self.column, self.kind) {
            (ColumnValues::Constant(text), _) => Ok(vec![Key::Text(text.clone()); codes.len()]),
            (ColumnValues::Texts(column), _) => {
                let mut sorted: Vec<(u64, usize)> =
                    codes.iter().enumerate().map(|(place, &code)| (code, place)).collect();
                sorted.sort_unstable();
                let mut ordinals: Vec<u64> =
                    sorted.iter().map(|(code, _)| *code).filter(|&code| code != NO_ORDINAL).collect();
                ordinals.dedup();
                let mut texts: Vec<Arc<str>> = Vec::with_capacity(ordinals.len());
                column.dictionary().sorted_ords_to_term_cb(&ordinals, |bytes| {
                    texts.push(String::from_utf8_lossy(bytes).into());
                })?;
                let mut keys = vec![Key::Missing; codes.len()];
                let mut place_of_text = 0;
                for (code, place) in sorted {
                    if code == NO_ORDINAL {
                        keys[place] = missing();
                        continue;
                    }
                    while ordinals.get(place_of_text).is_some_and(|&ordinal| ordinal < code) {
                        place_of_text += 1;
                    }
                    if let Some(text) = texts.get(place_of_text) {
                        keys[place] = Key::Text(text.clone());
                    }
                }
                Ok(keys)
            }
            (_, Kind::Text) => Ok(vec![missing(); codes.len()]),
            (_, Kind::Double) => Ok(codes.iter().map(|&code| Key::Double(code)).collect()),
            (_, Kind::Unsigned) => Ok(codes.iter().map(|&code| Key::Unsigned(code)).collect()),
            (_, _) => Ok(codes.iter().map(|&code| Key::Long(code as i64)).collect()),
        }
    }

    /// Whether documents without a value count as if they had one.
    pub fn has_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Whether a document has a value, not counting the one for documents without.
    pub fn has_value(&self, doc: u32) -> bool {
        match &self.column {
            ColumnValues::Nothing => false,
            ColumnValues::Constant(_) => true,
            ColumnValues::Texts(column) => column.ords().index.has_value(doc),
            ColumnValues::I64(column) => column.index.has_value(doc),
            ColumnValues::U64(column) => column.index.has_value(doc),
            ColumnValues::F64(column) => column.index.has_value(doc),
            ColumnValues::Bool(column) => column.index.has_value(doc),
        }
    }
}

/// Reads the values of documents, with their places.
fn read<T, U>(
    column: &Column<T>,
    docs: &[u32],
    missing: Option<U>,
    scratch: &mut Vec<T>,
    convert: impl Fn(T) -> U,
    out: &mut Vec<(u32, U)>,
) where
    T: PartialOrd + Copy + Default + std::fmt::Debug + Send + Sync + 'static,
    U: Copy,
{
    if matches!(column.index, ColumnIndex::Full) {
        scratch.clear();
        scratch.resize(docs.len(), T::default());
        column.values.get_vals(docs, scratch);
        out.extend(scratch.iter().enumerate().map(|(place, &value)| (place as u32, convert(value))));
        return;
    }
    for (place, &doc) in docs.iter().enumerate() {
        let before = out.len();
        out.extend(column.values_for_doc(doc).map(|value| (place as u32, convert(value))));
        if let (Some(missing), true) = (missing, out.len() == before) {
            out.push((place as u32, missing));
        }
    }
}
