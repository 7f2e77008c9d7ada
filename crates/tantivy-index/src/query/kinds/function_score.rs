//! `function_score` and `boosting`: queries whose scores are changed by other properties of a document.

use std::cell::Cell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::columnar::{Column, StrColumn};
use tantivy::index::SegmentId;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader};

use crate::query::compile::Compiler;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use crate::query::kinds::decay::Decay;
use crate::query::scripts::{ScoringScript, VisibleDocs, VisibleInSegment, VisibleScript};
use sparrow_lexical::computed::{ComputeScore, ComputedScorer, NO_MATCH};
use sparrow_mapping::FieldType;
use sparrow_query::{
    BoostMode, BoostingQuery, FunctionKind, FunctionScoreQuery, Modifier, ScoreFunction, ScoreMode,
};
use sparrow_runtime::work;
use sparrow_scoring::columns::{NumericColumns, Reading};
use sparrow_scoring::error::{self, QueryError};
use sparrow_scoring::fields::keyword_column;
use sparrow_scoring::score_error::ScoreErrors;
use sparrow_scoring::weights;
use sparrow_segments::schema::SEQ_NO;
use sparrow_segments::segment_docs::SegmentDocs;

/// A set of documents for each segment, by segment id.
type DocsBySegment = FxHashMap<SegmentId, SegmentDocs>;

/// A scoring function bound to an index.
struct Function {
    docs: Option<DocsBySegment>,
    weight: f64,
    kind: Kind,
}

enum Kind {
    Weight,
    Field { path: String, reading: Reading, factor: f64, modifier: Modifier, missing: Option<f64> },
    Random { seed: u64, path: Option<String> },
    RandomWord { seed: u64, path: String },
    Decay(Decay),
    Script(ScoringScript),
}

impl Compiler<'_> {
    fn docs_by_segment(&mut self, query: &sparrow_query::Query) -> Result<DocsBySegment, QueryError> {
        let docs = self.matching_docs(query)?;
        let ids = self.searcher().segment_readers().iter().map(SegmentReader::segment_id);
        Ok(ids.zip(docs).collect())
    }

    pub(crate) fn function_score(
        &mut self,
        query: &FunctionScoreQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        // Without a least score the functions decide nothing about what matches, but have to be valid.
        let scoring = scoring || query.min_score.is_some();
        let mut functions = Vec::with_capacity(query.functions.len());
        for function in &query.functions {
            self.count_clause()?;
            functions.push(self.score_function(function)?);
        }
        let inner = self.compile(&query.query, scoring)?;
        if !scoring {
            return Ok(inner);
        }
        Ok(Box::new(FunctionScoreWeight {
            inner,
            functions: functions.into(),
            joining: Joining {
                score_mode: query.score_mode,
                boost_mode: query.boost_mode,
                max_boost: f64::from(query.max_boost),
            },
            min_score: query.min_score,
            visible: VisibleDocs::new(self.snapshot),
            errors: self.score_errors().clone(),
        }))
    }

    fn score_function(&mut self, function: &ScoreFunction) -> Result<Function, QueryError> {
        let docs = match &function.filter {
            None => None,
            Some(filter) => Some(self.docs_by_segment(filter)?),
        };
        let kind = match &function.kind {
            FunctionKind::Weight => Kind::Weight,
            FunctionKind::FieldValueFactor { field, factor, modifier, missing } => {
                match self.snapshot.mapping().field(field) {
                    None if missing.is_none() => {
                        return Err(QueryError::Invalid {
                            reason: format!(
                                "Unable to find a field mapper for field [{field}]. No 'missing' value defined."
                            ),
                        });
                    }
                    None => {}
                    Some(FieldType::Date { .. } | FieldType::DateNanos { .. } | FieldType::Boolean) => {}
                    Some(known) if known.is_integer() || known.is_float() => {}
                    Some(other) => {
                        return Err(QueryError::Unsupported {
                            field: field.clone(),
                            actual: other.name(),
                            clause: "field_value_factor",
                        });
                    }
                }
                Kind::Field {
                    path: self.snapshot.mapping().concrete(field).into_owned(),
                    reading: Reading::of(self.snapshot.mapping().field(field)),
                    factor: f64::from(*factor),
                    modifier: *modifier,
                    missing: *missing,
                }
            }
            FunctionKind::Random { seed, field } => {
                let field = field.as_deref().map(|field| self.snapshot.mapping().concrete(field));
                let path = match field.as_deref() {
                    None | Some(SEQ_NO) => None,
                    Some("_id") => {
                        return Err(QueryError::Invalid {
                            reason:
                                "Fielddata access on the _id field is disallowed, you can re-enable it by \
                                     updating the dynamic cluster setting: indices.id_field_data.enabled"
                                    .to_owned(),
                        });
                    }
                    Some(path) => match self.snapshot.mapping().field(path) {
                        Some(FieldType::Date { .. } | FieldType::DateNanos { .. } | FieldType::Boolean) => {
                            Some(path.to_owned())
                        }
                        Some(known) if known.is_integer() || known.is_float() => Some(path.to_owned()),
                        Some(texts) if texts.has_text_column() => {
                            let kind = Kind::RandomWord { seed: *seed, path: path.to_owned() };
                            return Ok(Function { docs, weight: f64::from(function.weight), kind });
                        }
                        None => {
                            return Err(QueryError::Invalid {
                                reason: format!(
                                    "Field [{path}] is not mapped on [random_score] and cannot be used as a source \
                                     of random numbers."
                                ),
                            });
                        }
                        Some(other) => {
                            return Err(QueryError::Unsupported {
                                field: path.to_owned(),
                                actual: other.name(),
                                clause: "random_score",
                            });
                        }
                    },
                };
                Kind::Random { seed: *seed, path }
            }
            FunctionKind::Decay(function) => Kind::Decay(self.decay(function)?),
            FunctionKind::Script(script) => Kind::Script(ScoringScript::new(self.snapshot, script)),
        };
        Ok(Function { docs, weight: f64::from(function.weight), kind })
    }

    pub(crate) fn boosting(
        &mut self,
        query: &BoostingQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let positive = self.compile(&query.positive, scoring)?;
        let lowered = self.docs_by_segment(&query.negative)?;
        if !scoring {
            return Ok(positive);
        }
        Ok(Box::new(BoostingWeight { positive, lowered: lowered.into(), factor: query.negative_boost }))
    }
}

