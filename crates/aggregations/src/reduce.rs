//! Reduction of the results of all segments and indices to the response: they are merged, sorted, truncated, filled
//! with empty buckets, then written.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use sparrow_runtime::work;

use super::Collected;
use super::ast::{
    Aggregation, AggregationKind, Composite, DateHistogram, Histogram, HitOrderBy, MultiTerms, Order,
    OrderBy, Range, Significant,
};
use super::composite::{after_key, compare_tuples};
use super::error::AggregationError;
use super::fields::{Kind, Place, Resolved};
use super::hits::HitWriter;
use super::key::Key;
use super::order::{check_order, keep_first, sort_buckets};
use super::partial::{Bucket, Partial, Widened, merge};
use super::pipeline;
use super::rounding::interval_of;
use super::significance::{Background, count_backgrounds};
use super::write::write_all;

/// Options for the form of the response.
#[derive(Debug, Clone, Copy)]
pub struct ReduceOptions {
    /// Whether the names of results are prefixed with their type, as in `sterms#tags`.
    pub typed_keys: bool,
    /// Most buckets of the answer (`search.max_buckets`).
    pub max_buckets: usize,
}

/// Merges the results of all indices; returns the members of the response's `aggregations` object.
///
/// # Errors
/// If the fields of several indices are incompatible, or there are too many buckets.
pub fn reduce(
    aggregations: &[Aggregation],
    mut collected: Vec<Collected>,
    options: ReduceOptions,
    hits: &mut dyn HitWriter,
) -> Result<Map<String, Value>, AggregationError> {
    let mut parts: Vec<_> =
        collected.iter_mut().flat_map(|index| std::mem::take(&mut index.parts)).map(Vec::into_iter).collect();
    let mut fields = FxHashMap::default();
    let mut widened = Widened::default();
    for aggregation in aggregations {
        choose_fields(aggregation, &collected, &mut fields, &mut widened)?;
    }
    let mut reducer = Reducer {
        collected: &collected,
        fields,
        max_buckets: options.max_buckets,
        buckets: 0,
        pipelines: FxHashMap::default(),
        backgrounds: FxHashMap::default(),
    };
    let docs = collected.iter().map(|index| index.docs).sum();
    let mut results = Vec::with_capacity(aggregations.len());
    for aggregation in aggregations {
        let of_all = parts.iter_mut().filter_map(Iterator::next).collect();
        let merged = merge(aggregation, of_all, &widened)?;
        if aggregation.has_background() {
            count_backgrounds(aggregation, &merged, &collected, &mut reducer.backgrounds)?;
        }
        results.push(reducer.order(aggregation, merged, docs)?);
    }
    let text = |id: usize| reducer.fields.get(&id).is_some_and(|field| field.kind == Kind::Text);
    pipeline::siblings(aggregations, &mut results, &text)?;
    let Reducer { fields, backgrounds, .. } = reducer;
    write_all(aggregations, results, (&fields, &backgrounds), options.typed_keys, hits)
}

/// Chooses, for each field of an aggregation, the index whose resolved field decides how values are formatted, and
/// finds the keys that have to be widened.
fn choose_fields<'a>(
    aggregation: &Aggregation,
    collected: &'a [Collected],
    fields: &mut FxHashMap<usize, &'a Resolved>,
    widened: &mut Widened,
) -> Result<(), AggregationError> {
    let mut ids = vec![aggregation.id];
    match &aggregation.kind {
        AggregationKind::Composite(composite)
        | AggregationKind::MultiTerms(MultiTerms { key: composite, .. }) => {
            ids.extend(composite.sources.iter().map(|source| source.id))
        }
        AggregationKind::TopHits(top) => {
            ids.extend(
                top.sort.iter().filter(|key| matches!(key.by, HitOrderBy::Field(_))).map(|key| key.id),
            );
        }
        _ => {}
    }
    for id in ids {
        let mapped = || {
            let all = collected.iter().filter_map(|index| index.field(id));
            all.filter(|field| field.place != Place::Nowhere)
        };
        let any = || collected.iter().find_map(|index| index.field(id));
        let Some(chosen) = mapped().find(|field| field.kind == Kind::Double).or(mapped().next()).or(any())
        else {
            continue;
        };
        if mapped().any(|field| field.kind.is_numeric() != chosen.kind.is_numeric()) {
            return Err(AggregationError::Execution(format!(
                "Failed to reduce the aggregation [{}] because the field you gave in the aggregation query existed as \
                 two different types in two different indices",
                aggregation.name
            )));
        }
        if mapped().any(|field| field.kind != chosen.kind) {
            widened.insert(id);
        }
        fields.insert(id, chosen);
    }
    aggregation.subs.iter().try_for_each(|sub| choose_fields(sub, collected, fields, widened))
}

