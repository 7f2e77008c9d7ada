//! Buckets with keys of several values, and paging through them.

use std::cmp::Ordering;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use serde_json::Value;
use sparrow_query::GeoArea;
use sparrow_runtime::work;
use tantivy::columnar::TermOrdHit;

use super::ast::{Composite, CompositeSource, Group};
use super::cells::Cells;
use super::error::AggregationError;
use super::fields::{Kind, Resolved};
use super::key::Key;
use super::rounding::{Rounder, interval_of};
use super::segment_context::SegmentContext;
use super::slots::room_to_grow;
use super::values::{MOST_CODES, Scratch, UNCHECKED, Values, dedup_codes, fitting};

/// Largest number of buckets of a composite aggregation that one document may fall into.
const MOST_TUPLES: usize = 100_000;
/// Bytes of an entry of the map of tuples, with its share of empty places and control bytes.
const MAP_ENTRY: usize = 32;

/// The buckets of a `composite` or `multi_terms` aggregation in one segment.
pub struct CompositeGroups<'a> {
    sources: Vec<CompositeGroup>,
    composite: &'a Composite,
    /// The distinct tuples of value codes found so far; a tuple's index is its code.
    tuples: Vec<Rc<[Option<u64>]>>,
    codes: FxHashMap<Rc<[Option<u64>]>, u64>,
    /// The page of buckets to which the result can be reduced already in the segment; `None` if all buckets are
    /// needed.
    page: Option<Page>,
}

/// The page to be read. Keys in it are comparable only within the segment: that of a text is its ordinal in the
/// dictionary.
struct Page {
    after: Option<Vec<Key>>,
}

/// Bound below which whole numbers are distinct as doubles (2^53). They become doubles when another index has
/// doubles.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

struct CompositeGroup {
    values: Values,
    group: GroupOf,
    kind: Kind,
    found: Vec<(u32, u64)>,
}

enum GroupOf {
    Value,
    Interval(f64),
    Date(Rounder),
    Cells(Cells, Option<GeoArea>),
}

impl<'a> CompositeGroups<'a> {
    /// Opens the columns of all sources in a segment. `paged` says that the response has the first buckets in key
    /// order.
    ///
    /// # Errors
    /// If a column cannot be read.
    pub fn new(
        composite: &'a Composite,
        paged: bool,
        context: &SegmentContext<'_>,
    ) -> Result<Self, AggregationError> {
        let mut fields = Vec::with_capacity(composite.sources.len());
        let mut sources = Vec::with_capacity(composite.sources.len());
        for source in &composite.sources {
            let group = match &source.group {
                Group::Value => GroupOf::Value,
                Group::Interval(interval) => GroupOf::Interval(*interval),
                Group::Date(rounding) => GroupOf::Date(Rounder::new(rounding.clone())),
                Group::Cells(cells, within) => GroupOf::Cells(*cells, *within),
            };
            let field = context.bound.field_of(source.id)?;
            let values = field.open(context.reader)?;
            sources.push(CompositeGroup { values, group, kind: field.kind, found: Vec::new() });
            fields.push(field);
        }
        let page = match paged {
            true => Page::new(composite, &sources, &fields)?,
            false => None,
        };
        Ok(Self { sources, composite, tuples: Vec::new(), codes: FxHashMap::default(), page })
    }

    /// Number of the first documents whose values and tuples are few enough to be listed at a time, at least 1.
    pub fn piece(&self, docs: &[u32]) -> usize {
        let docs = &docs[..docs.len().min((MOST_CODES / self.sources.len().max(1)).max(1))];
        if self.sources.iter().all(|source| source.values.several().is_none()) {
            return docs.len();
        }
        fitting(docs, MOST_CODES, |doc| {
            let (mut values, mut tuples) = (0, 1_usize);
            for source in &self.sources {
                let own = source.values.several().map_or(1, |index| index.value_row_ids(doc).len().max(1));
                values += own;
                tuples = tuples.saturating_mul(own);
            }
            tuples.max(values)
        })
    }