#[derive(Clone, Copy)]
struct Joining {
    score_mode: ScoreMode,
    boost_mode: BoostMode,
    max_boost: f64,
}

impl Joining {
    /// Combines the results of the functions that apply to a document; each item is a function's result, with
    /// its weight applied, and the weight.
    fn functions(self, results: impl Iterator<Item = (f64, f64)>) -> f64 {
        let mut joined: Option<f64> = None;
        let mut weights = 0.0;
        for (result, weight) in results {
            weights += weight;
            joined = Some(match (joined, self.score_mode) {
                (None, _) => result,
                (Some(first), ScoreMode::First) => first,
                (Some(joined), ScoreMode::Multiply) => joined * result,
                (Some(joined), ScoreMode::Sum | ScoreMode::Avg) => joined + result,
                (Some(joined), ScoreMode::Max) => joined.max(result),
                (Some(joined), ScoreMode::Min) => joined.min(result),
            });
        }
        match (joined, self.score_mode) {
            (None, _) => 1.0,
            (Some(_), ScoreMode::Sum | ScoreMode::Avg) if weights == 0.0 => 1.0,
            (Some(joined), ScoreMode::Avg) => joined / weights,
            (Some(joined), _) => joined,
        }
    }

    fn with_query(self, query: f64, functions: f64) -> f64 {
        let functions = functions.min(self.max_boost);
        match self.boost_mode {
            BoostMode::Multiply => query * functions,
            BoostMode::Replace => functions,
            BoostMode::Sum => query + functions,
            BoostMode::Avg => (query + functions) / 2.0,
            BoostMode::Max => query.max(functions),
            BoostMode::Min => query.min(functions),
        }
    }
}

struct FunctionScoreWeight {
    inner: Box<dyn Weight>,
    functions: Arc<[Function]>,
    joining: Joining,
    min_score: Option<f32>,
    visible: VisibleDocs,
    errors: ScoreErrors,
}

