//! Documents of a segment whose text score may be high enough, found a window at a time.
//!
//! The clauses that lead to documents (see [`DocumentAtATime`](super::document_at_a_time::DocumentAtATime)) are added up in an array, a posting
//! list after the other, which costs a fraction of moving from document to document. What is found there is
//! within rounding of the score; whoever wants the document asks for its score proper.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Scorer;
use tantivy::{DocId, DocSet};

use super::scored::Bm25;

/// Documents of a window: their sums stay in the first level cache.
pub(super) const WINDOW: u32 = 4096;

/// Clauses that score nothing leave a trace of the documents that they match.
const TRACE: f32 = 1e-30;

/// Where the scores of a clause come from.
pub(super) enum Source {
    /// Postings of a term, and what they score.
    Term(Box<TermSource>),
    /// One score for all documents.
    Constant { scorer: Box<dyn Scorer>, score: f32 },
    /// No document.
    None,
}

/// The postings of one term from a place on.
pub(super) struct TermSource {
    postings: BlockSegmentPostings,
    /// In the block.
    next: usize,
    lengths: FieldNormReader,
    /// What frequencies are compared with, by the length of the field.
    norms: [f32; 256],
    weight: f32,
}

impl TermSource {
    pub(super) fn new(
        postings: BlockSegmentPostings,
        lengths: FieldNormReader,
        bm25: &Bm25,
        boost: f32,
    ) -> Self {
        let norms = std::array::from_fn(|id| bm25.norm(FieldNormReader::id_to_fieldnorm(id as u8) as f32));
        Self { postings, next: 0, lengths, norms, weight: (bm25.weight() * boost).max(TRACE) }
    }

    /// Adds the scores of the documents below the end of the window that starts with `start`.
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
    /// Adds the scores of a window's documents, of which `start` is the first. Windows must ascend.
    pub(super) fn add(&mut self, start: DocId, sums: &mut [f32]) {
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
