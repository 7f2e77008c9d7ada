//! Tests of sparse and kNN clauses.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::json;

use super::{Fixture, assert_close};
use crate::query::{SearchOptions, TotalHits, TotalRelation};
use sparrow_query::{
    BoolQuery, KnnQuery, Pruning, PruningConfig, Query, QueryKind, SparseOrigin, SparseQuery, TermsQuery,
    TextExpansionQuery,
};
use sparrow_scoring::error::QueryError;

fn sparse(field: &str, tokens: &[(&str, f32)]) -> SparseQuery {
    SparseQuery {
        field: field.into(),
        tokens: tokens.iter().map(|(token, weight)| ((*token).into(), *weight)).collect(),
        ..SparseQuery::default()
    }
}

/// An index with the documents of the recorded exchanges.
fn books() -> Fixture {
    let mut fixture = Fixture::new(json!({
        "title": {"type": "text"},
        "tag": {"type": "keyword"},
        "v": {"type": "sparse_vector"},
        "f": {"type": "rank_features"},
    }));
    fixture.batch(&[
        ("auto", json!({"tag": "a", "v": {"alpha": 1.5, "beta": 0.25}, "f": {"alpha": 1.0}})),
        ("4", json!({"v": {"a.b": 1.0}})),
    ]);
    fixture.batch(&[
        ("1", json!({"tag": "a", "v": {"alpha": 0.333333, "gamma": 2.0}})),
        ("b1", json!({"title": "bulk one", "v": {"alpha": 0.7, "delta": 1.1}})),
        ("z", json!({"tag": "z"})),
    ]);
    fixture
}

#[test]
fn recorded_search_sparse_vector() {
    let fixture = books();
    let hits = fixture.hits(QueryKind::Sparse(sparse("v", &[("alpha", 2.5), ("delta", 1.5)])));
    let ids: Vec<&str> = hits.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["auto", "b1", "1"]);
    for ((_, score), recorded) in hits.iter().zip([3.75, 3.3945312, 0.83251953]) {
        assert!((score / recorded - 1.0).abs() < 0.004, "{score} {recorded}");
    }
    // A token with a dot is a token.
    assert_eq!(fixture.ids(QueryKind::Sparse(sparse("v", &[("a.b", 1.0)]))), "4");
    // Repeated tokens add up.
    let twice = fixture.hits(QueryKind::Sparse(sparse("v", &[("beta", 1.0), ("beta", 2.0)])));
    assert_eq!(twice, [("auto".to_owned(), 0.75)]);
}

#[test]
fn a_clause_scores_the_same_alone_and_inside_a_bool() {
    let fixture = books();
    let clause =
        Query::new(QueryKind::Sparse(sparse("v", &[("alpha", 2.5), ("delta", 1.5)]))).with_boost(1.7);
    let alone = fixture.hits(clause.clone());
    let nothing = Query::new(QueryKind::MatchNone);
    let inside =
        fixture.hits(QueryKind::Bool(BoolQuery { should: vec![clause, nothing], ..BoolQuery::default() }));
    assert_eq!(alone, inside);
}

#[test]
fn fields_of_other_types_are_refused_in_the_words_of_each_query() {
    let fixture = books();
    let error = fixture.error(QueryKind::Sparse(sparse("title", &[("alpha", 2.5)])));
    assert_eq!(error.es_type(), "query_shard_exception");
    assert_eq!(
        error.reason(),
        "failed to create query: field [title] must be type [sparse_vector] but is type [text]"
    );
    assert_eq!(
        error.caused_by(),
        Some((
            "illegal_argument_exception",
            "field [title] must be type [sparse_vector] but is type [text]".to_owned()
        ))
    );
    let expansion = |field: &str| {
        QueryKind::Sparse(SparseQuery {
            origin: SparseOrigin::TextExpansion,
            ..sparse(field, &[("alpha", 2.0)])
        })
    };
    let error = fixture.error(expansion("tag"));
    assert_eq!(
        error.reason(),
        "failed to create query: [keyword] is not an appropriate field type for this query. \
         Allowed field types are [sparse_vector, rank_features]."
    );
    assert_eq!(fixture.hits(expansion("f")), [("auto".to_owned(), 2.0)]);
    assert_eq!(fixture.ids(QueryKind::Sparse(sparse("zzz", &[("alpha", 2.5)]))), "");
    let error = fixture.error(QueryKind::Sparse(sparse("v", &[("alpha", -1.0)])));
    assert_eq!(error.reason(), "failed to create query: boost must be a positive float, got -1.0");
    let error = fixture.error(QueryKind::TextExpansion(TextExpansionQuery {
        field: "v".into(),
        model_id: "m".into(),
        model_text: "x".into(),
        pruning: Pruning::Off,
        origin: SparseOrigin::TextExpansion,
    }));
    assert!(matches!(error, QueryError::NotEncoded { .. }));
}

