//! Writing of the buckets in results.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::ast::{AddressRanges, Aggregation, AggregationKind, Composite, Filters, Range};
use super::auto_dates::write_interval;
use super::error::AggregationError;
use super::fields::{Kind, Resolved};
use super::format::ValueFormat;
use super::key::Key;
use super::partial::Bucket;
use super::significance::Background;
use super::widths::write_key;
use super::write::Writer;
use super::write_keys::range_name;
use super::write_summaries;
use super::write_values::{key_value, number};
use sparrow_runtime::work;

/// Buckets by their keys, in the order of the answer.
type Buckets = Vec<(Key, Bucket)>;
/// The first members of a bucket, before the results of its sub-aggregations.
type Head = Map<String, Value>;

impl Writer<'_> {
    /// Writes the members of a result that has buckets. `other` is the number of documents in buckets left out of the
    /// response.
    pub(super) fn buckets(
        &mut self,
        aggregation: &Aggregation,
        list: Buckets,
        other: u64,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        let format = self.format(aggregation.id).clone();
        let fields = self.fields;
        match &aggregation.kind {
            AggregationKind::Terms(terms) => {
                if terms.max_doc_count.is_none() {
                    sums(other, out);
                }
                self.listed(aggregation, list, out, |key, docs| {
                    let mut head = Head::new();
                    head.insert("key".to_owned(), key_value(key, &format));
                    let text = match key {
                        Key::Text(_) => None,
                        Key::Long(value) => format.whole_text(*value),
                        key => format.text(key.number()),
                    };
                    if let Some(text) = text {
                        head.insert("key_as_string".to_owned(), text.into());
                    }
                    count(docs, terms.show_error, &mut head);
                    Some(head)
                })
            }
            AggregationKind::MultiTerms(multi) => {
                sums(other, out);
                self.listed(aggregation, list, out, |key, docs| {
                    let mut head = Head::new();
                    write_summaries::tuple_key(key, multi, fields, &mut head);
                    count(docs, multi.show_error, &mut head);
                    Some(head)
                })
            }
            AggregationKind::Significant(asked) => {
                let none = Background::default();
                let background = self.backgrounds.get(&aggregation.id).unwrap_or(&none);
                out.insert("doc_count".to_owned(), other.into());
                out.insert("bg_count".to_owned(), background.docs.into());
                self.keyed(aggregation, list, false, out, |key, docs| {
                    let mut head = Head::new();
                    let text = match key {
                        Key::Long(value) => format.whole_text(*value),
                        Key::Text(_) => None,
                        key => format.text(key.number()),
                    };
                    if let Some(text) = text {
                        head.insert("key_as_string".to_owned(), text.into());
                    }
                    head.insert("key".to_owned(), key_value(key, &format));
                    count(docs, false, &mut head);
                    let counts = background.counts(key, docs, other);
                    head.insert("score".to_owned(), number(asked.heuristic.score(counts)?));
                    head.insert("bg_count".to_owned(), counts.spread.into());
                    Ok(Some((String::new(), head)))
                })
            }
            AggregationKind::Grid(_) => self.listed(aggregation, list, out, |key, docs| {
                let mut head = Head::new();
                head.insert("key".to_owned(), key_value(key, &format));
                count(docs, false, &mut head);
                Some(head)
            }),
            AggregationKind::VariableWidths(_) => self.listed(aggregation, list, out, |key, docs| {
                let mut head = Head::new();
                write_key(key, &mut head);
                count(docs, false, &mut head);
                Some(head)
            }),
            AggregationKind::AutoDates(_) => {
                self.intervals(aggregation, list, false, &format, out)?;
                write_interval(other, out);
                Ok(())
            }
            AggregationKind::Adjacency(adjacency) => self.listed(aggregation, list, out, |key, docs| {
                let Key::Slot(slot) = key else { return None };
                let mut head = Head::new();
                head.insert("key".to_owned(), adjacency.name(*slot).into());
                count(docs, false, &mut head);
                Some(head)
            }),
            AggregationKind::Composite(composite) => {
                if let Some((last, _)) = list.last() {
                    out.insert("after_key".to_owned(), composite_key(composite, last, fields).into());
                }
                self.listed(aggregation, list, out, |key, docs| {
                    let mut head = Head::new();
                    head.insert("key".to_owned(), composite_key(composite, key, fields).into());
                    count(docs, false, &mut head);
                    Some(head)
                })
            }
            AggregationKind::Histogram(histogram) => {
                self.intervals(aggregation, list, histogram.keyed, &format, out)
            }
            AggregationKind::DateHistogram(histogram) => {
                self.intervals(aggregation, list, histogram.keyed, &format, out)
            }
            AggregationKind::Range(range) => self.ranges(aggregation, range, list, out),
            AggregationKind::AddressRanges(asked) => self.addresses(aggregation, asked, list, out),
            AggregationKind::Filters(filters) => self.filters(aggregation, filters, list, out),
            _ => {
                let bucket = list.into_iter().next().map(|(_, bucket)| bucket).unwrap_or_default();
                out.insert("doc_count".to_owned(), bucket.docs.into());
                self.list(&aggregation.subs, bucket.subs, out)
            }
        }
    }

    /// Writes buckets as a list. `head` makes the leading members of a bucket from its key and its number of
    /// documents; a bucket for which it returns `None` is left out.
    fn listed(
        &mut self,
        aggregation: &Aggregation,
        list: Buckets,
        out: &mut Map<String, Value>,
        head: impl Fn(&Key, u64) -> Option<Head>,
    ) -> Result<(), AggregationError> {
        self.keyed(aggregation, list, false, out, |key, docs| {
            Ok(head(key, docs).map(|head| (String::new(), head)))
        })
    }

    /// Writes buckets as the members of an object if `keyed`, otherwise as a list. `head` makes the name and the
    /// leading members of a bucket from its key and its number of documents; a bucket for which it returns `None` is
    /// left out.
    fn keyed(
        &mut self,
        aggregation: &Aggregation,
        list: Buckets,
        keyed: bool,
        out: &mut Map<String, Value>,
        head: impl Fn(&Key, u64) -> Result<Option<(String, Head)>, AggregationError>,
    ) -> Result<(), AggregationError> {
        let mut named = Map::new();
        let mut buckets = Vec::with_capacity(list.len());
        for (key, bucket) in list {
            work::check()?;
            let Some((name, mut members)) = head(&key, bucket.docs)? else { continue };
            self.list(&aggregation.subs, bucket.subs, &mut members)?;
            match keyed {
                true => drop(named.insert(name, Value::Object(members))),
                false => buckets.push(Value::Object(members)),
            }
        }
        out.insert("buckets".to_owned(), if keyed { Value::Object(named) } else { Value::Array(buckets) });
        Ok(())
    }

    fn filters(
        &mut self,
        aggregation: &Aggregation,
        filters: &Filters,
        list: Buckets,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        let are_named = filters.filters.first().is_some_and(|(name, _)| name.is_some());
        let keyed = filters.keyed && are_named;
        self.keyed(aggregation, list, keyed, out, |key, docs| {
            let Key::Slot(slot) = key else { return Ok(None) };
            let name = match filters.filters.get(*slot) {
                Some((name, _)) => name.clone(),
                None => filters.other.clone(),
            };
            let name = name.unwrap_or_default();
            let mut head = Head::new();
            if are_named && !keyed {
                head.insert("key".to_owned(), name.as_str().into());
            }
            count(docs, false, &mut head);
            Ok(Some((name, head)))
        })
    }

    fn addresses(
        &mut self,
        aggregation: &Aggregation,
        asked: &AddressRanges,
        list: Buckets,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        self.keyed(aggregation, list, asked.keyed, out, |key, docs| {
            let Key::Slot(slot) = key else { return Ok(None) };
            let Some(range) = asked.ranges.get(*slot) else { return Ok(None) };
            let mut head = Head::new();
            if !asked.keyed {
                head.insert("key".to_owned(), range.key.as_str().into());
            }
            for (label, end) in [("from", &range.from), ("to", &range.to)] {
                if let Some(end) = end {
                    head.insert(label.to_owned(), end.as_str().into());
                }
            }
            count(docs, false, &mut head);
            Ok(Some((range.key.clone(), head)))
        })
    }

    fn intervals(
        &mut self,
        aggregation: &Aggregation,
        list: Buckets,
        keyed: bool,
        format: &ValueFormat,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        self.keyed(aggregation, list, keyed, out, |key, docs| {
            let mut head = Head::new();
            let (text, name) = match key {
                Key::Long(at) => {
                    (format.whole_text(*at), format.whole_text(*at).unwrap_or_else(|| at.to_string()))
                }
                key => (format.text(key.number()), format.key(key.number())),
            };
            if let Some(text) = text {
                head.insert("key_as_string".to_owned(), text.into());
            }
            head.insert("key".to_owned(), key_value(key, format));
            count(docs, false, &mut head);
            Ok(Some((name, head)))
        })
    }

    fn ranges(
        &mut self,
        aggregation: &Aggregation,
        range: &Range,
        list: Buckets,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        let format = self.format(aggregation.id).clone();
        let (id, fields) = (aggregation.id, self.fields);
        self.keyed(aggregation, list, range.keyed, out, |key, docs| {
            let Key::Slot(slot) = key else { return Ok(None) };
            let Some(asked) = range.ranges.get(*slot) else { return Ok(None) };
            let (name, from, to) = range_name(fields.get(&id).copied(), &format, asked)?;
            let mut head = Head::new();
            if !range.keyed {
                head.insert("key".to_owned(), name.as_str().into());
            }
            for (label, end) in [("from", from), ("to", to)] {
                if let Some(end) = end.filter(|end| end.is_finite()) {
                    head.insert(label.to_owned(), number(end));
                    if let Some(text) = format.text(end) {
                        head.insert(format!("{label}_as_string"), text.into());
                    }
                }
            }
            count(docs, false, &mut head);
            Ok(Some((name, head)))
        })
    }
}

