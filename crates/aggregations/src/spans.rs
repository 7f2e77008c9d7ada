//! Histograms of fields whose values are ranges: a range is counted in every interval that it has a value in.

use super::ast::{Aggregation, AggregationKind};
use super::bind::Bound;
use super::error::AggregationError;
use super::fields::{Place, Resolved};
use super::key::Key;
use super::rounding::{Rounding, interval_of};
use super::values::{UNCHECKED, Values};
use sparrow_mapping::{NumberValue, range};
use sparrow_runtime::work;

/// Most intervals that a document may be in.
const MOST: usize = 1 << 16;

/// The intervals that the ranges of a segment are in, by the ordinals of these.
pub struct Spans<'a> {
    steps: Steps<'a>,
    /// Number of intervals that the widest range is in, at least 1 and at most [`MOST`].
    pub most: usize,
}

enum Steps<'a> {
    /// Number of the first interval of each range, and how many others follow it.
    Numbers { interval: f64, offset: f64, spans: Vec<(f64, f64)> },
    /// Start of the first and of the last interval; `None` where there are too many between them, as time has no end.
    Dates { rounding: &'a Rounding, spans: Vec<Option<(i64, i64)>> },
}

impl<'a> Spans<'a> {
    /// Reads the ranges of a segment for a histogram.
    pub fn new(
        aggregation: &'a Aggregation,
        field: &Resolved,
        values: &Values,
        bound: &Bound,
    ) -> Result<Self, AggregationError> {
        let mut ends = Vec::new();
        if let (Place::Ranges(_, of), Some(column)) = (&field.place, values.texts()) {
            work::room_for(column.num_terms() * 2 * size_of::<(NumberValue, NumberValue)>())?;
            let mut stream = column.dictionary().stream()?;
            while stream.advance() {
                let (first, last) =
                    std::str::from_utf8(stream.key()).ok().and_then(range::read).unwrap_or((1, 0));
                ends.push((range::number_at(of, first), range::number_at(of, last)));
                if ends.len().is_multiple_of(UNCHECKED) {
                    work::check()?;
                }
            }
        }
        let mut most = 1.0_f64;
        let steps = match &aggregation.kind {
            AggregationKind::DateHistogram(histogram) => {
                let (from, to) = bound.hard.get(&aggregation.id).copied().unwrap_or_default();
                let (from, to) = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
                let rounding = &histogram.rounding;
                let shortest = rounding.shortest().max(1) as f64;
                let span = |(first, last)| {
                    let (first, last) = (whole(first).max(from), whole(last).min(to));
                    if first > last {
                        return Some((0, -1));
                    }
                    // Intervals are never twice as long as the shortest one.
                    let about = (last as f64 - first as f64) / shortest + 1.0;
                    most = most.max(about);
                    (about < 2.0 * MOST as f64).then(|| (rounding.round(first), rounding.round(last)))
                };
                Steps::Dates { rounding, spans: ends.into_iter().map(span).collect() }
            }
            AggregationKind::Histogram(histogram) => {
                let (from, to) = histogram.hard_bounds.unwrap_or_default();
                let (from, to) = (from.unwrap_or(f64::NEG_INFINITY), to.unwrap_or(f64::INFINITY));
                let (interval, offset) = (histogram.interval, histogram.offset);
                let number =
                    |value: f64| ((interval_of(value, interval, offset) - offset) / interval).round();
                let span = |(first, last)| {
                    let (first, last) = (double(first).max(from), double(last).min(to));
                    if first > last {
                        return (0.0, -1.0);
                    }
                    let begin = number(first);
                    let others = number(last) - begin;
                    most = most.max(others + 1.0);
                    (begin, others)
                };
                Steps::Numbers { interval, offset, spans: ends.into_iter().map(span).collect() }
            }
            _ => return Err(AggregationError::Execution("only histograms count ranges".to_owned())),
        };
        Ok(Self { steps, most: most.min(MOST as f64) as usize })
    }

    /// Adds the codes of the intervals that the range with this ordinal is in to those of its document, which begin at `start` of `out`.
    ///
    /// # Errors
    /// If the document is in too many.
    pub fn codes(
        &self,
        (place, ord): (u32, u64),
        start: usize,
        out: &mut Vec<(u32, u64)>,
    ) -> Result<(), AggregationError> {
        let before = out.len();
        match &self.steps {
            Steps::Numbers { interval, offset, spans } => {
                let (begin, others) = spans[ord as usize];
                if others.is_nan() || others >= MOST as f64 {
                    return Err(too_many());
                }
                let key = |step: i64| (begin + step as f64) * interval + offset;
                out.extend((0..=others as i64).map(|step| (place, key(step).to_bits())));
            }
            Steps::Dates { rounding, spans } => {
                let Some((mut at, last)) = spans[ord as usize] else { return Err(too_many()) };
                while at <= last {
                    out.push((place, at as u64));
                    if out.len() - before > MOST {
                        return Err(too_many());
                    }
                    let next = rounding.next(at);
                    if next <= at {
                        break;
                    }
                    at = next;
                }
            }
        }
        if out.len() - start > MOST {
            work::check()?;
            let mut own = out.split_off(start);
            own.sort_unstable();
            own.dedup();
            if own.len() > MOST {
                return Err(too_many());
            }
            out.append(&mut own);
        }
        Ok(())
    }

    /// The key of an interval.
    pub fn key(&self, code: u64) -> Key {
        match self.steps {
            Steps::Numbers { .. } => Key::double(f64::from_bits(code)),
            Steps::Dates { .. } => Key::Long(code as i64),
        }
    }
}

fn too_many() -> AggregationError {
    AggregationError::IllegalArgument(format!(
        "a document has ranges in more than [{MOST}] intervals of the histogram: set [hard_bounds] or a longer interval"
    ))
}

fn whole(number: NumberValue) -> i64 {
    if let NumberValue::I64(number) = number { number } else { 0 }
}

fn double(number: NumberValue) -> f64 {
    match number {
        NumberValue::F64(number) => number,
        other => whole(other) as f64,
    }
}
