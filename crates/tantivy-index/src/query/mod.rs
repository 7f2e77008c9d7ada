//! Queries: the tree that a request states, bound to a [`Snapshot`](crate::Snapshot) as tantivy weights, and the search over all
//! segments.
//!
//! The division into `Query → Weight → Scorer` is tantivy's. What a kind of query means is in its module in [`kinds`]; they are
//! compiled by [`compile`]. Which way a query is searched is decided in [`search`]: a lone sparse clause, for one, bypasses tantivy's
//! collectors and uses the pruned top-k search of the postings.

mod cache;
mod compile;
mod explain;
mod filters;
mod highlight;
mod kinds;
pub mod scripts;
pub mod search;
mod terms;
mod values;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use cache::SnapshotCache;
pub use explain::Explanation;
pub use sparrow_scoring::QueryError;

pub use highlight::{MatchedText, TextMatch, TextMatcher};
pub use kinds::semantic::{DENSE_SHARE, answering};
pub use search::hits::*;
pub use search::unit::unit_of_frequencies;
pub use search::{dis_max, sorted};
pub use sparrow_analysis::StringDistance;
pub use sparrow_scoring::dates::DateRequest;
pub use sparrow_scoring::fields::{keyword_column, number_column};
pub use terms::term_suggest::{SuggestMode, SuggestedTerm, SuggestedWord, TermSuggest};
pub use terms::term_vectors::{TermFrequency, TermPlace, TermVector, TermsOfField};
