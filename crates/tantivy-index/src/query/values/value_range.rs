//! Ranges of numbers, booleans and dates, segment by segment: the documents with a value between two bounds.
//!
//! A range that is not cached is found by scanning its column, or with a [`RangeIndex`] of it. Sorting a
//! column takes as long as several scans, so it is done by one search once about as many scans have been
//! made. New segments of a busy index are scanned until they have been searched as often.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::columnar::{Column, ColumnType, MonotonicallyMappableToU64};
use tantivy::index::SegmentId;
use tantivy::query::{EmptyScorer, Explanation, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader, TantivyError};

use crate::query::compile::Compiler;
use sparrow_runtime::attempt;
use sparrow_scoring::fields::number_column;
use sparrow_scoring::weights;
use sparrow_segments::doc_bits::{BitsScorer, DocBits};
use sparrow_segments::filter_cache::{RangeAccess, SegmentFilters};
use sparrow_segments::range_index::RangeIndex;

/// Number of documents from which a column is worth sorting: a smaller segment is scanned in the time it
/// takes to look for a sorted column.
const LEAST_SORTED: u32 = if cfg!(test) { 10 } else { 4096 };
/// Most documents whose column an attempt to answer without another thread scans: some hundred microseconds.
const MOST_IN_ATTEMPT: u32 = 1 << 17;
/// Number of documents scanned at a time, which limits the buffer of matches.
const CHUNK: u32 = 1 << 16;

/// A range of values, both bounds included; empty when the first is the larger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Interval {
    Whole(i128, i128),
    Float(f64, f64),
    Boolean(bool, bool),
}

impl Interval {
    /// The range in terms of a column of this type, by the order-preserving numbers that columns hold; `None`
    /// if no value of the type is in it.
    fn in_column(self, column: ColumnType) -> Option<RangeInclusive<u64>> {
        let range = match (column, self) {
            (ColumnType::I64, _) => {
                let (lower, upper) = self.as_whole()?;
                let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
                if lower > most || upper < least {
                    return None;
                }
                let bound = |value: i128| (value.clamp(least, most) as i64).to_u64();
                bound(lower)..=bound(upper)
            }
            (ColumnType::U64, _) => {
                let (lower, upper) = self.as_whole()?;
                let most = i128::from(u64::MAX);
                if lower > most || upper < 0 {
                    return None;
                }
                let bound = |value: i128| value.clamp(0, most) as u64;
                bound(lower)..=bound(upper)
            }
            (ColumnType::F64, Interval::Float(lower, upper)) if lower <= upper => of_floats(lower, upper),
            (ColumnType::F64, Interval::Whole(lower, upper)) if lower <= upper => {
                of_floats(lower as f64, upper as f64)
            }
            (ColumnType::Bool, Interval::Boolean(lower, upper)) => lower.to_u64()..=upper.to_u64(),
            _ => return None,
        };
        (!range.is_empty()).then_some(range)
    }

    /// The whole numbers in the range; `None` if there are none.
    fn as_whole(self) -> Option<(i128, i128)> {
        let (lower, upper) = match self {
            Interval::Whole(lower, upper) => (lower, upper),
            // The cast saturates, so that open ends stay open.
            Interval::Float(lower, upper) => (lower.ceil() as i128, upper.floor() as i128),
            Interval::Boolean(..) => return None,
        };
        (lower <= upper).then_some((lower, upper))
    }
}

/// A range of floating-point numbers in a column's terms, in which both zeros are the same number. A column
/// keeps -0.0 below 0.0, but whether a segment keeps the sign depends on its other values: a column of whole
/// numbers does not.
fn of_floats(lower: f64, upper: f64) -> RangeInclusive<u64> {
    let lower = if lower == 0.0 { -0.0 } else { lower };
    let upper = if upper == 0.0 { 0.0 } else { upper };
    lower.to_u64()..=upper.to_u64()
}

