//! Finds the documents of a segment whose text score may be high enough, one window at a time.
//!
//! The clauses that lead to documents (see [`DocumentAtATime`](crate::query::search::document_at_a_time::DocumentAtATime))
//! are added up in an array, one posting list after the other, which costs a fraction of moving from document
//! to document. The sums equal the scores up to rounding; callers that want a document ask for its exact
//! score.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Scorer;
use tantivy::{DocId, DocSet};

use sparrow_scoring::scored::Bm25;

/// Number of documents in a window; their sums fit in the first-level cache.
pub(crate) const WINDOW: u32 = 4096;

/// Score that stands for zero, so that documents matched by clauses without a score can be told from others.
const TRACE: f32 = 1e-30;

/// Source of a clause's scores in a segment.
pub(crate) enum Source {
    /// Postings of a term, with its BM25 parameters.
    Term(Box<TermSource>),
    /// A clause that gives every document the same score.
    Constant { scorer: Box<dyn Scorer>, score: f32 },
    /// A clause that matches no document of the segment.
    None,
}

/// The postings of one term, from a position on.
pub(crate) struct TermSource {
    postings: BlockSegmentPostings,
    /// Offset of the next posting in the current block.
    next: usize,
    lengths: FieldNormReader,
    /// For each coded field length, the norm that term frequencies are weighed against.
    norms: [f32; 256],
    weight: f32,
}

impl TermSource {
    pub(crate) fn new(
        postings: BlockSegmentPostings,
        lengths: FieldNormReader,
        bm25: &Bm25,
        boost: f32,
    ) -> Self {
        let norms = std::array::from_fn(|id| bm25.norm(FieldNormReader::id_to_fieldnorm(id as u8) as f32));
        Self { postings, next: 0, lengths, norms, weight: (bm25.weight() * boost).max(TRACE) }
    }

    /// Adds the scores of the documents in the window that begins at `start` and is as long as `sums`.
    fn add(&mut self, start: DocId, sums: &mut [f32]) {
        let end = start + sums.len() as u32;
        loop {
            let docs = self.postings.docs();
            let Some(rest) = docs.get(self.next..).filter(|rest| !rest.is_empty()) else { return };
            // What was passed over while other clauses led.
            let from = self.next + if rest[0] < start { rest.partition_point(|doc| *doc < start) } else { 0 };
            let to = from + docs[from..].partition_point(|doc| *doc < end);
            let mut score = |doc: DocId, frequency: u32| {
                let norm = self.norms[usize::from(self.lengths.fieldnorm_id(doc))];
                let frequency = frequency as f32;
                sums[(doc - start) as usize] += self.weight * (frequency / (frequency + norm));
            };
            match self.postings.freqs() {
                // Fields that are one term each count it once.
                [] => docs[from..to].iter().for_each(|doc| score(*doc, 1)),
                counts => {
                    docs[from..to].iter().zip(&counts[from..to]).for_each(|(doc, count)| score(*doc, *count))
                }
            }
            if to < docs.len() {
                self.next = to;
                return;
            }
            self.postings.advance();
            self.next = 0;
        }
    }
}

impl Source {
    /// Adds the scores of the documents in the window that begins at `start`. Windows must ascend.
    pub(crate) fn add(&mut self, start: DocId, sums: &mut [f32]) {
        match self {
            Self::Term(term) => term.add(start, sums),
            Self::Constant { scorer, score } => {
                let mut doc = if scorer.doc() < start { scorer.seek(start) } else { scorer.doc() };
                while let Some(sum) = sums.get_mut(doc.wrapping_sub(start) as usize) {
                    *sum += score.max(TRACE);
                    doc = scorer.advance();
                }
            }
            Self::None => {}
        }
    }
}
