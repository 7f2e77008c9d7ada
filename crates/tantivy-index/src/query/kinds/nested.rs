//! `nested`: the objects of a nested field are searched as the documents of a view ([`Snapshot::inside`]), and what is found stands
//! for the object or document around each.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::index::SegmentId;
use tantivy::query::{EmptyScorer, Explanation, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError};

use super::Meaning;
use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use crate::query::highlight::WantedWords;
use crate::snapshot::Snapshot;
use sparrow_mapping::FieldType;
use sparrow_query::{NestedQuery, NestedScore};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::stoppable::stops_after;
use sparrow_scoring::weights;
use sparrow_segments::doc_bits::{DocBits, next_in};
use sparrow_segments::nested::Blocks;
use sparrow_segments::segment_docs::SegmentDocs;

/// The view that a clause searches; `None` if there is nothing to be found.
///
/// # Errors
/// When the path is not that of a nested field.
pub(crate) fn view(query: &NestedQuery, snapshot: &Snapshot) -> Result<Option<Arc<Snapshot>>, QueryError> {
    let path = &query.path;
    match snapshot.mapping().field(path) {
        Some(FieldType::Object { nested: true, .. }) => {}
        None if query.ignore_unmapped => return Ok(None),
        other => return Err(QueryError::NestedPath { path: path.clone(), mapped: other.is_some() }),
    }
    Ok(Some(snapshot.inside(path)))
}

impl Compiler<'_> {
    /// Checks that what restricts the objects of a view may ask for objects of the nested field at `path`: only for those inside them.
    pub(super) fn check_spreads_to(&self, path: &str, clause: &str) -> Result<(), QueryError> {
        let scope = self.snapshot.scope();
        if !self.spreads || self.snapshot.mapping().is_nested_inside(scope, path) {
            return Ok(());
        }
        let scope = scope.unwrap_or_default();
        let reason = format!(
            "[{clause}] on [{path}] in the filter of [knn] on objects of [{scope}] is not supported by this server"
        );
        Err(QueryError::Invalid { reason })
    }
}

impl Meaning for NestedQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.count_clause()?;
        let snapshot = compiler.snapshot;
        let Some(view) = view(self, snapshot)? else { return Ok(weights::none()) };
        let scoring = scoring && self.score_mode != NestedScore::None;
        let mut inside = compiler.inside(&view);
        let inner = inside.compile(&self.query, scoring)?;
        compiler.continue_after(&inside);
        let readers = (0..).zip(snapshot.searcher().segment_readers());
        let segments =
            readers.filter_map(|(ord, reader)| Some((reader.segment_id(), snapshot.blocks(&view, ord)?)));
        let mode = if scoring { self.score_mode } else { NestedScore::None };
        Ok(Box::new(NestedWeight { inner, mode, segments: segments.collect() }))
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        compiler.count_clause()?;
        let snapshot = compiler.snapshot;
        let is_own = compiler.spreads && snapshot.scope() == Some(&self.path);
        if !is_own {
            compiler.check_spreads_to(&self.path, "nested")?;
        }
        // What restricts the objects that are searched may ask of their documents that they have another object.
        let inner = if is_own { None } else { view(self, snapshot)? };
        let Some(view) = inner.as_deref().or(is_own.then_some(snapshot)) else {
            return Ok(Some(compiler.every(SegmentDocs::None)));
        };
        let mut inside = compiler.inside(view);
        let found = inside.matching_docs(&self.query)?;
        compiler.continue_after(&inside);
        let mut all = Vec::with_capacity(found.len());
        for (ord, found) in found.iter().enumerate() {
            compiler.check_cancelled()?;
            let mut bits = DocBits::empty(snapshot.searcher().segment_reader(ord as u32).max_doc());
            let segment = &snapshot.segments()[ord];
            let documents =
                if is_own { snapshot.documents_around(segment) } else { snapshot.documents(segment) };
            if let Some(documents) = documents {
                let objects: Vec<u64> = view.live_words_from(ord, found, 0).collect();
                let mut object = next_in(&objects, 0);
                while object != TERMINATED {
                    let document = next_in(documents, object);
                    if document == TERMINATED {
                        break;
                    }
                    bits.insert(document);
                    object = next_in(&objects, document);
                }
            }
            let mut docs = SegmentDocs::of(Arc::new(bits));
            if is_own {
                compiler.spread(ord, &mut docs);
            }
            all.push(docs);
        }
        Ok(Some(all))
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.of(&self.query)
    }
}

