//! Values computed for each bucket in one segment.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};
use sparrow_runtime::work;
use tantivy::DocAddress;

use super::ast::{Aggregation, AggregationKind, HitOrder, HitOrderBy, StatsKind, TopHits};
use super::error::AggregationError;
use super::fields::Kind;
use super::key::Key;
use super::partial::{KahanSum, Partial, Stats, TopHit, TopList};
use super::pieces::InPieces;
use super::segment_context::SegmentContext;
use super::sketch::{Distinct, Distribution, hash};
use super::slots::room_to_grow;
use super::strings::StringStats;
use super::values::{MOST_CODES, Scratch, Values};

/// A metric aggregation while documents are collected.
pub struct Metric<'a> {
    kind: MetricKind<'a>,
    scratch: Scratch,
    numbers: Vec<(u32, f64)>,
    codes: Vec<(u32, u64)>,
}

enum MetricKind<'a> {
    Stats { values: Values, found: Vec<Stats> },
    Count { values: Values, found: Vec<Stats> },
    Distinct { values: Values, threshold: usize, found: Vec<Codes> },
    Distribution { values: Values, found: Vec<Distribution>, positive: bool },
    Strings { values: Values, found: Vec<FxHashMap<u64, u64>> },
    Weighted { values: Values, weights: Values, found: Vec<(KahanSum, KahanSum)> },
    TopHits { top: &'a TopHits, keys: Vec<Option<Values>>, found: Vec<TopCodes> },
}

/// Distinct value codes of a bucket: ordinals for texts, only hashes for numbers.
enum Codes {
    Ordinals(FxHashSet<u64>),
    Hashes(Distinct),
}

#[derive(Default)]
struct TopCodes {
    total: u64,
    max_score: Option<f32>,
    hits: Vec<HitCodes>,
}

struct HitCodes {
    doc: u32,
    score: f32,
    seq_no: u64,
    sort: Vec<Option<u64>>,
}

impl InPieces for Metric<'_> {
    fn piece(&self, docs: &[u32]) -> usize {
        match &self.kind {
            MetricKind::Stats { values, .. }
            | MetricKind::Count { values, .. }
            | MetricKind::Distinct { values, .. }
            | MetricKind::Distribution { values, .. }
            | MetricKind::Strings { values, .. } => values.fitting(docs, MOST_CODES),
            MetricKind::Weighted { values, weights, .. } => {
                weights.fitting(&docs[..values.fitting(docs, MOST_CODES)], MOST_CODES)
            }
            MetricKind::TopHits { keys, .. } => {
                let most = docs.len().min((MOST_CODES / (keys.len() + 1)).max(1));
                keys.iter().flatten().fold(most, |piece, values| values.fitting(&docs[..piece], MOST_CODES))
            }
        }
    }

    fn collect_piece(
        &mut self,
        docs: &[u32],
        parents: &[u32],
        context: &SegmentContext<'_>,
    ) -> Result<(), AggregationError> {
        let Self { kind, scratch, numbers, codes } = self;
        match kind {
            MetricKind::Stats { values, found } => {
                values.numbers(docs, scratch, numbers);
                each(numbers, |place, value| {
                    at(found, parents[place as usize]).add(value);
                    Ok(())
                })
            }
            MetricKind::Count { values, found } => {
                values.codes(docs, scratch, codes);
                each(codes, |place, _| {
                    at(found, parents[place as usize]).count += 1;
                    Ok(())
                })
            }
            MetricKind::Distinct { values, threshold, found } => {
                values.codes(docs, scratch, codes);
                let texts = values.kind == Kind::Text;
                let empty = || match texts {
                    true => Codes::Ordinals(FxHashSet::default()),
                    false => Codes::Hashes(Distinct::default()),
                };
                each(codes, |place, code| {
                    let parent = parents[place as usize] as usize;
                    while found.len() <= parent {
                        found.push(empty());
                    }
                    match &mut found[parent] {
                        Codes::Ordinals(ordinals) => {
                            room_to_grow(ordinals.len(), 1, ordinals.capacity(), SET_ENTRY)?;
                            ordinals.insert(code);
                        }
                        Codes::Hashes(distinct) => distinct.insert(hash(&key_of(values, code)), *threshold),
                    }
                    Ok(())
                })
            }
            MetricKind::Distribution { values, found, positive } => {
                values.numbers(docs, scratch, numbers);
                each(numbers, |place, value| {
                    // An HDR histogram counts from zero.
                    if *positive && value < 0.0 {
                        return Err(AggregationError::Execution(format!(
                            "ArrayIndexOutOfBoundsException: Negative values are not supported by DoubleHistogram, \
                             got [{value:?}]"
                        )));
                    }
                    at(found, parents[place as usize]).insert(value);
                    Ok(())
                })
            }
            MetricKind::Strings { values, found } => {
                values.codes(docs, scratch, codes);
                each(codes, |place, code| {
                    let times = at(found, parents[place as usize]);
                    room_to_grow(times.len(), 1, times.capacity(), 2 * SET_ENTRY)?;
                    *times.entry(code).or_default() += 1;
                    Ok(())
                })
            }
            MetricKind::Weighted { values, weights, found } => {
                weights.numbers(docs, scratch, numbers);
                let mut of_doc: Vec<Option<f64>> = vec![None; docs.len()];
                for &(place, weight) in numbers.iter() {
                    if of_doc[place as usize].replace(weight).is_some() {
                        return Err(AggregationError::IllegalArgument(
                            "Encountered more than one weight for a single document. Use a script to combine \
                             multiple weights-per-doc into a single value."
                                .to_owned(),
                        ));
                    }
                }
                values.numbers(docs, scratch, numbers);
                each(numbers, |place, value| {
                    if let Some(weight) = of_doc[place as usize] {
                        let (sum, total) = at(found, parents[place as usize]);
                        sum.add(value * weight);
                        total.add(weight);
                    }
                    Ok(())
                })
            }
            MetricKind::TopHits { top, keys, found } => {
                top_hits(top, keys, found, docs, parents, scratch, codes, context)
            }
        }
    }
}

