//! Queries over analysed text: `match`, `match_phrase`, `multi_match`.

use sparrow_index::query::{
    MatchPhraseQuery, MatchQuery, MultiMatchQuery, MultiMatchType, Operator, Query, QueryKind, ZeroTerms,
};

use super::super::error::SearchError;
use super::super::json::{Json, Member, Node};
use super::{Common, members, no_text, not_supported, single_field, unknown_token, value};

/// `match`.
pub fn match_query(body: &Node) -> Result<Query, SearchError> {
    const CLAUSE: &str = "match";
    let field = single_field(body, CLAUSE)?;
    let mut common = Common::default();
    let mut query = default_match(&field.name);
    let mut text = None;
    match field.value.as_object() {
        Some(options) => {
            for member in options {
                if &*member.name == "query" {
                    text = query_text(CLAUSE, member)?;
                } else if !take_match_option(CLAUSE, &mut query, member)? && !common.take(CLAUSE, member)? {
                    return Err(not_supported(CLAUSE, member));
                }
            }
        }
        None => text = query_text(CLAUSE, field)?,
    }
    query.text = text.ok_or_else(|| no_text(body.end))?;
    Ok(common.query(QueryKind::Match(query)))
}

/// `match_phrase`.
pub fn match_phrase(body: &Node) -> Result<Query, SearchError> {
    const CLAUSE: &str = "match_phrase";
    let field = single_field(body, CLAUSE)?;
    let mut common = Common::default();
    let mut query = MatchPhraseQuery { field: field.name.to_string(), ..Default::default() };
    let mut text = None;
    match field.value.as_object() {
        Some(options) => {
            for member in options {
                match &*member.name {
                    "query" => text = query_text(CLAUSE, member)?,
                    "analyzer" => query.analyzer = value::optional_text(&member.value)?,
                    "slop" => query.slop = slop(CLAUSE, &member.value)?,
                    "zero_terms_query" => query.zero_terms_query = zero_terms(member)?,
                    _ if common.take(CLAUSE, member)? => {}
                    _ => return Err(not_supported(CLAUSE, member)),
                }
            }
        }
        None => text = query_text(CLAUSE, field)?,
    }
    query.text = text.ok_or_else(|| no_text(body.end))?;
    Ok(common.query(QueryKind::MatchPhrase(query)))
}

