//! Tests of the unit of text scores against its formula.

use serde_json::json;

use super::{Fixture, assert_close};
use sparrow_query::{DisMaxQuery, MatchQuery, Query, QueryKind};

fn words(field: &str, text: &str) -> Query {
    let (field, text) = (field.into(), text.into());
    Query::new(QueryKind::Match(MatchQuery { field, text, ..MatchQuery::default() }))
}

/// Upper bound on the BM25 score of a word that `doc_freq` of `docs` documents have.
fn bound(doc_freq: f64, docs: f64) -> f64 {
    2.2 * (1.0 + (docs - doc_freq + 0.5) / (doc_freq + 0.5)).ln()
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new(json!({
        "title": {"type": "text"}, "body": {"type": "text"}, "n": {"type": "integer"},
    }));
    fixture.batch(&[
        ("a", json!({"title": "old stamps", "body": "rare"})),
        ("b", json!({"title": "a ferry", "n": 1})),
        ("c", json!({"title": "a rare ferry"})),
        ("d", json!({"title": "harbour"})),
    ]);
    fixture
}

#[test]
fn it_is_the_geometric_mean_of_the_bounds_of_the_query_and_of_an_unknown_word() {
    let fixture = fixture();
    let unit = |query: &Query| fixture.snapshot().unit_of_words(query).unwrap().unwrap();
    let unknown = bound(0.0, 4.0);
    assert_close(unit(&words("title", "stamps")), (bound(1.0, 4.0) * unknown).sqrt());
    assert_close(unit(&words("title", "ferry")), (bound(2.0, 4.0) * unknown).sqrt());
    // A word that no document has counts, if another one is there.
    assert_close(unit(&words("title", "stamps zebra")), ((bound(1.0, 4.0) + unknown) * unknown).sqrt());
    assert_close(unit(&words("title", "zebra")), 0.0);
    assert_close(unit(&words("n", "1")), 0.0);
    let boosted = Query { boost: 3.0, ..words("title", "stamps") };
    assert_close(unit(&boosted), 3.0 * (bound(1.0, 4.0) * unknown).sqrt());
}

#[test]
fn of_several_fields_the_highest_counts_and_other_queries_have_none() {
    let fixture = fixture();
    let unit = |query: &Query| fixture.snapshot().unit_of_words(query).unwrap();
    let [title, body] = ["title", "body"].map(|field| words(field, "rare"));
    let highest = unit(&title).unwrap().max(unit(&body).unwrap());
    let queries = vec![title, body];
    let either = Query::new(QueryKind::DisMax(DisMaxQuery { queries, tie_breaker: 0.0 }));
    assert_eq!(unit(&either), Some(highest));
    assert_eq!(unit(&Query::new(QueryKind::MatchAll)), None);
    let with_another = QueryKind::DisMax(DisMaxQuery {
        queries: vec![words("title", "rare"), Query::new(QueryKind::MatchAll)],
        tie_breaker: 0.0,
    });
    assert_eq!(unit(&Query::new(with_another)), None);
}