impl<'a> Metric<'a> {
    /// Prepares a metric for a segment; `None` if the aggregation is not a metric.
    pub fn new(
        aggregation: &'a Aggregation,
        context: &SegmentContext<'_>,
    ) -> Result<Option<Self>, AggregationError> {
        let open = |id: usize| match context.bound.fields.get(&id) {
            Some(resolved) => resolved.open(context.reader),
            None => Err(AggregationError::Execution(format!("aggregation number {id} was not bound"))),
        };
        let id = aggregation.id;
        let kind = match &aggregation.kind {
            AggregationKind::Stats(StatsKind::ValueCount, _) => {
                MetricKind::Count { values: open(id)?, found: Vec::new() }
            }
            AggregationKind::Stats(..) => MetricKind::Stats { values: open(id)?, found: Vec::new() },
            AggregationKind::Cardinality { precision_threshold, .. } => {
                MetricKind::Distinct { values: open(id)?, threshold: *precision_threshold, found: Vec::new() }
            }
            AggregationKind::Percentiles(percentiles) | AggregationKind::PercentileRanks(percentiles) => {
                MetricKind::Distribution {
                    values: open(id)?,
                    found: Vec::new(),
                    positive: percentiles.hdr.is_some(),
                }
            }
            AggregationKind::StringStats { .. } => {
                MetricKind::Strings { values: open(id)?, found: Vec::new() }
            }
            AggregationKind::MedianAbsoluteDeviation(_) | AggregationKind::Boxplot(_) => {
                MetricKind::Distribution { values: open(id)?, found: Vec::new(), positive: false }
            }
            AggregationKind::WeightedAvg { .. } => {
                let weights = match context.bound.weights.get(&id) {
                    Some(resolved) => resolved.open(context.reader)?,
                    None => open(id)?,
                };
                MetricKind::Weighted { values: open(id)?, weights, found: Vec::new() }
            }
            AggregationKind::TopHits(top) => {
                let mut keys = Vec::with_capacity(top.sort.len());
                for key in &top.sort {
                    keys.push(match key.by {
                        HitOrderBy::Field(_) => Some(open(key.id)?),
                        HitOrderBy::Score | HitOrderBy::Doc => None,
                    });
                }
                MetricKind::TopHits { top, keys, found: Vec::new() }
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { kind, scratch: Scratch::default(), numbers: Vec::new(), codes: Vec::new() }))
    }

