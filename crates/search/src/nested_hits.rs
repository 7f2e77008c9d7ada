//! `inner_hits` of `nested` clauses: which of the objects that match are shown with a document.

use sparrow_query::dsl::{Context, DEFAULT_SIZE};
use sparrow_query::{NestedQuery, Query, QueryKind, walk};
use sparrow_wire::BodyError;

use super::body::SearchBody;
use super::collapse::{InnerHits, check_names};

/// The `inner_hits` of a `nested` clause.
#[derive(Debug)]
pub struct NestedHits<'q> {
    /// The clause.
    pub clause: &'q NestedQuery,
    /// The section, named after the path if it has no name.
    pub hits: InnerHits,
}

impl SearchBody {
    /// The `inner_hits` of the nested clauses of its queries. Those of clauses inside another one that has some are shown inside
    /// these.
    ///
    /// # Errors
    /// As [`InnerHits::of_objects`].
    pub fn nested_hits(&self) -> Result<Vec<NestedHits<'_>>, BodyError> {
        let mut found = Vec::new();
        for query in self.matching_queries() {
            collect(query, &mut found)?;
        }
        check_names(found.iter().map(|nested: &NestedHits<'_>| &*nested.hits.name))?;
        Ok(found)
    }
}

fn collect<'q>(query: &'q Query, found: &mut Vec<NestedHits<'q>>) -> Result<(), BodyError> {
    if let QueryKind::Nested(clause) = &query.kind
        && let Some(node) = &clause.inner_hits
    {
        let hits = InnerHits::of_objects(node, &clause.path, Context::new(DEFAULT_SIZE))?;
        found.push(NestedHits { clause, hits });
        return Ok(());
    }
    walk::children(&query.kind).into_iter().try_for_each(|child| collect(child, found))
}
