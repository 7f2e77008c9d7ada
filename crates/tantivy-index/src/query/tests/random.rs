//! Tests of random trees of clauses against a naive evaluator.

use proptest::prelude::*;
use serde_json::json;

use super::Fixture;
use crate::query::{SearchOptions, TotalHits, TotalRelation};
use sparrow_query::{BoolQuery, ExistsQuery, Query, QueryKind, RangeQuery, SparseQuery, TermsQuery};

/// A document of the random tests.
#[derive(Debug, Clone)]
pub(super) struct Doc {
    tags: Vec<u8>,
    number: Option<i8>,
    /// Tokens with their weights in quarters, so that half precision and sums are exact.
    tokens: Vec<(u8, u8)>,
}

pub(super) fn doc() -> impl Strategy<Value = Doc> {
    (
        proptest::collection::btree_set(0u8..4, 0..3),
        proptest::option::of(-3i8..4),
        proptest::collection::btree_map(0u8..5, 1u8..9, 0..4),
    )
        .prop_map(|(tags, number, tokens)| Doc {
            tags: tags.into_iter().collect(),
            number,
            tokens: tokens.into_iter().collect(),
        })
}

fn source(doc: &Doc) -> serde_json::Value {
    let mut source = json!({});
    if !doc.tags.is_empty() {
        let tags: Vec<String> = doc.tags.iter().map(|tag| format!("t{tag}")).collect();
        source["tag"] = json!(tags);
    }
    if let Some(number) = doc.number {
        source["n"] = json!(number);
    }
    if !doc.tokens.is_empty() {
        let tokens: serde_json::Map<_, _> = doc
            .tokens
            .iter()
            .map(|(token, weight)| (format!("w{token}"), json!(f32::from(*weight) / 4.0)))
            .collect();
        source["v"] = tokens.into();
    }
    source
}

/// A random clause, whose scores are multiples of a quarter.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    All,
    Nothing,
    Tag(u8),
    Range(i8, i8),
    Exists,
    Sparse(Vec<(u8, u8)>),
    Bool { must: Vec<Tree>, should: Vec<Tree>, filter: Vec<Tree>, must_not: Vec<Tree>, least: Option<usize> },
    Boost(Box<Tree>, u8),
}

pub(super) fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::All),
        Just(Tree::Nothing),
        (0u8..4).prop_map(Tree::Tag),
        (-3i8..4, 0i8..4).prop_map(|(from, span)| Tree::Range(from, from + span)),
        Just(Tree::Exists),
        sparse().prop_map(Tree::Sparse),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let some = || proptest::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (some(), some(), some(), some(), proptest::option::of(0usize..3)).prop_map(
                |(must, should, filter, must_not, least)| Tree::Bool {
                    must,
                    should,
                    filter,
                    must_not,
                    least
                }
            ),
            (inner.clone(), 1u8..4).prop_map(|(tree, boost)| Tree::Boost(Box::new(tree), boost)),
        ]
    })
}

fn sparse() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::btree_map(0u8..6, 1u8..5, 1..4).prop_map(|tokens| tokens.into_iter().collect())
}

pub(super) fn query(tree: &Tree) -> Query {
    let all = |trees: &[Tree]| trees.iter().map(query).collect();
    match tree {
        Tree::All => Query::match_all(),
        Tree::Nothing => Query::new(QueryKind::MatchNone),
        Tree::Tag(tag) => {
            let values = vec![json!(format!("t{tag}"))];
            Query::new(QueryKind::Terms(TermsQuery { field: "tag".into(), values: values.into() }))
        }
        Tree::Range(from, to) => Query::new(QueryKind::Range(RangeQuery {
            field: "n".into(),
            gte: Some(json!(from)),
            lte: Some(json!(to)),
            ..RangeQuery::default()
        })),
        Tree::Exists => Query::new(QueryKind::Exists(ExistsQuery { field: "v".into() })),
        Tree::Sparse(tokens) => Query::new(QueryKind::Sparse(sparse_query(tokens))),
        Tree::Bool { must, should, filter, must_not, least } => Query::new(QueryKind::Bool(BoolQuery {
            must: all(must),
            should: all(should),
            filter: all(filter),
            must_not: all(must_not),
            minimum_should_match: least.map(|least| least.to_string()),
        })),
        Tree::Boost(inner, boost) => {
            let inner = query(inner);
            let boost = inner.boost * f32::from(*boost);
            inner.with_boost(boost)
        }
    }
}

