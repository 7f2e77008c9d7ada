//! Tests of explanations: their values equal the scores, and their parts add up.

use proptest::prelude::*;
use serde_json::json;

use super::Fixture;
use super::random::{doc, index, query, tree};
use crate::query::{Explanation, SearchOptions};
use sparrow_query::{
    BoolQuery, DisMaxQuery, ExistsQuery, FuzzyQuery, KnnQuery, MatchPhraseQuery, MatchQuery, MultiMatchQuery,
    Query, QueryKind, QueryStringQuery, SparseQuery, TermQuery,
};

/// Score and explanation of every hit.
fn explained(fixture: &Fixture, query: &Query) -> Vec<(f32, Explanation)> {
    let top = fixture.top(query, &SearchOptions { size: 1000, ..SearchOptions::default() });
    let docs: Vec<_> = top.hits.iter().map(|hit| hit.addr).collect();
    let explanations = fixture.snapshot().explain(query, &docs, None).unwrap();
    top.hits.iter().map(|hit| hit.score).zip(explanations).collect()
}

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() <= 4e-6 * a.abs().max(b.abs()).max(1.0)
}

/// Checks the value of every step against its details, as far as the description says how they are combined.
fn check(step: &Explanation) -> Result<(), String> {
    let parts = || step.details.iter().map(|part| part.value);
    let text = step.description.as_str();
    let expected = if text == "sum of:" || text == "idf, sum of:" {
        Some(parts().sum())
    } else if text == "max of:" {
        Some(parts().fold(0.0, f32::max))
    } else if let Some(rest) = text.strip_prefix("max plus ") {
        let tie: f32 = rest.split(' ').next().and_then(|tie| tie.parse().ok()).ok_or("tie")?;
        let best = parts().fold(0.0, f32::max);
        Some(best + tie * (parts().sum::<f32>() - best))
    } else if text.starts_with("score(freq=") || text.starts_with("Linear function") {
        Some(parts().product())
    } else if text.starts_with("weight(") || text.starts_with("match on required") {
        Some(parts().next().ok_or("no parts")?)
    } else {
        None
    };
    if let Some(expected) = expected
        && !close(step.value, expected)
    {
        return Err(format!("{step:#?} should be {expected}"));
    }
    step.details.iter().try_for_each(check)
}

#[track_caller]
fn assert_explained(fixture: &Fixture, query: impl Into<Query>) -> Vec<Explanation> {
    let explained = explained(fixture, &query.into());
    assert!(!explained.is_empty());
    for (score, explanation) in &explained {
        assert!(close(*score, explanation.value), "{score} is not {explanation:#?}");
        check(explanation).unwrap_or_else(|problem| panic!("{problem}"));
    }
    explained.into_iter().map(|(_, explanation)| explanation).collect()
}

fn library() -> Fixture {
    let mut fixture = Fixture::new(json!({
        "title": {"type": "text"}, "tag": {"type": "keyword"}, "body.x": {"type": "text"},
        "d": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}, "v": {"type": "sparse_vector"},
    }));
    fixture
        .batch(&[
            ("1", json!({"title": "the quick brown fox", "tag": ["a", "b"], "v": {"run": 1.5, "##ing": 0.5}})),
            ("2", json!({"title": "quick quick brown", "body": {"x": "fox"}, "d": [1.0, 0.0]})),
        ])
        .batch(&[
            ("3", json!({"title": "brown fox brown fox and more of the quick words", "tag": "b", "d": [0.0, 0.0]})),
            ("4", json!({"tag": "b"})),
        ]);
    fixture
}

fn text(field: &str, text: &str) -> MatchQuery {
    MatchQuery { field: field.into(), text: text.into(), ..MatchQuery::default() }
}