    /// Codes of the buckets of documents, as [`super::groups::Groups::codes`] gives them.
    pub fn codes(
        &mut self,
        docs: &[u32],
        scratch: &mut Scratch,
        out: &mut Vec<(u32, u64)>,
    ) -> Result<(), AggregationError> {
        for source in &mut self.sources {
            let CompositeGroup { values, group, found, .. } = source;
            values.codes(docs, scratch, found);
            match group {
                GroupOf::Value => {}
                GroupOf::Interval(interval) => {
                    for (_, code) in found.iter_mut() {
                        *code = interval_of(values.number(*code), *interval, 0.0).to_bits();
                    }
                }
                GroupOf::Date(rounder) => {
                    for (_, code) in found.iter_mut() {
                        *code = rounder.round(*code as i64) as u64;
                    }
                }
                GroupOf::Cells(cells, within) => cells_of(*cells, within.as_ref(), found),
            }
            dedup_codes(found, docs.len());
        }
        if self.sources.iter().all(|source| has_one_each(&source.found, docs.len())) {
            let mut tuple = vec![None; self.sources.len()];
            for place in 0..docs.len() {
                if place.is_multiple_of(UNCHECKED) {
                    work::check()?;
                }
                for (value, source) in tuple.iter_mut().zip(&self.sources) {
                    *value = Some(source.found[place].1);
                }
                out.push((place as u32, self.code_of(&tuple)?));
            }
            return Ok(());
        }
        let mut ends = vec![0; self.sources.len()];
        let mut runs = vec![0..0; self.sources.len()];
        let mut tuple = vec![None; self.sources.len()];
        for place in 0..docs.len() as u32 {
            let mut count = 1_usize;
            for (((source, end), run), asked) in
                self.sources.iter().zip(&mut ends).zip(&mut runs).zip(&self.composite.sources)
            {
                let own = source.found[*end..].iter().take_while(|(of, _)| *of == place).count();
                *run = *end..*end + own;
                *end += own;
                count = match (own, asked.missing_bucket) {
                    (0, false) => 0,
                    (0, true) => count,
                    _ if count.saturating_mul(own) > MOST_TUPLES => {
                        return Err(AggregationError::Execution(format!(
                            "a document has more than [{MOST_TUPLES}] combinations of values of [composite] sources"
                        )));
                    }
                    _ => count * own,
                };
            }
            // The digits of the number are the places of the values, the last source's the lowest.
            for number in 0..count {
                if number.is_multiple_of(UNCHECKED) {
                    work::check()?;
                }
                let mut rest = number;
                for ((value, source), run) in tuple.iter_mut().zip(&self.sources).zip(&runs).rev() {
                    *value = source.found[run.clone()].get(rest % run.len().max(1)).map(|(_, code)| *code);
                    rest /= run.len().max(1);
                }
                let code = self.code_of(&tuple)?;
                out.push((place, code));
            }
        }
        Ok(())
    }

    /// The code of a tuple, which is assigned if the tuple is new.
    fn code_of(&mut self, tuple: &[Option<u64>]) -> Result<u64, AggregationError> {
        if let Some(&code) = self.codes.get(tuple) {
            return Ok(code);
        }
        room_to_grow(self.codes.len(), 1, self.codes.capacity(), MAP_ENTRY)?;
        let code = self.tuples.len() as u64;
        let tuple: Rc<[Option<u64>]> = tuple.into();
        self.tuples.push(Rc::clone(&tuple));
        self.codes.insert(tuple, code);
        Ok(code)
    }

