//! Sparse clauses: token weights against the postings of a field.
//!
//! Inside a larger query the clause is a weight like any other. Alone, or with filters, it takes the pruned
//! path in [`crate::query::search`], which bypasses tantivy's collectors.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tantivy::directory::OwnedBytes;
use tantivy::index::SegmentId;
use tantivy::query::{EmptyScorer, Explanation, Scorer, Weight};
use tantivy::schema::Field;
use tantivy::{DocId, DocSet, Score, SegmentReader};

use crate::query::compile::Compiler;
use crate::query::explain::TOKEN_TAG;
use crate::query::kinds::semantic::PassageScorer;
use crate::query::kinds::{Meaning, no_words};
use crate::snapshot::Snapshot;
use sparrow_mapping::{FieldType, Mapping, SemanticModel, SemanticText};
use sparrow_postings::SparseCursor;
use sparrow_query::{Pruning, PruningConfig, SparseOrigin, SparseQuery, TextExpansionQuery};
use sparrow_runtime::attempt;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::weights;
use sparrow_segments::plugins::{PassageMap, SegmentPlugins, SparseReader};

/// Most tokens of a clause that an attempt to answer without another thread searches for: a question has about thirty.
const MOST_TOKENS_IN_ATTEMPT: usize = 100;

/// A sparse clause checked against the mapping, with the tokens that take part in it, each once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SparseClause {
    pub(crate) field: Field,
    pub(crate) tokens: Vec<(Box<str>, f32)>,
    /// Whether the field's postings are numbered by passage.
    pub(crate) passages: bool,
}

impl SparseClause {
    /// The field's postings in a segment, with the segment's term numbers of the tokens that it knows and
    /// their weights times `boost`.
    pub(crate) fn bind<'s>(
        &self,
        plugins: &'s SegmentPlugins,
        boost: Score,
    ) -> Option<(&'s SparseReader, Vec<(u32, f32)>)> {
        let (reader, ids) = plugins.sparse_with_ids(self.field)?;
        Some((reader, ids.resolve(reader, &self.tokens, boost)))
    }

    /// The map from passages to documents, if the field's postings are numbered by passage.
    pub(crate) fn map<'s>(&self, plugins: &'s SegmentPlugins) -> Option<&'s PassageMap> {
        plugins.passages(self.field).filter(|_| self.passages)
    }
}

impl Compiler<'_> {
    /// Checks a clause against the mapping. `None` when it cannot match: the field is not mapped, or no token
    /// is left.
    pub(crate) fn sparse_clause(&mut self, query: &SparseQuery) -> Result<Option<SparseClause>, QueryError> {
        self.count_clause()?;
        let mapping = self.snapshot.mapping();
        let slot = mapping.searched_slot(&query.field).filter(|_| query.origin == SparseOrigin::SparseVector);
        if let Some((_, SemanticText { model: Some(SemanticModel::Dense { .. }), .. })) = &slot {
            return Err(QueryError::SemanticModel {
                field: query.field.clone(),
                clause: "sparse_vector",
                wanted: "sparse_embedding",
                actual: "text_embedding",
            });
        }
        let passages = slot.is_some();
        match (mapping.field(&query.field), query.origin) {
            _ if passages => {}
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
        let schema = self.snapshot.schema();
        let field = match &slot {
            Some((name, _)) => schema.passages(name),
            None => schema.sparse(&mapping.concrete(&query.field)),
        };
        let Some(field) = field else { return Ok(None) };
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
        let path = slot.as_ref().map_or(&*query.field, |(name, _)| name);
        if let Some(pruning) = pruning_of(query, path, mapping) {
            prune(self.snapshot, field, &pruning, &mut tokens);
        }
        // A token of weight 0 cannot lift a score, and bounds assume positive weights.
        tokens.retain(|(_, weight)| *weight > 0.0);
        // The search looks at no flag within a segment.
        if tokens.len() > MOST_TOKENS_IN_ATTEMPT && attempt::give_up() {
            return Ok(None);
        }
        Ok((!tokens.is_empty()).then_some(SparseClause { field, tokens, passages }))
    }

    /// The weight of a sparse clause.
    pub(crate) fn sparse(&mut self, query: &SparseQuery) -> Result<Box<dyn Weight>, QueryError> {
        let Some(clause) = self.sparse_clause(query)? else { return Ok(weights::none()) };
        let segments = self
            .searcher()
            .segment_readers()
            .iter()
            .zip(self.snapshot.segments())
            .map(|(reader, segment)| (reader.segment_id(), segment.shared_plugins().clone()))
            .collect();
        Ok(Box::new(SparseWeight { clause, path: query.field.clone(), segments }))
    }
}

/// The pruning that applies to a clause: that of the request, else that of the field, else the default;
/// `None` for no pruning.
fn pruning_of(query: &SparseQuery, field: &str, mapping: &Mapping) -> Option<PruningConfig> {
    let field = || mapping.sparse_index_options(field);
    match query.pruning {
        Pruning::Off => None,
        Pruning::On(Some(config)) => Some(config),
        Pruning::On(None) => Some(field().config.unwrap_or_default()),
        Pruning::ByField(given) => {
            let options = field();
            (options.prune == Some(true)).then(|| given.or(options.config).unwrap_or_default())
        }
    }
}

