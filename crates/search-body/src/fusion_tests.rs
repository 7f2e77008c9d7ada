//! Compares fusion with a naive implementation.

use proptest::prelude::*;

use super::{Method, Normalizer, Ranked, Ties, fuse};

fn scored(docs: &[u32]) -> Vec<(u32, f32)> {
    docs.iter().zip((1..=docs.len()).rev()).map(|(doc, score)| (*doc, score as f32)).collect()
}

fn rrf(lists: &[Vec<u32>], rank_constant: u32) -> Vec<(u32, f32)> {
    let lists: Vec<_> = lists.iter().map(|list| scored(list)).collect();
    let ranked: Vec<_> =
        lists.iter().map(|hits| Ranked { hits, weight: 1.0, normalizer: Normalizer::None }).collect();
    let fused = fuse(Method::Rrf { rank_constant }, Ties::Rank, &ranked);
    fused.iter().map(|hit| (hit.doc, hit.score)).collect()
}

#[test]
fn the_worked_example_of_the_documentation() {
    let fused = rrf(&[vec![4, 3, 2, 1], vec![3, 2, 1, 5]], 1);
    let expected = [(3, 0.833_333_4), (2, 0.583_333_4), (4, 0.5), (1, 0.45), (5, 0.2)];
    assert_eq!(fused.len(), expected.len());
    for (hit, (doc, score)) in fused.iter().zip(expected) {
        assert_eq!(hit.0, doc);
        assert!((hit.1 - score).abs() < 1e-6, "{} is not {score}", hit.1);
    }
}

#[test]
fn ties_prefer_the_earlier_list_then_the_smaller_document() {
    let docs = |fused: Vec<(u32, f32)>| fused.into_iter().map(|hit| hit.0).collect::<Vec<_>>();
    assert_eq!(docs(rrf(&[vec![9], vec![1]], 60)), [9, 1]);
    let swapped = rrf(&[vec![2, 1], vec![1, 2]], 60);
    assert_eq!(swapped[0].1, swapped[1].1);
    assert_eq!(docs(swapped), [2, 1]);
    assert!(rrf(&[vec![], vec![]], 60).is_empty());
}

#[test]
fn normalizers_do_as_documented() {
    let apply = |normalizer: Normalizer, scores: &[f32]| -> Vec<f32> {
        let normalized = normalizer.normalize(scores.iter().copied());
        scores.iter().map(|score| normalized(*score)).collect()
    };
    assert_eq!(apply(Normalizer::MinMax, &[10.0, 9.0, 5.0]), [1.0, 0.8, 0.0]);
    for score in [0.0, -3.0, 7.25, 1e9, f32::MAX] {
        assert_eq!(apply(Normalizer::MinMax, &[score]), [1.0]);
        assert_eq!(apply(Normalizer::MinMax, &[score, score]), [1.0, 1.0]);
        assert_eq!(apply(Normalizer::ZScore, &[score, score]), [1.0, 1.0]);
    }
    assert_eq!(apply(Normalizer::L2Norm, &[4.0, 3.0]), [0.8, 0.6]);
    assert_eq!(apply(Normalizer::L2Norm, &[0.0, 0.0]), [0.0, 0.0]);
    assert_eq!(apply(Normalizer::None, &[4.0, 3.0]), [4.0, 3.0]);
    // Among 100 documents one is √99 deviations above the mean, and of four equal ones each is √24.
    for (hits, deviations) in [(1, 99f32.sqrt()), (4, 24f32.sqrt())] {
        let found = apply(Normalizer::Rarity, &vec![7.0; hits]);
        assert!(
            found.iter().all(|score| (score - deviations).abs() < 1e-4) && found.len() == hits,
            "{found:?}"
        );
    }
    assert_eq!(apply(Normalizer::Rarity, &[7.0; 100]), [0.0; 100]);
    assert!(apply(Normalizer::MinMax, &[]).is_empty());
    assert_eq!(Normalizer::named("MinMax"), Some(Normalizer::MinMax));
    assert_eq!(Normalizer::named("aardvark"), None);
}

#[test]
fn scores_stay_numbers() {
    let hits = [(1u32, f32::MAX), (2, 1.0)];
    let list = Ranked { hits: &hits, weight: f32::MAX, normalizer: Normalizer::None };
    let fused = fuse(Method::Linear, Ties::Document, &[list, list]);
    assert!(fused.iter().all(|hit| hit.score.is_finite()));
}

/// Sums, ranges and norms of scores can be higher than a float.
#[test]
fn the_highest_scores_are_normalized_as_others_are() {
    let compare = |normalizer: Normalizer, scores: &[f32]| {
        let high: Vec<f32> = scores.iter().map(|score| score * 2f32.powi(126)).collect();
        let of = |scores: &[f32]| -> Vec<f32> {
            let normalized = normalizer.normalize(scores.iter().copied());
            scores.iter().map(|score| normalized(*score)).collect()
        };
        assert_eq!(of(&high), of(scores), "{normalizer:?}");
    };
    for normalizer in [Normalizer::MinMax, Normalizer::L2Norm, Normalizer::ZScore, Normalizer::Rarity] {
        for scores in [&[3.0, 2.0, 1.5][..], &[3.5; 5], &[3.9, 3.5, -3.9], &[1.5, 0.25, -3.0]] {
            compare(normalizer, scores);
        }
    }
    let normalized = Normalizer::L2Norm.normalize([f32::MAX; 4].into_iter());
    assert_eq!(normalized(f32::MAX), 0.5);
    let normalized = Normalizer::MinMax.normalize([f32::INFINITY, f32::NEG_INFINITY].into_iter());
    assert_eq!([f32::INFINITY, 0.0, f32::NEG_INFINITY].map(normalized), [1.0, 0.5, 0.0]);
}

