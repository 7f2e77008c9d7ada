//! How the terms and values of one segment match and score: what a field's terms are, their statistics, the weights and scorers that
//! are made of them, and the errors of all queries. Nothing here knows a snapshot or a kind of query; the crate `tantivy-index` does.

pub mod analyzed;
pub mod bm25;
pub mod columns;
pub mod dates;
pub mod error;
mod explained_bm25;
pub mod fields;
pub mod fuzzy;
pub mod intervals;
pub mod minimum;
pub mod multi_term;
pub mod score_error;
pub mod scored;
pub mod statistics;
pub mod stoppable;
pub mod weights;

pub use self::error::QueryError;
