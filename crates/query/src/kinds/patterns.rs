//! Queries over patterns of terms: `prefix`, `wildcard`, `regexp`, `fuzzy`.

use std::fmt;

use super::dsl::{Common, Context, not_supported, single_field, unknown_token, value};
use super::no_children;
use super::rewrite::{rewrite, rewrite_shape};
use super::shape::{Shape, field_or_value, flag, int, text};
use super::term::{caseless, exact_value, plain_text};
use super::text::fuzziness;
use crate::{Clause, Query, QueryKind, Rewrite};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Member, Node};

/// A `prefix` query: keywords or terms that start with a prefix; score 1.
#[derive(Debug, Clone, PartialEq)]
pub struct PrefixQuery {
    /// Path of the field to search.
    pub field: String,
    /// The prefix, not analysed.
    pub value: String,
    /// ASCII case is ignored.
    pub case_insensitive: bool,
    /// How the matching terms score.
    pub rewrite: Rewrite,
}

/// A `wildcard` query: keywords or terms that match a pattern of `*` and `?`; score 1.
#[derive(Debug, Clone, PartialEq)]
pub struct WildcardQuery {
    /// Path of the field to search.
    pub field: String,
    /// The pattern, not analysed.
    pub value: String,
    /// ASCII case is ignored.
    pub case_insensitive: bool,
    /// How the matching terms score.
    pub rewrite: Rewrite,
}

/// A `regexp` query, in Lucene's syntax.
#[derive(Debug, Clone, PartialEq)]
pub struct RegexpQuery {
    /// Path of the field to search.
    pub field: String,
    /// The expression, not analysed.
    pub value: String,
    /// Bit mask of the optional operators that are enabled, see [`regexp_flags`].
    pub flags: u8,
    /// Whether ASCII letters match regardless of case.
    pub case_insensitive: bool,
    /// Largest number of states that the automaton of the expression may have.
    pub max_determinized_states: usize,
    /// How the matching terms score.
    pub rewrite: Rewrite,
}

impl RegexpQuery {
    /// Default of the largest number of states that an automaton may have.
    pub const MAX_STATES: usize = 10_000;

    /// A query for a regular expression, with every option at its default.
    pub fn new(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            value: value.into(),
            flags: regexp_flags::ALL,
            case_insensitive: false,
            max_determinized_states: Self::MAX_STATES,
            rewrite: Rewrite::Constant,
        }
    }
}

/// Bits for the optional operators of [`RegexpQuery`].
pub mod regexp_flags {
    /// `&`: both expressions have to match.
    pub const INTERSECTION: u8 = 1;
    /// `~`: the following expression must not match.
    pub const COMPLEMENT: u8 = 1 << 1;
    /// `#`: matches no text at all.
    pub const EMPTY: u8 = 1 << 2;
    /// `@`: matches any text.
    pub const ANYSTRING: u8 = 1 << 3;
    /// `<1-20>`: matches numbers between two bounds.
    pub const INTERVAL: u8 = 1 << 4;
    /// All optional operators.
    pub const ALL: u8 = (1 << 5) - 1;
}

/// A `fuzzy` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FuzzyQuery {
    /// Path of the field to search.
    pub field: String,
    /// The term, not analysed.
    pub value: String,
    /// As [`super::MatchQuery::fuzziness`].
    pub fuzziness: String,
    /// As [`super::MatchQuery::prefix_length`].
    pub prefix_length: usize,
    /// As [`super::MatchQuery::max_expansions`].
    pub max_expansions: usize,
    /// As [`super::MatchQuery::without_transpositions`].
    pub without_transpositions: bool,
    /// How the matching terms are scored; `None` for Lucene's blended scores.
    pub rewrite: Option<Rewrite>,
}

/// What the body of a `prefix` query holds.
pub(super) fn prefix_shape() -> Shape {
    field_or_value(&["value"], [("case_insensitive", caseless()), ("rewrite", rewrite_shape())])
}

/// How large an automaton may become.
pub(super) fn states() -> Shape {
    int().about("states that an automaton may have").preset(10_000)
}

