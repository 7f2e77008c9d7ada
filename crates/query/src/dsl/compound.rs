//! Queries made of other queries, and the two that match everything or nothing.

use crate::{BoolQuery, BoostingQuery, Query, QueryKind};

use super::{Common, Context, members, parse_query, unknown_field, unknown_token, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

const BOOL_KEYS: &[&str] = &[
    "must",
    "should",
    "filter",
    "must_not",
    "mustNot",
    "minimum_should_match",
    "adjust_pure_negative",
    "boost",
    "_name",
];

/// Reads a `bool` query.
pub fn boolean(body: &Node, context: Context) -> Result<Query, BodyError> {
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
            _ => return Err(unknown_field(CLAUSE, member, BOOL_KEYS)),
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

/// Reads a `constant_score` query.
pub fn constant_score(body: &Node, context: Context) -> Result<Query, BodyError> {
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
            _ => return Err(super::not_supported(CLAUSE, member)),
        }
    }
    match filter {
        Some(filter) => Ok(common.query(QueryKind::ConstantScore { filter })),
        None => Err(BodyError::parsing(body.end, "[constant_score] requires a 'filter' element")),
    }
}

/// Reads a `dis_max` query.
pub fn dis_max(body: &Node, context: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "dis_max";
    let mut common = Common::default();
    let mut tie_breaker = 0.0;
    let mut queries = Vec::new();
    for member in members(body, CLAUSE)? {
        match &*member.name {
            "queries" if !member.value.is_scalar() => queries = one_or_many(&member.value, context)?,
            "tie_breaker" => tie_breaker = value::float(&member.value)?,
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(super::not_supported(CLAUSE, member)),
        }
    }
    if queries.is_empty() {
        return Err(BodyError::parsing(
            body.end,
            "[dis_max] requires 'queries' field with at least one clause",
        ));
    }
    Ok(common.query(QueryKind::DisMax { queries, tie_breaker }))
}

/// Reads a `boosting` query.
pub fn boosting(body: &Node, context: Context) -> Result<Query, BodyError> {
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
            _ => return Err(super::not_supported(CLAUSE, member)),
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

/// Reads a `match_all` or `match_none` query.
pub fn constant(clause: &'static str, kind: QueryKind, body: &Node) -> Result<Query, BodyError> {
    let mut common = Common::default();
    for member in members(body, clause)? {
        if !member.value.is_scalar() {
            return Err(unknown_token(clause, member));
        }
        if !common.take(clause, member)? {
            return Err(unknown_field(clause, member, &["boost", "_name"]));
        }
    }
    Ok(common.query(kind))
}

/// Reads a single query or an array of queries.
pub fn one_or_many(node: &Node, context: Context) -> Result<Vec<Query>, BodyError> {
    match node.as_array() {
        Some(items) => items.iter().map(|item| parse_query(item, context)).collect(),
        None => Ok(vec![parse_query(node, context)?]),
    }
}
