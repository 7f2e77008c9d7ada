//! Clauses over the passages of `semantic_text` fields: a document scores as its best passage does.
//!
//! Postings and vectors of such a field are numbered by passage (see
//! [`sparrow_segments::plugins::PassageMap`]), so that the pruned search of the postings and the graphs of
//! the vectors work on them unchanged. Their results are mapped back to documents here: the best passages
//! come first, so the first of each document is its best one; if they belong to fewer documents than wanted,
//! more passages are asked for.

use std::hash::Hash;

use rustc_hash::FxHashSet;
use tantivy::directory::OwnedBytes;
use tantivy::query::{Scorer, Weight};
use tantivy::{DocId, DocSet, TERMINATED};

use crate::query::compile::Compiler;
use crate::query::kinds::{Meaning, no_words};
use sparrow_mapping::{FieldType, Mapping, SemanticText};
use sparrow_postings::{SharedThreshold, SparseCursor, TopK, TopKRequest};
use sparrow_query::{
    BoolQuery, KnnQuery, Pruning, Query, QueryKind, SemanticQuery, SparseOrigin, SparseQuery, VectorKind,
};
use sparrow_runtime::{Executors, Score};
use sparrow_scoring::error::QueryError;
use sparrow_segments::plugins::{PassageMap, SparseReader};

/// Factor on the score of dense vectors, relative to that of sparse ones, where one clause searches both; of the embedded model, and of
/// others times their own ([`SemanticQuery::dense_factor`]).
/// docs/hybrid-search.md says how it was chosen.
pub const DENSE_SHARE: f32 = 80.0;

/// Lowest number of documents whose dense scores are combined with sparse ones: documents beyond those found
/// seem less similar than they are.
const HYBRID_DEPTH: usize = 100;

/// Factor by which the number of passages grows when those found belong to too few documents.
const GROWTH: usize = 4;

/// The clause to run in place of a `semantic` one under a mapping.
///
/// # Errors
/// When the field is of another type, or its text was not encoded by the field's model.
pub fn answering(query: &SemanticQuery, mapping: &Mapping) -> Result<QueryKind, QueryError> {
    let (name, field) = match (mapping.field(&query.field), &query.otherwise) {
        (Some(FieldType::SemanticText(_)), _) => match slot(query, mapping) {
            Some(found) => found,
            // Dropped meanwhile.
            None => return Ok(QueryKind::MatchNone),
        },
        (_, Some(otherwise)) => return Ok((**otherwise).clone()),
        (None, None) => return Ok(QueryKind::MatchNone),
        (Some(other), None) => {
            let copies = mapping.copies();
            let filled = |name: &&String| copies.sources_of(mapping, name).contains(&query.field);
            return Err(QueryError::NotSemantic {
                field: query.field.clone(),
                actual: other.name(),
                instead: mapping.semantic_fields().iter().find(filled).cloned(),
            });
        }
    };
    if field.model.is_none() {
        // No document has a value.
        return Ok(QueryKind::MatchNone);
    }
    let Some((_, vector)) = query.vectors.iter().find(|(id, _)| id == field.search_id()) else {
        return Err(QueryError::NotEncoded { model_id: field.search_id().to_owned() });
    };
    let sparse = vector.sparse().filter(|_| query.part != Some(VectorKind::Dense)).map(|tokens| {
        QueryKind::Sparse(SparseQuery {
            field: name.clone(),
            tokens: tokens.to_vec(),
            pruning: Pruning::ByField(None),
            origin: SparseOrigin::SparseVector,
        })
    });
    // A text without a word is near nothing: its dense vector is empty.
    let dense = vector.dense().filter(|vector| query.part != Some(VectorKind::Sparse) && !vector.is_empty());
    let k = if sparse.is_some() { query.k.max(HYBRID_DEPTH) } else { query.k };
    let dense = dense.map(|vector| {
        QueryKind::Knn(KnnQuery {
            field: name.clone(),
            vector: vector.to_vec(),
            k,
            num_candidates: query.num_candidates.max(k),
            oversample: None,
            filter: query.filter.clone(),
            similarity: None,
            default_k: None,
            inner_hits: None,
        })
    });
    Ok(match (sparse, dense) {
        (Some(sparse), Some(dense)) => {
            let dense =
                Query { boost: DENSE_SHARE * query.dense_factor(field.search_id()), ..Query::from(dense) };
            QueryKind::Bool(BoolQuery { should: vec![sparse.into(), dense], ..BoolQuery::default() })
        }
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => QueryKind::MatchNone,
    })
}

/// Name and settings of the slot in which a clause searches.
fn slot<'q>(query: &'q SemanticQuery, mapping: &'q Mapping) -> Option<(String, &'q SemanticText)> {
    if let Some(name) = &query.slot {
        return Some((name.clone(), mapping.slot(name)?));
    }
    let (name, field) = mapping.searched_slot(&query.field)?;
    let is_encoded = |field: &SemanticText| query.vectors.iter().any(|(id, _)| id == field.search_id());
    // The model may have been changed since the text was encoded: what the text was encoded for is still there.
    if !is_encoded(field)
        && let Some(beside) = mapping.slot_beside(&query.field)
        && let Some(field) = mapping.slot(&beside).filter(|field| is_encoded(field))
    {
        return Some((beside, field));
    }
    Some((name.into_owned(), field))
}