#[test]
fn bm25_is_taken_apart_as_lucene_does() {
    let fixture = library();
    let all = assert_explained(&fixture, Query::new(QueryKind::Match(text("title", "fox"))).with_boost(2.0));
    let second = all.iter().find(|step| step.description.contains(" in 0)")).unwrap();
    assert_eq!(second.details.len(), 1);
    let computed = &second.details[0];
    assert!(computed.description.ends_with("computed as boost * idf * tf from:"), "{computed:?}");
    assert_eq!(computed.details[0], Explanation::new(4.4, "boost"));
    let idf = &computed.details[1];
    assert_eq!(idf.description, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:");
    assert_eq!(idf.details[0], Explanation::new(2.0, "n, number of documents containing term"));
    assert_eq!(idf.details[1], Explanation::new(3.0, "N, total number of documents with field"));
    let tf: Vec<&str> = computed.details[2].details.iter().map(|part| part.description.as_str()).collect();
    assert_eq!(
        tf,
        [
            "freq, occurrences of term within document",
            "k1, term saturation parameter",
            "b, length normalization parameter",
            "dl, length of field",
            "avgdl, average length of field",
        ]
    );
    let keyword = assert_explained(
        &fixture,
        QueryKind::Term(TermQuery { field: "tag".into(), value: json!("a"), case_insensitive: false }),
    );
    assert_eq!(keyword[0].description, "weight(tag:a in 0) [PerFieldSimilarity], result of:");
    let phrase = assert_explained(
        &fixture,
        QueryKind::MatchPhrase(MatchPhraseQuery {
            field: "title".into(),
            text: "brown fox".into(),
            ..MatchPhraseQuery::default()
        }),
    );
    assert!(phrase[0].description.starts_with("weight(title:\"brown fox\" in "));
    assert!(format!("{phrase:?}").contains("phraseFreq=2.0"), "{phrase:#?}");
    assert!(format!("{phrase:?}").contains("idf, sum of:"));
    let nested = assert_explained(&fixture, QueryKind::Match(text("body.x", "fox")));
    assert!(nested[0].description.starts_with("weight(body.x:fox in"));
}

#[test]
fn clauses_are_described_by_how_they_are_joined() {
    let fixture = library();
    let term = |value: &str| -> Query {
        QueryKind::Term(TermQuery { field: "tag".into(), value: json!(value), case_insensitive: false })
            .into()
    };
    let tree = QueryKind::Bool(BoolQuery {
        must: vec![Query::new(QueryKind::Match(text("title", "quick fox"))).with_boost(3.0)],
        should: vec![Query::new(QueryKind::Exists(ExistsQuery { field: "d".into() })).with_boost(0.5)],
        filter: vec![term("b")],
        must_not: vec![term("zzz")],
        ..BoolQuery::default()
    });
    let all = assert_explained(&fixture, tree);
    let third = all.iter().find(|step| step.details.len() == 3).unwrap();
    assert_eq!(third.description, "sum of:");
    let parts: Vec<&str> = third.details.iter().map(|part| part.description.as_str()).collect();
    assert!(parts.contains(&"sum of:"), "{parts:?}");
    assert!(parts.contains(&"ConstantScore(FieldExistsQuery [field=d])^0.5"), "{parts:?}");
    let filter = third.details.iter().find(|part| part.value == 0.0).unwrap();
    assert_eq!(filter.description, "match on required clause, product of:");
    assert_eq!(filter.details[0], Explanation::new(0.0, "# clause"));
    assert_eq!(filter.details[1], Explanation::new(1.0, "tag:b"));

    let dis_max = QueryKind::DisMax(DisMaxQuery {
        queries: vec![
            QueryKind::Match(text("title", "quick")).into(),
            QueryKind::Match(text("body.x", "fox")).into(),
        ],
        tie_breaker: 0.5,
    });
    let best = assert_explained(&fixture, dis_max);
    assert!(best.iter().all(|step| step.description == "max plus 0.5 times others of:"), "{best:#?}");
    let several = assert_explained(
        &fixture,
        QueryKind::MultiMatch(MultiMatchQuery {
            fields: vec![("title".into(), 2.0), ("body.x".into(), 1.0)],
            template: text("", "fox"),
            ..MultiMatchQuery::default()
        }),
    );
    assert_eq!(several[0].description, "max of:");
    let near = assert_explained(
        &fixture,
        QueryKind::Fuzzy(FuzzyQuery {
            field: "title".into(),
            value: "quik".into(),
            fuzziness: "1".into(),
            ..FuzzyQuery::default()
        }),
    );
    assert!(near[0].description.contains("title:quick"), "{near:#?}");
    assert_explained(
        &fixture,
        QueryKind::QueryString(QueryStringQuery::new("title:(quick -fox) OR tag:b^3")),
    );
    let knn = Query::new(QueryKind::Knn(KnnQuery {
        field: "d".into(),
        vector: vec![0.0, 0.0],
        k: 1,
        num_candidates: 1,
        ..KnnQuery::default()
    }));
    let nearest = assert_explained(&fixture, knn.clone().with_boost(2.0));
    assert_eq!(nearest, [Explanation::new(2.0, "within top k documents")]);
    // A document that does not match.
    let fourth = fixture.snapshot().lookup("4").unwrap().unwrap().addr;
    let none = fixture.snapshot().explain(&knn, &[fourth], None).unwrap();
    assert_eq!(none, [Explanation::no_match("not in top k documents")]);
}

#[test]
fn a_sparse_clause_names_each_token() {
    let fixture = library();
    let sparse = QueryKind::Sparse(SparseQuery {
        field: "v".into(),
        tokens: vec![("run".into(), 2.0), ("##ing".into(), 3.0), ("zzz".into(), 1.0)],
        ..SparseQuery::default()
    });
    let all = assert_explained(&fixture, Query::new(sparse).with_boost(2.0));
    let [sum] = &all[..] else { panic!("{all:?}") };
    assert_eq!((sum.value, sum.description.as_str(), sum.details.len()), (9.0, "sum of:", 2));
    let run = &sum.details[0];
    assert_eq!(
        run.description,
        "Linear function on the v field for the run feature, computed as w * S from:"
    );
    assert_eq!(run.details[0], Explanation::new(4.0, "w, weight of this function"));
    assert_eq!((run.details[1].value, run.details[1].description.as_str()), (1.5, "S, feature value"));
    assert_eq!(run.details[1].token, Some(("v".into(), "run".into())));
    assert!(sum.details[1].description.contains("for the ##ing feature (-ing), computed"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn values_are_scores_and_parts_add_up(
        docs in prop::collection::vec(doc(), 1..20),
        trees in prop::collection::vec(tree(), 8),
        deleted in prop::collection::btree_set(0usize..20, 0..3),
    ) {
        let deleted: Vec<usize> = deleted.into_iter().filter(|n| *n < docs.len()).collect();
        let fixture = index(&docs, &deleted);
        for tree in &trees {
            for (score, explanation) in explained(&fixture, &query(tree)) {
                // Weights in quarters: no rounding at all.
                prop_assert_eq!(score, explanation.value, "{:#?}", explanation);
                prop_assert!(!explanation.no_match);
                if let Err(problem) = check(&explanation) {
                    return Err(TestCaseError::fail(problem));
                }
            }
        }
    }
}
