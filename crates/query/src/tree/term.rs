//! Queries over exact values and patterns.

use serde_json::Value;

/// How the terms that a pattern stands for are scored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rewrite {
    /// Every match scores 1.
    #[default]
    Constant,
    /// The scores of all matching terms add up; more than 1024 terms are an error.
    ScoringBoolean,
    /// The scores of the first terms add up.
    TopTerms(usize),
    /// Each of the first terms adds 1, or less for a fuzzy term farther away.
    TopTermsBoost(usize),
    /// As `TopTerms`, all terms with the frequency of the most frequent one.
    TopTermsBlended(usize),
}

/// `regexp`, in Lucene's syntax.
#[derive(Debug, Clone, PartialEq)]
pub struct RegexpQuery {
    /// Field path.
    pub field: String,
    /// The expression, not analysed.
    pub value: String,
    /// Optional operators that have their meaning, see [`regexp_flags`].
    pub flags: u8,
    /// ASCII case is ignored.
    pub case_insensitive: bool,
    /// Most states of the automaton.
    pub max_determinized_states: usize,
    /// How the matching terms score.
    pub rewrite: Rewrite,
}

impl RegexpQuery {
    /// States of an automaton unless a query says it.
    pub const MAX_STATES: usize = 10_000;

    /// An expression with every option at its default.
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

/// Optional operators of [`RegexpQuery`].
pub mod regexp_flags {
    /// `&`
    pub const INTERSECTION: u8 = 1;
    /// `~`
    pub const COMPLEMENT: u8 = 1 << 1;
    /// `#`
    pub const EMPTY: u8 = 1 << 2;
    /// `@`
    pub const ANYSTRING: u8 = 1 << 3;
    /// `<1-20>`
    pub const INTERVAL: u8 = 1 << 4;
    /// All of them.
    pub const ALL: u8 = (1 << 5) - 1;
}

/// `fuzzy`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FuzzyQuery {
    /// Field path.
    pub field: String,
    /// The term, not analysed.
    pub value: String,
    /// As in [`super::MatchQuery`].
    pub fuzziness: String,
    /// As in [`super::MatchQuery`].
    pub prefix_length: usize,
    /// As in [`super::MatchQuery`].
    pub max_expansions: usize,
    /// As in [`super::MatchQuery`].
    pub without_transpositions: bool,
    /// How the terms score; `None` is Lucene's blended scores.
    pub rewrite: Option<Rewrite>,
}

/// `terms` with the values of another document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TermsLookupQuery {
    /// Field path that is searched.
    pub field: String,
    /// Index of the document.
    pub index: String,
    /// Id of the document that is looked up.
    pub id: String,
    /// Path of the values in it.
    pub path: String,
}

/// `terms_set`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TermsSetQuery {
    /// Field path.
    pub field: String,
    /// Strings, numbers or booleans.
    pub values: Vec<Value>,
    /// How many must match.
    pub minimum: TermsSetMinimum,
}

/// How many values of a `terms_set` must match.
#[derive(Debug, Clone, PartialEq)]
pub enum TermsSetMinimum {
    /// What a numeric field of the document says.
    Field(String),
    /// As in [`super::MatchQuery`].
    Spec(String),
}

impl Default for TermsSetMinimum {
    fn default() -> Self {
        TermsSetMinimum::Spec("1".to_owned())
    }
}

/// `range`; a bound that is absent is open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RangeQuery {
    /// Field path.
    pub field: String,
    /// Greater than.
    pub gt: Option<Value>,
    /// Greater than or equal.
    pub gte: Option<Value>,
    /// Less than.
    pub lt: Option<Value>,
    /// Less than or equal.
    pub lte: Option<Value>,
    /// Date format instead of the field's, `||` between alternatives.
    pub format: Option<String>,
    /// `+01:00`, `Z`, `UTC`: zone of dates that state none and of date rounding.
    pub time_zone: Option<String>,
}
