//! `nested` and `reverse_nested` over random documents against a naive evaluator.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::Fixture;
use super::{aggregation, field, numbered, run, terms};
use crate::{AggregationKind, StatsKind};
use sparrow_query::Query;

/// Groups of a document, and the key and number of each of its objects.
type Doc = (Vec<u8>, Vec<(u8, i8)>);

fn source((groups, objects): &Doc) -> Value {
    let groups: Vec<String> = groups.iter().map(|group| format!("g{group}")).collect();
    let objects: Vec<Value> =
        objects.iter().map(|(key, number)| json!({"k": format!("k{key}"), "n": number})).collect();
    json!({"g": groups, "o": objects})
}

/// The naive result for some documents: how many objects they have, and for each key how many, their sum, and in how many documents.
fn expected(docs: &[&Doc]) -> Value {
    let mut keys: BTreeMap<u8, (u64, i64, u64)> = BTreeMap::new();
    for (_, objects) in docs {
        let mut seen = Vec::new();
        for (key, number) in objects {
            let of_key = keys.entry(*key).or_default();
            of_key.0 += 1;
            of_key.1 += i64::from(*number);
            of_key.2 += u64::from(!seen.contains(key));
            seen.push(*key);
        }
    }
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_by_key(|(key, (count, ..))| (u64::MAX - count, *key));
    let buckets: Vec<Value> = keys
        .into_iter()
        .map(|(key, (count, sum, documents))| {
            json!({"key": format!("k{key}"), "doc_count": count, "sum": {"value": sum as f64}, "docs": {"doc_count": documents}})
        })
        .collect();
    let objects: usize = docs.iter().map(|(_, objects)| objects.len()).sum();
    json!({"doc_count": objects, "keys": {"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": buckets}})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn objects_of_each_bucket_are_counted_and_summed(
        batches in proptest::collection::vec(
            proptest::collection::vec(
                (proptest::collection::btree_set(0u8..3, 0..3), proptest::collection::vec((0u8..3, -5i8..6), 0..5)), 1..10),
            1..4),
        deleted in proptest::collection::vec(0usize..25, 0..6),
    ) {
        let mut fixture = Fixture::new(json!({
            "g": {"type": "keyword"},
            "o": {"type": "nested", "properties": {"k": {"type": "keyword"}, "n": {"type": "long"}}},
        }));
        let mut docs: Vec<(String, Doc)> = Vec::new();
        for batch in batches {
            let first = docs.len();
            docs.extend(batch.into_iter().zip(first..).map(|((groups, objects), id)| (id.to_string(), (groups.into_iter().collect(), objects))));
            let sources: Vec<(&str, Value)> = docs[first..].iter().map(|(id, doc)| (id.as_str(), source(doc))).collect();
            fixture.batch(&sources);
        }
        for id in &deleted {
            fixture.delete(&id.to_string());
        }
        docs.retain(|(id, _)| !deleted.iter().any(|deleted| deleted.to_string() == *id));

        let docs_around = aggregation("docs", AggregationKind::ReverseNested(None), Vec::new());
        let sum = aggregation("sum", AggregationKind::Stats(StatsKind::Sum, field("o.n")), Vec::new());
        let keys = aggregation("keys", terms(field("o.k"), 1), vec![sum, docs_around]);
        let inside = aggregation("inside", AggregationKind::Nested("o".to_owned()), vec![keys]);
        let groups = aggregation("groups", terms(field("g"), 1), vec![inside.clone()]);
        let found = run(&[&fixture.snapshot()], &numbered(vec![inside, groups]), &Query::match_all());

        let all: Vec<&Doc> = docs.iter().map(|(_, doc)| doc).collect();
        prop_assert_eq!(&found["inside"], &expected(&all));
        for bucket in found["groups"]["buckets"].as_array().unwrap() {
            let group = bucket["key"].as_str().unwrap();
            let of_group: Vec<&Doc> =
                all.iter().copied().filter(|(groups, _)| groups.iter().any(|one| format!("g{one}") == group)).collect();
            prop_assert_eq!(&bucket["inside"], &expected(&of_group));
        }
    }
}
