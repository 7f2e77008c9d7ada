//! Benchmark of aggregations: generates documents and prints results as JSON lines; runs on one thread.
//!
//! `cargo run --release -p sparrow-tantivy-index --example bench_aggregations -- [DOCUMENTS [PASSES]]` (200,000 and 7 by
//! default; the fastest pass counts). Every response is compared with what the generated rows yield.

#![expect(clippy::print_stdout, reason = "a program that reports")]

mod checks;

use std::error::Error;
use std::time::Instant;

use serde_json::{Value, json};
use sparrow_aggregations::*;
use sparrow_mapping::{Limits, Mapping};
use sparrow_query::{Query, QueryKind, RangeQuery};
use sparrow_tantivy_index::{IndexOptions, SparrowIndex, WriteDocument};

use checks::Row;

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
        max_doc_count: None,
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
    let passes: usize = std::env::args().nth(2).map_or(Ok(7), |text| text.parse())?;
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
    let mut rows = Vec::new();
    for number in 0..documents {
        let row = Row {
            tag: next(50).min(next(50)),
            user: next(documents),
            price: next(100_000) as f64 / 100.0,
            n: next(1000),
            at: 1_700_000_000_000 + next(31_536_000) as i64 * 1000,
        };
        let source = json!({"tag": format!("tag{}", row.tag), "user": format!("user{}", row.user), "price": row.price,
            "n": row.n, "at": row.at});
        rows.push(row);
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
    let below = QueryKind::Range(RangeQuery {
        field: "n".to_owned(),
        lt: Some(json!(checks::SOME)),
        ..RangeQuery::default()
    });
    let some = snapshot.matching(&below.into())?;
    let key = || vec![Order { by: OrderBy::Key, ascending: true }];
    let rounding = Rounding {
        interval: Interval::Calendar(CalendarUnit::Day),
        zone: sparrow_wire::Zone::UTC,
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
        (
            "range",
            one(
                0,
                AggregationKind::Range(Range {
                    source: field("price"),
                    ranges: [(None, Some(100)), (Some(100), Some(500)), (Some(500), None)]
                        .map(|(from, to)| RangeBucket {
                            key: None,
                            from: from.map(Value::from),
                            to: to.map(Value::from),
                        })
                        .into(),
                    keyed: false,
                    dates: false,
                }),
                Vec::new(),
            ),
        ),
        (
            "composite",
            one(
                0,
                AggregationKind::Composite(Composite {
                    sources: [("t", "tag", 1), ("n", "n", 2)]
                        .map(|(name, path, id)| CompositeSource {
                            name: name.to_owned(),
                            source: field(path),
                            group: Group::Value,
                            ascending: true,
                            missing_bucket: false,
                            missing_first: None,
                            id,
                        })
                        .into(),
                    size: 100,
                    after: None,
                }),
                Vec::new(),
            ),
        ),
    ];
    for (name, aggregation) in cases {
        let list = [aggregation];
        for (over, matching) in [("all", &all), ("some", &some)] {
            let mut best = f64::INFINITY;
            let mut answer = serde_json::Map::new();
            for _ in 0..passes {
                let start = Instant::now();
                let documents = Documents { matching, scores: None };
                let collected = sparrow_aggregations::aggregate(&snapshot, &list, &documents, "bench", 0)?;
                let options = ReduceOptions { typed_keys: false, max_buckets: 65_536 };
                answer = reduce(&list, vec![collected], options, &mut NoHits)?;
                best = best.min(start.elapsed().as_secs_f64() * 1000.0);
            }
            let counted: Vec<&Row> =
                rows.iter().filter(|row| over == "all" || row.n < checks::SOME).collect();
            checks::check(name, &answer["a0"], &counted).map_err(|wrong| format!("{name}: {wrong}"))?;
            println!(
                "{}",
                json!({"case": name, "over": over, "matching": counted.len(), "documents": documents,
                    "segments": all.len(), "milliseconds": best})
            );
        }
    }
    Ok(())
}
