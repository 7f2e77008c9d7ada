use proptest::prelude::*;

use super::*;
use crate::builder::VectorsBuilder;
use crate::element::{Element, Metric};
use crate::quantise::{Codes, Short};
use crate::similarity::Similarity;

const SIMILARITIES: [Similarity; 4] =
    [Similarity::Cosine, Similarity::DotProduct, Similarity::L2Norm, Similarity::MaxInnerProduct];

fn float(similarity: Similarity, dims: usize) -> Metric {
    Metric { element: Element::Float, similarity, dims }
}

pub(crate) fn naive_score(metric: Metric, q: &[f32], v: &[f32]) -> f64 {
    if metric.element == Element::Bit {
        let bits = q.iter().zip(v).map(|(a, b)| (*a as i8 ^ *b as i8).count_ones()).sum::<u32>();
        return (metric.dims as f64 - f64::from(bits)) / metric.dims as f64;
    }
    let dot: f64 = q.iter().zip(v).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    let length = |x: &[f32]| x.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>().sqrt();
    match metric.similarity {
        Similarity::Cosine => {
            let lengths = length(q) * length(v);
            (1.0 + if lengths > 0.0 { dot / lengths } else { 0.0 }) / 2.0
        }
        Similarity::DotProduct if metric.element == Element::Byte => {
            0.5 + dot / (32_768.0 * metric.dims as f64)
        }
        Similarity::DotProduct => ((1.0 + dot) / 2.0).max(0.0),
        Similarity::L2Norm => {
            1.0 / (1.0 + q.iter().zip(v).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>())
        }
        Similarity::MaxInnerProduct if dot < 0.0 => 1.0 / (1.0 - dot),
        Similarity::MaxInnerProduct => dot + 1.0,
    }
}

pub(crate) fn bits(pattern: &[bool]) -> Vec<u64> {
    let mut words = vec![0; pattern.len().div_ceil(64)];
    for (doc, &set) in pattern.iter().enumerate() {
        words[doc / 64] |= u64::from(set) << (doc % 64);
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn top_k_is_the_naive_ranking(
        similarity in proptest::sample::select(SIMILARITIES.to_vec()),
        element in proptest::sample::select(vec![Element::Float, Element::Byte, Element::Bit]),
        codes in any::<bool>(),
        components in 1_usize..40,
        seed in any::<u64>(),
        present in prop_oneof![proptest::collection::vec(any::<bool>(), 1..150), proptest::collection::vec(any::<bool>(), 2000..2100)],
        // A window of which most may be found is read otherwise than one with a few.
        least in proptest::sample::select(vec![-5.0, -2.0, 2.0]),
        k in 1_usize..20,
    ) {
        let mut state = seed;
        let mut next = || { state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1); ((state >> 40) as i32 % 9 - 4) as f32 };
        let (similarity, dims) = match element {
            Element::Bit => (Similarity::L2Norm, components * 8),
            _ => (similarity, components),
        };
        let metric = Metric { element, similarity, dims };
        let unit = if element == Element::Float { 4.0 } else { 1.0 };
        let query: Vec<f32> = (0..components).map(|_| next() / unit).collect();
        let vectors: Vec<Option<Vec<f32>>> = present.iter().map(|p| p.then(|| (0..components).map(|_| next() / unit).collect())).collect();
        let live: Vec<bool> = present.iter().map(|_| next() > -3.0).collect();
        let filter: Vec<bool> = present.iter().map(|_| next() > least).collect();

        let mut builder = VectorsBuilder::new(metric);
        for (doc, vector) in vectors.iter().enumerate() {
            if let Some(vector) = vector { builder.add(doc as u32, vector).unwrap(); }
        }
        let bytes = builder.finish(present.len() as u32, codes.then_some(Codes::INT8)).unwrap();
        let reader = VectorsReader::open(&bytes[..]).unwrap();
        reader.verify().unwrap();
        for (doc, vector) in vectors.iter().enumerate() {
            prop_assert_eq!(&reader.vector(doc as u32), vector);
        }
        // Later documents win ties here, to see that the key decides and not the order of the scan.
        let found = reader.top_k(&TopKRequest {
            query: &query, k, live: Some(&bits(&live)), filter: Some(&bits(&filter)), min_score: None,
            tie: &|doc| u64::from(u32::MAX - doc), cancel: None,
        }).unwrap();
        let mut expected: Vec<(u32, f64)> = vectors.iter().enumerate()
            .filter(|(doc, _)| live[*doc] && filter[*doc])
            .filter_map(|(doc, vector)| Some((doc as u32, naive_score(metric, &query, vector.as_ref()?))))
            .collect();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        expected.truncate(k);
        prop_assert_eq!(found.len(), expected.len());
        for ((doc, score), (_, wanted)) in found.iter().zip(&expected) {
            prop_assert!((f64::from(*score) - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()), "{} {}", score, wanted);
            let own = naive_score(metric, &query, vectors[*doc as usize].as_ref().unwrap());
            prop_assert!((f64::from(*score) - own).abs() <= 1e-5 * (1.0 + own.abs()));
        }
        for pair in found.windows(2) {
            prop_assert!(pair[0].1 > pair[1].1 || (pair[0].1 == pair[1].1 && pair[0].0 > pair[1].0));
        }
    }

    #[test]
    fn changed_bytes_never_panic(
        at in 0_usize..200, value in any::<u8>(), cut in 0_usize..200,
        codes in proptest::sample::select(vec![
            None, Some(Codes::INT8), Some(Codes::Short(Short::Int4)), Some(Codes::Short(Short::Bit)),
        ]),
    ) {
        let mut builder = VectorsBuilder::new(float(Similarity::Cosine, 3));
        for doc in [1, 4, 5] { builder.add(doc, &[1.0, 2.0, doc as f32]).unwrap(); }
        let mut bytes = builder.finish(7, codes).unwrap();
        let length = bytes.len();
        bytes[at % length] ^= value;
        bytes.truncate(length - cut % length);
        let changed = value != 0 || cut % length != 0;
        if let Ok(reader) = VectorsReader::open(&bytes[..]) {
            prop_assert_eq!(reader.verify().is_err(), changed);
            for doc in 0..7 { let _ = reader.vector(doc); }
        }
    }
}

