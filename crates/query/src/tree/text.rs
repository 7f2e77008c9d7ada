//! Queries over analysed text.

use super::term::{RegexpQuery, Rewrite};

/// How the terms of a text are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Operator {
    /// Any term.
    #[default]
    Or,
    /// All terms.
    And,
}

/// What a text without any term left after analysis matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ZeroTerms {
    /// Nothing.
    #[default]
    None,
    /// Everything.
    All,
}

/// `match`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchQuery {
    /// Field path.
    pub field: String,
    /// The text, or the number or boolean as text.
    pub text: String,
    /// How its terms are joined.
    pub operator: Operator,
    /// As Elasticsearch writes it: `2`, `-1`, `75%`, `-25%`, `3<90%`.
    pub minimum_should_match: Option<String>,
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// `AUTO`, `AUTO:low,high`, `0`, `1`, `2`.
    pub fuzziness: Option<String>,
    /// Characters at the start that fuzzy terms must share.
    pub prefix_length: usize,
    /// Most terms that a fuzzy term, or a prefix, expands to; 50 unless given (0 is read as 50).
    pub max_expansions: usize,
    /// A swap of two neighbouring letters counts as two edits.
    pub without_transpositions: bool,
    /// How the terms score that a fuzzy term expands to; `None` is Lucene's blended scores.
    pub fuzzy_rewrite: Option<Rewrite>,
    /// Synonyms of several words match without regard to their order.
    pub without_synonym_phrases: bool,
    /// A value of a wrong type matches nothing instead of failing.
    pub lenient: bool,
    /// What a text without terms matches.
    pub zero_terms_query: ZeroTerms,
}

/// `match_phrase`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchPhraseQuery {
    /// Field path.
    pub field: String,
    /// The text.
    pub text: String,
    /// Moves allowed between the terms.
    pub slop: u32,
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// What a text without terms matches.
    pub zero_terms_query: ZeroTerms,
}

/// `match_phrase_prefix`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchPhrasePrefixQuery {
    /// The phrase; its last term is the prefix.
    pub phrase: MatchPhraseQuery,
    /// Most terms that the prefix expands to; 50 unless given (0 is read as 50).
    pub max_expansions: usize,
}

/// How the scores of several fields are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MultiMatchType {
    /// The best field counts, others by the tie breaker.
    #[default]
    BestFields,
    /// All fields add up.
    MostFields,
    /// Each term may be in any field; fields with one analyzer share statistics.
    CrossFields,
    /// As best fields, each field matched as a phrase.
    Phrase,
    /// As best fields, each field matched as a phrase whose last term is a prefix.
    PhrasePrefix,
    /// As most fields, the last term of the text a prefix.
    BoolPrefix,
}

impl MultiMatchType {
    /// Share of the scores of other fields, unless a query says it.
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

/// `multi_match`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MultiMatchQuery {
    /// Fields with boosts; names may hold `*`.
    pub fields: Vec<(String, f32)>,
    /// How the scores of the fields are joined.
    pub kind: MultiMatchType,
    /// Share of the other fields' scores; `None` is what [`MultiMatchType::tie_breaker`] says.
    pub tie_breaker: Option<f32>,
    /// Text and options, as for one field; `field` is not read.
    pub template: MatchQuery,
    /// Moves allowed between the terms of a phrase.
    pub slop: u32,
    /// Leaves out a field where an index has it as `semantic_text`, instead of refusing it.
    pub words_only: bool,
}

/// `combined_fields`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CombinedFieldsQuery {
    /// Text fields with boosts of at least 1; names may hold `*`.
    pub fields: Vec<(String, f32)>,
    /// The text.
    pub text: String,
    /// How its terms are joined.
    pub operator: Operator,
    /// As in [`MatchQuery`].
    pub minimum_should_match: Option<String>,
    /// What a text without terms matches.
    pub zero_terms_query: ZeroTerms,
    /// As in [`MatchQuery`].
    pub without_synonym_phrases: bool,
}

