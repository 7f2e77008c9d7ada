//! `terms_set`: documents that match as many of the given values as each document itself requires.

use serde_json::Value;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::query::compile::Compiler;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use crate::query::kinds::text::should;
use crate::query::scripts::{ScoringScript, VisibleScript};
use sparrow_query::{TermsSetMinimum, TermsSetQuery};
use sparrow_runtime::work;
use sparrow_scoring::columns::NumericColumns;
use sparrow_scoring::error::{self, QueryError};
use sparrow_scoring::minimum::minimum_should_match;
use sparrow_scoring::score_error::ScoreErrors;
use sparrow_scoring::stoppable::stops_after;
use sparrow_scoring::weights;

impl Compiler<'_> {
    pub(crate) fn terms_set(
        &mut self,
        query: &TermsSetQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let mut seen = std::collections::HashSet::with_capacity(query.values.len());
        let distinct: Vec<&Value> = query.values.iter().filter(|value| seen.insert(*value)).collect();
        let mut clauses = Vec::with_capacity(distinct.len());
        for value in distinct {
            clauses.push(self.term(&query.field, value, false, scoring)?);
        }
        if clauses.is_empty() {
            return Ok(weights::none());
        }
        match &query.minimum {
            TermsSetMinimum::Script(script) => Ok(Box::new(CoveringWeight {
                clauses,
                minimum: Minimum::Script(ScoringScript::new(self.snapshot, script)),
                errors: self.score_errors().clone(),
            })),
            TermsSetMinimum::Field(path) => match self.snapshot.mapping().field(path) {
                None => Err(QueryError::NoMinimumField { field: path.clone() }),
                Some(field) if field.is_integer() || field.is_float() => Ok(Box::new(CoveringWeight {
                    clauses,
                    minimum: Minimum::Field(self.snapshot.mapping().concrete(path).into_owned()),
                    errors: self.score_errors().clone(),
                })),
                Some(other) => Err(QueryError::Unsupported {
                    field: path.clone(),
                    actual: other.name(),
                    clause: "minimum_should_match_field",
                }),
            },
            TermsSetMinimum::Spec(spec) => {
                let minimum = minimum_should_match(clauses.len(), spec)?.max(1);
                if minimum > clauses.len() {
                    return Ok(weights::none());
                }
                Ok(should(clauses, minimum, scoring))
            }
        }
    }
}

/// Clauses of which a document must match as many as a field of it, or a script, says.
struct CoveringWeight {
    clauses: Vec<Box<dyn Weight>>,
    minimum: Minimum,
    errors: ScoreErrors,
}

/// What says how many clauses a document must match.
enum Minimum {
    /// The field at this path.
    Field(String),
    Script(ScoringScript),
}

/// What says how many clauses a document of one segment must match.
enum SegmentMinimum {
    Field(NumericColumns),
    Script(Box<VisibleScript>, ScoreErrors),
}

impl SegmentMinimum {
    /// The number for a document; `None` if it never matches.
    fn of(&self, doc: DocId) -> Option<f64> {
        match self {
            Self::Field(columns) => columns.first(doc),
            Self::Script(script, _) if !script.docs.contains(doc) => None,
            Self::Script(_, errors) if errors.is_noted() || work::is_stopped() => None,
            Self::Script(script, errors) => {
                errors.value(script.script.run(doc, None, |value| value.as_f64()), "a number")
            }
        }
    }
}

impl Weight for CoveringWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut scorers = Vec::with_capacity(self.clauses.len());
        for clause in &self.clauses {
            work::check().map_err(|_| error::stopped())?;
            scorers.push(clause.scorer(reader, boost)?);
        }
        let minimum = match &self.minimum {
            Minimum::Field(path) => SegmentMinimum::Field(NumericColumns::open(reader, path)?),
            Minimum::Script(script) => {
                let script = Box::new(script.open(reader));
                SegmentMinimum::Script(script, self.errors.clone())
            }
        };
        let mut scorer = CoveringScorer { scorers, minimum, doc: 0 };
        scorer.settle();
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "sum of the terms that match")
    }
}

struct CoveringScorer {
    scorers: Vec<Box<dyn Scorer>>,
    minimum: SegmentMinimum,
    doc: DocId,
}

impl CoveringScorer {
    /// Advances to the first document with enough matches, from the clauses' current documents on.
    fn settle(&mut self) -> DocId {
        loop {
            self.doc = self.scorers.iter().map(|scorer| scorer.doc()).min().unwrap_or(TERMINATED);
            if self.doc == TERMINATED || stops_after(self.scorers.len()) {
                self.doc = TERMINATED;
                return TERMINATED;
            }
            let matching = self.scorers.iter().filter(|scorer| scorer.doc() == self.doc).count();
            // A number below 1 counts as 1; a document without one never matches.
            if self.minimum.of(self.doc).is_some_and(|least| matching as f64 >= least.floor()) {
                return self.doc;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        for scorer in &mut self.scorers {
            if scorer.doc() == self.doc {
                scorer.advance();
            }
        }
    }
}

impl DocSet for CoveringScorer {
    fn advance(&mut self) -> DocId {
        if self.doc != TERMINATED {
            self.step();
        }
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        for scorer in &mut self.scorers {
            if scorer.doc() < target {
                scorer.seek(target);
            }
        }
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.scorers.iter().map(|scorer| scorer.size_hint()).max().unwrap_or(0)
    }
}

impl Scorer for CoveringScorer {
    fn score(&mut self) -> Score {
        let doc = self.doc;
        self.scorers.iter_mut().filter(|scorer| scorer.doc() == doc).map(|scorer| scorer.score()).sum()
    }
}

impl Meaning for TermsSetQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.terms_set(self, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.values(&self.field, &self.values, false)
    }
}
