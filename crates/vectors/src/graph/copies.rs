//! Finds vectors that are equal to earlier ones.
//!
//! Equal vectors are each other's nearest neighbours. If they were linked as others are, lists of neighbours
//! would fill up with them, and a walk that comes to more of them than a list holds would not get away again.
//! So only the first of them takes part in a graph, and leads to its copies.

use std::collections::HashMap;

use super::packed::Packed;

/// Vectors of a graph that are equal to an earlier one, as far as comparisons can tell.
pub(super) struct Copies {
    /// For each vector, the first that is equal to it: itself unless it is a copy.
    first: Vec<u32>,
}

impl Copies {
    pub(super) fn among(vectors: &Packed) -> Self {
        let count = vectors.len() as u32;
        let mut known = HashMap::with_capacity(vectors.len());
        let first = (0..count).map(|vector| *known.entry(vectors.seen(vector)).or_insert(vector));
        Self { first: first.collect() }
    }

    /// Whether a vector is equal to an earlier one.
    pub(super) fn contains(&self, vector: u32) -> bool {
        self.first[vector as usize] != vector
    }

    /// The vectors that have copies, each with its copies in ascending order, of which there is at least one.
    pub(super) fn groups(&self) -> impl Iterator<Item = (u32, Vec<u32>)> {
        let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
        for (copy, first) in (0..).zip(&self.first) {
            if copy != *first {
                groups.entry(*first).or_default().push(copy);
            }
        }
        groups.into_iter()
    }
}
