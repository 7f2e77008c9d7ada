//! The rank-safe search of format 3.
//!
//! Works window by window with 16-bit estimates. A query weight `x` of a term with the highest
//! weight `m` becomes a factor, so that a posting with impact `i` adds `i * factor >> 8` units to its
//! document's sum; the units are chosen so that no document's sum can exceed 16 bits. With `s`
//! units per score, and the errors of rounding impact, factor and product added up over the query
//! in [`Errors`], a document's estimate `e` and its score `S` satisfy
//!
//! ```text
//! s * S - above  <=  e  <=  s * S + below
//! ```
//!
//! So a document whose score reaches `t` has an estimate of at least `s * t - above`, and when k
//! documents have an estimate of at least `e`, a document below `e - below - above` scores less than
//! all of them. What remains is scored exactly, in query order. As long as those bounds are not
//! positive they exclude nothing, and every document that shares a term is a candidate, whatever its
//! estimate was rounded to.
//!
//! Dense terms with the lowest bounds, in sum at most [`DEFERRED_SHARE`] of what is needed, are not
//! added up but looked up for the documents that the others leave.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;

use sparrow_types::DocId;

use super::TopKRequest;
use super::blocks::BlockScratch;
use super::bounds::ScoreBounds;
use super::exact::for_each_score;
use super::filtered::{self, DocumentScratch};
use crate::kernels::{self, DenseTerm, GROUP, lane};
use crate::reader::PostingsReader;
use crate::term::{Kind, Postings};

/// Highest sum of the bounds of deferred terms, as a share of the estimate needed. Between 0.15
/// and 0.25 was best; above 0.35 look-ups cost more than they save.
const DEFERRED_SHARE: f64 = 0.2;

/// Groups to which all dense terms are added before the next: their sums stay in the first level cache.
const GROUPS: usize = 256;

/// A query term that the segment has.
pub(super) struct Clause<'a> {
    pub(super) postings: Postings<'a>,
    pub(super) weight: f32,
    pub(super) factor: u16,
    /// Highest contribution to an estimate.
    pub(super) bound: u32,
    /// Next posting of a rare term.
    pub(super) next: usize,
}

/// How far estimates and scores can lie apart, in units: in all segments that are searched together.
#[derive(Clone, Copy)]
pub(super) struct Errors {
    pub(super) units: f64,
    pub(super) above: f64,
    pub(super) below: f64,
    /// Both, rounded up: how far below the k-th best estimate a document among the best can be.
    pub(super) distance: i64,
}

/// Accumulators of a window. As long as 16 bits can count, so that no id, be it damaged, is out of
/// bounds; only the window's part is used.
#[repr(align(64))]
pub(super) struct Sums(pub(super) [u16; 1 << 16]);

pub(super) struct Scratch {
    pub(super) sums: Box<Sums>,
    pub(super) allowed: Vec<u64>,
    pub(super) matches: Vec<u64>,
    pub(super) blocks: BlockScratch,
    pub(super) documents: DocumentScratch,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            sums: Box::new(Sums([0; 1 << 16])),
            allowed: Vec::new(),
            matches: Vec::new(),
            blocks: BlockScratch::default(),
            documents: DocumentScratch::default(),
        }
    }
}

pub(super) struct Search<'a, 'r, B> {
    pub(super) reader: &'a PostingsReader<B>,
    pub(super) request: TopKRequest<'r>,
    /// In query order, for exact scores.
    pub(super) clauses: Vec<Clause<'a>>,
    /// Dense clauses by bound, highest first; then the others.
    pub(super) dense: Vec<usize>,
    pub(super) others: Vec<usize>,
    pub(super) errors: Errors,
    /// Where to leave the bounds of blocks.
    pub(super) bounds: Option<&'a mut ScoreBounds>,
    /// The k highest estimates, of this segment and those before it.
    highest: BinaryHeap<Reverse<u16>>,
    candidates: Vec<(u16, DocId)>,
    /// Lowest estimate wanted; not positive: any.
    pub(super) need: i64,
    /// Blocks of 8 documents, ascending, that were scored already.
    pub(super) seeds: Vec<u32>,
    /// Where its documents' sums begin among those of all segments.
    pub(super) sums_at: usize,
    pub(super) matched: u64,
    /// Documents that pass the filter.
    pub(super) passed: Option<u64>,
}

