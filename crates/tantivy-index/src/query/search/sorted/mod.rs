//! Searches whose hits are ordered by columns: fields, the score, the order of writing.
//!
//! Inside a segment every key of a document is one `u64` that ascends with its place in the result
//! ([`columns`]): numbers by an order-preserving map, keywords by their ordinal in the segment's
//! dictionary, both flipped when descending. The best documents are kept by comparing these
//! ([`collect`]); only the kept ones are turned back into values, by which segments are merged. No
//! document is read.

mod collect;
mod columns;
mod groups;
mod scores;
mod scripts;
mod search;
#[cfg(test)]
mod tests;
mod value;

use sparrow_mapping::GeoPoint;
use sparrow_query::Query;
use sparrow_query::script::QueryScript;
use sparrow_runtime::Executors;

pub use self::search::GroupId;
pub use self::value::{SortValue, compare};

/// Highest number of sort keys in one search: keys are held in arrays of fixed length.
pub const MAX_SORT_KEYS: usize = 32;

/// One key of a sort order; the first key is the most significant. Ties are broken by sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// Source of the key's values.
    pub source: SortSource,
    /// Whether higher values come first.
    pub descending: bool,
}

/// Source of a sort key's values.
#[derive(Debug, Clone, PartialEq)]
pub enum SortSource {
    /// The score, a [`SortValue::Double`].
    Score,
    /// The sequence number, a [`SortValue::Long`].
    SeqNo,
    /// Values of a field's column.
    Column(ColumnKey),
    /// Distances of the points in a field's column, each a [`SortValue::Double`].
    Distance(ColumnKey, Distance),
    /// The numbers that a script computes, each a [`SortValue::Double`].
    Script(QueryScript),
}

/// How far the points of a `geo_point` field are from others.
#[derive(Debug, Clone, PartialEq)]
pub struct Distance {
    /// The points: a document has as many values as there are pairs of one of its points and one of these.
    pub from: Vec<GeoPoint>,
    /// Meters of the unit in which it is measured.
    pub unit: f64,
}

impl Distance {
    /// The distances of a point as it is indexed.
    pub fn each(&self, encoded: i64) -> impl Iterator<Item = f64> {
        let point = GeoPoint::decoded(encoded);
        self.from.iter().map(move |from| from.meters_to(point) / self.unit)
    }

    /// The distance of a point as it is indexed from the first point of `from`; infinite if `from` is empty.
    pub fn of(&self, encoded: i64) -> f64 {
        self.each(encoded).next().unwrap_or(f64::INFINITY)
    }
}

/// A column and how its values become one key per document.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnKey {
    /// Full path of the field; a field without a column has no values.
    pub path: String,
    /// Type that values are compared as.
    pub kind: ColumnKind,
    /// Which of a document's several values counts.
    pub mode: SortMode,
    /// What a document without a value is sorted by.
    pub missing: Missing,
    /// Where the values of a document are those of objects in it: the nested fields on the way to them, outermost first, each with
    /// what its objects have to match. Empty for the document's own values.
    pub nested: Vec<(String, Option<Query>)>,
}

/// Types that values of a column are compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Texts, compared byte by byte.
    Keyword,
    /// Signed whole numbers, including dates in milliseconds, and booleans as 0 and 1.
    Long,
    /// Unsigned whole numbers.
    Unsigned,
    /// Floating-point numbers.
    Double,
    /// Dates stored in milliseconds, compared as nanoseconds.
    Nanos,
    /// Dates stored in nanoseconds, compared as milliseconds.
    Millis,
}

/// Which of several values of a document counts; keywords support only the first two modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortMode {
    Min,
    Max,
    Sum,
    Avg,
    Median,
}

/// What a document without a value is sorted by.
#[derive(Debug, Clone, PartialEq)]
pub enum Missing {
    /// Before all other documents, in either direction.
    First,
    /// After all other documents, in either direction.
    Last,
    /// As if it had this value.
    Value(SortValue),
}

/// A position in the order of hits; only hits behind it are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct After {
    /// Values of the position, one for each sort key.
    pub values: Vec<SortValue>,
    /// Which hits with exactly these values are behind the position.
    pub ties: Ties,
}

/// Which of the hits with exactly the values of an [`After`] are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// None of them.
    None,
    /// Those with a higher sequence number than this.
    After(u64),
    /// All of them.
    All,
}

/// One of `max` disjoint slices that together hold all documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Number of the slice, from 0 to `max` - 1.
    pub id: u32,
    /// Number of slices.
    pub max: u32,
    /// Column whose values decide the slice of a document; `None` for its sequence number.
    pub column: Option<ColumnKey>,
}

/// Options of a sorted search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SortedSearch {
    /// Sort keys, most significant first; at most [`MAX_SORT_KEYS`].
    pub keys: Vec<SortKey>,
    /// Position behind which the hits begin; `None` to begin at the first.
    pub after: Option<After>,
    /// Slice of the documents to search; `None` for all.
    pub slice: Option<Slice>,
    /// Column to collapse hits by: only the first hit of each value is kept. Documents without a value form
    /// one group.
    pub collapse: Option<ColumnKey>,
    /// Whether scores of hits are computed even if they are not sorted by score.
    pub scored: bool,
    /// Number of matching documents after which the search ends.
    pub terminate_after: Option<u64>,
}

/// A hit of a sorted search.
#[derive(Debug, Clone, PartialEq)]
pub struct SortedHit {
    /// Segment and number of the document.
    pub addr: tantivy::DocAddress,
    /// Sequence number of the document's last write.
    pub seq_no: u64,
    /// Score of the hit; NaN if it was not computed.
    pub score: f32,
    /// Sort values of the hit, one for each key.
    pub values: Box<[SortValue]>,
    /// Value of the hit in the column that hits are collapsed by.
    pub group: SortValue,
}

/// The first hits of a sorted search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SortedDocs {
    /// Hits in order, at most `size`.
    pub hits: Vec<SortedHit>,
    /// Number of matching documents, including those before [`SortedSearch::after`].
    pub total: u64,
    /// Highest score of all matching documents; `None` if scores were not computed.
    pub max_score: Option<f32>,
    /// Whether the search ended at [`SortedSearch::terminate_after`].
    pub terminated_early: bool,
    /// The algorithms that found the hits.
    pub executors: Executors,
}
