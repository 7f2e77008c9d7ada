//! `nested` and `reverse_nested`: sub-aggregations see the objects in the documents of a bucket, or the documents around objects.

use rustc_hash::FxHashSet;
use sparrow_runtime::work;
use sparrow_tantivy_index::Blocks;

use super::ast::{Aggregation, AggregationKind};
use super::error::AggregationError;
use super::segment_context::SegmentContext;

/// Number of objects that are passed on at a time.
const BLOCK: usize = 4096;

/// What leads from the documents of a bucket to those that its sub-aggregations see.
pub struct Join<'a> {
    /// The context of the sub-aggregations.
    pub inside: SegmentContext<'a>,
    blocks: Option<Blocks>,
    /// Whether it leads from objects to what is around them.
    outwards: bool,
    /// The last document that was passed on, once for each of its buckets: its next objects do not count it again.
    last: FxHashSet<(u32, u32)>,
}

impl<'a> Join<'a> {
    /// The join of an aggregation; `None` for one whose sub-aggregations see the same documents.
    pub fn new(aggregation: &Aggregation, context: &SegmentContext<'a>) -> Option<Self> {
        let outwards = match aggregation.kind {
            AggregationKind::Nested(_) => false,
            AggregationKind::ReverseNested(_) => true,
            _ => return None,
        };
        let view = context.bound.views.get(&aggregation.id)?.as_deref().unwrap_or(context.root);
        let blocks = match outwards {
            false => context.snapshot.blocks(view, context.ord),
            true => view.blocks(context.snapshot, context.ord),
        };
        Some(Self { inside: context.inside(view), blocks, outwards, last: FxHashSet::default() })
    }

    /// Calls `see` with the documents that stand for `docs`, each with the number of its bucket, in blocks.
    pub fn each_block(
        &mut self,
        docs: &[u32],
        buckets: &[u32],
        see: &mut impl FnMut(&[u32], &[u32]) -> Result<(), AggregationError>,
    ) -> Result<(), AggregationError> {
        let Some(blocks) = &self.blocks else { return Ok(()) };
        let mut found: Vec<(u32, u32)> = Vec::new();
        for (&doc, &bucket) in docs.iter().zip(buckets) {
            if self.outwards {
                found.push((blocks.document_around(doc), bucket));
            } else {
                for object in blocks.objects_in(doc) {
                    found.push((object, bucket));
                    if found.len() >= BLOCK {
                        pass_on(&mut found, see)?;
                    }
                }
            }
        }
        if self.outwards {
            found.sort_unstable();
            found.dedup();
            let newest = found.last().map(|(doc, _)| *doc);
            found.retain(|pair| !self.last.contains(pair));
            self.last.retain(|(doc, _)| Some(*doc) == newest);
            self.last.extend(found.iter().filter(|(doc, _)| Some(*doc) == newest).copied());
        }
        pass_on(&mut found, see)
    }
}

fn pass_on(
    found: &mut Vec<(u32, u32)>,
    see: &mut impl FnMut(&[u32], &[u32]) -> Result<(), AggregationError>,
) -> Result<(), AggregationError> {
    work::check()?;
    found.sort_unstable();
    let (docs, buckets): (Vec<u32>, Vec<u32>) = found.drain(..).unzip();
    if docs.is_empty() { Ok(()) } else { see(&docs, &buckets) }
}
