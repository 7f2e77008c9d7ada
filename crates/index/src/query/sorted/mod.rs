//! Searches whose hits are ordered by columns: fields, the score, the order of writing.
//!
//! Inside a segment every key of a document is one `u64` that ascends with its place in the result
//! ([`columns`]): numbers by an order-preserving map, keywords by their ordinal in the segment's
//! dictionary, both flipped when descending. The best documents are kept by comparing these
//! ([`collect`]); only the kept ones are turned back into values, by which segments are merged. No
//! document is read.

mod collect;
mod columns;
mod scores;
mod search;
#[cfg(test)]
mod tests;
mod value;

use sparrow_types::Executors;

pub use self::search::GroupId;
pub use self::value::{SortValue, compare};

/// Most sort keys of one search: they are kept in arrays of fixed length.
pub const MAX_SORT_KEYS: usize = 32;

/// What hits are ordered by, first key first. Ties are broken by sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// Where the values come from.
    pub source: SortSource,
    /// Highest first.
    pub descending: bool,
}

/// Where the values of a sort key come from.
#[derive(Debug, Clone, PartialEq)]
pub enum SortSource {
    /// The score, a [`SortValue::Double`].
    Score,
    /// The sequence number, a [`SortValue::Long`].
    SeqNo,
    /// A field's column.
    Column(ColumnKey),
}

/// A column and how its values become one key per document.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnKey {
    /// Full path of the field; a field without a column has no values.
    pub path: String,
    /// What the values are compared as.
    pub kind: ColumnKind,
    /// Which of several values counts.
    pub mode: SortMode,
    /// What stands for a document without a value.
    pub missing: Missing,
}

/// What values of a column are compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Bytes of the text.
    Keyword,
    /// Whole numbers, dates in milliseconds, booleans as 0 and 1.
    Long,
    /// Whole numbers without a sign.
    Unsigned,
    /// Fractions.
    Double,
    /// Dates in milliseconds, as nanoseconds.
    Nanos,
}

/// Which of several values of a document counts; keywords know the first two only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortMode {
    Min,
    Max,
    Sum,
    Avg,
    Median,
}

/// What stands for a document without a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Missing {
    /// It comes before all others, whatever the direction.
    First,
    /// It comes after all others.
    Last,
    /// It is placed as if it had this value.
    Value(SortValue),
}

/// A place in the order of hits: only what comes behind it is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct After {
    /// One value per key.
    pub values: Vec<SortValue>,
    /// Which hits of exactly these values come behind it.
    pub ties: Ties,
}

/// Which of the hits with the values of an [`After`] are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// None.
    None,
    /// Only documents with a higher sequence number.
    After(u64),
    /// All.
    All,
}

/// One of `max` disjoint parts that together are all documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Which part, below `max`.
    pub id: u32,
    /// Number of parts.
    pub max: u32,
    /// Documents are divided by the value of this column, else by their sequence number.
    pub column: Option<ColumnKey>,
}

/// How a sorted search differs from one by score.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SortedSearch {
    /// The order; at most [`MAX_SORT_KEYS`].
    pub keys: Vec<SortKey>,
    /// Where the hits begin.
    pub after: Option<After>,
    /// The part of the documents looked at.
    pub slice: Option<Slice>,
    /// Only the first hit of each value of this column is a hit; documents without a value are one group.
    pub collapse: Option<ColumnKey>,
    /// Hits have their scores although they are not ordered by them.
    pub scored: bool,
    /// The search ends when so many documents matched.
    pub terminate_after: Option<u64>,
}

/// A hit of a sorted search.
#[derive(Debug, Clone, PartialEq)]
pub struct SortedHit {
    /// Where the document is.
    pub addr: tantivy::DocAddress,
    /// Sequence number of its last write.
    pub seq_no: u64,
    /// Score of the hit; NaN if it was not computed.
    pub score: f32,
    /// One value per key.
    pub values: Box<[SortValue]>,
    /// Value of the hit in the column that hits are collapsed by.
    pub group: SortValue,
}

/// The first hits of a sorted search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SortedDocs {
    /// In order, at most `size`.
    pub hits: Vec<SortedHit>,
    /// Number of matching documents, those before [`SortedSearch::after`] included.
    pub total: u64,
    /// Highest score of all matching documents, if scores were worked out.
    pub max_score: Option<f32>,
    /// The search ended at [`SortedSearch::terminate_after`].
    pub terminated_early: bool,
    /// The algorithms that found them.
    pub executors: Executors,
}
