//! Tests of calibration maps, and of the fusion that uses them.

use proptest::prelude::*;
use sparrow_encoder::Calibration;
use sparrow_tantivy_index::DocAddress;

use super::{Input, fuse_calibrated};
use crate::execute::Key;
use crate::target::Hit;
use sparrow_query::Query;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::calibration::Map;
use sparrow_search_body::fusion::Normalizer;
use sparrow_search_body::retriever::{Retriever, Standard};

const DENSE: Calibration = Calibration { slope: 10.0, intercept: -5.0 };
const SPARSE: Calibration = Calibration { slope: 2.0, intercept: -3.0 };

fn key(target: usize, doc: u32) -> Key {
    Key::of(&Hit { target, addr: DocAddress::new(0, doc), seq_no: u64::from(doc), score: 0.0, rank: None })
}

fn input(weight: f32, maps: &[Option<Map>]) -> Input {
    let all = Retriever::Standard(Standard::new(Query::match_all()));
    Input { weight, normalizer: Normalizer::Calibrated, maps: maps.to_vec(), ..Input::new(all) }
}

fn expected(calibration: Calibration, x: f64) -> f64 {
    1.0 / (1.0 + (-(f64::from(calibration.slope) * x + f64::from(calibration.intercept))).exp())
}

#[track_caller]
fn near(found: f32, wanted: f64) {
    assert!((f64::from(found) - wanted).abs() < 1e-5, "{found} is not {wanted}");
}

/// The score of one document among the fused ones.
#[track_caller]
fn score_of(inputs: &[Input], lists: &[&[(Key, f32)]], doc: Key) -> f32 {
    fuse_calibrated(inputs, lists).iter().find(|hit| hit.doc == doc).expect("fused").score
}

#[test]
fn a_map_reads_the_feature_and_not_the_score() {
    // A dense score is (1 + cos) / 2, whatever it is multiplied with.
    for boost in [1.0f32, 3.0] {
        let map = Map::new(DENSE, boost / 2.0, boost / 2.0);
        for cos in [-1.0f32, 0.0, 0.3, 0.5, 1.0] {
            near(map.of_score(boost * (1.0 + cos) / 2.0), expected(DENSE, f64::from(cos)));
        }
        near(map.of_absent(), expected(DENSE, 0.0));
    }
    // The score of a question that is twice as long is twice as high.
    let (short, long) = (Map::new(SPARSE, 2.0, 0.0), Map::new(SPARSE, 4.0, 0.0));
    assert_eq!(short.of_score(3.0), long.of_score(6.0));
    near(short.of_score(3.0), expected(SPARSE, 1.5));
    assert_eq!(short.of_score(0.0), short.of_absent());
}

#[test]
fn where_no_score_is_possible_all_is_as_if_absent() {
    let map = Map::new(SPARSE, 0.0, 0.0);
    assert_eq!(map.of_score(7.0), map.of_absent());
}

#[test]
fn a_fused_score_is_the_weighted_mean_of_probabilities() {
    let (dense, sparse) = (Map::new(DENSE, 0.5, 0.5), Map::new(SPARSE, 1.0, 0.0));
    let inputs = [input(1.5, &[Some(dense)]), input(1.0, &[Some(sparse)])];
    let lists: [&[(Key, f32)]; 2] =
        [&[(key(0, 1), 0.9), (key(0, 2), 0.8)], &[(key(0, 3), 4.0), (key(0, 1), 2.0)]];
    let fused = fuse_calibrated(&inputs, &lists);
    let mean = |dense: f64, sparse: f64| (1.5 * dense + sparse) / 2.5;
    for (doc, wanted) in [
        (1, mean(expected(DENSE, 0.8), expected(SPARSE, 2.0))),
        (2, mean(expected(DENSE, 0.6), expected(SPARSE, 0.0))),
        (3, mean(expected(DENSE, 0.0), expected(SPARSE, 4.0))),
    ] {
        near(fused.iter().find(|hit| hit.doc == key(0, doc)).unwrap().score, wanted);
    }
    let order: Vec<Key> = fused.iter().map(|hit| hit.doc).collect();
    assert_eq!(order, [key(0, 1), key(0, 2), key(0, 3)]);
}

