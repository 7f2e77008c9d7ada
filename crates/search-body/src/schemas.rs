//! What the body of a search holds, as JSON Schema for the OpenAPI document. Parts that another file reads are declared there.

use sparrow_query::dsl::DEFAULT_SIZE;

use crate::shape::*;
use crate::{aggs, collapse, fields, highlight, paging, rank, rescore, retriever, script_fields, sort};

/// What [`crate::SearchBody::section`] reads.
pub fn search_shape() -> Shape {
    let tracked = either([flag(), count()]).about("how far hits are counted").preset(10_000);
    let boosts = either([list(map(num())), map(num())]);
    let lists = object([("query", query())]).needs(&["query"]);
    object([
        ("query", query()),
        ("retriever", named("Retriever")),
        ("knn", several(named("Knn"))),
        ("sub_searches", list(lists)),
        ("rank", object([("rrf", rank::shape())])),
        ("aggs", named("Aggregations")),
        ("aggregations", named("Aggregations")),
        ("post_filter", query()),
        ("from", int().about("hits that are passed over").preset(0)),
        ("size", int().about("hits that are answered").preset(DEFAULT_SIZE)),
        ("min_score", num().about("hits of less are left out")),
        ("sort", named("Sort")),
        ("search_after", list(any()).about("`sort` of the last hit of the page before")),
        ("track_total_hits", tracked),
        ("highlight", named("Highlight")),
        ("collapse", named("Collapse")),
        ("rescore", several(named("Rescore"))),
        ("suggest", named("Suggest")),
        ("explain", flag().about("hits say why they have their scores").preset(false)),
        ("profile", flag().about("the answer says where the time went").preset(false)),
        ("timeout", time().about("after which the search ends with what it has")),
        ("terminate_after", int().about("documents of an index after which its search ends").preset(0)),
        ("slice", named("Slice")),
        ("pit", paging::pit_shape()),
        ("indices_boost", boosts),
        ("stats", list(text())),
        ("script_fields", script_fields::shape()),
    ])
    .and(showing())
}

fn source_selection() -> Shape {
    either([flag(), several(text().about("path or pattern")), source_filter_shape()])
}

pub(crate) fn source_filter_shape() -> Shape {
    let lists = ["includes", "include", "excludes", "exclude"].map(|name| (name, several(text())));
    object(lists).and([("exclude_vectors", flag())])
}

/// What parts of a search hold, by the names in the OpenAPI document.
pub fn schemas() -> impl Iterator<Item = Named> {
    let own = [
        ("SourceSelection", source_selection()),
        ("FieldRequests", fields::shape()),
        ("Sort", sort::shape()),
        ("Highlight", highlight::shape()),
        ("Collapse", collapse::shape()),
        ("InnerHits", collapse::inner_hits_shape()),
        ("Rescore", rescore::shape()),
        ("Retriever", retriever::shape()),
        ("Slice", paging::slice_shape()),
        ("Suggest", sparrow_suggest::shape()),
    ];
    own.into_iter().chain(aggs::schemas())
}

#[cfg(test)]
mod tests {
    use sparrow_query::dsl::Context;
    use sparrow_wire::BodyError;
    use sparrow_wire::json::{self, Member};

    use crate::SearchBody;

    fn is_read(name: &str) -> bool {
        ["1", "\"x\"", "true", "{}", "[]"].iter().any(|value| {
            let (node, _) = json::read(format!(r#"{{"{name}": {value}}}"#).as_bytes()).unwrap();
            let member: &Member = &node.as_object().unwrap()[0];
            match SearchBody::default().section(member, Context::new(10)) {
                Err(BodyError::Parsing { reason, .. }) => !reason.starts_with("Unknown key"),
                _ => true,
            }
        })
    }

    #[test]
    fn what_a_search_is_said_to_hold_is_read() {
        let unread: Vec<_> =
            super::search_shape().names().iter().copied().filter(|name| !is_read(name)).collect();
        assert!(unread.is_empty(), "{unread:?}");
        assert!(!is_read("qurey"));
    }

    #[test]
    fn what_a_retriever_is_said_to_hold_is_what_is_read() {
        let kinds = crate::retriever::kinds();
        let all: std::collections::BTreeSet<&str> =
            kinds.iter().flat_map(|(_, shape)| shape.names()).copied().collect();
        let mut wrong = Vec::new();
        for (kind, shape) in &kinds {
            for member in &all {
                let is_read = ["1", "\"x\"", "true", "{}", "[]"].iter().any(|value| {
                    let body = format!(r#"{{"retriever": {{"{kind}": {{"{member}": {value}}}}}}}"#);
                    match SearchBody::parse(body.as_bytes(), None) {
                        Err(BodyError::UnknownField { field, .. }) => field != *member,
                        _ => true,
                    }
                });
                if is_read != shape.names().contains(member) {
                    wrong.push(format!("{kind}: {member}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
