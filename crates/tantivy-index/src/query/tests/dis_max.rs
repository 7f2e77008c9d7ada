//! Tests of `multi_match` and `dis_max` over texts: results against the scores of their clauses, combined by
//! hand.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use super::max_score::{number_at_most, scores};
use crate::query::{SearchOptions, TotalHits};
use sparrow_query::{BoolQuery, DisMaxQuery, MatchQuery, MultiMatchQuery, MultiMatchType, Query, QueryKind};

/// A document: the words of its title, the words of its text, and a number.
type Doc = (Vec<u8>, Vec<u8>, u8);

fn words(numbers: &[u8]) -> String {
    numbers.iter().map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ")
}

fn index(docs: &[Doc], segments: usize, deleted: &[usize]) -> Fixture {
    let mut fixture = Fixture::new(json!({
        "title": {"type": "text"},
        "text": {"type": "text"},
        "n": {"type": "integer"},
    }));
    let rows: Vec<(String, Value)> = docs
        .iter()
        .enumerate()
        .map(|(id, (title, text, n))| {
            (id.to_string(), json!({ "title": words(title), "text": words(text), "n": n }))
        })
        .collect();
    let rows: Vec<(&str, Value)> = rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
    for rows in rows.chunks(rows.len().div_ceil(segments)) {
        fixture.batch(rows);
    }
    for number in deleted {
        fixture.delete(&number.to_string());
    }
    fixture
}

fn text(field: &str, numbers: &[u8]) -> Query {
    QueryKind::Match(MatchQuery { field: field.to_owned(), text: words(numbers), ..MatchQuery::default() })
        .into()
}

fn document() -> impl Strategy<Value = Doc> {
    // Low numbers are frequent words.
    let word = || (0u8..40).prop_map(|n| n * n / 160);
    (proptest::collection::vec(word(), 0..4), proptest::collection::vec(word(), 0..12), 0u8..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_best_of_texts_equals_its_clauses_combined(
        docs in proptest::collection::vec(document(), 1..150),
        segments in 1usize..4,
        asked in proptest::collection::vec(0u8..12, 1..5),
        deleted in proptest::collection::btree_set(0usize..60, 0..6),
        form in 0usize..4,
        tie_breaker in prop_oneof![Just(0.0f32), Just(0.3), Just(1.0)],
        boosts in (1u8..4, 1u8..4, 1u8..3),
        restricted in any::<bool>(),
        size in 1usize..8,
        track in 0usize..3,
        several in any::<bool>(),
    ) {
        let deleted: Vec<usize> = deleted.into_iter().filter(|number| *number < docs.len()).collect();
        let fixture = index(&docs, segments, &deleted);
        let (first, second, whole) = (f32::from(boosts.0), f32::from(boosts.1) / 2.0, f32::from(boosts.2));
        let mut clauses = vec![text("title", &asked).with_boost(first), text("text", &asked).with_boost(second)];
        let mut fields = vec![("title".to_owned(), first), ("text".to_owned(), second)];
        if !several {
            clauses.truncate(1);
            fields.truncate(1);
        }
        if form == 2 {
            clauses.push(number_at_most(1).with_boost(0.5));
        }
        if form == 3 {
            // The number of a document is no word.
            clauses = ["text", "title"].map(|field| text(field, &asked).with_boost(first)).to_vec();
            fields = vec![("*".to_owned(), first)];
        }
        let query: Query = if matches!(form, 0 | 3) {
            QueryKind::MultiMatch(MultiMatchQuery {
                fields,
                kind: MultiMatchType::BestFields,
                tie_breaker: Some(tie_breaker),
                template: MatchQuery { text: words(&asked), ..MatchQuery::default() },
                ..MultiMatchQuery::default()
            })
            .into()
        } else {
            QueryKind::DisMax(DisMaxQuery { queries: clauses.clone(), tie_breaker }).into()
        };
        let query = query.with_boost(whole);
        let query = if restricted {
            let tree = BoolQuery {
                must: vec![query],
                filter: vec![number_at_most(2)],
                must_not: vec![number_at_most(0)],
                ..BoolQuery::default()
            };
            QueryKind::Bool(tree).into()
        } else {
            query
        };

        let alone: Vec<BTreeMap<u64, f32>> = clauses.iter().map(|clause| scores(&fixture, clause)).collect();
        let passing = scores(&fixture, &number_at_most(2));
        let failing = scores(&fixture, &number_at_most(0));
        let matching: std::collections::BTreeSet<u64> = alone.iter().flat_map(|of| of.keys().copied()).collect();
        let mut expected: Vec<(u64, f32)> = matching
            .into_iter()
            .filter(|doc| !restricted || (passing.contains_key(doc) && !failing.contains_key(doc)))
            .map(|doc| {
                let own: Vec<f32> = alone.iter().filter_map(|of| of.get(&doc).copied()).collect();
                let most = own.iter().copied().fold(0.0, f32::max);
                (doc, (most + (own.iter().sum::<f32>() - most) * tie_breaker) * whole)
            })
            .collect();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));

        let track_total_hits = [TotalHits::Exact, TotalHits::UpTo(3), TotalHits::Off][track];
        let options = SearchOptions { size, track_total_hits, ..SearchOptions::default() };
        let found = fixture.top(&query, &options);
        let total = expected.len() as u64;
        prop_assert_eq!(found.total, [total, total.min(3), 0][track]);
        prop_assert_eq!(found.hits.len(), expected.len().min(size));
        let mut ids: Vec<u64> = found.hits.iter().map(|hit| hit.seq_no).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), found.hits.len(), "a document twice: {:?}", found.hits);
        for (hit, (_, score)) in found.hits.iter().zip(&expected) {
            // Sums of single precision numbers depend on their order.
            let close = |other: f32| (hit.score - other).abs() <= 3e-6 * other.abs();
            prop_assert!(close(*score), "{:?} instead of {:?}", found.hits, expected);
            let same = expected.iter().find(|(doc, _)| *doc == hit.seq_no);
            prop_assert!(same.is_some_and(|(_, score)| close(*score)), "{:?} of {:?}", hit, expected);
        }
    }
}
