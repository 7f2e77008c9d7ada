//! Assignment of a segment's documents to buckets, which are represented by 64-bit codes.

use rustc_hash::FxHashSet;

use super::ast::{Adjacency, Aggregation, AggregationKind};
use super::auto_dates::code;
use super::bind::Bound;
use super::cells::Cells;
use super::composite::{CompositeGroups, cells_of};
use super::error::AggregationError;
use super::fields::{Place, Resolved};
use super::key::Key;
use super::rounding::{Rounder, Rounding, interval_of};
use super::segment_context::SegmentContext;
use super::select::Allowed;
use super::spans::Spans;
use super::values::{MOST_CODES, Scratch, Values, dedup_codes};
use super::words::WordGroups;
use sparrow_query::GeoArea;
use sparrow_runtime::work;

/// Number of texts that are analyzed at a time.
const MOST_TEXTS: usize = 16;

/// The buckets of one aggregation in one segment, and how documents are assigned to them.
pub struct Groups<'a> {
    kind: GroupKind<'a>,
    scratch: Scratch,
    numbers: Vec<(u32, f64)>,
    codes: Vec<(u32, u64)>,
}

enum GroupKind<'a> {
    Terms { values: Values, allowed: Option<Allowed>, all: bool },
    Interval { values: Values, interval: f64, offset: f64, bounds: (f64, f64) },
    Dates { values: Values, rounder: Rounder, bounds: (i64, i64) },
    Spans { values: Values, spans: Spans<'a> },
    Ranges { values: Values, ranges: &'a [(f64, f64)] },
    Filters { sets: Vec<&'a [u64]>, other: bool },
    Adjacency { sets: Vec<&'a [u64]>, asked: &'a Adjacency, found: Vec<usize> },
    AutoDates { values: Values, rounder: Rounder, level: usize },
    Numbers(Values),
    Cells { values: Values, cells: Cells, within: Option<GeoArea> },
    Words(Box<WordGroups<'a>>),
    Missing(Values),
    All,
    Composite(CompositeGroups<'a>),
}

impl<'a> Groups<'a> {
    /// Prepares an aggregation for a segment; `None` if the aggregation makes no buckets.
    pub fn new(
        aggregation: &'a Aggregation,
        context: &SegmentContext<'a>,
    ) -> Result<Option<Self>, AggregationError> {
        let bound: &'a Bound = context.bound;
        let id = aggregation.id;
        let field = || -> Result<&'a Resolved, AggregationError> { bound.field_of(id) };
        let open = || field()?.open(context.reader);
        let kind = match &aggregation.kind {
            AggregationKind::Terms(terms) => {
                let values = open()?;
                let chosen = (&terms.include, &terms.exclude);
                let allowed = Allowed::new(&aggregation.name, chosen, field()?, &values, context.now)?;
                GroupKind::Terms { values, allowed, all: terms.min_doc_count == 0 }
            }
            AggregationKind::Significant(asked) => match &asked.text {
                Some(text) => GroupKind::Words(Box::new(WordGroups::new(aggregation, asked, text, context)?)),
                None => {
                    let values = open()?;
                    let chosen = (&asked.include, &asked.exclude);
                    let allowed = Allowed::new(&aggregation.name, chosen, field()?, &values, context.now)?;
                    GroupKind::Terms { values, allowed, all: false }
                }
            },
            AggregationKind::AutoDates(asked) => {
                GroupKind::AutoDates { values: open()?, rounder: Rounder::new(asked.rounding(0)), level: 0 }
            }
            AggregationKind::VariableWidths(_) => GroupKind::Numbers(open()?),
            AggregationKind::Grid(grid) => {
                GroupKind::Cells { values: open()?, cells: grid.cells, within: grid.within }
            }
            AggregationKind::Histogram(_) | AggregationKind::DateHistogram(_)
                if matches!(field()?.place, Place::Ranges(..)) =>
            {
                let values = open()?;
                let spans = Spans::new(aggregation, field()?, &values, bound)?;
                GroupKind::Spans { values, spans }
            }
            AggregationKind::Histogram(histogram) => {
                let (from, to) = histogram.hard_bounds.unwrap_or_default();
                GroupKind::Interval {
                    values: open()?,
                    interval: histogram.interval,
                    offset: histogram.offset,
                    bounds: (from.unwrap_or(f64::NEG_INFINITY), to.unwrap_or(f64::INFINITY)),
                }
            }
            AggregationKind::DateHistogram(histogram) => {
                let (from, to) = bound.hard.get(&id).copied().unwrap_or_default();
                // Bounds are rounded as dates are; the interval of the upper one is no part of them.
                let rounded = |end: i64| histogram.rounding.round(end);
                GroupKind::Dates {
                    values: open()?,
                    rounder: Rounder::new(histogram.rounding.clone()),
                    bounds: (from.map_or(i64::MIN, rounded), to.map_or(i64::MAX, rounded)),
                }
            }
            AggregationKind::Range(_) => GroupKind::Ranges {
                values: open()?,
                ranges: bound.ranges.get(&id).map_or(&[], Vec::as_slice),
            },
            AggregationKind::Filter(_)
            | AggregationKind::Filters(_)
            | AggregationKind::AddressRanges(_)
            | AggregationKind::Sampler(_) => {
                let other =
                    matches!(&aggregation.kind, AggregationKind::Filters(filters) if filters.other.is_some());
                GroupKind::Filters { sets: sets_of(bound, id, context.ord), other }
            }
            AggregationKind::Adjacency(asked) => {
                GroupKind::Adjacency { sets: sets_of(bound, id, context.ord), asked, found: Vec::new() }
            }
            AggregationKind::MultiTerms(multi) => {
                GroupKind::Composite(CompositeGroups::new(&multi.key, false, context)?)
            }
            AggregationKind::Missing(_) => GroupKind::Missing(open()?),
            AggregationKind::Global | AggregationKind::Nested(_) | AggregationKind::ReverseNested(_) => {
                GroupKind::All
            }
            AggregationKind::Composite(composite) => {
                GroupKind::Composite(CompositeGroups::new(composite, true, context)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { kind, scratch: Scratch::default(), numbers: Vec::new(), codes: Vec::new() }))
    }

    /// Exclusive upper bound of the codes, if one is known.
    pub fn code_limit(&self) -> Option<usize> {
        match &self.kind {
            GroupKind::Terms { values, .. } => values.code_limit(),
            GroupKind::Ranges { ranges, .. } => Some(ranges.len()),
            GroupKind::Filters { sets, .. } => Some(sets.len() + 1),
            GroupKind::Missing(_) | GroupKind::All => Some(1),
            _ => None,
        }
    }

    /// Number of the first documents whose values and codes are few enough to be listed at a time, at least 1.
    pub fn piece(&self, docs: &[u32]) -> usize {
        // Largest number of codes that one document can have, where that is fixed by the request.
        let most_codes = match &self.kind {
            GroupKind::Ranges { ranges, .. } => ranges.len(),
            GroupKind::Filters { sets, .. } => sets.len() + 1,
            GroupKind::Adjacency { sets, .. } => sets.len() * (sets.len() + 1) / 2,
            _ => 1,
        };
        let docs = &docs[..docs.len().min((MOST_CODES / most_codes.max(1)).max(1))];
        match &self.kind {
            GroupKind::Terms { values, .. }
            | GroupKind::Interval { values, .. }
            | GroupKind::Dates { values, .. }
            | GroupKind::AutoDates { values, .. }
            | GroupKind::Numbers(values)
            | GroupKind::Cells { values, .. }
            | GroupKind::Ranges { values, .. } => values.fitting(docs, MOST_CODES),
            GroupKind::Spans { values, spans } => values.fitting(docs, MOST_CODES / spans.most),
            GroupKind::Composite(composite) => composite.piece(docs),
            GroupKind::Words(_) => docs.len().min(MOST_TEXTS),
            GroupKind::Filters { .. }
            | GroupKind::Adjacency { .. }
            | GroupKind::Missing(_)
            | GroupKind::All => docs.len(),
        }
    }

    /// Adds the codes of the buckets that documents fall into, each with the index of the document in `docs`. A
    /// document is counted once per bucket, however many of its values fall into it.
    ///
    /// # Errors
    /// If a document falls into too many buckets.
    pub fn codes(&mut self, docs: &[u32], out: &mut Vec<(u32, u64)>) -> Result<(), AggregationError> {
        out.clear();
        match &mut self.kind {
            GroupKind::Terms { values, allowed, .. } => {
                values.codes(docs, &mut self.scratch, out);
                if let Some(allowed) = allowed {
                    out.retain(|(_, code)| allowed.contains(*code));
                }
                dedup_codes(out, docs.len());
            }
            GroupKind::Interval { values, interval, offset, bounds } => {
                values.numbers(docs, &mut self.scratch, &mut self.numbers);
                for &(place, value) in &self.numbers {
                    let start = interval_of(value, *interval, *offset);
                    if start - *offset >= bounds.0 && start - *offset <= bounds.1 {
                        out.push((place, start.to_bits()));
                    }
                }
                dedup_codes(out, docs.len());
            }
            GroupKind::Dates { values, rounder, bounds } => {
                values.codes(docs, &mut self.scratch, out);
                out.retain_mut(|(_, code)| {
                    let start = rounder.round(*code as i64);
                    *code = start as u64;
                    start >= bounds.0 && (start < bounds.1 || bounds.1 == i64::MAX)
                });
                dedup_codes(out, docs.len());
            }
            GroupKind::AutoDates { values, rounder, level } => {
                values.codes(docs, &mut self.scratch, out);
                for (_, start) in out.iter_mut() {
                    *start = code(rounder.round(*start as i64), *level) as u64;
                }
                dedup_codes(out, docs.len());
            }
            GroupKind::Numbers(values) => {
                values.numbers(docs, &mut self.scratch, &mut self.numbers);
                let bits = |value: f64| if value == 0.0 { 0 } else { value.to_bits() };
                out.extend(self.numbers.iter().map(|&(place, value)| (place, bits(value))));
                dedup_codes(out, docs.len());
            }
            GroupKind::Cells { values, cells, within } => {
                values.codes(docs, &mut self.scratch, out);
                cells_of(*cells, within.as_ref(), out);
                dedup_codes(out, docs.len());
            }
            GroupKind::Words(words) => words.codes(docs, out)?,
            GroupKind::Spans { values, spans } => {
                values.codes(docs, &mut self.scratch, &mut self.codes);
                let (mut last, mut start) = (u32::MAX, 0);
                for &(place, ord) in &self.codes {
                    if place != last {
                        (last, start) = (place, out.len());
                    }
                    spans.codes((place, ord), start, out)?;
                }
                dedup_codes(out, docs.len());
            }
            GroupKind::Ranges { values, ranges } => {
                values.numbers(docs, &mut self.scratch, &mut self.numbers);
                for own in self.numbers.chunk_by(|(one, _), (other, _)| one == other) {
                    for (slot, &(from, to)) in ranges.iter().enumerate() {
                        if own.len() > 1 && slot.is_multiple_of(64) {
                            work::check()?;
                        }
                        // The largest whole number is in a range that ends there.
                        let is_in = |value: f64| value >= from && (value < to || to == f64::INFINITY);
                        if own.iter().any(|&(_, value)| is_in(value)) {
                            out.push((own[0].0, slot as u64));
                        }
                    }
                }
            }
            GroupKind::Filters { sets, other } => {
                for (place, &doc) in docs.iter().enumerate() {
                    let before = out.len();
                    for (slot, set) in sets.iter().enumerate() {
                        let word = set.get(doc as usize / 64).copied().unwrap_or(0);
                        if word >> (doc % 64) & 1 == 1 {
                            out.push((place as u32, slot as u64));
                        }
                    }
                    if *other && out.len() == before {
                        out.push((place as u32, sets.len() as u64));
                    }
                }
            }
            GroupKind::Adjacency { sets, asked, found } => {
                for (place, &doc) in docs.iter().enumerate() {
                    found.clear();
                    found.extend((0..sets.len()).filter(|&slot| {
                        let word = sets[slot].get(doc as usize / 64).copied().unwrap_or(0);
                        word >> (doc % 64) & 1 == 1
                    }));
                    for (at, &first) in found.iter().enumerate() {
                        for &second in &found[at..] {
                            out.push((place as u32, asked.slot(first, second) as u64));
                        }
                    }
                }
            }
            GroupKind::Missing(values) => {
                for (place, &doc) in docs.iter().enumerate() {
                    if !values.has_value(doc) && !values.has_missing() {
                        out.push((place as u32, 0));
                    }
                }
            }
            GroupKind::All => out.extend((0..docs.len() as u32).map(|place| (place, 0))),
            GroupKind::Composite(composite) => composite.codes(docs, &mut self.scratch, out)?,
        }
        Ok(())
    }

    /// Widens the first and last date of the buckets above, by the dates of their documents.
    ///
    /// # Errors
    /// If the request must stop.
    pub fn ends(
        &mut self,
        docs: &[u32],
        parents: &[u32],
        range: &mut [(i64, i64)],
    ) -> Result<(), AggregationError> {
        let GroupKind::AutoDates { values, .. } = &self.kind else { return Ok(()) };
        let mut from = 0;
        for docs in pieces(values, docs) {
            work::check()?;
            values.codes(docs, &mut self.scratch, &mut self.codes);
            for &(place, date) in &self.codes {
                let (first, last) = &mut range[parents[from + place as usize] as usize];
                (*first, *last) = ((*first).min(date as i64), (*last).max(date as i64));
            }
            from += docs.len();
        }
        Ok(())
    }

    /// Has dates rounded to the units of a level from now on.
    pub fn round_to(&mut self, rounding: Rounding, units: usize) {
        if let GroupKind::AutoDates { rounder, level, .. } = &mut self.kind {
            (*rounder, *level) = (Rounder::new(rounding), units);
        }
    }

    /// Codes of all buckets, if those that contain no collected document are wanted too (`min_doc_count` 0 of
    /// `terms`): of the values that visible documents have. What only deleted documents have, or those that the filter
    /// of an alias hides, is not shown.
    pub fn codes_without_documents(
        &mut self,
        context: &SegmentContext<'_>,
    ) -> Result<Option<Vec<u64>>, AggregationError> {
        let GroupKind::Terms { values, allowed, all: true } = &self.kind else { return Ok(None) };
        let allowed = |code: &u64| allowed.as_ref().is_none_or(|allowed| allowed.contains(*code));
        let segment = context.segment;
        if let (Some(column), None) = (values.texts(), segment.live()) {
            return Ok(Some((0..column.num_terms() as u64).filter(allowed).collect()));
        }
        let docs: Vec<u32> = (0..context.reader.max_doc()).filter(|doc| segment.is_live(*doc)).collect();
        if let Some(column) = values.texts() {
            let mut shown = vec![false; column.num_terms()];
            for docs in pieces(values, &docs) {
                work::check()?;
                for ord in docs.iter().flat_map(|doc| column.ords().values_for_doc(*doc)) {
                    shown[ord as usize] = true;
                }
            }
            let codes = (0..).zip(shown).filter_map(|(code, shown)| shown.then_some(code));
            return Ok(Some(codes.filter(allowed).collect()));
        }
        let mut codes = FxHashSet::default();
        let mut pairs = Vec::new();
        for docs in pieces(values, &docs) {
            work::check()?;
            values.codes(docs, &mut self.scratch, &mut pairs);
            codes.extend(pairs.iter().map(|(_, code)| *code).filter(allowed));
        }
        Ok(Some(codes.into_iter().collect()))
    }

    /// Indices of those codes whose buckets may be in the response, in key order where that is cheap to determine.
    ///
    /// # Errors
    /// When there is no memory for what they are compared by.
    pub fn places(&self, codes: &[u64]) -> Result<Vec<u32>, AggregationError> {
        let mut places: Vec<u32> = (0..codes.len() as u32).collect();
        match &self.kind {
            // A dictionary is sorted.
            GroupKind::Terms { values, .. } if values.texts().is_some() => {
                places.sort_unstable_by_key(|&place| codes[place as usize]);
            }
            GroupKind::Composite(composite) => composite.page(codes, &mut places)?,
            _ => {}
        }
        Ok(places)
    }

    /// The keys that codes stand for.
    pub fn keys(&self, codes: &[u64]) -> Result<Vec<Key>, AggregationError> {
        match &self.kind {
            GroupKind::Terms { values, .. } => values.keys(codes),
            GroupKind::Words(words) => Ok(words.keys(codes)),
            GroupKind::Cells { .. } => Ok(codes.iter().map(|&code| Key::Unsigned(code)).collect()),
            GroupKind::Interval { .. } | GroupKind::Numbers(_) => {
                Ok(codes.iter().map(|&code| Key::double(f64::from_bits(code))).collect())
            }
            GroupKind::Spans { spans, .. } => Ok(codes.iter().map(|&code| spans.key(code)).collect()),
            GroupKind::Dates { .. } | GroupKind::AutoDates { .. } => {
                Ok(codes.iter().map(|&code| Key::Long(code as i64)).collect())
            }
            GroupKind::Composite(composite) => composite.keys(codes),
            _ => Ok(codes.iter().map(|&code| Key::Slot(code as usize)).collect()),
        }
    }
}

/// Documents in pieces whose values are few enough to be read without asking whether to stop.
fn pieces<'d>(values: &Values, docs: &'d [u32]) -> impl Iterator<Item = &'d [u32]> {
    let mut rest = docs;
    std::iter::from_fn(move || {
        let (piece, others) = rest.split_at(values.fitting(&rest[..rest.len().min(4096)], MOST_CODES));
        rest = others;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The documents that match each of an aggregation's queries, as bitsets for the segment `ord`.
fn sets_of(bound: &Bound, id: usize, ord: u32) -> Vec<&[u64]> {
    let sets = bound.filters.get(&id).into_iter().flatten();
    sets.map(|set| set.get(ord as usize).map_or(&[] as &[u64], Vec::as_slice)).collect()
}