fn sparse_query(tokens: &[(u8, u8)]) -> SparseQuery {
    SparseQuery {
        field: "v".into(),
        tokens: tokens
            .iter()
            .map(|(token, weight)| (format!("w{token}").into(), f32::from(*weight)))
            .collect(),
        ..SparseQuery::default()
    }
}

/// Score of a document for a clause; `None` if it does not match.
fn evaluate(tree: &Tree, doc: &Doc) -> Option<f32> {
    match tree {
        Tree::All => Some(1.0),
        Tree::Nothing => None,
        Tree::Tag(tag) => doc.tags.contains(tag).then_some(1.0),
        Tree::Range(from, to) => doc.number.filter(|number| (*from..=*to).contains(number)).map(|_| 1.0),
        Tree::Exists => (!doc.tokens.is_empty()).then_some(1.0),
        Tree::Sparse(tokens) => {
            let shared: Vec<f32> = tokens
                .iter()
                .filter_map(|(token, weight)| {
                    let stored = doc.tokens.iter().find(|(other, _)| other == token)?.1;
                    Some(f32::from(*weight) * f32::from(stored) / 4.0)
                })
                .collect();
            (!shared.is_empty()).then(|| shared.iter().sum())
        }
        Tree::Boost(inner, boost) => evaluate(inner, doc).map(|score| score * f32::from(*boost)),
        Tree::Bool { must, should, filter, must_not, least } => {
            if must.is_empty() && should.is_empty() && filter.is_empty() && must_not.is_empty() {
                return Some(1.0);
            }
            let mut score = 0.0;
            for clause in must {
                score += evaluate(clause, doc)?;
            }
            if filter.iter().any(|clause| evaluate(clause, doc).is_none())
                || must_not.iter().any(|clause| evaluate(clause, doc).is_some())
            {
                return None;
            }
            let optional: Vec<f32> = should.iter().filter_map(|clause| evaluate(clause, doc)).collect();
            let alone = must.is_empty() && filter.is_empty() && !should.is_empty();
            let least = least.unwrap_or(0).max(usize::from(alone));
            (optional.len() >= least).then(|| score + optional.iter().sum::<f32>())
        }
    }
}

fn mapping() -> serde_json::Value {
    json!({
        "tag": {"type": "keyword"},
        "n": {"type": "integer"},
        "v": {"type": "sparse_vector"},
    })
}

/// Writes the documents in two segments, the second half first, so that the order of segments differs from
/// the order of sequence numbers; then deletes the documents in `deleted`.
pub(super) fn index(docs: &[Doc], deleted: &[usize]) -> Fixture {
    let mut fixture = Fixture::new(mapping());
    let rows: Vec<(String, serde_json::Value)> =
        docs.iter().enumerate().map(|(n, doc)| (n.to_string(), source(doc))).collect();
    let rows: Vec<(&str, serde_json::Value)> =
        rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
    let (first, second) = rows.split_at(rows.len() / 3);
    fixture.batch(first).batch(second);
    for n in deleted {
        fixture.delete(&n.to_string());
    }
    fixture
}