    /// The metric's result for each of the `parents` buckets.
    pub fn finish(
        self,
        parents: usize,
        context: &SegmentContext<'_>,
    ) -> Result<Vec<Partial>, AggregationError> {
        let mut partials: Vec<Partial> = match self.kind {
            MetricKind::Stats { found, .. } | MetricKind::Count { found, .. } => {
                found.into_iter().map(Partial::Stats).collect()
            }
            MetricKind::Distribution { found, .. } => found.into_iter().map(Partial::Distribution).collect(),
            MetricKind::Strings { values, found } => {
                let mut partials = Vec::with_capacity(found.len());
                for times in found {
                    work::room_for(times.len() * size_of::<u64>())?;
                    let mut codes: Vec<u64> = times.keys().copied().collect();
                    codes.sort_unstable();
                    let mut strings = StringStats::default();
                    let mut of_code = codes.iter();
                    values.each_key(&codes, |key| {
                        if let (Key::Text(text), Some(code)) = (key, of_code.next()) {
                            strings.add(&text, times[code]);
                        }
                    })?;
                    partials.push(Partial::Strings(strings));
                }
                partials
            }
            MetricKind::Weighted { found, .. } => {
                found.into_iter().map(|(sum, weights)| Partial::Weighted(sum, weights)).collect()
            }
            MetricKind::Distinct { values, threshold, found } => {
                let mut partials = Vec::with_capacity(found.len());
                let hashes = ordinal_hashes(&values, &found)?;
                for codes in found {
                    partials.push(Partial::Distinct(match codes {
                        Codes::Hashes(distinct) => distinct,
                        Codes::Ordinals(ordinals) => {
                            let mut distinct = Distinct::default();
                            for (number, ordinal) in ordinals.into_iter().enumerate() {
                                if number.is_multiple_of(UNCHECKED) {
                                    work::check()?;
                                }
                                if let Ok(place) = hashes.binary_search_by_key(&ordinal, |(code, _)| *code) {
                                    distinct.insert(hashes[place].1, threshold);
                                }
                            }
                            distinct
                        }
                    }));
                }
                partials
            }
            MetricKind::TopHits { top, keys, found } => {
                let mut partials = Vec::with_capacity(found.len());
                for mut list in found {
                    list.hits.sort_by(|a, b| compare(&top.sort, &keys, a, b));
                    list.hits.truncate(top.from + top.size);
                    partials.push(Partial::TopHits(decode(list, &keys, context)?));
                }
                partials
            }
        };
        partials.resize_with(parents, || Partial::Nothing);
        Ok(partials)
    }
}

/// Hashes of the texts behind all ordinals in the given sets, in ascending order of ordinals.
fn ordinal_hashes(values: &Values, collected: &[Codes]) -> Result<Vec<(u64, u64)>, AggregationError> {
    let sets = || {
        collected.iter().filter_map(|codes| match codes {
            Codes::Ordinals(set) => Some(set),
            Codes::Hashes(_) => None,
        })
    };
    // The ordinals, and then each with its hash.
    work::room_for(3 * size_of::<u64>() * sets().map(FxHashSet::len).sum::<usize>())?;
    let mut ordinals: Vec<u64> = sets().flatten().copied().collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    let mut hashes = Vec::with_capacity(ordinals.len());
    values.each_key(&ordinals, |key| hashes.push((ordinals[hashes.len()], hash(&key))))?;
    Ok(hashes)
}

/// The key of a number's code.
fn key_of(values: &Values, code: u64) -> Key {
    match values.kind {
        Kind::Double => Key::Double(code),
        Kind::Unsigned => Key::Unsigned(code),
        _ => Key::Long(code as i64),
    }
}

/// Bytes of an entry of a set of codes, with its share of empty places and control bytes.
const SET_ENTRY: usize = 16;

/// Values that are added before a look at whether the request must stop. Where values come to thousands of buckets in turn, the lists
/// of all of them are full at the same time, and twice as long the next moment.
const UNCHECKED: usize = 64;

/// Adds the values of documents, each with the place of its document.
fn each<T: Copy>(
    values: &[(u32, T)],
    mut add: impl FnMut(u32, T) -> Result<(), AggregationError>,
) -> Result<(), AggregationError> {
    for some in values.chunks(UNCHECKED) {
        work::check()?;
        for &(place, value) in some {
            add(place, value)?;
        }
    }
    Ok(())
}

fn at<T: Default>(list: &mut Vec<T>, place: u32) -> &mut T {
    let place = place as usize;
    if place >= list.len() {
        list.resize_with(place + 1, T::default);
    }
    &mut list[place]
}

