//! Aggregations of random documents, over several segments with deletions, against a naive evaluator.

mod bounds;
mod fixture;
mod naive;
mod nested;
mod pieces;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use self::fixture::Fixture;
use super::*;
use sparrow_query::{Query, QueryKind, RangeQuery};
use sparrow_runtime::work::Counted;
use sparrow_wire::Zone;

/// Charges what an aggregation allocates to its request, as the allocator of the server does.
#[global_allocator]
static ALLOCATOR: Counted<std::alloc::System> = Counted(std::alloc::System);

/// A document of the random tests.
#[derive(Debug, Clone)]
pub struct Doc {
    tags: Vec<u8>,
    numbers: Vec<i8>,
    /// Value in quarters, which makes sums exact.
    fraction: Option<i8>,
    /// Date as a number of days since the epoch.
    day: Option<u16>,
    flag: Option<bool>,
}

fn doc() -> impl Strategy<Value = Doc> {
    (
        proptest::collection::btree_set(0u8..5, 0..3),
        proptest::collection::vec(-6i8..7, 0..3),
        proptest::option::of(-9i8..10),
        proptest::option::of(0u16..800),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(|(tags, numbers, fraction, day, flag)| Doc {
            tags: tags.into_iter().collect(),
            numbers,
            fraction,
            day,
            flag,
        })
}

fn source(doc: &Doc) -> Value {
    let mut source = json!({"n": doc.numbers});
    source["tag"] = doc.tags.iter().map(|tag| format!("t{tag}")).collect();
    if let Some(fraction) = doc.fraction {
        source["f"] = (f64::from(fraction) / 4.0).into();
    }
    if let Some(day) = doc.day {
        source["d"] = (i64::from(day) * 86_400_000).into();
    }
    if let Some(flag) = doc.flag {
        source["b"] = flag.into();
    }
    source
}

fn fixture(batches: &[Vec<(String, Doc)>]) -> Fixture {
    let mut fixture = Fixture::new(json!({
        "tag": {"type": "keyword"}, "n": {"type": "long"}, "f": {"type": "double"}, "d": {"type": "date"},
        "b": {"type": "boolean"}}));
    for batch in batches {
        let sources: Vec<(&str, Value)> = batch.iter().map(|(id, doc)| (id.as_str(), source(doc))).collect();
        fixture.batch(&sources);
    }
    fixture
}

/// Writes the total and the sort values of hits, without loading any documents.
struct NoHits;

impl HitWriter for NoHits {
    fn write(
        &mut self,
        top: &TopHits,
        list: &TopList,
        sort: &[Vec<Value>],
    ) -> Result<Value, AggregationError> {
        Ok(
            json!({"total": list.total, "sort": sort.iter().skip(top.from).take(top.size).collect::<Vec<_>>()}),
        )
    }
}

fn run(snapshots: &[&Arc<Snapshot>], aggregations: &[Aggregation], query: &Query) -> Map<String, Value> {
    let collected = snapshots
        .iter()
        .enumerate()
        .map(|(target, snapshot)| {
            let matching = snapshot.matching(query).unwrap();
            let documents = Documents { matching: &matching, scores: None };
            aggregate(snapshot, aggregations, &documents, "index", target).unwrap()
        })
        .collect();
    reduce(aggregations, collected, ReduceOptions { typed_keys: false, max_buckets: 65_536 }, &mut NoHits)
        .unwrap()
}

fn field(name: &str) -> ValueSource {
    ValueSource { field: name.to_owned(), ..ValueSource::default() }
}

fn with_missing(name: &str, missing: Value) -> ValueSource {
    ValueSource { missing: Some(missing), ..field(name) }
}

/// Assigns ids to aggregations like the request parser.
fn numbered(mut list: Vec<Aggregation>) -> Vec<Aggregation> {
    fn number(list: &mut [Aggregation], next: &mut usize) {
        for aggregation in list {
            aggregation.id = *next;
            *next += 1;
            match &mut aggregation.kind {
                AggregationKind::Composite(composite) => {
                    for source in &mut composite.sources {
                        source.id = *next;
                        *next += 1;
                    }
                }
                AggregationKind::TopHits(top) => {
                    for key in &mut top.sort {
                        key.id = *next;
                        *next += 1;
                    }
                }
                _ => {}
            }
            number(&mut aggregation.subs, next);
        }
    }
    number(&mut list, &mut 0);
    list
}

fn aggregation(name: &str, kind: AggregationKind, subs: Vec<Aggregation>) -> Aggregation {
    Aggregation { name: name.to_owned(), id: 0, kind, subs, meta: None }
}

fn stats(name: &str, of: &str) -> Aggregation {
    aggregation(name, AggregationKind::Stats(StatsKind::Stats, field(of)), Vec::new())
}

fn terms(source: ValueSource, min_doc_count: u64) -> AggregationKind {
    AggregationKind::Terms(Terms {
        source,
        max_doc_count: None,
        size: 3,
        min_doc_count,
        order: vec![
            Order { by: OrderBy::Count, ascending: false },
            Order { by: OrderBy::Key, ascending: true },
        ],
        include: None,
        exclude: None,
        show_error: false,
    })
}

fn histogram(interval: f64, offset: f64, min_doc_count: u64) -> AggregationKind {
    AggregationKind::Histogram(Histogram {
        source: field("n"),
        interval,
        offset,
        min_doc_count,
        extended_bounds: None,
        hard_bounds: None,
        keyed: false,
        order: vec![Order { by: OrderBy::Key, ascending: true }],
    })
}

/// Aggregations of every type, some of them nested.
fn everything() -> Vec<Aggregation> {
    let path = |text: &str, names: &[&str], property: Option<&str>| MetricPath {
        text: text.to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        property: property.map(str::to_owned),
    };
    let mut by_metric = terms(field("tag"), 1);
    if let AggregationKind::Terms(terms) = &mut by_metric {
        terms.order = vec![
            Order { by: OrderBy::Metric(path("s.avg", &["s"], Some("avg"))), ascending: false },
            Order { by: OrderBy::Key, ascending: true },
        ];
    }
    let range = |keyed| {
        AggregationKind::Range(Range {
            source: field("n"),
            ranges: [(None, Some(0)), (Some(-2), Some(3)), (Some(3), None)]
                .into_iter()
                .map(|(from, to)| RangeBucket {
                    key: None,
                    from: from.map(Value::from),
                    to: to.map(Value::from),
                })
                .collect(),
            keyed,
            dates: false,
        })
    };
    let month = Rounding {
        interval: Interval::Calendar(CalendarUnit::Month),
        zone: Zone::Fixed(3_600_000),
        offset: 0,
    };
    let dates = AggregationKind::DateHistogram(DateHistogram {
        source: field("d"),
        rounding: month,
        min_doc_count: 0,
        extended_bounds: None,
        hard_bounds: None,
        keyed: false,
        order: vec![Order { by: OrderBy::Key, ascending: true }],
    });
    let part = |name: &str, group, missing_bucket, ascending| CompositeSource {
        name: name.to_owned(),
        source: field(name),
        group,
        ascending,
        missing_bucket,
        missing_first: None,
        id: 0,
    };
    let composite = |after| {
        AggregationKind::Composite(Composite {
            sources: vec![
                part("tag", Group::Value, true, false),
                part("n", Group::Interval(3.0), false, true),
                part("b", Group::Value, true, true),
            ],
            size: 4,
            after,
        })
    };
    let positive = || {
        let range = RangeQuery { field: "n".to_owned(), gte: Some(1.into()), ..RangeQuery::default() };
        Query::from(QueryKind::Range(range))
    };
    let percentiles =
        Percentiles { source: field("f"), points: vec![0.0, 30.0, 50.0, 99.0], keyed: true, hdr: None };
    let ranks = Percentiles { points: vec![-1.0, 0.25, 9.0], ..percentiles.clone() };
    let pipeline = |kind| {
        AggregationKind::Pipeline(Pipeline {
            kind,
            path: path("s.sum", &["s"], Some("sum")),
            gaps: GapPolicy::Skip,
            format: None,
        })
    };
    let filters = Filters {
        filters: vec![
            (Some("all".to_owned()), Query::match_all()),
            (Some("positive".to_owned()), positive()),
        ],
        other: Some("other".to_owned()),
        keyed: true,
    };
    let top = TopHits {
        from: 0,
        size: 2,
        sort: vec![
            HitOrder { by: HitOrderBy::Field(field("n")), ascending: false, missing_first: false, id: 0 },
            HitOrder { by: HitOrderBy::Field(field("tag")), ascending: true, missing_first: true, id: 0 },
            HitOrder { by: HitOrderBy::Field(field("f")), ascending: true, missing_first: false, id: 0 },
        ],
        options: 0,
        metrics: Vec::new(),
    };
    numbered(vec![
        aggregation(
            "tags",
            terms(with_missing("tag", json!("none")), 1),
            vec![
                stats("s", "f"),
                aggregation("h", histogram(3.0, 1.0, 0), vec![stats("s", "n")]),
                aggregation("top", AggregationKind::TopHits(top.clone()), Vec::new()),
            ],
        ),
        aggregation("by_metric", by_metric, vec![stats("s", "n")]),
        aggregation("all_tags", terms(field("tag"), 0), vec![stats("s", "n")]),
        aggregation(
            "numbers",
            terms(field("n"), 1),
            vec![aggregation("t", terms(field("tag"), 1), Vec::new())],
        ),
        aggregation(
            "flags",
            terms(field("b"), 1),
            vec![aggregation("r", range(true), vec![stats("s", "f")])],
        ),
        aggregation("fractions", terms(field("f"), 2), Vec::new()),
        aggregation("ranges", range(false), vec![aggregation("t", terms(field("tag"), 1), Vec::new())]),
        aggregation(
            "histogram",
            histogram(3.0, 1.0, 0),
            vec![
                stats("s", "f"),
                aggregation("sum", pipeline(PipelineKind::CumulativeSum), Vec::new()),
                aggregation("change", pipeline(PipelineKind::Derivative(None)), Vec::new()),
            ],
        ),
        aggregation("dates", dates, vec![stats("s", "f")]),
        aggregation("page", composite(None), vec![stats("s", "f")]),
        aggregation("next", composite(Some(vec![json!("t2"), json!(-3), Value::Null])), Vec::new()),
        // A text that no document has.
        aggregation("between", composite(Some(vec![json!("t15"), json!(0), json!(false)])), Vec::new()),
        aggregation("filter", AggregationKind::Filter(positive()), vec![stats("s", "f")]),
        aggregation("filters", AggregationKind::Filters(filters), vec![stats("s", "f")]),
        aggregation("missing", AggregationKind::Missing(field("f")), vec![stats("s", "n")]),
        aggregation("global", AggregationKind::Global, vec![stats("s", "n")]),
        aggregation(
            "distinct",
            AggregationKind::Cardinality { source: field("tag"), precision_threshold: 100 },
            Vec::new(),
        ),
        aggregation(
            "distinct_numbers",
            AggregationKind::Cardinality { source: with_missing("n", json!(99)), precision_threshold: 100 },
            Vec::new(),
        ),
        aggregation("percentiles", AggregationKind::Percentiles(percentiles), Vec::new()),
        aggregation("ranks", AggregationKind::PercentileRanks(ranks), Vec::new()),
        aggregation("deviation", AggregationKind::MedianAbsoluteDeviation(field("f")), Vec::new()),
        aggregation(
            "weighted",
            AggregationKind::WeightedAvg { value: field("n"), weight: field("f"), format: None },
            Vec::new(),
        ),
        aggregation("count", AggregationKind::Stats(StatsKind::ValueCount, field("tag")), Vec::new()),
        aggregation("top", AggregationKind::TopHits(top), Vec::new()),
    ])
}

fn live(batches: &[Vec<(String, Doc)>], deleted: &[String]) -> Vec<(String, Doc)> {
    let mut live: Vec<(String, Doc)> = Vec::new();
    for (id, doc) in batches.iter().flatten() {
        live.retain(|(known, _)| known != id);
        live.push((id.clone(), doc.clone()));
    }
    live.retain(|(id, _)| !deleted.contains(id));
    live
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Results do not depend on whether documents are in one segment or several, in one index or two, or whether
    /// others were deleted; and each type of result equals that of the naive evaluator.
    #[test]
    fn results_do_not_depend_on_segments_and_are_right(
        batches in proptest::collection::vec(
            proptest::collection::vec((0u8..30, doc()), 1..12), 1..4),
        deleted in proptest::collection::vec(0u8..30, 0..6),
        least in proptest::option::of(-4i64..3),
    ) {
        let batches: Vec<Vec<(String, Doc)>> = batches
            .into_iter()
            .map(|batch| {
                // Of documents with the same id in one batch the last counts, here as there.
                let mut unique: Vec<(String, Doc)> = Vec::new();
                for (id, doc) in batch {
                    unique.retain(|(known, _)| *known != format!("d{id}"));
                    unique.push((format!("d{id}"), doc));
                }
                unique
            })
            .collect();
        let deleted: Vec<String> = deleted.iter().map(|id| format!("d{id}")).collect();
        let mut split = fixture(&batches);
        for id in &deleted {
            split.delete(id);
        }
        let live = live(&batches, &deleted);
        let query = match least {
            None => Query::match_all(),
            Some(least) => QueryKind::Range(RangeQuery {
                field: "n".to_owned(),
                gte: Some(least.into()),
                ..RangeQuery::default()
            })
            .into(),
        };
        let aggregations = everything();
        let found = run(&[&split.snapshot()], &aggregations, &query);

        let whole = fixture(std::slice::from_ref(&live));
        let of_whole = run(&[&whole.snapshot()], &aggregations, &query);
        prop_assert_eq!(&found, &of_whole);
        let (left, right) = live.split_at(live.len() / 2);
        let (left, right) = (fixture(&[left.to_vec()]), fixture(&[right.to_vec()]));
        let of_two = run(&[&left.snapshot(), &right.snapshot()], &aggregations, &query);
        prop_assert_eq!(&found, &of_two);

        let docs: Vec<&Doc> = live.iter().map(|(_, doc)| doc).collect();
        let matching: Vec<&Doc> = docs
            .iter()
            .copied()
            .filter(|doc| least.is_none_or(|least| doc.numbers.iter().any(|&n| i64::from(n) >= least)))
            .collect();
        naive::check(&found, &matching, &docs)?;
    }
}
