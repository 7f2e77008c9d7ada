//! Tests of BM25 scores against Lucene's formula.

use proptest::prelude::*;
use serde_json::json;

use super::{Fixture, assert_close};
use sparrow_query::{MatchPhraseQuery, MatchQuery, Operator, Query, QueryKind, TermQuery};

fn match_query(field: &str, text: &str) -> Query {
    Query::new(QueryKind::Match(MatchQuery {
        field: field.into(),
        text: text.into(),
        ..MatchQuery::default()
    }))
}

fn term(field: &str, value: &str) -> Query {
    let (field, value) = (field.into(), json!(value));
    Query::new(QueryKind::Term(TermQuery { field, value, case_insensitive: false }))
}

fn idf(doc_freq: usize, docs: usize) -> f64 {
    (1.0 + (docs as f64 - doc_freq as f64 + 0.5) / (doc_freq as f64 + 0.5)).ln()
}

/// BM25 score of one term as Elasticsearch computes it, with the factor k1 + 1.
fn bm25(freq: f64, length: f64, average: f64, idf: f64) -> f64 {
    2.2 * idf * freq / (freq + 1.2 * (1.0 - 0.75 + 0.75 * length / average))
}

/// The recorded exchange `search-match`: seven titles with eleven tokens were written. "bulk" is in one and
/// "first" in three, of which two are deleted but not yet merged away.
#[test]
fn recorded_search_match() {
    let mut fixture = Fixture::new(json!({"title": {"type": "text"}, "n": {"type": "integer"}}));
    let title = |title: &str| json!({"title": title});
    // Documents without a title keep the share of deleted ones below what makes a merge worthwhile.
    let other = json!({"n": 1});
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
    let others = ids.map(|id| (id, other.clone()));
    fixture.batch(&[&others[..8], &[("1", title("first")), ("2", title("second thing"))]].concat());
    fixture.batch(&[&others[8..], &[("1", title("first")), ("b1", title("bulk one"))]].concat());
    fixture.batch(&[("1", title("first v2")), ("4", title("auto id")), ("5", title("auto"))]);
    fixture.delete("2");
    let hits = fixture.hits(match_query("title", "bulk first"));
    assert_eq!(hits.len(), 2);
    assert_eq!((hits[0].0.as_str(), hits[1].0.as_str()), ("b1", "1"));
    assert_close(hits[0].1, 1.5059566);
    assert_close(hits[1].1, 0.7437035);
}

#[test]
fn keywords_score_without_norms() {
    let mut fixture = Fixture::new(json!({"tag": {"type": "keyword"}, "n": {"type": "long"}}));
    fixture.batch(&[
        ("1", json!({"tag": ["a", "b", "a"]})),
        ("2", json!({"tag": "b"})),
        ("3", json!({"n": 3})),
    ]);
    fixture.batch(&[("4", json!({"tag": "c"}))]);
    // Three documents have the field, with four distinct values: dl is 1, avgdl 4/3.
    let hits = fixture.hits(term("tag", "a"));
    assert_eq!(hits.len(), 1);
    assert_close(hits[0].1, bm25(1.0, 1.0, 4.0 / 3.0, idf(1, 3)));
    let boosted = fixture.hits(term("tag", "a").with_boost(3.0));
    assert_close(boosted[0].1, 3.0 * bm25(1.0, 1.0, 4.0 / 3.0, idf(1, 3)));
}

/// The idf of a term that every document has, which single precision would lose.
#[test]
fn frequent_terms_keep_their_idf() {
    let mut fixture = Fixture::new(json!({"title": {"type": "text"}}));
    let docs: Vec<(String, _)> = (0..3000).map(|n| (n.to_string(), json!({"title": "the"}))).collect();
    let docs: Vec<(&str, _)> = docs.iter().map(|(id, doc)| (id.as_str(), doc.clone())).collect();
    fixture.batch(&docs);
    let hits = fixture.hits(match_query("title", "the"));
    assert_eq!(hits.len(), 3000);
    let expected = bm25(1.0, 1.0, 1.0, idf(3000, 3000));
    assert!((f64::from(hits[0].1) / expected - 1.0).abs() < 1e-5, "{} {expected}", hits[0].1);
}