#[test]
fn products_that_are_too_large_for_a_float_have_scores_too() {
    let mut builder = VectorsBuilder::new(float(Similarity::MaxInnerProduct, 2));
    for (doc, vector) in [[3e38, -3e38], [3e38, 3e38], [-3e38, -3e38], [0.5, 0.0]].iter().enumerate() {
        builder.add(doc as u32, vector).unwrap();
    }
    let reader = VectorsReader::open(builder.finish(4, None).unwrap()).unwrap();
    let request = TopKRequest {
        query: &[3e38, 3e38],
        k: 4,
        live: None,
        filter: None,
        min_score: None,
        tie: &|doc| u64::from(doc),
        cancel: None,
    };
    assert_eq!(reader.top_k(&request).unwrap(), [(1, f32::MAX), (3, 1.5e38), (0, 1.0), (2, 0.0)]);
}

#[test]
fn cosines_of_very_long_and_very_short_vectors_are_those_of_their_directions() {
    for length in [1.0_f32, 1e-25, 1e-18, 1e18, 1e20, 1e37] {
        let mut builder = VectorsBuilder::new(float(Similarity::Cosine, 2));
        for (doc, vector) in [[3.0, 4.0], [4.0, -3.0], [-3.0, -4.0]].iter().enumerate() {
            builder.add(doc as u32, &vector.map(|component| component * length)).unwrap();
        }
        let reader = VectorsReader::open(builder.finish(3, None).unwrap()).unwrap();
        for (doc, wanted) in [(0, 1.0), (1, 0.5), (2, 0.0)] {
            let score = reader.score(&[3.0 * length, 4.0 * length], doc).unwrap().unwrap();
            assert!((score - wanted).abs() < 1e-6, "{length}: {score}, not {wanted}");
        }
    }
}