    /// Reduces `places`, which are indices in `codes`, to the buckets of the page, in key order. A bucket beyond the
    /// page in one segment cannot be in the page of the whole result.
    ///
    /// # Errors
    /// When there is no memory for the keys of all buckets.
    pub fn page(&self, codes: &[u64], places: &mut Vec<u32>) -> Result<(), AggregationError> {
        let Some(page) = &self.page else { return Ok(()) };
        let width = self.sources.len();
        work::room_for(codes.len() * width * size_of::<Key>())?;
        let mut keys: Vec<Key> = Vec::with_capacity(codes.len() * width);
        for &code in codes {
            for (value, source) in self.tuples[code as usize].iter().zip(&self.sources) {
                match value.map(|code| source.stand_in(code)) {
                    None => keys.push(Key::Missing),
                    Some(Some(key)) => keys.push(key),
                    Some(None) => return Ok(()),
                }
            }
        }
        let key = |place: u32| &keys[place as usize * width..][..width];
        if let Some(after) = &page.after {
            places.retain(|&place| {
                compare_tuples(&self.composite.sources, key(place), after) == Ordering::Greater
            });
        }
        let compare = |a: &u32, b: &u32| compare_tuples(&self.composite.sources, key(*a), key(*b));
        if places.len() > self.composite.size {
            places.select_nth_unstable_by(self.composite.size, compare);
            places.truncate(self.composite.size);
        }
        places.sort_unstable_by(compare);
        Ok(())
    }

    /// The keys that codes stand for.
    ///
    /// # Errors
    /// When a dictionary cannot be read.
    pub fn keys(&self, codes: &[u64]) -> Result<Vec<Key>, AggregationError> {
        work::room_for(codes.len() * (size_of::<Vec<Key>>() + self.sources.len() * size_of::<Key>()))?;
        let mut keys: Vec<Vec<Key>> = vec![Vec::with_capacity(self.sources.len()); codes.len()];
        for (place, source) in self.sources.iter().enumerate() {
            work::check()?;
            let of_source: Vec<Option<u64>> =
                codes.iter().map(|&code| self.tuples[code as usize][place]).collect();
            let present: Vec<u64> = of_source.iter().flatten().copied().collect();
            let mut decoded = match source.group {
                GroupOf::Value => source.values.keys(&present)?,
                GroupOf::Interval(_) => {
                    present.iter().map(|&code| Key::double(f64::from_bits(code))).collect()
                }
                GroupOf::Date(_) => present.iter().map(|&code| Key::Long(code as i64)).collect(),
                GroupOf::Cells(..) => present.iter().map(|&code| Key::Unsigned(code)).collect(),
            }
            .into_iter();
            for (key, code) in keys.iter_mut().zip(&of_source) {
                key.push(match code {
                    Some(_) => decoded.next().unwrap_or(Key::Missing),
                    None => Key::Missing,
                });
            }
        }
        Ok(keys.into_iter().map(|key| Key::Tuple(key.into_boxed_slice())).collect())
    }
}

/// Replaces points by the cells that they are in, without those that do not meet an area.
pub fn cells_of(cells: Cells, within: Option<&GeoArea>, found: &mut Vec<(u32, u64)>) {
    found.retain_mut(|(_, code)| {
        *code = cells.of(*code as i64);
        within.is_none_or(|area| cells.meets(*code, area))
    });
}

/// Whether every document has exactly one code.
fn has_one_each(codes: &[(u32, u64)], docs: usize) -> bool {
    codes.len() == docs && (0_u32..).zip(codes).all(|(place, (of, _))| place == *of)
}

