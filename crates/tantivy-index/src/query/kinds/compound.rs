//! Queries made of other queries: `bool`, `constant_score`, `dis_max`, `boosting`, and the lenient form of any.

use tantivy::query::{BooleanWeight, Occur, SumCombiner, Weight};

use super::{Explained, Meaning, constant};
use crate::query::compile::Compiler;
use crate::query::filters::{Docs, combine};
use crate::query::highlight::WantedWords;
use sparrow_query::script::QueryScript;
use sparrow_query::{
    BoolQuery, BoostingQuery, ConstantScoreQuery, DisMaxQuery, LenientQuery, Query, QueryKind,
};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::minimum::minimum_should_match;
use sparrow_scoring::stoppable::stoppable;
use sparrow_scoring::weights;
use sparrow_segments::segment_docs::SegmentDocs;

impl Meaning for BoolQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.bool(self, scoring)
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        compiler.bool_docs(self)
    }

    fn no_match(&self) -> Option<&'static str> {
        if self.must.is_empty() && self.filter.is_empty() && self.must_not.is_empty() {
            return Some("No matching clauses");
        }
        Some("Failure to meet condition(s) of required/prohibited clause(s)")
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        let BoolQuery { must, should, filter, .. } = self;
        must.iter().chain(should).chain(filter).try_for_each(|query| wanted.of(query))
    }
}

impl Compiler<'_> {
    fn bool(&mut self, query: &BoolQuery, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        if let Some((rest, scripts)) = without_scripts(query) {
            let mut weight = self.bool(&rest, scoring)?;
            for (script, adds) in scripts {
                self.count_clause()?;
                weight = self.matching_script(weight, script, adds);
            }
            return Ok(weight);
        }
        self.count_clause()?;
        let BoolQuery { must, should, filter, must_not, .. } = query;
        if must.is_empty() && should.is_empty() && filter.is_empty() && must_not.is_empty() {
            return Ok(weights::all(1.0, scoring));
        }
        let minimum = required_should(query)?;
        let mut clauses = Vec::new();
        for query in must {
            clauses.push((Occur::Must, self.compile(query, scoring)?));
        }
        for query in filter {
            // tantivy scores every required clause; a filter adds nothing.
            let weight = self.compile(query, false)?;
            clauses.push((Occur::Must, weights::filter(weight, scoring)));
        }
        if must.is_empty() && filter.is_empty() && should.is_empty() {
            let all = self.compile(&Query::match_all(), false)?;
            clauses.push((Occur::Must, weights::filter(all, scoring)));
        }
        // An optional clause only adds to the score.
        if scoring || minimum > 0 {
            for query in should {
                clauses.push((Occur::Should, self.compile(query, scoring)?));
            }
        }
        for query in must_not {
            clauses.push((Occur::MustNot, self.compile(query, false)?));
        }
        if let [(occur @ (Occur::Must | Occur::Should), _)] = &clauses[..]
            && minimum <= usize::from(*occur == Occur::Should)
        {
            return Ok(clauses.remove(0).1);
        }
        let excludes = !must_not.is_empty();
        let all = BooleanWeight::with_minimum_number_should_match(
            stoppable(clauses),
            minimum,
            scoring,
            Box::new(SumCombiner::default),
        );
        Ok(if excludes { weights::explained_if_matching(Box::new(all)) } else { Box::new(all) })
    }

    fn bool_docs(&mut self, tree: &BoolQuery) -> Result<Option<Docs>, QueryError> {
        let BoolQuery { must, should, filter, must_not, .. } = tree;
        if must.is_empty() && should.is_empty() && filter.is_empty() && must_not.is_empty() {
            self.count_clause()?;
            return Ok(Some(self.every(SegmentDocs::All)));
        }
        let minimum = required_should(tree)?;
        if minimum > 1 {
            return Ok(None);
        }
        self.count_clause()?;
        let mut docs = self.filter_docs(must.iter().chain(filter), must_not)?;
        if minimum == 1 {
            combine(&mut docs, self.any_of(should)?, SegmentDocs::intersect);
        }
        Ok(Some(docs))
    }
}

/// A `bool` without the scripts that it requires, and these scripts with what each adds to the score; `None` for a `bool` that
/// requires no script. Scripts run last, as in Elasticsearch: they may fail on documents that another clause excludes.
fn without_scripts(query: &BoolQuery) -> Option<(BoolQuery, Vec<(&QueryScript, f32)>)> {
    let script_of = |query: &Query| matches!(query.kind, QueryKind::Script(_));
    if !query.must.iter().chain(&query.filter).any(script_of) {
        return None;
    }
    let mut scripts = Vec::new();
    for (clauses, scores) in [(&query.must, true), (&query.filter, false)] {
        scripts.extend(clauses.iter().filter_map(|clause| match &clause.kind {
            QueryKind::Script(script) => Some((&script.script, if scores { clause.boost } else { 0.0 })),
            _ => None,
        }));
    }
    let mut rest = query.clone();
    rest.must.retain(|query| !script_of(query));
    rest.filter.retain(|query| !script_of(query));
    if rest.must.is_empty() && rest.filter.is_empty() {
        // Something is required all the same, so that `should` is not.
        rest.filter.push(Query::match_all());
    }
    Some((rest, scripts))
}

/// Number of `should` clauses that must match.
pub(crate) fn required_should(query: &BoolQuery) -> Result<usize, QueryError> {
    let optional = query.should.len();
    let has_required = !query.must.is_empty() || !query.filter.is_empty();
    let least = usize::from(!has_required && optional > 0);
    match &query.minimum_should_match {
        None => Ok(least),
        Some(spec) => Ok(minimum_should_match(optional, spec)?.max(least)),
    }
}

/// The only scoring clause of a `bool`, if it has exactly one and that has to match: the others restrict what it finds.
pub(crate) fn only_scoring(query: &BoolQuery) -> Result<Option<&Query>, QueryError> {
    Ok(match (&query.must[..], &query.should[..]) {
        ([inner], []) if required_should(query)? == 0 => Some(inner),
        ([], [inner]) if required_should(query)? == 1 => Some(inner),
        _ => None,
    })
}

impl Meaning for ConstantScoreQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let filter = compiler.compile(&self.filter, false)?;
        Ok(constant(filter, scoring))
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        compiler.matching_docs(&self.filter).map(Some)
    }

    fn explained(&self) -> Explained {
        Explained::Constant
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.of(&self.filter)
    }
}

impl Meaning for DisMaxQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.dis_max(&self.queries, self.tie_breaker, scoring)
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        compiler.count_clause()?;
        compiler.any_of(&self.queries).map(Some)
    }

    fn no_match(&self) -> Option<&'static str> {
        Some("No matching clause")
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        self.queries.iter().try_for_each(|query| wanted.of(query))
    }
}

impl Meaning for BoostingQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.boosting(self, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.of(&self.positive)
    }
}

impl Meaning for LenientQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        match compiler.compile(&self.query, scoring) {
            Err(error) if error.is_about_a_value() => Ok(weights::none()),
            compiled => compiled,
        }
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        match compiler.matching_docs(&self.query) {
            Err(error) if error.is_about_a_value() => Ok(Some(compiler.every(SegmentDocs::None))),
            docs => docs.map(Some),
        }
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.of(&self.query)
    }
}
