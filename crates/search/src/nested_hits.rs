//! `inner_hits` of `nested` clauses, and of `knn` on fields inside nested ones: which of the objects that match are shown with a document.

use sparrow_mapping::Mapping;
use sparrow_query::dsl::{Context, DEFAULT_SIZE};
use sparrow_query::{KnnQuery, Query, QueryKind, walk};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

use super::body::SearchBody;
use super::collapse::{InnerHits, check_names};

/// The `inner_hits` of a clause.
#[derive(Debug)]
pub struct NestedHits<'q> {
    /// What the objects match.
    pub query: Query,
    /// The section.
    pub hits: InnerHits,
    objects: Objects<'q>,
}

/// Where the objects are.
#[derive(Debug)]
enum Objects<'q> {
    /// In the nested field at this path.
    At(&'q str),
    /// In the nested field around this one.
    Around(&'q str),
}

impl NestedHits<'_> {
    /// Path of the nested field whose objects are shown; `None` if there is none in an index.
    pub fn path<'m>(&'m self, mapping: &'m Mapping) -> Option<&'m str> {
        match self.objects {
            Objects::At(path) => Some(path),
            Objects::Around(field) => mapping.nested_around(field),
        }
    }
}

impl SearchBody {
    /// The `inner_hits` of the clauses of its queries. Those of clauses inside another one that has some are shown inside these.
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
    let section = |node: &Node, path: &str| InnerHits::of_objects(node, path, Context::new(DEFAULT_SIZE));
    match &query.kind {
        QueryKind::Nested(clause) if let Some(node) = &clause.inner_hits => {
            let hits = section(node, &clause.path)?;
            found.push(NestedHits {
                query: (*clause.query).clone(),
                hits,
                objects: Objects::At(&clause.path),
            });
            Ok(())
        }
        QueryKind::Knn(clause) if let Some(node) = &clause.inner_hits => {
            // Vectors are rarely deeper than the object itself.
            let path = clause.field.rsplit_once('.').map_or(&*clause.field, |(path, _)| path);
            let hits = section(node, path)?;
            let alone = QueryKind::Knn(KnnQuery { inner_hits: None, ..clause.clone() });
            found.push(NestedHits { query: alone.into(), hits, objects: Objects::Around(&clause.field) });
            Ok(())
        }
        kind => walk::children(kind).into_iter().try_for_each(|child| collect(child, found)),
    }
}
