//! What aggregations cost: generated documents, JSON lines out, one thread.
//!
//! `cargo run --release -p sparrow-index --example bench_aggregations -- [DOCUMENTS]` (200,000)

#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::time::Instant;

use serde_json::{Value, json};
use sparrow_index::aggregations::*;
use sparrow_index::query::Query;
use sparrow_index::{IndexOptions, Limits, Mapping, SparrowIndex, WriteDocument};

struct NoHits;

impl HitWriter for NoHits {
    fn write(&mut self, _: &TopHits, list: &TopList, _: &[Vec<Value>]) -> Result<Value, AggregationError> {
        Ok(list.total.into())
    }
}

fn field(name: &str) -> ValueSource {
    ValueSource { field: name.to_owned(), ..ValueSource::default() }
}

fn terms(name: &str) -> AggregationKind {
    let order =
        vec![Order { by: OrderBy::Count, ascending: false }, Order { by: OrderBy::Key, ascending: true }];
    let source = field(name);
    AggregationKind::Terms(Terms {
        source,
        size: 10,
        min_doc_count: 1,
        order,
        include: None,
        exclude: None,
        show_error: false,
    })
}

fn one(id: usize, kind: AggregationKind, subs: Vec<Aggregation>) -> Aggregation {
    Aggregation { name: format!("a{id}"), id, kind, subs, meta: None }
}

fn main() -> Result<(), Box<dyn Error>> {
    let documents: u64 = std::env::args().nth(1).map_or(Ok(200_000), |text| text.parse())?;
    let dir = tempfile::tempdir()?;
    let mapping = Mapping::parse(&json!({"properties": {
        "tag": {"type": "keyword"}, "user": {"type": "keyword"}, "price": {"type": "double"}, "n": {"type": "long"},
        "at": {"type": "date"}}}))?;
    let index = SparrowIndex::create(&dir.path().join("index"), &mapping, &IndexOptions::default())?;
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for number in 0..documents {
        let source = json!({
            "tag": format!("tag{}", next(50).min(next(50))), "user": format!("user{}", next(documents)),
            "price": next(100_000) as f64 / 100.0, "n": next(1000),
            "at": 1_700_000_000_000_u64 + next(31_536_000) * 1000});
        let (parsed, _) = mapping.parse_document("x", &source, &Limits::default())?;
        index.add(WriteDocument {
            id: number.to_string(),
            seq_no: number,
            version: 1,
            parsed,
            source: Vec::new(),
            replaces: false,
        })?;
    }
    index.refresh()?;
    let snapshot = index.searcher();
    let all = snapshot.matching(&Query::match_all())?;
    let key = || vec![Order { by: OrderBy::Key, ascending: true }];
    let rounding = Rounding {
        interval: Interval::Calendar(CalendarUnit::Day),
        zone: sparrow_index::Zone::UTC,
        offset: 0,
    };
    let stats = |id, name: &str| one(id, AggregationKind::Stats(StatsKind::Avg, field(name)), Vec::new());
    let cases = [
        ("terms", one(0, terms("tag"), Vec::new())),
        ("terms > avg", one(0, terms("tag"), vec![stats(1, "price")])),
        ("terms, all distinct", one(0, terms("user"), Vec::new())),
        (
            "histogram",
            one(
                0,
                AggregationKind::Histogram(Histogram {
                    source: field("price"),
                    interval: 50.0,
                    offset: 0.0,
                    min_doc_count: 0,
                    extended_bounds: None,
                    hard_bounds: None,
                    keyed: false,
                    order: key(),
                }),
                Vec::new(),
            ),
        ),
        (
            "date_histogram > terms > avg",
            one(
                0,
                AggregationKind::DateHistogram(DateHistogram {
                    source: field("at"),
                    rounding,
                    min_doc_count: 0,
                    extended_bounds: None,
                    hard_bounds: None,
                    keyed: false,
                    order: key(),
                }),
                vec![one(1, terms("tag"), vec![stats(2, "price")])],
            ),
        ),
        ("stats", one(0, AggregationKind::Stats(StatsKind::Stats, field("price")), Vec::new())),
        (
            "cardinality",
            one(
                0,
                AggregationKind::Cardinality { source: field("user"), precision_threshold: 3000 },
                Vec::new(),
            ),
        ),
        (
            "percentiles",
            one(
                0,
                AggregationKind::Percentiles(Percentiles {
                    source: field("price"),
                    points: vec![50.0, 95.0, 99.0],
                    keyed: true,
                    hdr: None,
                }),
                Vec::new(),
            ),
        ),
    ];
    for (name, aggregation) in cases {
        let list = [aggregation];
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            let budget = Budget::new(None);
            let documents = Documents { matching: &all, scores: None };
            let collected = snapshot.aggregate(&list, &documents, "bench", 0, &budget)?;
            let options = ReduceOptions { typed_keys: false, max_buckets: 65_536 };
            let answer = reduce(&list, vec![collected], options, &mut NoHits)?;
            assert!(!answer.is_empty());
            best = best.min(start.elapsed().as_secs_f64() * 1000.0);
        }
        println!(
            "{}",
            json!({"case": name, "documents": documents, "segments": all.len(), "milliseconds": best})
        );
    }
    Ok(())
}
