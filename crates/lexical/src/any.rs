//! The best documents of a segment that hold any of some terms.
//!
//! The segment is taken in windows, those first whose documents may score the most: the bounds of blocks in the skip lists say so
//! before anything is decoded. When the bound of a window stays below what is wanted, so do those of all that follow.
//! In a window, the terms that could not lead to a wanted document among themselves are put aside (MaxScore). The others are
//! added up in an array; then those aside are looked up for the documents that can still reach what is wanted.
//!
//! The order of these sums differs from that of the query, so they are within rounding of the scores. In the end the scores proper
//! are worked out, for the documents that come near enough.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tantivy::{DocId, TERMINATED};

use crate::field::{Factors, SegmentField};
use crate::list::{Block, PostingList};
use crate::{ROUNDING, least_score};

/// Documents of a window.
const WINDOW: u32 = 2048;
/// Lists of fewer documents are decoded and scored whole, so that their bounds are exact.
const SHORT: u32 = 512;
/// Documents kept until their scores proper are worked out: ties may be as many as a list is long.
const KEPT: usize = 1 << 14;

/// A term of the query in a segment.
pub struct Clause<'a> {
    pub list: PostingList<'a>,
    pub field: &'a SegmentField,
    pub factors: &'a Factors,
    /// The score of a document is this times its factor.
    pub weight: f32,
}

impl Clause<'_> {
    #[inline]
    pub fn score(&self, doc: DocId, count: u32) -> f32 {
        self.weight * self.factors.factor(count, self.field.length(doc))
    }
}

/// The best scores so far.
struct Best {
    size: usize,
    /// Scores as bits, whose order is the same: none is below 0.
    heap: BinaryHeap<Reverse<u32>>,
}

impl Best {
    fn add(&mut self, score: f32) {
        let bits = Reverse(score.max(0.0).to_bits());
        if self.heap.len() < self.size {
            self.heap.push(bits);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && bits < *worst
        {
            *worst = bits;
        }
    }

    /// Sums below are of no interest.
    fn least(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(bits)) if self.heap.len() >= self.size => least_score(f32::from_bits(*bits), 0.0),
            _ => f32::NEG_INFINITY,
        }
    }
}

/// Calls `offer` with the documents that may be among the `size` best, and their scores. `known` holds scores of other segments'
/// documents. The walk ends soon after `cancel` is set; what was found until then is offered.
pub fn search(
    clauses: Vec<Clause<'_>>,
    max_doc: DocId,
    size: usize,
    known: impl Iterator<Item = f32>,
    cancel: Option<&AtomicBool>,
    wanted: impl Fn(DocId) -> bool,
    mut offer: impl FnMut(DocId, f32),
) {
    let windows = max_doc.div_ceil(WINDOW) as usize;
    let mut best = Best { size, heap: BinaryHeap::with_capacity(size.min(1 << 14)) };
    known.for_each(|score| best.add(score));
    let mut lists: Vec<List> = clauses.into_iter().map(|clause| List::new(clause, windows)).collect();
    let mut totals = vec![0.0_f32; windows];
    for list in &lists {
        totals.iter_mut().zip(&list.bounds).for_each(|(total, bound)| *total += bound);
    }
    let mut order: Vec<u32> = (0..windows as u32).collect();
    order.sort_unstable_by(|a, b| totals[*b as usize].total_cmp(&totals[*a as usize]));
    let mut walk = Walk {
        sums: vec![0.0; WINDOW as usize],
        order: (0..lists.len()).collect(),
        below: vec![0.0; lists.len()],
        candidates: Vec::new(),
        found: Vec::new(),
    };
    for window in order {
        if totals[window as usize] < best.least() {
            break;
        }
        if cancel.is_some_and(|flag| flag.load(Relaxed)) {
            break;
        }
        walk.window(&mut lists, window, max_doc, &mut best, &wanted);
        if walk.found.len() >= KEPT {
            settle(&mut lists, &mut walk.found, best.least(), cancel, &mut offer);
        }
    }
    settle(&mut lists, &mut walk.found, best.least(), None, &mut offer);
}

