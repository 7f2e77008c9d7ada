//! Exact values and ranges of numbers, booleans and dates, and ranges of keywords.

use std::ops::{Bound, RangeInclusive};

use serde_json::Value;
use tantivy::Term;
use tantivy::query::{EnableScoring, Query as _, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;

use crate::query::compile::Compiler;
use crate::query::kinds::term::scalar_text;
use crate::query::values::value_range::Interval;
use sparrow_mapping::date::parse_formats;
use sparrow_mapping::{DateFormat, FieldType, NumberValue, normalize_float};
use sparrow_query::RangeQuery;
use sparrow_scoring::dates::DateRequest;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::number_term;
use sparrow_scoring::multi_term::{TermFilter, multi_term};
use sparrow_scoring::weights;

impl Compiler<'_> {
    /// Compiles to the documents with one exact number or boolean; without scores.
    pub(crate) fn number_term(
        &mut self,
        field: &str,
        field_type: &FieldType,
        text: &str,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let Some(term) = self.number_key(field, field_type, text)? else { return Ok(weights::none()) };
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        Ok(query.weight(EnableScoring::disabled_from_searcher(self.searcher()))?)
    }

    /// The term of a number or boolean; `None` if no document can have the value.
    pub(crate) fn number_key(
        &self,
        field: &str,
        field_type: &FieldType,
        text: &str,
    ) -> Result<Option<Term>, QueryError> {
        let value = match field_type {
            FieldType::Boolean => Some(NumberValue::Bool(boolean(text)?)),
            FieldType::Long
            | FieldType::Integer
            | FieldType::Short
            | FieldType::Byte
            | FieldType::UnsignedLong
            | FieldType::TokenCount { .. } => whole_value(field_type, text)?,
            FieldType::Double | FieldType::Float | FieldType::HalfFloat | FieldType::ScaledFloat { .. } => {
                Some(NumberValue::F64(normalize_float(field_type, number(text)?)))
            }
            FieldType::Date { .. }
            | FieldType::DateNanos { .. }
            | FieldType::Text { .. }
            | FieldType::Keyword { .. }
            | FieldType::Ip
            | FieldType::Alias { .. }
            | FieldType::Object { .. } => None,
            FieldType::Binary => {
                return Err(QueryError::NotSearchable { field: field.to_owned(), actual: field_type.name() });
            }
            FieldType::SparseVector
            | FieldType::RankFeatures
            | FieldType::RankFeature { .. }
            | FieldType::DenseVector(_)
            | FieldType::GeoPoint
            | FieldType::Range(_)
            | FieldType::Completion(_)
            | FieldType::SemanticText(_) => {
                return Err(QueryError::Unsupported {
                    field: field.to_owned(),
                    actual: field_type.name(),
                    clause: "term",
                });
            }
        };
        let path = self.snapshot.mapping().concrete(field);
        Ok(value.map(|value| number_term(self.snapshot.schema(), &path, value)))
    }

    /// Compiles a range on a field of any type; without scores.
    pub(crate) fn range(&mut self, query: &RangeQuery) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        if let Some(terms) = self.string_terms(&query.field) {
            let text = |value: &Option<Value>| -> Result<Option<String>, QueryError> {
                match value {
                    None | Some(Value::Null) => Ok(None),
                    Some(value) => self.term_text(&query.field, value).map(Some),
                }
            };
            let lower = match (text(&query.gt)?, text(&query.gte)?) {
                (Some(value), _) => Bound::Excluded(value),
                (None, Some(value)) => Bound::Included(value),
                (None, None) => Bound::Unbounded,
            };
            let upper = match (text(&query.lt)?, text(&query.lte)?) {
                (Some(value), _) => Bound::Excluded(value),
                (None, Some(value)) => Bound::Included(value),
                (None, None) => Bound::Unbounded,
            };
            return Ok(multi_term(terms, TermFilter::Range(lower, upper), false));
        }
        let field_type = match self.snapshot.mapping().field(&query.field) {
            None | Some(FieldType::Object { .. }) => return Ok(weights::none()),
            Some(field_type) => field_type.clone(),
        };
        let interval = match &field_type {
            FieldType::Date { .. } | FieldType::DateNanos { .. } => return self.date_range(query, true),
            FieldType::Ip => return self.address_range(query),
            FieldType::Range(of) => return self.range_of_ranges(query, of, true),
            FieldType::Boolean => boolean_interval(query)?,
            other if other.is_integer() => {
                let (lower, upper) = whole_interval(query)?;
                Interval::Whole(lower, upper)
            }
            other if other.is_float() => float_interval(other, query)?,
            other => {
                return Err(QueryError::Unsupported {
                    field: query.field.clone(),
                    actual: other.name(),
                    clause: "range",
                });
            }
        };
        Ok(self.interval_weight(&query.field, interval))
    }

    /// Compiles a range of dates; without scores. `in_range` is false when the clause stands for one exact
    /// value, which changes error messages.
    pub(crate) fn date_range(
        &mut self,
        query: &RangeQuery,
        in_range: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let Some((lower, upper)) = self.date_bounds(query, in_range)? else { return Ok(weights::none()) };
        Ok(self.interval_weight(&query.field, Interval::Whole(lower, upper)))
    }

    /// The first and the last moment of a range of dates; `None` if the field has none.
    pub(crate) fn date_bounds(
        &self,
        query: &RangeQuery,
        in_range: bool,
    ) -> Result<Option<(i128, i128)>, QueryError> {
        let field_type = self.snapshot.mapping().field(&query.field);
        let formats: Vec<DateFormat> = match (&query.format, field_type.and_then(FieldType::date_formats)) {
            (Some(format), _) => {
                parse_formats(format).map_err(|reason| QueryError::DatePattern { reason })?
            }
            (None, Some(formats)) => formats.to_vec(),
            (None, None) => return Ok(None),
        };
        let in_nanos = matches!(field_type, Some(FieldType::DateNanos { .. }));
        let request = DateRequest::new(&formats, self.now, query.time_zone.as_deref())?;
        let moment = |value: &Option<Value>, round_up: bool| -> Result<Option<i128>, QueryError> {
            match value {
                None | Some(Value::Null) => Ok(None),
                Some(value) => {
                    let text = scalar_text(&query.field, value)?;
                    let read = match in_nanos {
                        true => request.parse_nanos(&text, round_up, in_range)?,
                        false => request.parse(&text, round_up, in_range)?.into(),
                    };
                    Ok(Some(read))
                }
            }
        };
        // A bound that names a whole day covers it: `lte` and `gt` look at its last millisecond or nanosecond.
        let lower = match (moment(&query.gt, true)?, moment(&query.gte, false)?) {
            (Some(after), _) => after + 1,
            (None, Some(from)) => from,
            (None, None) => i128::from(i64::MIN),
        };
        let upper = match (moment(&query.lt, false)?, moment(&query.lte, true)?) {
            (Some(before), _) => before - 1,
            (None, Some(to)) => to,
            (None, None) => i128::from(i64::MAX),
        };
        Ok(Some((lower, upper)))
    }
}

