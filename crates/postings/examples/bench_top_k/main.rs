//! Milliseconds per sparse query, against a plain term-at-a-time loop in the same process.
//!
//! Prints one JSON object per measured variant and line. Every answer is compared with scoring all
//! documents: documents, order and the bits of the scores; the first difference ends the program.
//!
//! ```text
//! bench_top_k [--docs PREFIX --queries PREFIX]   vectors (see corpus.rs); without them random ones
//!             [--limit N] [--questions N]        at most so many documents and questions
//!             [--filters 0.5,0.05,0.005]         also with filters that random documents pass
//!             [--segments S --deleted SHARE]     also in S segments of which SHARE is deleted
//!             [--again 1]                        also each question a second time directly after the first: what computing
//!                                                alone costs, all in the caches
//!             [--passes N]                       over all questions, after one to warm up (3)
//!             [--index FILE]                     keeps the built segment there for the next run
//!             [--runs DIR --name NAME]           the peers' result files of the plain variant
//! ```
//!
//! A question's figure is the fastest of its passes, for Sparrow and the loop alike: what other programs
//! on the machine cost then falls away. The files of `--runs` hold figures over all passes, as the
//! peers' do.
//!
//! `SPARROW_SIMD=scalar|avx2|avx512` chooses the instructions.

#![expect(clippy::print_stdout, reason = "a program that reports")]

mod corpus;
mod reference;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use corpus::{Rows, VOCABULARY, random_bits};
use reference::{Hits, Lists, best};
use sparrow_postings::{
    Format, PostingsBuilder, PostingsReader, QueryTerms, SegmentSearch, SegmentTerm, SharedThreshold,
    TopKRequest, top_k_of_segments,
};

/// The allocator that the Node addon uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Reader = PostingsReader<std::sync::Arc<[u8]>>;

struct Options {
    docs: Option<PathBuf>,
    queries: Option<PathBuf>,
    limit: usize,
    questions: usize,
    filters: Vec<f64>,
    segments: usize,
    deleted: f64,
    again: bool,
    passes: usize,
    index: Option<PathBuf>,
    runs: Option<PathBuf>,
    name: String,
}

impl Options {
    fn parse() -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            docs: None,
            queries: None,
            limit: usize::MAX,
            questions: 1000,
            filters: Vec::new(),
            segments: 0,
            deleted: 0.0,
            again: false,
            passes: 3,
            index: None,
            runs: None,
            name: "sparrow".to_owned(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
            match argument.as_str() {
                "--docs" => options.docs = Some(value.into()),
                "--queries" => options.queries = Some(value.into()),
                "--limit" => options.limit = value.parse()?,
                "--questions" => options.questions = value.parse()?,
                "--filters" | "--filter" => {
                    options.filters = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "--segments" => options.segments = value.parse()?,
                "--deleted" => options.deleted = value.parse()?,
                "--again" => options.again = value.parse::<u8>()? > 0,
                "--passes" => options.passes = value.parse()?,
                "--index" => options.index = Some(value.into()),
                "--runs" => options.runs = Some(value.into()),
                "--name" => options.name = value,
                _ => return Err(format!("unknown option {argument}").into()),
            }
        }
        Ok(options)
    }
}

/// Documents cut into segments, which are searched together.
struct Segments {
    /// Per segment: its first document, its reader, and its live documents (`None`: all).
    parts: Vec<(u32, Reader, Option<Vec<u64>>)>,
    /// Per question, token numbers in the vocabulary with weights.
    queries: Vec<Vec<(u32, f32)>>,
    /// Per token of the vocabulary, its term in each segment, resolved once; empty for tokens that no
    /// question has.
    terms: Vec<Box<[SegmentTerm]>>,
}

/// One way of searching that is measured.
struct Variant<'a> {
    name: String,
    segments: &'a Segments,
    filter: Option<Vec<u64>>,
    expected: Vec<Hits>,
    /// Time of each question in each pass, pass by pass, in milliseconds.
    milliseconds: Vec<f64>,
    /// Time of each question's immediate repetition, in milliseconds.
    again: Vec<f64>,
}

