//! Queries over analysed text in one field: `match`, `match_bool_prefix`, `match_phrase`, `match_phrase_prefix`.

use std::fmt;

use super::dsl::{Common, Context, no_text, not_supported, single_field, unknown_token, value};
use super::no_children;
use super::rewrite::{rewrite, rewrite_shape};
use super::shape::{Named, Shape, count, field_or_value, flag, int, one, text};
use crate::{Clause, Query, QueryKind, Rewrite};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

/// Whether any or all terms of a text have to match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Operator {
    /// Any of the terms is enough.
    #[default]
    Or,
    /// All of the terms have to match.
    And,
}

/// What a text matches if no term of it is left after analysis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ZeroTerms {
    /// No document.
    #[default]
    None,
    /// Every document.
    All,
}

/// A `match` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchQuery {
    /// Path of the field to search.
    pub field: String,
    /// The text to analyse; a number or boolean as text.
    pub text: String,
    /// Whether any or all of the text's terms have to match.
    pub operator: Operator,
    /// Number or share of the terms that have to match, in Elasticsearch's syntax: `2`, `-1`, `75%`, `-25%`, `3<90%`.
    pub minimum_should_match: Option<String>,
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// Largest number of edits by which a term may differ: `AUTO`, `AUTO:low,high`, `0`, `1`, `2`.
    pub fuzziness: Option<String>,
    /// Number of characters at the start that a fuzzy term has to have in common.
    pub prefix_length: usize,
    /// Largest number of terms that a fuzzy term or a prefix is expanded to; by default 50, and 0 stands for 50.
    pub max_expansions: usize,
    /// Whether swapping two neighbouring letters counts as two edits instead of one.
    pub without_transpositions: bool,
    /// How the terms that a fuzzy term is expanded to are scored; `None` for Lucene's blended scores.
    pub fuzzy_rewrite: Option<Rewrite>,
    /// Whether synonyms of several words match their words in any order, instead of as a phrase.
    pub without_synonym_phrases: bool,
    /// Whether a value of a wrong type matches nothing instead of being an error.
    pub lenient: bool,
    /// What the query matches if no term of the text is left after analysis.
    pub zero_terms_query: ZeroTerms,
}

/// A `match_bool_prefix` query: as a `match` query, but the last term of the text is a prefix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchBoolPrefixQuery(pub MatchQuery);

/// A `match_phrase` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchPhraseQuery {
    /// Path of the field to search.
    pub field: String,
    /// The text to analyse into a phrase.
    pub text: String,
    /// Number of positions by which terms may be moved.
    pub slop: u32,
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// What the query matches if no term of the text is left after analysis.
    pub zero_terms_query: ZeroTerms,
}

/// A `match_phrase_prefix` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchPhrasePrefixQuery {
    /// The phrase; its last term is the prefix.
    pub phrase: MatchPhraseQuery,
    /// Largest number of terms that the prefix is expanded to; by default 50, and 0 stands for 50.
    pub max_expansions: usize,
}

/// The parts that all queries over text in one field have: `{field: text}` or `{field: {"query": text, …}}`.
struct TextClause {
    field: String,
    text: String,
    common: Common,
}

impl TextClause {
    /// Reads such a query. `take` reads a member that is specific to it, and says whether the member was one.
    fn read(
        clause: &str,
        body: &Node,
        mut take: impl FnMut(&Member) -> Result<bool, BodyError>,
    ) -> Result<Self, BodyError> {
        let field = single_field(body, clause)?;
        let mut common = Common::default();
        let mut text = None;
        match field.value.as_object() {
            Some(options) => {
                for member in options {
                    if &*member.name == "query" {
                        text = query_text(clause, member)?;
                    } else if !take(member)? && !common.take(clause, member)? {
                        return Err(not_supported(clause, member));
                    }
                }
            }
            None => text = query_text(clause, field)?,
        }
        let text = text.ok_or_else(|| no_text(body.end))?;
        Ok(Self { field: field.name.to_string(), text, common })
    }
}

/// What the body of a `match` query holds.
pub(super) fn match_shape() -> Shape {
    field_or_value(&["query"], match_options())
}

/// The analyzer of the text.
pub(super) fn analyzer() -> Shape {
    text().about("analyzer of the text; otherwise that of the field")
}

/// How many optional clauses must match.
pub(super) fn minimum() -> Shape {
    count().about(
        "how many optional clauses have to match: a number, a percentage, or a combination such as `2<75%`",
    )
}

