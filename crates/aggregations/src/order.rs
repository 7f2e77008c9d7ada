//! Sorting of buckets, and looking up the numbers that metric paths refer to.

use std::cmp::Ordering;

use super::ast::{
    Aggregation, AggregationKind, MetricPath, Order, OrderBy, Percentiles, PipelineKind, StatsKind,
};
use super::error::AggregationError;
use super::key::Key;
use super::partial::{Bucket, Computed, Partial, Stats};
use sparrow_runtime::work::{self, Stopped};

/// Names of the numbers of `extended_stats`.
const EXTENDED: [&str; 13] = [
    "count",
    "min",
    "max",
    "avg",
    "sum",
    "sum_of_squares",
    "variance",
    "variance_population",
    "variance_sampling",
    "std_deviation",
    "std_deviation_population",
    "std_deviation_sampling",
    "std_upper",
];

/// Names of the numbers of `boxplot`.
pub const BOXPLOT: [&str; 7] = ["min", "max", "q1", "q2", "q3", "lower", "upper"];

/// Names of the numbers of `string_stats`.
const STRINGS: [&str; 5] = ["count", "min_length", "max_length", "avg_length", "entropy"];

/// Checks that an order's paths lead to numbers below `aggregation`.
pub fn check_order(aggregation: &Aggregation, order: &[Order]) -> Result<(), AggregationError> {
    for key in order {
        let OrderBy::Metric(path) = &key.by else { continue };
        let invalid = |reason: String| {
            AggregationError::Execution(format!("Invalid aggregation order path [{}]. {reason}", path.text))
        };
        let mut level = aggregation;
        for (place, name) in path.names.iter().enumerate() {
            let sub = level
                .subs
                .iter()
                .find(|sub| sub.name == *name && !matches!(sub.kind, AggregationKind::Pipeline(_)));
            let Some(sub) = sub else {
                return Err(invalid(format!(
                    "The provided aggregation [{name}] either does not exist, or is a pipeline aggregation and cannot \
                     be used to sort the buckets."
                )));
            };
            let last = place + 1 == path.names.len();
            if !last && !sub.is_single_bucket() {
                return Err(invalid(format!(
                    "Buckets can only be sorted on a sub-aggregator path that is built out of zero or more \
                     single-bucket aggregations within the path and a final single-bucket or a metrics aggregation at \
                     the path end. [{name}] is not single-bucket."
                )));
            }
            level = sub;
        }
        if level.is_single_bucket() {
            match path.property.as_deref() {
                None | Some("doc_count" | "_count") => continue,
                Some(property) => {
                    return Err(invalid(format!(
                        "Ordering on a single-bucket aggregation can only be done on its doc_count. Either drop the \
                         key (a la \"{name}\") or change it to \"doc_count\" (a la \"{name}.doc_count\") or \
                         \"{name}.value\" instead of [{property}]",
                        name = level.name
                    )));
                }
            }
        }
        let properties = match &level.kind {
            AggregationKind::Stats(StatsKind::Stats, _) => Some(&EXTENDED[..5]),
            AggregationKind::Stats(StatsKind::Extended(_), _) => Some(&EXTENDED[..]),
            AggregationKind::Percentiles(_) | AggregationKind::PercentileRanks(_) => None,
            AggregationKind::Boxplot(_) => Some(&BOXPLOT[..]),
            AggregationKind::StringStats { .. } => Some(&STRINGS[..]),
            AggregationKind::TopHits(top) if !top.metrics.is_empty() => {
                match path.property.as_ref().is_some_and(|property| top.metrics.contains(property)) {
                    true => continue,
                    false => {
                        return Err(invalid(format!(
                            "Unknown metric name [{}] on multi-value metrics aggregation [{}]",
                            path.property.as_deref().unwrap_or("null"),
                            level.name
                        )));
                    }
                }
            }
            AggregationKind::TopHits(_) => {
                return Err(invalid("[top_hits] cannot be used to sort the buckets.".to_owned()));
            }
            _ if level.is_multi_bucket() => {
                return Err(invalid(format!(
                    "Buckets can only be sorted on a sub-aggregator path that is built out of zero or more \
                     single-bucket aggregations within the path and a final single-bucket or a metrics aggregation at \
                     the path end. [{}] is not single-bucket.",
                    level.name
                )));
            }
            _ => match path.property.as_deref() {
                None | Some("value") => continue,
                Some(property) => {
                    return Err(invalid(format!(
                        "Ordering on a single-value metrics aggregation can only be done on its value. Either drop \
                         the key (a la \"{name}\") or change it to \"value\" (a la \"{name}.value\") instead of \
                         [{property}]",
                        name = level.name
                    )));
                }
            },
        };
        match (&path.property, properties) {
            (None, _) => {
                return Err(invalid(
                    "When ordering on a multi-value metrics aggregation a metric name must be specified."
                        .to_owned(),
                ));
            }
            (Some(property), Some(properties))
                if !properties.contains(&property.as_str()) && property != "std_lower" =>
            {
                return Err(invalid(format!(
                    "Unknown metric name [{property}] on multi-value metrics aggregation [{}]",
                    level.name
                )));
            }
            (Some(property), None) if property.parse::<f64>().is_err() => {
                return Err(invalid(format!(
                    "Unknown metric name [{property}] on multi-value metrics aggregation [{}]",
                    level.name
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sorts buckets by `order`, and ties by key. If `most` is given, only that many are kept, and the documents in the
/// others are counted.
///
/// # Errors
/// When the request must stop, or there is no memory for the numbers of all buckets.
pub fn sort_buckets(
    aggregation: &Aggregation,
    order: &[Order],
    list: &mut Vec<(Key, Bucket)>,
    most: Option<usize>,
) -> Result<u64, Stopped> {
    work::check()?;
    let compare = |(a, a_numbers): (&(Key, Bucket), &[f64]), (b, b_numbers): (&(Key, Bucket), &[f64])| {
        for (place, key) in order.iter().enumerate() {
            let ordering = match &key.by {
                OrderBy::Count => direct(a.1.docs.cmp(&b.1.docs), key.ascending),
                OrderBy::Key => direct(a.0.cmp(&b.0), key.ascending),
                // What has no number is last, whatever the direction.
                OrderBy::Metric(_) => match (a_numbers[place], b_numbers[place]) {
                    (x, y) if x.is_nan() || y.is_nan() => x.is_nan().cmp(&y.is_nan()),
                    (x, y) => direct(x.total_cmp(&y), key.ascending),
                },
            };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        a.0.cmp(&b.0)
    };
    if !order.iter().any(|key| matches!(key.by, OrderBy::Metric(_))) {
        return Ok(keep_first(list, most, |(_, bucket)| bucket.docs, |a, b| compare((a, &[]), (b, &[]))));
    }
    work::room_for(list.len() * (size_of::<(Vec<f64>, (Key, Bucket))>() + order.len() * size_of::<f64>()))?;
    let mut ranked = Vec::with_capacity(list.len());
    for mut entry in std::mem::take(list) {
        let mut numbers = vec![0.0; order.len()];
        for (number, key) in numbers.iter_mut().zip(order) {
            work::check()?;
            if let OrderBy::Metric(path) = &key.by {
                *number = metric(aggregation, &mut entry.1, path).unwrap_or(f64::NAN);
            }
        }
        ranked.push((numbers, entry));
    }
    let other = keep_first(
        &mut ranked,
        most,
        |(_, (_, bucket))| bucket.docs,
        |a, b| compare((&a.1, &a.0), (&b.1, &b.0)),
    );
    list.extend(ranked.into_iter().map(|(_, entry)| entry));
    Ok(other)
}

/// Sorts a list, and keeps only its first entries if `most` is given. Returns the documents in the others.
pub fn keep_first<T>(
    list: &mut Vec<T>,
    most: Option<usize>,
    docs: impl Fn(&T) -> u64,
    compare: impl Fn(&T, &T) -> Ordering,
) -> u64 {
    let mut other = 0;
    if let Some(most) = most
        && list.len() > most
    {
        if most > 0 {
            list.select_nth_unstable_by(most - 1, &compare);
        }
        other = list[most..].iter().map(docs).sum();
        list.truncate(most);
    }
    list.sort_unstable_by(compare);
    other
}

fn direct(order: Ordering, ascending: bool) -> Ordering {
    if ascending { order } else { order.reverse() }
}

/// The number that a path leads to below a bucket; `None` if the path leads to nothing.
pub fn metric(aggregation: &Aggregation, bucket: &mut Bucket, path: &MetricPath) -> Option<f64> {
    metric_below(&aggregation.subs, &mut bucket.subs, &path.names, path.property.as_deref(), bucket.docs)
}

fn metric_below(
    aggregations: &[Aggregation],
    results: &mut [Partial],
    names: &[String],
    property: Option<&str>,
    docs: u64,
) -> Option<f64> {
    let Some((name, rest)) = names.split_first() else { return Some(docs as f64) };
    if rest.is_empty() && name == "_count" {
        return Some(docs as f64);
    }
    let place = aggregations.iter().position(|sub| sub.name == *name)?;
    let (metric, result) = (&aggregations[place], results.get_mut(place)?);
    if metric.is_single_bucket() {
        let (docs, mut none) = (0, Vec::new());
        let (docs, subs) = match result {
            Partial::Buckets(list) | Partial::Ordered(list, _) => match list.first_mut() {
                Some((_, bucket)) => (bucket.docs, &mut bucket.subs),
                None => (docs, &mut none),
            },
            _ => (docs, &mut none),
        };
        return metric_below(&metric.subs, subs, rest, property, docs);
    }
    if !rest.is_empty() {
        return None;
    }
    number(metric, result, property)
}

/// The percentage or value of a percentiles aggregation that a path names; if it names none, the only one.
fn point(asked: &Percentiles, property: Option<&str>) -> Option<f64> {
    match (property, &asked.points[..]) {
        (None, [only]) => Some(*only),
        (property, _) => property?.parse().ok(),
    }
}

/// One number of a metric's result, chosen by `property` if there are several.
fn number(aggregation: &Aggregation, result: &mut Partial, property: Option<&str>) -> Option<f64> {
    match (&aggregation.kind, result) {
        (AggregationKind::Stats(kind, _), result) => {
            let empty = Stats::default();
            let stats = if let Partial::Stats(stats) = result { stats } else { &empty };
            stats_number(*kind, stats, property)
        }
        (AggregationKind::Cardinality { .. }, Partial::Distinct(distinct)) => Some(distinct.count() as f64),
        (AggregationKind::Cardinality { .. }, _) => Some(0.0),
        (AggregationKind::Percentiles(asked), Partial::Distribution(distribution)) => {
            let share = point(asked, property)? / 100.0;
            match asked.hdr {
                Some(digits) => distribution.hdr_quantile(share, digits),
                None => distribution.quantile(share),
            }
        }
        (AggregationKind::PercentileRanks(asked), Partial::Distribution(distribution)) => {
            distribution.rank(point(asked, property)?).map(|rank| rank * 100.0)
        }
        (AggregationKind::MedianAbsoluteDeviation(_), Partial::Distribution(distribution)) => {
            distribution.median_absolute_deviation()
        }
        (AggregationKind::Boxplot(_), Partial::Distribution(distribution)) => {
            let place = BOXPLOT.iter().position(|name| Some(*name) == property)?;
            Some(distribution.boxplot()?[place])
        }
        (AggregationKind::StringStats { .. }, Partial::Strings(strings)) => match property? {
            "count" => Some(strings.count as f64),
            "min_length" => strings.shortest.map(|length| length as f64),
            "max_length" => strings.shortest.map(|_| strings.longest as f64),
            "avg_length" => strings.average(),
            "entropy" => Some(strings.entropy()),
            _ => None,
        },
        (AggregationKind::TopHits(top), Partial::TopHits(list)) => {
            let metric = top.metrics.iter().position(|name| Some(name.as_str()) == property)?;
            let value = list.hits.first()?.sort.get(top.sort.len() - top.metrics.len() + metric)?.number();
            Some(value).filter(|value| !value.is_nan())
        }
        (AggregationKind::WeightedAvg { .. }, Partial::Weighted(sum, weights)) => {
            (weights.value() != 0.0).then(|| sum.value() / weights.value())
        }
        (AggregationKind::Pipeline(pipeline), Partial::Computed(computed)) => match computed {
            Computed::Number(value) | Computed::Extreme(value, _) => Some(*value),
            Computed::Derivative(value, normalized) => match property {
                Some("normalized_value") => *normalized,
                _ => Some(*value),
            },
            Computed::Stats(stats) if pipeline.kind == PipelineKind::Stats => {
                stats_number(StatsKind::Stats, stats, property)
            }
            Computed::Stats(stats) => match &pipeline.kind {
                PipelineKind::ExtendedStats(sigma) => {
                    stats_number(StatsKind::Extended(*sigma), stats, property)
                }
                _ => None,
            },
            Computed::Percentiles(values) => match &pipeline.kind {
                PipelineKind::Percentiles { percents, .. } => {
                    let wanted = property?.parse::<f64>().ok()?;
                    let place = percents.iter().position(|percent| *percent == wanted)?;
                    values.get(place).copied()
                }
                _ => None,
            },
        },
        _ => None,
    }
}

fn stats_number(kind: StatsKind, stats: &Stats, property: Option<&str>) -> Option<f64> {
    let name = match (kind, property) {
        (StatsKind::Avg, _) => "avg",
        (StatsKind::Min, _) => "min",
        (StatsKind::Max, _) => "max",
        (StatsKind::Sum, _) => "sum",
        (StatsKind::ValueCount, _) => "count",
        (StatsKind::Stats | StatsKind::Extended(_), property) => property?,
    };
    let sigma = if let StatsKind::Extended(sigma) = kind { sigma } else { 2.0 };
    let value = match name {
        "count" => return Some(stats.count as f64),
        "sum" => return Some(stats.sum.value()),
        _ if stats.count == 0 => return None,
        "min" => stats.min,
        "max" => stats.max,
        "avg" => stats.mean(),
        "sum_of_squares" => stats.squares.value(),
        "variance" | "variance_population" => stats.variance(),
        "variance_sampling" => stats.sampling_variance(),
        "std_deviation" | "std_deviation_population" => stats.variance().sqrt(),
        "std_deviation_sampling" => stats.sampling_variance().sqrt(),
        "std_upper" => stats.mean() + stats.variance().sqrt() * sigma,
        "std_lower" => stats.mean() - stats.variance().sqrt() * sigma,
        _ => return None,
    };
    (!value.is_nan()).then_some(value)
}

impl Stats {
    /// Mean of the numbers; NaN if there are none.
    pub fn mean(&self) -> f64 {
        self.sum.value() / self.count as f64
    }

    /// Population variance of the numbers; NaN if there are none.
    pub fn variance(&self) -> f64 {
        let count = self.count as f64;
        let sum = self.sum.value();
        ((self.squares.value() - sum * sum / count) / count).max(0.0)
    }

    /// Sample variance of the numbers; NaN if there are fewer than two.
    pub fn sampling_variance(&self) -> f64 {
        let count = self.count as f64;
        let sum = self.sum.value();
        if self.count < 2 {
            return f64::NAN;
        }
        ((self.squares.value() - sum * sum / count) / (count - 1.0)).max(0.0)
    }
}