/// `multi_match`.
pub fn multi_match(body: &Node) -> Result<Query, SearchError> {
    const CLAUSE: &str = "multi_match";
    let mut common = Common::default();
    let mut query = MultiMatchQuery { template: default_match(""), ..Default::default() };
    let mut text = None;
    for member in members(body, CLAUSE)? {
        match &*member.name {
            "query" => text = query_text(CLAUSE, member)?,
            "fields" => query.fields = boosted_fields(&member.value)?,
            "type" => {
                let name = value::text(&member.value)?;
                query.kind = multi_match_type(&name).ok_or_else(|| {
                    SearchError::parsing(
                        member.value.at,
                        format!("[multi_match] query does not support type [{name}]"),
                    )
                })?;
            }
            "tie_breaker" => query.tie_breaker = Some(value::float(&member.value)?),
            "slop" => query.slop = slop(CLAUSE, &member.value)?,
            _ if take_match_option(CLAUSE, &mut query.template, member)? => {}
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    query.template.text =
        text.ok_or_else(|| SearchError::parsing(body.end, "No text specified for multi_match query"))?;
    if query.fields.is_empty() {
        query.fields.push(("*".to_owned(), 1.0));
        // Over every field, values of the wrong type are no matches instead of errors.
        query.template.lenient = true;
    }
    Ok(common.query(QueryKind::MultiMatch(query)))
}

/// Type of a query over several fields; `None` for one that does not exist here.
pub fn multi_match_type(name: &str) -> Option<MultiMatchType> {
    match name {
        "best_fields" => Some(MultiMatchType::BestFields),
        "most_fields" => Some(MultiMatchType::MostFields),
        "phrase" => Some(MultiMatchType::Phrase),
        _ => None,
    }
}

/// Fields with boosts: `"title^2"` or a list of such.
pub fn boosted_fields(node: &Node) -> Result<Vec<(String, f32)>, SearchError> {
    let mut fields = Vec::new();
    for text in value::texts(node)? {
        match text.rsplit_once('^') {
            Some((name, boost)) => {
                let boost: f32 = boost
                    .parse()
                    .ok()
                    .filter(|boost: &f32| boost.is_finite() && *boost >= 0.0)
                    .ok_or_else(|| SearchError::NumberFormat { input: boost.to_owned() })?;
                fields.push((name.to_owned(), boost));
            }
            None => fields.push((text, 1.0)),
        }
    }
    Ok(fields)
}

/// `and` or `or`, in any case.
pub fn operator(node: &Node) -> Result<Operator, SearchError> {
    let text = value::text(node)?;
    operator_named(&text)
}

/// See [`operator`].
pub fn operator_named(text: &str) -> Result<Operator, SearchError> {
    if text.eq_ignore_ascii_case("or") {
        Ok(Operator::Or)
    } else if text.eq_ignore_ascii_case("and") {
        Ok(Operator::And)
    } else {
        Err(SearchError::illegal(format!("operator needs to be either [and] or [or], but not [{text}]")))
    }
}

fn default_match(field: &str) -> MatchQuery {
    MatchQuery { field: field.to_owned(), max_expansions: 50, ..Default::default() }
}

/// Options that `match` and `multi_match` share.
fn take_match_option(clause: &str, query: &mut MatchQuery, member: &Member) -> Result<bool, SearchError> {
    let node = &member.value;
    match &*member.name {
        "operator" => query.operator = operator(node)?,
        "minimum_should_match" => query.minimum_should_match = value::optional_text(node)?,
        "analyzer" => query.analyzer = value::optional_text(node)?,
        "fuzziness" => query.fuzziness = value::optional_text(node)?,
        "prefix_length" => query.prefix_length = non_negative(clause, "prefix length", node)?,
        "max_expansions" => query.max_expansions = max_expansions(clause, node)?,
        "lenient" => query.lenient = value::boolean(node)?,
        "zero_terms_query" => query.zero_terms_query = zero_terms(member)?,
        // There are no synonyms, and a swap of two letters always counts as one edit.
        "auto_generate_synonyms_phrase_query" => {
            value::boolean(node)?;
        }
        "fuzzy_transpositions" if value::boolean(node)? => {}
        _ => return Ok(false),
    }
    Ok(true)
}

fn max_expansions(clause: &str, node: &Node) -> Result<usize, SearchError> {
    match value::int(node)? {
        count if count > 0 => Ok(count as usize),
        _ => Err(SearchError::illegal(format!("[{clause}] requires maxExpansions to be positive."))),
    }
}

fn non_negative(clause: &str, what: &str, node: &Node) -> Result<usize, SearchError> {
    let value = value::int(node)?;
    usize::try_from(value)
        .map_err(|_| SearchError::illegal(format!("[{clause}] requires {what} to be non-negative.")))
}

fn slop(clause: &str, node: &Node) -> Result<u32, SearchError> {
    let value = value::int(node)?;
    u32::try_from(value).map_err(|_| SearchError::illegal(format!("No negative slop allowed in [{clause}]")))
}

fn query_text(clause: &str, member: &Member) -> Result<Option<String>, SearchError> {
    match member.value.json {
        Json::Null => Ok(None),
        Json::Array(_) | Json::Object(_) => Err(unknown_token(clause, member)),
        _ => value::text(&member.value).map(Some),
    }
}

fn zero_terms(member: &Member) -> Result<ZeroTerms, SearchError> {
    let text = value::text(&member.value)?;
    if text.eq_ignore_ascii_case("none") {
        Ok(ZeroTerms::None)
    } else if text.eq_ignore_ascii_case("all") {
        Ok(ZeroTerms::All)
    } else {
        Err(SearchError::parsing(member.value.at, format!("Unsupported zero_terms_query value [{text}]")))
    }
}
