//! The posting lists of a query's terms, window by window: score bounds, and scores.

use tantivy::{DocId, TERMINATED};

use crate::ROUNDING;
use crate::clause::Clause;
use crate::list::{BLOCK, Block, PostingList};

/// Number of documents in a window: their sums and the blocks being added fit into the L1 cache.
pub(super) const WINDOW: u32 = 4096;
/// Number of documents below which a list is decoded and scored completely: its few blocks would span many windows,
/// and this makes its bounds exact.
const SHORT: u32 = 2048;

/// Upper bounds of the scores in each window, for each term.
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

/// A posting list with the place in it where each window starts.
pub(super) struct List<'a> {
    clause: Clause<'a>,
    /// For each window, the first block that overlaps it; in a completely scored list, its first document.
    first: Vec<u32>,
    content: Content,
    /// Index of the block or document where the next lookup starts.
    at: usize,
}

enum Content {
    /// A completely scored list: its documents and their scores.
    Scored {
        docs: Vec<DocId>,
        scores: Vec<f32>,
    },
    Packed(Packed),
}

/// A list kept in packed blocks, of which one at a time is decoded.
struct Packed {
    /// Byte offset of each block in the list's data.
    starts: Vec<u32>,
    block: Box<Block>,
    /// Index of the decoded block; its last document follows.
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
            if some.is_empty() && number < list.blocks() {
                // It is damaged, and so may be what comes after it.
                break;
            }
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
            if entry.last < before || to >= bounds.windows {
                // A damaged list is an empty one.
                let (first, content) =
                    (vec![0; bounds.windows + 1], Content::Scored { docs: Vec::new(), scores: Vec::new() });
                return Self { clause, first, content, at: 0 };
            }
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

    /// Estimated number of the list's documents in a window.
    pub(super) fn postings(&self, window: u32) -> usize {
        let window = window as usize;
        let there = (self.first[window + 1] - self.first[window]) as usize;
        match &self.content {
            Content::Scored { .. } => there,
            Content::Packed(_) => (there + 1) * BLOCK,
        }
    }

    /// Moves to the start of a window, before or at its first document.
    pub(super) fn enter(&mut self, window: u32) {
        self.at = self.first[window as usize] as usize;
    }

    /// Adds the scores of all documents of the list in a window to `sums`; returns the number of these documents.
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
                    let from = from.min(to);
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

    /// Adds the term's scores to `sums` for the given documents of a window, which must ascend.
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
                let count = packed.block.with_counts(list, self.at).1.get(at)?;
                Some(self.clause.score(doc, *count))
            }
        }
    }
}

impl Packed {
    /// Decodes the block `number`, unless it is the decoded one.
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