#[test]
fn pruning_needs_frequency_and_low_weight() {
    let mut fixture = Fixture::new(json!({"v": {"type": "sparse_vector"}}));
    // 4 documents, 8 postings, 5 tokens: the average share is 8 / 4 / 5 = 0.4; "the" has 1, 2.5 times
    // the average.
    fixture
        .batch(&[("1", json!({"v": {"the": 1.0, "a": 1.0}})), ("2", json!({"v": {"the": 1.0, "b": 1.0}}))]);
    fixture
        .batch(&[("3", json!({"v": {"the": 1.0, "c": 1.0}})), ("4", json!({"v": {"the": 1.0, "d": 1.0}}))]);
    let ids = |weight: f32, ratio: f32, threshold: f32, only: bool| {
        fixture.ids(QueryKind::Sparse(SparseQuery {
            pruning: Pruning::On(Some(PruningConfig {
                tokens_freq_ratio_threshold: ratio,
                tokens_weight_threshold: threshold,
                only_score_pruned_tokens: only,
            })),
            ..sparse("v", &[("the", weight), ("a", 2.0), ("unknown", 5.0)])
        }))
    };
    assert_eq!(ids(0.5, 2.0, 0.4, false), "1", "frequent and low");
    assert_eq!(ids(0.5, 3.0, 0.4, false), "1 2 3 4", "low, but not frequent enough");
    assert_eq!(ids(3.0, 2.0, 0.4, false), "1 2 3 4", "frequent, but heavy");
    assert_eq!(ids(0.5, 2.0, 0.4, true), "1 2 3 4", "only what was pruned");
}

#[test]
fn totals_and_ties_of_a_lone_clause() {
    let mut fixture = Fixture::new(json!({"v": {"type": "sparse_vector"}}));
    for chunk in 0..3 {
        let rows: Vec<(String, _)> = (0..100)
            .map(|n| ((chunk * 100 + n).to_string(), json!({"v": {"x": 1.0 + f64::from(n % 2)}})))
            .collect();
        let rows: Vec<(&str, _)> = rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
        fixture.batch(&rows);
    }
    let query = Query::new(QueryKind::Sparse(sparse("v", &[("x", 1.0)])));
    let search = |size: usize, track_total_hits: TotalHits| {
        fixture.top(&query, &SearchOptions { size, track_total_hits, ..SearchOptions::default() })
    };
    let top = search(160, TotalHits::UpTo(300));
    assert_eq!((top.total, top.relation), (300, TotalRelation::Eq));
    let ids: Vec<u32> = fixture.named(&top).iter().map(|(id, _)| id.parse().unwrap()).collect();
    let expected: Vec<u32> = (0..300).filter(|n| n % 2 == 1).chain((0..20).step_by(2)).collect();
    assert_eq!(ids, expected);
    let top = search(5, TotalHits::UpTo(299));
    assert_eq!((top.total, top.relation), (299, TotalRelation::Gte));
    assert_eq!(search(0, TotalHits::Exact).total, 300);
    assert_eq!(search(5, TotalHits::Off).relation, TotalRelation::Gte);
    assert_eq!(search(5, TotalHits::Off).hits.len(), 5);
}

