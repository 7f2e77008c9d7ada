//! Tests of which tokens of a sparse clause are pruned.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use sparrow_query::{Pruning, PruningConfig, QueryKind, SparseQuery};

fn clause(tokens: &[(&str, f32)], pruning: Pruning) -> QueryKind {
    QueryKind::Sparse(SparseQuery {
        field: "v".into(),
        tokens: tokens.iter().map(|(token, weight)| ((*token).into(), *weight)).collect(),
        pruning,
        ..SparseQuery::default()
    })
}

fn config(ratio: f32, weight: f32, only: bool) -> PruningConfig {
    PruningConfig {
        tokens_freq_ratio_threshold: ratio,
        tokens_weight_threshold: weight,
        only_score_pruned_tokens: only,
    }
}

/// The test data of Elasticsearch's own tests: 6 documents, 23 postings, 12 tokens.
fn laundry(options: Option<Value>) -> Fixture {
    let mut definition = json!({"type": "sparse_vector"});
    if let Some(options) = options {
        definition["index_options"] = options;
    }
    let weight = |token: &str| match token {
        "the" => 0.5,
        "octopus" | "comforter" => 2.0,
        _ => 1.0,
    };
    let doc = |text: &str| -> Value {
        let tokens: serde_json::Map<String, Value> =
            text.split(' ').map(|token| (token.to_owned(), json!(weight(token)))).collect();
        json!({ "v": tokens })
    };
    let mut fixture = Fixture::new(json!({ "v": definition }));
    fixture.batch(&[
        ("1", doc("my words comforter")),
        ("2", doc("the machine is leaking")),
        ("3", doc("these are my words")),
    ]);
    fixture.batch(&[
        ("4", doc("the octopus comforter smells")),
        ("5", doc("the octopus comforter is leaking")),
        ("6", doc("washing machine smells")),
    ]);
    fixture
}

const TOKENS: [(&str, f32); 3] = [("the", 0.5), ("comforter", 2.0), ("smells", 1.0)];

#[test]
fn the_numbers_of_the_public_tests() {
    let fixture = laundry(None);
    let top = |pruning: Pruning| {
        let hits = fixture.hits(clause(&TOKENS, pruning));
        (hits.len(), hits[0].1)
    };
    assert_eq!(top(Pruning::Off), (5, 5.25));
    assert_eq!(top(Pruning::On(Some(config(1.0, 0.9, false)))), (3, 4.0));
    assert_eq!(top(Pruning::On(Some(config(1.0, 0.4, true)))), (3, 0.25));
    // The default configuration takes nothing away here, and without a word in the mapping nothing is.
    assert_eq!(top(Pruning::On(None)), (5, 5.25));
    assert_eq!(top(Pruning::ByField(Some(config(1.0, 0.9, false)))), (5, 5.25));
}

#[test]
fn the_mapping_decides_where_the_request_does_not() {
    let options = |prune: bool| {
        let mut options = json!({ "prune": prune });
        if prune {
            options["pruning_config"] =
                json!({"tokens_freq_ratio_threshold": 1, "tokens_weight_threshold": 0.9});
        }
        options
    };
    let fixture = laundry(Some(options(true)));
    let count = |fixture: &Fixture, pruning: Pruning| fixture.hits(clause(&TOKENS, pruning)).len();
    assert_eq!(count(&fixture, Pruning::ByField(None)), 3);
    assert_eq!(count(&fixture, Pruning::On(None)), 3);
    assert_eq!(count(&fixture, Pruning::Off), 5);
    assert_eq!(count(&fixture, Pruning::ByField(Some(config(100.0, 0.4, false)))), 5);
    assert_eq!(count(&fixture, Pruning::On(Some(config(100.0, 0.4, false)))), 5);
    // A change of the mapping counts for the next search.
    let changed = fixture
        .index
        .mapping()
        .merge_update(
            &json!({"properties": {"v": {"type": "sparse_vector", "index_options": options(false)}}}),
        )
        .unwrap();
    fixture.index.update_mapping(&changed).unwrap();
    fixture.index.refresh().unwrap();
    assert_eq!(count(&fixture, Pruning::ByField(None)), 5);
    assert_eq!(count(&fixture, Pruning::On(None)), 5);
    let unset = laundry(Some(json!({"prune": true})));
    assert_eq!(count(&unset, Pruning::ByField(Some(config(1.0, 0.9, false)))), 3);
}

/// The tokens that remain after pruning, by definition.
fn naive(docs: &[BTreeMap<u8, u8>], tokens: &BTreeMap<u8, u8>, config: &PruningConfig) -> BTreeSet<u8> {
    let docs: Vec<_> = docs.iter().filter(|doc| !doc.is_empty()).collect();
    let count = docs.len() as f32;
    let postings = docs.iter().map(|doc| doc.len()).sum::<usize>() as f32;
    let distinct = docs.iter().flat_map(|doc| doc.keys()).collect::<BTreeSet<_>>().len() as f32;
    let best = tokens.values().map(|weight| f32::from(*weight)).fold(0.0, f32::max);
    tokens
        .iter()
        .filter(|(token, weight)| {
            let frequency = docs.iter().filter(|doc| doc.contains_key(token)).count() as f32;
            let frequent =
                frequency / count >= config.tokens_freq_ratio_threshold * (postings / count / distinct);
            let light = f32::from(**weight) <= config.tokens_weight_threshold * best;
            frequency > 0.0 && (frequent && light) == config.only_score_pruned_tokens
        })
        .map(|(token, _)| *token)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pruning_equals_its_definition(
        docs in prop::collection::vec(prop::collection::btree_map(0u8..8, 1u8..5, 0..5), 1..16),
        tokens in prop::collection::btree_map(0u8..9, 1u8..17, 1..7),
        ratio in 1u8..4, weight in 0u8..5, only in any::<bool>(), split in 0usize..16,
    ) {
        let config = config(f32::from(ratio), f32::from(weight) / 4.0, only);
        let mut fixture = Fixture::new(json!({"v": {"type": "sparse_vector"}}));
        let rows: Vec<(String, Value)> = docs.iter().enumerate().map(|(id, doc)| {
            let value: serde_json::Map<String, Value> =
                doc.iter().map(|(token, weight)| (format!("w{token}"), json!(weight))).collect();
            (id.to_string(), if value.is_empty() { json!({}) } else { json!({ "v": value }) })
        }).collect();
        let rows: Vec<(&str, Value)> = rows.iter().map(|(id, row)| (id.as_str(), row.clone())).collect();
        let (first, second) = rows.split_at(split.min(rows.len()));
        fixture.batch(first).batch(second);

        let scored = naive(&docs, &tokens, &config);
        let expected: BTreeMap<String, f32> = docs.iter().enumerate().filter_map(|(id, doc)| {
            let shared: Vec<f32> = scored.iter()
                .filter_map(|token| Some(f32::from(tokens[token]) * f32::from(*doc.get(token)?)))
                .collect();
            (!shared.is_empty()).then(|| (id.to_string(), shared.iter().sum()))
        }).collect();
        let named: Vec<(String, f32)> =
            tokens.iter().map(|(token, weight)| (format!("w{token}"), f32::from(*weight))).collect();
        let named: Vec<(&str, f32)> = named.iter().map(|(token, weight)| (token.as_str(), *weight)).collect();
        let hits: BTreeMap<String, f32> =
            fixture.hits(clause(&named, Pruning::On(Some(config)))).into_iter().collect();
        prop_assert_eq!(hits, expected);
    }
}
