//! What is made once for all hits that are highlighted.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sparrow_index::query::TextMatcher;

/// What a query looks for in each field: the number of an index, that of a field of the request, and a path.
pub(super) type Matchers = FxHashMap<(usize, usize, String), Arc<TextMatcher>>;

/// What is made once for all hits of a search, also where they are highlighted bucket by bucket.
#[derive(Default)]
pub struct Prepared {
    pub(super) matchers: Matchers,
    /// Number of hits whose words were traced.
    pub(super) traced: usize,
}