struct NestedWeight {
    inner: Box<dyn Weight>,
    mode: NestedScore,
    segments: FxHashMap<SegmentId, Blocks>,
}

impl Weight for NestedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(blocks) = self.segments.get(&reader.segment_id()) else {
            return Ok(Box::new(EmptyScorer));
        };
        let mut scorer = NestedScorer {
            inner: self.inner.scorer(reader, boost)?,
            mode: self.mode,
            blocks: blocks.clone(),
            document: 0,
            found: None,
        };
        scorer.settle();
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let score = weights::explain(self.scorer(reader, 1.0), doc, "")?.value();
        let Some(blocks) = self.segments.get(&reader.segment_id()) else {
            return Err(TantivyError::InvalidArgument(format!("Document #({doc}) does not match")));
        };
        let first = blocks.first_in(doc);
        let mut inner = self.inner.scorer(reader, 1.0)?;
        let mut object = if inner.doc() < first { inner.seek(first) } else { inner.doc() };
        let (mut count, mut best) = (0, None);
        while object < doc {
            if blocks.has_object(object) {
                count += 1;
                let score = inner.score();
                if best.is_none_or(|(least, _)| score > least) {
                    best = Some((score, object));
                }
            }
            object = inner.advance();
        }
        let mut explanation = Explanation::new_with_string(
            format!(
                "Score based on {count} child docs in range from {first} to {}, using score mode {}",
                doc.saturating_sub(1),
                self.mode.lucene_name()
            ),
            score,
        );
        if let Some((_, object)) = best {
            explanation.add_detail(self.inner.explain(reader, object)?);
        }
        Ok(explanation)
    }
}

/// A scorer over the documents that have an object which the inner scorer matches.
struct NestedScorer {
    /// At the first object of the current document that matches, or behind its last one once they have been scored.
    inner: Box<dyn Scorer>,
    mode: NestedScore,
    blocks: Blocks,
    document: DocId,
    /// Score of the current document, once computed.
    found: Option<Score>,
}

impl NestedScorer {
    /// Moves to the document of the first object from the inner scorer's on.
    fn settle(&mut self) -> DocId {
        self.found = None;
        let mut object = self.inner.doc();
        while object != TERMINATED && !self.blocks.has_object(object) {
            if stops_after(1) {
                object = TERMINATED;
                break;
            }
            let next = self.blocks.next_object(object);
            object = if next == TERMINATED { TERMINATED } else { self.inner.seek(next) };
        }
        self.document = self.blocks.document_around(object);
        self.document
    }
}

impl DocSet for NestedScorer {
    fn advance(&mut self) -> DocId {
        if self.document != TERMINATED {
            if self.inner.doc() < self.document {
                self.inner.seek(self.document);
            }
            self.settle();
        }
        self.document
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target <= self.document {
            return self.document;
        }
        if target >= TERMINATED {
            self.document = TERMINATED;
            return TERMINATED;
        }
        let first = self.blocks.first_in(target);
        if self.inner.doc() < first {
            self.inner.seek(first);
        }
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.document
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }
}

impl Scorer for NestedScorer {
    fn score(&mut self) -> Score {
        if let Some(found) = self.found {
            return found;
        }
        let (mut count, mut sum) = (0u32, 0.0f64);
        let (mut best, mut worst) = (Score::NEG_INFINITY, Score::INFINITY);
        if self.mode != NestedScore::None && self.document != TERMINATED {
            let mut object = self.inner.doc();
            while object < self.document && !stops_after(1) {
                if self.blocks.has_object(object) {
                    let score = self.inner.score();
                    count += 1;
                    sum += f64::from(score);
                    best = best.max(score);
                    worst = worst.min(score);
                }
                object = self.inner.advance();
            }
        }
        let score = match self.mode {
            _ if count == 0 => 0.0,
            NestedScore::Avg => (sum / f64::from(count)) as Score,
            NestedScore::Sum => sum as Score,
            NestedScore::Max => best,
            NestedScore::Min => worst,
            NestedScore::None => 0.0,
        };
        *self.found.insert(score)
    }
}
