//! Documents with many values: how much of them is listed at a time, and that a request stops between two lists.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use sparrow_runtime::work::{self, Memory, Work};

use super::fixture::Fixture;
use super::*;
use crate::groups::Groups;
use crate::metrics::Metric;
use crate::pieces::InPieces;
use crate::values::MOST_CODES;

const DOCS: usize = 40;
/// Numbers of each document, all different.
const NUMBERS: usize = 1000;
/// Ranges of each document, which are in [`STEPS`] intervals each.
const RANGES: usize = 300;
const STEPS: usize = 11;
/// Sources of composite keys; each document has two values for each of them.
const SOURCES: usize = 14;
/// Bytes that an aggregation of these documents may have at once.
const MOST_BYTES: usize = 64 << 20;

fn documents() -> Fixture {
    let mut fixture = Fixture::new(json!({
        "n": {"type": "long"}, "k": {"type": "keyword"}, "one": {"type": "long"}, "r": {"type": "integer_range"}}));
    let ranges: Vec<Value> = (0..RANGES).map(|at| json!({"gte": at, "lte": at + STEPS - 1})).collect();
    let source = json!({
        "n": (0..NUMBERS).collect::<Vec<_>>(), "k": ["a", "b"], "one": 1, "r": ranges});
    let ids: Vec<String> = (0..DOCS).map(|id| id.to_string()).collect();
    let batch: Vec<(&str, Value)> = ids.iter().map(|id| (id.as_str(), source.clone())).collect();
    fixture.batch(&batch);
    fixture
}

fn with_segment<T>(
    snapshot: &Arc<Snapshot>,
    aggregations: &[Aggregation],
    see: impl for<'b> FnOnce(&'b Aggregation, &SegmentContext<'b>) -> T,
) -> T {
    let bound =
        Bound::new(&Fields { root: snapshot, snapshot, index: "index", now: 0 }, aggregations).unwrap();
    let seen = Seen::default();
    let context = SegmentContext {
        reader: &snapshot.searcher().segment_readers()[0],
        root: snapshot,
        snapshot,
        segment: snapshot.segment(0),
        ord: 0,
        target: 0,
        bound: &bound,
        scores: None,
        now: 0,
        seen: &seen,
    };
    see(&aggregations[0], &context)
}

/// Every document, as often in a row as it is in buckets of an aggregation above.
fn each_times(times: usize) -> Vec<u32> {
    (0..DOCS as u32).flat_map(|doc| std::iter::repeat_n(doc, times)).collect()
}

fn composite(of: &str) -> AggregationKind {
    let source = |number: usize| CompositeSource {
        name: format!("s{number}"),
        source: field(of),
        group: Group::Value,
        ascending: true,
        missing_bucket: false,
        missing_first: None,
        id: 0,
    };
    AggregationKind::Composite(Composite {
        sources: (0..SOURCES).map(source).collect(),
        size: 10,
        after: None,
    })
}

fn ranges(of: &str, count: usize) -> AggregationKind {
    // Only the last number of each document is in any of them.
    let range = RangeBucket { key: None, from: Some((NUMBERS - 1).into()), to: None };
    AggregationKind::Range(Range {
        source: field(of),
        ranges: vec![range; count],
        keyed: false,
        dates: false,
    })
}

fn steps(of: &str) -> AggregationKind {
    let mut kind = histogram(1.0, 0.0, 1);
    if let AggregationKind::Histogram(histogram) = &mut kind {
        histogram.source = field(of);
    }
    kind
}

#[test]
fn codes_are_listed_in_pieces_of_few_enough() {
    let fixture = documents();
    let snapshot = fixture.snapshot();
    let tuples = 1 << SOURCES;
    // Codes of all documents together, each of which comes so many times.
    let cases = [
        ("terms", terms(field("n"), 1), 7, DOCS * 7 * NUMBERS),
        ("histogram", steps("n"), 7, DOCS * 7 * NUMBERS),
        ("spans", steps("r"), 3, DOCS * 3 * (RANGES + STEPS - 1)),
        ("ranges", ranges("n", 500), 7, DOCS * 7 * 500),
        ("composite", composite("k"), 1, DOCS * tuples),
    ];
    for (name, kind, times, expected) in cases {
        let aggregations = numbered(vec![aggregation(name, kind, Vec::new())]);
        with_segment(&snapshot, &aggregations, |aggregation, context| {
            let mut groups = Groups::new(aggregation, context).unwrap().unwrap();
            let docs = each_times(times);
            let (mut rest, mut codes, mut lengths) = (docs.as_slice(), Vec::new(), Vec::new());
            while !rest.is_empty() {
                let piece = groups.piece(rest);
                groups.codes(&rest[..piece], &mut codes).unwrap();
                lengths.push(codes.len());
                rest = &rest[piece..];
            }
            assert_eq!(lengths.iter().sum::<usize>(), expected, "{name}");
            assert!(
                lengths.len() > 1 && lengths.iter().all(|&length| length <= MOST_CODES),
                "{name}: {lengths:?}"
            );
        });
    }
}