/// Removes tokens that are both frequent and of low weight, as Elasticsearch does: frequency is the share of
/// the documents with the field, compared with the average share of all tokens. Deleted documents count until
/// they are merged away.
fn prune(snapshot: &Snapshot, field: Field, config: &PruningConfig, tokens: &mut Vec<(Box<str>, f32)>) {
    let readers: Vec<&SparseReader> =
        snapshot.segments().iter().filter_map(|segment| segment.sparse(field)).collect();
    // Single precision throughout, as Elasticsearch computes it: what is pruned may hang on the last bit.
    let docs = readers.iter().map(|reader| u64::from(reader.docs_with_field())).sum::<u64>() as f32;
    let postings = readers.iter().map(|reader| reader.posting_count()).sum::<u64>() as f32;
    let distinct = snapshot.cache().distinct_tokens(field, || distinct_tokens(&readers)) as f32;
    if docs == 0.0 || distinct == 0.0 {
        tokens.clear();
        return;
    }
    let average = postings / docs / distinct;
    let best = tokens.iter().map(|(_, weight)| *weight).fold(0.0, f32::max);
    tokens.retain(|(token, weight)| {
        let doc_freq: u32 =
            readers.iter().filter_map(|reader| Some(reader.doc_freq(reader.term(token)?))).sum();
        if doc_freq == 0 {
            return false;
        }
        let ratio = doc_freq as f32 / docs;
        let kept = ratio < config.tokens_freq_ratio_threshold * average
            || *weight > config.tokens_weight_threshold * best;
        kept != config.only_score_pruned_tokens
    });
}

/// Number of distinct tokens over all segments, so that merges do not change what is pruned.
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
    /// Path of the field, shown in explanations.
    path: String,
    segments: FxHashMap<SegmentId, Arc<SegmentPlugins>>,
}

impl Weight for SparseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let plugins = self.segments.get(&reader.segment_id());
        match plugins.and_then(|plugins| self.clause.bind(plugins, boost)) {
            Some((postings, terms)) => match plugins.and_then(|plugins| self.clause.map(plugins)) {
                Some(map) => {
                    Ok(Box::new(PassageScorer::new(SparseCursor::new(postings, &terms), map.clone())))
                }
                None => Ok(Box::new(SparseScorer { cursor: SparseCursor::new(postings, &terms) })),
            },
            None => Ok(Box::new(EmptyScorer)),
        }
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let score = weights::explain(self.scorer(reader, 1.0), doc, "")?.value();
        let mut sum = Explanation::new("sum of:", score);
        let plugins = self.segments.get(&reader.segment_id());
        let mut doc = doc;
        if let Some(map) = plugins.and_then(|plugins| self.clause.map(plugins))
            && let Some((postings, terms)) = plugins.and_then(|plugins| self.clause.bind(plugins, 1.0))
        {
            let mut scorer = PassageScorer::new(SparseCursor::new(postings, &terms), map.clone());
            scorer.seek(doc);
            // From here on the best passage stands for the document.
            doc = scorer.best().1;
        }
        let Some(postings) = plugins.and_then(|plugins| plugins.sparse(self.clause.field)) else {
            return Ok(sum);
        };
        for (token, weight) in &self.clause.tokens {
            let Some(stored) = postings.term(token).and_then(|term| postings.stored_weight(term, doc)) else {
                continue;
            };
            let mut product = Explanation::new_with_string(
                format!(
                    "Linear function on the {} field for the {token} feature{}, computed as w * S from:",
                    self.path,
                    readable(token).map(|text| format!(" ({text})")).unwrap_or_default(),
                ),
                weight * stored,
            );
            product.add_const("w, weight of this function", *weight);
            let mut stored = Explanation::new("S, feature value", stored);
            stored.add_context(TOKEN_TAG.to_owned());
            stored.add_context(self.path.clone());
            stored.add_context(token.to_string());
            product.add_detail(stored);
            sum.add_detail(product);
        }
        Ok(sum)
    }
}

/// A description of a token that is not a word itself: `##ing` continues the word before it, and `__` is a
/// dot, which would separate fields in a document. `None` for other tokens.
fn readable(token: &str) -> Option<String> {
    let text = match token.strip_prefix("##") {
        Some(rest) => format!("-{rest}"),
        None => token.to_owned(),
    };
    let text = text.replace("__", ".");
    (text != token).then_some(text)
}

/// A tantivy scorer over a cursor of the postings, whose scores include the boost already.
pub(crate) struct SparseScorer {
    cursor: SparseCursor<OwnedBytes>,
}

impl SparseScorer {
    /// A scorer at the cursor's current document.
    pub(crate) fn new(cursor: SparseCursor<OwnedBytes>) -> Self {
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

impl Meaning for SparseQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.sparse(self)
    }

    fn no_match(&self) -> Option<&'static str> {
        Some("No matching clauses")
    }

    no_words!();
}

impl Meaning for TextExpansionQuery {
    fn compile(&self, _: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        Err(QueryError::NotEncoded { model_id: self.model_id.clone() })
    }

    no_words!();
}
