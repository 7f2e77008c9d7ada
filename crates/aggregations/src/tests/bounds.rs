//! Requests over many buckets, or over long texts: how often they ask whether to stop, and how much memory they ask for at once.

use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_query::Query;
use sparrow_runtime::work::{self, Memory, Probe, Stopped, Work};

use super::fixture::Fixture;
use super::*;
use crate::partial::{Bucket, Widened, merge};

const DOCS: usize = 300;
/// Bytes of each text of `k`.
const TEXT: usize = 20_000;
/// Buckets of a list that is merged with another one.
const BUCKETS: i64 = 150_000;

/// Documents in two segments; each has a long text and a number of its own.
fn documents() -> Fixture {
    let mut fixture = Fixture::new(json!({"k": {"type": "keyword"}, "n": {"type": "long"}}));
    for batch in 0..2 {
        let sources: Vec<(String, Value)> = (0..DOCS / 2)
            .map(|at| at * 2 + batch)
            .map(|at| (at.to_string(), json!({"k": format!("{at}{}", "x".repeat(TEXT)), "n": at})))
            .collect();
        let sources: Vec<(&str, Value)> =
            sources.iter().map(|(id, doc)| (id.as_str(), doc.clone())).collect();
        fixture.batch(&sources);
    }
    fixture
}

/// What a request comes to that may have so many bytes, with its checks and the most bytes that it had.
fn bounded<T>(bytes: usize, run: impl FnOnce() -> T) -> (T, u64, usize) {
    let probe = Probe::new(u64::MAX);
    Probe::set(Some(Arc::clone(&probe)));
    let request = Work::new(Arc::default(), Arc::new(Memory::new(usize::MAX, bytes)), "<test>");
    Probe::set(None);
    let entered = work::enter(Some(request.clone()));
    let outcome = run();
    drop(entered);
    (outcome, probe.checks(), request.peak())
}

fn collected(fixture: &Fixture, aggregations: &[Aggregation]) -> Result<Collected, AggregationError> {
    let snapshot = fixture.snapshot();
    let matching = snapshot.matching(&Query::match_all()).unwrap();
    aggregate(&snapshot, aggregations, &Documents { matching: &matching, scores: None }, "index", 0)
}

fn reduced(
    aggregations: &[Aggregation],
    collected: Collected,
) -> Result<Map<String, Value>, AggregationError> {
    let options = ReduceOptions { typed_keys: false, max_buckets: 65_536 };
    reduce(aggregations, vec![collected], options, &mut NoHits)
}

/// Terms of all numbers, sorted by so many keys that are a metric.
fn ordered(keys: usize) -> Vec<Aggregation> {
    let path = MetricPath {
        names: vec!["s".to_owned()],
        property: Some("max".to_owned()),
        text: "s.max".to_owned(),
    };
    let mut kind = terms(field("n"), 1);
    if let AggregationKind::Terms(terms) = &mut kind {
        terms.order = vec![Order { by: OrderBy::Metric(path), ascending: false }; keys];
    }
    numbered(vec![aggregation("a", kind, vec![stats("s", "n")])])
}

#[test]
fn numbers_that_buckets_are_sorted_by_are_checked_for_and_paid() {
    let fixture = documents();
    let sorted = |keys: usize, bytes: usize| {
        let aggregations = ordered(keys);
        let parts = collected(&fixture, &aggregations).unwrap();
        bounded(bytes, || reduced(&aggregations, parts))
    };
    let ((few, few_checks, _), (many, many_checks, _)) = (sorted(1, usize::MAX), sorted(50, usize::MAX));
    assert_eq!(few.unwrap(), many.unwrap());
    assert!(many_checks >= few_checks + 49 * DOCS as u64, "{few_checks}, {many_checks}");
    let (outcome, _, peak) = sorted(2000, 1 << 20);
    assert!(matches!(outcome, Err(AggregationError::Query(_))), "{outcome:?}");
    assert!(peak < 2 << 20, "{peak} bytes");
}

#[test]
fn long_texts_are_read_one_after_another() {
    let fixture = documents();
    let all = DOCS * TEXT;
    for kind in [
        AggregationKind::Cardinality { source: field("k"), precision_threshold: 40_000 },
        AggregationKind::StringStats { source: field("k"), distribution: false },
    ] {
        let aggregations = numbered(vec![aggregation("a", kind, Vec::new())]);
        let (outcome, checks, peak) = bounded(all / 3, || collected(&fixture, &aggregations));
        assert!(outcome.is_ok() && peak < all / 3, "{peak} bytes");
        assert!(checks > DOCS as u64, "{checks}");
        let answer = reduced(&aggregations, outcome.unwrap()).unwrap();
        let count = answer["a"].get("value").or(answer["a"].get("count"));
        assert_eq!(count, Some(&json!(DOCS)), "{answer:?}");
    }
    // Buckets have theirs together, and are not all made where that is too much.
    let aggregations = numbered(vec![aggregation("a", terms(field("k"), 1), Vec::new())]);
    let (outcome, _, peak) = bounded(all / 3, || collected(&fixture, &aggregations));
    assert!(matches!(outcome, Err(AggregationError::Query(_))));
    assert!(peak < all / 2, "{peak} bytes");
}

