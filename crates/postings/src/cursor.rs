//! Matching documents one by one, for a sparse clause inside a boolean query.

use std::ops::Deref;

use sparrow_runtime::{DocId, TermId};

use crate::reader::PostingsReader;

/// Document returned by an exhausted cursor; the same value as in tantivy.
pub const TERMINATED: DocId = i32::MAX as u32;

/// Documents per window: its scores and match bits stay in the first level cache.
const WINDOW: u32 = 2048;

/// Walks the documents that share a term with the query, ascending. Owns what it reads.
///
/// Works a window of documents at a time. Which documents match is known for the whole window;
/// their scores are computed for the whole window once several were asked for, and one by one
/// before that, as after a far `seek` in a conjunction.
pub struct SparseCursor<B> {
    reader: PostingsReader<B>,
    query: Vec<(TermId, f32)>,
    doc: DocId,
    window: DocId,
    matches: Vec<u64>,
    scores: Vec<f32>,
    scored: bool,
    asked: u32,
}

impl<B> SparseCursor<B>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    /// A cursor over documents that share a term with the query, on the first of them. The query's weights may be negative.
    pub fn new(reader: &PostingsReader<B>, query: &[(TermId, f32)]) -> Self {
        let query = query.iter().copied().filter(|(term, _)| *term < reader.term_count()).collect();
        let mut cursor = Self {
            reader: reader.clone(),
            query,
            doc: 0,
            window: 0,
            matches: vec![0; (WINDOW / 64) as usize],
            scores: Vec::new(),
            scored: false,
            asked: 0,
        };
        cursor.load(0);
        cursor.doc = cursor.next_from(0);
        cursor
    }

    /// Current document, [`TERMINATED`] at the end. A fresh cursor stands on its first document.
    pub fn doc(&self) -> DocId {
        self.doc
    }

    /// Moves to the next document; at the end it stays there.
    pub fn advance(&mut self) -> DocId {
        if self.doc != TERMINATED {
            self.doc = self.next_from(self.doc + 1);
        }
        self.doc
    }

    /// Moves to the first document at or after `target`; never moves back.
    pub fn seek(&mut self, target: DocId) -> DocId {
        if target > self.doc {
            self.doc = self.next_from(target);
        }
        self.doc
    }

    /// Score of the current document: the dot product, summed in query order. 0 at the end.
    pub fn score(&mut self) -> f32 {
        if self.doc == TERMINATED {
            return 0.0;
        }
        self.asked += 1;
        if !self.scored && self.asked <= 16 {
            let mut score = 0.0;
            for (term, weight) in &self.query {
                if let Some(stored) = self.reader.stored_weight(*term, self.doc) {
                    score += weight * stored;
                }
            }
            return score;
        }
        if !self.scored {
            self.score_window();
        }
        self.scores[(self.doc - self.window) as usize]
    }

    /// Upper bound of the number of matching documents: the number of postings of the query's terms, at most all
    /// documents.
    pub fn size_hint(&self) -> u32 {
        let postings: u64 = self.query.iter().map(|(term, _)| u64::from(self.reader.doc_freq(*term))).sum();
        postings.min(u64::from(self.reader.num_docs())) as u32
    }

    fn next_from(&mut self, target: DocId) -> DocId {
        let mut target = target;
        loop {
            if target >= self.reader.num_docs() || self.query.is_empty() {
                return TERMINATED;
            }
            if target / WINDOW * WINDOW != self.window {
                self.load(target / WINDOW * WINDOW);
            }
            let offset = (target - self.window) as usize;
            let mut bits = self.matches[offset / 64] & (u64::MAX << (offset % 64));
            let mut word = offset / 64;
            while bits == 0 {
                word += 1;
                match self.matches.get(word) {
                    Some(next) => bits = *next,
                    None => break,
                }
            }
            if bits != 0 {
                let doc = self.window + word as u32 * 64 + bits.trailing_zeros();
                // Damaged postings may name documents that the segment does not have.
                return if doc < self.reader.num_docs() { doc } else { TERMINATED };
            }
            target = self.window + WINDOW;
        }
    }

    fn load(&mut self, window: DocId) {
        self.window = window;
        self.scored = false;
        self.asked = 0;
        self.matches.fill(0);
        let end = (window + WINDOW).min(self.reader.num_docs());
        for (term, _) in &self.query {
            self.reader.postings(*term).mark_range(window, end, &mut self.matches);
        }
    }

    fn score_window(&mut self) {
        self.scores.clear();
        self.scores.resize(WINDOW as usize, 0.0);
        let end = (self.window + WINDOW).min(self.reader.num_docs());
        for (term, weight) in &self.query {
            let postings = self.reader.postings(*term);
            postings.for_range(self.window, end, |doc, position| {
                if let Some(score) = self.scores.get_mut((doc - self.window) as usize) {
                    *score += weight * postings.weight_at(position);
                }
            });
        }
        self.scored = true;
    }
}
