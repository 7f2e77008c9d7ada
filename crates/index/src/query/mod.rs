//! Queries: the tree a request states ([`ast`]), bound to a [`Snapshot`](crate::Snapshot) as tantivy weights,
//! and the search over all segments.
//!
//! The division into `Query → Weight → Scorer` is tantivy's. A lone sparse clause bypasses tantivy's
//! collectors and uses the pruned top-k search of the postings ([`search`]).

mod addresses;
mod analyzed;
mod bits;
mod cache;
mod columns;
mod compile;
mod computed;
mod conjunction;
mod dates;
mod decay;
pub mod dis_max;
mod document_at_a_time;
mod error;
mod explain;
mod features;
mod fields;
mod filter_key;
mod filters;
mod function_score;
mod fuzzy;
mod highlight;
mod hits;
mod index_name;
mod intervals;
mod knn;
mod max_score;
mod minimum;
mod more_like_this;
mod multi_match;
mod multi_term;
mod numeric;
mod patterns;
mod phrase;
mod query_string;
mod range_index;
mod score_error;
mod scored;
mod script_score;
mod search;
mod semantic;
mod simple_query_string;
mod sloppy;
pub mod sorted;
mod sparse;
mod sparse_search;
mod stoppable;
mod term;
mod term_runs;
mod term_suggest;
mod term_vectors;
mod terms_enum;
mod terms_set;
mod text;
mod text_search;
mod top_docs;
mod unit;
mod value_range;
mod weights;
mod wildcard;
mod window_at_a_time;
mod words;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use bits::DocBits;
pub(crate) use cache::SnapshotCache;
pub use dates::DateRequest;
pub use error::QueryError;
pub use explain::Explanation;
pub use fields::{keyword_column, number_column};
pub use highlight::{MatchedText, TextMatch, TextMatcher};
pub use hits::*;
pub(crate) use range_index::RangeIndex;
pub use semantic::{DENSE_SHARE, answering};
pub use sparrow_analysis::StringDistance;
pub use term_suggest::{SuggestMode, SuggestedTerm, SuggestedWord, TermSuggest};
pub use term_vectors::{TermFrequency, TermPlace, TermVector, TermsOfField};
