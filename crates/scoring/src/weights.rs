//! Small tantivy weights that clauses are composed of.

use tantivy::query::{AllWeight, ConstScorer, EmptyWeight, Explanation, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::error;
use sparrow_runtime::work;
use sparrow_segments::doc_bits::{BitsScorer, DocBits};

/// A weight that matches no document.
pub fn none() -> Box<dyn Weight> {
    Box::new(EmptyWeight)
}

/// A weight that matches every document, with the same score.
pub fn all(score: Score, scoring: bool) -> Box<dyn Weight> {
    constant(Box::new(AllWeight), score, scoring)
}

/// A weight for the documents of `inner` that gives each the same score. `inner` must have been made without
/// scoring.
pub fn constant(inner: Box<dyn Weight>, score: Score, scoring: bool) -> Box<dyn Weight> {
    if scoring { Box::new(ConstWeight { inner, score }) } else { inner }
}

/// A weight for the documents of `inner` that adds nothing to the score. `inner` must have been made without
/// scoring.
pub fn filter(inner: Box<dyn Weight>, scoring: bool) -> Box<dyn Weight> {
    constant(inner, 0.0, scoring)
}

/// A weight for the documents that `docs` finds in a segment, each with score 1.
pub fn bits<F>(docs: F) -> Box<dyn Weight>
where
    F: Fn(&SegmentReader) -> tantivy::Result<DocBits> + Send + Sync + 'static,
{
    Box::new(BitsWeight { docs })
}

/// Fails if there is no room for one more set of documents of a segment: all clauses of a query may have theirs at once.
pub fn room_for_docs(reader: &SegmentReader) -> tantivy::Result<()> {
    work::room_for(reader.max_doc() as usize / 8).map_err(|_| error::stopped())
}

/// An empty set of documents of a segment.
///
/// # Errors
/// As [`room_for_docs`].
pub fn empty_docs(reader: &SegmentReader) -> tantivy::Result<DocBits> {
    room_for_docs(reader)?;
    Ok(DocBits::empty(reader.max_doc()))
}

/// The explanation of a weight whose score has no parts.
pub fn explain(
    scorer: tantivy::Result<Box<dyn Scorer>>,
    doc: DocId,
    description: &'static str,
) -> tantivy::Result<Explanation> {
    let mut scorer = scorer?;
    if scorer.doc() > doc || scorer.seek(doc) != doc {
        return Err(tantivy::TantivyError::InvalidArgument(format!("Document #({doc}) does not match")));
    }
    Ok(Explanation::new(description, scorer.score()))
}

/// A weight that explains only what it matches. tantivy's boolean weight moves its scorer to a document that this may have passed
/// already, and then takes documents for matching that a clause excludes.
pub fn explained_if_matching(inner: Box<dyn Weight>) -> Box<dyn Weight> {
    Box::new(ExplainedIfMatching(inner))
}

struct ExplainedIfMatching(Box<dyn Weight>);

impl Weight for ExplainedIfMatching {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.0.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        explain(self.scorer(reader, 1.0), doc, "")?;
        self.0.explain(reader, doc)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.0.count(reader)
    }
}

struct ConstWeight {
    inner: Box<dyn Weight>,
    score: Score,
}

impl Weight for ConstWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.inner.scorer(reader, 1.0)?;
        Ok(Box::new(ConstScorer::new(inner, self.score * boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        if self.score != 0.0 {
            return explain(self.scorer(reader, 1.0), doc, "ConstantScore");
        }
        let inner = self.inner.explain(reader, doc)?;
        let mut filter = Explanation::new("match on required clause, product of:", 0.0);
        filter.add_const("# clause", 0.0);
        filter.add_detail(inner);
        Ok(filter)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.inner.count(reader)
    }
}

struct BitsWeight<F> {
    docs: F,
}

impl<F> Weight for BitsWeight<F>
where
    F: Fn(&SegmentReader) -> tantivy::Result<DocBits> + Send + Sync + 'static,
{
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(BitsScorer::new((self.docs)(reader)?, boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        explain(self.scorer(reader, 1.0), doc, "ConstantScore")
    }
}

/// A scorer over documents and scores that are already known, ascending by document.
pub struct ListScorer {
    docs: Vec<(DocId, Score)>,
    position: usize,
    boost: Score,
}

impl ListScorer {
    /// A scorer at the first document; `docs` must ascend.
    pub fn new(docs: Vec<(DocId, Score)>, boost: Score) -> Self {
        debug_assert!(docs.is_sorted_by(|a, b| a.0 < b.0));
        Self { docs, position: 0, boost }
    }
}

impl DocSet for ListScorer {
    fn advance(&mut self) -> DocId {
        self.position += 1;
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let rest = self.docs.get(self.position..).unwrap_or_default();
        self.position += rest.partition_point(|&(doc, _)| doc < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.docs.get(self.position).map_or(TERMINATED, |&(doc, _)| doc)
    }

    fn size_hint(&self) -> u32 {
        self.docs.len() as u32
    }
}

impl Scorer for ListScorer {
    fn score(&mut self) -> Score {
        // A product that is too large for a float is no score.
        (self.docs[self.position].1 * self.boost).min(Score::MAX)
    }
}
