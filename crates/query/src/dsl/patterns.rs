//! Queries over patterns of terms: `prefix`, `wildcard`, `regexp`, `fuzzy`.

use crate::{FuzzyQuery, Query, QueryKind, RegexpQuery, Rewrite, regexp_flags};

use super::term::{exact_value, plain_text};
use super::{Common, not_supported, single_field, unknown_token, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Member, Node};

/// Reads a `prefix` query.
pub fn prefix(body: &Node) -> Result<Query, BodyError> {
    let exact = exact_value("prefix", &["value"], body)?;
    Ok(exact.common.query(QueryKind::Prefix {
        field: exact.field,
        value: plain_text(&exact.value),
        case_insensitive: exact.case_insensitive,
        rewrite: exact.rewrite,
    }))
}

/// Reads a `wildcard` query.
pub fn wildcard(body: &Node) -> Result<Query, BodyError> {
    let exact = exact_value("wildcard", &["value", "wildcard"], body)?;
    Ok(exact.common.query(QueryKind::Wildcard {
        field: exact.field,
        value: plain_text(&exact.value),
        case_insensitive: exact.case_insensitive,
        rewrite: exact.rewrite,
    }))
}

/// The parts that `regexp` and `fuzzy` queries share: `{field: value}` or `{field: {"value": …, …}}`, where all values are scalars.
struct PatternClause {
    field: String,
    value: String,
    common: Common,
}

impl PatternClause {
    /// Reads such a query. `take` reads a member that is specific to it, and says whether the member was one.
    fn read(
        clause: &str,
        body: &Node,
        mut take: impl FnMut(&Member) -> Result<bool, BodyError>,
    ) -> Result<Self, BodyError> {
        let field = single_field(body, clause)?;
        let mut common = Common::default();
        let mut given = None;
        match field.value.as_object() {
            None if field.value.is_scalar() => given = value::optional_text(&field.value)?,
            None => {
                return Err(BodyError::parsing(
                    field.value.at,
                    format!("[{clause}] query does not support array of values"),
                ));
            }
            Some(options) => {
                for member in options {
                    if !member.value.is_scalar() {
                        return Err(unknown_token(clause, member));
                    }
                    if &*member.name == "value" {
                        given = value::optional_text(&member.value)?;
                    } else if !take(member)? && !common.take(clause, member)? {
                        return Err(not_supported(clause, member));
                    }
                }
            }
        }
        let value = given.ok_or_else(|| BodyError::illegal("value cannot be null"))?;
        Ok(Self { field: field.name.to_string(), value, common })
    }
}

/// Largest number of automaton states that a request may allow: more take seconds to find, and gigabytes of memory.
pub const MOST_STATES: usize = 100_000;

/// Reads a `regexp` query.
pub fn regexp(body: &Node) -> Result<Query, BodyError> {
    let mut query = RegexpQuery::new("", "");
    let read = PatternClause::read("regexp", body, |member| {
        let node = &member.value;
        match &*member.name {
            "flags" => query.flags = flags(&value::text(node)?)?,
            "flags_value" => query.flags = flags_of_bits(value::int(node)?),
            "case_insensitive" => query.case_insensitive = value::boolean(node)?,
            "max_determinized_states" => {
                query.max_determinized_states =
                    value::unsigned(node, "max_determinized_states")?.min(MOST_STATES);
            }
            "rewrite" => query.rewrite = rewrite(node)?.unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    (query.field, query.value) = (read.field, read.value);
    Ok(read.common.query(QueryKind::Regexp(query)))
}

/// Reads the flags of a `regexp` query from names such as `INTERSECTION|COMPLEMENT`.
fn flags(text: &str) -> Result<u8, BodyError> {
    let mut flags = 0;
    if text.is_empty() {
        return Ok(regexp_flags::ALL);
    }
    for name in text.split('|') {
        flags |= match name.trim().to_ascii_uppercase().as_str() {
            "ALL" => return Ok(regexp_flags::ALL),
            "INTERSECTION" => regexp_flags::INTERSECTION,
            "COMPLEMENT" => regexp_flags::COMPLEMENT,
            "EMPTY" => regexp_flags::EMPTY,
            "ANYSTRING" => regexp_flags::ANYSTRING,
            "INTERVAL" => regexp_flags::INTERVAL,
            // There are no named automata to switch on.
            "NONE" | "AUTOMATON" => 0,
            _ => return Err(BodyError::illegal(format!("Unknown regexp flag [{name}]"))),
        };
    }
    Ok(flags)
}

/// The flags of a `regexp` query for the bits that Lucene uses for them.
fn flags_of_bits(bits: i32) -> u8 {
    [
        (1, regexp_flags::INTERSECTION),
        (2, regexp_flags::COMPLEMENT),
        (4, regexp_flags::EMPTY),
        (8, regexp_flags::ANYSTRING),
        (32, regexp_flags::INTERVAL),
    ]
    .into_iter()
    .filter(|(bit, _)| bits & bit != 0)
    .fold(0, |flags, (_, flag)| flags | flag)
}

/// Reads a `fuzzy` query.
pub fn fuzzy(body: &Node) -> Result<Query, BodyError> {
    let mut query = FuzzyQuery { fuzziness: "AUTO".to_owned(), max_expansions: 50, ..FuzzyQuery::default() };
    let read = PatternClause::read("fuzzy", body, |member| {
        let node = &member.value;
        match &*member.name {
            "fuzziness" => query.fuzziness = value::text(node)?,
            "prefix_length" => query.prefix_length = value::unsigned(node, "prefix_length")?,
            "max_expansions" => query.max_expansions = value::unsigned(node, "max_expansions")?,
            "transpositions" => query.without_transpositions = !value::boolean(node)?,
            "rewrite" => query.rewrite = rewrite(node)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    (query.field, query.value) = (read.field, read.value);
    Ok(read.common.query(QueryKind::Fuzzy(query)))
}

/// Reads the `rewrite` parameter, which says how the matching terms are scored; `None` for null.
pub(super) fn rewrite(node: &Node) -> Result<Option<Rewrite>, BodyError> {
    let Some(name) = value::optional_text(node)? else { return Ok(None) };
    let count = |prefix: &str| name.strip_prefix(prefix).and_then(|count| count.parse::<usize>().ok());
    Ok(Some(match name.as_str() {
        "constant_score"
        | "constant_score_boolean"
        | "constant_score_blended"
        | "constant_score_auto"
        | "constant_score_filter" => Rewrite::Constant,
        "scoring_boolean" => Rewrite::ScoringBoolean,
        _ => {
            if let Some(count) = count("top_terms_boost_") {
                Rewrite::TopTermsBoost(count)
            } else if let Some(count) = count("top_terms_blended_freqs_") {
                Rewrite::TopTermsBlended(count)
            } else if let Some(count) = count("top_terms_") {
                Rewrite::TopTerms(count)
            } else {
                return Err(BodyError::illegal(format!("Failed to parse rewrite_method [{name}]")));
            }
        }
    }))
}
