//! The best documents of a segment that contain any of several terms.
//!
//! The segment is processed in windows of documents, beginning with a few whose documents may have the highest
//! scores: the score bounds of blocks in the skip lists tell this before anything is decoded. Windows whose bounds
//! stay below the required score are skipped. Within a window, the terms that could not by themselves lead to a
//! wanted document are set aside (MaxScore). The scores of the other terms are summed in an array; then the terms set
//! aside are looked up for the documents that can still reach the required score. If these are many, a term is summed
//! as well instead of being looked up, so that fewer documents remain for the next one.
//!
//! The terms are summed in another order than in the query, so sums equal the scores only up to rounding. In the end,
//! the exact scores are computed for documents that come close enough.

mod lists;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tantivy::DocId;

use self::lists::{Bounds, List, WINDOW};
pub use crate::clause::Clause;
use crate::kernels::{self, Candidates};
use crate::least_score;

/// Least number of windows processed in order of their bounds; the remaining windows are processed in document order.
const FIRST: usize = 8;
/// Number of documents that can be summed in the time in which one is looked up.
const WORTH: usize = 8;
/// Number of candidates after which exact scores are computed and the list is emptied: where many documents have equal
/// sums, it would otherwise grow as long as the longest posting list.
const KEPT: usize = 1 << 14;

/// The highest scores found so far, at most `size` of them.
struct Best {
    size: usize,
    /// Scores as bits, which sort like the scores because none is negative.
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

    fn is_full(&self) -> bool {
        self.heap.len() >= self.size
    }

    /// Lowest sum that can still belong to one of the best documents.
    fn least(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(bits)) if self.heap.len() >= self.size => least_score(f32::from_bits(*bits), 0.0),
            _ => f32::NEG_INFINITY,
        }
    }
}

/// Calls `offer` with the documents that may be among the `size` best, and their scores. `known` holds scores
/// that other documents are known to reach. The search ends soon after `cancel` is set; what was found until then is offered.
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
    let mut bounds = Bounds::new(windows, clauses.len());
    let mut lists: Vec<List> = Vec::with_capacity(clauses.len());
    for (term, clause) in clauses.into_iter().enumerate() {
        lists.push(List::new(clause, term, &mut bounds));
    }
    let totals: Vec<f32> = (0..windows).map(|window| bounds.of(window).iter().sum()).collect();
    let mut order: Vec<u32> = (0..windows as u32).collect();
    order.sort_unstable_by(|a, b| totals[*b as usize].total_cmp(&totals[*a as usize]));
    let first = windows.min(FIRST.max(windows / 16));
    // From there on their order matters little, and blocks that reach into two windows are decoded once.
    order[first..].sort_unstable();
    let mut search = WindowSearch {
        bounds,
        sums: vec![0.0; WINDOW as usize],
        order: (0..lists.len() as u64).collect(),
        bound_sums: vec![0.0; lists.len()],
        window_candidates: Candidates::new(WINDOW as usize),
        is_first: true,
        candidates: Vec::new(),
    };
    for window in order {
        if totals[window as usize] < best.least() {
            continue;
        }
        if cancel.is_some_and(|flag| flag.load(Relaxed)) {
            break;
        }
        search.window(&mut lists, window, max_doc, &mut best, &wanted);
        if search.candidates.len() >= KEPT {
            settle(&mut lists, &mut search.candidates, best.least(), cancel, &mut offer);
        }
    }
    settle(&mut lists, &mut search.candidates, best.least(), None, &mut offer);
}