struct Reducer<'a> {
    collected: &'a [Collected],
    fields: FxHashMap<usize, &'a Resolved>,
    max_buckets: usize,
    buckets: usize,
    /// Positions of the pipelines among the sub-aggregations of an aggregation, by its id.
    pipelines: FxHashMap<usize, Vec<usize>>,
    /// What values are compared with, by the ids of aggregations.
    backgrounds: FxHashMap<usize, Background>,
}

impl Reducer<'_> {
    fn count(&mut self, buckets: usize) -> Result<(), AggregationError> {
        work::check()?;
        self.buckets = self.buckets.saturating_add(buckets);
        match self.buckets > self.max_buckets {
            true => Err(AggregationError::TooManyBuckets { limit: self.max_buckets }),
            false => Ok(()),
        }
    }

    /// Brings buckets into their final form, on all levels; `docs` is the number of documents in the bucket around them.
    fn order(
        &mut self,
        aggregation: &Aggregation,
        result: Partial,
        docs: u64,
    ) -> Result<Partial, AggregationError> {
        let makes_buckets = aggregation.is_multi_bucket() || aggregation.is_single_bucket();
        let mut list = match result {
            Partial::Buckets(list) => list,
            Partial::Nothing if makes_buckets => Vec::new(),
            other => return Ok(other),
        };
        let mut other = 0;
        match &aggregation.kind {
            AggregationKind::Terms(terms) => {
                check_order(aggregation, &terms.order)?;
                let most = terms.max_doc_count.unwrap_or(u64::MAX);
                list.retain(|(_, bucket)| bucket.docs >= terms.min_doc_count && bucket.docs <= most);
                other = sort_buckets(aggregation, &terms.order, &mut list, Some(terms.size))?;
            }
            AggregationKind::MultiTerms(multi) => {
                check_order(aggregation, &multi.order)?;
                list.retain(|(_, bucket)| bucket.docs >= multi.min_doc_count);
                other = sort_buckets(aggregation, &multi.order, &mut list, Some(multi.key.size))?;
            }
            AggregationKind::Grid(grid) => {
                other = sort_buckets(aggregation, &most_first(), &mut list, Some(grid.size))?;
            }
            AggregationKind::Significant(asked) => {
                self.significant(aggregation.id, asked, &mut list, docs)?;
                other = docs;
            }
            AggregationKind::AutoDates(asked) => {
                (list, other) = asked.arrange(aggregation, list, self.max_buckets)?;
            }
            AggregationKind::VariableWidths(asked) => list = asked.arrange(aggregation, list)?,
            AggregationKind::Adjacency(adjacency) => {
                list.sort_by_cached_key(|(key, _)| match key {
                    Key::Slot(slot) => adjacency.name(*slot),
                    _ => String::new(),
                });
            }
            AggregationKind::Range(range) => self.ranges(aggregation, range, &mut list)?,
            AggregationKind::AddressRanges(asked) => fill(aggregation, &mut list, 0..asked.ranges.len())?,
            AggregationKind::Histogram(histogram) => self.histogram(aggregation, histogram, &mut list)?,
            AggregationKind::DateHistogram(histogram) => {
                self.date_histogram(aggregation, histogram, &mut list)?;
            }
            AggregationKind::Filters(filters) => {
                let slots = filters.filters.len() + usize::from(filters.other.is_some());
                fill(aggregation, &mut list, 0..slots)?;
            }
            AggregationKind::Composite(composite) => {
                if composite.size > self.max_buckets {
                    return Err(AggregationError::TooManyBuckets { limit: self.max_buckets });
                }
                self.composite(composite, &mut list)?;
            }
            _ => fill(aggregation, &mut list, 0..1)?,
        }
        if aggregation.is_multi_bucket() {
            self.count(list.len())?;
        }
        for (_, bucket) in &mut list {
            work::check()?;
            let results =
                std::mem::take(&mut bucket.subs).into_iter().chain(std::iter::repeat(Partial::Nothing));
            for (sub, result) in aggregation.subs.iter().zip(results) {
                bucket.subs.push(self.order(sub, result, bucket.docs)?);
            }
            let fields = &self.fields;
            let text = |id: usize| fields.get(&id).is_some_and(|field| field.kind == Kind::Text);
            pipeline::siblings(&aggregation.subs, &mut bucket.subs, &text)?;
        }
        let pipelines = match self.pipelines.entry(aggregation.id) {
            Entry::Occupied(known) => known.into_mut(),
            // A request with a circle is refused when it is read.
            Entry::Vacant(new) => new.insert(pipeline::pipeline_order(&aggregation.subs).unwrap_or_default()),
        };
        pipeline::parents(aggregation, pipelines, &mut list)?;
        Ok(Partial::Ordered(list, other))
    }

    /// Keeps the most significant values, these first.
    fn significant(
        &self,
        id: usize,
        asked: &Significant,
        list: &mut Vec<(Key, Bucket)>,
        docs: u64,
    ) -> Result<(), AggregationError> {
        let none = Background::default();
        let background = self.backgrounds.get(&id).unwrap_or(&none);
        work::room_for(list.len() * size_of::<(f64, (Key, Bucket))>())?;
        let mut ranked = Vec::with_capacity(list.len());
        for (key, bucket) in std::mem::take(list) {
            work::check()?;
            if bucket.docs < asked.min_doc_count {
                continue;
            }
            let score = asked.heuristic.score(background.counts(&key, bucket.docs, docs))?;
            if score > 0.0 {
                ranked.push((score, (key, bucket)));
            }
        }
        let compare = |(score, a): &(f64, (Key, Bucket)), (other, b): &(f64, (Key, Bucket))| {
            other.total_cmp(score).then(b.1.docs.cmp(&a.1.docs)).then_with(|| a.0.cmp(&b.0))
        };
        keep_first(&mut ranked, Some(asked.size), |_| 0, compare);
        list.extend(ranked.into_iter().map(|(_, entry)| entry));
        Ok(())
    }

    /// Sorts the buckets of ranges by their lower ends, adding those without documents.
    fn ranges(
        &self,
        aggregation: &Aggregation,
        range: &Range,
        list: &mut Vec<(Key, Bucket)>,
    ) -> Result<(), AggregationError> {
        let ends = self.collected.iter().find_map(|index| index.bound.ranges.get(&aggregation.id));
        let mut slots: Vec<usize> = (0..range.ranges.len()).collect();
        if let Some(ends) = ends {
            slots.sort_by(|&a, &b| ends[a].0.total_cmp(&ends[b].0).then(ends[a].1.total_cmp(&ends[b].1)));
        }
        fill(aggregation, list, slots.into_iter())
    }

    /// Removes the buckets of too few documents. What is too many for an answer is not sorted first.
    fn few_of(&self, min_doc_count: u64, list: &mut Vec<(Key, Bucket)>) -> Result<(), AggregationError> {
        work::check()?;
        list.retain(|(_, bucket)| bucket.docs >= min_doc_count);
        match list.len() > self.max_buckets {
            true => Err(AggregationError::TooManyBuckets { limit: self.max_buckets }),
            false => Ok(()),
        }
    }

    fn histogram(
        &mut self,
        aggregation: &Aggregation,
        histogram: &Histogram,
        list: &mut Vec<(Key, Bucket)>,
    ) -> Result<(), AggregationError> {
        check_order(aggregation, &histogram.order)?;
        self.few_of(histogram.min_doc_count, list)?;
        list.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if histogram.min_doc_count == 0 {
            let start = |value: f64| interval_of(value, histogram.interval, histogram.offset);
            let (mut from, mut to) = (
                list.first().map_or(f64::INFINITY, |(key, _)| key.number()),
                list.last().map_or(f64::NEG_INFINITY, |(key, _)| key.number()),
            );
            // Without any document two bounds are needed; with some, each makes the histogram longer at its end.
            let bounds = histogram
                .extended_bounds
                .filter(|(least, most)| !list.is_empty() || least.is_some() && most.is_some());
            if let Some((least, most)) = bounds {
                if let Some(least) = least {
                    from = from.min(start(least));
                    to = to.max(from);
                }
                if let Some(most) = most {
                    to = to.max(start(most));
                    from = from.min(to);
                }
            }
            if from <= to {
                let steps = ((to - from) / histogram.interval).round();
                if steps.is_nan() || steps >= self.max_buckets as f64 {
                    return Err(AggregationError::TooManyBuckets { limit: self.max_buckets });
                }
                let first = ((from - histogram.offset) / histogram.interval).round();
                let keys = (0..=steps as usize)
                    .map(|step| Key::double((first + step as f64) * histogram.interval + histogram.offset));
                fill_gaps(aggregation, list, keys)?;
            }
        }
        sort_buckets(aggregation, &histogram.order, list, None)?;
        Ok(())
    }

    fn date_histogram(
        &mut self,
        aggregation: &Aggregation,
        histogram: &DateHistogram,
        list: &mut Vec<(Key, Bucket)>,
    ) -> Result<(), AggregationError> {
        check_order(aggregation, &histogram.order)?;
        self.few_of(histogram.min_doc_count, list)?;
        list.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if histogram.min_doc_count == 0 {
            let rounding = &histogram.rounding;
            let at = |key: Option<&(Key, Bucket)>| match key {
                Some((Key::Long(at), _)) => Some(*at),
                _ => None,
            };
            let bounds = self.collected.iter().find_map(|index| index.bound.extended.get(&aggregation.id));
            let (least, most) = bounds.copied().unwrap_or_default();
            let rounded = |end: Option<i64>| end.map(|at| rounding.round(at));
            let (least, most) = (rounded(least), rounded(most));
            let ends = match (at(list.first()), at(list.last())) {
                (Some(first), Some(last)) => {
                    Some((least.map_or(first, |at| at.min(first)), most.map_or(last, |at| at.max(last))))
                }
                // Without any document two bounds are needed.
                _ => least.zip(most),
            };
            if let Some((from, to)) = ends {
                let steps = (i128::from(to) - i128::from(from)) / i128::from(rounding.shortest().max(1));
                if steps > self.max_buckets as i128 {
                    return Err(AggregationError::TooManyBuckets { limit: self.max_buckets });
                }
                let keys = std::iter::successors(Some(from), |&at| {
                    Some(rounding.next(at)).filter(|&next| next > at)
                });
                fill_gaps(aggregation, list, keys.take_while(|&at| at <= to).map(Key::Long))?;
            }
        }
        sort_buckets(aggregation, &histogram.order, list, None)?;
        Ok(())
    }

    fn composite(
        &self,
        composite: &Composite,
        list: &mut Vec<(Key, Bucket)>,
    ) -> Result<(), AggregationError> {
        if let Some(after) = &composite.after {
            let mut keys = Vec::with_capacity(after.len());
            for (source, value) in composite.sources.iter().zip(after) {
                keys.push(after_key(self.fields.get(&source.id).copied(), source, value)?);
            }
            list.retain(|(key, _)| match key {
                Key::Tuple(key) => compare_tuples(&composite.sources, key, &keys) == Ordering::Greater,
                _ => false,
            });
        }
        let compare = |a: &(Key, Bucket), b: &(Key, Bucket)| match (&a.0, &b.0) {
            (Key::Tuple(a), Key::Tuple(b)) => compare_tuples(&composite.sources, a, b),
            (a, b) => a.cmp(b),
        };
        if list.len() > composite.size {
            list.select_nth_unstable_by(composite.size, compare);
            list.truncate(composite.size);
        }
        list.sort_by(compare);
        match list.last() {
            Some((Key::Tuple(last), _)) => self.check_after_key(composite, last),
            _ => Ok(()),
        }
    }

    /// Checks that the next page can continue after the last bucket: formatting a date must not lose what its key
    /// needs.
    fn check_after_key(&self, composite: &Composite, last: &[Key]) -> Result<(), AggregationError> {
        for (source, key) in composite.sources.iter().zip(last) {
            let (Some(format), Key::Long(value)) = (&source.source.format, key) else { continue };
            let Some(field) = self.fields.get(&source.id).copied().filter(|field| field.kind == Kind::Date)
            else {
                continue;
            };
            let text = field.format.whole_text(*value).unwrap_or_default();
            match after_key(Some(field), source, &Value::from(text.as_str())) {
                Ok(parsed) if parsed == *key => {}
                _ => {
                    return Err(AggregationError::IllegalArgument(format!(
                        "Format [{format}] created output it couldn't parse for value [{value}] of type \
                         [class java.lang.Long]. formatted value: [{text}]"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// The order of cells: those with most documents first, the last ones of equally many.
fn most_first() -> [Order; 2] {
    [OrderBy::Count, OrderBy::Key].map(|by| Order { by, ascending: false })
}

fn empty(aggregation: &Aggregation) -> Bucket {
    Bucket { docs: 0, subs: vec![Partial::Nothing; aggregation.subs.len()] }
}

/// Arranges buckets in the order of `slots`, adding empty ones for slots without documents.
fn fill(
    aggregation: &Aggregation,
    list: &mut Vec<(Key, Bucket)>,
    slots: impl Iterator<Item = usize>,
) -> Result<(), AggregationError> {
    let mut buckets: FxHashMap<usize, Bucket> = std::mem::take(list)
        .into_iter()
        .filter_map(|(key, bucket)| match key {
            Key::Slot(slot) => Some((slot, bucket)),
            _ => None,
        })
        .collect();
    for slot in slots {
        work::check()?;
        list.push((Key::Slot(slot), buckets.remove(&slot).unwrap_or_else(|| empty(aggregation))));
    }
    Ok(())
}

/// Inserts empty buckets into a sorted list for those of `keys` that it lacks. Floating-point keys that differ only
/// in the last digits count as equal.
fn fill_gaps(
    aggregation: &Aggregation,
    list: &mut Vec<(Key, Bucket)>,
    keys: impl Iterator<Item = Key>,
) -> Result<(), AggregationError> {
    let mut buckets = std::mem::take(list).into_iter().peekable();
    for key in keys {
        work::check()?;
        let near = |other: &Key| match (&key, other) {
            (Key::Double(_), Key::Double(_)) => {
                let (a, b) = (key.number(), other.number());
                a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
            }
            (a, b) => a == b,
        };
        match buckets.peek().is_some_and(|(next, _)| near(next)) {
            true => list.extend(buckets.next()),
            false => {
                // A bucket that is off the grid keeps its place.
                while buckets.peek().is_some_and(|(next, _)| *next < key) {
                    list.extend(buckets.next());
                }
                list.push((key, empty(aggregation)));
            }
        }
    }
    list.extend(buckets);
    Ok(())
}
