//! Measures what a search costs besides reading postings: filters, several segments, deletions, `bool`, sources, a
//! cold start; and what writing costs. It takes real vectors and prints JSON lines, runs on one thread, and checks
//! the results.
//!
//! `cargo run --release -p sparrow-tantivy-index --example bench_search -- --docs PREFIX --queries PREFIX --work DIR`
//!
//! | option | meaning |
//! |---|---|
//! | `--docs`, `--queries` | vectors as `encode_corpus` writes them: `.ptr` (u32), `.idx` (u32), `.val` (f32), little-endian |
//! | `--work` | folder for the indexes, built once |
//! | `--limit`, `--questions` | rows used of either, 100,000 and 1,000 |
//! | `--texts`, `--question-texts` | JSON lines with `title` and `text`, row for row; synthetic words without |
//! | `--segments`, `--deleted` | of the second index, 5 and 0.2; the first is one segment without deletions |
//! | `--only` | some of `warm`, `cold`, `mixes`, `filters`, `write`, comma separated; `warm,cold` |
//! | `--kinds` | only kinds of search whose name has this in it, and the lone clause |
//! | `--passes` | runs of each question, of which the fastest counts, 3 |
//! | `--rebuild` | builds the indexes anew |

#![expect(clippy::print_stdout, reason = "a program that reports")]

mod build;
mod checks;
mod cold;
mod corpus;
mod measure;
mod mixes;
mod write;

use std::error::Error;
use std::path::PathBuf;

use build::Built;
use corpus::Corpus;

/// The same allocator as in the server's native addon.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Parsed command-line arguments.
pub struct Arguments {
    docs: String,
    queries: String,
    texts: Option<PathBuf>,
    question_texts: Option<PathBuf>,
    work: PathBuf,
    limit: usize,
    questions: usize,
    segments: usize,
    deleted: f64,
    only: String,
    kinds: String,
    passes: usize,
    rebuild: bool,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut parsed = Arguments {
        docs: String::new(),
        queries: String::new(),
        texts: None,
        question_texts: None,
        work: PathBuf::new(),
        limit: 100_000,
        questions: 1_000,
        segments: 5,
        deleted: 0.2,
        only: "warm,cold".to_owned(),
        kinds: String::new(),
        passes: 3,
        rebuild: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        if name == "--rebuild" {
            parsed.rebuild = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
        match &*name {
            "--docs" => parsed.docs = value,
            "--queries" => parsed.queries = value,
            "--texts" => parsed.texts = Some(value.into()),
            "--question-texts" => parsed.question_texts = Some(value.into()),
            "--work" => parsed.work = value.into(),
            "--limit" => parsed.limit = value.parse()?,
            "--questions" => parsed.questions = value.parse()?,
            "--segments" => parsed.segments = value.parse()?,
            "--deleted" => parsed.deleted = value.parse()?,
            "--only" => parsed.only = value,
            "--kinds" => parsed.kinds = value,
            "--passes" => parsed.passes = value.parse::<usize>()?.max(1),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    if parsed.docs.is_empty() || parsed.queries.is_empty() || parsed.work.as_os_str().is_empty() {
        return Err("--docs, --queries and --work are needed".into());
    }
    Ok(parsed)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let wants = |part: &str| arguments.only.split(',').any(|word| word == part);
    let corpus = Corpus::read(&arguments)?;
    if wants("write") {
        write::measure(&arguments, &corpus)?;
    }
    if !["warm", "cold", "mixes", "filters"].into_iter().any(wants) {
        return Ok(());
    }
    let clean = build::prepare(&arguments, &corpus, 1, 0.0)?;
    let split = build::prepare(&arguments, &corpus, arguments.segments, arguments.deleted)?;
    // Before anything maps the files: pages in use stay in memory.
    if wants("cold") {
        for dir in [&clean, &split] {
            cold::measure(dir, &corpus)?;
        }
    }
    let (clean, split) = (Built::open(&clean)?, Built::open(&split)?);
    if wants("mixes") {
        for index in [&clean, &split] {
            mixes::measure(index, &corpus, &arguments)?;
        }
    }
    if wants("filters") {
        for index in [&clean, &split] {
            measure::filters(index, &arguments)?;
        }
    }
    if wants("warm") {
        measure::warm(&clean, &split, &corpus, &arguments)?;
    }
    Ok(())
}
