//! Walks a graph from its entry point towards a query.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;
use std::ops::Deref;

use super::beam::{Beam, Seen, Visited};
use super::format::{Block, GraphCodes, GraphReader, Level};

/// Steps between checks of the cancel flag.
const CANCEL_INTERVAL: usize = 64;
/// Vectors whose neighbours are compared in one step. More of them hide the time that memory takes, and some of the
/// comparisons would not have been made one after another. Measured: see `docs/design/vectors/hnsw.md`.
const EXPANDED: usize = 4;

/// First vector and codes of a graph, which [`BeamSearch::near`] needs to compare its vectors with the query.
pub(crate) struct Compared<'a> {
    /// Number of the graph's first vector in the segment.
    pub(crate) first: usize,
    /// Codes that the graph has of its vectors.
    pub(crate) codes: Option<GraphCodes<'a>>,
}

/// Writes the nearness of vectors, given by their numbers in the graph, to the query.
pub(crate) type Near<'a> = dyn Fn(&Compared<'_>, &[u32], &mut [f32]) + 'a;

/// Parameters of a walk over all blocks.
pub(crate) struct BeamSearch<'a> {
    /// Number of candidates to find in each block: the width of the beam.
    pub(crate) candidates: usize,
    /// Most comparisons; a walk that needs more is abandoned.
    pub(crate) budget: usize,
    /// Whether a vector may be a hit; others are only traversed. `None` when all may.
    pub(crate) allows: Option<&'a dyn Fn(usize) -> bool>,
    /// Computes the nearness of vectors to the query.
    pub(crate) near: &'a Near<'a>,
    /// Returns whether the search was cancelled.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

impl<B: Deref<Target = [u8]>> GraphReader<B> {
    /// The nearest vectors of all blocks with their nearness, unordered; `None` when the budget was
    /// exhausted.
    pub(crate) fn walk(&self, search: &BeamSearch<'_>) -> Option<Vec<(usize, f32)>> {
        let mut neighbours = Vec::new();
        let mut budget = search.budget;
        for block in &self.blocks {
            if (search.cancelled)() {
                break;
            }
            let compared = Compared { first: block.vectors.start, codes: self.codes(block) };
            let mut block_search = BlockSearch {
                graph: self,
                block,
                search,
                compared,
                budget,
                visited: Visited::default(),
                new: Vec::new(),
                near: Vec::new(),
            };
            let nearest = block_search.run()?;
            budget = block_search.budget;
            neighbours.extend(
                nearest.iter().map(|seen| (block.vectors.start + seen.vector() as usize, seen.nearness())),
            );
        }
        Some(neighbours)
    }
}

/// The search of one block: from its entry down the levels, then with a beam over the lowest.
struct BlockSearch<'a, B> {
    graph: &'a GraphReader<B>,
    block: &'a Block,
    search: &'a BeamSearch<'a>,
    compared: Compared<'a>,
    budget: usize,
    visited: Visited,
    /// Vectors compared in the current step; `near` is their nearness.
    new: Vec<u32>,
    near: Vec<f32>,
}

impl<B: Deref<Target = [u8]>> BlockSearch<'_, B> {
    fn run(&mut self) -> Option<Vec<Seen>> {
        let mut nearest = self.compare([self.block.entry])?.next()?;
        for level in self.block.levels.iter().skip(1).rev() {
            loop {
                let from = nearest;
                let list = self.graph.neighbours(level, from.vector());
                nearest = self.compare(list)?.fold(nearest, Seen::max);
                if nearest == from {
                    break;
                }
            }
        }
        self.visited.clear(self.block.vectors.len());
        self.visited.visit(nearest.vector());
        let lowest = &self.block.levels[0];
        match self.search.allows {
            None => self.nearest(lowest, nearest),
            Some(allows) => self.nearest_allowed(lowest, nearest, allows),
        }
    }

    /// Compares vectors with the query; `None` when the budget is exhausted.
    fn compare<I: IntoIterator<Item = u32>>(
        &mut self,
        vectors: I,
    ) -> Option<impl Iterator<Item = Seen> + use<'_, B, I>> {
        self.new.clear();
        self.new.extend(vectors);
        self.compare_new()
    }

    /// Compares those neighbours of some vectors that were not visited before; `None` when the budget is
    /// exhausted.
    fn step(&mut self, level: &Level, from: &[Seen]) -> Option<impl Iterator<Item = Seen> + use<'_, B>> {
        self.new.clear();
        let (graph, visited) = (self.graph, &mut self.visited);
        for from in from {
            self.new.extend(graph.neighbours(level, from.vector()).filter(|vector| visited.visit(*vector)));
        }
        self.compare_new()
    }

    fn compare_new(&mut self) -> Option<impl Iterator<Item = Seen> + use<'_, B>> {
        self.budget = self.budget.checked_sub(self.new.len())?;
        self.near.resize(self.new.len(), 0.0);
        (self.search.near)(&self.compared, &self.new, &mut self.near);
        Some(self.new.iter().zip(&self.near).map(|(vector, near)| Seen::new(*near, *vector)))
    }

    fn is_cancelled(&self, steps: usize) -> bool {
        steps.is_multiple_of(CANCEL_INTERVAL) && (self.search.cancelled)()
    }

    fn nearest(&mut self, level: &Level, start: Seen) -> Option<Vec<Seen>> {
        let mut beam = Beam::default();
        beam.clear(self.search.candidates);
        beam.offer(start);
        let mut from = Vec::with_capacity(EXPANDED);
        for steps in 1.. {
            from.clear();
            from.extend(iter::from_fn(|| beam.expand()).take(EXPANDED));
            if from.is_empty() || self.is_cancelled(steps) {
                break;
            }
            beam.ahead().take(EXPANDED).for_each(|next| self.graph.prefetch(level, next.vector()));
            self.step(level, &from)?.for_each(|seen| _ = beam.offer(seen));
        }
        Some(beam.into_best())
    }

    /// As [`BlockSearch::nearest`], over vectors that may not be found too.
    fn nearest_allowed(
        &mut self,
        level: &Level,
        start: Seen,
        allows: &dyn Fn(usize) -> bool,
    ) -> Option<Vec<Seen>> {
        let (first, candidates) = (self.block.vectors.start, self.search.candidates);
        let is_allowed = |seen: Seen| allows(first + seen.vector() as usize);
        let mut ahead = BinaryHeap::from([start]);
        // The worst of the best on top.
        let mut best: BinaryHeap<Reverse<Seen>> = BinaryHeap::with_capacity(candidates + 1);
        if is_allowed(start) {
            best.push(Reverse(start));
        }
        let mut from = Vec::with_capacity(EXPANDED);
        for steps in 1.. {
            from.clear();
            while from.len() < EXPANDED
                && let Some(next) = ahead.peek()
                && (best.len() < candidates || best.peek().is_some_and(|worst| *next >= worst.0))
            {
                from.extend(ahead.pop());
            }
            if from.is_empty() || self.is_cancelled(steps) {
                break;
            }
            if let Some(next) = ahead.peek() {
                self.graph.prefetch(level, next.vector());
            }
            for seen in self.step(level, &from)? {
                if best.len() >= candidates && best.peek().is_some_and(|worst| seen < worst.0) {
                    continue;
                }
                ahead.push(seen);
                if is_allowed(seen) {
                    best.push(Reverse(seen));
                    if best.len() > candidates {
                        best.pop();
                    }
                }
            }
        }
        Some(best.into_iter().map(|seen| seen.0).collect())
    }
}
