//! The query tree as a request states it, before it is bound to an index. Its clauses are of the kinds in [`crate::kinds`]; field
//! names are full dotted paths as users write them, multi-fields included (`title.raw`).

use std::fmt;

use crate::kinds::QueryKind;

/// One clause of a query: what it matches, the boost of its score, and its `_name`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The kind of the clause, with its parameters.
    pub kind: QueryKind,
    /// Multiplies the score of the clause; not negative.
    pub boost: f32,
    /// The `_name` under which a hit may report this clause in `matched_queries`.
    pub name: Option<String>,
}

impl Query {
    /// A clause with boost 1 and no name.
    pub fn new(kind: QueryKind) -> Self {
        Self { kind, boost: 1.0, name: None }
    }

    /// Every document, score 1.
    pub fn match_all() -> Self {
        Self::new(QueryKind::MatchAll)
    }

    /// A copy of the clause with another boost.
    #[must_use]
    pub fn with_boost(mut self, boost: f32) -> Self {
        self.boost = boost;
        self
    }
}

impl From<QueryKind> for Query {
    fn from(kind: QueryKind) -> Self {
        Self::new(kind)
    }
}

impl fmt::Display for Query {
    /// Writes the clause as Lucene prints it, close enough to recognise it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.boost {
            1.0 => self.kind.clause().print(out),
            boost => write!(out, "({})^{boost:?}", self.kind.clause()),
        }
    }
}