/// Ids and scores of the hits by naive evaluation of all live documents, in order.
fn expected(tree: &Tree, docs: &[Doc], deleted: &[usize], least: f32) -> Vec<(String, f32)> {
    let mut hits: Vec<(usize, f32)> = docs
        .iter()
        .enumerate()
        .filter(|(n, _)| !deleted.contains(n))
        .filter_map(|(n, doc)| Some((n, evaluate(tree, doc)?)))
        .filter(|(_, score)| *score >= least)
        .collect();
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits.into_iter().map(|(n, score)| (n.to_string(), score)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn trees_agree_with_a_naive_evaluator(
        docs in proptest::collection::vec(doc(), 1..30),
        trees in proptest::collection::vec(tree(), 20),
        deleted in proptest::collection::btree_set(0usize..30, 0..4),
        size in 0usize..12,
        least in 0u8..6,
    ) {
        let deleted: Vec<usize> = deleted.into_iter().filter(|n| *n < docs.len()).collect();
        let fixture = index(&docs, &deleted);
        for tree in &trees {
            let query = query(tree);
            prop_assert_eq!(fixture.hits(query.clone()), expected(tree, &docs, &deleted, -1.0));

            let least = f32::from(least) / 2.0;
            let mut wanted = expected(tree, &docs, &deleted, least);
            let total = wanted.len() as u64;
            wanted.truncate(size);
            let options = SearchOptions {
                size,
                min_score: Some(least),
                track_total_hits: TotalHits::Exact,
                ..SearchOptions::default()
            };
            let top = fixture.top(&query, &options);
            prop_assert_eq!(fixture.named(&top), wanted);
            prop_assert_eq!(top.total, total);
            prop_assert_eq!(fixture.snapshot().count(&query).unwrap(),
                expected(tree, &docs, &deleted, -1.0).len() as u64);
        }
    }

    #[test]
    fn a_filtered_sparse_clause_equals_brute_force(
        docs in proptest::collection::vec(doc(), 1..40),
        tokens in sparse(),
        filter in proptest::collection::vec(tree(), 0..3),
        must_not in proptest::collection::vec(tree(), 0..2),
        deleted in proptest::collection::btree_set(0usize..40, 0..5),
        size in 0usize..8,
        limit in 0u64..12,
        in_should in any::<bool>(),
    ) {
        let deleted: Vec<usize> = deleted.into_iter().filter(|n| *n < docs.len()).collect();
        let fixture = index(&docs, &deleted);
        let lone = vec![Tree::Boost(Box::new(Tree::Sparse(tokens)), 2)];
        let (must, should) = if in_should { (vec![], lone) } else { (lone, vec![]) };
        let tree = Tree::Bool { must, should, filter, must_not, least: in_should.then_some(1) };
        let mut wanted = expected(&tree, &docs, &deleted, -1.0);
        let total = wanted.len() as u64;
        wanted.truncate(size);
        let options = SearchOptions {
            size,
            track_total_hits: TotalHits::UpTo(limit),
            ..SearchOptions::default()
        };
        let top = fixture.top(&query(&tree), &options);
        prop_assert_eq!(fixture.named(&top), wanted);
        prop_assert_eq!(top.total, total.min(limit));
        prop_assert_eq!(top.relation == TotalRelation::Gte, total > limit);
    }

    /// A sparse clause beside other scoring clauses, where not every document is scored, gives the same hits
    /// as scoring them all.
    #[test]
    fn a_joined_sparse_clause_equals_brute_force(
        docs in proptest::collection::vec(doc(), 1..40),
        tokens in sparse(),
        others in proptest::collection::vec(tree(), 1..3),
        place in 0usize..3,
        shape in 0usize..4,
        filter in proptest::collection::vec(tree(), 0..2),
        must_not in proptest::collection::vec(tree(), 0..2),
        deleted in proptest::collection::btree_set(0usize..40, 0..5),
        size in 1usize..8,
        track in 0usize..3,
        boost in 1u8..4,
    ) {
        let deleted: Vec<usize> = deleted.into_iter().filter(|n| *n < docs.len()).collect();
        let fixture = index(&docs, &deleted);
        let clause = Tree::Boost(Box::new(Tree::Sparse(tokens)), 2);
        let mut should = others.clone();
        should.insert(place.min(others.len()), clause.clone());
        let (must, should, least) = match shape {
            0 => (vec![], should, Some(1)),
            1 => (vec![clause], others, None),
            2 => (others[..1].to_vec(), [&others[1..], &[clause]].concat(), None),
            _ => (vec![], should, None),
        };
        let bool = Tree::Bool { must, should, filter, must_not, least };
        let tree = Tree::Boost(Box::new(bool), boost);
        let mut wanted = expected(&tree, &docs, &deleted, -1.0);
        let total = wanted.len() as u64;
        wanted.truncate(size);
        let track_total_hits = [TotalHits::Exact, TotalHits::UpTo(3), TotalHits::Off][track];
        let options = SearchOptions { size, track_total_hits, ..SearchOptions::default() };
        let top = fixture.top(&query(&tree), &options);
        prop_assert_eq!(fixture.named(&top), wanted);
        prop_assert_eq!(top.total, [total, total.min(3), 0][track]);
    }
}
