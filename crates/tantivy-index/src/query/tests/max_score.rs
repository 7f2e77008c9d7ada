//! Tests of a sparse clause combined with texts, and of repeated filters, against the sum of the clauses'
//! scores.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::Fixture;
use crate::query::{SearchOptions, TotalHits};
use sparrow_query::{
    BoolQuery, DisMaxQuery, MatchQuery, Query, QueryKind, QueryStringQuery, RangeQuery, SparseQuery,
};

#[derive(Debug, Clone)]
struct Doc {
    words: Vec<u8>,
    number: u8,
    tokens: BTreeMap<u8, u8>,
}

fn doc() -> impl Strategy<Value = Doc> {
    (
        // Low numbers are frequent words.
        proptest::collection::vec((0u8..40).prop_map(|n| n * n / 160), 0..12),
        0u8..4,
        proptest::collection::btree_map(0u8..6, 1u8..40, 0..5),
    )
        .prop_map(|(words, number, tokens)| Doc { words, number, tokens })
}

fn word(number: u8) -> String {
    format!("word{number}")
}

fn index(docs: &[Doc], segments: usize, deleted: &[usize]) -> Fixture {
    let mut fixture = Fixture::new(json!({
        "text": {"type": "text"},
        "n": {"type": "integer"},
        "v": {"type": "sparse_vector"},
    }));
    let rows: Vec<(String, serde_json::Value)> = docs
        .iter()
        .enumerate()
        .map(|(number, doc)| {
            let text: Vec<String> = doc.words.iter().map(|number| word(*number)).collect();
            let tokens: serde_json::Map<_, _> =
                doc.tokens.iter().map(|(token, weight)| (format!("t{token}"), json!(weight))).collect();
            (number.to_string(), json!({ "text": text.join(" "), "n": doc.number, "v": tokens }))
        })
        .collect();
    let rows: Vec<(&str, serde_json::Value)> =
        rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
    for rows in rows.chunks(rows.len().div_ceil(segments)) {
        fixture.batch(rows);
    }
    for number in deleted {
        fixture.delete(&number.to_string());
    }
    fixture
}

fn text(words: &[u8]) -> Query {
    let text: Vec<String> = words.iter().map(|number| word(*number)).collect();
    let text = text.join(" ");
    QueryKind::Match(MatchQuery { field: "text".to_owned(), text, ..MatchQuery::default() }).into()
}

/// The same text search in the form of another clause, or of one whose score bounds are not known.
fn in_form(text: Query, words: &[u8], form: usize) -> Query {
    let joined = words.iter().map(|number| word(*number)).collect::<Vec<_>>().join(" ");
    match form {
        1 => {
            let default_field = Some("text".to_owned());
            let query = QueryStringQuery { query: joined, default_field, ..QueryStringQuery::default() };
            QueryKind::QueryString(query).into()
        }
        2 => {
            let queries = vec![text, number_at_most(1).with_boost(0.5)];
            QueryKind::DisMax(DisMaxQuery { queries, tie_breaker: 0.5 }).into()
        }
        3 => {
            let queries = vec![text, self::text(&[1, 3, 8]).with_boost(1.5), self::text(&[0, 5])];
            QueryKind::DisMax(DisMaxQuery { queries, tie_breaker: 0.3 }).into()
        }
        _ => text,
    }
}

fn sparse(tokens: &BTreeMap<u8, u8>) -> Query {
    let tokens = tokens.iter().map(|(token, weight)| (format!("t{token}").into(), f32::from(*weight)));
    let tokens = tokens.collect();
    QueryKind::Sparse(SparseQuery { field: "v".to_owned(), tokens, ..SparseQuery::default() }).into()
}

pub(super) fn number_at_most(most: u8) -> Query {
    let lte = Some(json!(most));
    QueryKind::Range(RangeQuery { field: "n".to_owned(), lte, ..RangeQuery::default() }).into()
}

