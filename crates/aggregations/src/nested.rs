//! `nested` and `reverse_nested`: sub-aggregations see the objects in the documents of a bucket, or the documents around objects.

use std::sync::Arc;

use sparrow_index::{Blocks, Snapshot};
use sparrow_mapping::FieldType;
use sparrow_types::work;

use super::ast::{Aggregation, AggregationKind};
use super::collect::BLOCK;
use super::error::AggregationError;
use super::fields::Fields;
use super::segment_context::SegmentContext;

/// The view of the objects of a nested field, without any where the path is not mapped.
///
/// # Errors
/// If the field is not nested.
pub fn inside(snapshot: &Snapshot, path: &str) -> Result<Arc<Snapshot>, AggregationError> {
    match snapshot.mapping().field(path) {
        None | Some(FieldType::Object { nested: true, .. }) => Ok(snapshot.inside(path)),
        Some(_) => Err(AggregationError::Execution(format!("[nested] nested path [{path}] is not nested"))),
    }
}

/// The view of what is around objects; `None` for the documents of the index.
///
/// # Errors
/// If no objects are aggregated, or the field is not one around them.
pub fn around(
    fields: &Fields<'_>,
    name: &str,
    path: Option<&str>,
) -> Result<Option<Arc<Snapshot>>, AggregationError> {
    let Some(scope) = fields.snapshot.scope() else {
        return Err(AggregationError::IllegalArgument(format!(
            "Reverse nested aggregation [{name}] can only be used inside a [nested] aggregation"
        )));
    };
    let Some(path) = path else { return Ok(None) };
    match fields.root.mapping().field(path) {
        Some(FieldType::Object { nested: true, .. })
            if scope.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')) =>
        {
            Ok(Some(fields.root.inside(path)))
        }
        Some(FieldType::Object { nested: true, .. }) => Err(AggregationError::Execution(format!(
            "[reverse_nested] nested path [{path}] is not around [{scope}]"
        ))),
        _ => Err(AggregationError::Execution(format!("[reverse_nested] nested path [{path}] is not nested"))),
    }
}

/// What leads from the documents of a bucket to those that its sub-aggregations see.
pub struct Join<'a> {
    /// The context of the sub-aggregations.
    pub inside: SegmentContext<'a>,
    blocks: Option<Blocks>,
    /// Whether it leads from objects to what is around them.
    outwards: bool,
    /// The last document that was passed on, once for each of its buckets: its next objects do not count it again.
    last: Vec<(u32, u32)>,
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
        Some(Self { inside: context.inside(view), blocks, outwards, last: Vec::new() })
    }

    /// Calls `see` with the documents that stand for `docs`, each with the number of its bucket, in blocks.
    pub fn each_block(
        &mut self,
        docs: &[u32],
        buckets: &[u32],
        see: &mut dyn FnMut(&[u32], &[u32]) -> Result<(), AggregationError>,
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
            self.last.extend(found.iter().filter(|(doc, _)| Some(*doc) == newest));
        }
        pass_on(&mut found, see)
    }
}

fn pass_on(
    found: &mut Vec<(u32, u32)>,
    see: &mut dyn FnMut(&[u32], &[u32]) -> Result<(), AggregationError>,
) -> Result<(), AggregationError> {
    work::check()?;
    found.sort_unstable();
    let (docs, buckets): (Vec<u32>, Vec<u32>) = found.drain(..).unzip();
    if docs.is_empty() { Ok(()) } else { see(&docs, &buckets) }
}
