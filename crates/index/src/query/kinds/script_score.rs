//! `script_score`: a query whose scores are computed by a script over each document's vectors.
//!
//! Vectors are read from the segment at full precision, even if quantized codes or graphs are stored beside
//! them, so that the comparison is exact.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::index::SegmentId;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::schema::Field;
use tantivy::{DocId, Score, SegmentReader};

use crate::query::compile::Compiler;
use crate::query::computed::{ComputeScore, ComputedScorer};
use crate::query::error::QueryError;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use crate::query::score_error::{SCRIPT, ScoreErrors};
use crate::query::weights;
use sparrow_mapping::FieldType;
use sparrow_query::ScriptScoreQuery;
use sparrow_query::script::{Expression, Script, Values, VectorFunction};
use sparrow_segments::plugins::DenseReader;
use sparrow_types::work;

impl Compiler<'_> {
    pub(crate) fn script_score(
        &mut self,
        query: &ScriptScoreQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let scoring = scoring || query.min_score.is_some();
        let fields = self.script_fields(&query.script)?;
        // Which documents match is the query's alone; its scores are worked out only for a script that asks for them.
        let inner = self.compile(&query.query, scoring && query.script.score.needs_score())?;
        if !scoring {
            return Ok(inner);
        }
        let segments = self.snapshot.segments().iter().zip(self.searcher().segment_readers());
        let vectors = segments
            .map(|(segment, reader)| {
                let of_fields = fields.iter().map(|field| segment.dense((*field)?).cloned()).collect();
                (reader.segment_id(), of_fields)
            })
            .collect();
        Ok(Box::new(ScriptWeight {
            inner,
            script: Arc::new(query.script.clone()),
            vectors,
            min_score: query.min_score,
            errors: self.score_errors().clone(),
        }))
    }

    /// The tantivy fields of a script's fields, checked against the vectors that they are compared with;
    /// `None` for a field that no document has a value in.
    fn script_fields(&self, script: &Script) -> Result<Vec<Option<Field>>, QueryError> {
        let mut dims = Vec::with_capacity(script.fields.len());
        let mut fields = Vec::with_capacity(script.fields.len());
        for name in &script.fields {
            match self.snapshot.mapping().field(name) {
                Some(FieldType::DenseVector(dense)) => {
                    dims.push(dense.dims);
                    fields.push(self.snapshot.schema().dense(name));
                }
                Some(other) => {
                    return Err(QueryError::Script {
                        reason: format!("Field [{name}] of type [{}] has no vectors", other.name()),
                    });
                }
                None => {
                    return Err(QueryError::Script {
                        reason: format!("No field found for [{name}] in mapping"),
                    });
                }
            }
        }
        let mut problem = None;
        visit(&script.score, &mut |vector, field| {
            let (asked, has) = (script.vectors[vector].len(), dims[field]);
            if let Some(has) = has.filter(|has| *has != asked) {
                problem.get_or_insert_with(|| different_dims(asked, has));
            }
        });
        match problem {
            Some(reason) => Err(QueryError::Script { reason }),
            None => Ok(fields),
        }
    }
}

fn different_dims(asked: usize, has: usize) -> String {
    format!(
        "The query vector has a different number of dimensions [{asked}] than the document vectors [{has}]."
    )
}

/// Calls `see` with the numbers of the vector and the field of each comparison in an expression.
fn visit(expression: &Expression, see: &mut dyn FnMut(usize, usize)) {
    match expression {
        Expression::Vector { vector, field, .. } => see(*vector, *field),
        Expression::Number(_) | Expression::Score | Expression::Size(_) => {}
        Expression::Negative(inner) => visit(inner, see),
        Expression::Binary { left, right, .. } => {
            visit(left, see);
            visit(right, see);
        }
        Expression::Choice { condition, yes, no } => {
            [condition, yes, no].into_iter().for_each(|part| visit(part, see));
        }
        Expression::Call { arguments, .. } => arguments.iter().for_each(|argument| visit(argument, see)),
    }
}

/// Reader of each of a script's vector fields in one segment; `None` where no document has a vector.
type Vectors = Vec<Option<DenseReader>>;

struct ScriptWeight {
    inner: Box<dyn Weight>,
    script: Arc<Script>,
    vectors: FxHashMap<SegmentId, Vectors>,
    min_score: Option<f32>,
    errors: ScoreErrors,
}

impl Weight for ScriptWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let none = || vec![None; self.script.fields.len()];
        let computation = ScriptScore {
            script: Arc::clone(&self.script),
            vectors: self.vectors.get(&reader.segment_id()).cloned().unwrap_or_else(none),
            boost,
            errors: self.errors.clone(),
        };
        // The boost is the script's, not that of the query inside.
        let inner = self.inner.scorer(reader, 1.0)?;
        Ok(Box::new(ComputedScorer::new(inner, computation, self.min_score)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut explanation = weights::explain(self.scorer(reader, 1.0), doc, "script score function")?;
        explanation.add_detail(self.inner.explain(reader, doc)?);
        Ok(explanation)
    }
}

/// A script with the vectors of one segment that it reads.
struct ScriptScore {
    script: Arc<Script>,
    vectors: Vectors,
    boost: Score,
    errors: ScoreErrors,
}

impl ComputeScore for ScriptScore {
    fn is_over(&self) -> bool {
        work::is_stopped()
    }

    fn compute(&self, inner: &mut dyn Scorer) -> Score {
        let doc = inner.doc();
        match self.script.score.value(&mut OfDocument { script: self, inner, doc }) {
            Ok(score) => {
                let score = score as Score;
                if score.is_nan() || score < 0.0 {
                    self.errors.note("illegal_argument_exception", || {
                        format!(
                            "script_score script returned an invalid score [{score:?}] for doc [{doc}]. Must be a \
                             non-negative score!"
                        )
                    });
                    return 0.0;
                }
                (score * self.boost).min(Score::MAX)
            }
            Err(reason) => {
                self.errors.note(SCRIPT, || reason);
                0.0
            }
        }
    }
}

/// The values of one document that a script can read.
struct OfDocument<'s> {
    script: &'s ScriptScore,
    inner: &'s mut dyn Scorer,
    doc: DocId,
}

impl OfDocument<'_> {
    fn vector(&self, field: usize) -> Option<Vec<f32>> {
        self.script.vectors[field].as_ref()?.vector(self.doc)
    }
}

impl Values for OfDocument<'_> {
    type Error = String;

    fn score(&mut self) -> f64 {
        f64::from(self.inner.score())
    }

    fn size(&mut self, field: usize) -> Result<f64, String> {
        Ok(f64::from(u8::from(self.vector(field).is_some())))
    }

    fn compared(&mut self, function: VectorFunction, vector: usize, field: usize) -> Result<f64, String> {
        let Some(stored) = self.vector(field) else {
            return Err("A document doesn't have a value for a vector field!".to_owned());
        };
        let asked = &self.script.script.vectors[vector];
        if asked.len() != stored.len() {
            return Err(different_dims(asked.len(), stored.len()));
        }
        Ok(function.of(asked, &stored))
    }
}

impl Meaning for ScriptScoreQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.script_score(self, scoring)
    }

    fn min_score(&self) -> Option<f32> {
        self.min_score
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.of(&self.query)
    }
}