#[test]
fn the_nearest_of_very_long_vectors_is_found_by_codes() {
    let mut builder = VectorsBuilder::new(float(Similarity::L2Norm, 2));
    let vectors = [[1.2e19, 1.3e19], [1.25e19, 1.3e19], [1e19, -1e19]];
    for (doc, vector) in vectors.iter().enumerate() {
        builder.add(doc as u32, vector).unwrap();
    }
    let reader = VectorsReader::open(builder.finish(3, Some(Codes::INT8)).unwrap()).unwrap();
    let mut near = [0.0; 3];
    Query::new(reader.metric(), &vectors[1], true).by_codes(
        &reader,
        ReadOrder::Scattered,
        &[0, 1, 2],
        &mut near,
    );
    assert!(near[1] > near[0] && near[0] > near[2], "{near:?}");
}

#[test]
fn vectors_that_do_not_fit_are_refused() {
    let mut builder = VectorsBuilder::new(float(Similarity::L2Norm, 2));
    assert_eq!(builder.add(0, &[1.0]), Err(VectorsError::Dimensions { expected: 2, found: 1 }));
    assert_eq!(builder.add(0, &[1.0, f32::NAN]), Err(VectorsError::Component));
    builder.add(3, &[1.0, 2.0]).unwrap();
    assert_eq!(builder.add(3, &[1.0, 2.0]), Err(VectorsError::OutOfOrder { doc: 3, previous: 3 }));
    let bytes = builder.finish(4, None).unwrap();
    let reader = VectorsReader::open(bytes).unwrap();
    assert_eq!(reader.score(&[1.0, 2.0], 3), Ok(Some(1.0)));
    assert_eq!(reader.score(&[1.0, 2.0], 0), Ok(None));
    assert_eq!(reader.score(&[1.0], 3), Err(VectorsError::Dimensions { expected: 2, found: 1 }));
}

#[test]
fn a_threshold_and_a_cancel_flag_stop_documents() {
    let mut builder = VectorsBuilder::new(float(Similarity::MaxInnerProduct, 1));
    for doc in 0..10 {
        builder.add(doc, &[doc as f32]).unwrap();
    }
    let reader = VectorsReader::open(builder.finish(10, None).unwrap()).unwrap();
    let mut request = TopKRequest {
        query: &[1.0],
        k: 10,
        live: None,
        filter: None,
        min_score: Some(float(Similarity::MaxInnerProduct, 1).threshold_score(7.0)),
        tie: &|doc| u64::from(doc),
        cancel: None,
    };
    assert_eq!(reader.top_k(&request).unwrap(), [(9, 10.0), (8, 9.0), (7, 8.0)]);
    let cancelled = AtomicBool::new(true);
    request.cancel = Some(&cancelled);
    assert_eq!(reader.top_k(&request).unwrap(), []);
}

#[test]
fn bytes_take_whole_numbers_only() {
    let mut builder =
        VectorsBuilder::new(Metric { element: Element::Byte, similarity: Similarity::Cosine, dims: 2 });
    assert_eq!(builder.add(0, &[0.5, 1.0]), Err(VectorsError::Component));
    assert_eq!(builder.add(0, &[128.0, 1.0]), Err(VectorsError::Component));
    builder.add(0, &[-128.0, 127.0]).unwrap();
    let reader = VectorsReader::open(builder.finish(1, Some(Codes::INT8)).unwrap()).unwrap();
    assert!(!reader.has_codes(), "bytes need none");
    assert_eq!(reader.vector(0), Some(vec![-128.0, 127.0]));
    assert_eq!(reader.score(&[1.5, 0.0], 0), Err(VectorsError::Component));
}

#[test]
fn version_1_is_read() {
    let mut builder = VectorsBuilder::new(float(Similarity::L2Norm, 1));
    builder.add(1, &[2.0]).unwrap();
    let mut bytes = builder.finish(2, None).unwrap();
    bytes[7] = 1;
    let checksum = crc32fast::hash(&bytes[..28]);
    bytes[28..32].copy_from_slice(&checksum.to_le_bytes());
    let reader = VectorsReader::open(bytes).unwrap();
    assert!(!reader.is_current());
    reader.verify().unwrap();
    assert_eq!(reader.score(&[2.0], 1), Ok(Some(1.0)));
}
