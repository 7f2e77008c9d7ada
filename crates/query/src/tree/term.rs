//! Queries over exact values and patterns.

use serde_json::Value;

/// How the terms that a pattern matches are scored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rewrite {
    /// Every match scores 1.
    #[default]
    Constant,
    /// The scores of all matching terms add up; more than 1024 terms are an error.
    ScoringBoolean,
    /// The scores of the first terms, at most this many, add up.
    TopTerms(usize),
    /// Each of the first terms, at most this many, adds 1, or less for a fuzzy term with more edits.
    TopTermsBoost(usize),
    /// As `TopTerms`, but all terms are scored with the document frequency of the most frequent one.
    TopTermsBlended(usize),
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

/// A `terms` query whose values are read from another document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TermsLookupQuery {
    /// Path of the field to search.
    pub field: String,
    /// Name of the index of the document that is read.
    pub index: String,
    /// `_id` of the document that is read.
    pub id: String,
    /// Path of the values in the document.
    pub path: String,
}

/// A `terms_set` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TermsSetQuery {
    /// Path of the field to search.
    pub field: String,
    /// The values: strings, numbers or booleans.
    pub values: Vec<Value>,
    /// How many of the values a document has to have.
    pub minimum: TermsSetMinimum,
}

/// How many values of a `terms_set` a document has to have.
#[derive(Debug, Clone, PartialEq)]
pub enum TermsSetMinimum {
    /// As many as this numeric field of the document says.
    Field(String),
    /// As [`super::MatchQuery::minimum_should_match`].
    Spec(String),
}

impl Default for TermsSetMinimum {
    fn default() -> Self {
        TermsSetMinimum::Spec("1".to_owned())
    }
}

/// A `range` query; an absent bound is open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RangeQuery {
    /// Path of the field to search.
    pub field: String,
    /// Lower bound, exclusive.
    pub gt: Option<Value>,
    /// Lower bound, inclusive.
    pub gte: Option<Value>,
    /// Upper bound, exclusive.
    pub lt: Option<Value>,
    /// Upper bound, inclusive.
    pub lte: Option<Value>,
    /// Date format of the bounds instead of the field's; `||` separates alternatives.
    pub format: Option<String>,
    /// Time zone of bounds that state none, and of date rounding: `+01:00`, `Z` or `UTC`.
    pub time_zone: Option<String>,
}