/// Writes the members of `terms` and `multi_terms` that concern all buckets: the error bound, always 0, and the
/// number of documents in buckets left out.
fn sums(other: u64, out: &mut Map<String, Value>) {
    out.insert("doc_count_error_upper_bound".to_owned(), 0.into());
    out.insert("sum_other_doc_count".to_owned(), other.into());
}

fn count(docs: u64, show_error: bool, head: &mut Head) {
    head.insert("doc_count".to_owned(), docs.into());
    if show_error {
        head.insert("doc_count_error_upper_bound".to_owned(), 0.into());
    }
}

/// The key of a `composite` bucket: a value for each source.
fn composite_key(composite: &Composite, key: &Key, fields: &FxHashMap<usize, &Resolved>) -> Head {
    let Key::Tuple(parts) = key else { return Head::new() };
    let parts = parts.iter().zip(&composite.sources);
    parts
        .map(|(part, source)| {
            let field = fields.get(&source.id);
            let formatted = source.source.format.is_some();
            let value = match (part, field) {
                (Key::Long(value), Some(field)) if field.kind == Kind::Boolean => Value::Bool(*value != 0),
                (Key::Long(value), Some(field)) if formatted => {
                    field.format.whole_text(*value).map_or(Value::Null, Value::from)
                }
                (Key::Double(_), Some(field)) if formatted => {
                    field.format.text(part.number()).map_or(Value::Null, Value::from)
                }
                (part, Some(field)) => key_value(part, &field.format),
                (part, None) => key_value(part, &ValueFormat::Raw),
            };
            (source.name.clone(), value)
        })
        .collect()
}
