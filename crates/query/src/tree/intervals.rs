//! `intervals` queries: rules about the positions of words in a text.

use std::ops::Bound;

/// An `intervals` query.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsQuery {
    /// Path of a text field.
    pub field: String,
    /// The rule that an interval of the text has to satisfy.
    pub rule: IntervalsRule,
}

/// A rule that selects intervals, which are ranges of word positions in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsRule {
    /// Which intervals the rule selects.
    pub source: IntervalsSource,
    /// A condition on the intervals' positions relative to those of another rule.
    pub filter: Option<Box<IntervalsFilter>>,
}

/// The kinds of rules that select intervals.
#[derive(Debug, Clone, PartialEq)]
pub enum IntervalsSource {
    /// Intervals that contain all words of a text.
    Match {
        /// The text that is analysed into words.
        text: String,
        /// Largest number of words in between, and whether their order counts.
        order: IntervalsOrder,
        /// Analyzer and field for the words.
        words: IntervalsWords,
    },
    /// Words that start with this prefix.
    Prefix(String, IntervalsWords),
    /// Words that match a pattern of `*` and `?`.
    Wildcard(String, IntervalsWords),
    /// Words that a regular expression matches.
    Regexp(String, IntervalsWords),
    /// Words between two bounds, in byte order.
    Range(Bound<String>, Bound<String>, IntervalsWords),
    /// Words within an edit distance of a given one.
    Fuzzy {
        /// The given word.
        term: String,
        /// Largest number of edits: `AUTO`, `0`, `1` or `2`.
        fuzziness: String,
        /// Number of letters at the start that have to be equal.
        prefix_length: usize,
        /// Whether swapping two neighbouring letters counts as two edits instead of one.
        without_transpositions: bool,
        /// Analyzer and field for the word.
        words: IntervalsWords,
    },
    /// Intervals that combine one of each rule.
    AllOf(Vec<IntervalsRule>, IntervalsOrder),
    /// Intervals of any of the rules.
    AnyOf(Vec<IntervalsRule>),
}

/// How the parts of a combined interval may be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalsOrder {
    /// Largest number of words between the parts; `None` for no limit.
    pub max_gaps: Option<u32>,
    /// Whether the parts have to be in the order of the request and must not overlap.
    pub ordered: bool,
}

/// Analyzer and field for the words of a rule, where they differ from those of the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalsWords {
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// Path of another field in which the words are searched.
    pub use_field: Option<String>,
}

/// A condition on the positions of intervals relative to those of another rule.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsFilter {
    /// The required relation to the other rule's intervals.
    pub relation: IntervalsRelation,
    /// The rule that selects the other intervals.
    pub rule: IntervalsRule,
}

/// How an interval has to be placed relative to other intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalsRelation {
    /// It comes after one of them.
    After,
    /// It comes before one of them.
    Before,
    /// It lies inside one of them.
    ContainedBy,
    /// It contains one of them.
    Containing,
    /// It lies inside none of them.
    NotContainedBy,
    /// It contains none of them.
    NotContaining,
    /// It shares no position with any of them.
    NotOverlapping,
    /// It shares a position with one of them.
    Overlapping,
}
