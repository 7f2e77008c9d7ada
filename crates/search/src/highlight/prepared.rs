//! What is made once for all hits that are highlighted.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sparrow_tantivy_index::query::TextMatcher;

/// What a query looks for in each field: the number of an index, that of a field of the request, and a path.
pub(super) type Matchers = FxHashMap<(usize, usize, String), Arc<TextMatcher>>;

/// The matchers of a highlighting request and its count of traced hits. All hits of a search share them, as do the hits of all buckets of a
/// `top_hits` aggregation.
#[derive(Default)]
pub struct Prepared {
    pub(super) matchers: Matchers,
    /// Number of hits whose words were traced.
    pub(super) traced: usize,
}