impl Variant<'_> {
    fn search(&self, question: usize) -> (Hits, u64) {
        let threshold = SharedThreshold::new();
        let bound = self.segments.bind(question);
        let parts = self.segments.parts.iter().enumerate();
        let of = parts.map(|(place, (_, reader, live))| (reader, live, bound.of_segment(place)));
        let searches = of.map(|(reader, live, (query, terms))| SegmentSearch {
            reader,
            terms,
            request: TopKRequest {
                query,
                k: 10,
                min_score: None,
                threshold: &threshold,
                live: live.as_deref(),
                filter: self.filter.as_deref(),
                count_limit: 10_000,
                tie: &|doc| u64::from(doc),
                cancel: None,
            },
            bounds: None,
        });
        let found = top_k_of_segments(searches.collect());
        let mut hits = Hits::new();
        let mut matched = 0;
        for ((base, ..), found) in self.segments.parts.iter().zip(found) {
            matched += found.matched;
            hits.extend(found.hits.into_iter().map(|(doc, score)| (doc + base, score)));
        }
        if self.segments.parts.len() > 1 {
            hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            hits.truncate(10);
        }
        (hits, matched)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse()?;
    let rows = |path: &Option<PathBuf>, limit: usize, seed: u64, random: usize, terms: usize| match path {
        Some(path) => Rows::read(path, limit),
        None => Ok(Rows::random(seed, limit.min(random), terms)),
    };
    let docs = rows(&options.docs, options.limit, 42, 100_000, 130)?;
    let questions = rows(&options.queries, options.questions, 43, 200, 17)?;
    let queries: Vec<Vec<(u32, f32)>> =
        (0..questions.len()).map(|row| questions.row(row).collect()).collect();
    let tokens: Vec<String> = (0..VOCABULARY).map(|term| format!("token{term:05}")).collect();

    let start = Instant::now();
    let bytes = match &options.index {
        Some(path) if path.exists() => std::fs::read(path)?,
        path => {
            let bytes = build(&docs, 0..docs.len(), &tokens);
            path.as_ref().map_or(Ok(()), |path| std::fs::write(path, &bytes))?;
            bytes
        }
    };
    let build_seconds = start.elapsed().as_secs_f64();
    let index_bytes = bytes.len();
    let one = Segments::new(vec![(0, PostingsReader::open(bytes.into())?, None)], &queries, &tokens);
    let mut live = vec![u64::MAX; docs.len().div_ceil(64)];
    let several = if options.segments > 0 {
        live = random_bits(7, docs.len(), 1.0 - options.deleted);
        let size = docs.len().div_ceil(options.segments).next_multiple_of(64);
        let parts = (0..docs.len()).step_by(size).map(|start| {
            let range = start..docs.len().min(start + size);
            let live = live[range.start / 64..range.end.div_ceil(64)].to_vec();
            let reader = PostingsReader::open(build(&docs, range, &tokens).into())?;
            Ok((start as u32, reader, Some(live)))
        });
        let parts = parts.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        Some(Segments::new(parts, &queries, &tokens))
    } else {
        None
    };

    let variant = |name: String, segments, filter| Variant {
        name,
        segments,
        filter,
        expected: Vec::new(),
        milliseconds: Vec::new(),
        again: Vec::new(),
    };
    let mut variants = vec![variant("plain".to_owned(), &one, None)];
    for share in &options.filters {
        let filter = random_bits((share * 1e6) as u64, docs.len(), *share);
        variants.push(variant(format!("filter {share}"), &one, Some(filter)));
    }
    if let Some(several) = &several {
        let name = format!("{} segments, {} deleted", several.parts.len(), options.deleted);
        variants.push(variant(name, several, None));
    }
    let mut lists = Lists::new(&docs);
    let touched: usize = queries.iter().map(|query| lists.touched(query)).sum();
    for query in &queries {
        let scores = lists.stored_scores(query);
        let all = vec![u64::MAX; docs.len().div_ceil(64)];
        for variant in &mut variants {
            let live = if variant.segments.parts.len() > 1 { &live } else { &all };
            let filter = variant.filter.as_ref().unwrap_or(&all);
            let wanted =
                |doc: u32| (live[doc as usize / 64] & filter[doc as usize / 64]) >> (doc % 64) & 1 == 1;
            variant.expected.push(best(scores, 10, wanted));
        }
    }
    let mut peer = Vec::new();
    for pass in 0..=options.passes {
        for variant in &mut variants {
            for question in 0..queries.len() {
                let start = Instant::now();
                let found = variant.search(question);
                let elapsed = start.elapsed().as_secs_f64() * 1e3;
                if pass > 0 {
                    variant.milliseconds.push(elapsed);
                }
                if options.again {
                    let start = Instant::now();
                    std::hint::black_box(variant.search(question));
                    if pass > 0 {
                        variant.again.push(start.elapsed().as_secs_f64() * 1e3);
                    }
                }
                let same = |a: &(u32, f32), b: &(u32, f32)| a.0 == b.0 && a.1.to_bits() == b.1.to_bits();
                let expected = &variant.expected[question];
                if found.0.len() != expected.len() || !found.0.iter().zip(expected).all(|(a, b)| same(a, b)) {
                    let name = &variant.name;
                    return Err(
                        format!("{name}, question {question}: {:?}, not {expected:?}", found.0).into()
                    );
                }
            }
        }
        for query in &queries {
            let start = Instant::now();
            std::hint::black_box(lists.top_ten(query));
            if pass > 0 {
                peer.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let peer = Figures::of(fastest(&peer, queries.len()));
    let first = variants.iter().map(|variant| (variant.name.clone(), &variant.milliseconds));
    let again = variants.iter().filter(|_| options.again);
    let again = again.map(|variant| (format!("{}, again", variant.name), &variant.again));
    for (name, milliseconds) in first.chain(again) {
        let ours = Figures::of(fastest(milliseconds, queries.len()));
        println!(
            "{{\"name\": \"{name}\", \"docs\": {}, \"questions\": {}, \"passes\": {}, \"sparrow\": {}, \"taat\": {}, \
             \"ratio_p50\": {:.4}, \"ratio_p95\": {:.4}, \"index_bytes\": {index_bytes}, \
             \"bytes_per_posting\": {:.3}, \"bytes_per_document\": {:.1}, \"postings_per_question\": {}, \
             \"build_s\": {build_seconds:.2}, \"instructions\": \"{}\", \
             \"checked\": \"documents, order and score bits of all questions\"}}",
            docs.len(),
            queries.len(),
            options.passes,
            ours.json(),
            peer.json(),
            ours.p50 / peer.p50,
            ours.p95 / peer.p95,
            index_bytes as f64 / docs.count() as f64,
            index_bytes as f64 / docs.len() as f64,
            touched / queries.len().max(1),
            sparrow_postings::implementation_name(),
        );
    }
    if let Some(folder) = &options.runs {
        write_run(folder, &options.name, &variants[0], build_seconds, index_bytes)?;
    }
    Ok(())
}

fn build(docs: &Rows, range: std::ops::Range<usize>, tokens: &[String]) -> Vec<u8> {
    let mut builder = PostingsBuilder::new();
    for doc in range.clone() {
        let mut pairs = docs.row(doc).map(|(term, weight)| (&*tokens[term as usize], weight));
        builder.add((doc - range.start) as u32, &mut pairs);
    }
    builder.finish(range.len() as u32, Format::CURRENT)
}

impl Segments {
    fn new(
        parts: Vec<(u32, Reader, Option<Vec<u64>>)>,
        queries: &[Vec<(u32, f32)>],
        tokens: &[String],
    ) -> Self {
        let mut terms = vec![Box::default(); tokens.len()];
        for (token, _) in queries.iter().flatten() {
            let resolve = |(_, reader, _): &(u32, Reader, _)| {
                let term = reader.term(&tokens[*token as usize])?;
                Some((term, reader.resolve(term)?))
            };
            terms[*token as usize] = parts.iter().map(resolve).collect();
        }
        Self { parts, queries: queries.to_vec(), terms }
    }

    /// Terms of a question, resolved in each segment.
    fn bind(&self, question: usize) -> QueryTerms {
        let runs =
            self.queries[question].iter().map(|(token, weight)| (&*self.terms[*token as usize], *weight));
        QueryTerms::new(runs, self.parts.len())
    }
}

/// Shortest time of each question over all passes, in milliseconds.
fn fastest(milliseconds: &[f64], questions: usize) -> Vec<f64> {
    let of =
        |question| milliseconds[question..].iter().step_by(questions).copied().fold(f64::INFINITY, f64::min);
    (0..questions).map(of).collect()
}

/// Mean and percentiles of search times, in milliseconds.
struct Figures {
    mean: f64,
    p50: f64,
    p95: f64,
    p99: f64,
}

impl Figures {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at =
            |share: f64| values.get(((values.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0.0);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { mean, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }

    fn json(&self) -> String {
        let Self { mean, p50, p95, p99 } = self;
        format!(
            "{{\"mean_ms\": {mean:.5}, \"p50_ms\": {p50:.5}, \"p95_ms\": {p95:.5}, \"p99_ms\": {p99:.5}}}"
        )
    }
}

/// Writes the result files that `/peers/sparse` compares: NAME.ids, NAME.scores and NAME.json.
fn write_run(
    folder: &std::path::Path,
    name: &str,
    variant: &Variant<'_>,
    build_seconds: f64,
    index_bytes: usize,
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let (mut ids, mut scores) = (Vec::new(), Vec::new());
    for question in 0..variant.expected.len() {
        let (hits, _) = variant.search(question);
        for place in 0..10 {
            let hit = hits.get(place).map_or((-1, 0.0), |hit| (hit.0 as i32, hit.1));
            ids.extend(hit.0.to_le_bytes());
            scores.extend(hit.1.to_le_bytes());
        }
    }
    std::fs::write(folder.join(format!("{name}.ids")), ids)?;
    std::fs::write(folder.join(format!("{name}.scores")), scores)?;
    let Figures { mean, p50, p95, p99 } = Figures::of(variant.milliseconds.clone());
    let json = format!(
        "{{\"name\": \"{name}\", \"mean_ms\": {mean}, \"p50_ms\": {p50}, \"p95_ms\": {p95}, \"p99_ms\": {p99}, \
         \"build_s\": {build_seconds}, \"index_bytes\": {index_bytes}, \"samples\": {}}}\n",
        variant.milliseconds.len()
    );
    std::fs::write(folder.join(format!("{name}.json")), json)?;
    Ok(())
}
