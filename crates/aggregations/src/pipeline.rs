//! Pipeline aggregations, computed from merged results: siblings of the aggregation that they read, or its
//! sub-aggregations.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use sparrow_runtime::work;
use sparrow_tantivy_index::query::QueryError;

use super::ast::{
    Aggregation, AggregationKind, BucketScript, GapPolicy, MetricPath, Normalization, Order, OrderBy,
    Pipeline, PipelineKind, StatsKind,
};
use super::error::AggregationError;
use super::key::Key;
use super::moving;
use super::order::metric;
use super::partial::{Bucket, Computed, Partial, Stats};

/// Buckets that are read between two looks at whether the request must stop.
const BUCKETS_AT_ONCE: usize = 1024;

/// Computes the sibling pipelines of a list of aggregations.
///
/// `is_text` says whether the values of the aggregation with an id are texts.
///
/// # Errors
/// If a path does not lead to a number.
pub fn siblings(
    aggregations: &[Aggregation],
    results: &mut [Partial],
    is_text: &dyn Fn(usize) -> bool,
) -> Result<(), AggregationError> {
    for place in 0..aggregations.len() {
        let AggregationKind::Pipeline(pipeline) = &aggregations[place].kind else { continue };
        if !pipeline.kind.is_sibling() {
            continue;
        }
        work::check()?;
        let mut values = Vec::new();
        let Some((first, rest)) = pipeline.path.names.split_first() else { continue };
        let Some(read) = aggregations.iter().position(|other| other.name == *first) else {
            return Err(AggregationError::IllegalArgument(format!(
                "No aggregation found for path [{}]",
                pipeline.path.text
            )));
        };
        let mut below = MetricPath {
            text: pipeline.path.text.clone(),
            names: rest.to_vec(),
            property: pipeline.path.property.clone(),
        };
        // `buckets.metric` is another way to write `buckets>metric`.
        if below.names.is_empty() {
            below.names.extend(below.property.take());
        }
        check_path(&aggregations[read], &below, is_text)?;
        gather(&aggregations[read], &mut results[read], &below, pipeline, &mut values)?;
        if let Some(slot) = results.get_mut(place) {
            *slot = Partial::Computed(summary(&pipeline.kind, &values));
        }
    }
    Ok(())
}

/// Checks that a path leads to one number below each bucket.
fn check_path(
    aggregation: &Aggregation,
    path: &MetricPath,
    is_text: &dyn Fn(usize) -> bool,
) -> Result<(), AggregationError> {
    let refused = |got: String| {
        Err(AggregationError::Execution(format!(
            "buckets_path must reference either a number value or a single value numeric metric aggregation, {got}"
        )))
    };
    let mut level = aggregation;
    for (place, name) in path.names.iter().enumerate() {
        let last = place + 1 == path.names.len();
        if last && matches!(name.as_str(), "_count" | "_key" | "_bucket_count") {
            return Ok(());
        }
        let Some(sub) = level.subs.iter().find(|sub| sub.name == *name) else {
            return Err(AggregationError::InvalidPath(format!(
                "Cannot find an aggregation named [{name}] in [{}]",
                level.name
            )));
        };
        if sub.is_multi_bucket() {
            let class = match &sub.kind {
                _ if !last || path.property.is_some() => "Object[]",
                AggregationKind::Terms(_) if is_text(sub.id) => "StringTerms",
                AggregationKind::Terms(_) => "LongTerms",
                AggregationKind::Histogram(_) => "InternalHistogram",
                AggregationKind::DateHistogram(_) => "InternalDateHistogram",
                AggregationKind::AutoDates(_) => "InternalAutoDateHistogram",
                AggregationKind::VariableWidths(_) => "InternalVariableWidthHistogram",
                AggregationKind::Grid(_) => "InternalGeoGrid",
                AggregationKind::Significant(_) if is_text(sub.id) => "SignificantStringTerms",
                AggregationKind::Significant(_) => "SignificantLongTerms",
                AggregationKind::Range(range) if range.dates => "InternalDateRange",
                AggregationKind::Range(_) => "InternalRange",
                AggregationKind::AddressRanges(_) => "InternalBinaryRange",
                AggregationKind::Filters(_) => "InternalFilters",
                AggregationKind::Composite(_) => "InternalComposite",
                AggregationKind::MultiTerms(_) => "InternalMultiTerms",
                _ => "InternalAdjacencyMatrix",
            };
            return refused(format!("got: [{class}] at aggregation [{name}]"));
        }
        level = sub;
    }
    let several = match &level.kind {
        AggregationKind::Stats(StatsKind::Stats | StatsKind::Extended(_), _)
        | AggregationKind::Boxplot(_)
        | AggregationKind::StringStats { .. } => true,
        AggregationKind::Percentiles(asked) | AggregationKind::PercentileRanks(asked) => {
            asked.points.len() != 1
        }
        _ => false,
    };
    if several && path.property.is_none() && !path.names.is_empty() {
        return refused(format!(
            "but [{}] contains multiple values. Please specify which to use.",
            level.name
        ));
    }
    Ok(())
}

