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
    /// Whether the request names the section.
    is_named: bool,
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
    /// Path of the nested field whose objects are shown; `None` in an index where the vectors are not inside a nested field.
    pub fn path<'m>(&'m self, mapping: &'m Mapping) -> Option<&'m str> {
        match self.objects {
            Objects::At(path) => Some(path),
            Objects::Around(field) => mapping.nested_around(field),
        }
    }
}

impl NestedHits<'_> {
    /// Name in the answer: by default the path of the nested field.
    pub fn name<'n>(&'n self, path: &'n str) -> &'n str {
        if self.is_named { &self.hits.name } else { path }
    }

    /// Number of searches that it takes at most to show it in `hits` hits, with those inside its own hits.
    pub fn searches(&self, hits: usize) -> usize {
        let asked = self.hits.body.from.saturating_add(self.hits.body.size);
        let mut inner = Vec::new();
        // Sections that cannot be read are refused where they are.
        if collect(&self.query, &mut inner).is_err() {
            return hits;
        }
        let of_each = inner.iter().map(|nested| nested.searches(asked));
        hits.saturating_mul(1usize.saturating_add(of_each.fold(0, usize::saturating_add)))
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
    let is_named =
        |node: &Node| node.as_object().is_some_and(|all| all.iter().any(|member| &*member.name == "name"));
    let section = |node: &Node, path: &str| InnerHits::of_objects(node, path, Context::new(DEFAULT_SIZE));
    match &query.kind {
        QueryKind::Nested(clause) if let Some(node) = &clause.inner_hits => {
            let hits = section(node, &clause.path)?;
            let (query, objects) = ((*clause.query).clone(), Objects::At(&clause.path));
            found.push(NestedHits { query, hits, objects, is_named: is_named(node) });
            Ok(())
        }
        QueryKind::Knn(clause) if let Some(node) = &clause.inner_hits => {
            // Vectors are rarely deeper than the object itself.
            let path = clause.field.rsplit_once('.').map_or(&*clause.field, |(path, _)| path);
            let hits = section(node, path)?;
            let alone = QueryKind::Knn(KnnQuery { inner_hits: None, ..clause.clone() });
            let (query, objects) = (alone.into(), Objects::Around(&clause.field));
            found.push(NestedHits { query, hits, objects, is_named: is_named(node) });
            Ok(())
        }
        kind => walk::children(kind).into_iter().try_for_each(|child| collect(child, found)),
    }
}

/// Whether any clause of a query has `inner_hits`.
pub fn has_inner_hits(query: &Query) -> bool {
    let mut found = false;
    walk::visit(query, &mut |clause| {
        found |= match &clause.kind {
            QueryKind::Nested(nested) => nested.inner_hits.is_some(),
            QueryKind::Knn(knn) => knn.inner_hits.is_some(),
            _ => false,
        };
    });
    found
}
