//! Results as the JSON that Elasticsearch's clients know.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};

use super::ast::{Aggregation, AggregationKind, Percentiles, PipelineKind, Range, StatsKind};
use super::error::AggregationError;
use super::format::{Decimal, ValueFormat};
use super::key::Key;
use super::partial::{Bucket, Computed, Partial, Stats};
use super::reduce::{HitWriter, sort_values};
use super::sketch::Distribution;
use super::values::{Kind, Place, Resolved};
use super::write_summaries;
use crate::mapping::java_double;

/// The members of an `aggregations` object.
pub fn write_all(
    aggregations: &[Aggregation],
    results: Vec<Partial>,
    fields: &FxHashMap<usize, &Resolved>,
    typed_keys: bool,
    hits: &mut dyn HitWriter,
) -> Result<Map<String, Value>, AggregationError> {
    let mut writer = Writer { fields, typed_keys, hits };
    let mut members = Map::new();
    writer.list(aggregations, results, &mut members)?;
    Ok(members)
}

pub(super) struct Writer<'a> {
    pub(super) fields: &'a FxHashMap<usize, &'a Resolved>,
    typed_keys: bool,
    hits: &'a mut dyn HitWriter,
}

/// A number; what JSON cannot hold is null.
pub fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// A number as Elasticsearch writes those that may be none at all.
fn any_number(value: f64) -> Value {
    if value.is_nan() { "NaN".into() } else { number(value) }
}

/// A number, or null.
pub fn optional(value: Option<f64>) -> Value {
    value.map_or(Value::Null, number)
}

