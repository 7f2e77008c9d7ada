//! Visiting and changing all clauses of a query.

use crate::{Clause, Query, QueryKind};

/// Calls `see` on every clause of a tree, outermost first.
pub fn visit<'a>(query: &'a Query, see: &mut dyn FnMut(&'a Query)) {
    see(query);
    for child in children(&query.kind) {
        visit(child, see);
    }
}

/// Calls `each` on the kind of every clause of a query, outermost first, until it fails.
///
/// # Errors
/// The first error of `each`.
pub fn change<E>(query: &mut Query, each: &mut dyn FnMut(&mut QueryKind) -> Result<(), E>) -> Result<(), E> {
    each(&mut query.kind)?;
    for child in children_mut(&mut query.kind) {
        change(child, each)?;
    }
    Ok(())
}

/// Whether a query or any clause inside it has a `_name`.
pub fn has_names(query: &Query) -> bool {
    query.name.is_some() || children(&query.kind).into_iter().any(has_names)
}

/// The clauses directly inside a clause.
pub fn children(kind: &QueryKind) -> Vec<&Query> {
    kind.clause().children()
}

fn children_mut(kind: &mut QueryKind) -> Vec<&mut Query> {
    kind.clause_mut().map_or_else(Vec::new, Clause::children_mut)
}

/// Calls `each` on the kind of every clause of a query, outermost first.
pub fn change_all(query: &mut Query, each: &mut dyn FnMut(&mut QueryKind)) {
    each(&mut query.kind);
    for child in children_mut(&mut query.kind) {
        change_all(child, each);
    }
}

/// Whether a query names documents that are read before a search.
pub fn names_documents(query: &Query) -> bool {
    let mut found = false;
    visit(query, &mut |query| found |= query.kind.clause().names_documents());
    found
}
