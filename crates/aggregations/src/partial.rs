//! Results of a part of the documents, which can be merged with those of other parts.

use std::cmp::Ordering;

use rustc_hash::FxHashSet;
use sparrow_runtime::work::{self, Stopped};
use tantivy::DocAddress;

use super::ast::{Aggregation, AggregationKind, HitOrder, HitOrderBy, MultiTerms};
use super::key::Key;
use super::sketch::{Distinct, Distribution};
use super::strings::StringStats;

/// Partial result of one aggregation in one bucket.
#[derive(Debug, Clone)]
pub enum Partial {
    /// No document was collected.
    Nothing,
    /// Count, sum, minimum and maximum of numbers.
    Stats(Stats),
    /// The set of distinct values, possibly as a sketch.
    Distinct(Distinct),
    /// The distribution of numbers.
    Distribution(Distribution),
    /// Weighted sum and sum of the weights.
    Weighted(KahanSum, KahanSum),
    /// Lengths of texts, and frequencies of the characters in them.
    Strings(StringStats),
    /// The first hits of the bucket.
    TopHits(TopList),
    /// Buckets in arbitrary order.
    Buckets(Vec<(Key, Bucket)>),
    /// Buckets in the order of the response, and a number that goes with them: of documents in buckets left out; of all documents,
    /// where values are compared with a background; or that of the interval of an `auto_date_histogram`.
    Ordered(Vec<(Key, Bucket)>, u64),
    /// Result of a pipeline aggregation.
    Computed(Computed),
}

/// Result of a pipeline aggregation for one bucket, or for its siblings.
#[derive(Debug, Clone)]
pub enum Computed {
    /// A single number.
    Number(f64),
    /// The change from the previous bucket, and the change per unit if a unit was given.
    Derivative(f64, Option<f64>),
    /// The smallest or largest number, and the keys of the buckets that have it.
    Extreme(f64, Vec<Key>),
    /// Count, sum, minimum and maximum of the buckets' numbers.
    Stats(Stats),
    /// One value for each of the requested percentages.
    Percentiles(Vec<f64>),
}

/// The documents with one key: their number, and the results of sub-aggregations.
#[derive(Debug, Clone, Default)]
pub struct Bucket {
    /// Number of documents in the bucket.
    pub docs: u64,
    /// Results of the sub-aggregations, in the order of the request.
    pub subs: Vec<Partial>,
}

/// A sum by Kahan's algorithm, which compensates for rounding errors.
#[derive(Debug, Clone, Copy, Default)]
pub struct KahanSum {
    value: f64,
    lost: f64,
}

impl KahanSum {
    /// Adds a number to the sum.
    pub fn add(&mut self, number: f64) {
        if !number.is_finite() || !self.value.is_finite() {
            self.value += number;
            return;
        }
        let corrected = number + self.lost;
        let sum = self.value + corrected;
        self.lost = corrected - (sum - self.value);
        self.value = sum;
    }

    /// Adds another sum, with its compensation, to this one.
    pub fn merge(&mut self, other: KahanSum) {
        self.add(other.value);
        self.lost += other.lost;
    }

    /// The sum, including the compensation.
    pub fn value(self) -> f64 {
        self.value + if self.value.is_finite() { self.lost } else { 0.0 }
    }
}

