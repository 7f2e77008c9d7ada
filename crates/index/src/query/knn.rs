//! kNN clauses: the nearest vectors of the whole index, found before the rest of the query runs.

use rustc_hash::FxHashMap;
use sparrow_vectors::{Similarity, TopKRequest, VectorsError};
use tantivy::index::SegmentId;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader};

use super::ast::KnnQuery;
use super::compile::Compiler;
use super::error::QueryError;
use super::weights::{self, ListScorer};
use crate::mapping::FieldType;

/// How far the squared length of a "unit" query vector may be from 1.
const UNIT_TOLERANCE: f32 = 1e-3;

impl Compiler<'_> {
    /// Finds the neighbours and returns a weight that matches just them.
    pub(super) fn knn(&mut self, query: &KnnQuery) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let (dims, similarity) = match self.snapshot.mapping().field(&query.field) {
            None => return Ok(weights::none()),
            Some(FieldType::DenseVector { index: false, .. }) => {
                return Err(QueryError::KnnNotIndexed { field: query.field.clone() });
            }
            Some(FieldType::DenseVector { dims, similarity, index: true }) => (*dims, *similarity),
            Some(other) => {
                return Err(QueryError::KnnFieldType { field: query.field.clone(), actual: other.name() });
            }
        };
        check_vector(query, dims, similarity)?;
        let Some(field) = self.snapshot.schema().dense(&query.field) else {
            return Ok(weights::none());
        };
        let filters = self.filter_docs(&query.filter, [])?;
        let mut nearest: Vec<(Score, u64, usize, DocId)> = Vec::new();
        for (ord, (filter, segment)) in filters.iter().zip(self.snapshot.segments()).enumerate() {
            self.check_cancelled()?;
            let Some(vectors) = segment.dense(field) else { continue };
            let found = vectors.top_k(&TopKRequest {
                query: &query.vector,
                k: query.k,
                live: segment.live(),
                filter: filter.words(),
                min_score: query.similarity.map(|least| similarity.threshold_score(least)),
                tie: &|doc| segment.seq_no(doc),
                cancel: self.cancel(),
            });
            let found = found.map_err(|error| match error {
                // Only when the mapping leaves the dimensions to the first document.
                VectorsError::Dimensions { expected, found } => {
                    QueryError::KnnDims { field: query.field.clone(), expected, actual: found }
                }
                other => QueryError::Vectors(other),
            })?;
            nearest.extend(found.into_iter().map(|(doc, score)| (score, segment.seq_no(doc), ord, doc)));
        }
        self.check_cancelled()?;
        nearest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        nearest.truncate(query.k);
        let mut segments: FxHashMap<SegmentId, Vec<(DocId, Score)>> = FxHashMap::default();
        for (score, _, ord, doc) in nearest {
            let id = self.searcher().segment_reader(ord as u32).segment_id();
            segments.entry(id).or_default().push((doc, score));
        }
        for docs in segments.values_mut() {
            docs.sort_unstable_by_key(|&(doc, _)| doc);
        }
        Ok(Box::new(KnnWeight { segments }))
    }
}

fn check_vector(query: &KnnQuery, dims: Option<usize>, similarity: Similarity) -> Result<(), QueryError> {
    let vector = &query.vector;
    if let Some(dims) = dims.filter(|dims| *dims != vector.len()) {
        return Err(QueryError::KnnDims { field: query.field.clone(), expected: dims, actual: vector.len() });
    }
    if let Some(dimension) = vector.iter().position(|value| !value.is_finite()) {
        return Err(QueryError::KnnNotFinite { vector: vector.clone(), dimension });
    }
    let squared: f32 = vector.iter().map(|value| value * value).sum();
    match similarity {
        Similarity::Cosine if squared == 0.0 => Err(QueryError::KnnZeroMagnitude { vector: vector.clone() }),
        Similarity::DotProduct if (squared - 1.0).abs() > UNIT_TOLERANCE => {
            Err(QueryError::KnnNotUnit { vector: vector.clone() })
        }
        _ => Ok(()),
    }
}

struct KnnWeight {
    segments: FxHashMap<SegmentId, Vec<(DocId, Score)>>,
}

impl Weight for KnnWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let docs = self.segments.get(&reader.segment_id()).cloned().unwrap_or_default();
        Ok(Box::new(ListScorer::new(docs, boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "within top k documents")
    }
}
