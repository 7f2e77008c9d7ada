//! Collection of aggregation results in one pass over the documents of a segment.
//!
//! Every aggregation receives blocks of documents, each with the number of the bucket it is in. An aggregation that
//! makes buckets passes the documents on to its sub-aggregations, with the numbers of its own buckets. Results have
//! keys that mean the same in every segment and index.

use super::ast::{Aggregation, AggregationKind, AutoDates};
use super::auto_dates::Waiting;
use super::error::AggregationError;
use super::groups::Groups;
use super::key::Key;
use super::metrics::Metric;
use super::nested::Join;
use super::partial::{Bucket, Partial};
use super::pieces::InPieces;
use super::segment_context::SegmentContext;
use super::slots::Slots;
use super::values::UNCHECKED;
use sparrow_runtime::work;
use sparrow_tantivy_index::SegmentSnapshot;

/// Number of documents in a block.
const BLOCK: usize = 4096;

/// Aggregates those documents of a segment whose bits are set in `matching`; `global` aggregations see all live
/// documents.
pub fn collect_segment(
    aggregations: &[Aggregation],
    context: &SegmentContext<'_>,
    matching: &[u64],
) -> Result<Vec<Partial>, AggregationError> {
    let mut partials = Vec::with_capacity(aggregations.len());
    let zeros = vec![0; BLOCK];
    let mut nodes: Vec<Node<'_>> = Vec::with_capacity(aggregations.len());
    let mut global_nodes: Vec<Node<'_>> = Vec::with_capacity(aggregations.len());
    for aggregation in aggregations {
        let is_global = matches!(aggregation.kind, AggregationKind::Global);
        let node = Node::new(aggregation, context)?;
        if is_global { &mut global_nodes } else { &mut nodes }.push(node);
    }
    let max_doc = context.reader.max_doc();
    if !nodes.is_empty() {
        let words = matching.iter().copied();
        each_block(words, |docs| {
            nodes.iter_mut().try_for_each(|node| node.collect(docs, &zeros[..docs.len()], context))
        })?;
    }
    if !global_nodes.is_empty() {
        each_block(live_words(context.segment, max_doc), |docs| {
            global_nodes.iter_mut().try_for_each(|node| node.collect(docs, &zeros[..docs.len()], context))
        })?;
    }
    let (mut nodes, mut global_nodes) = (nodes.into_iter(), global_nodes.into_iter());
    for aggregation in aggregations {
        let is_global = matches!(aggregation.kind, AggregationKind::Global);
        let node = if is_global { global_nodes.next() } else { nodes.next() };
        let partial = node.map(|node| node.finish(1, context)).transpose()?.and_then(|mut list| list.pop());
        partials.push(partial.unwrap_or(Partial::Nothing));
    }
    Ok(partials)
}

/// The visible documents of a segment, as words of 64 bits.
pub fn live_words(segment: &SegmentSnapshot, max_doc: u32) -> impl Iterator<Item = u64> + '_ {
    (0..max_doc.div_ceil(64)).map(move |word| {
        let live = segment.live().map_or(u64::MAX, |live| live.get(word as usize).copied().unwrap_or(0));
        let rest = max_doc - word * 64;
        live & if rest < 64 { (1 << rest) - 1 } else { u64::MAX }
    })
}

/// Calls `see` with the documents whose bits are set, in blocks.
pub fn each_block(
    words: impl Iterator<Item = u64>,
    mut see: impl FnMut(&[u32]) -> Result<(), AggregationError>,
) -> Result<(), AggregationError> {
    let mut docs = Vec::with_capacity(BLOCK);
    for (place, mut word) in words.enumerate() {
        while word != 0 {
            docs.push(place as u32 * 64 + word.trailing_zeros());
            word &= word - 1;
        }
        if docs.len() > BLOCK - 64 {
            work::check()?;
            see(&docs)?;
            docs.clear();
        }
    }
    work::check()?;
    see(&docs)
}

