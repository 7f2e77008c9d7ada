//! Texts in Lucene’s syntax and in the simple one of search boxes: `query_string`, `simple_query_string`.

use std::fmt;

use super::dsl::{Common, Context, members, not_supported, unknown_token, value};
use super::multi_match::{boosted_fields, multi_match_type, tie_breaker, type_shape};
use super::patterns::states;
use super::rewrite::{rewrite, rewrite_shape};
use super::shape::{Shape, clause, count, flag, int, list, scalar, text};
use super::text::{analyzer, fuzziness, lenient, minimum, operator, operator_shape, synonyms};
use super::{no_children, unboosted};
use crate::{Clause, MultiMatchType, Operator, Query, QueryKind, RegexpQuery, Rewrite};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// A `query_string` query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryStringQuery {
    /// The text in Lucene's syntax.
    pub query: String,
    /// Field for terms that name none; `*` for all that can be searched.
    pub default_field: Option<String>,
    /// Fields with boosts for terms that name none; wins over `default_field`.
    pub fields: Vec<(String, f32)>,
    /// Whether any or all clauses without an operator have to match.
    pub default_operator: Operator,
    /// Analyzer instead of the fields' own.
    pub analyzer: Option<String>,
    /// Whether the literal parts of wildcard terms are analysed, which here means lowercased.
    pub analyze_wildcard: bool,
    /// Whether a term may start with `*` or `?`.
    pub allow_leading_wildcard: bool,
    /// Whether a value of a wrong type matches nothing instead of being an error.
    pub lenient: bool,
    /// Slop of phrases that state none.
    pub phrase_slop: u32,
    /// Fuzziness of `~` without a number.
    pub fuzziness: Option<String>,
    /// Number of characters at the start that a fuzzy term has to have in common.
    pub fuzzy_prefix_length: usize,
    /// Largest number of terms that a fuzzy term is expanded to.
    pub fuzzy_max_expansions: usize,
    /// As [`MatchQuery::minimum_should_match`].
    pub minimum_should_match: Option<String>,
    /// How a term is matched in several fields, and how their scores are combined.
    pub kind: MultiMatchType,
    /// Share of the other fields' scores.
    pub tie_breaker: Option<f32>,
    /// Escapes the whole text, so that no character is an operator.
    pub escape: bool,
    /// Time zone of dates in ranges.
    pub time_zone: Option<String>,
    /// Analyzer of quoted texts instead of `analyzer`.
    pub quote_analyzer: Option<String>,
    /// Suffix of field names: quoted texts are searched in the fields with this suffix, where they exist.
    pub quote_field_suffix: Option<String>,
    /// As [`MatchQuery::without_transpositions`].
    pub without_transpositions: bool,
    /// As [`MatchQuery::fuzzy_rewrite`].
    pub fuzzy_rewrite: Option<Rewrite>,
    /// How the terms that prefixes, wildcards and regular expressions match are scored.
    pub rewrite: Rewrite,
    /// As [`MatchQuery::without_synonym_phrases`].
    pub without_synonym_phrases: bool,
    /// As [`RegexpQuery::max_determinized_states`].
    pub max_determinized_states: usize,
}

impl Default for QueryStringQuery {
    fn default() -> Self {
        Self {
            query: String::new(),
            default_field: None,
            fields: Vec::new(),
            default_operator: Operator::Or,
            analyzer: None,
            analyze_wildcard: false,
            allow_leading_wildcard: true,
            lenient: false,
            phrase_slop: 0,
            fuzziness: None,
            fuzzy_prefix_length: 0,
            fuzzy_max_expansions: 50,
            minimum_should_match: None,
            kind: MultiMatchType::BestFields,
            tie_breaker: None,
            escape: false,
            time_zone: None,
            quote_analyzer: None,
            quote_field_suffix: None,
            without_transpositions: false,
            fuzzy_rewrite: None,
            rewrite: Rewrite::Constant,
            without_synonym_phrases: false,
            max_determinized_states: RegexpQuery::MAX_STATES,
        }
    }
}

impl QueryStringQuery {
    /// A query for a text in Lucene's syntax, with every option at its default.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }
}

/// A `simple_query_string` query.
#[derive(Debug, Clone, PartialEq)]
pub struct SimpleQueryStringQuery {
    /// The text in the simple syntax.
    pub query: String,
    /// Fields with boosts; empty for all searchable fields.
    pub fields: Vec<(String, f32)>,
    /// Whether any or all clauses without an operator have to match.
    pub default_operator: Operator,
    /// Bit mask of the operators that are enabled, see [`simple_flags`].
    pub flags: u16,
    /// Analyzer instead of the fields' own.
    pub analyzer: Option<String>,
    /// Whether prefixes are analysed.
    pub analyze_wildcard: bool,
    /// Whether a value of a wrong type matches nothing instead of being an error.
    pub lenient: bool,
    /// Number of characters at the start that a fuzzy term has to have in common.
    pub fuzzy_prefix_length: usize,
    /// Largest number of terms that a fuzzy term is expanded to.
    pub fuzzy_max_expansions: usize,
    /// As [`MatchQuery::without_transpositions`].
    pub without_transpositions: bool,
    /// As [`MatchQuery::minimum_should_match`].
    pub minimum_should_match: Option<String>,
    /// Suffix of field names: quoted texts are searched in the fields with this suffix, where they exist.
    pub quote_field_suffix: Option<String>,
    /// As [`MatchQuery::without_synonym_phrases`].
    pub without_synonym_phrases: bool,
}

