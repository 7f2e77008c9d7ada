//! Aggregations: buckets and metrics over the documents of a search.
//!
//! [`Collected`] is what one index contributes; [`reduce`] merges the parts of all indices and makes the answer. See
//! `docs/design/aggregations.md` for why this is not tantivy's aggregation module.

mod ast;
mod ast_order;
mod ast_pipeline;
mod ast_ranges;
mod auto_dates;
mod bind;
mod cells;
mod collect;
mod composite;
mod error;
mod fields;
mod format;
mod groups;
mod hits;
mod key;
mod metrics;
mod moving;
mod nested;
mod order;
mod partial;
mod pieces;
mod pipeline;
mod reduce;
mod rounding;
mod sample;
mod segment_context;
mod select;
mod significance;
mod sketch;
mod slots;
mod spans;
mod strings;
#[cfg(test)]
mod tests;
mod values;
mod widths;
mod words;
mod write;
mod write_buckets;
mod write_keys;
mod write_summaries;
mod write_values;

pub use ast::*;
pub use auto_dates::MOST_UNITS;
pub use cells::Cells;
pub use error::AggregationError;
pub use format::ValueFormat;
pub use hits::HitWriter;
pub use key::Key;
pub use partial::{TopHit, TopList};
pub use pipeline::pipeline_order;
pub use reduce::{ReduceOptions, reduce};
pub use rounding::{CalendarUnit, Interval, Rounding};

use self::bind::Bound;
use self::collect::collect_segment;
use self::fields::{Fields, Resolved};
use self::partial::Partial;
use self::segment_context::{Seen, SegmentContext};
use sparrow_tantivy_index::Snapshot;
use std::sync::Arc;

/// The documents of one index that are aggregated.
pub struct Documents<'a> {
    /// Live documents that the search matches, as a bitset of 64-bit words for each segment.
    pub matching: &'a [Vec<u64>],
    /// Score of each document by its id, for each segment; `None` unless [`Aggregation::needs_scores`].
    pub scores: Option<&'a [Vec<f32>]>,
}

/// The results collected in one index, to be merged with those of others.
pub struct Collected {
    /// Results of each segment, one per aggregation.
    parts: Vec<Vec<Partial>>,
    bound: Bound,
    /// Number of the documents.
    docs: u64,
}

impl Collected {
    fn field(&self, id: usize) -> Option<&Resolved> {
        self.bound.fields.get(&id)
    }
}

/// Computes aggregations over documents of one index. `index` is its name, and `target` its position among the
/// indices searched.
///
/// # Errors
/// If an aggregation does not fit its field, or the request must stop.
pub fn aggregate(
    snapshot: &Arc<Snapshot>,
    aggregations: &[Aggregation],
    documents: &Documents<'_>,
    index: &str,
    target: usize,
) -> Result<Collected, AggregationError> {
    let now = (time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000) as i64;
    let mut bound = Bound::new(&Fields { root: snapshot, snapshot, index, now }, aggregations)?;
    for aggregation in aggregations {
        if let AggregationKind::Sampler(most) = aggregation.kind {
            bound.filters.insert(
                aggregation.id,
                vec![sample::sample(snapshot, documents.matching, documents.scores, most)?],
            );
        }
    }
    let seen = Seen::default();
    let mut parts = Vec::with_capacity(snapshot.segments().len());
    for (ord, reader) in snapshot.searcher().segment_readers().iter().enumerate() {
        let context = SegmentContext {
            reader,
            root: snapshot,
            snapshot,
            segment: snapshot.segment(ord as u32),
            ord: ord as u32,
            target,
            bound: &bound,
            scores: documents.scores.and_then(|scores| scores.get(ord)).map(Vec::as_slice),
            now,
            seen: &seen,
        };
        let matching = documents.matching.get(ord).map_or(&[] as &[u64], Vec::as_slice);
        parts.push(collect_segment(aggregations, &context, matching)?);
    }
    let docs = documents.matching.iter().flatten().map(|word| u64::from(word.count_ones())).sum();
    Ok(Collected { parts, bound, docs })
}
