//! Walking a graph from its entry towards a query.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Deref;

use super::format::{Block, GraphReader};

/// A vector seen on the way; the nearer is the greater, equally near ones by number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    nearness: f32,
    vector: u32,
}

impl Eq for Seen {}

impl Ord for Seen {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nearness.total_cmp(&other.nearness).then(other.vector.cmp(&self.vector))
    }
}

impl PartialOrd for Seen {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A walk over all blocks, with what it may cost.
pub(crate) struct BeamSearch<'a> {
    /// Candidates to find in each block: the width of the beam.
    pub(crate) candidates: usize,
    /// Comparisons that it may take; one more and the walk is given up.
    pub(crate) budget: usize,
    /// Whether a vector may be found; others are only walked over.
    pub(crate) allows: &'a dyn Fn(usize) -> bool,
    /// Nearness of a vector to the query.
    pub(crate) nearness: &'a dyn Fn(usize) -> f32,
    /// Whether to stop.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

impl<B: Deref<Target = [u8]>> GraphReader<B> {
    /// The nearest vectors with their nearness, in no particular order; `None` when the budget did not last.
    pub(crate) fn walk(&self, walk: &mut BeamSearch<'_>) -> Option<Vec<(usize, f32)>> {
        let mut found = Vec::new();
        for block in &self.blocks {
            let nearest = self.walk_block(block, walk)?;
            found.extend(
                nearest.into_iter().map(|seen| (block.vectors.start + seen.vector as usize, seen.nearness)),
            );
        }
        Some(found)
    }

    fn walk_block(&self, block: &Block, walk: &mut BeamSearch<'_>) -> Option<Vec<Seen>> {
        let first = block.vectors.start;
        let (nearness, allows) = (walk.nearness, walk.allows);
        let mut budget = walk.budget;
        let mut look = |vector: u32| -> Option<Seen> {
            budget = budget.checked_sub(1)?;
            Some(Seen { nearness: nearness(first + vector as usize), vector })
        };
        let mut nearest = look(block.entry)?;
        for level in block.levels.iter().skip(1).rev() {
            loop {
                let from = nearest;
                for vector in self.neighbours(level, from.vector) {
                    nearest = nearest.max(look(vector)?);
                }
                if nearest == from {
                    break;
                }
            }
        }
        let mut visited = vec![0_u64; block.vectors.len().div_ceil(64)];
        let mut visit = |vector: u32| {
            let (word, bit) = (vector as usize / 64, 1 << (vector % 64));
            let new = visited[word] & bit == 0;
            visited[word] |= bit;
            new
        };
        visit(nearest.vector);
        let mut ahead = BinaryHeap::from([nearest]);
        // The worst of the best on top.
        let mut best: BinaryHeap<Reverse<Seen>> = BinaryHeap::with_capacity(walk.candidates + 1);
        if allows(first + nearest.vector as usize) {
            best.push(Reverse(nearest));
        }
        let mut steps = 0_usize;
        while let Some(from) = ahead.pop() {
            let full = best.len() >= walk.candidates;
            if full && best.peek().is_none_or(|worst| from < worst.0) {
                break;
            }
            steps += 1;
            if steps.is_multiple_of(256) && (walk.cancelled)() {
                break;
            }
            for vector in self.neighbours(&block.levels[0], from.vector) {
                if !visit(vector) {
                    continue;
                }
                let seen = look(vector)?;
                if best.len() >= walk.candidates && best.peek().is_some_and(|worst| seen < worst.0) {
                    continue;
                }
                ahead.push(seen);
                if allows(first + vector as usize) {
                    best.push(Reverse(seen));
                    if best.len() > walk.candidates {
                        best.pop();
                    }
                }
            }
        }
        walk.budget = budget;
        Some(best.into_iter().map(|seen| seen.0).collect())
    }
}
