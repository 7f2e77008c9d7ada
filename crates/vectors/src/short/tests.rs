use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::builder::VectorsBuilder;
use crate::element::Element;
use crate::kernels::ReadOrder;
use crate::nearest::{Effort, Method};
use crate::quantise::Codes;
use crate::reader::VectorsReader;
use crate::scorer::Query;
use crate::top_k::TopKRequest;

const SIMILARITIES: [Similarity; 4] =
    [Similarity::Cosine, Similarity::DotProduct, Similarity::L2Norm, Similarity::MaxInnerProduct];
const SHORTS: [Short; 2] = [Short::Int4, Short::Bit];

fn reader(short: Short, similarity: Similarity, dims: usize, vectors: &[Vec<f32>]) -> VectorsReader<Vec<u8>> {
    let mut builder = VectorsBuilder::new(Metric { element: Element::Float, similarity, dims });
    for (doc, vector) in vectors.iter().enumerate() {
        builder.add(doc as u32, vector).unwrap();
    }
    let bytes = builder.finish(vectors.len() as u32, Some(Codes::Short(short))).unwrap();
    let reader = VectorsReader::open(bytes).unwrap();
    reader.verify().unwrap();
    assert_eq!((reader.short_codes(), reader.is_current()), (Some(short), true));
    reader
}

/// Nearness of all vectors by their codes, and exactly.
fn nearness(reader: &VectorsReader<Vec<u8>>, query: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let ords: Vec<u32> = (0..reader.len() as u32).collect();
    let (mut by_codes, mut exact) = (vec![0.0; ords.len()], vec![0.0; ords.len()]);
    let of_codes = Query::of_codes(reader, query);
    for (at, ords) in ords.chunks(BATCH).enumerate() {
        let out = at * BATCH..at * BATCH + ords.len();
        of_codes.by_codes(reader, ReadOrder::Scattered, ords, &mut by_codes[out.clone()]);
        of_codes.exact_many(reader, ReadOrder::Scattered, ords, &mut exact[out]);
    }
    (by_codes, exact)
}

fn random_vector(dims: usize, random: &mut StdRng, around: f32) -> Vec<f32> {
    (0..dims).map(|_| (0..6).map(|_| random.random_range(-0.5..0.5_f32)).sum::<f32>() + around).collect()
}

/// What codes and factors of a row stand for, worked out component by component in double precision.
fn naive(short: Short, metric: Metric, query: &[f32], centre: &[f64], row: &[u8]) -> f64 {
    let length = |vector: &[f32]| vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let unit = if metric.similarity == Similarity::Cosine { 1.0 / length(query) } else { 1.0 };
    let query: Vec<f64> = query.iter().map(|x| f64::from(*x) * unit).collect();
    let rest: Vec<f64> = query.iter().zip(centre).map(|(q, c)| q - c).collect();
    let largest = rest.iter().fold(0.0_f64, |largest, x| largest.max(x.abs())).max(f64::MIN_POSITIVE);
    let steps = if short == Short::Bit { 7.0 } else { 127.0 };
    let value = |at: usize| match short {
        Short::Bit => 2.0 * f64::from(row[at / 8] >> (at % 8) & 1) - 1.0,
        Short::Int4 => {
            let half = metric.dims.div_ceil(2);
            2.0 * f64::from(row[at % half] >> (4 * (at / half)) & 15) - 15.0
        }
    };
    let product: f64 = rest
        .iter()
        .enumerate()
        .map(|(at, x)| (x / largest * steps).round() / steps * largest * value(at))
        .sum();
    let factors = &row[short.row_bytes(metric.dims) - FACTORS..];
    let [factor, added] = [0, 4].map(|at| f64::from(f32_at(factors, at)));
    let own = match metric.similarity {
        Similarity::L2Norm => -rest.iter().map(|x| x * x).sum::<f64>(),
        _ => query.iter().zip(centre).map(|(q, c)| q * c).sum(),
    };
    factor * product + added + own
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nearness_is_what_codes_stand_for(
        short in proptest::sample::select(SHORTS.to_vec()),
        similarity in proptest::sample::select(SIMILARITIES.to_vec()),
        dims in 1_usize..150,
        around in proptest::sample::select(vec![0.0, 3.0]),
        seed in any::<u64>(),
    ) {
        let mut random = StdRng::seed_from_u64(seed);
        let vectors: Vec<Vec<f32>> = (0..20).map(|_| random_vector(dims, &mut random, around)).collect();
        let query = random_vector(dims, &mut random, around);
        let reader = reader(short, similarity, dims, &vectors);
        let unit = |vector: &[f32]| {
            let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            if similarity == Similarity::Cosine { 1.0 / length } else { 1.0 }
        };
        let mean = |at: usize| vectors.iter().map(|v| f64::from(v[at]) * unit(v)).sum::<f64>() / vectors.len() as f64;
        let centre: Vec<f64> = (0..dims).map(mean).collect();
        let (by_codes, _) = nearness(&reader, &query);
        for (ord, by_codes) in by_codes.iter().enumerate() {
            let row = reader.code_rows().row(ord as u32);
            let wanted = naive(short, reader.metric(), &query, &centre, row);
            let scale = vectors[ord].iter().chain(&query).map(|x| f64::from(*x).powi(2)).sum::<f64>();
            // A number in the middle of two steps may be rounded to either.
            let step = if short == Short::Bit { 0.2 } else { 0.01 };
            prop_assert!((f64::from(*by_codes) - wanted).abs() <= (1e-4 + step / dims as f64) * (1.0 + scale), "{by_codes} {wanted}");
        }
    }
}

