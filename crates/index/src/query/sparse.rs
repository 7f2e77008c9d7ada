//! Sparse clauses: token weights against the postings of a field.
//!
//! Inside a larger query the clause is a weight like any other. Alone, or with filters, it takes the
//! pruned path in [`super::search`], which goes around tantivy's collectors.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use sparrow_postings::SparseCursor;
use tantivy::directory::OwnedBytes;
use tantivy::index::SegmentId;
use tantivy::query::{EmptyScorer, Explanation, Scorer, Weight};
use tantivy::schema::Field;
use tantivy::{DocId, DocSet, Score, SegmentReader};

use super::ast::{PruningConfig, SparseOrigin, SparseQuery};
use super::compile::Compiler;
use super::error::QueryError;
use super::weights;
use crate::mapping::FieldType;
use crate::plugins::{SegmentPlugins, SparseReader};
use crate::snapshot::Snapshot;

/// A sparse clause checked against the mapping: the tokens that take part, each once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SparseClause {
    pub(super) field: Field,
    pub(super) tokens: Vec<(Box<str>, f32)>,
}

impl SparseClause {
    /// The field in a segment, with the tokens that it knows there, as its own term numbers, their
    /// weights times `boost`.
    pub(super) fn bind<'s>(
        &self,
        plugins: &'s SegmentPlugins,
        boost: Score,
    ) -> Option<(&'s SparseReader, Vec<(u32, f32)>)> {
        let (reader, ids) = plugins.sparse_with_ids(self.field)?;
        Some((reader, ids.resolve(reader, &self.tokens, boost)))
    }
}

impl Compiler<'_> {
    /// Checks a clause. `None` when it cannot match: the field is not mapped, or no token is left.
    pub(super) fn sparse_clause(&mut self, query: &SparseQuery) -> Result<Option<SparseClause>, QueryError> {
        self.count_clause()?;
        match (self.snapshot.mapping().field(&query.field), query.origin) {
            (None, _) => return Ok(None),
            (Some(FieldType::SparseVector), _)
            | (Some(FieldType::RankFeatures), SparseOrigin::TextExpansion | SparseOrigin::WeightedTokens) => {
            }
            (Some(other), SparseOrigin::SparseVector) => {
                return Err(QueryError::SparseFieldType { field: query.field.clone(), actual: other.name() });
            }
            (Some(other), SparseOrigin::TextExpansion | SparseOrigin::WeightedTokens) => {
                return Err(QueryError::ExpansionFieldType { actual: other.name() });
            }
        }
        let Some(field) = self.snapshot.schema().sparse(&query.field) else { return Ok(None) };
        let mut tokens: Vec<(Box<str>, f32)> = Vec::with_capacity(query.tokens.len());
        let mut places = FxHashMap::default();
        for (token, weight) in &query.tokens {
            if !weight.is_finite() || *weight < 0.0 {
                return Err(QueryError::SparseWeight { token: token.to_string(), weight: *weight });
            }
            let place = *places.entry(&**token).or_insert(tokens.len());
            match tokens.get_mut(place) {
                Some((_, sum)) => *sum += weight,
                None => tokens.push((token.clone(), *weight)),
            }
        }
        if let Some(pruning) = &query.pruning {
            prune(self.snapshot, field, pruning, &mut tokens);
        }
        // A token of weight 0 cannot lift a score, and bounds assume positive weights.
        tokens.retain(|(_, weight)| *weight > 0.0);
        Ok((!tokens.is_empty()).then_some(SparseClause { field, tokens }))
    }

    /// The weight of a sparse clause.
    pub(super) fn sparse(&mut self, query: &SparseQuery) -> Result<Box<dyn Weight>, QueryError> {
        let Some(clause) = self.sparse_clause(query)? else { return Ok(weights::none()) };
        let segments = self
            .searcher()
            .segment_readers()
            .iter()
            .zip(self.snapshot.segments())
            .map(|(reader, segment)| (reader.segment_id(), segment.shared_plugins().clone()))
            .collect();
        Ok(Box::new(SparseWeight { clause, segments }))
    }
}

/// Leaves out tokens that are both frequent and of low weight, as Elasticsearch does: frequency is the
/// share of the documents with the field, compared with the average share of all tokens. Deleted
/// documents count until they are merged away.
fn prune(snapshot: &Snapshot, field: Field, config: &PruningConfig, tokens: &mut Vec<(Box<str>, f32)>) {
    let readers: Vec<&SparseReader> =
        snapshot.segments().iter().filter_map(|segment| segment.sparse(field)).collect();
    let docs: f64 = readers.iter().map(|reader| f64::from(reader.docs_with_field())).sum();
    let postings: f64 = readers.iter().map(|reader| reader.posting_count() as f64).sum();
    let distinct = snapshot.cache().distinct_tokens(field, || distinct_tokens(&readers)) as f64;
    if docs == 0.0 || distinct == 0.0 {
        tokens.clear();
        return;
    }
    let average = (postings / docs / distinct) as f32;
    let best = tokens.iter().map(|(_, weight)| *weight).fold(0.0, f32::max);
    tokens.retain(|(token, weight)| {
        let doc_freq: u32 =
            readers.iter().filter_map(|reader| Some(reader.doc_freq(reader.term(token)?))).sum();
        if doc_freq == 0 {
            return false;
        }
        let ratio = (f64::from(doc_freq) / docs) as f32;
        let kept = ratio < config.tokens_freq_ratio_threshold * average
            || *weight > config.tokens_weight_threshold * best;
        kept != config.only_score_pruned_tokens
    });
}

/// Tokens that occur in any segment, each counted once, so that merges do not change what is pruned.
fn distinct_tokens(readers: &[&SparseReader]) -> usize {
    match readers {
        [] => 0,
        [one] => one.term_count() as usize,
        _ => {
            let mut seen = FxHashSet::default();
            for reader in readers {
                for term in 0..reader.term_count() {
                    seen.insert(reader.token(term));
                }
            }
            seen.len()
        }
    }
}

struct SparseWeight {
    clause: SparseClause,
    segments: FxHashMap<SegmentId, Arc<SegmentPlugins>>,
}

impl Weight for SparseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let plugins = self.segments.get(&reader.segment_id());
        match plugins.and_then(|plugins| self.clause.bind(plugins, boost)) {
            Some((postings, terms)) => Ok(Box::new(SparseScorer { cursor: postings.cursor(&terms) })),
            None => Ok(Box::new(EmptyScorer)),
        }
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "sum of query weights times stored weights")
    }
}

/// The cursor of the postings as a tantivy scorer; its scores carry the boost already.
pub(super) struct SparseScorer {
    cursor: SparseCursor<OwnedBytes>,
}

impl SparseScorer {
    /// From where the cursor stands.
    pub(super) fn new(cursor: SparseCursor<OwnedBytes>) -> Self {
        Self { cursor }
    }
}

impl DocSet for SparseScorer {
    fn advance(&mut self) -> DocId {
        self.cursor.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.cursor.seek(target)
    }

    fn doc(&self) -> DocId {
        self.cursor.doc()
    }

    fn size_hint(&self) -> u32 {
        self.cursor.size_hint()
    }
}

impl Scorer for SparseScorer {
    fn score(&mut self) -> Score {
        self.cursor.score()
    }
}
