use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::builder::VectorsBuilder;
use crate::element::{Element, Metric};
use crate::kernels::ReadOrder;
use crate::quantise::{Codes, Int8};
use crate::scorer::Query;
use crate::similarity::Similarity;

const DIMS: usize = 48;
const COUNT: usize = 3_000;
const SIMILARITIES: [Similarity; 4] =
    [Similarity::Cosine, Similarity::DotProduct, Similarity::L2Norm, Similarity::MaxInnerProduct];

/// Distributions of components, some of which codes represent badly.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Even,
    /// One component is so large that the codes of the others are 0 or 1.
    OneLarge,
    /// All vectors are copies of a few.
    Copies,
    /// Products are too large for a float.
    Huge,
    /// Some lengths are at the ends of floats' range.
    Extreme,
    /// Codes of every second vector are exact, and those of the others have errors.
    HalfExact,
}

const KINDS: [Kind; 6] =
    [Kind::Even, Kind::OneLarge, Kind::Copies, Kind::Huge, Kind::Extreme, Kind::HalfExact];

fn vectors(kind: Kind, random: &mut StdRng) -> Vec<Vec<f32>> {
    let mut vector = || (0..DIMS).map(|_| random.random_range(-0.2..0.2_f32)).collect::<Vec<f32>>();
    match kind {
        Kind::Even => (0..COUNT).map(|_| vector()).collect(),
        Kind::OneLarge => (0..COUNT)
            .map(|_| {
                let mut vector = vector();
                vector[7] = 30.0;
                vector
            })
            .collect(),
        Kind::Copies => {
            let few: Vec<_> = (0..20).map(|_| vector()).collect();
            (0..COUNT).map(|at| few[at % few.len()].clone()).collect()
        }
        Kind::Extreme => (0..COUNT)
            .map(|at| {
                let length = [1e-42, 1e-38, 1e-20, 1.0, 1e18, 1e38][at % 6];
                vector().into_iter().map(|x| x * length).collect()
            })
            .collect(),
        Kind::HalfExact => (0..COUNT)
            .map(|at| {
                let vector = vector();
                if at % 2 == 0 { vector.into_iter().map(f32::signum).collect() } else { vector }
            })
            .collect(),
        Kind::Huge => (0..COUNT).map(|_| vector().into_iter().map(|x| x * 1e20).collect()).collect(),
    }
}

/// The similarities that such vectors may have: dot products are those of vectors of length one.
fn similarities(kind: Kind) -> impl Iterator<Item = Similarity> {
    let long = matches!(kind, Kind::Huge | Kind::Extreme | Kind::HalfExact);
    SIMILARITIES.into_iter().filter(move |similarity| !long || *similarity != Similarity::DotProduct)
}

fn reader_of(similarity: Similarity, vectors: &[Vec<f32>], codes: Int8) -> VectorsReader<Vec<u8>> {
    let metric = Metric { element: Element::Float, similarity, dims: DIMS };
    let mut builder = VectorsBuilder::new(metric);
    for (doc, vector) in vectors.iter().enumerate() {
        builder.add(doc as u32, vector).unwrap();
    }
    VectorsReader::open(builder.finish(vectors.len() as u32, Some(Codes::Int8(codes))).unwrap()).unwrap()
}

/// Hits among all vectors, and the number of vectors that were compared exactly.
fn rescored(reader: &VectorsReader<Vec<u8>>, request: &TopKRequest<'_>) -> (Vec<(DocId, Score)>, usize) {
    let query = Query::new(reader.metric(), request.query, true);
    let ords: Vec<u32> = (0..reader.len() as u32).collect();
    let mut candidates = Vec::new();
    for ords in ords.chunks(BATCH) {
        let mut near = [0.0; BATCH];
        query.by_codes(reader, ReadOrder::Scattered, ords, &mut near);
        candidates.extend(ords.iter().map(|ord| *ord as usize).zip(near));
    }
    let mut compared = 0;
    let mut hits = Hits::new(request, reader, candidates.len());
    let of_codes = query.code_error();
    let error = |ord| {
        let error = of_codes.of(reader.scale(ord), reader.inverse_length(ord));
        if reader.has_whole_codes() { error } else { f64::INFINITY }
    };
    hits.add_rescored(&candidates, error, |ords, near| {
        compared += ords.len();
        query.exact_many(reader, ReadOrder::Scattered, ords, near);
    });
    (hits.finish(), compared)
}

#[test]
fn hits_are_those_of_comparing_all_candidates_exactly() {
    let mut random = StdRng::seed_from_u64(7);
    for kind in KINDS {
        let vectors = vectors(kind, &mut random);
        for similarity in similarities(kind) {
            for confidence_interval in [1.0, 0.9] {
                let reader = reader_of(similarity, &vectors, Int8 { confidence_interval });
                for query in vectors.iter().step_by(100) {
                    for (k, floor) in [(1, None), (10, None), (100, None), (10, Some(0.6)), (10, Some(2.0))] {
                        let request = TopKRequest {
                            query,
                            k,
                            live: None,
                            filter: None,
                            min_score: floor,
                            tie: &|doc| u64::from(doc),
                            cancel: None,
                        };
                        let wanted = reader.top_k(&request).unwrap();
                        let (hits, _) = rescored(&reader, &request);
                        let what = format!("{kind:?} {similarity:?} {confidence_interval} {k} {floor:?}");
                        assert_eq!(hits, wanted, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_vector_is_nearer_than_its_code_and_error_allow() {
    let mut random = StdRng::seed_from_u64(9);
    for kind in KINDS {
        let vectors = vectors(kind, &mut random);
        for similarity in similarities(kind) {
            let reader = reader_of(similarity, &vectors, Int8::default());
            let mut largest: f64 = 0.0;
            for floats in vectors.iter().step_by(50) {
                let query = Query::new(reader.metric(), floats, true);
                let of_codes = query.code_error();
                let ords: Vec<u32> = (0..BATCH as u32).collect();
                let (mut by_codes, mut exact) = ([0.0; BATCH], [0.0; BATCH]);
                query.by_codes(&reader, ReadOrder::Scattered, &ords, &mut by_codes);
                query.exact_many(&reader, ReadOrder::Scattered, &ords, &mut exact);
                for (ord, (by_codes, exact)) in by_codes.into_iter().zip(exact).enumerate() {
                    let error = of_codes.of(reader.scale(ord), reader.inverse_length(ord));
                    let off = f64::from(exact) - f64::from(by_codes);
                    if by_codes.is_finite() && error.is_finite() {
                        assert!(off <= error, "{kind:?} {similarity:?} {ord}: {off}, at most {error}");
                        largest = largest.max(off / error);
                    }
                }
            }
            // Usually it is no more than several times what occurs.
            assert!(!matches!(kind, Kind::Even) || largest > 0.1, "{similarity:?}: {largest}");
        }
    }
}

#[test]
fn few_candidates_are_compared_exactly() {
    let vectors = vectors(Kind::Even, &mut StdRng::seed_from_u64(8));
    for similarity in SIMILARITIES {
        let reader = reader_of(similarity, &vectors, Int8::default());
        let mut compared = 0;
        for query in &vectors[..50] {
            let request = TopKRequest {
                query,
                k: 10,
                live: None,
                filter: None,
                min_score: None,
                tie: &|doc| u64::from(doc),
                cancel: None,
            };
            compared += rescored(&reader, &request).1;
        }
        assert!((50 * 16..50 * 60).contains(&compared), "{similarity:?}: {compared} for 50 questions");
    }
}
