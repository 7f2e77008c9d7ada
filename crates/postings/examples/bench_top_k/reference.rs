//! What Sparrow is compared with: a plain term-at-a-time loop, and exact scores of all documents.

use sparrow_postings::stored_weight;

use crate::corpus::{Rows, VOCABULARY};

/// Documents and scores, best first.
pub type Hits = Vec<(u32, f32)>;

/// Postings of every term, as a plain inverted file of f32 weights.
pub struct Lists {
    ptr: Vec<usize>,
    docs: Vec<u32>,
    weights: Vec<f32>,
    scores: Vec<f32>,
}

impl Lists {
    pub fn new(rows: &Rows) -> Self {
        let mut ptr = vec![0; VOCABULARY + 1];
        (0..rows.len()).for_each(|row| rows.row(row).for_each(|(term, _)| ptr[term as usize + 1] += 1));
        (0..VOCABULARY).for_each(|term| ptr[term + 1] += ptr[term]);
        let mut next = ptr.clone();
        let (mut docs, mut weights) = (vec![0; rows.count()], vec![0.0; rows.count()]);
        for row in 0..rows.len() {
            for (term, weight) in rows.row(row) {
                let at = &mut next[term as usize];
                (docs[*at], weights[*at]) = (row as u32, weight);
                *at += 1;
            }
        }
        Self { ptr, docs, weights, scores: vec![0.0; rows.len()] }
    }

    /// Number of postings of the query's terms.
    pub fn touched(&self, query: &[(u32, f32)]) -> usize {
        query.iter().map(|(term, _)| self.ptr[*term as usize + 1] - self.ptr[*term as usize]).sum()
    }

    /// Searches as a simple competitor would: adds scores into an array, one term at a time, then selects the
    /// best ten.
    pub fn top_ten(&mut self, query: &[(u32, f32)]) -> Hits {
        self.scores.fill(0.0);
        for (term, weight) in query {
            let range = self.ptr[*term as usize]..self.ptr[*term as usize + 1];
            for (doc, stored) in self.docs[range.clone()].iter().zip(&self.weights[range]) {
                self.scores[*doc as usize] += weight * stored;
            }
        }
        best(&self.scores, 10, |_| true)
    }

    /// Exact scores of every document for the weights that Sparrow stores, summed in query order.
    pub fn stored_scores(&mut self, query: &[(u32, f32)]) -> &[f32] {
        self.scores.fill(0.0);
        for (term, weight) in query {
            for at in self.ptr[*term as usize]..self.ptr[*term as usize + 1] {
                self.scores[self.docs[at] as usize] +=
                    weight * stored_weight(self.weights[at]).unwrap_or(0.0);
            }
        }
        &self.scores
    }
}

/// The best `k` documents that are `wanted` and have a score, ties by document number.
pub fn best(scores: &[f32], k: usize, wanted: impl Fn(u32) -> bool) -> Hits {
    let mut hits: Hits = Vec::with_capacity(k + 1);
    let mut floor = 0.0;
    for (doc, score) in scores.iter().enumerate() {
        if *score > floor && wanted(doc as u32) {
            let at = hits.partition_point(|hit| hit.1 >= *score);
            hits.insert(at, (doc as u32, *score));
            hits.truncate(k);
            if hits.len() == k {
                floor = hits[k - 1].1;
            }
        }
    }
    hits
}
