//! What searches work on.

use std::ops::Deref;
use std::sync::Arc;

use sparrow_indices::Node;

use crate::contexts::Contexts;

/// The node and what is open between its searches: scrolls and points in time.
pub struct SearchService {
    /// The indices and models that are searched.
    pub node: Arc<Node>,
    /// Scrolls and points in time that are open.
    pub contexts: Contexts,
}

impl SearchService {
    /// The searches of a node, none of which is open.
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
