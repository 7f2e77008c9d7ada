//! Tests of the algorithms that a search reports, for each kind of query.

use serde_json::json;

use super::Fixture;
use crate::query::SearchOptions;
use crate::query::search::sorted::SortedSearch;
use sparrow_query::{
    BoolQuery, DisMaxQuery, KnnQuery, MatchPhraseQuery, MatchQuery, Operator, Query, QueryKind, RangeQuery,
    SparseQuery,
};

fn text(text: &str) -> MatchQuery {
    MatchQuery { field: "title".into(), text: text.into(), ..MatchQuery::default() }
}

fn sparse() -> Query {
    let tokens = vec![("a".into(), 1.0), ("b".into(), 0.5)];
    QueryKind::Sparse(SparseQuery { field: "v".into(), tokens, ..SparseQuery::default() }).into()
}

#[test]
fn a_search_names_the_algorithms_that_found_its_hits() {
    let mut fixture = Fixture::new(json!({
        "title": {"type": "text"},
        "other": {"type": "text"},
        "n": {"type": "integer"},
        "v": {"type": "sparse_vector"},
        "d": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm", "index_options": {"type": "flat"}},
    }));
    let ids: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let docs = ids.iter().enumerate().map(|(number, id)| {
        let words = ["one two", "two one", "one", "three two"][number % 4];
        let weight = 1.0 + number as f64 / 100.0;
        let source = json!({"title": words, "other": words, "n": number, "v": {"a": weight, "b": 1.0}, "d": [1, number]});
        (id.as_str(), source)
    });
    fixture.batch(&docs.collect::<Vec<_>>());
    let all_words = QueryKind::Match(MatchQuery { operator: Operator::And, ..text("one two") });
    let phrase =
        MatchPhraseQuery { field: "title".into(), text: "one two".into(), ..MatchPhraseQuery::default() };
    let words = Query::from(QueryKind::Match(text("one three")));
    let fields = ["title", "other"].map(|field| {
        let field = MatchQuery { field: field.into(), ..text("one three") };
        Query::from(QueryKind::Match(field))
    });
    let [required, optional] = fields.clone();
    let required = BoolQuery { must: vec![required], should: vec![optional], ..BoolQuery::default() };
    let best_field = QueryKind::DisMax(DisMaxQuery { queries: fields.to_vec(), tie_breaker: 0.0 });
    let shared = QueryKind::DisMax(DisMaxQuery { queries: fields.to_vec(), tie_breaker: 0.3 });
    let neighbours = QueryKind::Knn(KnnQuery {
        field: "d".into(),
        vector: vec![1.0, 3.0],
        k: 5,
        num_candidates: 10,
        ..KnnQuery::default()
    });
    let range =
        QueryKind::Range(RangeQuery { field: "n".into(), gte: Some(json!(3)), ..RangeQuery::default() });
    let range = Query::from(range);
    let both = BoolQuery { should: vec![sparse(), words.clone()], ..BoolQuery::default() };
    for (query, size, expected) in [
        (words.clone(), 10, "block_max_max_score"),
        (all_words.into(), 10, "conjunction"),
        (QueryKind::MatchPhrase(phrase).into(), 10, "conjunction"),
        (QueryKind::Bool(required).into(), 10, "max_score_disjunction"),
        (best_field.into(), 10, "block_max_max_score"),
        (shared.into(), 10, "disjunction_max"),
        (sparse(), 1, "sparse_block_max"),
        (sparse(), 10, "sparse_window_at_a_time"),
        (QueryKind::Bool(both).into(), 10, "sparse_window_at_a_time sparse_and_text_window_at_a_time"),
        (neighbours.into(), 10, "exact_vector_scan document_at_a_time"),
        (words, 0, "bitset"),
        (range, 10, "document_at_a_time"),
    ] {
        let options = SearchOptions { size, ..SearchOptions::default() };
        let top = fixture.top(&query, &options);
        assert_eq!(top.hits.is_empty(), size == 0, "{query:?}");
        assert_eq!(top.executors.names().collect::<Vec<_>>().join(" "), expected, "{query:?}");
    }
    for (scored, expected) in [(true, ["document_at_a_time"]), (false, ["bitset"])] {
        let sorted = SortedSearch { scored, ..SortedSearch::default() };
        let docs = fixture.snapshot().search_sorted(&Query::match_all(), &sorted, &SearchOptions::default());
        assert_eq!(docs.unwrap().executors.names().collect::<Vec<_>>(), expected);
    }
}