/// The query with those `semantic` clauses bound to the mapping that the pruned sparse search can use; `None`
/// if there are none. The others are bound when they are compiled.
pub(crate) fn bound(query: &Query, mapping: &Mapping) -> Result<Option<Query>, QueryError> {
    let kind = match &query.kind {
        QueryKind::Semantic(clause) => answering(clause, mapping)?,
        QueryKind::Bool(tree) => {
            let all = |clauses: &[Query]| -> Result<Option<Vec<Query>>, QueryError> {
                let new: Vec<Option<Query>> =
                    clauses.iter().map(|clause| bound(clause, mapping)).collect::<Result<_, _>>()?;
                if new.iter().all(Option::is_none) {
                    return Ok(None);
                }
                let pairs = new.into_iter().zip(clauses);
                Ok(Some(pairs.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect()))
            };
            let (must, should) = (all(&tree.must)?, all(&tree.should)?);
            if must.is_none() && should.is_none() {
                return Ok(None);
            }
            QueryKind::Bool(BoolQuery {
                must: must.unwrap_or_else(|| tree.must.clone()),
                should: should.unwrap_or_else(|| tree.should.clone()),
                ..tree.clone()
            })
        }
        _ => return Ok(None),
    };
    Ok(Some(Query { kind, ..query.clone() }))
}

/// Finds the best passage of each of at least `wanted` documents: asks for more passages as long as those found belong to too few
/// documents, up to `all`. What holds of passages holds of the objects of nested fields too.
///
/// # Errors
/// When `find` fails. It returns at most the given number of passages, best first.
pub(crate) fn best_of_each<P, D: Eq + Hash, E>(
    all: usize,
    wanted: usize,
    document: impl Fn(&P) -> D,
    mut find: impl FnMut(usize) -> Result<Vec<P>, E>,
) -> Result<Vec<P>, E> {
    let mut depth = wanted.min(all);
    loop {
        let mut passages = find(depth)?;
        let complete = passages.len() < depth || depth == all;
        let mut seen = FxHashSet::default();
        passages.retain(|passage| seen.insert(document(passage)));
        if complete || passages.len() >= wanted {
            passages.truncate(wanted);
            return Ok(passages);
        }
        depth = depth.saturating_mul(GROWTH).min(all);
    }
}

/// As [`best_of_each`], with the documents in place of their passages.
///
/// # Errors
/// When `find` fails.
pub(crate) fn search<E>(
    map: &PassageMap,
    wanted: usize,
    find: impl FnMut(usize) -> Result<Vec<(u32, Score)>, E>,
) -> Result<Vec<(DocId, Score)>, E> {
    let best = best_of_each(map.count() as usize, wanted, |(passage, _)| map.doc(*passage), find)?;
    Ok(best.into_iter().map(|(passage, score)| (map.doc(passage), score)).collect())
}

/// The best documents of a segment for a sparse clause over passages, each with the score of its best
/// passage; matches are not counted. `request` is in terms of documents, with the term numbers of the
/// segment.
pub(crate) fn best_documents(postings: &SparseReader, map: &PassageMap, request: &TopKRequest<'_>) -> TopK {
    let allowed = map.allowed(request.live, request.filter);
    let mut executors = Executors::default();
    let docs = search(map, request.k, |depth| {
        // What is certain of `depth` passages says nothing about as many documents: the threshold that the segments
        // share is only read.
        let threshold = SharedThreshold::new();
        threshold.raise(request.threshold.get());
        let passages = postings.top_k(&TopKRequest {
            k: depth,
            threshold: &threshold,
            live: None,
            filter: allowed.as_deref(),
            count_limit: 0,
            tie: &|passage| (request.tie)(map.doc(passage)),
            ..*request
        });
        executors.extend(passages.executors);
        Ok::<_, std::convert::Infallible>(passages.hits)
    });
    let Ok(hits) = docs;
    TopK { hits, matched: 0, executors }
}

/// A scorer over the documents that share a term with a sparse clause over passages; each scores as its best
/// passage.
pub(crate) struct PassageScorer {
    cursor: SparseCursor<OwnedBytes>,
    map: PassageMap,
    doc: DocId,
    /// Score of the current document and the number of its best passage, once computed.
    best: Option<(Score, u32)>,
}

impl PassageScorer {
    pub(crate) fn new(cursor: SparseCursor<OwnedBytes>, map: PassageMap) -> Self {
        let mut scorer = Self { cursor, map, doc: 0, best: None };
        scorer.settle();
        scorer
    }

    /// Moves to the document that the cursor's passage belongs to.
    fn settle(&mut self) -> DocId {
        self.best = None;
        self.doc = match self.cursor.doc() {
            TERMINATED => TERMINATED,
            passage => self.map.doc(passage).min(TERMINATED),
        };
        self.doc
    }

    /// Score of the current document, and the number of its best passage.
    pub(crate) fn best(&mut self) -> (Score, u32) {
        if let Some(best) = self.best {
            return best;
        }
        let mut best = (0.0, self.cursor.doc());
        if self.doc != TERMINATED {
            let end = self.map.start(self.doc + 1);
            best.0 = f32::NEG_INFINITY;
            while self.cursor.doc() < end {
                let score = self.cursor.score();
                if score > best.0 {
                    best = (score, self.cursor.doc());
                }
                self.cursor.advance();
            }
        }
        self.best = Some(best);
        best
    }
}

impl DocSet for PassageScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.cursor.seek(self.map.start(self.doc + 1));
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target > self.doc {
            if target >= TERMINATED {
                self.doc = TERMINATED;
                return TERMINATED;
            }
            self.cursor.seek(self.map.start(target));
            self.settle();
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.cursor.size_hint()
    }
}

impl Scorer for PassageScorer {
    fn score(&mut self) -> Score {
        self.best().0
    }
}

impl Meaning for SemanticQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let bound = answering(self, compiler.snapshot.mapping())?;
        compiler.compile_kind(&bound, scoring)
    }

    fn no_match(&self) -> Option<&'static str> {
        Some("No matching clauses")
    }

    no_words!();
}