/// Offers what was found with its scores proper, and forgets it.
fn settle(
    lists: &mut [List<'_>],
    found: &mut Vec<(DocId, f32)>,
    least: f32,
    cancel: Option<&AtomicBool>,
    offer: &mut impl FnMut(DocId, f32),
) {
    found.retain(|(_, sum)| *sum >= least);
    found.sort_unstable_by_key(|(doc, _)| *doc);
    let mut entered = u32::MAX;
    for (doc, _) in found.drain(..) {
        let window = doc / WINDOW;
        if window != entered {
            if cancel.is_some_and(|flag| flag.load(Relaxed)) {
                return;
            }
            lists.iter_mut().for_each(|list| list.enter(window));
            entered = window;
        }
        let scores = lists.iter_mut().filter_map(|list| list.score_at(doc));
        offer(doc, scores.fold(0.0, |sum, score| sum + score));
    }
}

/// The state of a search that passes from one window of documents to the next: memory for sums, and the documents found so far.
struct Walk {
    /// By document of the window, what the leading terms give.
    sums: Vec<f32>,
    /// Terms by their bounds in the window, lowest first.
    order: Vec<usize>,
    /// Sum of the bounds up to a place of `order`, itself included.
    below: Vec<f32>,
    candidates: Vec<(DocId, f32)>,
    /// Documents that may be among the best, and sums within rounding of their scores.
    found: Vec<(DocId, f32)>,
}

impl Walk {
    fn window(
        &mut self,
        lists: &mut [List<'_>],
        window: u32,
        max_doc: DocId,
        best: &mut Best,
        wanted: &impl Fn(DocId) -> bool,
    ) {
        let least = best.least();
        let bound = |lists: &[List<'_>], term: usize| lists[term].bounds[window as usize];
        self.order.sort_unstable_by(|a, b| bound(lists, *a).total_cmp(&bound(lists, *b)));
        let mut sum = 0.0;
        for (below, term) in self.below.iter_mut().zip(&self.order) {
            sum += bound(lists, *term);
            *below = sum;
        }
        let leading = self.below.partition_point(|below| *below < least);
        let start = window * WINDOW;
        let end = max_doc.min(start + WINDOW);
        let sums = &mut self.sums[..(end - start) as usize];
        for term in &self.order[leading..] {
            if bound(lists, *term) > 0.0 {
                let list = &mut lists[*term];
                list.enter(window);
                list.add(start, end, sums);
            }
        }
        let rest = leading.checked_sub(1).map_or(0.0, |place| self.below[place]);
        // Above 0, by what the leading terms are.
        let floor = (least - rest).max(f32::MIN_POSITIVE);
        self.candidates.clear();
        let (chunks, tail) = sums.as_chunks::<16>();
        for (first, sums) in (start..).step_by(16).zip(chunks) {
            if sums.iter().fold(0, |any, sum| any | u32::from(*sum >= floor)) != 0 {
                let found = (first..).zip(sums).filter(|(_, sum)| **sum >= floor);
                self.candidates.extend(found.map(|(doc, sum)| (doc, *sum)));
            }
        }
        let found = (end - tail.len() as u32..end).zip(tail).filter(|(_, sum)| **sum >= floor);
        self.candidates.extend(found.map(|(doc, sum)| (doc, *sum)));
        sums.fill(0.0);
        for place in (0..leading).rev() {
            if self.candidates.is_empty() {
                return;
            }
            let list = &mut lists[self.order[place]];
            if list.bounds[window as usize] == 0.0 {
                continue;
            }
            list.enter(window);
            let below = self.below[place];
            self.candidates.retain_mut(|(doc, sum)| {
                if *sum + below < least {
                    return false;
                }
                *sum += list.score_at(*doc).unwrap_or(0.0);
                true
            });
        }
        let mut least = least;
        for (doc, sum) in self.candidates.drain(..) {
            if sum >= least && wanted(doc) {
                self.found.push((doc, sum));
                best.add(sum);
                least = best.least();
            }
        }
    }
}

/// A list with its bounds.
struct List<'a> {
    clause: Clause<'a>,
    /// By window: no document scores more.
    bounds: Vec<f32>,
    /// By window: the first block that reaches into it; of a list that is scored whole, the first document.
    first: Vec<u32>,
    content: Content,
    /// Where to look next.
    at: usize,
}

enum Content {
    /// Documents and their scores.
    Scored { docs: Vec<DocId>, scores: Vec<f32> },
    Packed {
        /// Offsets of the blocks' bytes.
        starts: Vec<u32>,
        block: Box<Block>,
        /// Number of that block, and its last document.
        decoded: usize,
        last: DocId,
    },
}

impl<'a> List<'a> {
    fn new(clause: Clause<'a>, windows: usize) -> Self {
        if clause.list.doc_freq() < SHORT {
            Self::scored(clause, windows)
        } else {
            Self::packed(clause, windows)
        }
    }

    fn scored(clause: Clause<'a>, windows: usize) -> Self {
        let list = clause.list;
        let mut bounds = vec![0.0_f32; windows];
        let mut first = Vec::with_capacity(windows + 1);
        let mut docs = Vec::with_capacity(list.doc_freq() as usize);
        let mut scores = Vec::with_capacity(list.doc_freq() as usize);
        let mut block = Block::new();
        let (mut offset, mut before) = (0, 0);
        for number in 0..=list.blocks() {
            block.decode(&list, number, offset, before);
            let (some, counts) = block.with_counts(&list, number);
            for (doc, count) in some.iter().zip(counts) {
                let score = clause.score(*doc, *count);
                let window = (*doc / WINDOW) as usize;
                while first.len() <= window {
                    first.push(docs.len() as u32);
                }
                docs.push(*doc);
                scores.push(score);
                let bound = &mut bounds[window];
                *bound = bound.max(score * (1.0 + ROUNDING));
            }
            if number < list.blocks() {
                let entry = list.entry(number);
                offset += entry.bytes();
                before = entry.last;
            }
        }
        first.resize(windows + 1, docs.len() as u32);
        Self { clause, bounds, first, content: Content::Scored { docs, scores }, at: 0 }
    }

    fn packed(clause: Clause<'a>, windows: usize) -> Self {
        let list = clause.list;
        let mut bounds = vec![0.0_f32; windows];
        let mut first = Vec::with_capacity(windows + 1);
        let mut starts = Vec::with_capacity(list.blocks() + 1);
        let (mut offset, mut from, mut before) = (0, 0, 0);
        for number in 0..list.blocks() {
            let entry = list.entry(number);
            starts.push(offset as u32);
            offset += entry.bytes();
            let bound = clause.weight * clause.field.most(&entry);
            let to = (entry.last / WINDOW) as usize;
            bounds[from..=to].iter_mut().for_each(|most| *most = most.max(bound));
            first.resize(to + 1, number as u32);
            // The next one may start in the same window.
            from = ((entry.last + 1) / WINDOW) as usize;
            before = entry.last;
        }
        starts.push(offset as u32);
        first.resize(windows + 1, list.blocks() as u32);
        let mut block = Box::new(Block::new());
        block.decode(&list, list.blocks(), offset, before);
        let (docs, counts) = block.with_counts(&list, list.blocks());
        for (doc, count) in docs.iter().zip(counts) {
            let bound = &mut bounds[(*doc / WINDOW) as usize];
            *bound = bound.max(clause.score(*doc, *count) * (1.0 + ROUNDING));
        }
        let content = Content::Packed { starts, block, decoded: list.blocks(), last: TERMINATED };
        Self { clause, bounds, first, content, at: 0 }
    }

    /// Goes to the first document of a window or before it.
    fn enter(&mut self, window: u32) {
        self.at = self.first[window as usize] as usize;
    }

    /// Adds the scores of a window's documents.
    fn add(&mut self, start: DocId, end: DocId, sums: &mut [f32]) {
        match &mut self.content {
            Content::Scored { docs, scores } => {
                let until = self.first[(start / WINDOW) as usize + 1] as usize;
                for (doc, score) in docs[self.at..until].iter().zip(&scores[self.at..until]) {
                    sums[(doc - start) as usize] += score;
                }
            }
            Content::Packed { starts, block, decoded, last } => loop {
                let list = &self.clause.list;
                go_to(list, starts, block, decoded, last, self.at);
                let from = if block.doc(0) < start { block.find(start) } else { 0 };
                let to = if *last >= end { block.find(end) } else { crate::list::BLOCK };
                let (docs, counts) = block.with_counts(list, self.at);
                let to = to.min(docs.len());
                for (doc, count) in docs[from..to].iter().zip(&counts[from..to]) {
                    sums[(doc - start) as usize] += self.clause.score(*doc, *count);
                }
                if *last >= end - 1 {
                    return;
                }
                self.at += 1;
            },
        }
    }

    /// The score of a document, `None` if the list lacks it. Documents must ascend within a window.
    #[inline]
    fn score_at(&mut self, doc: DocId) -> Option<f32> {
        match &mut self.content {
            Content::Scored { docs, scores } => {
                while *docs.get(self.at)? < doc {
                    self.at += 1;
                }
                (docs[self.at] == doc).then(|| scores[self.at])
            }
            Content::Packed { starts, block, decoded, last } => {
                let list = &self.clause.list;
                if self.at != *decoded || *last < doc {
                    while list.last(self.at) < doc {
                        self.at += 1;
                    }
                    go_to(list, starts, block, decoded, last, self.at);
                }
                let at = block.find(doc);
                if block.doc(at) != doc {
                    return None;
                }
                let count = block.with_counts(list, self.at).1[at];
                Some(self.clause.score(doc, count))
            }
        }
    }
}

/// Decodes a block unless it is decoded.
#[inline]
fn go_to(
    list: &PostingList<'_>,
    starts: &[u32],
    block: &mut Block,
    decoded: &mut usize,
    last: &mut DocId,
    number: usize,
) {
    if number != *decoded {
        let before = number.checked_sub(1).map_or(0, |before| list.last(before));
        block.decode(list, number, starts[number] as usize, before);
        *decoded = number;
        *last = list.last(number);
    }
}