/// An aggregation while documents are collected.
pub enum Node<'a> {
    /// An aggregation that makes buckets.
    Buckets(Box<BucketNode<'a>>),
    /// An aggregation that computes a value for each bucket.
    Metric(Box<Metric<'a>>),
    /// A pipeline aggregation, computed later from the results of others.
    Later,
}

impl<'a> Node<'a> {
    fn new(aggregation: &'a Aggregation, context: &SegmentContext<'a>) -> Result<Self, AggregationError> {
        if let Some(metric) = Metric::new(aggregation, context)? {
            return Ok(Node::Metric(Box::new(metric)));
        }
        let Some(groups) = Groups::new(aggregation, context)? else { return Ok(Node::Later) };
        let join = Join::new(aggregation, context);
        let inside = join.as_ref().map_or(*context, |join| join.inside);
        let mut children = Vec::with_capacity(aggregation.subs.len());
        for sub in &aggregation.subs {
            children.push(Node::new(sub, &inside)?);
        }
        Ok(Node::Buckets(Box::new(BucketNode {
            slots: Slots::new(groups.code_limit()),
            groups,
            counts: Vec::new(),
            feeds: children.iter().any(|child| !matches!(child, Node::Later)),
            children,
            join,
            waiting: match &aggregation.kind {
                AggregationKind::AutoDates(asked) => Some((asked, Waiting::default())),
                _ => None,
            },
            codes: Vec::new(),
            docs: Vec::new(),
            buckets: Vec::new(),
        })))
    }

    fn collect(
        &mut self,
        docs: &[u32],
        parents: &[u32],
        context: &SegmentContext<'_>,
    ) -> Result<(), AggregationError> {
        match self {
            Node::Buckets(node) => node.collect(docs, parents, context),
            Node::Metric(metric) => metric.collect_in_pieces(docs, parents, context),
            Node::Later => Ok(()),
        }
    }

    /// The results for each of the `parents` buckets above.
    fn finish(self, parents: usize, context: &SegmentContext<'_>) -> Result<Vec<Partial>, AggregationError> {
        match self {
            Node::Buckets(node) => node.finish(parents, context),
            Node::Metric(metric) => metric.finish(parents, context),
            Node::Later => Ok(vec![Partial::Nothing; parents]),
        }
    }
}

/// An aggregation that makes buckets, while documents are collected.
pub struct BucketNode<'a> {
    groups: Groups<'a>,
    slots: Slots,
    /// Number of documents of each bucket.
    counts: Vec<u64>,
    children: Vec<Node<'a>>,
    /// What leads from the documents to those that are aggregated in their place, if these are others.
    join: Option<Join<'a>>,
    /// Documents that are collected when all of them are known.
    waiting: Option<(&'a AutoDates, Waiting)>,
    /// Whether any sub-aggregation needs to see documents.
    feeds: bool,
    codes: Vec<(u32, u64)>,
    docs: Vec<u32>,
    buckets: Vec<u32>,
}

impl InPieces for BucketNode<'_> {
    fn piece(&self, docs: &[u32]) -> usize {
        self.groups.piece(docs)
    }

    fn collect_piece(
        &mut self,
        docs: &[u32],
        parents: &[u32],
        context: &SegmentContext<'_>,
    ) -> Result<(), AggregationError> {
        self.groups.codes(docs, &mut self.codes)?;
        self.docs.clear();
        self.buckets.clear();
        for (number, &(place, code)) in self.codes.iter().enumerate() {
            if number.is_multiple_of(UNCHECKED) {
                work::check()?;
            }
            let bucket = self.slots.get(parents[place as usize], code)?;
            match self.counts.get_mut(bucket as usize) {
                Some(count) => *count += 1,
                None => self.counts.push(1),
            }
            if self.feeds {
                self.docs.push(docs[place as usize]);
                self.buckets.push(bucket);
            }
        }
        if self.feeds && !self.docs.is_empty() {
            for child in &mut self.children {
                work::check()?;
                child.collect(&self.docs, &self.buckets, context)?;
            }
        }
        Ok(())
    }
}