/// Reads a `prefix` query.
pub(super) fn prefix(body: &Node, _: Context) -> Result<Query, BodyError> {
    let exact = exact_value("prefix", &["value"], body)?;
    Ok(exact.common.query(QueryKind::Prefix(PrefixQuery {
        field: exact.field,
        value: plain_text(&exact.value),
        case_insensitive: exact.case_insensitive,
        rewrite: exact.rewrite,
    })))
}

/// What the body of a `wildcard` query holds.
pub(super) fn wildcard_shape() -> Shape {
    field_or_value(&["value", "wildcard"], [("case_insensitive", caseless()), ("rewrite", rewrite_shape())])
}

/// Reads a `wildcard` query.
pub(super) fn wildcard(body: &Node, _: Context) -> Result<Query, BodyError> {
    let exact = exact_value("wildcard", &["value", "wildcard"], body)?;
    Ok(exact.common.query(QueryKind::Wildcard(WildcardQuery {
        field: exact.field,
        value: plain_text(&exact.value),
        case_insensitive: exact.case_insensitive,
        rewrite: exact.rewrite,
    })))
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
pub(super) const MOST_STATES: usize = 100_000;

/// What the body of a `regexp` query holds.
pub(super) fn regexp_shape() -> Shape {
    field_or_value(
        &["value"],
        [
            ("flags", text()),
            ("flags_value", int()),
            ("case_insensitive", caseless()),
            ("max_determinized_states", states()),
            ("rewrite", rewrite_shape()),
        ],
    )
}

/// Reads a `regexp` query.
pub(super) fn regexp(body: &Node, _: Context) -> Result<Query, BodyError> {
    let mut query = RegexpQuery::new("", "");
    let read = PatternClause::read("regexp", body, |member| {
        let node = &member.value;
        match &*member.name {
            "case_insensitive" => query.case_insensitive = value::boolean(node)?,
            "rewrite" => query.rewrite = rewrite(node)?.unwrap_or_default(),
            _ => return regexp_option(&mut query, member),
        }
        Ok(true)
    })?;
    (query.field, query.value) = (read.field, read.value);
    Ok(read.common.query(QueryKind::Regexp(query)))
}

/// Reads a parameter that all regular expressions have; returns whether it is one.
///
/// # Errors
/// When its value is invalid.
pub fn regexp_option(query: &mut RegexpQuery, member: &Member) -> Result<bool, BodyError> {
    let node = &member.value;
    match &*member.name {
        "flags" => query.flags = flags(&value::text(node)?)?,
        "flags_value" => query.flags = flags_of_bits(value::int(node)?),
        "max_determinized_states" => {
            query.max_determinized_states =
                value::unsigned(node, "max_determinized_states")?.min(MOST_STATES);
        }
        _ => return Ok(false),
    }
    Ok(true)
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

/// What the body of a `fuzzy` query holds.
pub(super) fn fuzzy_shape() -> Shape {
    field_or_value(
        &["value"],
        [
            ("fuzziness", fuzziness()),
            ("prefix_length", int().preset(0)),
            ("max_expansions", int().preset(50)),
            ("transpositions", flag().preset(true)),
            ("rewrite", rewrite_shape()),
        ],
    )
}

/// Reads a `fuzzy` query.
pub(super) fn fuzzy(body: &Node, _: Context) -> Result<Query, BodyError> {
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

impl Clause for PrefixQuery {
    fn lucene_name(&self) -> &'static str {
        "PrefixQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}*", self.field, self.value)
    }

    no_children!();
}

impl Clause for WildcardQuery {
    fn lucene_name(&self) -> &'static str {
        "WildcardQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.field, self.value)
    }

    no_children!();
}

impl Clause for RegexpQuery {
    fn lucene_name(&self) -> &'static str {
        "RegexpQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:/{}/", self.field, self.value)
    }

    no_children!();
}

impl Clause for FuzzyQuery {
    fn lucene_name(&self) -> &'static str {
        "FuzzyQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}~", self.field, self.value)
    }

    no_children!();
}
