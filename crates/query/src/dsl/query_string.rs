//! Reads `query_string` and `simple_query_string` queries.

use crate::{Query, QueryKind, QueryStringQuery, SimpleQueryStringQuery, simple_flags};

use super::fulltext::operator;
use super::multi_match::{boosted_fields, multi_match_type};
use super::patterns::rewrite;
use super::{Common, members, not_supported, unknown_token, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// Reads a `query_string` query.
pub fn query_string(body: &Node) -> Result<Query, BodyError> {
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
            "type" => query.kind = multi_match_type(CLAUSE, node)?,
            "tie_breaker" => query.tie_breaker = Some(value::float(node)?),
            "escape" => query.escape = value::boolean(node)?,
            "time_zone" => query.time_zone = value::optional_text(node)?,
            "quote_analyzer" => query.quote_analyzer = value::optional_text(node)?,
            "quote_field_suffix" => query.quote_field_suffix = value::optional_text(node)?,
            "fuzzy_transpositions" => query.without_transpositions = !value::boolean(node)?,
            "fuzzy_rewrite" => query.fuzzy_rewrite = rewrite(node)?,
            "rewrite" => query.rewrite = rewrite(node)?.unwrap_or_default(),
            "auto_generate_synonyms_phrase_query" => query.without_synonym_phrases = !value::boolean(node)?,
            "max_determinized_states" => {
                query.max_determinized_states =
                    value::unsigned(node, "max_determinized_states")?.min(super::patterns::MOST_STATES);
            }
            // Positions are always counted.
            "enable_position_increments" if value::boolean(node)? => {}
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let Some(text) = text else {
        return Err(BodyError::parsing(body.end, "[query_string] must be provided with a [query]"));
    };
    if query.default_field.is_some() && !query.fields.is_empty() {
        return Err(BodyError::illegal(
            "[query_string] cannot use [fields] parameter in conjunction with [default_field]",
        ));
    }
    query.query = text;
    Ok(common.query(QueryKind::QueryString(query)))
}

/// Reads a `simple_query_string` query.
pub fn simple_query_string(body: &Node) -> Result<Query, BodyError> {
    const CLAUSE: &str = "simple_query_string";
    let mut common = Common::default();
    let mut query = SimpleQueryStringQuery::default();
    let mut text = None;
    let mut lenient = None;
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "fields" if node.as_array().is_some() => query.fields = boosted_fields(node)?,
            "fields" => return Err(unknown_token(CLAUSE, member)),
            _ if !node.is_scalar() => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("[{CLAUSE}] unknown token [{}] after [{}]", node.token(), member.name),
                ));
            }
            "query" => text = value::optional_text(node)?,
            "analyzer" => query.analyzer = value::optional_text(node)?,
            "default_operator" => query.default_operator = operator(node)?,
            "flags" => query.flags = flags(node)?,
            "lenient" => lenient = Some(value::boolean(node)?),
            "analyze_wildcard" => query.analyze_wildcard = value::boolean(node)?,
            "minimum_should_match" => query.minimum_should_match = value::optional_text(node)?,
            "quote_field_suffix" => query.quote_field_suffix = value::optional_text(node)?,
            "auto_generate_synonyms_phrase_query" => query.without_synonym_phrases = !value::boolean(node)?,
            "fuzzy_prefix_length" => {
                query.fuzzy_prefix_length = value::unsigned(node, "fuzzy_prefix_length")?;
            }
            "fuzzy_max_expansions" => {
                query.fuzzy_max_expansions = value::unsigned(node, "fuzzy_max_expansions")?;
            }
            "fuzzy_transpositions" => query.without_transpositions = !value::boolean(node)?,
            _ if common.take(CLAUSE, member)? => {}
            _ => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("[{CLAUSE}] unsupported field [{}]", member.name),
                ));
            }
        }
    }
    query.query =
        text.ok_or_else(|| BodyError::parsing(body.end, format!("[{CLAUSE}] query text missing")))?;
    query.lenient = lenient.unwrap_or(false);
    Ok(common.query(QueryKind::SimpleQueryString(query)))
}

/// Reads the flags of a `simple_query_string`: names such as `OR|AND|PREFIX`, or Elasticsearch's bit mask.
fn flags(node: &Node) -> Result<u16, BodyError> {
    if let Json::Number(_) = node.json {
        return Ok(match value::int(node)? {
            -1 => simple_flags::ALL,
            bits => bits as u16 & simple_flags::ALL,
        });
    }
    let text = value::text(node)?;
    let mut flags = 0;
    if text.is_empty() {
        return Ok(simple_flags::ALL);
    }
    for name in text.split('|') {
        flags |= match name.trim().to_ascii_uppercase().as_str() {
            "ALL" => return Ok(simple_flags::ALL),
            "NONE" => return Ok(0),
            "AND" => simple_flags::AND,
            "NOT" => simple_flags::NOT,
            "OR" => simple_flags::OR,
            "PREFIX" => simple_flags::PREFIX,
            "PHRASE" => simple_flags::PHRASE,
            "PRECEDENCE" => simple_flags::PRECEDENCE,
            "ESCAPE" => simple_flags::ESCAPE,
            "WHITESPACE" => simple_flags::WHITESPACE,
            "FUZZY" => simple_flags::FUZZY,
            "NEAR" | "SLOP" => simple_flags::NEAR,
            _ => return Err(BodyError::illegal(format!("Unknown simple_query_string flag [{name}]"))),
        };
    }
    Ok(flags)
}