impl Writer<'_> {
    fn list(
        &mut self,
        aggregations: &[Aggregation],
        results: Vec<Partial>,
        members: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        for (aggregation, result) in aggregations.iter().zip(results) {
            let name = match self.typed_keys {
                true => format!("{}#{}", self.type_of(aggregation, &result), aggregation.name),
                false => aggregation.name.clone(),
            };
            let value = match (&aggregation.kind, result) {
                (AggregationKind::Pipeline(pipeline), Partial::Computed(Computed::Extreme(value, keys))) => {
                    let read =
                        aggregations.iter().find(|other| Some(&other.name) == pipeline.path.names.first());
                    Some(self.extreme(pipeline, read, value, &keys)?)
                }
                (_, result) => self.value(aggregation, result)?,
            };
            let Some(mut value) = value else { continue };
            if let Some(meta) = &aggregation.meta {
                let mut with_meta = Map::new();
                with_meta.insert("meta".to_owned(), Value::Object(meta.clone()));
                with_meta.append(&mut value);
                value = with_meta;
            }
            members.insert(name, Value::Object(value));
        }
        Ok(())
    }

    pub(super) fn format(&self, id: usize) -> &ValueFormat {
        self.fields.get(&id).map_or(&ValueFormat::Raw, |field| &field.format)
    }

    /// The type of a result, as clients tell results apart.
    fn type_of(&self, aggregation: &Aggregation, result: &Partial) -> &'static str {
        match &aggregation.kind {
            AggregationKind::Terms(terms) if terms.max_doc_count.is_some() => {
                match self.fields.get(&aggregation.id) {
                    Some(field) if field.place == Place::Nowhere && field.missing.is_none() => "umrareterms",
                    Some(field) if field.kind == Kind::Text => "srareterms",
                    Some(_) => "lrareterms",
                    None => "umrareterms",
                }
            }
            AggregationKind::Terms(_) => match self.fields.get(&aggregation.id) {
                Some(field) if field.place == Place::Nowhere && field.missing.is_none() => "umterms",
                Some(field) => match field.kind {
                    Kind::Text => "sterms",
                    Kind::Double => "dterms",
                    Kind::Unsigned => "ulterms",
                    Kind::Long | Kind::Boolean | Kind::Date => "lterms",
                },
                None => "umterms",
            },
            AggregationKind::Percentiles(asked) if asked.hdr.is_some() => "hdr_percentiles",
            AggregationKind::Percentiles(_) => "tdigest_percentiles",
            AggregationKind::PercentileRanks(asked) if asked.hdr.is_some() => "hdr_percentile_ranks",
            AggregationKind::PercentileRanks(_) => "tdigest_percentile_ranks",
            AggregationKind::Pipeline(_) => match (aggregation.type_name(), result) {
                ("max_bucket" | "min_bucket", _) => "bucket_metric_value",
                ("stats_bucket", _) => "stats_bucket",
                (name @ ("derivative" | "percentiles_bucket" | "extended_stats_bucket"), _) => name,
                _ => "simple_value",
            },
            _ => aggregation.type_name(),
        }
    }

    fn value(
        &mut self,
        aggregation: &Aggregation,
        result: Partial,
    ) -> Result<Option<Map<String, Value>>, AggregationError> {
        let mut out = Map::new();
        let id = aggregation.id;
        match (&aggregation.kind, result) {
            (AggregationKind::Pipeline(_), Partial::Computed(computed)) => {
                self.computed(aggregation, computed, &mut out);
            }
            (AggregationKind::Pipeline(_), _) => return Ok(None),
            (AggregationKind::Stats(kind, _), result) => {
                let stats = if let Partial::Stats(stats) = result { stats } else { Stats::default() };
                write_stats(*kind, &stats, self.format(id), &mut out);
            }
            (AggregationKind::Cardinality { .. }, result) => {
                let count = if let Partial::Distinct(distinct) = result { distinct.count() } else { 0 };
                out.insert("value".to_owned(), count.into());
            }
            (AggregationKind::MedianAbsoluteDeviation(_), result) => {
                let found = match result {
                    Partial::Distribution(mut distribution) => distribution.median_absolute_deviation(),
                    _ => None,
                };
                single(found, self.format(id), &mut out);
            }
            (AggregationKind::WeightedAvg { format, .. }, result) => {
                let found = match result {
                    Partial::Weighted(sum, weights) if weights.value() != 0.0 => {
                        Some(sum.value() / weights.value())
                    }
                    _ => None,
                };
                let format = format
                    .as_ref()
                    .map_or(ValueFormat::Raw, |format| ValueFormat::Decimal(Decimal::new(format)));
                single(found, &format, &mut out);
            }
            (AggregationKind::Percentiles(asked), result) => {
                let of = |distribution: &mut Distribution, percent: f64| match asked.hdr {
                    Some(digits) => distribution
                        .nearest_rank(percent / 100.0)
                        .map(|value| hdr_value(value, distribution, digits)),
                    None => distribution.quantile(percent / 100.0),
                };
                self.percentiles(aggregation, asked, result, of, &mut out);
            }
            (AggregationKind::PercentileRanks(asked), result) => {
                let of = |distribution: &mut Distribution, value: f64| {
                    let share = match asked.hdr {
                        Some(_) => distribution.share_up_to(value),
                        None => distribution.rank(value),
                    };
                    share.map(|share| share * 100.0)
                };
                self.percentiles(aggregation, asked, result, of, &mut out);
            }
            (AggregationKind::Boxplot(_), result) => {
                let found =
                    if let Partial::Distribution(found) = result { found } else { Default::default() };
                write_summaries::boxplot(found, self.format(id), &mut out);
            }
            (AggregationKind::StringStats { distribution, .. }, result) => {
                let strings = if let Partial::Strings(found) = result { found } else { Default::default() };
                write_summaries::strings(&strings, *distribution, &mut out);
            }
            (AggregationKind::TopHits(top), result) if !top.metrics.is_empty() => {
                let list = if let Partial::TopHits(list) = result { list } else { Default::default() };
                out.insert("top".to_owned(), write_summaries::top_metrics(top, &list, self.fields));
            }
            (AggregationKind::TopHits(top), result) => {
                let list = if let Partial::TopHits(list) = result { list } else { Default::default() };
                let sort: Vec<Vec<Value>> =
                    list.hits.iter().map(|hit| sort_values(top, hit, self.fields)).collect();
                out.insert("hits".to_owned(), self.hits.write(top, &list, &sort)?);
            }
            (_, Partial::Ordered(list, other)) => self.buckets(aggregation, list, other, &mut out)?,
            (_, _) => {}
        }
        Ok(Some(out))
    }

    fn buckets(
        &mut self,
        aggregation: &Aggregation,
        list: Vec<(Key, Bucket)>,
        other: u64,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        let format = self.format(aggregation.id).clone();
        match &aggregation.kind {
            AggregationKind::Terms(terms) => {
                if terms.max_doc_count.is_none() {
                    out.insert("doc_count_error_upper_bound".to_owned(), 0.into());
                    out.insert("sum_other_doc_count".to_owned(), other.into());
                }
                let mut buckets = Vec::with_capacity(list.len());
                for (key, bucket) in list {
                    let mut head = Map::new();
                    head.insert("key".to_owned(), key_value(&key, &format));
                    let text = match &key {
                        Key::Text(_) => None,
                        Key::Long(value) => format.whole_text(*value),
                        key => format.text(key.number()),
                    };
                    if let Some(text) = text {
                        head.insert("key_as_string".to_owned(), text.into());
                    }
                    head.insert("doc_count".to_owned(), bucket.docs.into());
                    if terms.show_error {
                        head.insert("doc_count_error_upper_bound".to_owned(), 0.into());
                    }
                    buckets.push(self.bucket(aggregation, head, bucket)?);
                }
                out.insert("buckets".to_owned(), buckets.into());
            }
            AggregationKind::MultiTerms(multi) => {
                out.insert("doc_count_error_upper_bound".to_owned(), 0.into());
                out.insert("sum_other_doc_count".to_owned(), other.into());
                let mut buckets = Vec::with_capacity(list.len());
                for (key, bucket) in list {
                    let mut head = Map::new();
                    write_summaries::tuple_key(&key, multi, self.fields, &mut head);
                    head.insert("doc_count".to_owned(), bucket.docs.into());
                    if multi.show_error {
                        head.insert("doc_count_error_upper_bound".to_owned(), 0.into());
                    }
                    buckets.push(self.bucket(aggregation, head, bucket)?);
                }
                out.insert("buckets".to_owned(), buckets.into());
            }
            AggregationKind::Adjacency(adjacency) => {
                let mut buckets = Vec::with_capacity(list.len());
                for (key, bucket) in list {
                    let Key::Slot(slot) = key else { continue };
                    let mut head = Map::new();
                    head.insert("key".to_owned(), adjacency.name(slot).into());
                    head.insert("doc_count".to_owned(), bucket.docs.into());
                    buckets.push(self.bucket(aggregation, head, bucket)?);
                }
                out.insert("buckets".to_owned(), buckets.into());
            }
            AggregationKind::Histogram(histogram) => {
                self.intervals(aggregation, list, histogram.keyed, &format, out)?;
            }
            AggregationKind::DateHistogram(histogram) => {
                self.intervals(aggregation, list, histogram.keyed, &format, out)?;
            }
            AggregationKind::Range(range) => self.ranges(aggregation, range, list, out)?,
            AggregationKind::Filters(filters) => {
                let mut named = Map::new();
                let mut anonymous = Vec::new();
                for (key, bucket) in list {
                    let Key::Slot(slot) = key else { continue };
                    let name = match filters.filters.get(slot) {
                        Some((name, _)) => name.clone(),
                        None => filters.other.clone(),
                    };
                    let is_named = filters.filters.first().is_some_and(|(name, _)| name.is_some());
                    let mut head = Map::new();
                    if let (Some(name), true, false) = (&name, is_named, filters.keyed) {
                        head.insert("key".to_owned(), name.as_str().into());
                    }
                    head.insert("doc_count".to_owned(), bucket.docs.into());
                    let value = self.bucket(aggregation, head, bucket)?;
                    match name {
                        Some(name) if is_named && filters.keyed => {
                            named.insert(name, value);
                        }
                        _ => anonymous.push(value),
                    }
                }
                let buckets = if named.is_empty() { Value::Array(anonymous) } else { Value::Object(named) };
                out.insert("buckets".to_owned(), buckets);
            }
            AggregationKind::Composite(composite) => {
                let key_object = |key: &Key| -> Map<String, Value> {
                    let Key::Tuple(parts) = key else { return Map::new() };
                    let parts = parts.iter().zip(&composite.sources);
                    parts
                        .map(|(part, source)| {
                            let field = self.fields.get(&source.id);
                            let formatted = source.source.format.is_some();
                            let value = match (part, field) {
                                (Key::Long(value), Some(field)) if field.kind == Kind::Boolean => {
                                    Value::Bool(*value != 0)
                                }
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
                };
                if let Some((last, _)) = list.last() {
                    out.insert("after_key".to_owned(), Value::Object(key_object(last)));
                }
                let keys: Vec<_> = list.iter().map(|(key, _)| key_object(key)).collect();
                let mut buckets = Vec::with_capacity(list.len());
                for (key, (_, bucket)) in keys.into_iter().zip(list) {
                    let mut head = Map::new();
                    head.insert("key".to_owned(), Value::Object(key));
                    head.insert("doc_count".to_owned(), bucket.docs.into());
                    buckets.push(self.bucket(aggregation, head, bucket)?);
                }
                out.insert("buckets".to_owned(), buckets.into());
            }
            _ => {
                let bucket = list.into_iter().next().map(|(_, bucket)| bucket).unwrap_or_default();
                out.insert("doc_count".to_owned(), bucket.docs.into());
                self.list(&aggregation.subs, bucket.subs, out)?;
            }
        }
        Ok(())
    }

    fn bucket(
        &mut self,
        aggregation: &Aggregation,
        mut head: Map<String, Value>,
        bucket: Bucket,
    ) -> Result<Value, AggregationError> {
        self.list(&aggregation.subs, bucket.subs, &mut head)?;
        Ok(Value::Object(head))
    }

    fn intervals(
        &mut self,
        aggregation: &Aggregation,
        list: Vec<(Key, Bucket)>,
        keyed: bool,
        format: &ValueFormat,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        let mut named = Map::new();
        let mut buckets = Vec::with_capacity(list.len());
        for (key, bucket) in list {
            let mut head = Map::new();
            let (text, name) = match &key {
                Key::Long(at) => {
                    (format.whole_text(*at), format.whole_text(*at).unwrap_or_else(|| at.to_string()))
                }
                key => (format.text(key.number()), format.key(key.number())),
            };
            if let Some(text) = text {
                head.insert("key_as_string".to_owned(), text.into());
            }
            head.insert("key".to_owned(), key_value(&key, format));
            head.insert("doc_count".to_owned(), bucket.docs.into());
            let value = self.bucket(aggregation, head, bucket)?;
            match keyed {
                true => drop(named.insert(name, value)),
                false => buckets.push(value),
            }
        }
        out.insert("buckets".to_owned(), if keyed { Value::Object(named) } else { Value::Array(buckets) });
        Ok(())
    }

    fn ranges(
        &mut self,
        aggregation: &Aggregation,
        range: &Range,
        list: Vec<(Key, Bucket)>,
        out: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        let format = self.format(aggregation.id).clone();
        let mut named = Map::new();
        let mut buckets = Vec::with_capacity(list.len());
        for (key, bucket) in list {
            let Key::Slot(slot) = key else { continue };
            let Some(asked) = range.ranges.get(slot) else { continue };
            let (name, from, to) = self.range_name(aggregation.id, asked)?;
            let mut head = Map::new();
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
            head.insert("doc_count".to_owned(), bucket.docs.into());
            let value = self.bucket(aggregation, head, bucket)?;
            match range.keyed {
                true => drop(named.insert(name, value)),
                false => buckets.push(value),
            }
        }
        out.insert(
            "buckets".to_owned(),
            if range.keyed { Value::Object(named) } else { Value::Array(buckets) },
        );
        Ok(())
    }

    fn percentiles(
        &self,
        aggregation: &Aggregation,
        asked: &Percentiles,
        result: Partial,
        of: impl Fn(&mut Distribution, f64) -> Option<f64>,
        out: &mut Map<String, Value>,
    ) {
        let mut distribution =
            if let Partial::Distribution(found) = result { found } else { Distribution::default() };
        let format = self.format(aggregation.id);
        let mut keyed = Map::new();
        let mut listed = Vec::with_capacity(asked.points.len());
        for &point in &asked.points {
            let found = of(&mut distribution, point).filter(|found| !found.is_nan());
            let text = found.and_then(|found| format.text(found));
            if asked.keyed {
                let key = java_double(point);
                if let Some(text) = text {
                    keyed.insert(key.clone(), optional(found));
                    keyed.insert(format!("{key}_as_string"), text.into());
                } else {
                    keyed.insert(key, optional(found));
                }
            } else {
                let mut entry = Map::new();
                entry.insert("key".to_owned(), number(point));
                entry.insert("value".to_owned(), optional(found));
                if let Some(text) = text {
                    entry.insert("value_as_string".to_owned(), text.into());
                }
                listed.push(Value::Object(entry));
            }
        }
        let values = if asked.keyed { Value::Object(keyed) } else { Value::Array(listed) };
        out.insert("values".to_owned(), values);
    }

    fn computed(&self, aggregation: &Aggregation, computed: Computed, out: &mut Map<String, Value>) {
        let AggregationKind::Pipeline(pipeline) = &aggregation.kind else { return };
        let format = match &pipeline.format {
            Some(format) => ValueFormat::Decimal(Decimal::new(format)),
            None => ValueFormat::Raw,
        };
        match computed {
            Computed::Number(value) => single(Some(value).filter(|value| value.is_finite()), &format, out),
            Computed::Derivative(value, normalized) => {
                single(Some(value).filter(|value| value.is_finite()), &format, out);
                if let Some(normalized) = normalized {
                    let shown = if normalized.is_finite() { number(normalized) } else { Value::Null };
                    out.insert("normalized_value".to_owned(), shown);
                }
            }
            // Written where the aggregation that it reads is known.
            Computed::Extreme(..) => {}
            Computed::Stats(stats) => {
                let kind = match &pipeline.kind {
                    PipelineKind::ExtendedStats(sigma) => StatsKind::Extended(*sigma),
                    _ => StatsKind::Stats,
                };
                write_stats(kind, &stats, &format, out);
            }
            Computed::Percentiles(values) => {
                let PipelineKind::Percentiles { percents, keyed } = &pipeline.kind else { return };
                let values = write_summaries::percentiles(percents, &values, *keyed, &format);
                out.insert("values".to_owned(), values);
            }
        }
    }
}

/// A key as JSON, dates and booleans as numbers.
pub fn key_value(key: &Key, format: &ValueFormat) -> Value {
    match key {
        Key::Missing => Value::Null,
        Key::Long(value) => (*value).into(),
        Key::Unsigned(value) => (*value).into(),
        Key::Double(bits) => number(f64::from_bits(*bits)),
        Key::Text(text) => Value::from(&*format.keyword(text)),
        Key::Slot(slot) => (*slot).into(),
        Key::Tuple(keys) => keys.iter().map(|key| key_value(key, format)).collect(),
    }
}

pub(super) fn single(value: Option<f64>, format: &ValueFormat, out: &mut Map<String, Value>) {
    out.insert("value".to_owned(), optional(value));
    if let Some(text) = value.and_then(|value| format.text(value)) {
        out.insert("value_as_string".to_owned(), text.into());
    }
}

fn write_stats(kind: StatsKind, stats: &Stats, format: &ValueFormat, out: &mut Map<String, Value>) {
    let some = stats.count > 0;
    let if_some = |value: f64| some.then_some(value);
    let sigma = match kind {
        StatsKind::Avg => return single(if_some(stats.mean()), format, out),
        StatsKind::Min => return single(if_some(stats.min), format, out),
        StatsKind::Max => return single(if_some(stats.max), format, out),
        StatsKind::Sum => {
            out.insert("value".to_owned(), number(stats.sum.value()));
            if let Some(text) = format.text(stats.sum.value()) {
                out.insert("value_as_string".to_owned(), text.into());
            }
            return;
        }
        StatsKind::ValueCount => {
            out.insert("value".to_owned(), stats.count.into());
            return;
        }
        StatsKind::Stats => None,
        StatsKind::Extended(sigma) => Some(sigma),
    };
    out.insert("count".to_owned(), stats.count.into());
    let basic = [
        ("min", if_some(stats.min)),
        ("max", if_some(stats.max)),
        ("avg", if_some(stats.mean())),
        ("sum", Some(stats.sum.value())),
    ];
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut put = |out: &mut Map<String, Value>, name: &str, value: Option<f64>| {
        out.insert(name.to_owned(), value.map_or(Value::Null, any_number));
        if let (true, Some(text)) = (some, value.and_then(|value| format.text(value))) {
            texts.push((format!("{name}_as_string"), text));
        }
    };
    for (name, value) in basic {
        put(out, name, value);
    }
    if let Some(sigma) = sigma {
        let (population, sampling) = (stats.variance(), stats.sampling_variance());
        for (name, value) in [
            ("sum_of_squares", stats.squares.value()),
            ("variance", population),
            ("variance_population", population),
            ("variance_sampling", sampling),
            ("std_deviation", population.sqrt()),
            ("std_deviation_population", population.sqrt()),
            ("std_deviation_sampling", sampling.sqrt()),
        ] {
            put(out, name, if_some(value));
        }
        let bound = |deviation: f64, sign: f64| if_some(stats.mean() + sign * sigma * deviation);
        let bounds = [
            ("upper", bound(population.sqrt(), 1.0)),
            ("lower", bound(population.sqrt(), -1.0)),
            ("upper_population", bound(population.sqrt(), 1.0)),
            ("lower_population", bound(population.sqrt(), -1.0)),
            ("upper_sampling", bound(sampling.sqrt(), 1.0)),
            ("lower_sampling", bound(sampling.sqrt(), -1.0)),
        ];
        let object: Map<String, Value> = bounds
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map_or(Value::Null, any_number)))
            .collect();
        out.insert("std_deviation_bounds".to_owned(), Value::Object(object));
        let shown: Map<String, Value> = bounds
            .iter()
            .filter_map(|(name, value)| Some(((*name).to_owned(), format.text((*value)?)?.into())))
            .collect();
        if some && !shown.is_empty() {
            out.insert("std_deviation_bounds_as_string".to_owned(), json!(shown));
        }
    }
    out.extend(texts.into_iter().map(|(name, text)| (name, Value::String(text))));
}

/// The value that an HDR histogram of so many digits shows for one: the upper end of its cell. Cells are as wide as the
/// smallest positive value allows, and double with each power of two.
fn hdr_value(value: f64, distribution: &Distribution, digits: u8) -> f64 {
    let _ = distribution;
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let cells = (2.0 * 10f64.powi(i32::from(digits))).log2().ceil();
    let width = 2f64.powf(value.log2().floor() - (cells - 1.0));
    ((value / width).floor() * width).max(value.min(value + width / 2.0))
}