impl BucketNode<'_> {
    fn collect(
        &mut self,
        docs: &[u32],
        parents: &[u32],
        context: &SegmentContext<'_>,
    ) -> Result<(), AggregationError> {
        if let Some((_, waiting)) = &mut self.waiting {
            return waiting.keep(docs, parents);
        }
        if let Some(mut join) = self.join.take() {
            let context = join.inside;
            let done = join
                .each_block(docs, parents, &mut |docs, parents| self.collect_piece(docs, parents, &context));
            self.join = Some(join);
            return done;
        }
        // A document in thousands of buckets, each of which hands it on to thousands: in pieces, so that no list gets long.
        self.collect_in_pieces(docs, parents, context)
    }

    fn finish(
        mut self,
        parents: usize,
        context: &SegmentContext<'_>,
    ) -> Result<Vec<Partial>, AggregationError> {
        if let Some((asked, waiting)) = self.waiting.take() {
            let ends = |docs: &[u32], parents: &[u32], range: &mut [(i64, i64)]| {
                self.groups.ends(docs, parents, range)
            };
            for (level, part) in waiting.by_level(asked, parents, ends)? {
                self.groups.round_to(asked.rounding(level), level);
                let (docs, buckets) = part.lists();
                for (docs, buckets) in docs.chunks(BLOCK).zip(buckets.chunks(BLOCK)) {
                    self.collect(docs, buckets, context)?;
                }
            }
        }
        let inside = self.join.as_ref().map(|join| join.inside);
        let context = inside.as_ref().unwrap_or(context);
        if let Some(codes) = self.groups.codes_without_documents(context)? {
            let before = self.slots.owners.len();
            // All of them will be there: nothing is begun for which there is no room.
            work::room_for(parents.saturating_mul(codes.len()).saturating_mul(size_of::<(u32, u64)>()))?;
            for parent in 0..parents as u32 {
                for &code in &codes {
                    self.slots.get(parent, code)?;
                }
                work::check()?;
            }
            debug_assert!(self.slots.owners.len() >= before);
            work::room_for(self.slots.owners.len() * size_of::<u64>())?;
            self.counts.resize(self.slots.owners.len(), 0);
        }
        let owners = self.slots.into_owners();
        let buckets = owners.len();
        // The lists that are made of them here, beside what the children make.
        work::room_for(buckets * (size_of::<(Key, Bucket)>() + size_of::<(u64, u64, u32)>()))?;
        let mut subs = Vec::with_capacity(self.children.len());
        for child in self.children {
            work::check()?;
            subs.push(child.finish(buckets, context)?);
        }
        let mut bucket = |place: usize| Bucket {
            docs: self.counts[place],
            subs: subs.iter_mut().map(|list| std::mem::replace(&mut list[place], Partial::Nothing)).collect(),
        };
        let mut codes: Vec<u64> = owners.iter().map(|(_, code)| *code).collect();
        if parents == 1 {
            let places = self.groups.places(&codes)?;
            let wanted: Vec<u64> = places.iter().map(|&place| codes[place as usize]).collect();
            let keys = self.groups.keys(&wanted)?;
            let mut list = Vec::with_capacity(places.len());
            for (key, place) in keys.into_iter().zip(places) {
                work::check()?;
                list.push((key, bucket(place as usize)));
            }
            return Ok(vec![Partial::Buckets(list)]);
        }
        // Many buckets may share a code, below several parents.
        codes.sort_unstable();
        codes.dedup();
        let keys = self.groups.keys(&codes)?;
        let mut lists: Vec<Vec<(Key, Bucket)>> = vec![Vec::new(); parents];
        for (place, &(parent, code)) in owners.iter().enumerate() {
            work::check()?;
            let key = keys[codes.binary_search(&code).unwrap_or(0)].clone();
            lists[parent as usize].push((key, bucket(place)));
        }
        Ok(lists.into_iter().map(Partial::Buckets).collect())
    }
}