#[test]
fn a_set_flag_cancels() {
    let fixture = books();
    let options = SearchOptions { cancel: Some(Arc::new(AtomicBool::new(true))), ..SearchOptions::default() };
    for query in [Query::match_all(), Query::new(QueryKind::Sparse(sparse("v", &[("alpha", 1.0)])))] {
        let error = fixture.snapshot().search(&query, &options).unwrap_err();
        assert!(matches!(error, QueryError::Cancelled));
    }
}

fn vectors() -> Fixture {
    let mut fixture = Fixture::new(json!({
        "d": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"},
        "c": {"type": "dense_vector", "dims": 2, "similarity": "cosine"},
        "n": {"type": "integer"},
        "title": {"type": "text"},
    }));
    fixture.batch(&[("0", json!({"d": [0.0, 1.0], "n": 0})), ("3", json!({"d": [3.0, 1.0], "n": 3}))]);
    fixture.batch(&[
        ("1", json!({"d": [1.0, 1.0], "n": 1})),
        ("2", json!({"d": [2.0, 1.0], "n": 2})),
        ("none", json!({"n": 9})),
    ]);
    fixture
}

fn knn(k: usize) -> KnnQuery {
    KnnQuery { field: "d".into(), vector: vec![0.0, 1.0], k, num_candidates: 10, ..KnnQuery::default() }
}

#[test]
fn knn_finds_the_nearest_of_all_segments() {
    let fixture = vectors();
    let hits = fixture.hits(QueryKind::Knn(knn(3)));
    let ids: Vec<&str> = hits.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["0", "1", "2"]);
    for ((_, score), expected) in hits.iter().zip([1.0, 0.5, 0.2]) {
        assert_close(*score, expected);
    }
    let even = Query::new(QueryKind::Terms(TermsQuery {
        field: "n".into(),
        values: vec![json!(2), json!(3), json!(9)].into(),
    }));
    let filtered = KnnQuery { filter: vec![even.clone()], ..knn(1) };
    assert_eq!(fixture.ids(QueryKind::Knn(filtered)), "2", "the filter comes before the cut");
    let near = KnnQuery { similarity: Some(1.5), ..knn(3) };
    assert_eq!(fixture.ids(QueryKind::Knn(near)), "0 1");
    // Parts of a union add up.
    let both = fixture.hits(QueryKind::Bool(BoolQuery {
        should: vec![Query::new(QueryKind::Knn(knn(3))).with_boost(2.0), even],
        ..BoolQuery::default()
    }));
    let both: Vec<(&str, f32)> = both.iter().map(|(id, score)| (id.as_str(), *score)).collect();
    assert_eq!(both[..2], [("0", 2.0), ("2", 1.4)]);
    assert_eq!(both.len(), 5);
}

#[test]
fn knn_refuses_what_does_not_fit() {
    let fixture = vectors();
    let reason = |query: KnnQuery| fixture.error(QueryKind::Knn(query)).reason();
    assert_eq!(
        reason(KnnQuery { vector: vec![1.0], ..knn(1) }),
        "failed to create query: the query vector has a different number of dimensions [1] than the document \
         vectors [2]"
    );
    assert_eq!(
        reason(KnnQuery { field: "title".into(), ..knn(1) }),
        "failed to create query: [knn] queries are only supported on [dense_vector] fields"
    );
    assert_eq!(
        reason(KnnQuery { field: "c".into(), vector: vec![0.0, 0.0], ..knn(1) }),
        "failed to create query: The [cosine] similarity does not support vectors with zero \
         magnitude. Preview of invalid vector: [0.0, 0.0]"
    );
    assert!(
        reason(KnnQuery { vector: vec![f32::NAN, 0.0], ..knn(1) })
            .contains("do not support NaN or infinite values")
    );
    assert_eq!(fixture.ids(QueryKind::Knn(KnnQuery { field: "zzz".into(), ..knn(1) })), "");
}
