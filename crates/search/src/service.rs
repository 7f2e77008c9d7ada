//! The service behind the search endpoints: a node with its open search contexts.

use std::ops::Deref;
use std::sync::Arc;

use sparrow_catalog::Node;

use crate::contexts::Contexts;

/// A node together with its open search contexts: scrolls and points in time.
pub struct SearchService {
    /// The node, which holds the indices and models that are searched.
    pub node: Arc<Node>,
    /// Open scrolls and points in time.
    pub contexts: Contexts,
}

impl SearchService {
    /// A service over `node` with no scroll or point in time open.
    pub fn new(node: Arc<Node>) -> Self {
        Self { node, contexts: Contexts::default() }
    }
}

impl Deref for SearchService {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}
