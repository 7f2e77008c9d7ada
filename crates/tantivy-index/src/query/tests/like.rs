//! Tests of `more_like_this` and of the `term` suggester, against naive evaluators.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use serde_json::json;

use super::super::{SuggestMode, SuggestedTerm, TermSuggest};
use super::Fixture;
use sparrow_query::{LikeDocument, LikeExample, MoreLikeThisQuery, Query, QueryKind};

const WORDS: [&str; 7] = ["aaaa", "aaab", "aabb", "abab", "bbbb", "bbba", "aaaab"];

fn words(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(&WORDS[..]), range)
}

/// An index of texts, with the first half in a segment of its own.
fn index(texts: &[Vec<&str>]) -> Fixture {
    let mut fixture = Fixture::new(json!({"text": {"type": "text"}}));
    let ids: Vec<String> = (0..texts.len()).map(|n| n.to_string()).collect();
    let docs: Vec<_> =
        ids.iter().zip(texts).map(|(id, text)| (id.as_str(), json!({"text": text.join(" ")}))).collect();
    let (first, second) = docs.split_at(docs.len() / 2);
    fixture.batch(first).batch(second);
    fixture
}

fn doc_freq(texts: &[Vec<&str>], word: &str) -> u64 {
    texts.iter().filter(|text| text.contains(&word)).count() as u64
}

/// Ids that a query finds by definition: words are counted and weighted, the best are kept, and enough of
/// them must match.
fn naive(texts: &[Vec<&str>], example: &[&str], query: &MoreLikeThisQuery, skipped: &[&str]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in example.iter().filter(|word| !skipped.contains(word)) {
        *counts.entry(word).or_default() += 1;
    }
    let mut weighed: Vec<(f32, &str)> = counts
        .into_iter()
        .filter(|(_, count)| *count >= query.min_term_freq)
        .filter(|(word, _)| (query.min_doc_freq.max(1)..=query.max_doc_freq).contains(&doc_freq(texts, word)))
        .map(|(word, count)| {
            let idf = ((texts.len() + 1) as f64 / (doc_freq(texts, word) + 1) as f64).ln() + 1.0;
            (count as f32 * idf as f32, word)
        })
        .collect();
    weighed.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    weighed.truncate(query.max_query_terms);
    let least = (weighed.len() * 30 / 100).max(1);
    let hits = texts.iter().enumerate().filter(|(_, text)| {
        let found: BTreeSet<&str> = text.iter().copied().collect();
        !weighed.is_empty() && weighed.iter().filter(|(_, word)| found.contains(word)).count() >= least
    });
    let mut ids: Vec<String> = hits.map(|(id, _)| id.to_string()).collect();
    ids.sort();
    ids.join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn hits_have_enough_of_the_most_telling_words(
        texts in proptest::collection::vec(words(0..6), 1..12),
        example in words(1..10),
        unlike in words(0..2),
        (min_term_freq, min_doc_freq, max_doc_freq, max_query_terms) in (0usize..3, 0u64..4, 2u64..9, 1usize..5),
        as_document in any::<bool>(),
    ) {
        let fixture = index(&texts);
        let text = example.join(" ");
        let like = match as_document {
            false => LikeExample::Text(text),
            true => LikeExample::Document(LikeDocument {
                sources: Some(vec![(None, Arc::new(json!({"text": text})))]),
                ..LikeDocument::default()
            }),
        };
        let query = MoreLikeThisQuery {
            fields: Some(vec!["text".to_owned()]),
            like: vec![like],
            unlike: unlike.iter().map(|word| LikeExample::Text((*word).to_owned())).collect(),
            min_term_freq, min_doc_freq, max_doc_freq, max_query_terms,
            ..MoreLikeThisQuery::default()
        };
        let expected = naive(&texts, &example, &query, &unlike);
        let clause = Query::new(QueryKind::MoreLikeThis(query));
        prop_assert_eq!(fixture.ids(clause), expected);
    }

    #[test]
    fn suggestions_are_the_nearest_frequent_terms(
        texts in proptest::collection::vec(words(0..6), 1..12),
        word in proptest::sample::select(&["aaaa", "aaba", "abaab", "bbab", "caaa"][..]),
        (max_edits, size, min_doc_freq) in (1usize..3, 1usize..4, 0u8..3),
        popular in any::<bool>(),
    ) {
        let fixture = index(&texts);
        let request = TermSuggest {
            field: "text".to_owned(), text: word.to_owned(), size, max_edits,
            min_doc_freq: f32::from(min_doc_freq),
            max_term_freq: 100.0,
            mode: if popular { SuggestMode::Popular } else { SuggestMode::Missing },
            ..TermSuggest::default()
        };
        let found = fixture.snapshot().suggest_terms(&request, &AtomicBool::new(false)).unwrap().unwrap();
        let own = doc_freq(&texts, word);
        let more_than = if popular { own } else { 0 }.max(u64::from(min_doc_freq));
        let mut expected = Vec::new();
        if popular || own == 0 {
            for term in WORDS {
                let edits = edits(word.as_bytes(), term.as_bytes());
                let doc_freq = doc_freq(&texts, term);
                let score = 1.0 - edits as f32 / word.len().min(term.len()) as f32;
                let near = edits > 0 && edits <= max_edits && term.as_bytes()[0] == word.as_bytes()[0];
                if near && score >= 0.5 && doc_freq > more_than {
                    expected.push(SuggestedTerm { term: term.to_owned(), score, doc_freq });
                }
            }
        }
        request.sort(&mut expected);
        expected.truncate(size);
        prop_assert_eq!(&found[0].options, &expected);
    }
}

/// Number of edits between two words, where a swap of neighbours is one edit, by the recursive definition.
fn edits(left: &[u8], right: &[u8]) -> usize {
    let ([.., a], [.., b]) = (left, right) else { return left.len().max(right.len()) };
    let (shorter_left, shorter_right) = (&left[..left.len() - 1], &right[..right.len() - 1]);
    let mut least = (edits(shorter_left, right) + 1)
        .min(edits(left, shorter_right) + 1)
        .min(edits(shorter_left, shorter_right) + usize::from(a != b));
    if let ([.., before_a, _], [.., before_b, _]) = (left, right)
        && a == before_b
        && before_a == b
    {
        least = least.min(edits(&left[..left.len() - 2], &right[..right.len() - 2]) + 1);
    }
    least
}
