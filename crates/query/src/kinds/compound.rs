//! Queries made of other queries.

use std::fmt;

use super::dsl::{Common, Context, members, not_supported, one_or_many, parse_query, value};
use super::multi_match::tie_breaker;
use super::separated;
use super::shape::{Shape, clause, flag, num, several, sub_query};
use super::text::minimum;
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// A `constant_score` query.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantScoreQuery {
    /// The query that has to match; its own scores are not computed.
    pub filter: Box<Query>,
}

/// A `dis_max` query.
#[derive(Debug, Clone, PartialEq)]
pub struct DisMaxQuery {
    /// The clauses.
    pub queries: Vec<Query>,
    /// Share of the scores of the other matching clauses that is added.
    pub tie_breaker: f32,
}

/// A query that matches nothing, instead of failing, where a value does not fit its field: what the option `lenient` makes of others.
#[derive(Debug, Clone, PartialEq)]
pub struct LenientQuery {
    /// The query.
    pub query: Box<Query>,
}

impl LenientQuery {
    /// The lenient form of a query.
    pub fn new(query: Query) -> Self {
        Self { query: Box::new(query) }
    }
}

/// A `bool` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoolQuery {
    /// Clauses that all have to match, and that count for the score.
    pub must: Vec<Query>,
    /// Clauses of which some have to match, see `minimum_should_match`, and that count for the score.
    pub should: Vec<Query>,
    /// Clauses that all have to match, without a score.
    pub filter: Vec<Query>,
    /// Clauses of which none may match.
    pub must_not: Vec<Query>,
    /// How many `should` clauses have to match, as in [`MatchQuery::minimum_should_match`]; by default 1 if there is neither `must`
    /// nor `filter`, otherwise 0.
    pub minimum_should_match: Option<String>,
}

/// A `boosting` query.
#[derive(Debug, Clone, PartialEq)]
pub struct BoostingQuery {
    /// The query that hits have to match.
    pub positive: Box<Query>,
    /// The query whose matches get lower scores.
    pub negative: Box<Query>,
    /// Factor for the scores of hits that match `negative`; not negative.
    pub negative_boost: f32,
}

/// What the body of a `bool` query holds.
pub(super) fn bool_shape() -> Shape {
    let queries = |about: &str| several(sub_query()).about(about);
    clause([
        ("must", queries("have to match, and score")),
        ("should", queries("may match, and score")),
        ("filter", queries("have to match, without a score")),
        ("must_not", queries("may not match")),
        ("mustNot", several(sub_query())),
        ("minimum_should_match", minimum()),
        ("adjust_pure_negative", flag().preset(true)),
    ])
}

/// Reads a `bool` query.
pub(super) fn boolean(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    const CLAUSE: &str = "bool";
    let mut common = Common::default();
    let mut query = BoolQuery::default();
    let mut adjust_pure_negative = true;
    for member in members(body, CLAUSE)? {
        let at = member.value.at;
        let clauses = match &*member.name {
            "must" => &mut query.must,
            "should" => &mut query.should,
            "filter" => &mut query.filter,
            "must_not" | "mustNot" => &mut query.must_not,
            "minimum_should_match" => {
                query.minimum_should_match = value::optional_text(&member.value)
                    .map_err(|error| error.within(CLAUSE, &member.name, at))?;
                continue;
            }
            "adjust_pure_negative" => {
                adjust_pure_negative =
                    value::boolean(&member.value).map_err(|error| error.within(CLAUSE, &member.name, at))?;
                continue;
            }
            _ if common.take(CLAUSE, member).map_err(|error| error.within(CLAUSE, &member.name, at))? => {
                continue;
            }
            _ => return Err(BodyError::unknown_field(CLAUSE, member, bool_shape().names())),
        };
        *clauses =
            one_or_many(&member.value, context).map_err(|error| error.within(CLAUSE, &member.name, at))?;
    }
    // Nothing but `must_not` matches the rest of the documents by default, and nothing as Lucene has it.
    let only_negative = query.must.is_empty() && query.should.is_empty() && query.filter.is_empty();
    if !adjust_pure_negative && only_negative && !query.must_not.is_empty() {
        return Ok(common.query(QueryKind::MatchNone));
    }
    Ok(common.query(QueryKind::Bool(query)))
}

/// What the body of a `constant_score` query holds.
pub(super) fn constant_score_shape() -> Shape {
    clause([("filter", sub_query())]).needs(&["filter"])
}

/// Reads a `constant_score` query.
pub(super) fn constant_score(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    const CLAUSE: &str = "constant_score";
    let mut common = Common::default();
    let mut filter = None;
    for member in members(body, CLAUSE)? {
        match &*member.name {
            "filter" if member.value.as_object().is_some() => {
                filter = Some(Box::new(parse_query(&member.value, context)?));
            }
            "filter" => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("unexpected token [{}]", member.value.token()),
                ));
            }
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    match filter {
        Some(filter) => Ok(common.query(QueryKind::ConstantScore(ConstantScoreQuery { filter }))),
        None => Err(BodyError::parsing(body.end, "[constant_score] requires a 'filter' element")),
    }
}