impl Weight for FunctionScoreWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut columns = Vec::with_capacity(self.functions.len());
        for function in self.functions.iter() {
            // Each opens a column of its own.
            work::check().map_err(|_| error::stopped())?;
            columns.push(match &function.kind {
                Kind::Weight => Source::None,
                Kind::Script(script) => Source::Script(Box::new(script.open(reader))),
                Kind::Field { path, reading, .. } => {
                    Source::Numbers(NumericColumns::open(reader, path)?.read_as(*reading))
                }
                Kind::Random { path: Some(path), .. } => Source::Numbers(NumericColumns::open(reader, path)?),
                Kind::Decay(decay) => {
                    Source::Numbers(NumericColumns::open(reader, &decay.path)?.read_as(decay.reading))
                }
                Kind::Random { path: None, .. } => Source::SeqNo(reader.fast_fields().u64(SEQ_NO)?),
                Kind::RandomWord { path, .. } => {
                    Source::Words(reader.fast_fields().str(&keyword_column(path))?)
                }
            });
        }
        let computation = FunctionScore {
            functions: Arc::clone(&self.functions),
            columns,
            segment: reader.segment_id(),
            visible: self.visible.of(reader),
            joining: self.joining,
            errors: self.errors.clone(),
            steps: Cell::default(),
        };
        // As in Elasticsearch the boost is the query's, before it meets the functions.
        let inner = self.inner.scorer(reader, boost)?;
        Ok(Box::new(ComputedScorer::new(inner, computation, self.min_score)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        const TEXT: &str = "function score, computed by the functions from the score of the query:";
        let mut explanation = weights::explain(self.scorer(reader, 1.0), doc, TEXT)?;
        explanation.add_detail(self.inner.explain(reader, doc)?);
        Ok(explanation)
    }
}

enum Source {
    None,
    Numbers(NumericColumns),
    SeqNo(Column<u64>),
    Words(Option<StrColumn>),
    Script(Box<VisibleScript>),
}

/// Scoring functions with the columns that they read in one segment.
struct FunctionScore {
    functions: Arc<[Function]>,
    columns: Vec<Source>,
    segment: SegmentId,
    visible: VisibleInSegment,
    joining: Joining,
    errors: ScoreErrors,
    /// Functions that were worked out since it was last asked whether to go on.
    steps: Cell<usize>,
}

/// About so many functions are worked out between two looks at whether the request goes on.
const STEPS_BETWEEN_CHECKS: usize = 256;

impl ComputeScore for FunctionScore {
    fn is_over(&self) -> bool {
        // A function may look at many values of a document, and there may be thousands of functions.
        let steps = self.steps.get() + 1 + self.functions.len();
        let has_scripts = || self.columns.iter().any(|column| matches!(column, Source::Script(_)));
        if steps < STEPS_BETWEEN_CHECKS && !has_scripts() {
            self.steps.set(steps);
            return false;
        }
        self.steps.set(0);
        work::is_stopped() || self.errors.is_noted()
    }

    fn compute(&self, inner: &mut dyn Scorer) -> Score {
        let doc = inner.doc();
        // An object of a nested field may lack what a function needs, and the error would end the search.
        if !self.visible.contains(doc) {
            return NO_MATCH;
        }
        let query_score = inner.score();
        if self.functions.is_empty() {
            return query_score;
        }
        let errors = &self.errors;
        let results = self.functions.iter().zip(&self.columns).filter_map(|(function, column)| {
            let wanted = match &function.docs {
                None => true,
                Some(docs) => docs.get(&self.segment).is_some_and(|docs| docs.contains(doc)),
            };
            wanted.then(|| (function.of(column, doc, query_score, errors) * function.weight, function.weight))
        });
        let joined = self.joining.functions(results);
        let score = self.joining.with_query(f64::from(query_score), joined) as Score;
        if score.is_nan() || score < 0.0 {
            errors.note("illegal_argument_exception", || {
                format!(
                    "function score query returned an invalid score: [{score:?}] for doc: [{doc}]; score must be a \
                     non-NaN, non-negative number"
                )
            });
            return 0.0;
        }
        score.min(Score::MAX)
    }
}

impl Function {
    fn of(&self, column: &Source, doc: DocId, query_score: Score, errors: &ScoreErrors) -> f64 {
        match (&self.kind, column) {
            (_, Source::Script(script)) => {
                let given = script.script.run(doc, Some(f64::from(query_score)), |value| value.as_f64());
                errors.score(given, doc).unwrap_or(0.0)
            }
            (Kind::Field { path, factor, modifier, missing, .. }, Source::Numbers(numbers)) => {
                let Some(value) = numbers.first(doc).or(*missing) else {
                    errors.note("exception", || format!("Missing value for field [{path}]"));
                    return 1.0;
                };
                let result = modified(*modifier, value * factor);
                if result.is_nan() || result < 0.0 {
                    errors.note("illegal_argument_exception", || {
                        format!(
                            "field value function must not produce negative scores, but got: [{result:?}] for field \
                             value: [{value:?}]"
                        )
                    });
                }
                result
            }
            (Kind::Random { seed, .. }, Source::Numbers(numbers)) => {
                numbers.first(doc).map_or(0.0, |value| random(*seed, value.to_bits()))
            }
            (Kind::Random { seed, .. }, Source::SeqNo(column)) => {
                random(*seed, column.first(doc).unwrap_or(u64::MAX))
            }
            (Kind::RandomWord { seed, .. }, Source::Words(Some(words))) => {
                let mut word = String::new();
                match words.ords().first(doc).map(|ord| words.ord_to_str(ord, &mut word)) {
                    Some(Ok(true)) => random(*seed, spread(&word)),
                    _ => 0.0,
                }
            }
            (Kind::RandomWord { .. }, _) => 0.0,
            (Kind::Decay(decay), Source::Numbers(numbers)) => decay.of(numbers, doc),
            _ => 1.0,
        }
    }
}