/// Compares two keys of a composite aggregation by the order of its sources.
pub fn compare_tuples(sources: &[CompositeSource], a: &[Key], b: &[Key]) -> Ordering {
    for ((a, b), source) in a.iter().zip(b).zip(sources) {
        let first = source.missing_first.unwrap_or(source.ascending);
        let ordering = match (a, b) {
            (Key::Missing, Key::Missing) => Ordering::Equal,
            (Key::Missing, _) if first => Ordering::Less,
            (Key::Missing, _) => Ordering::Greater,
            (_, Key::Missing) if first => Ordering::Greater,
            (_, Key::Missing) => Ordering::Less,
            (a, b) if source.ascending => a.cmp(b),
            (a, b) => b.cmp(a),
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

/// The key for one value of `after`.
///
/// # Errors
/// An illegal argument error for a value that the source cannot have.
pub fn after_key(
    field: Option<&Resolved>,
    source: &CompositeSource,
    value: &Value,
) -> Result<Key, AggregationError> {
    if value.is_null() {
        return match source.missing_bucket {
            true => Ok(Key::Missing),
            false => Err(AggregationError::IllegalArgument(format!(
                "Invalid value for [after.{}], null values are only allowed if [missing_bucket] is true",
                source.name
            ))),
        };
    }
    let invalid = |error: AggregationError| match error {
        AggregationError::NumberFormat(text) => AggregationError::IllegalArgument(format!(
            "Invalid value for [after.{}], expected a number, got [{text}]",
            source.name
        )),
        other => other,
    };
    let Some(field) = field else { return Ok(Key::Missing) };
    let now = 0;
    match source.group {
        Group::Interval(_) => {
            let text = sparrow_mapping::java_string(value);
            let number = text.parse().map_err(|_| invalid(AggregationError::NumberFormat(text.clone())))?;
            Ok(Key::double(number))
        }
        Group::Cells(cells, _) => {
            let name = sparrow_mapping::java_string(value);
            cells.tile(&name).map(Key::Unsigned).ok_or_else(|| {
                AggregationError::IllegalArgument(format!(
                    "Invalid value for [after.{}], expected a tile [zoom/x/y] of the precision of the source, got [{name}]",
                    source.name
                ))
            })
        }
        Group::Value | Group::Date(_) => {
            // Milliseconds are what a page ends with where no format is asked for.
            if let (Kind::Date, Some(millis), None) = (field.kind, value.as_i64(), &source.source.format) {
                return Ok(Key::Long(millis));
            }
            field.key(value, now, false).map_err(invalid)
        }
    }
}

impl CompositeGroup {
    /// A key that sorts like the one behind a code but needs no dictionary; `None` if its order might differ in
    /// another index.
    fn stand_in(&self, code: u64) -> Option<Key> {
        let key = match self.group {
            GroupOf::Interval(_) => Key::double(f64::from_bits(code)),
            GroupOf::Date(_) => Key::Long(code as i64),
            GroupOf::Cells(..) => Key::Unsigned(code),
            GroupOf::Value => match self.kind {
                Kind::Text | Kind::Unsigned => Key::Unsigned(code),
                Kind::Double => Key::Double(code),
                Kind::Long | Kind::Boolean | Kind::Date => Key::Long(code as i64),
            },
        };
        is_exact(&key).then_some(key)
    }
}

fn is_exact(key: &Key) -> bool {
    !matches!(key, Key::Long(_) | Key::Unsigned(_)) || key.number().abs() < MOST_EXACT
}

impl Page {
    /// `None` if every bucket has to be kept because the position of `after` cannot be determined within one segment.
    fn new(
        composite: &Composite,
        sources: &[CompositeGroup],
        fields: &[&Resolved],
    ) -> Result<Option<Self>, AggregationError> {
        let is_plain = |(source, field): (&CompositeGroup, &&Resolved)| {
            field.missing.is_none() && (field.kind != Kind::Text || source.values.texts().is_some())
        };
        if !sources.iter().zip(fields).all(is_plain) {
            return Ok(None);
        }
        let Some(after) = &composite.after else { return Ok(Some(Self { after: None })) };
        let mut keys = Vec::with_capacity(after.len());
        for (((asked, source), field), value) in composite.sources.iter().zip(sources).zip(fields).zip(after)
        {
            // What cannot be read is said when all parts are there.
            let Ok(key) = after_key(Some(field), asked, value) else { return Ok(None) };
            let key = match (key, source.values.texts()) {
                (Key::Text(text), Some(column)) => {
                    match column.dictionary().term_ord_or_next(text.as_bytes())? {
                        TermOrdHit::Exact(ordinal) => Key::Unsigned(ordinal),
                        TermOrdHit::Next(ordinal) => Key::double(ordinal as f64 - 0.5),
                    }
                }
                // Beside doubles of another index a fraction counts.
                (Key::Long(_) | Key::Unsigned(_), _)
                    if !matches!(asked.group, Group::Cells(..)) && (value.is_f64() || value.is_string()) =>
                {
                    return Ok(None);
                }
                (key, _) => key,
            };
            if !is_exact(&key) {
                return Ok(None);
            }
            keys.push(key);
        }
        Ok(Some(Self { after: Some(keys) }))
    }
}
