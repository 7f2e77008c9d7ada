//! Text forms of bucket keys.

use serde_json::{Map, Value};

use super::ast::{Aggregation, AggregationKind, Pipeline, RangeBucket};
use super::error::AggregationError;
use super::fields::{Kind, Resolved};
use super::format::{Decimal, ValueFormat};
use super::key::Key;
use super::write::Writer;
use super::write_summaries::single;

/// Name of a range's bucket, and its lower and upper end as numbers; `None` if unbounded.
pub(super) fn range_name(
    field: Option<&Resolved>,
    format: &ValueFormat,
    asked: &RangeBucket,
) -> Result<(String, Option<f64>, Option<f64>), AggregationError> {
    let end = |value: &Option<Value>| -> Result<Option<f64>, AggregationError> {
        let Some(value) = value else { return Ok(None) };
        match field {
            Some(field) if field.kind == Kind::Date => {
                // `now` is the same for both ends and all buckets only to the millisecond.
                let now = time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
                Ok(Some(field.date(value, now as i64, false)? as f64))
            }
            _ => Ok(sparrow_mapping::java_string(value).trim().parse().ok()),
        }
    };
    let (from, to) = (end(&asked.from)?, end(&asked.to)?);
    let shown = |end: Option<f64>| end.map_or_else(|| "*".to_owned(), |end| format.key(end));
    let name = asked.key.clone().unwrap_or_else(|| format!("{}-{}", shown(from), shown(to)));
    Ok((name, from, to))
}

impl Writer<'_> {
    /// Members of the result of `min_bucket` or `max_bucket`; `read` is the aggregation whose buckets were compared.
    pub(super) fn extreme(
        &self,
        pipeline: &Pipeline,
        read: Option<&Aggregation>,
        value: f64,
        keys: &[Key],
    ) -> Result<Map<String, Value>, AggregationError> {
        let format = match &pipeline.format {
            Some(format) => ValueFormat::Decimal(Decimal::new(format)),
            None => ValueFormat::Raw,
        };
        let mut out = Map::new();
        single(Some(value).filter(|value| value.is_finite()), &format, &mut out);
        let names = keys.iter().map(|key| self.bucket_name(read, key)).collect::<Result<Vec<_>, _>>()?;
        out.insert("keys".to_owned(), names.into());
        Ok(out)
    }

    fn bucket_name(&self, read: Option<&Aggregation>, key: &Key) -> Result<String, AggregationError> {
        let raw = ValueFormat::Raw;
        let format = read.map_or(&raw, |read| self.format(read.id));
        Ok(match (read.map(|read| (&read.kind, read.id)), key) {
            (Some((AggregationKind::Range(range), id)), Key::Slot(slot)) => match range.ranges.get(*slot) {
                Some(asked) => range_name(self.fields.get(&id).copied(), format, asked)?.0,
                None => slot.to_string(),
            },
            (Some((AggregationKind::AddressRanges(asked), _)), Key::Slot(slot)) => {
                asked.ranges.get(*slot).map_or_else(|| slot.to_string(), |range| range.key.clone())
            }
            (Some((AggregationKind::Filters(filters), _)), Key::Slot(slot)) => {
                let name =
                    filters.filters.get(*slot).map_or(filters.other.as_ref(), |(name, _)| name.as_ref());
                name.cloned().unwrap_or_else(|| slot.to_string())
            }
            (_, Key::Text(text)) => format.keyword(text).into_owned(),
            (_, Key::Long(value)) => format.whole_text(*value).unwrap_or_else(|| value.to_string()),
            (_, Key::Unsigned(value)) => match format {
                ValueFormat::Cell(cells) => cells.name(*value),
                _ => value.to_string(),
            },
            (Some((AggregationKind::VariableWidths(_), _)), Key::Tuple(parts)) => {
                parts.get(1).map_or_else(String::new, |center| format.key(center.number()))
            }
            (_, Key::Slot(slot)) => slot.to_string(),
            (_, Key::Tuple(parts)) => {
                let names: Result<Vec<_>, _> =
                    parts.iter().map(|part| self.bucket_name(None, part)).collect();
                names?.join("|")
            }
            (_, key) => format.key(key.number()),
        })
    }
}