fn boolean(text: &str) -> Result<bool, QueryError> {
    match text {
        "true" => Ok(true),
        "false" | "" => Ok(false),
        _ => Err(QueryError::BooleanFormat { input: text.to_owned() }),
    }
}

/// Parses a number as Java's `Double.parseDouble` does, except for forms that JSON and users do not write,
/// such as hexadecimal.
pub(crate) fn number(text: &str) -> Result<f64, QueryError> {
    let malformed = || QueryError::NumberFormat { input: text.to_owned() };
    let digits = text.trim();
    if !digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Err(malformed());
    }
    let value: f64 = digits.parse().map_err(|_| malformed())?;
    if value.is_finite() { Ok(value) } else { Err(malformed()) }
}

/// Parses a number to a whole one, rounded down, and whether it had a fraction. Whole numbers lose no digits.
fn whole(text: &str) -> Result<(i128, bool), QueryError> {
    if let Ok(value) = text.trim().parse::<i128>() {
        return Ok((value, false));
    }
    let value = number(text)?;
    Ok((value.floor() as i128, value.fract() != 0.0))
}

/// Parses a value of a whole-number field; `None` if no document can have it.
fn whole_value(field_type: &FieldType, text: &str) -> Result<Option<NumberValue>, QueryError> {
    let (value, fraction) = whole(text)?;
    if fraction || !whole_bounds(field_type).contains(&value) {
        return Ok(None);
    }
    Ok(i64::try_from(value)
        .map(NumberValue::I64)
        .or_else(|_| u64::try_from(value).map(NumberValue::U64))
        .ok())
}