#[test]
fn texts_that_a_pattern_selects_are_checked_for_one_by_one() {
    let fixture = documents();
    let selected = |include: Option<&str>| {
        let mut kind = terms(field("k"), 1);
        if let AggregationKind::Terms(terms) = &mut kind {
            terms.include = include.map(|pattern| Selection::Regexp(pattern.to_owned()));
        }
        let aggregations = numbered(vec![aggregation("a", kind, Vec::new())]);
        let (outcome, checks, _) = bounded(usize::MAX, || collected(&fixture, &aggregations));
        (reduced(&aggregations, outcome.unwrap()).unwrap()["a"]["buckets"].as_array().unwrap().len(), checks)
    };
    let ((all, plain), (none, checks)) = (selected(None), selected(Some("[0-9]+y")));
    assert_eq!((all, none), (3, 0));
    // Without a bucket nothing else is looked at.
    assert!(checks >= DOCS as u64, "{plain}, {checks}");
}

/// Buckets of whole numbers, the largest first.
fn buckets(keys: impl DoubleEndedIterator<Item = i64>) -> Partial {
    let bucket = |key| (Key::Long(key), Bucket { docs: 1, subs: Vec::new() });
    Partial::Buckets(keys.rev().map(bucket).collect())
}

#[test]
fn merging_asks_whether_to_stop_and_whether_there_is_room() {
    let aggregation = &numbered(vec![aggregation("a", terms(field("n"), 1), Vec::new())])[0];
    let merged = |bytes: usize| {
        let parts = vec![buckets(0..BUCKETS), buckets(BUCKETS / 2..BUCKETS * 2)];
        bounded(bytes, || merge(aggregation, parts, &Widened::default()))
    };
    let (outcome, checks, _) = merged(usize::MAX);
    let Ok(Partial::Buckets(list)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(list.len() as i64, BUCKETS * 2);
    assert_eq!(list.iter().filter(|(_, bucket)| bucket.docs == 2).count() as i64, BUCKETS / 2);
    assert!(checks >= BUCKETS as u64, "{checks}");
    let (outcome, _, peak) = merged(1 << 20);
    assert!(matches!(outcome, Err(Stopped::Exceeded(_))), "{outcome:?}");
    assert!(peak < 2 << 20, "{peak} bytes");
}

#[test]
fn large_whole_numbers_that_are_one_floating_point_number_share_a_bucket() {
    let aggregation = &numbered(vec![aggregation("a", terms(field("n"), 1), Vec::new())])[0];
    let large = 1_i64 << 53;
    let double = |number: f64| (Key::double(number), Bucket { docs: 1, subs: Vec::new() });
    let parts = vec![buckets(large..large + 2), Partial::Buckets(vec![double(3.0), double(large as f64)])];
    let merged = merge(aggregation, parts, &Widened::from_iter([aggregation.id])).unwrap();
    let Partial::Buckets(list) = merged else { panic!("{merged:?}") };
    let counts: Vec<(f64, u64)> = list.iter().map(|(key, bucket)| (key.number(), bucket.docs)).collect();
    assert_eq!(counts, [(3.0, 1), (large as f64, 3)]);
}

#[test]
fn keys_below_a_bucket_that_only_one_index_has_are_floating_point_numbers_too() {
    let below = aggregation("b", terms(field("n"), 1), Vec::new());
    let aggregation = &numbered(vec![aggregation("a", terms(field("k"), 1), vec![below])])[0];
    let bucket = |subs| Bucket { docs: 1, subs };
    let part = |text: &str, number: Key| {
        let below = Partial::Buckets(vec![(number, bucket(Vec::new()))]);
        Partial::Buckets(vec![(Key::Text(text.into()), bucket(vec![below]))])
    };
    let parts = vec![part("x", Key::Long(3)), part("y", Key::double(3.5))];
    let merged = merge(aggregation, parts, &Widened::from_iter([aggregation.subs[0].id])).unwrap();
    let expected = vec![part("x", Key::double(3.0)), part("y", Key::double(3.5))];
    assert_eq!(
        format!("{merged:?}"),
        format!("{:?}", merge(aggregation, expected, &Widened::default()).unwrap())
    );
}
