//! `script_score` and `script`: queries whose scores are computed, or whose documents are found, by a script.
//!
//! Vectors are read from the segment at full precision, even if quantized codes or graphs are stored beside
//! them, so that the comparison is exact.

use sparrow_lexical::computed::{ComputeScore, ComputedScorer, NO_MATCH};
use sparrow_query::script::QueryScript;
use sparrow_query::{ScriptQuery, ScriptScoreQuery};
use sparrow_runtime::work;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader};

use crate::query::compile::Compiler;
use crate::query::highlight::WantedWords;
use crate::query::kinds::{Meaning, no_words};
use crate::query::scripts::{ScoringScript, VisibleScript};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::score_error::ScoreErrors;
use sparrow_scoring::weights;

impl Compiler<'_> {
    /// The documents of `inner` on which a script is true, each with its score and what is added to it.
    pub(super) fn matching_script(
        &mut self,
        inner: Box<dyn Weight>,
        script: &QueryScript,
        adds: f32,
    ) -> Box<dyn Weight> {
        self.script_weight(inner, script, Computes::Match { adds })
    }

    fn script_weight(
        &mut self,
        inner: Box<dyn Weight>,
        script: &QueryScript,
        result: Computes,
    ) -> Box<dyn Weight> {
        Box::new(ScriptWeight {
            inner,
            script: ScoringScript::new(self.snapshot, script),
            result,
            errors: self.score_errors().clone(),
        })
    }
}

/// What a script computes.
#[derive(Clone, Copy)]
enum Computes {
    /// Scores, of which a hit must have at least this one.
    Score { least: Option<f32> },
    /// Whether a document of the query inside matches, whose score it adds to.
    Match { adds: f32 },
}

struct ScriptWeight {
    inner: Box<dyn Weight>,
    script: ScoringScript,
    result: Computes,
    errors: ScoreErrors,
}

impl Weight for ScriptWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let computation = ScriptScore {
            script: self.script.open(reader),
            needs_score: self.script.script.needs_score(),
            result: self.result,
            boost,
            errors: self.errors.clone(),
        };
        let least = match self.result {
            Computes::Score { least } => least,
            Computes::Match { .. } => Some(0.0),
        };
        let inner = match self.result {
            // The boost is the script's, not that of the query inside.
            Computes::Score { .. } => self.inner.scorer(reader, 1.0)?,
            Computes::Match { .. } => self.inner.scorer(reader, boost)?,
        };
        Ok(Box::new(ComputedScorer::new(inner, computation, least)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut explanation = weights::explain(self.scorer(reader, 1.0), doc, "script score function")?;
        explanation.add_detail(self.inner.explain(reader, doc)?);
        Ok(explanation)
    }
}

/// A script over the documents of one segment.
struct ScriptScore {
    script: VisibleScript,
    needs_score: bool,
    result: Computes,
    boost: Score,
    errors: ScoreErrors,
}

impl ComputeScore for ScriptScore {
    fn is_over(&self) -> bool {
        work::is_stopped() || self.errors.is_noted()
    }

    fn compute(&self, inner: &mut dyn Scorer) -> Score {
        let doc = inner.doc();
        if !self.script.docs.contains(doc) {
            return NO_MATCH;
        }
        let score = self.needs_score.then(|| f64::from(inner.score()));
        match self.result {
            Computes::Match { adds } => {
                let matches = self.script.script.run(doc, score, |value| value.as_bool());
                match self.errors.value(matches, "true or false") {
                    Some(true) => inner.score() + adds * self.boost,
                    _ => NO_MATCH,
                }
            }
            Computes::Score { .. } => {
                let given = self.script.script.run(doc, score, |value| value.as_f64());
                let score = self.errors.score(given, doc).unwrap_or(0.0);
                (score as Score * self.boost).min(Score::MAX)
            }
        }
    }
}

impl Meaning for ScriptScoreQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.count_clause()?;
        let scoring = scoring || self.min_score.is_some();
        // Which documents match is the query's alone; its scores are worked out only for a script that asks for them.
        let inner = compiler.compile(&self.query, scoring && self.script.script.uses("_score"))?;
        if !scoring {
            return Ok(inner);
        }
        Ok(compiler.script_weight(inner, &self.script, Computes::Score { least: self.min_score }))
    }

    fn min_score(&self) -> Option<f32> {
        self.min_score
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.of(&self.query)
    }
}

impl Meaning for ScriptQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.count_clause()?;
        let found = compiler.matching_script(weights::all(1.0, false), &self.script, 0.0);
        Ok(weights::constant(found, 1.0, scoring))
    }

    no_words!();
}
