//! Measures recall and time of nearest-neighbour search by graphs, by codes and by an exact scan, over the
//! vectors of one segment.
//!
//! `cargo run --release -p sparrow-vectors --example bench_knn -- [--vectors FILE --queries FILE] [--dims N] [--count N]
//! [--questions N] [--floor RECALL] [--rounds N] [--filters no] [--widths N,N] [--kinds NAME,NAME]`. The files hold rows of little-endian f32; where there are fewer than `count`, the
//! rest is derived from them (two mixed, a little noise). Without files: vectors of a mixture with 24 latent
//! dimensions. Prints one JSON object a line; ends with an error when an answer is wrong or the recall at 100
//! candidates, or 200 by codes of one bit, is below the floor. One thread; the best time of each question in several rounds counts.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sparrow_vectors::{
    Codes, Effort, Element, GraphOptions, GraphReader, GraphSource, MAX_BLOCK, Method, Metric, Short,
    Similarity, TopKRequest, VectorsBuilder, VectorsError, VectorsReader, write_graph,
};

const K: usize = 10;
/// Kinds of graphs, as mappings name them, and the codes of their vectors.
const KINDS: [(&str, Option<Codes>); 4] = [
    ("hnsw", None),
    ("int8_hnsw", Some(Codes::INT8)),
    ("int4_hnsw", Some(Codes::Short(Short::Int4))),
    ("bbq_hnsw", Some(Codes::Short(Short::Bit))),
];
/// Shares of the documents that pass the measured filters.
const FILTERS: [f64; 3] = [0.5, 0.1, 0.01];

/// Rounds of the exact scan at most, which takes many times as long as a walk.
const EXACT_ROUNDS: usize = 3;

struct Arguments {
    vectors: Option<String>,
    queries: Option<String>,
    dims: usize,
    count: usize,
    questions: usize,
    floor: f64,
    rounds: usize,
    filters: bool,
    widths: Vec<usize>,
    kinds: Vec<String>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut parsed = Arguments {
        vectors: None,
        queries: None,
        dims: 384,
        count: 20_000,
        questions: 200,
        floor: 0.0,
        rounds: 3,
        filters: true,
        widths: vec![10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400],
        kinds: KINDS.map(|(name, _)| name.to_owned()).into(),
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().ok_or("an option wants a value")?;
        match name.as_str() {
            "--vectors" => parsed.vectors = Some(value),
            "--queries" => parsed.queries = Some(value),
            "--dims" => parsed.dims = value.parse()?,
            "--count" => parsed.count = value.parse()?,
            "--questions" => parsed.questions = value.parse()?,
            "--floor" => parsed.floor = value.parse()?,
            "--rounds" => parsed.rounds = value.parse()?,
            "--filters" => parsed.filters = value != "no",
            "--widths" => parsed.widths = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--kinds" => parsed.kinds = value.split(',').map(str::to_owned).collect(),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    Ok(parsed)
}

fn rows(path: &str, dims: usize) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let floats: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Ok(floats.chunks_exact(dims).map(<[f32]>::to_vec).collect())
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|x| *x /= length);
    vector
}

/// The first `count` of the given vectors; if there are fewer, the rest are mixtures of them.
fn derive(given: Vec<Vec<f32>>, count: usize, random: &mut StdRng) -> Vec<Vec<f32>> {
    let known = given.len();
    let mut vectors = given;
    vectors.truncate(count);
    while vectors.len() < count {
        let (a, b) = (random.random_range(0..known), random.random_range(0..known));
        let mixed = vectors[a].iter().zip(&vectors[b]);
        let noise = mixed.map(|(a, b)| 0.8 * a + 0.4 * b + random.random_range(-0.01..0.01)).collect();
        vectors.push(unit(noise));
    }
    vectors
}

/// Vectors of 200 clusters in a latent space of 24 dimensions, mapped to `dims` dimensions by `map`.
fn mixture(dims: usize, count: usize, random: &mut StdRng, map: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let latent = map.len();
    let mut of_centres = StdRng::seed_from_u64(7);
    let centres: Vec<Vec<f32>> =
        (0..200).map(|_| (0..latent).map(|_| of_centres.random_range(-1.0..1.0)).collect()).collect();
    (0..count)
        .map(|_| {
            let centre = &centres[random.random_range(0..centres.len())];
            let point: Vec<f32> = centre.iter().map(|x| x + random.random_range(-0.6..0.6)).collect();
            let seen = |at: usize| point.iter().zip(map).map(|(x, row)| x * row[at]).sum();
            unit((0..dims).map(seen).collect())
        })
        .collect()
}

