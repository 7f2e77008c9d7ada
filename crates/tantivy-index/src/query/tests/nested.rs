//! Tests of nested objects against a naive evaluator, over segments, deletions and merges.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use crate::query::{QueryError, SearchOptions, TotalHits};
use sparrow_mapping::{Limits, Mapping};
use sparrow_query::{BoolQuery, NestedQuery, NestedScore, Query, QueryKind, SparseQuery, TermQuery};

/// An object: a group, and weights of tokens that half precision holds exactly.
type Object = (u8, Vec<(u8, u8)>);

#[derive(Debug, Clone)]
enum Step {
    /// Writes a document: its id, a group, its objects, and the groups of the objects inside each.
    Write(u8, u8, Vec<(Object, Vec<u8>)>),
    Delete(u8),
    Refresh,
    Merge,
}

fn step() -> impl Strategy<Value = Step> {
    let tokens = proptest::collection::vec((0u8..5, 1u8..9), 0..4);
    let object = ((0u8..3, tokens), proptest::collection::vec(0u8..3, 0..3));
    prop_oneof![
        8 => (0u8..12, 0u8..2, proptest::collection::vec(object, 0..4)).prop_map(|(id, group, objects)| Step::Write(id, group, objects)),
        2 => (0u8..12).prop_map(Step::Delete),
        2 => Just(Step::Refresh),
        1 => Just(Step::Merge),
    ]
}

fn properties() -> Value {
    json!({
        "g": {"type": "keyword"},
        "c": {"type": "nested", "properties": {
            "g": {"type": "keyword"},
            "t": {"type": "sparse_vector"},
            "d": {"type": "nested", "properties": {"g": {"type": "keyword"}}},
        }},
    })
}

fn source(group: u8, objects: &[(Object, Vec<u8>)]) -> Value {
    let objects: Vec<Value> = objects
        .iter()
        .map(|((group, tokens), inner)| {
            let tokens: serde_json::Map<_, _> = tokens
                .iter()
                .map(|(token, weight)| (format!("t{token}"), f32::from(*weight).into()))
                .collect();
            let inner: Vec<Value> = inner.iter().map(|group| json!({"g": group.to_string()})).collect();
            json!({"g": group.to_string(), "t": tokens, "d": inner})
        })
        .collect();
    json!({"g": group.to_string(), "c": objects})
}

fn term(field: &str, value: u8) -> Query {
    let value = value.to_string().into();
    QueryKind::Term(TermQuery { field: field.to_owned(), value, case_insensitive: false }).into()
}

fn nested(path: &str, query: Query, score_mode: NestedScore) -> Query {
    let (path, query) = (path.to_owned(), Box::new(query));
    QueryKind::Nested(NestedQuery { path, query, score_mode, ignore_unmapped: false, inner_hits: None })
        .into()
}

fn both(must: Query, filter: Vec<Query>) -> Query {
    QueryKind::Bool(BoolQuery { must: vec![must], filter, ..BoolQuery::default() }).into()
}

const MODES: [NestedScore; 5] =
    [NestedScore::Avg, NestedScore::Max, NestedScore::Min, NestedScore::Sum, NestedScore::None];

fn joined(mode: NestedScore, scores: &[f32]) -> f32 {
    let sum: f64 = scores.iter().map(|score| f64::from(*score)).sum();
    match mode {
        NestedScore::Avg => (sum / scores.len() as f64) as f32,
        NestedScore::Sum => sum as f32,
        NestedScore::Max => scores.iter().copied().fold(f32::NEG_INFINITY, f32::max),
        NestedScore::Min => scores.iter().copied().fold(f32::INFINITY, f32::min),
        NestedScore::None => 0.0,
    }
}

struct Document {
    id: String,
    seq_no: u64,
    group: u8,
    objects: Vec<(Object, Vec<u8>)>,
}

/// Score of an object for the tokens `t0` to `t2` with weights 1, 2 and 3; `None` if it has none of them.
fn score(tokens: &[(u8, u8)]) -> Option<f32> {
    let mut last = std::collections::BTreeMap::new();
    last.extend(tokens.iter().copied());
    let of = last.iter().filter(|(token, _)| **token < 3);
    let products: Vec<f32> = of.map(|(token, weight)| f32::from(*token + 1) * f32::from(*weight)).collect();
    (!products.is_empty()).then(|| products.iter().sum())
}

