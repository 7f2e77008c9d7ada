//! Measures warm searches: each kind is run for all questions, the kinds take turns, and the fastest of
//! several passes counts.

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::build::Built;
use crate::corpus::{Corpus, spread};
use crate::{Arguments, checks};
use sparrow_postings::{SegmentSearch, SharedThreshold, TopKRequest, top_k_of_segments};
use sparrow_query::{BoolQuery, Query, QueryKind, RangeQuery, TermQuery, TermsQuery};
use sparrow_tantivy_index::Snapshot;
use sparrow_tantivy_index::query::SearchOptions;

/// Every how many questions the result is checked.
pub const CHECKED: usize = 20;

type Wanted = Box<dyn Fn(u64) -> bool>;

/// A filter, and the documents that pass it.
struct Filter {
    name: &'static str,
    clause: fn(usize) -> Query,
    wanted: fn(usize) -> Wanted,
}

pub fn term(field: &str, value: String) -> Query {
    QueryKind::Term(TermQuery {
        field: field.to_owned(),
        value: Value::String(value),
        case_insensitive: false,
    })
    .into()
}

pub fn range(from: u64, below: u64) -> Query {
    QueryKind::Range(RangeQuery {
        field: "number".to_owned(),
        gte: Some(json!(from)),
        lt: Some(json!(below)),
        ..RangeQuery::default()
    })
    .into()
}

fn number_in(from: u64, below: u64) -> Wanted {
    Box::new(move |row| (from..below).contains(&(spread(row) % 1000)))
}

/// The next of a sequence of numbers, from which a clause is made that no search has used before.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A filter on a range that no search has used before: its fractional bound varies but always leaves the same
/// documents.
fn new_range(from: u64, below: u64) -> Query {
    let bound = from as f64 - 1.0 + (next_number() % 1_000_000 + 1) as f64 / 2e6;
    QueryKind::Range(RangeQuery {
        field: "number".to_owned(),
        gt: Some(json!(bound)),
        lt: Some(json!(below)),
        ..RangeQuery::default()
    })
    .into()
}

const FILTERS: [Filter; 9] = [
    Filter {
        name: "term 50%",
        clause: |_| term("half", "half-1".to_owned()),
        wanted: |_| Box::new(|row| spread(row) % 2 == 1),
    },
    Filter {
        name: "term 5%",
        clause: |_| term("twentieth", "twentieth-3".to_owned()),
        wanted: |_| Box::new(|row| spread(row) % 20 == 3),
    },
    Filter {
        name: "term 0.5%",
        clause: |_| term("rare", "rare-7".to_owned()),
        wanted: |_| Box::new(|row| spread(row) % 200 == 7),
    },
    Filter { name: "range 50%", clause: |_| range(100, 600), wanted: |_| number_in(100, 600) },
    Filter { name: "range 5%", clause: |_| range(100, 150), wanted: |_| number_in(100, 150) },
    Filter { name: "range 0.5%", clause: |_| range(100, 105), wanted: |_| number_in(100, 105) },
    Filter { name: "new range 50%", clause: |_| new_range(100, 600), wanted: |_| number_in(100, 600) },
    Filter { name: "new range 5%", clause: |_| new_range(100, 150), wanted: |_| number_in(100, 150) },
    Filter {
        name: "new terms 0.5%",
        clause: |_| {
            let values = vec![json!("rare-7"), json!(format!("unknown-{}", next_number()))];
            QueryKind::Terms(TermsQuery { field: "rare".to_owned(), values: values.into() }).into()
        },
        wanted: |_| Box::new(|row| spread(row) % 200 == 7),
    },
];

fn filtered(sparse: Query, filters: Vec<Query>) -> Query {
    QueryKind::Bool(BoolQuery { must: vec![sparse], filter: filters, ..BoolQuery::default() }).into()
}

/// One kind of search: how a question becomes a query.
struct Kind<'a> {
    name: String,
    query: Box<dyn Fn(usize) -> Query + 'a>,
    /// Whether the sources of the hits are read too.
    fetch: bool,
}

pub fn warm(
    clean: &Built,
    split: &Built,
    corpus: &Corpus,
    arguments: &Arguments,
) -> Result<(), Box<dyn Error>> {
    let (clean_view, split_view) = (clean.snapshot(), split.snapshot());
    check_filters(&clean_view, corpus)?;
    check_filters(&split_view, corpus)?;
    let mut kinds = kinds(corpus);
    kinds.retain(|kind| kind.name == "sparse" || kind.name.contains(&arguments.kinds));
    let mut best: Vec<Vec<Vec<f64>>> = vec![vec![vec![f64::MAX; corpus.questions()]; kinds.len() + 1]; 2];
    for _ in 0..arguments.passes {
        for (at, snapshot) in [&clean_view, &split_view].into_iter().enumerate() {
            let last = kinds.len();
            run_postings(snapshot, corpus, &mut best[at][last]);
            for (number, kind) in kinds.iter().enumerate() {
                run(snapshot, corpus, kind, &mut best[at][number])?;
            }
        }
    }
    let lone = kinds.iter().position(|kind| kind.name == "sparse").ok_or("no lone clause")?;
    let reference = percentile(&best[0][lone], 0.5);
    for (times, label) in best.iter().zip([&clean.label, &split.label]) {
        let own = percentile(&times[lone], 0.5);
        for (times, name) in times.iter().zip(kinds.iter().map(|kind| &*kind.name).chain(["postings alone"]))
        {
            println!(
                "{}",
                json!({
                    "part": "warm",
                    "index": label,
                    "documents": corpus.len(),
                    "what": name,
                    "p50_us": micros(percentile(times, 0.5)),
                    "p95_us": micros(percentile(times, 0.95)),
                    "mean_us": micros(times.iter().sum::<f64>() / times.len() as f64),
                    "p50_of_lone": ratio(percentile(times, 0.5), own),
                    "p50_of_clean_lone": ratio(percentile(times, 0.5), reference),
                })
            );
        }
    }
    Ok(())
}