impl<'a, 'r, B> Search<'a, 'r, B>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    pub(super) fn new(
        reader: &'a PostingsReader<B>,
        request: TopKRequest<'r>,
        bounds: Option<&'a mut ScoreBounds>,
        clauses: Vec<Clause<'a>>,
        errors: Errors,
    ) -> Self {
        let (mut by_bound, mut others) =
            (Vec::with_capacity(clauses.len()), Vec::with_capacity(clauses.len()));
        for (i, clause) in clauses.iter().enumerate() {
            match clause.postings.kind {
                Kind::Dense => by_bound.push((Reverse(clause.bound), i)),
                _ => others.push(i),
            }
        }
        by_bound.sort_unstable();
        let dense = by_bound.into_iter().map(|(_, i)| i).collect();
        let passed = filtered::passed(reader.num_docs(), &request);
        Self {
            reader,
            request,
            clauses,
            dense,
            others,
            errors,
            bounds,
            highest: BinaryHeap::new(),
            candidates: Vec::new(),
            need: 0,
            seeds: Vec::new(),
            sums_at: 0,
            matched: 0,
            passed,
        }
    }

    /// Calls `each(number, search)` for one segment after the other, which goes on with what those before it
    /// found; the first has it all in the end.
    pub(super) fn one_after_another(searches: &mut [Self], mut each: impl FnMut(usize, &mut Self)) {
        for at in 0..searches.len() {
            let (before, rest) = searches.split_at_mut(at);
            if let (Some(before), Some(search)) = (before.last_mut(), rest.first_mut()) {
                search.go_on(before);
            }
            each(at, &mut searches[at]);
        }
        if let [first, .., last] = searches {
            first.go_on(last);
        }
    }

    fn go_on(&mut self, before: &mut Self) {
        self.need = before.need;
        std::mem::swap(&mut self.highest, &mut before.highest);
    }

    /// Scans all windows.
    pub(super) fn scan(&mut self, scratch: &mut Scratch) {
        let window = self.reader.window() as usize;
        let words = (self.reader.num_docs() as usize).div_ceil(64);
        for start in (0..words).step_by(window / 64) {
            let counting = self.matched < self.request.count_limit;
            if self.request.is_cancelled() || (self.request.k == 0 && !counting) {
                return;
            }
            self.window(start, (window / 64).min(words - start), counting, &[], scratch);
        }
    }

    /// Takes back all candidates.
    pub(super) fn forget(&mut self) {
        self.highest.clear();
        self.candidates.clear();
    }

    /// Scans some groups of documents of one window. `known` are the sums of the sparse terms of as many documents, in
    /// their order, or none.
    pub(super) fn window(
        &mut self,
        start: usize,
        groups: usize,
        counting: bool,
        known: &[u16],
        scratch: &mut Scratch,
    ) {
        let Scratch { sums, allowed, matches, .. } = scratch;
        if !self.fill_allowed(start, groups, allowed) {
            return;
        }
        matches.clear();
        matches.resize(groups, 0);
        self.raise_need(self.request.floor());
        let min_score = self.request.min_score.filter(|minimum| *minimum > 0.0);
        let judging = counting && min_score.is_some();
        let (kept, deferred) = if judging { (self.dense.len(), 0) } else { self.split() };
        if known.is_empty() {
            sums.0[..groups * GROUP].fill(0);
            self.scatter(start, sums);
        } else {
            kernels::chosen().to_lanes(known, &mut sums.0[..groups * GROUP]);
        }
        let sums = &mut sums.0[..groups * GROUP];
        let floor = match min_score {
            Some(minimum) if judging => self.estimate_of(minimum),
            _ => self.need - i64::from(deferred),
        };
        // All that share a term: to count them, or because no bound excludes any.
        let any = floor <= 0 && (self.request.k > 0 || judging);
        if any || (counting && !judging) {
            self.mark_matches(start, sums, matches);
            matches.iter_mut().zip(allowed.iter()).for_each(|(matches, allowed)| *matches &= allowed);
            if counting && !judging {
                self.matched += matches.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            }
        }
        if self.request.k == 0 && !judging {
            return;
        }
        for first in (0..groups).step_by(GROUPS) {
            let some = first..groups.min(first + GROUPS);
            let sums = &mut sums[some.start * GROUP..some.end * GROUP];
            self.add_dense(start + first, kept, &allowed[some], sums);
        }
        if !any {
            kernels::chosen().at_least(sums, floor.min(65_535) as u16, matches);
            matches.iter_mut().zip(allowed.iter()).for_each(|(matches, allowed)| *matches &= allowed);
        }
        match min_score {
            Some(minimum) if judging => self.judge(start, sums, matches, minimum),
            _ => self.collect(start, sums, matches, kept, deferred),
        }
        self.share();
        if self.candidates.len() > self.request.k.saturating_mul(4).saturating_add(1 << 16) {
            let need = self.need;
            self.candidates.retain(|(estimate, _)| i64::from(*estimate) >= need);
        }
    }

    /// Live and wanted documents of a window; whether there are any.
    pub(super) fn fill_allowed(&self, start: usize, groups: usize, allowed: &mut Vec<u64>) -> bool {
        allowed.clear();
        if self.request.live.is_none() && self.request.filter.is_none() {
            allowed.resize(groups, u64::MAX);
        } else {
            allowed.extend((start..start + groups).map(|word| self.request.allowed_word(word)));
        }
        let docs = self.reader.num_docs() as usize;
        if docs < (start + groups) * 64
            && let Some(last) = allowed.last_mut()
        {
            *last &= u64::MAX >> (64 - docs % 64);
        }
        let first = self.seeds.partition_point(|block| (*block as usize) < start * 8);
        for block in self.seeds[first..].iter().take_while(|block| (**block as usize) < (start + groups) * 8)
        {
            allowed[*block as usize / 8 - start] &= !(0xff << (block % 8 * 8));
        }
        allowed.iter().any(|word| *word != 0)
    }

    /// Lowest estimate of a document with this score.
    fn estimate_of(&self, score: f32) -> i64 {
        (f64::from(score) * self.errors.units - self.errors.above).floor() as i64
    }

    pub(super) fn raise_need(&mut self, score: f32) {
        if score > 0.0 {
            self.need = self.need.max(self.estimate_of(score));
        }
    }

    /// How many dense terms to add up, and the sum of the bounds of the rest.
    fn split(&self) -> (usize, u32) {
        let limit = DEFERRED_SHARE * self.need as f64;
        let (mut kept, mut deferred) = (self.dense.len(), 0);
        while kept > 0 && f64::from(deferred + self.clauses[self.dense[kept - 1]].bound) <= limit {
            kept -= 1;
            deferred += self.clauses[self.dense[kept]].bound;
        }
        (kept, deferred)
    }

    fn scatter(&mut self, start: usize, sums: &mut Sums) {
        let window = self.reader.window();
        let first = start as u32 * 64;
        for i in &self.others {
            let clause = &mut self.clauses[*i];
            let postings = &clause.postings;
            let factor = u32::from(clause.factor);
            // Rounded up, so that a posting always leaves a trace.
            let add = |sum: &mut u16, impact: u8| {
                *sum = sum.wrapping_add(((u32::from(impact) * factor + 255) >> 8) as u16);
            };
            if postings.kind == Kind::Sparse {
                let range = postings.window_range((first / window) as usize);
                let ids = postings.docs.get(range.start * 2..range.end * 2).unwrap_or(&[]);
                let impacts = postings.impacts.get(range).unwrap_or(&[]);
                for (id, impact) in ids.as_chunks::<2>().0.iter().zip(impacts) {
                    add(&mut sums.0[usize::from(lane(u16::from_le_bytes(*id)))], *impact);
                }
            } else {
                while clause.next < postings.df as usize {
                    let doc = postings.rare_doc_at(clause.next);
                    if doc >= first.saturating_add(window) {
                        break;
                    }
                    if doc >= first {
                        add(
                            &mut sums.0[usize::from(lane((doc - first) as u16))],
                            postings.impact_at(clause.next),
                        );
                    }
                    clause.next += 1;
                }
            }
        }
    }

    /// Bit per document that shares a term: scattered sums, then the bitmaps.
    fn mark_matches(&self, start: usize, sums: &[u16], matches: &mut [u64]) {
        kernels::chosen().nonzero(sums, matches);
        self.dense.iter().for_each(|i| self.mark_dense(start, *i, matches));
    }

    fn add_dense(&self, start: usize, kept: usize, allowed: &[u64], sums: &mut [u16]) {
        let groups = sums.len() / GROUP;
        let terms: Vec<DenseTerm<'_>> = self.dense[..kept]
            .iter()
            .map(|i| {
                let clause = &self.clauses[*i];
                let postings = &clause.postings;
                let rank = postings.dense_rank(start as u32 * 64).min(postings.df as usize);
                let impacts = self.reader.bytes().get(postings.impacts_at + rank..).unwrap_or(&[]);
                let bitmap = postings.docs.get(start * 8..(start + groups) * 8).unwrap_or(&[]);
                DenseTerm { bitmap, impacts, factor: clause.factor }
            })
            .collect();
        kernels::chosen().add_dense(sums, allowed, &terms);
    }

    /// Takes the marked documents, with the deferred terms looked up, as candidates.
    fn collect(&mut self, start: usize, sums: &[u16], matches: &[u64], kept: usize, deferred: u32) {
        for (group, (word, sums)) in matches.iter().zip(sums.chunks_exact(GROUP)).enumerate() {
            let mut bits = *word;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let mut estimate = u32::from(sums[usize::from(lane(bit as u16))]);
                if i64::from(estimate + deferred) < self.need {
                    continue;
                }
                let doc = (start + group) as u32 * 64 + bit;
                let mut rest = deferred;
                for i in &self.dense[kept..] {
                    let clause = &self.clauses[*i];
                    rest -= clause.bound;
                    if let Some(position) = clause.postings.find(doc) {
                        let impact = u32::from(clause.postings.impact_at(position));
                        estimate += (impact * u32::from(clause.factor)) >> 8;
                    }
                    if i64::from(estimate + rest) < self.need {
                        break;
                    }
                }
                if i64::from(estimate) >= self.need {
                    self.push(estimate.min(65_535) as u16, doc);
                }
            }
        }
    }

    pub(super) fn push(&mut self, estimate: u16, doc: DocId) {
        self.candidates.push((estimate, doc));
        if self.highest.len() < self.request.k {
            self.highest.push(Reverse(estimate));
            if self.highest.len() < self.request.k {
                return;
            }
        } else if let Some(mut lowest) = self.highest.peek_mut() {
            if estimate <= lowest.0 {
                return;
            }
            *lowest = Reverse(estimate);
        }
        if let Some(lowest) = self.highest.peek() {
            self.raise_need_to(lowest.0);
        }
    }

    /// Raises what is needed when k documents have at least this estimate.
    pub(super) fn raise_need_to(&mut self, estimate: u16) {
        self.need = self.need.max(i64::from(estimate) - self.errors.distance);
    }

    /// Counts the marked documents that reach the minimum score, and takes candidates among them.
    fn judge(&mut self, start: usize, sums: &[u16], matches: &[u64], minimum: f32) {
        let sure = (f64::from(minimum) * self.errors.units + self.errors.below).ceil() as i64;
        let mut unsure = Vec::new();
        for (group, (word, sums)) in matches.iter().zip(sums.chunks_exact(GROUP)).enumerate() {
            let mut bits = *word;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let estimate = sums[usize::from(lane(bit as u16))];
                let doc = (start + group) as u32 * 64 + bit;
                if i64::from(estimate) >= sure {
                    self.matched += 1;
                } else {
                    unsure.push(doc);
                }
                if self.request.k > 0 && i64::from(estimate) >= self.need {
                    self.push(estimate, doc);
                }
            }
        }
        let matched = &mut self.matched;
        for_each_score(&self.clauses, &unsure, |_, score, _| *matched += u64::from(score >= minimum));
    }

    /// Tells other segments what k documents of this one certainly reach.
    pub(super) fn share(&self) {
        if self.request.k > 0
            && self.highest.len() == self.request.k
            && let Some(lowest) = self.highest.peek()
        {
            let certain = (f64::from(lowest.0) - self.errors.below) / self.errors.units;
            // Converting to f32 may round up by one part in 2^24.
            self.request.threshold.raise((certain * (1.0 - 1e-6)) as f32);
        }
    }

    /// Documents whose estimates reach `need`.
    pub(super) fn candidates_from(&self, need: i64) -> impl Iterator<Item = DocId> + '_ {
        let reaching = self.candidates.iter().filter(move |(estimate, _)| i64::from(*estimate) >= need);
        reaching.map(|(_, doc)| *doc)
    }
}
