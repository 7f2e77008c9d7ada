//! Queries over analysed text.

use super::term::{RegexpQuery, Rewrite};

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

/// How a text is matched in several fields, and how their scores are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MultiMatchType {
    /// The score of the best field, plus the tie breaker's share of the others.
    #[default]
    BestFields,
    /// The sum of all fields' scores.
    MostFields,
    /// Each term may be in any of the fields; those with the same analyzer share their statistics.
    CrossFields,
    /// As best fields, each field matched as a phrase.
    Phrase,
    /// As best fields, each field matched as a phrase whose last term is a prefix.
    PhrasePrefix,
    /// As most fields, the last term of the text a prefix.
    BoolPrefix,
}

impl MultiMatchType {
    /// Default share of the other fields' scores, from 0 to 1.
    pub fn tie_breaker(self) -> f32 {
        match self {
            MultiMatchType::MostFields | MultiMatchType::BoolPrefix => 1.0,
            MultiMatchType::BestFields
            | MultiMatchType::CrossFields
            | MultiMatchType::Phrase
            | MultiMatchType::PhrasePrefix => 0.0,
        }
    }
}

/// A `multi_match` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MultiMatchQuery {
    /// Fields with boosts; names may hold `*`.
    pub fields: Vec<(String, f32)>,
    /// How the text is matched in the fields, and how their scores are combined.
    pub kind: MultiMatchType,
    /// Share of the other fields' scores; by default [`MultiMatchType::tie_breaker`].
    pub tie_breaker: Option<f32>,
    /// The text and the options that apply in each field; its `field` is ignored.
    pub template: MatchQuery,
    /// Number of positions by which the terms of a phrase may be moved.
    pub slop: u32,
    /// Whether `semantic_text` fields are left out instead of being an error.
    pub words_only: bool,
}

/// A `combined_fields` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CombinedFieldsQuery {
    /// Text fields with boosts of at least 1; names may hold `*`.
    pub fields: Vec<(String, f32)>,
    /// The text to analyse.
    pub text: String,
    /// Whether any or all of the text's terms have to match.
    pub operator: Operator,
    /// As [`MatchQuery::minimum_should_match`].
    pub minimum_should_match: Option<String>,
    /// What the query matches if no term of the text is left after analysis.
    pub zero_terms_query: ZeroTerms,
    /// As [`MatchQuery::without_synonym_phrases`].
    pub without_synonym_phrases: bool,
}

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