/// Offers the candidates with their scores proper, and forgets them.
fn settle(
    lists: &mut [List<'_>],
    candidates: &mut Vec<(DocId, f32)>,
    least: f32,
    cancel: Option<&AtomicBool>,
    offer: &mut impl FnMut(DocId, f32),
) {
    candidates.retain(|(_, sum)| *sum >= least);
    candidates.sort_unstable_by_key(|(doc, _)| *doc);
    let mut entered = u32::MAX;
    for (doc, _) in candidates.drain(..) {
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

/// A search that passes from one window of documents to the next: memory for sums, and the candidates so far.
struct WindowSearch {
    bounds: Bounds,
    /// Sum of the leading terms' scores for each document of the window.
    sums: Vec<f32>,
    /// Terms in ascending order of their bounds in the window, each as the bits of the bound and the term's index.
    order: Vec<u64>,
    /// Sum of the bounds up to a place of `order`, itself included.
    bound_sums: Vec<f32>,
    /// Documents of the window whose sums may still reach what is wanted.
    window_candidates: Candidates,
    /// Whether no window has been searched yet. In the first one, the sums of the terms added up so far may already raise the least score
    /// that is wanted. In later windows this is not worth the time: enough documents are known by then, or few are wanted.
    is_first: bool,
    /// Documents that may be among the best, and sums within rounding of their scores.
    candidates: Vec<(DocId, f32)>,
}

impl WindowSearch {
    fn window(
        &mut self,
        lists: &mut [List<'_>],
        window: u32,
        max_doc: DocId,
        best: &mut Best,
        wanted: &impl Fn(DocId) -> bool,
    ) {
        let kernels = kernels::chosen();
        let mut least = best.least();
        let bounds = self.bounds.of(window as usize);
        for key in &mut self.order {
            let term = *key as u32;
            *key = u64::from(bounds[term as usize].to_bits()) << 32 | u64::from(term);
        }
        self.order.sort_unstable();
        let mut sum = 0.0;
        for (bound_sum, key) in self.bound_sums.iter_mut().zip(&self.order) {
            sum += f32::from_bits((key >> 32) as u32);
            *bound_sum = sum;
        }
        let start = window * WINDOW;
        let end = max_doc.min(start + WINDOW);
        let mut leading = self.order.len();
        let mut postings = 0;
        while leading > 0 && self.bound_sums[leading - 1] >= least {
            leading -= 1;
            let key = self.order[leading];
            if key >> 32 != 0 {
                postings += lists[key as u32 as usize].add(window, start, end, &mut self.sums);
                if self.is_first && !best.is_full() && postings >= best.size {
                    least = least.max(self.least_so_far(start, best.size, wanted));
                }
            }
        }
        self.is_first = false;
        let sums = &mut self.sums[..];
        // Above 0, by what the leading terms are.
        let mut floor;
        loop {
            let rest = leading.checked_sub(1).map_or(0.0, |place| self.bound_sums[place]);
            floor = (least - rest).max(f32::MIN_POSITIVE);
            if leading == 0 {
                break;
            }
            let key = self.order[leading - 1];
            if key >> 32 != 0 {
                let list = &mut lists[key as u32 as usize];
                let there = list.postings(window);
                if there > WORTH * postings || there > WORTH * kernels.count(sums, floor) {
                    break;
                }
                postings += list.add(window, start, end, sums);
            }
            leading -= 1;
        }
        let candidates = &mut self.window_candidates;
        kernels.collect(sums, floor, start, candidates);
        for place in (0..leading).rev() {
            if candidates.len() == 0 {
                return;
            }
            let key = self.order[place];
            if key >> 32 == 0 {
                continue;
            }
            if place + 1 < leading {
                candidates.keep(least - self.bound_sums[place]);
            }
            let (docs, sums) = candidates.get_mut();
            lists[key as u32 as usize].look_up(window, docs, sums);
        }
        if leading > 0 {
            candidates.keep(least);
        }
        let (docs, sums) = candidates.get();
        for (doc, sum) in docs.iter().zip(sums) {
            if *sum >= least && wanted(*doc) {
                self.candidates.push((*doc, *sum));
                best.add(*sum);
                least = least.max(best.least());
            }
        }
    }

    /// Lowest sum of interest in this window, given that `size` of its wanted documents reach it by the terms added
    /// so far.
    fn least_so_far(&mut self, start: DocId, size: usize, wanted: &impl Fn(DocId) -> bool) -> f32 {
        kernels::chosen().collect(&mut self.sums, f32::MIN_POSITIVE, start, &mut self.window_candidates);
        let (docs, sums) = self.window_candidates.get();
        docs.iter().zip(sums).for_each(|(doc, sum)| self.sums[(doc - start) as usize] = *sum);
        let wanted = docs.iter().zip(sums).filter(|(doc, _)| wanted(**doc));
        let mut sums: Vec<f32> = wanted.map(|(_, sum)| *sum).collect();
        match size.checked_sub(1) {
            Some(worst) if worst < sums.len() => {
                let (_, worst, _) = sums.select_nth_unstable_by(worst, |a, b| b.total_cmp(a));
                least_score(*worst, 0.0)
            }
            _ => f32::NEG_INFINITY,
        }
    }
}