#[expect(clippy::too_many_arguments, reason = "parts of one metric, borrowed apart")]
fn top_hits(
    top: &TopHits,
    keys: &[Option<Values>],
    found: &mut Vec<TopCodes>,
    docs: &[u32],
    parents: &[u32],
    scratch: &mut Scratch,
    codes: &mut Vec<(u32, u64)>,
    context: &SegmentContext<'_>,
) -> Result<(), AggregationError> {
    let mut sorts: Vec<Vec<Option<u64>>> = vec![vec![None; keys.len()]; docs.len()];
    for (number, values) in keys.iter().enumerate() {
        let Some(values) = values else { continue };
        work::check()?;
        values.codes(docs, scratch, codes);
        for &(place, code) in codes.iter() {
            let slot = &mut sorts[place as usize][number];
            let better = slot.is_none_or(|known| {
                let order = compare_codes(values, code, known);
                if top.sort[number].ascending { order.is_lt() } else { order.is_gt() }
            });
            if better {
                *slot = Some(code);
            }
        }
    }
    let most = top.from + top.size;
    for (number, ((&doc, &parent), sort)) in docs.iter().zip(parents).zip(sorts).enumerate() {
        if number.is_multiple_of(UNCHECKED) {
            work::check()?;
        }
        let score = context.scores.and_then(|scores| scores.get(doc as usize)).copied().unwrap_or(f32::NAN);
        let list = at(found, parent);
        list.total += 1;
        if !score.is_nan() {
            list.max_score = Some(list.max_score.map_or(score, |max| max.max(score)));
        }
        if most == 0 {
            continue;
        }
        list.hits.push(HitCodes { doc, score, seq_no: context.segment.seq_no(doc), sort });
        if list.hits.len() >= most * 2 + 64 {
            list.hits.sort_by(|a, b| compare(&top.sort, keys, a, b));
            list.hits.truncate(most);
        }
    }
    Ok(())
}

fn compare_codes(values: &Values, a: u64, b: u64) -> Ordering {
    match values.kind {
        Kind::Text | Kind::Unsigned => a.cmp(&b),
        Kind::Double => f64::from_bits(a).total_cmp(&f64::from_bits(b)),
        _ => (a as i64).cmp(&(b as i64)),
    }
}

fn compare(order: &[HitOrder], keys: &[Option<Values>], a: &HitCodes, b: &HitCodes) -> Ordering {
    let last = a.seq_no.cmp(&b.seq_no);
    if order.is_empty() {
        return b.score.total_cmp(&a.score).then(last);
    }
    let mut ordering = Ordering::Equal;
    for (place, by) in order.iter().enumerate() {
        ordering = match (&by.by, &keys[place]) {
            (HitOrderBy::Field(_), Some(values)) => match (a.sort[place], b.sort[place]) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) if by.missing_first => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) if by.missing_first => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(a), Some(b)) if by.ascending => compare_codes(values, a, b),
                (Some(a), Some(b)) => compare_codes(values, b, a),
            },
            (HitOrderBy::Doc, _) if by.ascending => last,
            (HitOrderBy::Doc, _) => last.reverse(),
            (_, _) if by.ascending => a.score.total_cmp(&b.score),
            (_, _) => b.score.total_cmp(&a.score),
        };
        if ordering != Ordering::Equal {
            break;
        }
    }
    ordering.then(last)
}

fn decode(
    list: TopCodes,
    keys: &[Option<Values>],
    context: &SegmentContext<'_>,
) -> Result<TopList, AggregationError> {
    let mut hits: Vec<TopHit> = list
        .hits
        .iter()
        .map(|hit| TopHit {
            target: context.target,
            addr: DocAddress::new(context.ord, hit.doc),
            score: hit.score,
            seq_no: hit.seq_no,
            sort: vec![Key::Missing; keys.len()],
        })
        .collect();
    for (place, values) in keys.iter().enumerate() {
        let Some(values) = values else { continue };
        let codes: Vec<u64> = list.hits.iter().filter_map(|hit| hit.sort[place]).collect();
        let mut decoded = values.keys(&codes)?.into_iter();
        for (hit, from) in hits.iter_mut().zip(&list.hits) {
            if from.sort[place].is_some() {
                hit.sort[place] = decoded.next().unwrap_or(Key::Missing);
            }
        }
    }
    Ok(TopList { total: list.total, max_score: list.max_score, hits })
}