/// Range of values that a whole-number type can hold.
pub(crate) fn whole_bounds(field_type: &FieldType) -> RangeInclusive<i128> {
    match field_type {
        FieldType::Byte => i128::from(i8::MIN)..=i128::from(i8::MAX),
        FieldType::Short => i128::from(i16::MIN)..=i128::from(i16::MAX),
        FieldType::Integer => i128::from(i32::MIN)..=i128::from(i32::MAX),
        FieldType::UnsignedLong => 0..=i128::from(u64::MAX),
        _ => i128::from(i64::MIN)..=i128::from(i64::MAX),
    }
}

/// The bound of a range as text; `None` if it is missing or `null`, which leaves that end open.
fn bound_text(field: &str, value: &Option<Value>) -> Result<Option<String>, QueryError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => scalar_text(field, value).map(Some),
    }
}

/// The first and the last whole number of a range; none if the first is the larger.
pub(crate) fn whole_interval(query: &RangeQuery) -> Result<(i128, i128), QueryError> {
    let bound = |value: &Option<Value>| -> Result<Option<(i128, bool)>, QueryError> {
        bound_text(&query.field, value)?.map(|text| whole(&text)).transpose()
    };
    let lower = match (bound(&query.gt)?, bound(&query.gte)?) {
        (Some((value, _)), _) => value + 1,
        (None, Some((value, fraction))) => value + i128::from(fraction),
        (None, None) => i128::MIN,
    };
    let upper = match (bound(&query.lt)?, bound(&query.lte)?) {
        (Some((value, fraction)), _) => value - i128::from(!fraction),
        (None, Some((value, _))) => value,
        (None, None) => i128::MAX,
    };
    Ok((lower, upper))
}

fn float_interval(field_type: &FieldType, query: &RangeQuery) -> Result<Interval, QueryError> {
    let bound = |value: &Option<Value>| -> Result<Option<f64>, QueryError> {
        bound_text(&query.field, value)?.map(|text| number(&text)).transpose()
    };
    // A bound is not rounded to the field's precision: `gt: 0.1` on a `float` holding 0.1 would else
    // depend on the direction in which 0.1 rounds. Elasticsearch rounds, and so do we.
    let value = |bound: f64| normalize_float(field_type, bound);
    let lower = match (bound(&query.gt)?, bound(&query.gte)?) {
        (Some(after), _) => value(after).next_up(),
        (None, Some(from)) => value(from),
        (None, None) => f64::NEG_INFINITY,
    };
    let upper = match (bound(&query.lt)?, bound(&query.lte)?) {
        (Some(before), _) => value(before).next_down(),
        (None, Some(to)) => value(to),
        (None, None) => f64::INFINITY,
    };
    Ok(Interval::Float(lower, upper))
}

fn boolean_interval(query: &RangeQuery) -> Result<Interval, QueryError> {
    let bound = |value: &Option<Value>| -> Result<Option<bool>, QueryError> {
        bound_text(&query.field, value)?.map(|text| boolean(&text)).transpose()
    };
    let (gt, gte, lt, lte) = (bound(&query.gt)?, bound(&query.gte)?, bound(&query.lt)?, bound(&query.lte)?);
    if gt == Some(true) || lt == Some(false) {
        return Ok(Interval::Boolean(true, false));
    }
    let lower = gt.is_some() || gte == Some(true);
    let upper = !(lt.is_some() || lte == Some(false));
    Ok(Interval::Boolean(lower, upper))
}