/// Count, sums, minimum and maximum of numbers, gathered in one pass.
#[derive(Debug, Clone, Copy)]
pub struct Stats {
    /// Number of values added.
    pub count: u64,
    /// The sum of the numbers.
    pub sum: KahanSum,
    /// Sum of the values' squares.
    pub squares: KahanSum,
    /// Smallest value; positive infinity if there are none.
    pub min: f64,
    /// Largest value; negative infinity if there are none.
    pub max: f64,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            count: 0,
            sum: KahanSum::default(),
            squares: KahanSum::default(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Stats {
    /// Adds a value to the count, sums and extremes.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum.add(value);
        self.squares.add(value * value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn merge(&mut self, other: &Stats) {
        self.count += other.count;
        self.sum.merge(other.sum);
        self.squares.merge(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// A hit in the result of `top_hits` or `top_metrics`.
#[derive(Debug, Clone)]
pub struct TopHit {
    /// Position of the document's index among the indices searched.
    pub target: usize,
    /// Segment and id of the document.
    pub addr: DocAddress,
    /// Score of the hit.
    pub score: f32,
    /// Sequence number of the document's last write.
    pub seq_no: u64,
    /// Sort values of the hit, one per sort key.
    pub sort: Vec<Key>,
}

/// The first hits of a bucket, in sort order.
#[derive(Debug, Clone, Default)]
pub struct TopList {
    /// Number of documents in the bucket.
    pub total: u64,
    /// Highest score of any document in the bucket; `None` without scores.
    pub max_score: Option<f32>,
    /// The first hits, at most as many as requested.
    pub hits: Vec<TopHit>,
}

/// Compares two hits by the sort keys `order`; by descending score if there are none. Ties are broken by index and
/// write order.
pub fn compare_hits(order: &[HitOrder], a: &TopHit, b: &TopHit) -> Ordering {
    let last = a.target.cmp(&b.target).then(a.seq_no.cmp(&b.seq_no));
    if order.is_empty() {
        return b.score.total_cmp(&a.score).then(last);
    }
    let mut ordering = Ordering::Equal;
    for (place, by) in order.iter().enumerate() {
        ordering = match by.by {
            HitOrderBy::Score if by.ascending => a.score.total_cmp(&b.score),
            HitOrderBy::Score => b.score.total_cmp(&a.score),
            HitOrderBy::Doc if by.ascending => last,
            HitOrderBy::Doc => last.reverse(),
            HitOrderBy::Field(_) => match (&a.sort[place], &b.sort[place]) {
                (Key::Missing, Key::Missing) => Ordering::Equal,
                (Key::Missing, _) if by.missing_first => Ordering::Less,
                (Key::Missing, _) => Ordering::Greater,
                (_, Key::Missing) if by.missing_first => Ordering::Greater,
                (_, Key::Missing) => Ordering::Less,
                (a, b) if by.ascending => a.cmp(b),
                (a, b) => b.cmp(a),
            },
        };
        if ordering != Ordering::Equal {
            break;
        }
    }
    ordering.then(last)
}

/// Ids of the aggregations and sources whose keys are doubles in one index and integers in another.
pub type Widened = FxHashSet<usize>;

/// Merges results of the same aggregation.
///
/// # Errors
/// When the request must stop, or there is no memory for all buckets.
pub fn merge(aggregation: &Aggregation, parts: Vec<Partial>, widened: &Widened) -> Result<Partial, Stopped> {
    let mut parts = parts.into_iter().filter(|part| !matches!(part, Partial::Nothing)).peekable();
    let Some(first) = parts.next() else { return Ok(Partial::Nothing) };
    if parts.peek().is_none() && !matches!(first, Partial::Buckets(_)) {
        return Ok(first);
    }
    Ok(match first {
        Partial::Nothing | Partial::Ordered(..) | Partial::Computed(_) => first,
        Partial::Stats(mut stats) => {
            for part in parts {
                if let Partial::Stats(other) = part {
                    stats.merge(&other);
                }
            }
            Partial::Stats(stats)
        }
        Partial::Distinct(mut distinct) => {
            let threshold = match &aggregation.kind {
                AggregationKind::Cardinality { precision_threshold, .. } => *precision_threshold,
                _ => 0,
            };
            for part in parts {
                if let Partial::Distinct(other) = part {
                    distinct.merge(other, threshold);
                }
            }
            Partial::Distinct(distinct)
        }
        Partial::Distribution(mut distribution) => {
            for part in parts {
                if let Partial::Distribution(other) = part {
                    distribution.merge(other);
                }
            }
            Partial::Distribution(distribution)
        }
        Partial::Strings(mut strings) => {
            for part in parts {
                if let Partial::Strings(other) = part {
                    strings.merge(other);
                }
            }
            Partial::Strings(strings)
        }
        Partial::Weighted(mut sum, mut weights) => {
            for part in parts {
                if let Partial::Weighted(more, more_weights) = part {
                    sum.merge(more);
                    weights.merge(more_weights);
                }
            }
            Partial::Weighted(sum, weights)
        }
        Partial::TopHits(mut list) => {
            for part in parts {
                if let Partial::TopHits(other) = part {
                    list.total += other.total;
                    list.max_score = match (list.max_score, other.max_score) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        (a, b) => a.or(b),
                    };
                    list.hits.extend(other.hits);
                }
            }
            if let AggregationKind::TopHits(top) = &aggregation.kind {
                list.hits.sort_by(|a, b| compare_hits(&top.sort, a, b));
                list.hits.truncate(top.from + top.size);
            }
            Partial::TopHits(list)
        }
        Partial::Buckets(first) => {
            if parts.peek().is_none() && widened.is_empty() {
                return Ok(Partial::Buckets(first));
            }
            let lists = std::iter::once(first).chain(parts.filter_map(|part| match part {
                Partial::Buckets(buckets) => Some(buckets),
                _ => None,
            }));
            let mut sorted = Vec::new();
            for list in lists {
                sort_by_key(aggregation, list, widened, &mut sorted)?;
            }
            Partial::Buckets(merge_sorted(aggregation, sorted, widened)?)
        }
    })
}

/// Buckets that are sorted without asking whether to stop.
const SORTED_AT_ONCE: usize = 1 << 16;

/// Divides buckets in arbitrary order into lists sorted by key, in each of which a key is there once.
fn sort_by_key(
    aggregation: &Aggregation,
    mut list: Vec<(Key, Bucket)>,
    widened: &Widened,
    sorted: &mut Vec<Vec<(Key, Bucket)>>,
) -> Result<(), Stopped> {
    work::check()?;
    if widened.is_empty() && list.is_sorted_by(|a, b| a.0 < b.0) {
        sorted.push(list);
        return Ok(());
    }
    while !list.is_empty() {
        let rest = list.len().saturating_sub(SORTED_AT_ONCE);
        work::room_for((list.len() - rest) * size_of::<(Key, Bucket)>())?;
        let mut piece = list.split_off(rest);
        if widened.is_empty() {
            piece.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            sorted.push(piece);
            continue;
        }
        for (key, bucket) in &mut piece {
            work::check()?;
            *key = widen(aggregation, std::mem::replace(key, Key::Missing), widened);
            if !aggregation.subs.is_empty() {
                // Nothing may be joined to it later, and the keys below it are to be like all others.
                *bucket = merge_buckets(aggregation, vec![std::mem::take(bucket)], widened)?;
            }
        }
        piece.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut merged: Vec<(Key, Bucket)> = Vec::with_capacity(piece.len());
        for (key, bucket) in piece {
            match merged.last_mut() {
                // Large whole numbers may be one floating-point number.
                Some((last, known)) if *last == key => {
                    let both = vec![std::mem::take(known), bucket];
                    *known = merge_buckets(aggregation, both, widened)?;
                }
                _ => merged.push((key, bucket)),
            }
        }
        sorted.push(merged);
    }
    Ok(())
}

/// Merges lists of buckets sorted by key: pairs of lists are merged until one is left.
fn merge_sorted(
    aggregation: &Aggregation,
    mut lists: Vec<Vec<(Key, Bucket)>>,
    widened: &Widened,
) -> Result<Vec<(Key, Bucket)>, Stopped> {
    while lists.len() > 1 {
        let mut pairs = lists.into_iter();
        let mut merged = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(first) = pairs.next() {
            merged.push(match pairs.next() {
                Some(second) => merge_two(aggregation, first, second, widened)?,
                None => first,
            });
        }
        lists = merged;
    }
    Ok(lists.pop().unwrap_or_default())
}

fn merge_two(
    aggregation: &Aggregation,
    first: Vec<(Key, Bucket)>,
    second: Vec<(Key, Bucket)>,
    widened: &Widened,
) -> Result<Vec<(Key, Bucket)>, Stopped> {
    let both = first.len() + second.len();
    work::room_for(both * size_of::<(Key, Bucket)>())?;
    let mut merged = Vec::with_capacity(both);
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    while let (Some((a, _)), Some((b, _))) = (first.peek(), second.peek()) {
        work::check()?;
        match a.cmp(b) {
            Ordering::Less => merged.extend(first.next()),
            Ordering::Greater => merged.extend(second.next()),
            Ordering::Equal => {
                if let (Some((key, a)), Some((_, b))) = (first.next(), second.next()) {
                    let bucket = match aggregation.subs.is_empty() {
                        true => Bucket { docs: a.docs + b.docs, subs: Vec::new() },
                        false => merge_buckets(aggregation, vec![a, b], widened)?,
                    };
                    merged.push((key, bucket));
                }
            }
        }
    }
    merged.extend(first);
    merged.extend(second);
    Ok(merged)
}

fn widen(aggregation: &Aggregation, key: Key, widened: &Widened) -> Key {
    match (&aggregation.kind, key) {
        (AggregationKind::Terms(_) | AggregationKind::Significant(_), key)
            if widened.contains(&aggregation.id) =>
        {
            key.widened()
        }
        (
            AggregationKind::Composite(composite)
            | AggregationKind::MultiTerms(MultiTerms { key: composite, .. }),
            Key::Tuple(keys),
        ) => {
            let parts = keys.into_vec().into_iter().zip(&composite.sources);
            Key::Tuple(
                parts
                    .map(|(key, source)| if widened.contains(&source.id) { key.widened() } else { key })
                    .collect(),
            )
        }
        (_, key) => key,
    }
}

/// The bucket of the documents of several; without any, an empty one.
///
/// # Errors
/// When the request has to stop.
pub fn merge_all(aggregation: &Aggregation, buckets: Vec<Bucket>) -> Result<Bucket, Stopped> {
    match buckets.is_empty() {
        true => Ok(Bucket { docs: 0, subs: vec![Partial::Nothing; aggregation.subs.len()] }),
        false => merge_buckets(aggregation, buckets, &Widened::default()),
    }
}

fn merge_buckets(
    aggregation: &Aggregation,
    mut buckets: Vec<Bucket>,
    widened: &Widened,
) -> Result<Bucket, Stopped> {
    if buckets.len() == 1 && widened.is_empty() {
        return Ok(buckets.pop().unwrap_or_default());
    }
    let docs = buckets.iter().map(|bucket| bucket.docs).sum();
    let mut lists: Vec<_> = buckets.into_iter().map(|bucket| bucket.subs.into_iter()).collect();
    let subs = aggregation
        .subs
        .iter()
        .map(|sub| {
            let parts = lists.iter_mut().filter_map(Iterator::next).collect();
            merge(sub, parts, widened)
        })
        .collect::<Result<_, _>>()?;
    Ok(Bucket { docs, subs })
}
