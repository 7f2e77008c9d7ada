//! Tests of passages against a naive evaluator: the best passage of each document counts, over segments,
//! deletions and merges.

use proptest::prelude::*;
use serde_json::json;

use super::Fixture;
use crate::query::{DENSE_SHARE, SearchOptions, TotalHits, TotalRelation};
use crate::{IndexOptions, WriteDocument};
use sparrow_mapping::Limits;
use sparrow_mapping::passages::{FieldPassages, Passage, PassageVector};
use sparrow_query::{
    BoolQuery, ConstantScoreQuery, KnnQuery, Query, QueryKind, SemanticQuery, SparseQuery, TermQuery,
    VectorKind,
};

/// Tokens with weights that half precision holds exactly, so that scores can be compared exactly.
type Tokens = Vec<(u8, u8)>;

#[derive(Debug, Clone)]
enum Step {
    /// Writes a document: its id, whether a filter lets it pass, and its passages.
    Write(u8, bool, Vec<Tokens>),
    Delete(u8),
    /// Makes the writes so far visible, as a segment.
    Refresh,
    Merge,
}

fn tokens(tokens: &Tokens) -> Vec<(Box<str>, f32)> {
    let mut named: Vec<(Box<str>, f32)> = tokens
        .iter()
        .map(|(token, weight)| (format!("t{token}").into(), f32::from(*weight) * 0.25))
        .collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named.dedup_by(|a, b| a.0 == b.0);
    named
}

/// A dense vector computed from tokens, so that both kinds of models can be tested on the same documents.
fn vector(tokens: &Tokens) -> Vec<f32> {
    let mut vector = vec![0.1; 4];
    for (token, weight) in tokens {
        vector[usize::from(*token) % 4] += f32::from(*weight);
    }
    vector
}

fn dot(query: &[(Box<str>, f32)], passage: &[(Box<str>, f32)]) -> Option<f32> {
    let mut sum = None;
    for (token, weight) in query {
        if let Some((_, stored)) = passage.iter().find(|(known, _)| known == token) {
            *sum.get_or_insert(0.0) += weight * stored;
        }
    }
    sum
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    (1.0 + dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt())) / 2.0
}

struct Built {
    fixture: Fixture,
    /// Live documents: id, sequence number, whether the filter lets them pass, passages.
    docs: Vec<(String, u64, bool, Vec<Tokens>)>,
}

/// Kinds of vectors that the field's model makes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Made {
    Sparse,
    Dense,
    Both,
}

fn build(steps: &[Step], made: Made) -> Built {
    let properties = json!({"s": {"type": "semantic_text"}, "k": {"type": "keyword"}});
    // Graphs as soon as there is anything to merge.
    let options = IndexOptions { min_graph_vectors: 4, ..IndexOptions::default() };
    let mut built = Built { fixture: Fixture::with_options(properties, options), docs: Vec::new() };
    for step in steps {
        let index = &built.fixture.index;
        match step {
            Step::Write(id, passes, passages) => {
                let (id, seq_no) = (id.to_string(), built.fixture.next_seq_no);
                built.fixture.next_seq_no += 1;
                let source = json!({"k": if *passes { "yes" } else { "no" }});
                let mapping = index.mapping();
                let (mut parsed, _) = mapping.parse_document(&id, &source, &Limits::default()).unwrap();
                let vector = |of: &Tokens| match made {
                    Made::Dense => PassageVector::Dense(vector(of)),
                    Made::Sparse => PassageVector::Sparse(tokens(of)),
                    Made::Both => PassageVector::Hybrid { sparse: tokens(of), dense: vector(of) },
                };
                let chunks = passages
                    .iter()
                    .map(|passage| Passage { source: 0, start: 0, end: 0, vector: vector(passage) })
                    .collect();
                let field = FieldPassages { path: "s".into(), chunks, ..FieldPassages::default() };
                if let Some(wider) = mapping.attach_passages(&mut parsed, vec![field], &|_| None).unwrap() {
                    index.update_mapping(&wider).unwrap();
                }
                let source = source.to_string().into_bytes();
                let document =
                    WriteDocument { id: id.clone(), seq_no, version: 1, parsed, source, replaces: true };
                index.add(document).unwrap();
                built.docs.retain(|(known, ..)| *known != id);
                built.docs.push((id, seq_no, *passes, passages.clone()));
            }
            Step::Delete(id) => {
                index.delete(&id.to_string()).unwrap();
                built.docs.retain(|(known, ..)| *known != id.to_string());
            }
            Step::Refresh => index.refresh().unwrap(),
            Step::Merge => {
                index.refresh().unwrap();
                index.merge_all().unwrap();
            }
        }
    }
    built.fixture.index.refresh().unwrap();
    built
}

