//! Visiting and changing all clauses of a query.

use crate::tree::{LikeDocument, LikeExample, Query, QueryKind};

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
    match kind {
        QueryKind::Bool(clause) => {
            clause.must.iter().chain(&clause.should).chain(&clause.filter).chain(&clause.must_not).collect()
        }
        QueryKind::ConstantScore { filter: inner } | QueryKind::Lenient(inner) => vec![inner],
        QueryKind::DisMax { queries, .. } => queries.iter().collect(),
        QueryKind::Boosting(clause) => vec![&clause.positive, &clause.negative],
        QueryKind::FunctionScore(clause) => {
            let filters = clause.functions.iter().filter_map(|function| function.filter.as_ref());
            std::iter::once(&*clause.query).chain(filters).collect()
        }
        QueryKind::ScriptScore(clause) => vec![&clause.query],
        QueryKind::Knn(clause) => clause.filter.iter().collect(),
        QueryKind::KnnBuilder(clause) => clause.knn.filter.iter().collect(),
        QueryKind::Semantic(clause) => clause.filter.iter().collect(),
        _ => Vec::new(),
    }
}

fn children_mut(kind: &mut QueryKind) -> Vec<&mut Query> {
    match kind {
        QueryKind::Bool(clause) => clause
            .must
            .iter_mut()
            .chain(&mut clause.should)
            .chain(&mut clause.filter)
            .chain(&mut clause.must_not)
            .collect(),
        QueryKind::ConstantScore { filter: inner } | QueryKind::Lenient(inner) => vec![inner],
        QueryKind::DisMax { queries, .. } => queries.iter_mut().collect(),
        QueryKind::Boosting(clause) => vec![&mut clause.positive, &mut clause.negative],
        QueryKind::FunctionScore(clause) => {
            let filters = clause.functions.iter_mut().filter_map(|function| function.filter.as_mut());
            std::iter::once(&mut *clause.query).chain(filters).collect()
        }
        QueryKind::ScriptScore(clause) => vec![&mut clause.query],
        QueryKind::Knn(clause) => clause.filter.iter_mut().collect(),
        QueryKind::KnnBuilder(clause) => clause.knn.filter.iter_mut().collect(),
        QueryKind::Semantic(clause) => clause.filter.iter_mut().collect(),
        _ => Vec::new(),
    }
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
    visit(query, &mut |clause| {
        found |=
            match &clause.kind {
                QueryKind::TermsLookup(_) => true,
                QueryKind::MoreLikeThis(query) => query.like.iter().chain(&query.unlike).any(|example| {
                    matches!(example, LikeExample::Document(LikeDocument { sources: None, .. }))
                }),
                _ => false,
            };
    });
    found
}
