//! kNN clauses: the nearest vectors of the whole index, found before the rest of the query runs.

use rustc_hash::FxHashMap;
use tantivy::index::SegmentId;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader};

use crate::query::compile::Compiler;
use crate::query::kinds::{Explained, Meaning, no_words, semantic};
use sparrow_mapping::{DenseVector, FieldType, component_problem, magnitude_problem, preview};
use sparrow_query::{KnnBuilderQuery, KnnQuery, NestedQuery, NestedScore, QueryKind};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::weights::{self, ListScorer};
use sparrow_segments::doc_bits::next_in;
use sparrow_vectors::{Effort, Similarity, TopKRequest, VectorsError};

impl Compiler<'_> {
    /// Finds the nearest neighbours, and returns a weight that matches exactly these.
    pub(crate) fn knn(&mut self, query: &KnnQuery) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        // Vectors of objects are found among them, and stand for the documents around.
        let around = self.snapshot.mapping().nested_around(&query.field);
        if let Some(path) = around
            && self.snapshot.scope() != around
        {
            self.check_spreads_to(path, "knn")?;
            let clause = NestedQuery {
                path: path.to_owned(),
                query: Box::new(QueryKind::Knn(query.clone()).into()),
                score_mode: NestedScore::Max,
                ignore_unmapped: false,
                inner_hits: None,
            };
            return self.compile_kind(&QueryKind::Nested(clause), true);
        }
        // The mapping is shared, so that it can be looked at while filters are worked out.
        let mapping = self.snapshot.mapping().clone();
        let slot = mapping.searched_slot(&query.field);
        let dense = match mapping.field(&query.field) {
            _ if let Some((_, field)) = &slot => match (&field.dense, field.model) {
                (Some(dense), _) => &**dense,
                (None, None) => return Ok(weights::none()),
                (None, Some(_)) => {
                    return Err(QueryError::SemanticModel {
                        field: query.field.clone(),
                        clause: "knn",
                        wanted: "text_embedding",
                        actual: "sparse_embedding",
                    });
                }
            },
            None => return Ok(weights::none()),
            Some(FieldType::DenseVector(dense)) if dense.index => dense,
            Some(FieldType::DenseVector(_)) => {
                return Err(QueryError::KnnNotIndexed { field: query.field.clone() });
            }
            Some(other) => {
                return Err(QueryError::KnnFieldType { field: query.field.clone(), actual: other.name() });
            }
        };
        check_vector(query, dense)?;
        let metric = dense.metric(dense.dims_of(query.vector.len()));
        // The clause's own wish comes before the field's; 1 compares `num_candidates` exactly.
        let effort = Effort {
            num_candidates: query.num_candidates,
            oversample: query.oversample.or(dense.options.oversample).unwrap_or(1.0),
        };
        let schema = self.snapshot.schema();
        let field = match &slot {
            Some((name, _)) => schema.passages(name),
            None => schema.dense(&mapping.concrete(&query.field)),
        };
        let Some(field) = field else {
            return Ok(weights::none());
        };
        // A clause that restricts objects finds the nearest of all documents, also of those that have no object in the view.
        let of_index = self.spreads && around.is_none();
        let of_document = self.snapshot.of_document && !of_index;
        let filters = self.spreading(|compiler| compiler.filter_docs(&query.filter, []))?;
        let mut nearest: Vec<(Score, u64, usize, DocId)> = Vec::new();
        for (ord, (filter, segment)) in filters.iter().zip(self.snapshot.segments()).enumerate() {
            self.check_cancelled()?;
            let Some(vectors) = segment.dense(field) else { continue };
            let live = if of_index { segment.documents_of_index() } else { segment.live() };
            let all = || live.map_or(0, |live| live.iter().map(|word| word.count_ones() as usize).sum());
            // Of one document alone all objects are near enough.
            let k = if of_document { query.k.max(all()) } else { query.k };
            let request = TopKRequest {
                query: &query.vector,
                k,
                live,
                filter: filter.words(),
                min_score: query.similarity.map(|least| metric.threshold_score(least)),
                tie: &|doc| segment.seq_no(doc),
                cancel: self.cancel(),
            };
            let nearest_of = |request: &TopKRequest<'_>| {
                match vectors.nearest(segment.graph(field), request, effort) {
                    Ok((neighbours, method)) => {
                        self.executors.note(method);
                        Ok(neighbours)
                    }
                    // Only when the mapping leaves the dimensions to the first document.
                    Err(VectorsError::Dimensions { expected, found }) => {
                        Err(QueryError::KnnDims { field: query.field.clone(), expected, actual: found })
                    }
                    Err(other) => Err(QueryError::Vectors(other)),
                }
            };
            let neighbours = match segment.plugins().passages(field) {
                Some(map) => {
                    let allowed = map.allowed(request.live, request.filter);
                    semantic::search(map, query.k, |depth| {
                        nearest_of(&TopKRequest {
                            k: depth,
                            live: None,
                            filter: allowed.as_deref(),
                            tie: &|passage| segment.seq_no(map.doc(passage)),
                            ..request
                        })
                    })?
                }
                None if of_document || of_index => nearest_of(&request)?,
                None => match self.snapshot.documents_around(segment) {
                    None => nearest_of(&request)?,
                    Some(documents) => {
                        let document = |(object, _): &(DocId, Score)| next_in(documents, *object);
                        semantic::best_of_each(all(), query.k, document, |depth| {
                            nearest_of(&TopKRequest { k: depth, ..request })
                        })?
                    }
                },
            };
            nearest.extend(neighbours.into_iter().map(|(doc, score)| (score, segment.seq_no(doc), ord, doc)));
        }
        self.check_cancelled()?;
        nearest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if !of_document {
            nearest.truncate(query.k);
        }
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

/// Checks the number of dimensions and the components of a query's vector against the field.
fn check_vector(query: &KnnQuery, dense: &DenseVector) -> Result<(), QueryError> {
    let vector = &query.vector;
    let actual = dense.dims_of(vector.len());
    if let Some(dims) = dense.dims.filter(|dims| *dims != actual) {
        return Err(QueryError::KnnDims { field: query.field.clone(), expected: dims, actual });
    }
    let of_component = vector.iter().enumerate().find_map(|(at, component)| {
        let problem = component_problem(dense.element, *component, at)?;
        Some(format!("{problem} {}", preview(dense.element, vector)))
    });
    // Products and distances are taken of any query, as in Elasticsearch.
    let needs_magnitude = matches!(dense.similarity, Similarity::Cosine | Similarity::DotProduct);
    let of_magnitude = || magnitude_problem(dense, vector).filter(|_| needs_magnitude);
    match of_component.or_else(of_magnitude) {
        Some(reason) => Err(QueryError::KnnVector { reason }),
        None => Ok(()),
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

impl Meaning for KnnQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.knn(self)
    }

    fn explained(&self) -> Explained {
        Explained::Sentence("within top k documents")
    }

    fn no_match(&self) -> Option<&'static str> {
        Some("not in top k documents")
    }

    no_words!();
}

impl Meaning for KnnBuilderQuery {
    fn compile(&self, _: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        Err(QueryError::NotEncoded { model_id: self.model_id.clone() })
    }

    no_words!();
}