impl Built {
    /// Ids and scores that a search must find, best first.
    fn expected(&self, filtered: bool, score: impl Fn(&Tokens) -> Option<f32>) -> Vec<(String, f32)> {
        let mut found: Vec<(String, u64, f32)> = Vec::new();
        for (id, seq_no, passes, passages) in &self.docs {
            let best = passages.iter().filter_map(&score).reduce(f32::max);
            if let Some(best) = best.filter(|_| *passes || !filtered) {
                found.push((id.clone(), *seq_no, best));
            }
        }
        found.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.1.cmp(&b.1)));
        found.into_iter().map(|(id, _, score)| (id, score)).collect()
    }
}

fn step() -> impl Strategy<Value = Step> {
    let tokens = prop::collection::vec((0_u8..6, 1_u8..20), 1..4);
    let write = (0_u8..14, any::<bool>(), prop::collection::vec(tokens, 0..5));
    prop_oneof![
        8 => write.prop_map(|(id, passes, passages)| Step::Write(id, passes, passages)),
        2 => (0_u8..14).prop_map(Step::Delete),
        2 => Just(Step::Refresh),
        1 => Just(Step::Merge),
    ]
}

fn passing() -> Query {
    Query::new(QueryKind::Term(TermQuery { field: "k".into(), value: "yes".into(), case_insensitive: false }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_document_scores_as_its_best_sparse_passage(
        steps in prop::collection::vec(step(), 1..40),
        asked in prop::collection::vec((0_u8..8, 1_u8..9), 1..5),
        size in 1_usize..8,
        filtered in any::<bool>(),
        both in any::<bool>(),
    ) {
        let built = build(&steps, if both { Made::Both } else { Made::Sparse });
        let dense = vector(&asked);
        let asked = tokens(&asked);
        let vectors = match both {
            true => PassageVector::Hybrid { sparse: asked.clone(), dense },
            false => PassageVector::Sparse(asked.clone()),
        };
        let expected = built.expected(filtered, |passage| dot(&asked, &tokens(passage)));
        let clause = Query::new(QueryKind::Semantic(SemanticQuery {
            field: "s".into(),
            vectors: vec![(sparrow_mapping::DEFAULT_INFERENCE_ID.into(), vectors)],
            part: both.then_some(VectorKind::Sparse),
            k: size,
            num_candidates: 100,
            ..SemanticQuery::default()
        }));
        let tree = |should: Vec<Query>| BoolQuery {
            must: vec![clause.clone()],
            should,
            filter: if filtered { vec![passing()] } else { Vec::new() },
            ..BoolQuery::default()
        };
        let options = SearchOptions { size, track_total_hits: TotalHits::Exact, ..SearchOptions::default() };
        // The pruned way, then the one that scores every match.
        let ways = [
            (tree(Vec::new()), 0.0),
            (tree(vec![Query::new(QueryKind::ConstantScore(ConstantScoreQuery { filter: Box::new(Query::match_all()) }))]), 1.0),
        ];
        for (tree, added) in ways {
            let top = built.fixture.top(&Query::new(QueryKind::Bool(tree)), &options);
            let found = built.fixture.named(&top);
            let wanted: Vec<_> = expected.iter().take(size).map(|(id, score)| (id.clone(), score + added)).collect();
            prop_assert_eq!(found, wanted);
            prop_assert_eq!((top.total, top.relation), (expected.len() as u64, TotalRelation::Eq));
        }
        // At most so many are counted, and a least score holds for documents.
        if let Some((_, least)) = expected.get(size / 2) {
            let options = SearchOptions { min_score: Some(*least), ..options };
            let top = built.fixture.top(&Query::new(QueryKind::Bool(tree(Vec::new()))), &options);
            prop_assert_eq!(top.total, expected.iter().filter(|(_, score)| score >= least).count() as u64);
        }
    }

    #[test]
    fn a_document_scores_as_its_best_dense_passage(
        steps in prop::collection::vec(step(), 1..40),
        asked in prop::collection::vec((0_u8..8, 1_u8..9), 1..5),
        k in 1_usize..8,
        filtered in any::<bool>(),
        both in any::<bool>(),
    ) {
        let built = build(&steps, if both { Made::Both } else { Made::Dense });
        let asked = vector(&asked);
        let expected = built.expected(filtered, |passage| Some(cosine(&asked, &vector(passage))));
        let knn = KnnQuery {
            field: "s".into(),
            vector: asked,
            k,
            num_candidates: 1000,
            filter: if filtered { vec![passing()] } else { Vec::new() },
            ..KnnQuery::default()
        };
        let found = built.fixture.hits(QueryKind::Knn(knn));
        prop_assert_eq!(found.len(), expected.len().min(k));
        for ((_, found), (_, wanted)) in found.iter().zip(&expected) {
            prop_assert!((found - wanted).abs() < 1e-4, "{} {}", found, wanted);
        }
    }
}

#[test]
fn clauses_that_do_not_fit_the_field_say_so() {
    let sparse = build(&[Step::Write(1, true, vec![vec![(1, 1)]])], Made::Sparse).fixture;
    let knn = |field: &str| KnnQuery { field: field.into(), vector: vec![1.0], k: 1, ..KnnQuery::default() };
    assert!(sparse.error(QueryKind::Knn(knn("s"))).reason().contains("[sparse_embedding]"));
    let dense = build(&[Step::Write(1, true, vec![vec![(1, 1)]])], Made::Dense).fixture;
    let clause = |field: &str| SparseQuery {
        field: field.into(),
        tokens: vec![("t1".into(), 1.0)],
        ..SparseQuery::default()
    };
    assert!(dense.error(QueryKind::Sparse(clause("s"))).reason().contains("[text_embedding]"));
    let semantic = |field: &str| SemanticQuery { field: field.into(), ..SemanticQuery::default() };
    let reason = dense.error(QueryKind::Semantic(semantic("k"))).reason();
    assert!(reason.contains("Field [k] of type [keyword] does not support semantic queries"), "{reason}");
    assert!(dense.hits(QueryKind::Semantic(semantic("nowhere"))).is_empty());
    // Before the first document nothing is known of the model, and there is nothing to find.
    let empty = build(&[], Made::Dense).fixture;
    assert!(empty.hits(QueryKind::Knn(knn("s"))).is_empty());
    assert!(empty.hits(QueryKind::Sparse(clause("s"))).is_empty());
    assert!(empty.hits(QueryKind::Semantic(semantic("s"))).is_empty());
}

#[test]
fn a_clause_on_both_kinds_of_vectors_adds_their_scores() {
    let (near, other) = (vec![vec![(1, 4)]], vec![vec![(2, 4)], vec![(3, 1)]]);
    let built = build(&[Step::Write(1, true, other), Step::Write(2, true, near)], Made::Both);
    let (asked, dense) = (tokens(&vec![(1, 8)]), vector(&vec![(1, 4)]));
    let clause = |part: Option<VectorKind>| SemanticQuery {
        field: "s".into(),
        vectors: vec![(
            sparrow_mapping::DEFAULT_INFERENCE_ID.into(),
            PassageVector::Hybrid { sparse: asked.clone(), dense: dense.clone() },
        )],
        k: 10,
        num_candidates: 100,
        part,
        ..SemanticQuery::default()
    };
    let hits = |part| built.fixture.hits(QueryKind::Semantic(clause(part)));
    let (sparse, dense) = (hits(Some(VectorKind::Sparse)), hits(Some(VectorKind::Dense)));
    // Nothing else shares a token, but everything is more or less near.
    assert_eq!((sparse.len(), dense.len()), (1, 2));
    let both = hits(None);
    assert_eq!(both.len(), 2);
    assert_eq!(both[0].0, "2");
    assert!((both[0].1 - (sparse[0].1 + DENSE_SHARE * dense[0].1)).abs() < 1e-3, "{both:?}");
    assert!((both[1].1 - DENSE_SHARE * dense[1].1).abs() < 1e-3, "{both:?}");
    // Cosines of a model whose vectors lie close together count more.
    let factors = vec![(sparrow_mapping::DEFAULT_INFERENCE_ID.into(), 3.0)];
    let scaled = SemanticQuery { dense_factors: factors, ..clause(None) };
    let scaled = built.fixture.hits(QueryKind::Semantic(scaled));
    assert!((scaled[0].1 - (sparse[0].1 + 3.0 * DENSE_SHARE * dense[0].1)).abs() < 1e-2, "{scaled:?}");
}