/// Score of every hit, by sequence number.
pub(super) fn scores(fixture: &Fixture, query: &Query) -> BTreeMap<u64, f32> {
    let options =
        SearchOptions { size: 10_000, track_total_hits: TotalHits::Exact, ..SearchOptions::default() };
    fixture.top(query, &options).hits.iter().map(|hit| (hit.seq_no, hit.score)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_joined_text_equals_the_sum_of_its_clauses(
        docs in proptest::collection::vec(doc(), 1..200),
        segments in 1usize..4,
        words in proptest::collection::vec(0u8..12, 1..5),
        more in proptest::collection::vec(0u8..12, 1..3),
        tokens in proptest::collection::btree_map(0u8..7, 1u8..30, 1..5),
        deleted in proptest::collection::btree_set(0usize..60, 0..6),
        shape in 0usize..6,
        filtered in any::<bool>(),
        size in 1usize..8,
        track in 0usize..3,
        boost in 1u8..4,
        form in 0usize..5,
        least in proptest::option::weighted(0.3, 0usize..30),
    ) {
        let deleted: Vec<usize> = deleted.into_iter().filter(|number| *number < docs.len()).collect();
        let fixture = index(&docs, segments, &deleted);
        let own = sparse(&tokens);
        let first = in_form(text(&words), &words, form).with_boost(f32::from(boost));
        let second = text(&more);
        let (must, should): (Vec<&Query>, Vec<&Query>) = match shape {
            0 => (vec![&own, &first], vec![]),
            1 => (vec![], vec![&own, &first]),
            2 => (vec![&own], vec![&first]),
            3 => (vec![&first], vec![&own]),
            4 => (vec![&first, &own, &second], vec![]),
            _ => (vec![&own, &first], vec![&second]),
        };
        let filter: Vec<Query> = if filtered { vec![number_at_most(2)] } else { vec![] };
        let left: Option<BTreeMap<u64, f32>> = filter.first().map(|filter| scores(&fixture, filter));

        // Clause by clause, then added up by hand.
        let mut sums: BTreeMap<u64, (f32, usize, usize)> = BTreeMap::new();
        for clause in &must {
            for (doc, score) in scores(&fixture, clause) {
                let sum = sums.entry(doc).or_default();
                *sum = (sum.0 + score, sum.1 + 1, sum.2);
            }
        }
        for clause in &should {
            for (doc, score) in scores(&fixture, clause) {
                let sum = sums.entry(doc).or_default();
                *sum = (sum.0 + score, sum.1, sum.2 + 1);
            }
        }
        if let (Some(left), true) = (&left, must.is_empty()) {
            // Beside a filter an optional clause need not match.
            left.keys().for_each(|doc| { sums.entry(*doc).or_default(); });
        }
        let mut expected: Vec<(u64, f32)> = sums
            .into_iter()
            .filter(|(doc, (_, matched, _))| {
                *matched == must.len() && left.as_ref().is_none_or(|left| left.contains_key(doc))
            })
            .map(|(doc, (score, ..))| (doc, score))
            .collect();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));

        // Between two scores, so that rounding does not decide.
        let between = |place: usize| {
            let (above, below) = (expected.get(place)?.1, expected.get(place + 1)?.1);
            (above - below > 1e-4 * above).then_some(f32::midpoint(above, below))
        };
        let min_score = least.and_then(between);
        if let Some(least) = min_score {
            expected.retain(|(_, score)| *score >= least);
        }

        let tree = BoolQuery {
            must: must.into_iter().cloned().collect(),
            should: should.into_iter().cloned().collect(),
            filter,
            ..BoolQuery::default()
        };
        let track_total_hits = [TotalHits::Exact, TotalHits::UpTo(3), TotalHits::Off][track];
        let options = SearchOptions { size, track_total_hits, min_score, ..SearchOptions::default() };
        let found = fixture.top(&QueryKind::Bool(tree).into(), &options);
        let total = expected.len() as u64;
        prop_assert_eq!(found.total, [total, total.min(3), 0][track]);
        prop_assert_eq!(found.hits.len(), expected.len().min(size));
        for (hit, (_, score)) in found.hits.iter().zip(&expected) {
            // Sums of single precision numbers depend on their order.
            let close = |other: f32| (hit.score - other).abs() <= 2e-6 * other.abs();
            prop_assert!(close(*score), "{:?} instead of {:?}", found.hits, expected);
            let same = expected.iter().find(|(doc, _)| *doc == hit.seq_no);
            prop_assert!(same.is_some_and(|(_, score)| close(*score)), "{:?} of {:?}", hit, expected);
        }
    }

    /// A `dis_max` of a single clause has the same scores as that clause, and goes the way that scores every
    /// match.
    #[test]
    fn a_text_alone_equals_scoring_every_match(
        docs in proptest::collection::vec(doc(), 1..80),
        segments in 1usize..4,
        words in proptest::collection::vec(0u8..12, 2..6),
        optional in proptest::collection::vec(0u8..12, 0..3),
        deleted in proptest::collection::btree_set(0usize..80, 0..6),
        filtered in any::<bool>(),
        excluded in any::<bool>(),
        size in 1usize..8,
        track in 0usize..3,
    ) {
        let deleted: Vec<usize> = deleted.into_iter().filter(|number| *number < docs.len()).collect();
        let fixture = index(&docs, segments, &deleted);
        let tree = |text: Query| -> Query {
            let tree = BoolQuery {
                must: vec![text],
                should: if optional.is_empty() { vec![] } else { vec![self::text(&optional)] },
                filter: if filtered { vec![number_at_most(2)] } else { vec![] },
                must_not: if excluded { vec![number_at_most(0)] } else { vec![] },
                ..BoolQuery::default()
            };
            QueryKind::Bool(tree).into()
        };
        let track_total_hits = [TotalHits::Exact, TotalHits::UpTo(3), TotalHits::Off][track];
        let options = SearchOptions { size, track_total_hits, ..SearchOptions::default() };
        let plain = QueryKind::DisMax(DisMaxQuery { queries: vec![text(&words)], tie_breaker: 0.0 });
        let found = fixture.top(&tree(text(&words)), &options);
        let expected = fixture.top(&tree(plain.into()), &options);
        let all = scores(&fixture, &tree(QueryKind::DisMax(DisMaxQuery { queries: vec![text(&words)], tie_breaker: 0.0 }).into()));
        prop_assert_eq!(found.total.min(3), (all.len() as u64).min(3) * u64::from(track != 2));
        if track == 0 {
            prop_assert_eq!(found.total, expected.total);
        }
        prop_assert_eq!(found.hits.len(), all.len().min(size));
        for (hit, other) in found.hits.iter().zip(&expected.hits) {
            let close = |score: f32| (hit.score - score).abs() <= 2e-6 * score.abs();
            prop_assert!(close(other.score), "{:?} instead of {:?}", found.hits, expected.hits);
            prop_assert!(all.get(&hit.seq_no).is_some_and(|score| close(*score)));
        }
    }
}