/// What the body of a `dis_max` query holds.
pub(super) fn dis_max_shape() -> Shape {
    clause([("queries", several(sub_query())), ("tie_breaker", tie_breaker().preset(0))]).needs(&["queries"])
}

/// Reads a `dis_max` query.
pub(super) fn dis_max(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    const CLAUSE: &str = "dis_max";
    let mut common = Common::default();
    let mut tie_breaker = 0.0;
    let mut queries = Vec::new();
    for member in members(body, CLAUSE)? {
        match &*member.name {
            "queries" if !member.value.is_scalar() => queries = one_or_many(&member.value, context)?,
            "tie_breaker" => tie_breaker = value::float(&member.value)?,
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    if queries.is_empty() {
        return Err(BodyError::parsing(
            body.end,
            "[dis_max] requires 'queries' field with at least one clause",
        ));
    }
    Ok(common.query(QueryKind::DisMax(DisMaxQuery { queries, tie_breaker })))
}

/// What the body of a `boosting` query holds.
pub(super) fn boosting_shape() -> Shape {
    clause([("positive", sub_query()), ("negative", sub_query()), ("negative_boost", num())]).needs(&[
        "positive",
        "negative",
        "negative_boost",
    ])
}

/// Reads a `boosting` query.
pub(super) fn boosting(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    const CLAUSE: &str = "boosting";
    let mut common = Common::default();
    let (mut positive, mut negative, mut negative_boost) = (None, None, -1.0);
    for member in members(body, CLAUSE)? {
        match &*member.name {
            "positive" if member.value.as_object().is_some() => {
                positive = Some(Box::new(parse_query(&member.value, context)?));
            }
            "negative" if member.value.as_object().is_some() => {
                negative = Some(Box::new(parse_query(&member.value, context)?));
            }
            "negative_boost" => negative_boost = value::float(&member.value)?,
            _ if member.value.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let missing = |what: &str| {
        BodyError::parsing(body.end, format!("[boosting] query requires '{what}' query to be set'"))
    };
    let positive = positive.ok_or_else(|| missing("positive"))?;
    let negative = negative.ok_or_else(|| missing("negative"))?;
    if negative_boost < 0.0 {
        return Err(BodyError::parsing(
            body.end,
            "[boosting] query requires 'negative_boost' to be set to be a positive value'",
        ));
    }
    Ok(common.query(QueryKind::Boosting(BoostingQuery { positive, negative, negative_boost })))
}

impl Clause for BoolQuery {
    fn lucene_name(&self) -> &'static str {
        "BooleanQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = [("+", &self.must), ("", &self.should), ("#", &self.filter), ("-", &self.must_not)];
        let clauses =
            groups.iter().flat_map(|(sign, clauses)| clauses.iter().map(move |clause| (sign, clause)));
        for (number, (sign, clause)) in clauses.enumerate() {
            let space = if number == 0 { "" } else { " " };
            match clause.kind {
                QueryKind::Bool(_) => write!(out, "{space}{sign}({clause})")?,
                _ => write!(out, "{space}{sign}{clause}")?,
            }
        }
        Ok(())
    }

    fn children(&self) -> Vec<&Query> {
        self.must.iter().chain(&self.should).chain(&self.filter).chain(&self.must_not).collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        let BoolQuery { must, should, filter, must_not, .. } = self;
        must.iter_mut().chain(should).chain(filter).chain(must_not).collect()
    }
}

impl Clause for ConstantScoreQuery {
    fn lucene_name(&self) -> &'static str {
        "ConstantScoreQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ConstantScore({})", self.filter)
    }

    fn children(&self) -> Vec<&Query> {
        vec![&self.filter]
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        vec![&mut self.filter]
    }
}

impl Clause for DisMaxQuery {
    fn lucene_name(&self) -> &'static str {
        "DisjunctionMaxQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(")?;
        separated(out, " | ", &self.queries)?;
        out.write_str(")")
    }

    fn children(&self) -> Vec<&Query> {
        self.queries.iter().collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        self.queries.iter_mut().collect()
    }
}

impl Clause for BoostingQuery {
    fn lucene_name(&self) -> &'static str {
        "BoostingQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "FunctionScoreQuery({}, scored by boost)", self.positive)
    }

    fn children(&self) -> Vec<&Query> {
        vec![&self.positive, &self.negative]
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        vec![&mut self.positive, &mut self.negative]
    }
}

impl Clause for LenientQuery {
    fn lucene_name(&self) -> &'static str {
        "LenientQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.query)
    }

    fn children(&self) -> Vec<&Query> {
        vec![&self.query]
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        vec![&mut self.query]
    }
}
