//! `sort`: by score, or in the order of writing. Sorting by fields is a later matter.

use super::dsl::value;
use super::error::SearchError;
use super::json::{Json, Node};

/// Order of the hits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Best first.
    #[default]
    Score,
    /// In the order they were written: `_doc` and `_seq_no`.
    SeqNo,
}

/// The order called `name`: `_score`, `_doc` or `_seq_no`.
pub fn by_name(name: &str) -> Option<Sort> {
    match name {
        "_score" => Some(Sort::Score),
        "_doc" | "_seq_no" => Some(Sort::SeqNo),
        _ => None,
    }
}

/// Reads the `sort` section.
///
/// # Errors
/// For orders that this server does not have.
pub fn parse(node: &Node) -> Result<Sort, SearchError> {
    let refused = |at, name: &str| {
        SearchError::parsing(at, format!("[sort] by [{name}] is not supported by this server"))
    };
    match &node.json {
        Json::String(name) => by_name(name).ok_or_else(|| refused(node.at, name)),
        Json::Array(items) => match &items[..] {
            [] => Ok(Sort::Score),
            [one] => parse(one),
            // After the score nothing but the order of writing is left, which is the tie breaker.
            [first, second] if parse(first)? == Sort::Score && parse(second)? == Sort::SeqNo => {
                Ok(Sort::Score)
            }
            [_, second, ..] => {
                Err(SearchError::parsing(second.at, "[sort] by several keys is not supported by this server"))
            }
        },
        Json::Object(members) => {
            let [member] = &members[..] else {
                return Err(SearchError::parsing(
                    node.at,
                    "[sort] by several keys is not supported by this server",
                ));
            };
            let sort = by_name(&member.name).ok_or_else(|| refused(member.at, &member.name))?;
            let order = match &member.value.json {
                Json::String(order) => order.to_string(),
                Json::Object(options) => match &options[..] {
                    [] => return Ok(sort),
                    [option] if &*option.name == "order" => value::text(&option.value)?,
                    [option, ..] => return Err(refused(option.at, &option.name)),
                },
                _ => {
                    return Err(SearchError::parsing(
                        member.value.at,
                        format!(
                            "malformed sort format, within the sort array, an object, or an actual \
                             string are allowed, found [{}]",
                            member.value.token()
                        ),
                    ));
                }
            };
            match (sort, order.as_str()) {
                (Sort::Score, "desc") | (Sort::SeqNo, "asc") => Ok(sort),
                (_, order) => Err(refused(member.at, &format!("{} {order}", member.name))),
            }
        }
        _ => Err(refused(node.at, node.token())),
    }
}
