//! Queries: the tree a request states ([`ast`]), bound to a [`Snapshot`](crate::Snapshot) as tantivy
//! weights, and the search over all segments.
//!
//! `Query → Weight → Scorer` is tantivy's own split. A lone sparse clause goes around tantivy's
//! collectors to the pruned top-k of the postings ([`search`]).

pub mod ast;
mod bits;
mod cache;
mod compile;
mod dates;
mod error;
mod explain;
mod fields;
mod filter_key;
mod filters;
mod joined;
mod knn;
mod lucene;
mod minimum;
mod multi_term;
mod numeric;
mod query_string;
mod search;
pub mod sorted;
mod sparse;
mod sparse_search;
mod sum;
mod text;
mod text_search;
mod top_docs;
mod weights;

#[cfg(test)]
mod tests;

pub use ast::*;
pub(crate) use bits::DocBits;
pub(crate) use cache::SnapshotCache;
pub use error::QueryError;
pub use explain::Explanation;