/// A list for the tests: documents, scores, weight and normalizer.
type TestList = (Vec<(u32, f32)>, f32, Normalizer);

fn lists() -> impl Strategy<Value = Vec<TestList>> {
    let list = proptest::collection::vec((0u32..12, 0u32..6), 0..10).prop_map(|pairs| {
        let mut hits: Vec<(u32, f32)> = Vec::new();
        for (doc, score) in pairs {
            if !hits.iter().any(|hit| hit.0 == doc) {
                hits.push((doc, score as f32 * 0.75));
            }
        }
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        hits
    });
    let normalizer = prop_oneof![
        Just(Normalizer::None),
        Just(Normalizer::MinMax),
        Just(Normalizer::L2Norm),
        Just(Normalizer::ZScore),
        Just(Normalizer::Rarity)
    ];
    let weight = (0u32..5).prop_map(|quarters| quarters as f32 / 4.0);
    proptest::collection::vec((list, weight, normalizer), 0..5)
}

/// The fused score of a document by the definition, in double precision.
fn naive(method: Method, lists: &[TestList], doc: u32) -> f64 {
    let mut sum = 0.0;
    for (hits, weight, normalizer) in lists {
        let Some(index) = hits.iter().position(|hit| hit.0 == doc) else { continue };
        let scores: Vec<f64> = hits.iter().map(|hit| f64::from(hit.1)).collect();
        let score = scores[index];
        let value = match (method, normalizer) {
            (Method::Rrf { rank_constant }, _) => 1.0 / (f64::from(rank_constant) + index as f64 + 1.0),
            (Method::Linear, Normalizer::None | Normalizer::Calibrated) => score,
            (Method::Linear, Normalizer::MinMax) => {
                let min = scores.iter().copied().fold(f64::MAX, f64::min);
                let max = scores.iter().copied().fold(f64::MIN, f64::max);
                if min == max { 1.0 } else { (score - min) / (max - min) }
            }
            (Method::Linear, Normalizer::L2Norm) => {
                let norm = scores.iter().map(|score| score * score).sum::<f64>().sqrt();
                if norm == 0.0 { score } else { score / norm }
            }
            (Method::Linear, Normalizer::ZScore) => {
                let count = scores.len() as f64;
                let mean = scores.iter().sum::<f64>() / count;
                let deviation =
                    (scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / count).sqrt();
                // Equal scores stand one above what no list has.
                if deviation < 1e-6 { 1.0 } else { ((score - mean) / deviation).max(0.0) }
            }
            (Method::Linear, Normalizer::Rarity) => {
                let among: Vec<f64> =
                    scores.iter().copied().chain(std::iter::repeat(0.0)).take(100).collect();
                let mean = among.iter().sum::<f64>() / 100.0;
                let deviation =
                    (among.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 100.0).sqrt();
                if deviation < 1e-6 { 1.0 } else { ((score - mean) / deviation).max(0.0) }
            }
        };
        sum += f64::from(*weight) * value;
    }
    sum
}

proptest! {
    #[test]
    fn fusion_is_what_its_definition_says(
        lists in lists(),
        rank_constant in 1u32..100,
        linear in any::<bool>(),
        by_rank in any::<bool>(),
    ) {
        let method = if linear { Method::Linear } else { Method::Rrf { rank_constant } };
        let ties = if by_rank { Ties::Rank } else { Ties::Document };
        let ranked: Vec<_> = lists
            .iter()
            .map(|(hits, weight, normalizer)| Ranked { hits, weight: *weight, normalizer: *normalizer })
            .collect();
        let fused = fuse(method, ties, &ranked);
        let mut docs: Vec<u32> = lists.iter().flat_map(|list| &list.0).map(|hit| hit.0).collect();
        docs.sort_unstable();
        docs.dedup();
        let mut found: Vec<u32> = fused.iter().map(|hit| hit.doc).collect();
        found.sort_unstable();
        prop_assert_eq!(found, docs);
        for hit in &fused {
            let expected = naive(method, &lists, hit.doc);
            prop_assert!((f64::from(hit.score) - expected).abs() < 1e-5, "{} is not {expected}", hit.score);
        }
        for pair in fused.windows(2) {
            prop_assert!(pair[0].score >= pair[1].score);
            if pair[0].score == pair[1].score {
                let ranks = |doc: u32| -> Vec<usize> {
                    let rank = |list: &TestList| list.0.iter().position(|hit| hit.0 == doc);
                    lists.iter().map(|list| rank(list).unwrap_or(usize::MAX)).collect()
                };
                match ties {
                    Ties::Rank => prop_assert!(ranks(pair[0].doc) < ranks(pair[1].doc)),
                    Ties::Document => prop_assert!(pair[0].doc < pair[1].doc),
                }
            }
        }
    }
}