impl Compiler<'_> {
    /// A weight for the documents with a value in the range.
    pub(crate) fn interval_weight(&self, path: &str, interval: Interval) -> Box<dyn Weight> {
        let column = number_column(&self.snapshot.mapping().concrete(path));
        let readers = self.searcher().segment_readers().iter();
        let segments = readers.zip(self.snapshot.segments());
        Box::new(IntervalWeight {
            key: SegmentFilters::column_key(&column),
            column,
            interval,
            segments: segments
                .map(|(reader, segment)| (reader.segment_id(), segment.shared_filters().clone()))
                .collect(),
            sorted: AtomicBool::new(false),
        })
    }
}

struct IntervalWeight {
    /// Name of the column in tantivy.
    column: String,
    /// Key of the column in the segments' caches of sorted columns.
    key: Arc<[u8]>,
    interval: Interval,
    segments: Vec<(SegmentId, Arc<SegmentFilters>)>,
    /// Whether a column has been sorted by this search: columns of other segments are then left to later
    /// searches.
    sorted: AtomicBool,
}

impl IntervalWeight {
    /// The documents of a segment with a value in the range, each with the same score; `None` if there are
    /// none.
    fn docs(&self, reader: &SegmentReader, score: Score) -> tantivy::Result<Option<BitsScorer>> {
        weights::room_for_docs(reader)?;
        let max_doc = reader.max_doc();
        let id = reader.segment_id();
        let filters = self.segments.iter().find(|(segment, _)| *segment == id).map(|(_, filters)| filters);
        let filters = filters.filter(|filters| {
            max_doc >= LEAST_SORTED && filters.has_room_for(RangeIndex::most_bytes(max_doc))
        });
        let mut sort = None;
        if let Some(filters) = filters {
            match filters.ranges(&self.key, !self.sorted.load(Ordering::Relaxed)) {
                RangeAccess::Sorted(index) => return Ok(self.find(&index, score)),
                RangeAccess::Sort => sort = Some(filters),
                RangeAccess::Scan => {}
            }
        }
        // A scan looks at no flag.
        if (attempt::is_given_up() || max_doc > MOST_IN_ATTEMPT) && attempt::give_up() {
            return Err(TantivyError::InternalError("the attempt was given up".into()));
        }
        let handles = reader.fast_fields().dynamic_column_handles(&self.column)?;
        if let (Some(filters), [handle]) = (sort, &handles[..])
            && let Some(column) = handle.open_u64_lenient().map_err(TantivyError::from)?
            && let Some(index) = RangeIndex::new(column, handle.column_type(), max_doc)
        {
            self.sorted.store(true, Ordering::Relaxed);
            let index = Arc::new(index);
            filters.keep_ranges(&self.key, &index);
            return Ok(self.find(&index, score));
        }
        let mut docs = DocBits::empty(max_doc);
        // Segments may differ in the type of a column: tantivy keeps a column of whole numbers as such.
        for handle in handles {
            if let Some(range) = self.interval.in_column(handle.column_type())
                && let Some(column) = handle.open_u64_lenient().map_err(TantivyError::from)?
            {
                scan(&column, &range, &mut docs);
            }
        }
        Ok(Some(BitsScorer::new(docs, score)))
    }

    fn find(&self, index: &RangeIndex, score: Score) -> Option<BitsScorer> {
        let docs = index.find(&self.interval.in_column(index.column_type())?)?;
        Some(BitsScorer::cheap(docs, score))
    }
}

impl Weight for IntervalWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(match self.docs(reader, boost)? {
            Some(docs) => Box::new(docs),
            None => Box::new(EmptyScorer),
        })
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "ConstantScore")
    }
}

/// Adds the documents of a column with a value in the range.
fn scan(column: &Column<u64>, range: &RangeInclusive<u64>, docs: &mut DocBits) {
    // tantivy's bit-packed columns take a range below the lowest value for that value.
    if *range.end() < column.min_value() || *range.start() > column.max_value() {
        return;
    }
    let end = column.num_docs();
    let mut doc_ids = Vec::new();
    let mut start = 0;
    while start < end {
        let stop = end.min(start + CHUNK);
        doc_ids.clear();
        column.get_docids_for_value_range(range.clone(), start..stop, &mut doc_ids);
        docs.insert_sorted(&doc_ids);
        start = stop;
    }
}