/// Hash of a text (FNV-1a, 64 bits).
fn spread(text: &str) -> u64 {
    text.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

fn modified(modifier: Modifier, value: f64) -> f64 {
    match modifier {
        Modifier::None => value,
        Modifier::Log => value.log10(),
        Modifier::Log1p => (value + 1.0).log10(),
        Modifier::Log2p => (value + 2.0).log10(),
        Modifier::Ln => value.ln(),
        Modifier::Ln1p => value.ln_1p(),
        Modifier::Ln2p => (value + 1.0).ln_1p(),
        Modifier::Square => value * value,
        Modifier::Sqrt => value.sqrt(),
        Modifier::Reciprocal => 1.0 / value,
    }
}

/// A pseudo-random number from 0 to below 1 with 24 bits of precision, mixed by the finalizer of SplitMix64.
fn random(seed: u64, value: u64) -> f64 {
    let mut mixed = seed ^ value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    (mixed & 0xFF_FFFF) as f64 / f64::from(1 << 24)
}

struct BoostingWeight {
    positive: Box<dyn Weight>,
    lowered: Arc<DocsBySegment>,
    factor: f32,
}

impl Weight for BoostingWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let positive = self.positive.scorer(reader, boost)?;
        let lowered = self.lowered.get(&reader.segment_id()).cloned().unwrap_or(SegmentDocs::None);
        Ok(Box::new(BoostingScorer { positive, lowered, factor: self.factor }))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        const TEXT: &str =
            "boosting, computed as the score of the positive query, lowered where the negative one matches:";
        let mut explanation = weights::explain(self.scorer(reader, 1.0), doc, TEXT)?;
        explanation.add_detail(self.positive.explain(reader, doc)?);
        Ok(explanation)
    }
}

struct BoostingScorer {
    positive: Box<dyn Scorer>,
    lowered: SegmentDocs,
    factor: f32,
}

impl DocSet for BoostingScorer {
    fn advance(&mut self) -> DocId {
        self.positive.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.positive.seek(target)
    }

    fn doc(&self) -> DocId {
        self.positive.doc()
    }

    fn size_hint(&self) -> u32 {
        self.positive.size_hint()
    }
}

impl Scorer for BoostingScorer {
    fn score(&mut self) -> Score {
        let score = self.positive.score();
        // Infinity times 0 would be no number.
        if self.lowered.contains(self.positive.doc()) { score.min(f32::MAX) * self.factor } else { score }
    }
}

impl Meaning for FunctionScoreQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.function_score(self, scoring)
    }

    fn min_score(&self) -> Option<f32> {
        self.min_score
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.of(&self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_join_results() {
        let results = || [(2.0, 2.0), (3.0, 1.0)].into_iter();
        for (score_mode, expected) in [
            (ScoreMode::Multiply, 6.0),
            (ScoreMode::Sum, 5.0),
            (ScoreMode::Avg, 5.0 / 3.0),
            (ScoreMode::First, 2.0),
            (ScoreMode::Max, 3.0),
            (ScoreMode::Min, 2.0),
        ] {
            let joining = Joining { score_mode, boost_mode: BoostMode::Replace, max_boost: 100.0 };
            assert_eq!(joining.functions(results()), expected, "{score_mode:?}");
            assert_eq!(joining.functions([].into_iter()), 1.0);
        }
        for (boost_mode, expected) in [
            (BoostMode::Multiply, 16.0),
            (BoostMode::Replace, 4.0),
            (BoostMode::Sum, 8.0),
            (BoostMode::Avg, 4.0),
            (BoostMode::Max, 4.0),
            (BoostMode::Min, 4.0),
        ] {
            let joining = Joining { score_mode: ScoreMode::Sum, boost_mode, max_boost: 4.0 };
            assert_eq!(joining.with_query(4.0, 5.0), expected, "{boost_mode:?}");
        }
    }

    #[test]
    fn random_numbers_depend_on_seed_and_value_and_spread() {
        assert_eq!(random(1, 2), random(1, 2));
        assert_ne!(random(1, 2), random(2, 2));
        let mean = (0..10_000).map(|value| random(7, value)).sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
    }
}