/// Collects the numbers at the end of a path, from all buckets of an aggregation.
fn gather(
    aggregation: &Aggregation,
    result: &mut Partial,
    path: &MetricPath,
    pipeline: &Pipeline,
    values: &mut Vec<(Key, f64)>,
) -> Result<(), AggregationError> {
    if !aggregation.is_multi_bucket() && !aggregation.is_single_bucket() {
        return Err(AggregationError::IllegalArgument(format!(
            "The first aggregation in buckets_path must be a multi-bucket aggregation for aggregation [{}] found :{} \
             for buckets path: {}",
            aggregation.name,
            aggregation.type_name(),
            path.text
        )));
    }
    let Partial::Ordered(list, _) = result else { return Ok(()) };
    for (number, (key, bucket)) in list.iter_mut().enumerate() {
        if number % BUCKETS_AT_ONCE == 0 {
            work::check()?;
        }
        if let Some(value) = value_of(aggregation, bucket, path, pipeline) {
            values.push((key.clone(), value));
        }
    }
    Ok(())
}

/// The number of one bucket for a pipeline; `None` if the bucket is a gap and gaps are skipped.
fn value_of(
    aggregation: &Aggregation,
    bucket: &mut Bucket,
    path: &MetricPath,
    pipeline: &Pipeline,
) -> Option<f64> {
    let counts = path.names.last().is_none_or(|name| name == "_count");
    let value = metric(aggregation, bucket, path);
    let counted = counts || bucket.docs > 0 || pipeline.gaps == GapPolicy::KeepValues;
    match value {
        Some(value) if value.is_finite() && counted => Some(value),
        _ if pipeline.gaps == GapPolicy::InsertZeros => Some(0.0),
        _ => None,
    }
}

fn summary(kind: &PipelineKind, values: &[(Key, f64)]) -> Computed {
    let mut stats = Stats::default();
    values.iter().for_each(|(_, value)| stats.add(*value));
    let extreme = |value: f64| {
        let keys = values.iter().filter(|(_, other)| *other == value).map(|(key, _)| key.clone());
        Computed::Extreme(value, keys.collect())
    };
    match kind {
        PipelineKind::Avg => Computed::Number(stats.mean()),
        PipelineKind::Sum => Computed::Number(stats.sum.value()),
        PipelineKind::Max => extreme(stats.max),
        PipelineKind::Min => extreme(stats.min),
        PipelineKind::Percentiles { percents, .. } => {
            let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
            sorted.sort_by(f64::total_cmp);
            // The value of the nearest rank; between two ranks the upper one.
            let at = |percent: &f64| {
                let place = (percent / 100.0 * (sorted.len().max(1) - 1) as f64 + 0.5).floor();
                sorted.get(place as usize).copied().unwrap_or(f64::NAN)
            };
            Computed::Percentiles(percents.iter().map(at).collect())
        }
        _ => Computed::Stats(stats),
    }
}