/// How far away terms may be.
pub(super) fn fuzziness() -> Shape {
    count().about("edits that a term may be away: `AUTO`, or 0 to 2")
}

/// Whether some terms or all must match.
pub(super) fn operator_shape() -> Shape {
    text().about("`or`: some term has to match; `and`: all").preset("or")
}

/// Whether synonyms of several words are phrases.
pub(super) fn synonyms() -> Shape {
    flag().about("synonyms of several words are searched as phrases").preset(true)
}

/// What a text without terms finds.
pub(super) fn zero_terms_shape() -> Shape {
    one(&["none", "all"]).about("what a text without terms finds").preset("none")
}

/// Whether values of the wrong type are errors.
pub(super) fn lenient() -> Shape {
    flag().about("values of the wrong type match nothing, instead of being an error").preset(false)
}

/// The options of a text whose terms are searched for one by one.
fn term_options() -> Vec<Named> {
    vec![
        ("operator", operator_shape()),
        ("minimum_should_match", minimum()),
        ("analyzer", analyzer()),
        ("fuzziness", fuzziness()),
        ("prefix_length", int().about("first characters that have to be the same").preset(0)),
        ("max_expansions", int().about("terms that a fuzzy or unfinished one may stand for").preset(50)),
        ("fuzzy_transpositions", flag().about("swapped neighbours are one edit").preset(true)),
        ("fuzzy_rewrite", rewrite_shape()),
    ]
}

/// The options that `match` and `multi_match` share.
pub(super) fn match_options() -> Vec<Named> {
    let others = [
        ("lenient", lenient()),
        ("zero_terms_query", zero_terms_shape()),
        ("auto_generate_synonyms_phrase_query", synonyms()),
    ];
    term_options().into_iter().chain(others).collect()
}

fn phrase_options() -> [Named; 3] {
    let slop = int().about("places that words may be moved").preset(0);
    [("analyzer", analyzer()), ("slop", slop), ("zero_terms_query", zero_terms_shape())]
}

/// Reads a `match` query.
pub(super) fn match_query(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "match";
    let mut query = default_match("");
    let read = TextClause::read(CLAUSE, body, |member| take_match_option(CLAUSE, &mut query, member))?;
    (query.field, query.text) = (read.field, read.text);
    Ok(read.common.query(QueryKind::Match(query)))
}

/// What the body of a `match_bool_prefix` query holds.
pub(super) fn match_bool_prefix_shape() -> Shape {
    field_or_value(&["query"], term_options())
}

/// Reads a `match_bool_prefix` query.
pub(super) fn match_bool_prefix(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "match_bool_prefix";
    let mut query = default_match("");
    let read = TextClause::read(CLAUSE, body, |member| match &*member.name {
        "lenient" | "zero_terms_query" | "auto_generate_synonyms_phrase_query" => Ok(false),
        _ => take_match_option(CLAUSE, &mut query, member),
    })?;
    (query.field, query.text) = (read.field, read.text);
    Ok(read.common.query(QueryKind::MatchBoolPrefix(MatchBoolPrefixQuery(query))))
}

/// What the body of a `match_phrase_prefix` query holds.
pub(super) fn match_phrase_prefix_shape() -> Shape {
    field_or_value(&["query"], phrase_options().into_iter().chain([("max_expansions", int().preset(50))]))
}

/// Reads a `match_phrase_prefix` query.
pub(super) fn match_phrase_prefix(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "match_phrase_prefix";
    let mut query = MatchPhrasePrefixQuery { max_expansions: 50, ..Default::default() };
    let read = TextClause::read(CLAUSE, body, |member| {
        if &*member.name == "max_expansions" {
            query.max_expansions = max_expansions(CLAUSE, &member.value)?;
            return Ok(true);
        }
        take_phrase_option(CLAUSE, &mut query.phrase, member)
    })?;
    (query.phrase.field, query.phrase.text) = (read.field, read.text);
    Ok(read.common.query(QueryKind::MatchPhrasePrefix(query)))
}

/// What the body of a `match_phrase` query holds.
pub(super) fn match_phrase_shape() -> Shape {
    field_or_value(&["query"], phrase_options())
}

