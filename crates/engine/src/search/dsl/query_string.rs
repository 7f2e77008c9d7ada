//! `query_string`.

use sparrow_index::query::{Query, QueryKind, QueryStringQuery};

use super::super::error::SearchError;
use super::super::json::{Json, Node};
use super::fulltext::{boosted_fields, multi_match_type, operator};
use super::{Common, members, not_supported, unknown_token, value};

/// `query_string`.
pub fn query_string(body: &Node) -> Result<Query, SearchError> {
    const CLAUSE: &str = "query_string";
    let mut common = Common::default();
    let mut query = QueryStringQuery::default();
    let mut text = None;
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "fields" if node.as_array().is_some() => query.fields = boosted_fields(node)?,
            "fields" => return Err(unknown_token(CLAUSE, member)),
            _ if !node.is_scalar() => return Err(not_supported(CLAUSE, member)),
            "query" => text = value::optional_text(node)?,
            "default_field" => query.default_field = value::optional_text(node)?,
            "default_operator" => query.default_operator = operator(node)?,
            "analyzer" => query.analyzer = value::optional_text(node)?,
            "analyze_wildcard" => query.analyze_wildcard = value::boolean(node)?,
            "allow_leading_wildcard" => query.allow_leading_wildcard = value::boolean(node)?,
            "lenient" => query.lenient = node.json != Json::Null && value::boolean(node)?,
            "phrase_slop" => query.phrase_slop = value::unsigned(node, "phrase_slop")? as u32,
            "fuzziness" => query.fuzziness = value::optional_text(node)?,
            "fuzzy_prefix_length" => {
                query.fuzzy_prefix_length = value::unsigned(node, "fuzzy_prefix_length")?;
            }
            "fuzzy_max_expansions" => {
                query.fuzzy_max_expansions = value::unsigned(node, "fuzzy_max_expansions")?;
            }
            "minimum_should_match" => query.minimum_should_match = value::optional_text(node)?,
            "type" => {
                let name = value::text(node)?;
                query.kind = multi_match_type(&name).ok_or_else(|| {
                    SearchError::parsing(
                        node.at,
                        format!("[query_string] query does not support type [{name}]"),
                    )
                })?;
            }
            "tie_breaker" => query.tie_breaker = Some(value::float(node)?),
            "escape" => query.escape = value::boolean(node)?,
            "time_zone" => query.time_zone = value::optional_text(node)?,
            // Positions are always counted, there are no synonyms, a swap of two letters is always one
            // edit, and patterns have no automaton to bound.
            "enable_position_increments" | "fuzzy_transpositions" if value::boolean(node)? => {}
            "auto_generate_synonyms_phrase_query" => {
                value::boolean(node)?;
            }
            "max_determinized_states" => {
                value::int(node)?;
            }
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let Some(text) = text else {
        return Err(SearchError::parsing(body.end, "[query_string] must be provided with a [query]"));
    };
    if query.default_field.is_some() && !query.fields.is_empty() {
        return Err(SearchError::illegal(
            "[query_string] cannot use [fields] parameter in conjunction with [default_field]",
        ));
    }
    query.query = text;
    Ok(common.query(QueryKind::QueryString(query)))
}
