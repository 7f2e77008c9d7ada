//! The sections of a search, and what each holds.

use sparrow_query::dsl::DEFAULT_SIZE;

use crate::shape::*;
use crate::{paging, rank, script_fields};

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

/// What `_source` holds where it says which parts are shown.
pub(crate) fn source_filter_shape() -> Shape {
    let lists = ["includes", "include", "excludes", "exclude"].map(|name| (name, several(text())));
    object(lists).and([("exclude_vectors", flag())])
}
