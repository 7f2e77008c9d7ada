//! Writing of results as JSON in Elasticsearch's format.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::ast::{Aggregation, AggregationKind, Percentiles, PipelineKind, StatsKind};
use super::error::AggregationError;
use super::fields::{Kind, Place, Resolved};
use super::format::{Decimal, ValueFormat};
use super::hits::{HitWriter, sort_values};
use super::partial::{Computed, Partial, Stats};
use super::significance::Background;
use super::sketch::Distribution;
use super::write_summaries::{self, single, write_stats};
use super::write_values::{number, optional};
use sparrow_mapping::java_double;
use sparrow_runtime::work;

/// Writes the results of all top-level aggregations as members of an `aggregations` object.
pub fn write_all(
    aggregations: &[Aggregation],
    results: Vec<Partial>,
    (fields, backgrounds): (&FxHashMap<usize, &Resolved>, &FxHashMap<usize, Background>),
    typed_keys: bool,
    hits: &mut dyn HitWriter,
) -> Result<Map<String, Value>, AggregationError> {
    let mut writer = Writer { fields, backgrounds, typed_keys, hits };
    let mut members = Map::new();
    writer.list(aggregations, results, &mut members)?;
    Ok(members)
}

/// Writes one request's results. The buckets are in `write_buckets`.
pub(super) struct Writer<'a> {
    pub(super) fields: &'a FxHashMap<usize, &'a Resolved>,
    pub(super) backgrounds: &'a FxHashMap<usize, Background>,
    typed_keys: bool,
    hits: &'a mut dyn HitWriter,
}

impl Writer<'_> {
    pub(super) fn list(
        &mut self,
        aggregations: &[Aggregation],
        results: Vec<Partial>,
        members: &mut Map<String, Value>,
    ) -> Result<(), AggregationError> {
        for (aggregation, result) in aggregations.iter().zip(results) {
            work::check()?;
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

    /// Type prefix of a result for typed keys, such as `sterms`.
    fn type_of(&self, aggregation: &Aggregation, result: &Partial) -> &'static str {
        match &aggregation.kind {
            AggregationKind::Terms(terms) if terms.max_doc_count.is_some() => {
                match self.fields.get(&aggregation.id) {
                    // Elasticsearch calls those of a field that is not mapped so.
                    Some(field) if field.place == Place::Nowhere && field.missing.is_none() => "sterms",
                    Some(field) if field.kind == Kind::Text => "srareterms",
                    Some(_) => "lrareterms",
                    None => "sterms",
                }
            }
            AggregationKind::Terms(_) => match self.fields.get(&aggregation.id) {
                Some(field) if field.place == Place::Nowhere && field.missing.is_none() => "sterms",
                Some(field) => match field.kind {
                    Kind::Text => "sterms",
                    Kind::Double => "dterms",
                    Kind::Unsigned => "ulterms",
                    Kind::Long | Kind::Boolean | Kind::Date => "lterms",
                },
                None => "sterms",
            },
            AggregationKind::Significant(_) => match self.fields.get(&aggregation.id) {
                Some(field) if field.kind != Kind::Text => "siglterms",
                _ => "sigsterms",
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
                let value = match result {
                    Partial::Distribution(mut distribution) => distribution.median_absolute_deviation(),
                    _ => None,
                };
                single(value, self.format(id), &mut out);
            }
            (AggregationKind::WeightedAvg { format, .. }, result) => {
                let value = match result {
                    Partial::Weighted(sum, weights) if weights.value() != 0.0 => {
                        Some(sum.value() / weights.value())
                    }
                    _ => None,
                };
                let format = format
                    .as_ref()
                    .map_or(ValueFormat::Raw, |format| ValueFormat::Decimal(Decimal::new(format)));
                single(value, &format, &mut out);
            }
            (AggregationKind::Percentiles(asked), result) => {
                let of = |distribution: &mut Distribution, percent: f64| match asked.hdr {
                    Some(digits) => distribution.hdr_quantile(percent / 100.0, digits),
                    None => distribution.quantile(percent / 100.0),
                };
                self.percentiles(aggregation, asked, result, of, &mut out);
            }
            (AggregationKind::PercentileRanks(asked), result) => {
                let of = |distribution: &mut Distribution, value: f64| {
                    let share = match asked.hdr {
                        Some(digits) => distribution.hdr_share_up_to(value, digits),
                        None => distribution.rank(value),
                    };
                    share.map(|share| share * 100.0)
                };
                self.percentiles(aggregation, asked, result, of, &mut out);
            }
            (AggregationKind::Boxplot(_), result) => {
                let summary =
                    if let Partial::Distribution(summary) = result { summary } else { Default::default() };
                write_summaries::boxplot(summary, self.format(id), &mut out);
            }
            (AggregationKind::StringStats { distribution, .. }, result) => {
                let strings =
                    if let Partial::Strings(summary) = result { summary } else { Default::default() };
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

    fn percentiles(
        &self,
        aggregation: &Aggregation,
        asked: &Percentiles,
        result: Partial,
        of: impl Fn(&mut Distribution, f64) -> Option<f64>,
        out: &mut Map<String, Value>,
    ) {
        let mut distribution =
            if let Partial::Distribution(value) = result { value } else { Distribution::default() };
        let format = self.format(aggregation.id);
        let mut keyed = Map::new();
        let mut listed = Vec::with_capacity(asked.points.len());
        for &point in &asked.points {
            let value = of(&mut distribution, point).filter(|value| !value.is_nan());
            let text = value.and_then(|value| format.text(value));
            if asked.keyed {
                let key = java_double(point);
                if let Some(text) = text {
                    keyed.insert(key.clone(), optional(value));
                    keyed.insert(format!("{key}_as_string"), text.into());
                } else {
                    keyed.insert(key, optional(value));
                }
            } else {
                let mut entry = Map::new();
                entry.insert("key".to_owned(), number(point));
                entry.insert("value".to_owned(), optional(value));
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