#[test]
fn a_phrase_adds_up_the_idf_of_its_terms() {
    let mut fixture = Fixture::new(json!({"title": {"type": "text"}}));
    fixture.batch(&[
        ("1", json!({"title": "red wine red wine"})),
        ("2", json!({"title": "wine that is red"})),
        ("3", json!({"title": "red dry wine"})),
    ]);
    let phrase = |slop: u32| {
        Query::new(QueryKind::MatchPhrase(MatchPhraseQuery {
            field: "title".into(),
            text: "red wine".into(),
            slop,
            ..MatchPhraseQuery::default()
        }))
    };
    let hits = fixture.hits(phrase(0));
    assert_eq!(hits.len(), 1);
    assert_close(hits[0].1, bm25(2.0, 4.0, 11.0 / 3.0, 2.0 * idf(3, 3)));
    assert_eq!(fixture.ids(phrase(1)), "1 3");
}

const WORDS: [&str; 6] = ["ant", "bee", "cat", "dog", "eel", "fox"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn match_agrees_with_the_formula(
        docs in proptest::collection::vec(proptest::collection::vec(0usize..6, 0..12), 1..14),
        query in proptest::collection::vec(0usize..6, 1..5),
        all in any::<bool>(),
        cut in 0usize..14,
    ) {
        let mut fixture = Fixture::new(json!({"title": {"type": "text"}, "n": {"type": "long"}}));
        let text = |words: &[usize]| {
            words.iter().map(|&word| WORDS[word]).collect::<Vec<_>>().join(" ")
        };
        let rows: Vec<(String, _)> = docs
            .iter()
            .enumerate()
            .map(|(n, words)| {
                let source =
                    if words.is_empty() { json!({"n": n}) } else { json!({"title": text(words)}) };
                (n.to_string(), source)
            })
            .collect();
        let rows: Vec<(&str, _)> = rows.iter().map(|(id, doc)| (id.as_str(), doc.clone())).collect();
        let cut = cut.min(rows.len());
        fixture.batch(&rows[..cut]).batch(&rows[cut..]);

        let with_field = docs.iter().filter(|doc| !doc.is_empty()).count();
        let tokens: usize = docs.iter().map(Vec::len).sum();
        let average = tokens as f64 / with_field.max(1) as f64;
        let mut expected: Vec<(usize, f64)> = docs
            .iter()
            .enumerate()
            .filter_map(|(n, doc)| {
                let found: Vec<usize> =
                    query.iter().copied().filter(|word| doc.contains(word)).collect();
                if found.is_empty() || all && found.len() < query.len() {
                    return None;
                }
                let score = found
                    .iter()
                    .map(|word| {
                        let freq = doc.iter().filter(|other| *other == word).count() as f64;
                        let doc_freq = docs.iter().filter(|doc| doc.contains(word)).count();
                        bm25(freq, doc.len() as f64, average, idf(doc_freq, with_field))
                    })
                    .sum();
                Some((n, score))
            })
            .collect();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let operator = if all { Operator::And } else { Operator::Or };
        let hits = fixture.hits(QueryKind::Match(MatchQuery {
            field: "title".into(),
            text: text(&query),
            operator,
            ..MatchQuery::default()
        }));
        prop_assert_eq!(hits.len(), expected.len());
        let mut found: Vec<(usize, f32)> =
            hits.iter().map(|(id, score)| (id.parse().unwrap(), *score)).collect();
        for pair in found.windows(2) {
            prop_assert!(pair[0].1 >= pair[1].1);
        }
        found.sort_by_key(|hit| hit.0);
        expected.sort_by_key(|hit| hit.0);
        for ((n, score), (expected_n, expected_score)) in found.iter().zip(&expected) {
            prop_assert_eq!(n, expected_n);
            assert_close(*score, *expected_score);
        }
    }
}
