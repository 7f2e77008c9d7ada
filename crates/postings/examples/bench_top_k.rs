//! Milliseconds per sparse query, pruned against exhaustive, on random data shaped like SPLADE's.
//!
//! Documents have 130 of 30,522 terms, questions 17; a term's frequency falls with its rank, weights
//! are roughly log-normal and questions prefer frequent terms. Seed 42. Every pruned answer is
//! compared with the exhaustive one.
//!
//! `cargo run --release -p sparrow-postings --example bench_top_k -- [documents] [questions]`;
//! `SPARROW_SIMD=scalar|avx2|avx512` chooses the instructions.

#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sparrow_postings::{Format, PostingsBuilder, PostingsReader, SharedThreshold, TopK, TopKRequest};

const VOCABULARY: usize = 30_522;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut argument = |default| arguments.next().and_then(Result::ok).unwrap_or(default);
    let (num_docs, questions) = (argument(100_000), argument(200));
    let mut rng = StdRng::seed_from_u64(42);
    let tokens: Vec<String> = (0..VOCABULARY).map(|i| format!("token{i:05}")).collect();

    let start = Instant::now();
    let mut builder = PostingsBuilder::new();
    for doc in 0..num_docs {
        let pairs: Vec<(usize, f32)> = (0..130).map(|_| (term(&mut rng), weight(&mut rng))).collect();
        builder.add(doc as u32, &mut pairs.iter().map(|(term, weight)| (&*tokens[*term], *weight)));
    }
    let memory = builder.mem_usage();
    let added = start.elapsed();
    let bytes = builder.finish(num_docs as u32, Format::V2);
    let finished = start.elapsed();
    let start = Instant::now();
    let Ok(reader) = PostingsReader::open(&bytes[..]) else { return println!("the field does not open") };
    let opened = start.elapsed();
    println!(
        "{num_docs} documents, {} postings: {:.2} bytes each in memory, {:.2} on disk; added in {added:.1?}, \
         finished in {:.1?}, opened in {opened:.1?}; {}",
        reader.posting_count(),
        memory as f64 / reader.posting_count() as f64,
        bytes.len() as f64 / reader.posting_count() as f64,
        finished - added,
        sparrow_postings::implementation_name(),
    );
    let queries: Vec<Vec<(u32, f32)>> = (0..questions)
        .map(|_| {
            (0..17).filter_map(|_| Some((reader.term(&tokens[term(&mut rng)])?, weight(&mut rng)))).collect()
        })
        .collect();
    println!("{:>10} {:>6} {:>9} {:>9} {:>12}", "filter", "k", "p50 ms", "p95 ms", "exhaustive");
    for (density, k) in [
        (1.0, 10),
        (1.0, 100),
        (1.0, 1000),
        (0.5, 10),
        (0.05, 10),
        (0.01, 10),
        (0.002, 10),
        (0.0005, 10),
        (0.00005, 10),
    ] {
        let mut filter = vec![0_u64; num_docs.div_ceil(64)];
        (0..num_docs).for_each(|doc| filter[doc / 64] |= u64::from(rng.random_bool(density)) << (doc % 64));
        let (mut pruned, mut exhaustive) = (Vec::new(), Vec::new());
        for (i, query) in queries.iter().enumerate() {
            let search = |all: bool| -> TopK {
                let threshold = SharedThreshold::new();
                let request = TopKRequest {
                    query,
                    k,
                    min_score: None,
                    threshold: &threshold,
                    live: None,
                    filter: (density < 1.0).then_some(&filter),
                    count_limit: 10_000,
                    tie: &|doc| u64::from(doc),
                    cancel: None,
                };
                if all { reader.top_k_exhaustive(&request) } else { reader.top_k(&request) }
            };
            let start = Instant::now();
            let found = search(false);
            pruned.push(start.elapsed().as_secs_f64() * 1e3);
            if i % 10 == 0 {
                let start = Instant::now();
                let expected = search(true);
                exhaustive.push(start.elapsed().as_secs_f64() * 1e3);
                assert_eq!(found.hits, expected.hits, "question {i}");
            }
        }
        let label = if density < 1.0 { format!("{}%", density * 100.0) } else { "none".to_owned() };
        println!(
            "{label:>10} {k:>6} {:>9.3} {:>9.3} {:>12.2}",
            percentile(&mut pruned, 0.5),
            percentile(&mut pruned, 0.95),
            percentile(&mut exhaustive, 0.5)
        );
    }
}

/// Frequent terms first: ranks fall off as in the embedded model's real output, where a thirtieth of
/// the touched terms is in more than a thirty-second of the documents.
fn term(rng: &mut StdRng) -> usize {
    let uniform: f64 = rng.random();
    ((VOCABULARY as f64).powf(uniform * uniform.sqrt().sqrt()) * 1.8) as usize % VOCABULARY
}

fn weight(rng: &mut StdRng) -> f32 {
    let normal: f32 = (0..6).map(|_| rng.random::<f32>()).sum::<f32>() - 3.0;
    (normal * 1.1 - 0.6).exp().min(3.5)
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(((values.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0.0)
}