/// Measures how long it takes to find and count the documents of each filter, without a sparse clause.
pub fn filters(built: &Built, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let snapshot = built.snapshot();
    for filter in FILTERS.iter().filter(|filter| filter.name.contains(&arguments.kinds)) {
        let mut times = Vec::with_capacity(arguments.questions * arguments.passes);
        for number in 0..arguments.questions * arguments.passes {
            let query = (filter.clause)(number);
            let start = Instant::now();
            black_box(snapshot.count(&query)?);
            times.push(start.elapsed().as_secs_f64());
        }
        println!(
            "{}",
            json!({
                "part": "filters",
                "index": built.label,
                "what": filter.name,
                "p50_us": micros(percentile(&times, 0.5)),
                "p95_us": micros(percentile(&times, 0.95)),
                "first_us": times.iter().take(20).map(|time| micros(*time)).collect::<Vec<_>>(),
            })
        );
    }
    Ok(())
}

fn kinds(corpus: &Corpus) -> Vec<Kind<'_>> {
    let sparse = |question| corpus.sparse(question);
    let mut kinds = vec![Kind { name: "sparse".to_owned(), query: Box::new(sparse), fetch: false }];
    kinds.push(Kind { name: "sparse and sources".to_owned(), query: Box::new(sparse), fetch: true });
    for filter in &FILTERS {
        kinds.push(Kind {
            name: filter.name.to_owned(),
            query: Box::new(move |question| {
                filtered(corpus.sparse(question), vec![(filter.clause)(question)])
            }),
            fetch: false,
        });
    }
    kinds.push(Kind {
        name: "term 50% and range 5%".to_owned(),
        query: Box::new(|question| {
            filtered(corpus.sparse(question), vec![(FILTERS[0].clause)(0), (FILTERS[4].clause)(0)])
        }),
        fetch: false,
    });
    kinds.push(Kind {
        name: "match".to_owned(),
        query: Box::new(|question| corpus.words(question)),
        fetch: false,
    });
    kinds
}

fn run(
    snapshot: &Snapshot,
    corpus: &Corpus,
    kind: &Kind<'_>,
    best: &mut [f64],
) -> Result<(), Box<dyn Error>> {
    let options = SearchOptions::default();
    for (question, best) in best.iter_mut().enumerate() {
        let query = (kind.query)(question);
        let start = Instant::now();
        let found = snapshot.search(&query, &options)?;
        if kind.fetch {
            for hit in &found.hits {
                black_box(snapshot.fetch(hit.addr)?);
            }
        }
        *best = best.min(start.elapsed().as_secs_f64());
        debug_assert!(question < corpus.questions());
        black_box(&found);
    }
    Ok(())
}

/// Searches the postings of all segments directly, largest segment first; the terms are looked up before the
/// clock starts.
fn run_postings(snapshot: &Snapshot, corpus: &Corpus, best: &mut [f64]) {
    for (question, best) in best.iter_mut().enumerate() {
        let tokens = corpus.tokens(question);
        let mut parts: Vec<_> = (0..snapshot.segments().len())
            .filter_map(|ord| Some((snapshot.segment(ord as u32), snapshot.sparse_reader(ord as u32, "v")?)))
            .map(|(segment, postings)| {
                let query: Vec<(u32, f32)> = tokens
                    .iter()
                    .filter_map(|(token, weight)| Some((postings.term(token)?, *weight)))
                    .collect();
                let terms: Vec<_> = query.iter().filter_map(|(term, _)| postings.resolve(*term)).collect();
                (segment, postings, query, terms)
            })
            .collect();
        parts.sort_by_key(|(_, postings, ..)| std::cmp::Reverse(postings.num_docs()));
        let ties: Vec<_> = parts.iter().map(|(segment, ..)| |doc| segment.seq_no(doc)).collect();
        let start = Instant::now();
        let threshold = SharedThreshold::new();
        let segments =
            parts.iter().zip(&ties).map(|((segment, postings, query, terms), tie)| SegmentSearch {
                reader: *postings,
                terms,
                request: TopKRequest {
                    query,
                    k: 10,
                    min_score: None,
                    threshold: &threshold,
                    live: segment.live(),
                    filter: None,
                    count_limit: 10_001,
                    tie,
                    cancel: None,
                },
                bounds: None,
            });
        black_box(top_k_of_segments(segments.collect()));
        *best = best.min(start.elapsed().as_secs_f64());
    }
}

/// Checks that the first and a repeated use of each filter give the same results as scoring every document.
fn check_filters(snapshot: &Snapshot, corpus: &Corpus) -> Result<(), Box<dyn Error>> {
    let options = SearchOptions::default();
    for question in (0..corpus.questions()).step_by(CHECKED) {
        let tokens = corpus.tokens(question);
        let found = snapshot.search(&corpus.sparse(question), &options)?;
        checks::check(snapshot, &tokens, &found, &|_| true, "sparse")?;
        for filter in &FILTERS {
            let query = filtered(corpus.sparse(question), vec![(filter.clause)(question)]);
            let wanted = (filter.wanted)(question);
            for _ in 0..2 {
                let found = snapshot.search(&query, &options)?;
                checks::check(snapshot, &tokens, &found, &*wanted, filter.name)?;
            }
        }
    }
    Ok(())
}

pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(((sorted.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0.0)
}

pub fn micros(seconds: f64) -> f64 {
    (seconds * 1e7).round() / 10.0
}

pub fn ratio(a: f64, b: f64) -> f64 {
    (a / b * 1000.0).round() / 1000.0
}