type Reader = VectorsReader<Vec<u8>>;
type Graph = GraphReader<Vec<u8>>;

fn percentile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times[((times.len() - 1) as f64 * share) as usize]
}

struct Bench<'a> {
    reader: &'a Reader,
    graph: Option<&'a Graph>,
    queries: &'a [Vec<f32>],
    filter: Option<Vec<u64>>,
    rounds: usize,
}

/// Documents nearest to each query, and the median time of an exact scan in microseconds.
type Exact = (Vec<Vec<u32>>, f64);

impl Bench<'_> {
    fn request<'a>(&'a self, query: &'a [f32]) -> TopKRequest<'a> {
        TopKRequest {
            query,
            k: K,
            live: None,
            filter: self.filter.as_deref(),
            min_score: None,
            tie: &|doc| u64::from(doc),
            cancel: None,
        }
    }

    /// Recall, median and 95th percentile of the times in microseconds, and the method of the last query.
    fn run(
        &self,
        num_candidates: usize,
        exact: &[Vec<u32>],
    ) -> Result<(f64, f64, f64, Method), Box<dyn Error>> {
        let effort = Effort { num_candidates, oversample: 1.0 };
        let (mut times, answers) =
            self.timed(self.rounds, |request| self.reader.nearest(self.graph, request, effort))?;
        let (mut found, mut wanted) = (0, 0);
        let mut method = Method::Exact;
        for ((query, exact), (hits, by)) in self.queries.iter().zip(exact).zip(answers) {
            method = by;
            for (doc, score) in &hits {
                if self.reader.score(query, *doc)? != Some(*score) {
                    return Err("a score is not exact".into());
                }
            }
            wanted += exact.len();
            found += hits.iter().filter(|(doc, _)| exact.contains(doc)).count();
        }
        let recall = found as f64 / wanted.max(1) as f64;
        Ok((recall, percentile(&mut times, 0.5), percentile(&mut times, 0.95), method))
    }

    /// Shortest time of each query over some rounds, in microseconds, and the answers.
    fn timed<T>(
        &self,
        rounds: usize,
        mut ask: impl FnMut(&TopKRequest<'_>) -> Result<T, VectorsError>,
    ) -> Result<(Vec<f64>, Vec<T>), VectorsError> {
        let mut best = vec![f64::INFINITY; self.queries.len()];
        let mut answers = Vec::new();
        for _ in 0..rounds {
            answers.clear();
            for (query, best) in self.queries.iter().zip(&mut best) {
                let start = Instant::now();
                answers.push(ask(&self.request(query))?);
                *best = best.min(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok((best, answers))
    }

    fn exact(&self) -> Result<Exact, Box<dyn Error>> {
        let (mut times, answers) =
            self.timed(self.rounds.min(EXACT_ROUNDS), |request| self.reader.top_k(request))?;
        let answers = answers.into_iter().map(|hits| hits.into_iter().map(|(doc, _)| doc).collect());
        Ok((answers.collect(), percentile(&mut times, 0.5)))
    }
}

/// Compares some exact answers with scores computed in double precision, and the number of hits in all of them.
fn check(vectors: &[Vec<f32>], queries: &[Vec<f32>], exact: &[Vec<u32>]) -> Result<(), Box<dyn Error>> {
    // Recall is measured against these answers, so a short one would make every search look better.
    if exact.iter().any(|found| found.len() != K.min(vectors.len())) {
        return Err("the exact scan finds too few or too many".into());
    }
    for (query, found) in queries.iter().zip(exact).step_by(20) {
        let dot = |vector: &[f32]| -> f64 {
            vector.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let mut all: Vec<f64> = vectors.iter().map(|vector| dot(vector)).collect();
        all.sort_by(|a, b| b.total_cmp(a));
        for (doc, wanted) in found.iter().zip(&all) {
            if (dot(&vectors[*doc as usize]) - wanted).abs() > 1e-5 {
                return Err("the exact scan is wrong".into());
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let mut random = StdRng::seed_from_u64(1);
    let dims = arguments.dims;
    let map: Vec<Vec<f32>> =
        (0..24).map(|_| (0..dims).map(|_| random.random_range(-1.0..1.0)).collect()).collect();
    let mut load = |path: &Option<String>, count: usize| match path {
        Some(path) => Ok(derive(rows(path, dims)?, count, &mut random)),
        None => Ok::<_, Box<dyn Error>>(mixture(dims, count, &mut random, &map)),
    };
    let (vectors, queries) =
        (load(&arguments.vectors, arguments.count)?, load(&arguments.queries, arguments.questions)?);
    let metric = Metric { element: Element::Float, similarity: Similarity::DotProduct, dims };
    for (kind, codes) in KINDS.into_iter().filter(|(kind, _)| arguments.kinds.iter().any(|name| name == kind))
    {
        let mut builder = VectorsBuilder::new(metric);
        for (doc, vector) in vectors.iter().enumerate() {
            builder.add(doc as u32, vector)?;
        }
        let bytes = builder.finish(vectors.len() as u32, codes)?;
        let vector_bytes = bytes.len();
        let reader = VectorsReader::open(bytes)?;
        let start = Instant::now();
        let mut bytes = Vec::new();
        let source = GraphSource { reader: reader.clone(), doc_map: Arc::from_iter(0..vectors.len() as u32) };
        let never = AtomicBool::new(false);
        write_graph(&[source], codes, GraphOptions::default(), MAX_BLOCK, &never, &mut bytes)?;
        let seconds = start.elapsed().as_secs_f64();
        let (graph_bytes, start) = (bytes.len(), Instant::now());
        // What every walk reads from all over: the graph, and the codes wherever they are.
        let walked_bytes = vector_bytes - vectors.len() * (dims + 1) * size_of::<f32>() + graph_bytes;
        let graph = GraphReader::open(bytes)?;
        println!(
            r#"{{"part":"build","kind":"{kind}","vectors":{},"dims":{dims},"m":{},"ef_construction":{},"build_s":{seconds:.3},"open_ms":{:.3},"vector_bytes":{vector_bytes},"graph_bytes":{graph_bytes},"walked_bytes":{walked_bytes}}}"#,
            vectors.len(),
            graph.m(),
            graph.ef_construction(),
            start.elapsed().as_secs_f64() * 1e3,
        );
        let filters = FILTERS.into_iter().filter(|_| arguments.filters);
        for share in [1.0].into_iter().chain(filters) {
            let filter = (share < 1.0).then(|| {
                let mut words = vec![0_u64; vectors.len().div_ceil(64)];
                for doc in (0..vectors.len()).filter(|_| random.random_bool(share)) {
                    words[doc / 64] |= 1 << (doc % 64);
                }
                words
            });
            let mut bench = Bench {
                reader: &reader,
                graph: Some(&graph),
                queries: &queries,
                filter,
                rounds: arguments.rounds,
            };
            let (exact, exact_us) = bench.exact()?;
            if share == 1.0 {
                check(&vectors, &queries, &exact)?;
            }
            let line = |what: &str,
                        candidates: usize,
                        (recall, p50, p95, method): (f64, f64, f64, Method)| {
                println!(
                    r#"{{"part":"search","kind":"{kind}","what":"{what}","filter":{share},"num_candidates":{candidates},"recall":{recall:.4},"p50_us":{p50:.1},"p95_us":{p95:.1},"method":"{method:?}","exact_p50_us":{exact_us:.1}}}"#
                );
            };
            for &candidates in &arguments.widths {
                let measured = bench.run(candidates, &exact)?;
                line("graph", candidates, measured);
                let of_floor = if kind == "bbq_hnsw" { 200 } else { 100 };
                if share == 1.0 && candidates == of_floor && measured.0 < arguments.floor {
                    return Err(format!("recall {} is below {}", measured.0, arguments.floor).into());
                }
            }
            bench.graph = None;
            line("no graph", 100, bench.run(100, &exact)?);
        }
    }
    Ok(())
}