/// Reads a `match_phrase` query.
pub(super) fn match_phrase(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "match_phrase";
    let mut query = MatchPhraseQuery::default();
    let read = TextClause::read(CLAUSE, body, |member| take_phrase_option(CLAUSE, &mut query, member))?;
    (query.field, query.text) = (read.field, read.text);
    Ok(read.common.query(QueryKind::MatchPhrase(query)))
}

/// Reads an option that `match_phrase` and `match_phrase_prefix` share; `false` if the member is not one of these options.
fn take_phrase_option(
    clause: &str,
    query: &mut MatchPhraseQuery,
    member: &Member,
) -> Result<bool, BodyError> {
    match &*member.name {
        "analyzer" => query.analyzer = value::optional_text(&member.value)?,
        "slop" => query.slop = slop(clause, &member.value)?,
        "zero_terms_query" => query.zero_terms_query = zero_terms(member)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads the operator `and` or `or`, in upper or lower case.
pub(super) fn operator(node: &Node) -> Result<Operator, BodyError> {
    let text = value::text(node)?;
    operator_named(&text)
}

/// As [`operator`], from a text.
pub fn operator_named(text: &str) -> Result<Operator, BodyError> {
    if text.eq_ignore_ascii_case("or") {
        Ok(Operator::Or)
    } else if text.eq_ignore_ascii_case("and") {
        Ok(Operator::And)
    } else {
        Err(BodyError::illegal(format!("operator needs to be either [and] or [or], but not [{text}]")))
    }
}

pub(super) fn default_match(field: &str) -> MatchQuery {
    MatchQuery { field: field.to_owned(), max_expansions: 50, ..Default::default() }
}

/// Reads an option that `match` and `multi_match` share; `false` if the member is not one of these options.
pub(super) fn take_match_option(
    clause: &str,
    query: &mut MatchQuery,
    member: &Member,
) -> Result<bool, BodyError> {
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
        "auto_generate_synonyms_phrase_query" => query.without_synonym_phrases = !value::boolean(node)?,
        "fuzzy_transpositions" => query.without_transpositions = !value::boolean(node)?,
        "fuzzy_rewrite" => query.fuzzy_rewrite = rewrite(node)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn max_expansions(clause: &str, node: &Node) -> Result<usize, BodyError> {
    match value::int(node)? {
        count if count > 0 => Ok(count as usize),
        _ => Err(BodyError::illegal(format!("[{clause}] requires maxExpansions to be positive."))),
    }
}

fn non_negative(clause: &str, what: &str, node: &Node) -> Result<usize, BodyError> {
    let value = value::int(node)?;
    usize::try_from(value)
        .map_err(|_| BodyError::illegal(format!("[{clause}] requires {what} to be non-negative.")))
}

pub(super) fn slop(clause: &str, node: &Node) -> Result<u32, BodyError> {
    let value = value::int(node)?;
    u32::try_from(value).map_err(|_| BodyError::illegal(format!("No negative slop allowed in [{clause}]")))
}

pub(super) fn query_text(clause: &str, member: &Member) -> Result<Option<String>, BodyError> {
    match member.value.json {
        Json::Null => Ok(None),
        Json::Array(_) | Json::Object(_) => Err(unknown_token(clause, member)),
        _ => value::text(&member.value).map(Some),
    }
}

pub(super) fn zero_terms(member: &Member) -> Result<ZeroTerms, BodyError> {
    let text = value::text(&member.value)?;
    if text.eq_ignore_ascii_case("none") {
        Ok(ZeroTerms::None)
    } else if text.eq_ignore_ascii_case("all") {
        Ok(ZeroTerms::All)
    } else {
        Err(BodyError::parsing(member.value.at, format!("Unsupported zero_terms_query value [{text}]")))
    }
}

impl Clause for MatchQuery {
    fn lucene_name(&self) -> &'static str {
        "MatchQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.field, self.text)
    }

    no_children!();
}

impl Clause for MatchBoolPrefixQuery {
    fn lucene_name(&self) -> &'static str {
        "MatchBoolPrefixQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}*", self.0.field, self.0.text)
    }

    no_children!();
}

impl Clause for MatchPhraseQuery {
    fn lucene_name(&self) -> &'static str {
        "MatchPhraseQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:\"{}\"", self.field, self.text)
    }

    no_children!();
}

impl Clause for MatchPhrasePrefixQuery {
    fn lucene_name(&self) -> &'static str {
        "MatchPhrasePrefixQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:\"{}*\"", self.phrase.field, self.phrase.text)
    }

    no_children!();
}