#[test]
fn values_of_a_metric_are_listed_in_pieces_of_few_enough() {
    let fixture = documents();
    let snapshot = fixture.snapshot();
    let weighted = |value: &str, weight: &str| AggregationKind::WeightedAvg {
        value: field(value),
        weight: field(weight),
        format: None,
    };
    let top = |by: &str| {
        let sort =
            vec![HitOrder { by: HitOrderBy::Field(field(by)), ascending: true, missing_first: false, id: 0 }];
        AggregationKind::TopHits(TopHits { from: 0, size: 1, sort, options: 0, metrics: Vec::new() })
    };
    let of = |name: &str| {
        [
            AggregationKind::Stats(StatsKind::Stats, field(name)),
            AggregationKind::Stats(StatsKind::ValueCount, field(name)),
            AggregationKind::Cardinality { source: field(name), precision_threshold: 100 },
            AggregationKind::MedianAbsoluteDeviation(field(name)),
            weighted(name, "one"),
            weighted("one", name),
            top(name),
        ]
    };
    let docs = each_times(7);
    let first_piece = |kind: AggregationKind| {
        let aggregations = numbered(vec![aggregation("m", kind, Vec::new())]);
        with_segment(&snapshot, &aggregations, |aggregation, context| {
            Metric::new(aggregation, context).unwrap().unwrap().piece(&docs)
        })
    };
    for kind in of("n") {
        assert_eq!(first_piece(kind), MOST_CODES / NUMBERS);
    }
    for kind in of("one") {
        assert_eq!(first_piece(kind), docs.len());
    }
}

#[test]
fn a_level_below_many_buckets_holds_few_of_its_values() {
    let fixture = documents();
    let snapshot = fixture.snapshot();
    let cardinality = AggregationKind::Cardinality { source: field("n"), precision_threshold: 100 };
    let all = Filters { filters: vec![(None, Query::match_all()); 250], other: None, keyed: false };
    let one_more = || vec![stats("s", "n")];
    let cases = [
        ("stats below terms", terms(field("n"), 1), one_more()),
        ("stats below a histogram", steps("n"), one_more()),
        (
            "cardinality below filters",
            AggregationKind::Filters(all),
            vec![aggregation("c", cardinality, Vec::new())],
        ),
        ("stats below ranges", ranges("n", 1000), one_more()),
        ("composite", composite("k"), Vec::new()),
    ];
    let matching = snapshot.matching(&Query::match_all()).unwrap();
    for (name, kind, subs) in cases {
        let aggregations = numbered(vec![aggregation(name, kind, subs)]);
        let request = Work::new(Arc::default(), Arc::new(Memory::new(usize::MAX, usize::MAX)), "<test>");
        let entered = work::enter(Some(request.clone()));
        aggregate(&snapshot, &aggregations, &Documents { matching: &matching, scores: None }, "index", 0)
            .unwrap();
        drop(entered);
        assert!(request.peak() > 0 && request.peak() < MOST_BYTES, "{name}: {} bytes", request.peak());
    }
}

#[test]
fn codes_of_a_piece_are_not_made_for_a_request_that_must_stop() {
    let fixture = documents();
    let snapshot = fixture.snapshot();
    for (name, kind) in [
        ("ranges", ranges("n", 500)),
        ("composite", composite("k")),
        ("composite of single values", composite("one")),
    ] {
        let aggregations = numbered(vec![aggregation(name, kind, Vec::new())]);
        with_segment(&snapshot, &aggregations, |aggregation, context| {
            let mut groups = Groups::new(aggregation, context).unwrap().unwrap();
            let mut codes = Vec::new();
            let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
            let entered = work::enter(Some(Work::new(Arc::new(AtomicBool::new(true)), memory, "<test>")));
            let outcome = groups.codes(&each_times(1), &mut codes);
            drop(entered);
            assert!(matches!(outcome, Err(AggregationError::Query(_))), "{name}");
            assert_eq!(codes, [], "{name}");
            groups.codes(&each_times(1), &mut codes).unwrap();
            assert!(codes.len() >= DOCS, "{name}");
        });
    }
}