#[test]
fn nearness_by_codes_is_close_and_right_on_average() {
    const DIMS: usize = 256;
    let mut random = StdRng::seed_from_u64(3);
    for similarity in SIMILARITIES {
        for (short, most) in [(Short::Int4, 0.008), (Short::Bit, 0.05)] {
            // Far from zero, as the vectors of many models are: the mean takes that away.
            let vectors: Vec<Vec<f32>> = (0..400).map(|_| random_vector(DIMS, &mut random, 1.0)).collect();
            let reader = reader(short, similarity, DIMS, &vectors);
            let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
            for _ in 0..10 {
                let query = random_vector(DIMS, &mut random, 1.0);
                let (by_codes, exact) = nearness(&reader, &query);
                // Lengths of the differences to the mean, by which errors are proportional.
                let lengths = match similarity {
                    Similarity::Cosine => 0.5 / 1.5,
                    Similarity::L2Norm => 2.0 * 0.5 * DIMS as f64,
                    _ => 0.5 * DIMS as f64,
                };
                for (by_codes, exact) in by_codes.iter().zip(&exact) {
                    let error = f64::from(by_codes - exact) / lengths;
                    (sum, squares, count) = (sum + error, squares + error * error, count + 1.0);
                }
            }
            let (mean, deviation) = (sum / count, (squares / count).sqrt());
            assert!(
                mean.abs() < most / 4.0 && deviation < most,
                "{similarity:?} {short:?}: {mean} {deviation}"
            );
        }
    }
}

#[test]
fn a_vector_is_nearest_to_itself() {
    const DIMS: usize = 96;
    let mut random = StdRng::seed_from_u64(4);
    let vectors: Vec<Vec<f32>> = (0..300).map(|_| random_vector(DIMS, &mut random, 0.2)).collect();
    for short in SHORTS {
        for similarity in [Similarity::Cosine, Similarity::L2Norm] {
            let reader = reader(short, similarity, DIMS, &vectors);
            for (ord, vector) in vectors.iter().enumerate().step_by(10) {
                let (by_codes, _) = nearness(&reader, vector);
                let best = (0..by_codes.len()).max_by(|a, b| by_codes[*a].total_cmp(&by_codes[*b]));
                assert_eq!(best, Some(ord), "{short:?} {similarity:?}");
            }
        }
    }
}

#[test]
fn numbers_at_the_ends_of_the_range_of_floats_have_a_nearness() {
    let lengths = [0.0, 1e-42, 1e-38, 1e-20, 1.0, 1e18, 1e38, 3.4e38];
    let mut random = StdRng::seed_from_u64(5);
    let scaled = |length: f32, random: &mut StdRng| -> Vec<f32> {
        random_vector(40, random, 0.0).into_iter().map(|x| x.clamp(-1.0, 1.0) * length).collect()
    };
    for of_some in [1.0, 1e-40, 1e38] {
        let vectors: Vec<Vec<f32>> = lengths.map(|length| scaled(length * of_some, &mut random)).into();
        let vectors: Vec<Vec<f32>> =
            vectors.into_iter().filter(|v| v.iter().all(|x| x.is_finite())).collect();
        for short in SHORTS {
            for similarity in SIMILARITIES {
                let reader = reader(short, similarity, 40, &vectors);
                for query in &vectors {
                    let (by_codes, _) = nearness(&reader, query);
                    assert!(
                        by_codes.iter().all(|near| !near.is_nan()),
                        "{short:?} {similarity:?} {by_codes:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_scan_of_codes_finds_most_and_scores_are_exact() {
    const DIMS: usize = 128;
    let mut random = StdRng::seed_from_u64(6);
    let vectors: Vec<Vec<f32>> = (0..12_000).map(|_| random_vector(DIMS, &mut random, 0.3)).collect();
    for (short, floor) in [(Short::Int4, 0.99), (Short::Bit, 0.8)] {
        for similarity in SIMILARITIES {
            let reader = reader(short, similarity, DIMS, &vectors);
            let (mut found, mut wanted) = (0, 0);
            for _ in 0..10 {
                let query = random_vector(DIMS, &mut random, 0.3);
                let request = TopKRequest {
                    query: &query,
                    k: 10,
                    live: None,
                    filter: None,
                    min_score: None,
                    tie: &|doc| u64::from(doc),
                    cancel: None,
                };
                let ask = |oversample| {
                    let effort = Effort { num_candidates: 10, oversample };
                    reader.nearest(None, &request, effort).unwrap()
                };
                let (hits, method) = ask(20.0);
                assert_eq!((method, hits.len()), (Method::Codes, 10));
                for (doc, score) in &hits {
                    assert_eq!(reader.score(&query, *doc).unwrap(), Some(*score));
                }
                let exact = reader.top_k(&request).unwrap();
                found += exact.iter().filter(|hit| hits.contains(hit)).count();
                wanted += exact.len();
                // More candidates never make the hits worse.
                let few = ask(1.0).0;
                assert!(few.iter().zip(&hits).all(|(few, many)| few.1 <= many.1));
            }
            let recall = f64::from(found as u32) / f64::from(wanted as u32);
            assert!(recall >= floor, "{short:?} {similarity:?}: {recall}");
        }
    }
}