fn tokens_query() -> Query {
    QueryKind::Sparse(SparseQuery {
        field: "c.t".to_owned(),
        tokens: vec![("t0".into(), 1.0), ("t1".into(), 2.0), ("t2".into(), 3.0)],
        ..SparseQuery::default()
    })
    .into()
}

fn hits_of(documents: &[Document], score: impl Fn(&Document) -> Option<f32>) -> Vec<(String, f32)> {
    let mut hits: Vec<(f32, u64, String)> = documents
        .iter()
        .filter_map(|document| Some((score(document)?, document.seq_no, document.id.clone())))
        .collect();
    hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    hits.into_iter().map(|(score, _, id)| (id, score)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn objects_are_found_as_by_a_naive_evaluator(steps in proptest::collection::vec(step(), 1..30)) {
        let mut fixture = Fixture::new(properties());
        let mut documents: Vec<Document> = Vec::new();
        let mut pending: Vec<(String, Value)> = Vec::new();
        let mut seq_no = 0;
        for step in &steps {
            match step {
                Step::Write(id, group, objects) => {
                    let id = id.to_string();
                    documents.retain(|document| document.id != id);
                    pending.push((id.clone(), source(*group, objects)));
                    documents.push(Document { id, seq_no, group: *group, objects: objects.clone() });
                    seq_no += 1;
                }
                other => {
                    let batch: Vec<(&str, Value)> =
                        pending.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
                    fixture.batch(&batch);
                    pending.clear();
                    match other {
                        Step::Delete(id) => {
                            fixture.delete(&id.to_string());
                            documents.retain(|document| document.id != id.to_string());
                        }
                        Step::Merge => {
                            fixture.merge();
                        }
                        _ => {}
                    }
                }
            }
        }
        let batch: Vec<(&str, Value)> = pending.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
        fixture.batch(&batch);
        let snapshot = fixture.snapshot();
        prop_assert_eq!(snapshot.num_docs(), documents.len() as u64);
        prop_assert_eq!(snapshot.count(&Query::match_all()).unwrap(), documents.len() as u64);
        let objects: usize = documents.iter().map(|document| document.objects.len()).sum();
        prop_assert_eq!(snapshot.inside("c").num_docs(), objects as u64);
        // No search of documents sees an object.
        prop_assert_eq!(fixture.ids(tokens_query()), "");
        prop_assert_eq!(fixture.ids(term("c.g", 1)), "");

        for mode in MODES {
            let expected = hits_of(&documents, |document| {
                let scores: Vec<f32> =
                    document.objects.iter().filter_map(|((_, tokens), _)| score(tokens)).collect();
                (!scores.is_empty()).then(|| joined(mode, &scores))
            });
            prop_assert_eq!(fixture.hits(nested("c", tokens_query(), mode)), expected, "{:?}", mode);

            let filtered = both(nested("c", both(tokens_query(), vec![term("c.g", 1)]), mode), vec![term("g", 0)]);
            let expected = hits_of(&documents, |document| {
                let of_group = document.objects.iter().filter(|((group, _), _)| *group == 1);
                let scores: Vec<f32> = of_group.filter_map(|((_, tokens), _)| score(tokens)).collect();
                (document.group == 0 && !scores.is_empty()).then(|| joined(mode, &scores))
            });
            prop_assert_eq!(fixture.hits(filtered), expected, "{:?}", mode);

            // An object with an object inside it of this group.
            let inside = both(tokens_query(), vec![nested("c.d", term("c.d.g", 2), NestedScore::None)]);
            let expected = hits_of(&documents, |document| {
                let having = document.objects.iter().filter(|(_, inner)| inner.contains(&2));
                let scores: Vec<f32> = having.filter_map(|((_, tokens), _)| score(tokens)).collect();
                (!scores.is_empty()).then(|| joined(mode, &scores))
            });
            prop_assert_eq!(fixture.hits(nested("c", inside, mode)), expected, "{:?}", mode);
        }
        // The best of many, by the pruned search of the objects, with totals.
        let best = nested("c", tokens_query(), NestedScore::Max).with_boost(2.0);
        for (query, group) in [(best.clone(), None), (both(best, vec![term("g", 0)]), Some(0))] {
            let expected = hits_of(&documents, |document| {
                let scores = document.objects.iter().filter_map(|((_, tokens), _)| score(tokens));
                let best = scores.reduce(f32::max).filter(|_| group.is_none_or(|group| document.group == group));
                best.map(|score| 2.0 * score)
            });
            for (size, limit) in [(1, 10_000), (3, 2), (3, 10_000)] {
                let options = SearchOptions { size, track_total_hits: TotalHits::UpTo(limit), ..SearchOptions::default() };
                let top = fixture.top(&query, &options);
                prop_assert_eq!(top.total, (expected.len() as u64).min(limit));
                prop_assert_eq!(fixture.named(&top), expected[..size.min(expected.len())].to_vec());
            }
        }
        // In the objects of one document the same is found as among all.
        let view = snapshot.inside("c");
        let options = SearchOptions { size: 100, track_total_hits: TotalHits::Exact, ..SearchOptions::default() };
        let having = nested("c.d", term("c.d.g", 0), NestedScore::None);
        for query in [Query::match_all(), term("c.g", 1), tokens_query(), both(tokens_query(), vec![term("c.g", 1)]), having] {
            let all = view.search(&query, &options).unwrap().hits;
            for document in snapshot.search(&Query::match_all(), &options).unwrap().hits {
                let expected = all.iter().filter(|hit| view.root_of(hit.addr) == document.addr);
                let expected: Vec<_> = expected.map(|hit| (hit.addr, hit.score)).collect();
                let alone = snapshot.inside_of(document.addr, "c");
                let top = alone.search(&query, &options).unwrap();
                prop_assert_eq!(top.total, expected.len() as u64);
                prop_assert_eq!(top.hits.iter().map(|hit| (hit.addr, hit.score)).collect::<Vec<_>>(), expected);
                prop_assert_eq!(alone.count(&query).unwrap(), top.total);
            }
        }
        // Objects inside objects, asked for from the document.
        let expected = hits_of(&documents, |document| {
            document.objects.iter().any(|(_, inner)| inner.contains(&0)).then_some(0.0)
        });
        prop_assert_eq!(fixture.hits(nested("c.d", term("c.d.g", 0), NestedScore::None)), expected.clone());
        let filter = QueryKind::Bool(BoolQuery {
            filter: vec![nested("c.d", term("c.d.g", 0), NestedScore::Avg)],
            ..BoolQuery::default()
        });
        prop_assert_eq!(fixture.hits(filter).len(), expected.len());
        let without = QueryKind::Bool(BoolQuery {
            must_not: vec![nested("c", term("c.g", 1), NestedScore::Avg)],
            ..BoolQuery::default()
        });
        let expected = documents.iter().filter(|document| document.objects.iter().all(|((group, _), _)| *group != 1));
        prop_assert_eq!(fixture.hits(without).len(), expected.count());
    }
}

#[test]
fn an_object_knows_its_place() {
    let mut fixture = Fixture::new(properties());
    let none = |groups: &[u8]| ((0, Vec::new()), groups.to_vec());
    fixture.batch(&[
        ("a", source(0, &[none(&[7])])),
        ("b", source(0, &[none(&[]), none(&[0, 1]), none(&[2, 0])])),
    ]);
    let snapshot = fixture.snapshot();
    let view = snapshot.inside("c").inside("c.d");
    let top = view.search(&term("c.d.g", 0), &SearchOptions::default()).unwrap();
    let mut places: Vec<_> = top.hits.iter().map(|hit| view.place_of(hit.addr)).collect();
    places.sort();
    let at = |outer: usize, inner: usize| vec![("c".to_owned(), outer), ("c.d".to_owned(), inner)];
    assert_eq!(places, [at(1, 0), at(2, 1)]);
    let mut open = None;
    for hit in &top.hits {
        assert_eq!(snapshot.fetch(view.root_of(hit.addr)).unwrap().id, "b");
        let object = view.fetch_within(hit.addr, &mut open).unwrap();
        assert_eq!((&*object.id, &*object.source), ("b", &br#"{"c":{"d":{"g":"0"}}}"#[..]));
        assert_eq!(view.fetch(hit.addr).unwrap(), object);
    }
    // The document that is open is another one.
    let other =
        snapshot.inside("c.d").search(&term("c.d.g", 7), &SearchOptions::default()).unwrap().hits[0].addr;
    let object = view.fetch_within(other, &mut open).unwrap();
    assert_eq!((&*object.id, &*object.source), ("a", &br#"{"c":{"d":{"g":"7"}}}"#[..]));
    assert_eq!(snapshot.place_of(view.root_of(top.hits[0].addr)), []);
    assert_eq!(snapshot.inside("c.d").num_docs(), 5);
}

#[test]
fn a_restricted_view_has_the_objects_of_its_documents() {
    let mut fixture = Fixture::new(properties());
    let one = |group: u8| ((group, vec![(0, 4)]), vec![group]);
    fixture.batch(&[("a", source(0, &[one(1), one(2)])), ("b", source(1, &[one(1)]))]);
    let restricted = fixture.snapshot().restricted(&term("g", 1)).unwrap();
    assert_eq!((restricted.inside("c").num_docs(), restricted.inside("c").inside("c.d").num_docs()), (1, 1));
    let options = SearchOptions { track_total_hits: TotalHits::Exact, ..SearchOptions::default() };
    let found = restricted.search(&nested("c", tokens_query(), NestedScore::Max), &options).unwrap();
    assert_eq!((found.total, found.hits[0].score), (1, 4.0));
}

#[test]
fn a_view_leads_only_inwards() {
    let list = json!({"type": "nested", "properties": {"g": {"type": "keyword"}}});
    let mut fixture = Fixture::new(json!({"g": {"type": "keyword"}, "a": list, "b": list}));
    fixture.batch(&[
        ("hidden", json!({"g": "1", "a": [{"g": "1"}]})),
        ("shown", json!({"g": "0", "b": [{"g": "0"}]})),
    ]);
    let snapshot = fixture.snapshot();
    let restricted = snapshot.restricted(&term("g", 0)).unwrap();
    assert_eq!((restricted.inside("a").num_docs(), restricted.inside("b").num_docs()), (0, 1));
    for view in [restricted.inside("b"), snapshot.inside("b")] {
        // The next object of another field is in another document.
        assert_eq!(view.inside("a").num_docs(), 0);
        assert_eq!(view.inside("b").num_docs(), 0);
        assert_eq!(view.inside("nowhere").num_docs(), 0);
        let top = view.search(&Query::match_all(), &SearchOptions::default()).unwrap();
        assert_eq!(view.inside_of(top.hits[0].addr, "a").num_docs(), 0);
    }
}

#[test]
fn explanations_name_the_best_object() {
    let mut fixture = Fixture::new(properties());
    let object = |weight: u8| ((0, vec![(0, weight)]), Vec::new());
    fixture.batch(&[("a", source(0, &[object(1)])), ("b", source(0, &[object(2), object(5), object(3)]))]);
    let snapshot = fixture.snapshot();
    let query = nested("c", tokens_query(), NestedScore::Max);
    let top = snapshot.search(&query, &SearchOptions::default()).unwrap();
    let explained = snapshot.explain(&query, &[top.hits[0].addr], None).unwrap().remove(0);
    assert_eq!(explained.value, 5.0);
    assert_eq!(
        explained.description,
        "Score based on 3 child docs in range from 2 to 4, using score mode Max"
    );
    assert_eq!(explained.details[0].value, 5.0);
    let missing = nested("c", term("c.g", 9), NestedScore::Max);
    assert!(snapshot.explain(&missing, &[top.hits[0].addr], None).unwrap()[0].no_match);
}

#[test]
fn what_is_not_nested_is_named() {
    let fixture = Fixture::new(json!({"o": {"properties": {"k": {"type": "keyword"}}}}));
    let error = fixture.error(nested("o", term("o.k", 1), NestedScore::Max));
    assert_eq!(error.reason(), "[nested] nested object under path [o] is not of nested type");
    assert!(matches!(
        fixture.error(nested("x", term("x.k", 1), NestedScore::Max)),
        QueryError::NestedPath { .. }
    ));
    let mapping = |definition: Value| Mapping::parse(&definition).map(|mapping| mapping.to_json());
    let same = json!({"properties": {"c": {"type": "nested", "include_in_root": true, "properties": {"k": {"type": "keyword"}}}}});
    assert_eq!(mapping(same.clone()).unwrap(), same);
    let limits = Limits { nested_objects: 3, ..Limits::default() };
    let mapping = Mapping::parse(&json!({ "properties": properties() })).unwrap();
    let parse =
        |count: usize| mapping.parse_document("1", &json!({"c": vec![json!({"g": "1"}); count]}), &limits);
    assert_eq!(parse(3).unwrap().0.nested.len(), 3);
    assert!(parse(4).unwrap_err().to_string().contains("exceeded the allowed limit of [3]"));
}
