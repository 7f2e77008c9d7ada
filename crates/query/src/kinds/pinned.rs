//! `pinned`: chosen documents are ranked above the hits of another query.

use super::dsl::{Common, Context, members, not_supported, parse_query, unknown_field, value};
use crate::{BoolQuery, ConstantScoreQuery, DisMaxQuery, IdsQuery, Query, QueryKind, TermQuery};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

const CLAUSE: &str = "pinned";
/// Most documents that a query may pin.
const MOST: usize = 100;
/// Highest score that the other query may give, 2¹²⁷. Pinned documents score the next larger numbers that `f32` has.
const HIGHEST: f32 = f32::from_bits(0x7F00_0000);

/// A pinned document: the name of its index, if given, and its id.
type Chosen = (Option<String>, String);

pub(super) fn pinned(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    let mut common = Common::default();
    let (mut ids, mut docs, mut organic): (Option<Vec<Chosen>>, Option<Vec<Chosen>>, _) = (None, None, None);
    for member in members(body, CLAUSE)? {
        match (&*member.name, &member.value.json) {
            ("ids", Json::Array(_)) => {
                ids = Some(value::texts(&member.value)?.into_iter().map(|id| (None, id)).collect());
            }
            ("docs", Json::Array(items)) => {
                docs = Some(items.iter().map(chosen).collect::<Result<_, _>>()?);
            }
            ("organic", Json::Object(_)) => organic = Some(parse_query(&member.value, context)?),
            ("ids" | "docs" | "organic", _) => {
                return Err(BodyError::ValueType {
                    parser: CLAUSE,
                    field: member.name.to_string(),
                    token: member.value.token(),
                    at: member.value.at,
                });
            }
            _ if member.value.is_scalar() && common.take(CLAUSE, member)? => {}
            _ if member.value.is_scalar() => {
                return Err(unknown_field(CLAUSE, member, &["ids", "docs", "organic", "boost", "_name"]));
            }
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let (all, which) = match (ids, docs) {
        (Some(_), Some(_)) => {
            return Err(BodyError::illegal("The following fields are not allowed together: [ids, docs] "));
        }
        (Some(ids), None) => (ids, "ids"),
        (None, Some(docs)) => (docs, "docs"),
        (None, None) => {
            return Err(BodyError::illegal("Required one of fields [ids, docs], but none were specified. "));
        }
    };
    let organic = organic.ok_or(BodyError::Required { field: "organic" })?;
    if all.len() > MOST {
        return Err(BodyError::illegal(format!(
            "[{CLAUSE}] Max of {MOST} {which} exceeded: {} provided.",
            all.len()
        )));
    }
    let mut queries = vec![organic];
    let total = all.len();
    for (place, (index, id)) in all.into_iter().enumerate() {
        let ids = Query::new(QueryKind::Ids(IdsQuery { values: vec![id] }));
        let one = match index {
            None => ids,
            Some(index) => {
                let index = QueryKind::Term(TermQuery {
                    field: "_index".into(),
                    value: index.into(),
                    case_insensitive: false,
                });
                QueryKind::Bool(BoolQuery { filter: vec![ids, index.into()], ..BoolQuery::default() }).into()
            }
        };
        let score = f32::from_bits(HIGHEST.to_bits() + (total - place) as u32);
        let constant = Query::new(QueryKind::ConstantScore(ConstantScoreQuery { filter: Box::new(one) }));
        queries.push(constant.with_boost(score));
    }
    Ok(common.query(QueryKind::DisMax(DisMaxQuery { queries, tie_breaker: 0.0 })))
}

fn chosen(node: &Node) -> Result<Chosen, BodyError> {
    const PARSER: &str = "specified_document";
    let (mut index, mut id) = (None, None);
    for member in members(node, PARSER)? {
        match &*member.name {
            "_index" => index = value::optional_text(&member.value)?,
            "_id" => id = Some(value::text(&member.value)?),
            _ => return Err(unknown_field(PARSER, member, &["_index", "_id"])),
        }
    }
    Ok((index, id.ok_or(BodyError::Required { field: "_id" })?))
}