/// Computes the pipelines that are sub-aggregations of `aggregation`, over its buckets.
///
/// `places` are theirs, from [`pipeline_order`].
///
/// # Errors
/// If a script fails, or the request must stop.
pub fn parents(
    aggregation: &Aggregation,
    places: &[usize],
    list: &mut Vec<(Key, Bucket)>,
) -> Result<(), AggregationError> {
    for &place in places {
        let AggregationKind::Pipeline(pipeline) = &aggregation.subs[place].kind else { continue };
        work::check()?;
        match &pipeline.kind {
            PipelineKind::CumulativeSum => {
                let mut sum = 0.0;
                for (_, bucket) in list.iter_mut() {
                    sum += value_of(aggregation, bucket, &pipeline.path, pipeline).unwrap_or(0.0);
                    if let Some(slot) = bucket.subs.get_mut(place) {
                        *slot = Partial::Computed(Computed::Number(sum));
                    }
                }
            }
            PipelineKind::Derivative(unit) => {
                let mut last: Option<(f64, f64)> = None;
                for (key, bucket) in list.iter_mut() {
                    // From a gap and to it there is no change, which is shown as such.
                    let value = value_of(aggregation, bucket, &pipeline.path, pipeline).unwrap_or(f64::NAN);
                    let at = key.number();
                    if let (Some((before, from)), Some(slot)) = (last, bucket.subs.get_mut(place)) {
                        let change = value - before;
                        let normalized = unit.map(|unit| change * unit / (at - from));
                        *slot = Partial::Computed(Computed::Derivative(change, normalized));
                    }
                    last = Some((value, at));
                }
            }
            PipelineKind::SerialDiff(lag) => {
                let values: Vec<Option<f64>> = list
                    .iter_mut()
                    .map(|(_, bucket)| value_of(aggregation, bucket, &pipeline.path, pipeline))
                    .collect();
                for (at, (_, bucket)) in list.iter_mut().enumerate().skip(*lag) {
                    if let (Some(now), Some(then), Some(slot)) =
                        (values[at], values[at - lag], bucket.subs.get_mut(place))
                    {
                        *slot = Partial::Computed(Computed::Number(now - then));
                    }
                }
            }
            PipelineKind::Moving(asked) => {
                let values: Vec<Option<f64>> = list
                    .iter_mut()
                    .map(|(_, bucket)| value_of(aggregation, bucket, &pipeline.path, pipeline))
                    .collect();
                // Gaps have no place in the window.
                let numbers: Vec<f64> = values.iter().copied().flatten().collect();
                let filled = list.iter_mut().zip(&values).filter(|(_, value)| value.is_some());
                for (at, ((_, bucket), _)) in filled.enumerate() {
                    work::check()?;
                    let number = moving::compute(&asked.function, moving::window_of(asked, &numbers, at));
                    if let Some(slot) = bucket.subs.get_mut(place) {
                        *slot = Partial::Computed(Computed::Number(number));
                    }
                }
            }
            PipelineKind::Normalize(method) => {
                let values: Vec<f64> = list
                    .iter_mut()
                    .map(|(_, bucket)| {
                        value_of(aggregation, bucket, &pipeline.path, pipeline).unwrap_or(f64::NAN)
                    })
                    .collect();
                for ((_, bucket), value) in list.iter_mut().zip(normalized(*method, &values)) {
                    if let Some(slot) = bucket.subs.get_mut(place) {
                        *slot = Partial::Computed(Computed::Number(value));
                    }
                }
            }
            PipelineKind::Script(script) => {
                let mut running = script.script.over_numbers(script.names());
                for (key, bucket) in list.iter_mut() {
                    work::check()?;
                    let numbers: Option<Vec<f64>> =
                        numbers_of(aggregation, key, bucket, script, pipeline).into_iter().collect();
                    let Some(numbers) = numbers else { continue };
                    if let Some(number) = running.number(&numbers).map_err(QueryError::from)?
                        && let Some(slot) = bucket.subs.get_mut(place)
                    {
                        *slot = Partial::Computed(Computed::Number(number));
                    }
                }
            }
            PipelineKind::Selector(script) => {
                let mut running = script.script.over_numbers(script.names());
                let mut kept = Vec::with_capacity(list.len());
                for (key, mut bucket) in list.drain(..) {
                    work::check()?;
                    let numbers = numbers_of(aggregation, &key, &mut bucket, script, pipeline);
                    let numbers: Vec<f64> =
                        numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect();
                    if running.holds(&numbers).map_err(QueryError::from)? {
                        kept.push((key, bucket));
                    }
                }
                *list = kept;
            }
            PipelineKind::Sort { order, from, size } => {
                let numbers = |bucket: &mut Bucket| -> Vec<Option<f64>> {
                    let number = |key: &Order| match &key.by {
                        OrderBy::Metric(path) => value_of(aggregation, bucket, path, pipeline),
                        OrderBy::Count | OrderBy::Key => Some(0.0),
                    };
                    order.iter().map(number).collect()
                };
                if !order.is_empty() {
                    let mut ranked: Vec<Ranked> = Vec::with_capacity(list.len());
                    for mut entry in list.drain(..) {
                        work::check()?;
                        ranked.push((numbers(&mut entry.1), entry));
                    }
                    // Buckets with nothing to order them by have no place in the order.
                    ranked.retain(|(numbers, _)| numbers.iter().any(Option::is_some));
                    ranked.sort_by(|a, b| compare_ranked(order, a, b));
                    list.extend(ranked.into_iter().map(|(_, entry)| entry));
                }
                list.drain(..(*from).min(list.len()));
                if let Some(size) = size {
                    list.truncate(*size);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The numbers of a bucket that a script reads; none where the bucket is a gap.
fn numbers_of(
    aggregation: &Aggregation,
    key: &Key,
    bucket: &mut Bucket,
    script: &BucketScript,
    pipeline: &Pipeline,
) -> Vec<Option<f64>> {
    let number = |(_, path): &(String, MetricPath)| {
        if path.names.len() == 1 && path.names[0] == "_key" {
            return Some(key.number()).filter(|number| number.is_finite());
        }
        value_of(aggregation, bucket, path, pipeline)
    };
    script.paths.iter().map(number).collect()
}

/// Positions of the pipelines among sub-aggregations, each behind those that it reads.
///
/// # Errors
/// The name of one of them, if some read each other in a circle.
pub fn pipeline_order(subs: &[Aggregation]) -> Result<Vec<usize>, &str> {
    let places: FxHashMap<&str, usize> =
        subs.iter().enumerate().map(|(place, sub)| (sub.name.as_str(), place)).collect();
    let mut visit = Visit { subs, places, met: vec![Met::Not; subs.len()], ordered: Vec::new() };
    (0..subs.len()).try_for_each(|place| visit.follow(place))?;
    Ok(visit.ordered)
}

/// A walk over pipelines along what they read.
struct Visit<'s> {
    subs: &'s [Aggregation],
    places: FxHashMap<&'s str, usize>,
    met: Vec<Met>,
    ordered: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Met {
    Not,
    /// The walk is at a pipeline below this one. If it meets this one again, the two are part of a circle.
    Open,
    Ordered,
}

impl<'s> Visit<'s> {
    fn follow(&mut self, place: usize) -> Result<(), &'s str> {
        let AggregationKind::Pipeline(pipeline) = &self.subs[place].kind else { return Ok(()) };
        match self.met[place] {
            Met::Ordered => return Ok(()),
            Met::Open => return Err(&self.subs[place].name),
            Met::Not => self.met[place] = Met::Open,
        }
        for path in pipeline.paths() {
            if let Some(read) = path.names.first().and_then(|name| self.places.get(name.as_str())) {
                self.follow(*read)?;
            }
        }
        self.met[place] = Met::Ordered;
        self.ordered.push(place);
        Ok(())
    }
}

/// A bucket with the numbers by which `bucket_sort` sorts, one per sort key.
type Ranked = (Vec<Option<f64>>, (Key, Bucket));

/// Compares buckets for `bucket_sort`; a bucket without a number comes last in either direction. The sort has to be
/// stable.
fn compare_ranked(
    order: &[Order],
    (numbers, (key, bucket)): &Ranked,
    (other_numbers, (other_key, other)): &Ranked,
) -> Ordering {
    let directed = |ordering: Ordering, by: &Order| if by.ascending { ordering } else { ordering.reverse() };
    order
        .iter()
        .enumerate()
        .map(|(place, by)| match &by.by {
            OrderBy::Count => directed(bucket.docs.cmp(&other.docs), by),
            OrderBy::Key => directed(key.cmp(other_key), by),
            OrderBy::Metric(_) => match (numbers[place], other_numbers[place]) {
                (Some(one), Some(two)) => directed(one.total_cmp(&two), by),
                (one, two) => one.is_none().cmp(&two.is_none()),
            },
        })
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Scales numbers by a `normalize` method. NaN stays NaN and is left out of sums and extremes.
fn normalized(method: Normalization, values: &[f64]) -> Vec<f64> {
    let mut stats = Stats::default();
    values.iter().filter(|value| !value.is_nan()).for_each(|value| stats.add(*value));
    let span = stats.max - stats.min;
    let exponentials: f64 = values.iter().filter(|value| !value.is_nan()).map(|value| value.exp()).sum();
    let one = |value: f64| match method {
        Normalization::Rescale01 => (value - stats.min) / span,
        Normalization::Rescale0100 => 100.0 * (value - stats.min) / span,
        Normalization::PercentOfSum => value / stats.sum.value(),
        Normalization::Mean => (value - stats.mean()) / span,
        Normalization::ZScore => (value - stats.mean()) / stats.variance().sqrt(),
        Normalization::Softmax => value.exp() / exponentials,
    };
    values.iter().map(|value| one(*value)).collect()
}
