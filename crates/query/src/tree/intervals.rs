//! `intervals`: rules over the places at which words stand.

use std::ops::Bound;

/// `intervals`
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsQuery {
    /// Path of a text field.
    pub field: String,
    /// Which stretches of the text match.
    pub rule: IntervalsRule,
}

/// Which stretches of a text match.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsRule {
    /// What stands there.
    pub source: IntervalsSource,
    /// How they must lie to others.
    pub filter: Option<Box<IntervalsFilter>>,
}

/// What stands at a stretch.
#[derive(Debug, Clone, PartialEq)]
pub enum IntervalsSource {
    /// The words of a text.
    Match {
        /// The text.
        text: String,
        /// How far apart.
        order: IntervalsOrder,
        /// How words are read.
        words: IntervalsWords,
    },
    /// One of the words that start so.
    Prefix(String, IntervalsWords),
    /// One of the words of a pattern.
    Wildcard(String, IntervalsWords),
    /// One of the words that a regular expression matches.
    Regexp(String, IntervalsWords),
    /// One of the words between two others, in byte order.
    Range(Bound<String>, Bound<String>, IntervalsWords),
    /// One of the words near another.
    Fuzzy {
        /// The word.
        term: String,
        /// Edits.
        fuzziness: String,
        /// Letters at the start that are the same.
        prefix_length: usize,
        /// Swapped neighbours are two edits.
        without_transpositions: bool,
        /// How words are read.
        words: IntervalsWords,
    },
    /// Stretches of all rules.
    AllOf(Vec<IntervalsRule>, IntervalsOrder),
    /// A stretch of one of the rules.
    AnyOf(Vec<IntervalsRule>),
}

/// How several stretches may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalsOrder {
    /// Most words between them; `None` for any number.
    pub max_gaps: Option<u32>,
    /// In the order of the request, without overlaps.
    pub ordered: bool,
}

/// How the words of a rule are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalsWords {
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// Field whose words are looked at instead.
    pub use_field: Option<String>,
}

/// How stretches must lie to those of another rule.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsFilter {
    /// How.
    pub relation: IntervalsRelation,
    /// The other rule.
    pub rule: IntervalsRule,
}

/// How a stretch lies to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalsRelation {
    /// Behind one.
    After,
    /// Before one.
    Before,
    /// Inside one.
    ContainedBy,
    /// Around one.
    Containing,
    /// Inside none.
    NotContainedBy,
    /// Around none.
    NotContaining,
    /// Sharing no place with any.
    NotOverlapping,
    /// Sharing a place with one.
    Overlapping,
}