#[test]
fn a_kept_filter_follows_deletions_and_new_documents() {
    let docs: Vec<Doc> = (0..20)
        .map(|number| Doc { words: vec![1], number: number % 4, tokens: [(1, number + 1)].into() })
        .collect();
    let mut fixture = index(&docs, 2, &[]);
    let filtered = || -> Query {
        let tree = BoolQuery {
            must: vec![sparse(&[(1, 1)].into())],
            filter: vec![number_at_most(1)],
            ..BoolQuery::default()
        };
        QueryKind::Bool(tree).into()
    };
    for _ in 0..2 {
        assert_eq!(fixture.ids(filtered()), "0 1 12 13 16 17 4 5 8 9");
        assert_eq!(fixture.snapshot().count(&filtered()).unwrap(), 10);
    }
    fixture.delete("4").delete("17");
    assert_eq!(fixture.ids(filtered()), "0 1 12 13 16 5 8 9");
    fixture.batch(&[("new", json!({"n": 0, "v": {"t1": 1}})), ("other", json!({"n": 3, "v": {"t1": 1}}))]);
    assert_eq!(fixture.ids(filtered()), "0 1 12 13 16 5 8 9 new");
    assert_eq!(fixture.snapshot().count(&number_at_most(1)).unwrap(), 9);
    fixture.index.merge_all().unwrap();
    assert_eq!(fixture.ids(filtered()), "0 1 12 13 16 5 8 9 new");
}

#[test]
fn an_empty_bool_matches_everything_whatever_it_requires() {
    let docs = vec![Doc { words: vec![1], number: 1, tokens: [(1, 1)].into() }; 3];
    let fixture = index(&docs, 1, &[]);
    let empty = BoolQuery { minimum_should_match: Some("1".to_owned()), ..BoolQuery::default() };
    assert_eq!(fixture.snapshot().count(&QueryKind::Bool(empty).into()).unwrap(), 3);
}

/// A cached filter does not survive a change of the mapping: a clause on an unknown field matches nothing,
/// but may be an error once the field is mapped.
#[test]
fn a_kept_filter_does_not_outlive_the_mapping() {
    let mut fixture = Fixture::new(json!({"v": {"type": "sparse_vector"}}));
    fixture.batch(&[("a", json!({"v": {"t1": 1}}))]);
    let filtered = || -> Query {
        let range = RangeQuery { field: "late".to_owned(), gte: Some(json!("x")), ..RangeQuery::default() };
        let tree = BoolQuery {
            must: vec![sparse(&[(1, 1)].into())],
            filter: vec![QueryKind::Range(range).into()],
            ..BoolQuery::default()
        };
        QueryKind::Bool(tree).into()
    };
    assert_eq!(fixture.ids(filtered()), "");
    fixture.batch(&[("b", json!({"late": 1, "v": {"t1": 1}}))]);
    fixture.error(filtered());
}