#[test]
fn what_a_list_cannot_find_in_an_index_counts_as_absent_there() {
    let (dense, sparse) = (Map::new(DENSE, 0.5, 0.5), Map::new(SPARSE, 1.0, 0.0));
    // The second index has no field of vectors.
    let inputs = [input(1.0, &[Some(dense), None]), input(1.0, &[Some(sparse), Some(sparse)])];
    let lists: [&[(Key, f32)]; 2] = [&[(key(0, 1), 0.9)], &[(key(1, 1), 2.0)]];
    near(score_of(&inputs, &lists, key(1, 1)), (expected(DENSE, 0.0) + expected(SPARSE, 2.0)) / 2.0);
    // Nor has any index: then the list says nothing.
    let inputs = [input(9.0, &[None, None]), inputs[1].clone()];
    near(score_of(&inputs, &[&[], lists[1]], key(1, 1)), expected(SPARSE, 2.0));
}

#[test]
fn weights_may_be_nothing_or_huge() {
    let sparse = Some(Map::new(SPARSE, 1.0, 0.0));
    let list: &[(Key, f32)] = &[(key(0, 1), 2.0)];
    assert_eq!(score_of(&[input(0.0, &[sparse])], &[list], key(0, 1)), 0.0);
    let huge = [input(f32::MAX, &[sparse]), input(f32::MAX, &[sparse])];
    near(score_of(&huge, &[list, list], key(0, 1)), expected(SPARSE, 2.0));
}

proptest! {
    #[test]
    fn maps_grow_and_stay_within_bounds(
        slope in 0.01f32..50.0,
        intercept in -20.0f32..20.0,
        unit in 0.0f32..40.0,
        zero in -2.0f32..2.0,
        mut scores in proptest::collection::vec(-100.0f32..1000.0, 2..20),
    ) {
        let map = Map::new(Calibration { slope, intercept }, unit, zero);
        scores.sort_by(f32::total_cmp);
        let probabilities: Vec<f32> = scores.iter().map(|score| map.of_score(*score)).collect();
        prop_assert!(probabilities.iter().all(|p| (0.0..=1.0).contains(p)), "{probabilities:?}");
        prop_assert!(probabilities.is_sorted(), "{probabilities:?}");
        prop_assert!((0.0..=1.0).contains(&map.of_absent()));
    }

    #[test]
    fn a_score_does_not_depend_on_other_hits(
        others in proptest::collection::vec((2u32..30, 0.0f32..1.0), 0..10),
        own in (0.0f32..1.0, 0.0f32..8.0),
        weights in (0.0f32..3.0, 0.0f32..3.0),
    ) {
        let inputs = [
            input(weights.0, &[Some(Map::new(DENSE, 0.5, 0.5))]),
            input(weights.1, &[Some(Map::new(SPARSE, 1.0, 0.0))]),
        ];
        let list = |own: f32, factor: f32| {
            let mut hits = vec![(key(0, 1), own)];
            for (doc, score) in &others {
                if !hits.iter().any(|hit| hit.0 == key(0, *doc)) {
                    hits.push((key(0, *doc), score * factor));
                }
            }
            hits.sort_by(|a, b| b.1.total_cmp(&a.1));
            hits
        };
        let (dense, sparse) = (list(own.0, 1.0), list(own.1, 8.0));
        let among = score_of(&inputs, &[&dense, &sparse], key(0, 1));
        let alone = score_of(&inputs, &[&[(key(0, 1), own.0)], &[(key(0, 1), own.1)]], key(0, 1));
        prop_assert_eq!(among, alone);
        prop_assert!((0.0..=1.0).contains(&among));
        let fused = fuse_calibrated(&inputs, &[&dense, &sparse]);
        prop_assert!(fused.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }
}

#[test]
fn probabilities_are_fused_with_nothing_else() {
    let read = |normalizers: [&str; 2]| {
        let lists = normalizers.map(|normalizer| {
            format!(r#"{{"retriever": {{"standard": {{"query": {{"match_all": {{}}}}}}}} {normalizer}}}"#)
        });
        let body = format!(r#"{{"retriever": {{"linear": {{"retrievers": [{}]}}}}}}"#, lists.join(","));
        SearchBody::parse(body.as_bytes(), None).map_err(|error| error.exception().reason)
    };
    let calibrated = r#", "normalizer": "calibrated""#;
    let fusion = read([calibrated, calibrated]).expect("valid").fusion.expect("fused");
    assert!(fusion.is_calibrated());
    for other in ["", r#", "normalizer": "zscore""#] {
        for pair in [[calibrated, other], [other, calibrated]] {
            let error = read(pair).map(|_| ()).expect_err("mixed");
            assert!(
                error.contains("[linear] the normalizer [calibrated] must be that of all [retrievers]"),
                "{error}"
            );
        }
    }
}
