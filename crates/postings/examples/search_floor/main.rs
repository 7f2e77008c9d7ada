//! Measures what memory access alone costs a sparse search: the cache lines that each question reads of the
//! postings, and the time to read exactly these again without computing anything.
//!
//! ```text
//! cargo run --release --workspace --features sparrow-postings/trace --example search_floor -- \
//!   --docs PREFIX --queries PREFIX [--limit N] [--questions N] [--passes N]
//! ```
//!
//! Prints one JSON object. The lines are those of the scalar, AVX2 or AVX-512 search (`SPARROW_SIMD`), top 10, counted up
//! to 10,000. They are read in the order of the search (`in_order`: every read independent of the others, so that the
//! processor fetches as many at once as it can), and sorted by address (`sorted`: what hardware fetches ahead best). The
//! loop is the plain f32 one of `bench_top_k`. A question's figure is the fastest of its passes.

#![expect(clippy::print_stdout, reason = "a program that reports")]

#[path = "../bench_top_k/corpus.rs"]
#[expect(dead_code, reason = "its other half is for the other program")]
mod corpus;
#[path = "../bench_top_k/reference.rs"]
#[expect(dead_code, reason = "its other half is for the other program")]
mod reference;

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use corpus::{Rows, VOCABULARY};
use reference::{Lists, best};
use sparrow_postings::{Format, PostingsBuilder, PostingsReader, SharedThreshold, TopKRequest, take_lines};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut docs, mut queries) = (PathBuf::new(), PathBuf::new());
    let (mut limit, mut questions, mut passes) = (100_000, 1000, 5);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--docs" => docs = value.into(),
            "--queries" => queries = value.into(),
            "--limit" => limit = value.parse()?,
            "--questions" => questions = value.parse()?,
            "--passes" => passes = value.parse()?,
            _ => return Err(format!("unknown option {argument}").into()),
        }
    }
    let (docs, questions) = (Rows::read(&docs, limit)?, Rows::read(&queries, questions)?);
    let tokens: Vec<String> = (0..VOCABULARY).map(|term| format!("token{term:05}")).collect();
    let mut builder = PostingsBuilder::new();
    for doc in 0..docs.len() {
        builder.add(doc as u32, &mut docs.row(doc).map(|(term, weight)| (&*tokens[term as usize], weight)));
    }
    let bytes: Arc<[u8]> = builder.finish(docs.len() as u32, Format::CURRENT).into();
    let reader = PostingsReader::open(bytes.clone())?;
    let mut loops = Lists::new(&docs);

    let mut lines = Vec::new();
    for row in 0..questions.len() {
        let term = |(term, weight): (u32, f32)| Some((reader.term(&tokens[term as usize])?, weight));
        let query: Vec<(u32, f32)> = questions.row(row).filter_map(term).collect();
        let threshold = SharedThreshold::new();
        let request = TopKRequest {
            query: &query,
            k: 10,
            min_score: None,
            threshold: &threshold,
            live: None,
            filter: None,
            count_limit: 10_000,
            tie: &|doc| u64::from(doc),
            cancel: None,
        };
        take_lines(&bytes);
        let found = reader.top_k(&request);
        lines.push(take_lines(&bytes));
        let asked: Vec<(u32, f32)> = questions.row(row).collect();
        if found.hits != best(loops.stored_scores(&asked), 10, |_| true) {
            return Err(format!("question {row} has a wrong answer").into());
        }
    }
    let sorted: Vec<Vec<u32>> = lines
        .iter()
        .map(|lines| {
            let mut lines = lines.clone();
            lines.sort_unstable();
            lines
        })
        .collect();
    let asked: Vec<Vec<(u32, f32)>> = (0..questions.len()).map(|row| questions.row(row).collect()).collect();
    let read = |lines: &[u32]| {
        // The bytes need not begin with a line.
        let byte = |line: &u32| u64::from(bytes.get(*line as usize * 64).copied().unwrap_or(0));
        black_box(lines.iter().map(byte).sum::<u64>());
    };
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..=passes {
        times[0].push(lines.iter().map(|lines| timed(|| read(lines))).collect::<Vec<f64>>());
        times[1].push(sorted.iter().map(|lines| timed(|| read(lines))).collect());
        times[2].push(asked.iter().map(|query| timed(|| drop(black_box(loops.top_ten(query))))).collect());
    }
    let [in_order, by_address, plain] = times.map(|passes| {
        let fastest =
            |question: usize| passes[1..].iter().map(|pass| pass[question]).fold(f64::MAX, f64::min);
        shares((0..questions.len()).map(fastest).collect())
    });
    let counts = shares(lines.iter().map(|lines| lines.len() as f64).collect());
    println!(
        "{{\"documents\": {}, \"questions\": {}, \"instructions\": \"{}\", \"lines_p50\": {}, \"lines_p95\": {}, \
         \"kb_p50\": {:.0}, \"kb_p95\": {:.0}, \"in_order_us\": {in_order:.1?}, \"sorted_us\": {by_address:.1?}, \
         \"loop_us\": {plain:.1?}, \"in_order_of_loop\": [{:.3}, {:.3}]}}",
        docs.len(),
        questions.len(),
        sparrow_postings::implementation_name(),
        counts[0],
        counts[1],
        counts[0] / 16.0,
        counts[1] / 16.0,
        in_order[0] / plain[0],
        in_order[1] / plain[1],
    );
    Ok(())
}

/// Duration of `run`, in microseconds.
fn timed(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64() * 1e6
}

/// Median and 95th percentile.
fn shares(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0.0);
    [at(0.5), at(0.95)]
}