/// `query_string`.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryStringQuery {
    /// The text in Lucene's syntax.
    pub query: String,
    /// Field for terms that name none; `*` for all that can be searched.
    pub default_field: Option<String>,
    /// Fields with boosts for terms that name none; wins over `default_field`.
    pub fields: Vec<(String, f32)>,
    /// How clauses without an operator are joined.
    pub default_operator: Operator,
    /// Analyzer instead of the fields' own.
    pub analyzer: Option<String>,
    /// Parts of a wildcard term are analysed (lowercased here).
    pub analyze_wildcard: bool,
    /// Whether a term may start with `*` or `?`.
    pub allow_leading_wildcard: bool,
    /// Values of a wrong type match nothing instead of failing.
    pub lenient: bool,
    /// Slop of phrases that state none.
    pub phrase_slop: u32,
    /// Fuzziness of `~` without a number.
    pub fuzziness: Option<String>,
    /// Characters at the start that fuzzy terms must share.
    pub fuzzy_prefix_length: usize,
    /// Most terms that a fuzzy term expands to.
    pub fuzzy_max_expansions: usize,
    /// As in [`MatchQuery`].
    pub minimum_should_match: Option<String>,
    /// How the scores of several fields are joined.
    pub kind: MultiMatchType,
    /// Share of the other fields' scores.
    pub tie_breaker: Option<f32>,
    /// Escapes the whole text, so that no character is an operator.
    pub escape: bool,
    /// Zone of dates in ranges.
    pub time_zone: Option<String>,
    /// Analyzer of quoted texts instead of `analyzer`.
    pub quote_analyzer: Option<String>,
    /// Quoted texts are searched in the fields with this ending, where there are such.
    pub quote_field_suffix: Option<String>,
    /// As in [`MatchQuery`].
    pub without_transpositions: bool,
    /// As in [`MatchQuery`].
    pub fuzzy_rewrite: Option<Rewrite>,
    /// How the terms of prefixes, wildcards and regular expressions score.
    pub rewrite: Rewrite,
    /// As in [`MatchQuery`].
    pub without_synonym_phrases: bool,
    /// As in [`RegexpQuery`].
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
    /// Lucene's syntax with every option at its default.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }
}

/// `simple_query_string`.
#[derive(Debug, Clone, PartialEq)]
pub struct SimpleQueryStringQuery {
    /// The text.
    pub query: String,
    /// Fields with boosts; all that can be searched if there are none.
    pub fields: Vec<(String, f32)>,
    /// How clauses without an operator are joined.
    pub default_operator: Operator,
    /// Operators that have their meaning, see [`simple_flags`].
    pub flags: u16,
    /// Analyzer instead of the fields' own.
    pub analyzer: Option<String>,
    /// Parts of a prefix are analysed.
    pub analyze_wildcard: bool,
    /// Values of a wrong type match nothing instead of failing.
    pub lenient: bool,
    /// Characters at the start that fuzzy terms must share.
    pub fuzzy_prefix_length: usize,
    /// Most terms that a fuzzy term expands to.
    pub fuzzy_max_expansions: usize,
    /// As in [`MatchQuery`].
    pub without_transpositions: bool,
    /// As in [`MatchQuery`].
    pub minimum_should_match: Option<String>,
    /// Quoted texts are searched in the fields with this ending, where there are such.
    pub quote_field_suffix: Option<String>,
    /// As in [`MatchQuery`].
    pub without_synonym_phrases: bool,
}

/// Operators of [`SimpleQueryStringQuery`].
pub mod simple_flags {
    /// `+`
    pub const AND: u16 = 1;
    /// `-`
    pub const NOT: u16 = 1 << 1;
    /// `|`
    pub const OR: u16 = 1 << 2;
    /// `*` at the end of a term
    pub const PREFIX: u16 = 1 << 3;
    /// `"`
    pub const PHRASE: u16 = 1 << 4;
    /// `(` and `)`
    pub const PRECEDENCE: u16 = 1 << 5;
    /// `\\`
    pub const ESCAPE: u16 = 1 << 6;
    /// White space between terms
    pub const WHITESPACE: u16 = 1 << 7;
    /// `~N` after a term
    pub const FUZZY: u16 = 1 << 8;
    /// `~N` after a phrase
    pub const NEAR: u16 = 1 << 9;
    /// All of them.
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
