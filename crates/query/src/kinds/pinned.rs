//! `pinned`: chosen documents are ranked above the hits of another query.

use super::dsl::{Common, Context, members, not_supported, parse_query, value};
use super::shape::{Shape, clause, list, object, sub_query, text};
use crate::{BoolQuery, ConstantScoreQuery, DisMaxQuery, IdsQuery, Query, QueryKind, TermQuery};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

const CLAUSE: &str = "pinned";
/// Most documents that a query may pin.
const MOST: usize = 100;
/// Highest score that the other query may give, 2¹²⁷. Pinned documents score the next larger numbers that `f32` has.
const HIGHEST: f32 = f32::from_bits(0x7F00_0000);

/// A pinned document: the name of its index, if given, and its id.
type Chosen = (Option<String>, String);

/// What the body of a `pinned` query holds.
pub(super) fn pinned_shape() -> Shape {
    let document = object([("_index", text()), ("_id", text())]).needs(&["_id"]);
    clause([("ids", list(text())), ("docs", list(document)), ("organic", sub_query())]).needs(&["organic"])
}

pub(super) fn pinned(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    let mut common = Common::default();
    let (mut pinned, mut organic) = (Pinned::default(), None);
    for member in members(body, CLAUSE)? {
        match (&*member.name, &member.value.json) {
            ("ids" | "docs", _) => pinned.take(CLAUSE, member)?,
            ("organic", Json::Object(_)) => organic = Some(parse_query(&member.value, context)?),
            ("organic", _) => return Err(wrong_type(CLAUSE, member)),
            _ if member.value.is_scalar() && common.take(CLAUSE, member)? => {}
            _ if member.value.is_scalar() => {
                return Err(BodyError::unknown_field(
                    CLAUSE,
                    member,
                    &["ids", "docs", "organic", "boost", "_name"],
                ));
            }
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let chosen = pinned.chosen()?;
    let organic = organic.ok_or(BodyError::Required { field: "organic" })?;
    Ok(common.query(above(chosen, organic)?))
}

/// The documents that a request pins, as `ids` or as `docs`.
#[derive(Debug, Default)]
pub struct Pinned {
    ids: Option<Vec<Chosen>>,
    docs: Option<Vec<Chosen>>,
}

impl Pinned {
    /// Reads the member `ids` or `docs` of `parser`.
    ///
    /// # Errors
    /// If it is no list of such.
    pub fn take(&mut self, parser: &'static str, member: &Member) -> Result<(), BodyError> {
        match (&*member.name, &member.value.json) {
            ("ids", Json::Array(_)) => {
                self.ids = Some(value::texts(&member.value)?.into_iter().map(|id| (None, id)).collect());
            }
            ("docs", Json::Array(items)) => {
                self.docs = Some(items.iter().map(chosen).collect::<Result<_, _>>()?);
            }
            _ => return Err(wrong_type(parser, member)),
        }
        Ok(())
    }

    /// A query that ranks them above the hits of another one, in their order.
    ///
    /// # Errors
    /// If no documents are given, or more than 100, or if both `ids` and `docs` are.
    pub fn above(self, organic: Query) -> Result<QueryKind, BodyError> {
        above(self.chosen()?, organic)
    }

    fn chosen(self) -> Result<(Vec<Chosen>, &'static str), BodyError> {
        match (self.ids, self.docs) {
            (Some(_), Some(_)) => {
                Err(BodyError::illegal("The following fields are not allowed together: [ids, docs] "))
            }
            (Some(ids), None) => Ok((ids, "ids")),
            (None, Some(docs)) => Ok((docs, "docs")),
            (None, None) => {
                Err(BodyError::illegal("Required one of fields [ids, docs], but none were specified. "))
            }
        }
    }
}

fn wrong_type(parser: &'static str, member: &Member) -> BodyError {
    BodyError::ValueType {
        parser,
        field: member.name.to_string(),
        token: member.value.token(),
        at: member.value.at,
    }
}

fn above((all, which): (Vec<Chosen>, &'static str), organic: Query) -> Result<QueryKind, BodyError> {
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
    Ok(QueryKind::DisMax(DisMaxQuery { queries, tie_breaker: 0.0 }))
}

fn chosen(node: &Node) -> Result<Chosen, BodyError> {
    const PARSER: &str = "specified_document";
    let (mut index, mut id) = (None, None);
    for member in members(node, PARSER)? {
        match &*member.name {
            "_index" => index = value::optional_text(&member.value)?,
            "_id" => id = Some(value::text(&member.value)?),
            _ => return Err(BodyError::unknown_field(PARSER, member, &["_index", "_id"])),
        }
    }
    Ok((index, id.ok_or(BodyError::Required { field: "_id" })?))
}