impl Default for SimpleQueryStringQuery {
    fn default() -> Self {
        Self {
            query: String::new(),
            fields: Vec::new(),
            default_operator: Operator::Or,
            flags: simple_flags::ALL,
            analyzer: None,
            analyze_wildcard: false,
            lenient: false,
            fuzzy_prefix_length: 0,
            fuzzy_max_expansions: 50,
            without_transpositions: false,
            minimum_should_match: None,
            quote_field_suffix: None,
            without_synonym_phrases: false,
        }
    }
}

/// Bits for the operators of [`SimpleQueryStringQuery`].
pub mod simple_flags {
    /// `+`: all terms have to match.
    pub const AND: u16 = 1;
    /// `-`: the term must not match.
    pub const NOT: u16 = 1 << 1;
    /// `|`: any of the terms is enough.
    pub const OR: u16 = 1 << 2;
    /// `*` at the end of a term: a prefix.
    pub const PREFIX: u16 = 1 << 3;
    /// `"`: a phrase.
    pub const PHRASE: u16 = 1 << 4;
    /// `(` and `)`: precedence.
    pub const PRECEDENCE: u16 = 1 << 5;
    /// `\\`: an escaped character.
    pub const ESCAPE: u16 = 1 << 6;
    /// White space that separates terms.
    pub const WHITESPACE: u16 = 1 << 7;
    /// `~N` after a term: the largest number of edits.
    pub const FUZZY: u16 = 1 << 8;
    /// `~N` after a phrase: its slop.
    pub const NEAR: u16 = 1 << 9;
    /// All operators.
    pub const ALL: u16 = (1 << 10) - 1;
}

/// What the body of a `query_string` query holds.
pub(super) fn query_string_shape() -> Shape {
    clause([
        ("query", scalar().about("a query in Lucene's syntax")),
        ("fields", list(text())),
        ("default_field", text()),
        ("default_operator", operator_shape()),
        ("analyzer", analyzer()),
        ("quote_analyzer", text()),
        ("quote_field_suffix", text()),
        ("lenient", lenient()),
        ("type", type_shape()),
        ("tie_breaker", tie_breaker()),
        ("analyze_wildcard", flag().preset(false)),
        ("allow_leading_wildcard", flag().preset(true)),
        ("phrase_slop", int().preset(0)),
        ("fuzziness", fuzziness()),
        ("fuzzy_prefix_length", int()),
        ("fuzzy_max_expansions", int()),
        ("fuzzy_transpositions", flag()),
        ("fuzzy_rewrite", rewrite_shape()),
        ("rewrite", rewrite_shape()),
        ("minimum_should_match", minimum()),
        ("escape", flag()),
        ("time_zone", text()),
        ("auto_generate_synonyms_phrase_query", synonyms()),
        ("enable_position_increments", flag()),
        ("max_determinized_states", states()),
    ])
    .needs(&["query"])
}

/// Reads a `query_string` query.
pub(super) fn query_string(body: &Node, _: Context) -> Result<Query, BodyError> {
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

/// What the body of a `simple_query_string` query holds.
pub(super) fn simple_query_string_shape() -> Shape {
    clause([
        ("query", scalar()),
        ("fields", list(text())),
        ("analyzer", analyzer()),
        ("default_operator", operator_shape()),
        ("lenient", lenient()),
        ("flags", count()),
        ("analyze_wildcard", flag()),
        ("minimum_should_match", minimum()),
        ("quote_field_suffix", text()),
        ("auto_generate_synonyms_phrase_query", synonyms()),
        ("fuzzy_prefix_length", int()),
        ("fuzzy_max_expansions", int()),
        ("fuzzy_transpositions", flag()),
    ])
    .needs(&["query"])
}

/// Reads a `simple_query_string` query.
pub(super) fn simple_query_string(body: &Node, _: Context) -> Result<Query, BodyError> {
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

impl Clause for QueryStringQuery {
    fn lucene_name(&self) -> &'static str {
        "QueryStringQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.query)
    }

    no_children!();

    fn set_default_fields(&mut self, fields: &[String]) {
        if self.default_field.is_none() && self.fields.is_empty() {
            match fields {
                [one] => self.default_field = Some(one.clone()),
                _ => self.fields = unboosted(fields),
            }
        }
    }
}

impl Clause for SimpleQueryStringQuery {
    fn lucene_name(&self) -> &'static str {
        "SimpleQueryStringQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.query)
    }

    no_children!();

    fn set_default_fields(&mut self, fields: &[String]) {
        if self.fields.is_empty() {
            self.fields = unboosted(fields);
        }
    }
}
