//! Queries: the tree that a request states before it is bound to an index, the JSON that states it, and Lucene's syntax. Knows
//! neither tantivy nor an index.

pub mod expensive;
pub mod kinds;
pub mod lucene;
mod neighbours;
mod printed;
pub mod regexp;
pub mod script;
pub mod walk;
pub mod wildcard;

pub use kinds::*;
pub use neighbours::default_candidates;
pub use printed::printed;
pub use sparrow_mapping::PruningConfig;

/// Most clauses of a query, including those that query strings and patterns expand to.
pub const MAX_CLAUSES: usize = 16_384;
