//! The lists of a query's terms, window by window: what their documents may score, and what they score.

use tantivy::{DocId, TERMINATED};

use super::{Clause, WINDOW};
use crate::ROUNDING;
use crate::list::{BLOCK, Block, PostingList};

/// Lists of fewer documents are decoded and scored whole: their blocks would reach into many windows, and their bounds are exact so.
const SHORT: u32 = 2048;

/// What no document of a window scores more than, by window and term.
pub(super) struct Bounds {
    windows: usize,
    terms: usize,
    values: Vec<f32>,
}

impl Bounds {
    pub(super) fn new(windows: usize, terms: usize) -> Self {
        Self { windows, terms, values: vec![0.0; windows * terms] }
    }

    pub(super) fn of(&self, window: usize) -> &[f32] {
        &self.values[window * self.terms..(window + 1) * self.terms]
    }

    #[inline]
    fn raise(&mut self, window: usize, term: usize, bound: f32) {
        let value = &mut self.values[window * self.terms + term];
        *value = value.max(bound);
    }
}

/// A list with where its windows start.
pub(super) struct List<'a> {
    clause: Clause<'a>,
    /// By window: the first block that reaches into it; of a list that is scored whole, the first document.
    first: Vec<u32>,
    content: Content,
    /// Where to look next.
    at: usize,
}

enum Content {
    /// Documents and their scores.
    Scored {
        docs: Vec<DocId>,
        scores: Vec<f32>,
    },
    Packed(Packed),
}

/// The blocks of a list, of which one is decoded.
struct Packed {
    /// Offsets of the blocks' bytes.
    starts: Vec<u32>,
    block: Box<Block>,
    /// Number of that block, and its last document.
    decoded: usize,
    last: DocId,
}

impl<'a> List<'a> {
    pub(super) fn new(clause: Clause<'a>, term: usize, bounds: &mut Bounds) -> Self {
        if clause.list.doc_freq() < SHORT {
            Self::scored(clause, term, bounds)
        } else {
            Self::packed(clause, term, bounds)
        }
    }

    fn scored(clause: Clause<'a>, term: usize, bounds: &mut Bounds) -> Self {
        let list = clause.list;
        let windows = bounds.windows;
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
                bounds.raise(window, term, score * (1.0 + ROUNDING));
            }
            if number < list.blocks() {
                let entry = list.entry(number);
                offset += entry.bytes();
                before = entry.last;
            }
        }
        first.resize(windows + 1, docs.len() as u32);
        Self { clause, first, content: Content::Scored { docs, scores }, at: 0 }
    }

    fn packed(clause: Clause<'a>, term: usize, bounds: &mut Bounds) -> Self {
        let list = clause.list;
        let blocks = list.blocks();
        let mut first = vec![blocks as u32; bounds.windows + 1];
        let mut starts = vec![0; blocks + 1];
        let (mut offset, mut before) = (0, 0);
        let (mut window, mut most) = (0, 0.0_f32);
        first[0] = 0;
        for (start, (number, entry)) in starts.iter_mut().zip((0..).zip(list.entries())) {
            *start = offset as u32;
            offset += entry.bytes();
            let bound = clause.weight * clause.field.most(&entry);
            most = if bound > most { bound } else { most };
            let to = (entry.last / WINDOW) as usize;
            if to > window {
                bounds.raise(window, term, most);
                (window + 1..to).for_each(|between| bounds.raise(between, term, bound));
                first[window + 1..=to].fill(number);
                (window, most) = (to, bound);
            }
            before = entry.last;
        }
        bounds.raise(window, term, most);
        starts[blocks] = offset as u32;
        let mut block = Box::new(Block::new());
        block.decode(&list, list.blocks(), offset, before);
        let (docs, counts) = block.with_counts(&list, list.blocks());
        for (doc, count) in docs.iter().zip(counts) {
            bounds.raise((*doc / WINDOW) as usize, term, clause.score(*doc, *count) * (1.0 + ROUNDING));
        }
        let packed = Packed { starts, block, decoded: list.blocks(), last: TERMINATED };
        Self { clause, first, content: Content::Packed(packed), at: 0 }
    }

    /// About how many documents of a window it has.
    pub(super) fn postings(&self, window: u32) -> usize {
        let window = window as usize;
        let there = (self.first[window + 1] - self.first[window]) as usize;
        match &self.content {
            Content::Scored { .. } => there,
            Content::Packed(_) => (there + 1) * BLOCK,
        }
    }

    /// Goes to the first document of a window or before it.
    pub(super) fn enter(&mut self, window: u32) {
        self.at = self.first[window as usize] as usize;
    }

    /// Adds the scores of a window's documents, and says how many these are.
    pub(super) fn add(&mut self, window: u32, start: DocId, end: DocId, sums: &mut [f32]) -> usize {
        self.enter(window);
        match &mut self.content {
            Content::Scored { docs, scores } => {
                let until = self.first[window as usize + 1] as usize;
                for (doc, score) in docs[self.at..until].iter().zip(&scores[self.at..until]) {
                    sums[(doc - start) as usize] += score;
                }
                until - self.at
            }
            Content::Packed(packed) => {
                let list = &self.clause.list;
                let mut added = 0;
                loop {
                    packed.go_to(list, self.at);
                    let block = &mut packed.block;
                    let from = if block.doc(0) < start { block.find(start) } else { 0 };
                    let to = if packed.last >= end { block.find(end) } else { BLOCK };
                    let (docs, counts) = block.with_counts(list, self.at);
                    let to = to.min(docs.len());
                    self.clause.add(&docs[from..to], &counts[from..to], start, sums);
                    added += to - from;
                    if packed.last >= end - 1 {
                        return added;
                    }
                    self.at += 1;
                }
            }
        }
    }

    /// Adds to some sums of a window the scores of their documents, which ascend.
    pub(super) fn look_up(&mut self, window: u32, docs: &[DocId], sums: &mut [f32]) {
        self.enter(window);
        for (doc, sum) in docs.iter().zip(sums) {
            if let Some(score) = self.score_at(*doc) {
                *sum += score;
            }
        }
    }

    /// The score of a document, `None` if the list lacks it. Documents must ascend within a window.
    #[inline]
    pub(super) fn score_at(&mut self, doc: DocId) -> Option<f32> {
        match &mut self.content {
            Content::Scored { docs, scores } => {
                while *docs.get(self.at)? < doc {
                    self.at += 1;
                }
                (docs[self.at] == doc).then(|| scores[self.at])
            }
            Content::Packed(packed) => {
                let list = &self.clause.list;
                if self.at != packed.decoded || packed.last < doc {
                    while list.last(self.at) < doc {
                        self.at += 1;
                    }
                    packed.go_to(list, self.at);
                }
                let at = packed.block.find(doc);
                if packed.block.doc(at) != doc {
                    return None;
                }
                let count = packed.block.with_counts(list, self.at).1[at];
                Some(self.clause.score(doc, count))
            }
        }
    }
}

impl Packed {
    /// Decodes a block unless it is decoded.
    #[inline]
    fn go_to(&mut self, list: &PostingList<'_>, number: usize) {
        if number != self.decoded {
            let before = number.checked_sub(1).map_or(0, |before| list.last(before));
            self.block.decode(list, number, self.starts[number] as usize, before);
            self.decoded = number;
            self.last = list.last(number);
        }
    }
}
