//! Tests of sorted searches against a full sort of values computed from the documents' JSON.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    After, ColumnKey, ColumnKind, Missing, Slice, SortKey, SortMode, SortSource, SortValue, SortedSearch,
    Ties,
};
use crate::query::SearchOptions;
use crate::query::tests::Fixture;
use sparrow_query::{Query, QueryKind, RangeQuery};

/// A live document: sequence number of its last write, and its source.
#[derive(Debug, Clone)]
struct Doc {
    seq_no: u64,
    source: Value,
}

fn fixture() -> Fixture {
    Fixture::new(json!({
        "kw": {"type": "keyword"}, "one": {"type": "keyword"}, "n": {"type": "long"},
        "u": {"type": "unsigned_long"}, "d": {"type": "double"}, "b": {"type": "boolean"},
        "t": {"type": "text"},
    }))
}

fn several(value: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    proptest::collection::vec(value, 0..4).prop_map(Value::Array)
}

fn source() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec!["a", "b", "ba", "bb", "c", "é", "zz", ""]);
    let longs = prop_oneof![-3i64..4, Just(i64::MAX), Just(i64::MIN)];
    let doubles = prop_oneof![Just(0.5), Just(-1.0), Just(2.0), Just(1e300), Just(-0.25)];
    let unsigned = prop_oneof![0u64..3, Just(u64::MAX), Just(1u64 << 63)];
    (
        several(words.clone().prop_map(|word| json!(word))),
        proptest::option::of(words),
        several(longs.prop_map(|n| json!(n))),
        several(doubles.prop_map(|d| json!(d))),
        several(unsigned.prop_map(|u| json!(u))),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(
            |(kw, one, n, d, u, b)| json!({"kw": kw, "one": one, "n": n, "d": d, "u": u, "b": b, "t": "x y"}),
        )
}

fn column() -> impl Strategy<Value = ColumnKey> {
    let missing = |value: SortValue| {
        prop_oneof![Just(Missing::First), Just(Missing::Last), Just(Missing::Value(value))]
    };
    let numbers = prop::sample::select(vec![
        SortMode::Min,
        SortMode::Max,
        SortMode::Sum,
        SortMode::Avg,
        SortMode::Median,
    ]);
    let words = prop::sample::select(vec![SortMode::Min, SortMode::Max]);
    let key = |path: &'static str, kind, (mode, missing)| ColumnKey {
        path: path.to_owned(),
        kind,
        mode,
        missing,
        nested: Vec::new(),
    };
    prop_oneof![
        (words, missing(SortValue::Text("bc".into()))).prop_map(move |rest| key(
            "kw",
            ColumnKind::Keyword,
            rest
        )),
        (numbers.clone(), missing(SortValue::Long(2))).prop_map(move |rest| key("n", ColumnKind::Long, rest)),
        (numbers.clone(), missing(SortValue::Double(0.7))).prop_map(move |rest| key(
            "d",
            ColumnKind::Double,
            rest
        )),
        (numbers.clone(), missing(SortValue::Unsigned(7))).prop_map(move |rest| key(
            "u",
            ColumnKind::Unsigned,
            rest
        )),
        (numbers, missing(SortValue::Long(0))).prop_map(move |rest| key("b", ColumnKind::Long, rest)),
    ]
}

fn sort_key() -> impl Strategy<Value = SortKey> {
    let source = prop_oneof![
        6 => column().prop_map(SortSource::Column),
        1 => Just(SortSource::SeqNo),
        1 => Just(SortSource::Score),
    ];
    (source, any::<bool>()).prop_map(|(source, descending)| SortKey { source, descending })
}

/// Random batches of writes and deletions of ids below 30.
fn history() -> impl Strategy<Value = Vec<Vec<(u8, Option<Value>)>>> {
    let write = (0u8..30, proptest::option::weighted(0.9, source()));
    proptest::collection::vec(proptest::collection::vec(write, 1..15), 1..4)
}

fn play(fixture: &mut Fixture, history: &[Vec<(u8, Option<Value>)>]) -> Vec<Doc> {
    let mut live = std::collections::BTreeMap::new();
    let mut seq_no = 0;
    for batch in history {
        let mut docs = Vec::new();
        let mut deleted = Vec::new();
        for (id, source) in batch {
            match source {
                Some(source) => {
                    docs.push((id.to_string(), source.clone()));
                    live.insert(*id, Doc { seq_no, source: source.clone() });
                    seq_no += 1;
                }
                None => deleted.push(*id),
            }
        }
        let borrowed: Vec<(&str, Value)> = docs.iter().map(|(id, s)| (id.as_str(), s.clone())).collect();
        fixture.batch(&borrowed);
        for id in deleted {
            live.remove(&id);
            fixture.delete(&id.to_string());
        }
    }
    live.into_values().collect()
}

/// Values of a field, as numbers that fit exactly in 128 bits or a double.
fn values(doc: &Doc, path: &str) -> Vec<Value> {
    match &doc.source[path] {
        Value::Array(values) => values.clone(),
        Value::Null => Vec::new(),
        Value::Bool(value) => vec![json!(i64::from(*value))],
        other => vec![other.clone()],
    }
}

fn whole(value: &Value) -> i128 {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).unwrap()
}

fn naive(doc: &Doc, key: &SortKey) -> SortValue {
    let column = match &key.source {
        SortSource::Score => return SortValue::Double(1.0),
        SortSource::SeqNo => return SortValue::Long(doc.seq_no as i64),
        SortSource::Column(column) => column,
        SortSource::Script(_) | SortSource::Distance(..) => {
            panic!("neither scripts nor points are among the keys")
        }
    };
    let first = (column.missing == Missing::First) != key.descending;
    let values = values(doc, &column.path);
    if values.is_empty() {
        return match (&column.missing, column.kind) {
            (Missing::Value(value), _) => value.clone(),
            (_, ColumnKind::Keyword) => SortValue::Null,
            (_, ColumnKind::Double) => {
                SortValue::Double(if first { -f64::from_bits(0x7FFF_FFFF_FFFF_FFFF) } else { f64::NAN })
            }
            (_, ColumnKind::Unsigned) => SortValue::Unsigned(if first { 0 } else { u64::MAX }),
            _ => SortValue::Long(if first { i64::MIN } else { i64::MAX }),
        };
    }
    let count = values.len() as i128;
    match column.kind {
        ColumnKind::Keyword => {
            let mut words: Vec<&str> = values.iter().map(|v| v.as_str().unwrap()).collect();
            words.sort_unstable();
            let word = if column.mode == SortMode::Max { words[words.len() - 1] } else { words[0] };
            SortValue::Text(word.into())
        }
        ColumnKind::Double => {
            let mut numbers: Vec<f64> = values.iter().map(|v| v.as_f64().unwrap()).collect();
            numbers.sort_by(f64::total_cmp);
            let middle = numbers.len() / 2;
            SortValue::Double(match column.mode {
                SortMode::Min => numbers[0],
                SortMode::Max => numbers[numbers.len() - 1],
                SortMode::Sum => numbers.iter().sum(),
                SortMode::Avg => numbers.iter().sum::<f64>() / count as f64,
                SortMode::Median if count % 2 == 0 => (numbers[middle - 1] + numbers[middle]) / 2.0,
                SortMode::Median => numbers[middle],
            })
        }
        kind => {
            let mut numbers: Vec<i128> = values.iter().map(whole).collect();
            numbers.sort_unstable();
            let middle = numbers.len() / 2;
            let half_up = |sum: i128, by: i128| (2 * sum + by).div_euclid(2 * by);
            let number = match column.mode {
                SortMode::Min => numbers[0],
                SortMode::Max => numbers[numbers.len() - 1],
                SortMode::Sum => numbers.iter().sum(),
                SortMode::Avg => half_up(numbers.iter().sum(), count),
                SortMode::Median if count % 2 == 0 => half_up(numbers[middle - 1] + numbers[middle], 2),
                SortMode::Median => numbers[middle],
            };
            match kind {
                ColumnKind::Unsigned => SortValue::Unsigned(number.clamp(0, i128::from(u64::MAX)) as u64),
                _ => SortValue::Long(number.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64),
            }
        }
    }
}

/// Order of two values by the specification, independent of the code under test.
fn naive_order(key: &SortKey, a: &SortValue, b: &SortValue) -> Ordering {
    let ascending = match (a, b) {
        (SortValue::Long(a), SortValue::Long(b)) => a.cmp(b),
        (SortValue::Unsigned(a), SortValue::Unsigned(b)) => a.cmp(b),
        (SortValue::Double(a), SortValue::Double(b)) => a.total_cmp(b),
        (SortValue::Text(a), SortValue::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (SortValue::Null, SortValue::Null) => return Ordering::Equal,
        (null, _) => {
            let SortSource::Column(column) = &key.source else { panic!("only columns have nulls") };
            let null_is_less = column.missing == Missing::First;
            let is_null = matches!(null, SortValue::Null);
            return if is_null == null_is_less { Ordering::Less } else { Ordering::Greater };
        }
    };
    if key.descending { ascending.reverse() } else { ascending }
}

fn expected(live: &[Doc], keys: &[SortKey]) -> Vec<u64> {
    let mut docs: Vec<&Doc> = live.iter().collect();
    docs.sort_by(|a, b| {
        keys.iter()
            .map(|key| naive_order(key, &naive(a, key), &naive(b, key)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
            .then(a.seq_no.cmp(&b.seq_no))
    });
    docs.iter().map(|doc| doc.seq_no).collect()
}

fn found(fixture: &Fixture, sorted: &SortedSearch, size: usize) -> (Vec<u64>, Option<After>, u64) {
    let options = SearchOptions { size, ..SearchOptions::default() };
    let docs = fixture.snapshot().search_sorted(&Query::match_all(), sorted, &options).unwrap();
    let after =
        docs.hits.last().map(|hit| After { values: hit.values.to_vec(), ties: Ties::After(hit.seq_no) });
    (docs.hits.iter().map(|hit| hit.seq_no).collect(), after, docs.total)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hits_come_as_a_full_sort_puts_them_page_by_page(
        history in history(),
        keys in proptest::collection::vec(sort_key(), 1..5),
        size in 1usize..9,
    ) {
        let mut fixture = fixture();
        let live = play(&mut fixture, &history);
        let wanted = expected(&live, &keys);
        let sorted = SortedSearch { keys, ..SortedSearch::default() };
        let (all, _, total) = found(&fixture, &sorted, 100);
        prop_assert_eq!(&all, &wanted);
        prop_assert_eq!(total, live.len() as u64);
        let mut paged = Vec::new();
        let mut page = sorted;
        loop {
            let (hits, after, total) = found(&fixture, &page, size);
            prop_assert_eq!(total, live.len() as u64);
            if hits.is_empty() {
                break;
            }
            paged.extend(hits);
            page.after = after;
        }
        prop_assert_eq!(paged, wanted);
    }

    #[test]
    fn a_group_is_shown_by_its_first_hit(
        history in history(),
        keys in proptest::collection::vec(sort_key(), 1..3),
        size in 1usize..9,
    ) {
        let mut fixture = fixture();
        let live = play(&mut fixture, &history);
        let mut seen = BTreeSet::new();
        let mut wanted = expected(&live, &keys);
        wanted.retain(|seq_no| {
            let doc = live.iter().find(|doc| doc.seq_no == *seq_no).unwrap();
            seen.insert(doc.source["one"].to_string())
        });
        wanted.truncate(size);
        let collapse = Some(ColumnKey {
            path: "one".to_owned(),
            kind: ColumnKind::Keyword,
            mode: SortMode::Min,
            missing: Missing::Last, nested: Vec::new() });
        let sorted = SortedSearch { keys, collapse, ..SortedSearch::default() };
        let (hits, _, total) = found(&fixture, &sorted, size);
        prop_assert_eq!(hits, wanted);
        prop_assert_eq!(total, live.len() as u64);
    }

    #[test]
    fn slices_are_a_partition(history in history(), max in 2u32..5) {
        let mut fixture = fixture();
        let live = play(&mut fixture, &history);
        let keys = vec![SortKey { source: SortSource::SeqNo, descending: false }];
        let mut all = Vec::new();
        for id in 0..max {
            let slice = Some(Slice { id, max, column: None });
            let (hits, _, total) =
                found(&fixture, &SortedSearch { keys: keys.clone(), slice, ..Default::default() }, 100);
            prop_assert_eq!(total, hits.len() as u64);
            all.extend(hits);
        }
        all.sort_unstable();
        prop_assert_eq!(all, expected(&live, &keys));
    }
}

#[test]
fn scores_are_those_of_the_query_where_it_matches() {
    let mut fixture = fixture();
    fixture.batch(&[("1", json!({"n": 1})), ("2", json!({"n": 2}))]).batch(&[("3", json!({"n": 3}))]);
    let snapshot = fixture.snapshot();
    let range = RangeQuery { field: "n".into(), gte: Some(json!(2)), ..RangeQuery::default() };
    let query = Query::from(QueryKind::Range(range)).with_boost(3.0);
    let all = snapshot.search(&Query::match_all(), &SearchOptions::default()).unwrap();
    let addrs: Vec<_> = all.hits.iter().rev().map(|hit| hit.addr).collect();
    assert_eq!(snapshot.score_docs(&query, &addrs).unwrap(), [Some(3.0), Some(3.0), None]);
}

#[test]
fn a_search_ends_early_only_when_something_is_left() {
    let mut fixture = fixture();
    fixture.batch(&[("1", json!({"n": 1})), ("2", json!({"n": 2}))]).batch(&[("3", json!({"n": 3}))]);
    let keys = vec![SortKey { source: SortSource::SeqNo, descending: false }];
    for (limit, total, early) in [(1, 1, true), (2, 2, true), (3, 3, false), (9, 3, false)] {
        let sorted =
            SortedSearch { keys: keys.clone(), terminate_after: Some(limit), ..SortedSearch::default() };
        let docs = fixture
            .snapshot()
            .search_sorted(&Query::match_all(), &sorted, &SearchOptions::default())
            .unwrap();
        assert_eq!((docs.total, docs.terminated_early), (total, early), "{limit}");
    }
}

#[test]
fn several_values_cannot_be_collapsed() {
    let mut fixture = fixture();
    fixture.batch(&[("1", json!({"kw": ["a", "b"]}))]);
    let collapse = Some(ColumnKey {
        path: "kw".to_owned(),
        kind: ColumnKind::Keyword,
        mode: SortMode::Min,
        missing: Missing::Last,
        nested: Vec::new(),
    });
    let sorted = SortedSearch { collapse, ..SortedSearch::default() };
    let error = fixture
        .snapshot()
        .search_sorted(&Query::match_all(), &sorted, &SearchOptions::default())
        .unwrap_err();
    assert_eq!(error.reason(), "failed to extract doc:0, the grouping field must be single valued");
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "it reports figures")]
fn how_long_a_sort_takes() {
    let mut fixture = fixture();
    let docs: Vec<(String, Value)> = (0..200_000u64)
        .map(|n| {
            let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            (n.to_string(), json!({"n": n, "d": mixed, "one": format!("k{}", mixed % 50_000)}))
        })
        .collect();
    let borrowed: Vec<(&str, Value)> = docs.iter().map(|(id, s)| (id.as_str(), s.clone())).collect();
    fixture.batch(&borrowed);
    for (path, kind) in [("n", ColumnKind::Long), ("d", ColumnKind::Double), ("one", ColumnKind::Keyword)] {
        for descending in [false, true] {
            let column = ColumnKey {
                path: path.into(),
                kind,
                mode: SortMode::Min,
                missing: Missing::Last,
                nested: Vec::new(),
            };
            let keys = vec![SortKey { source: SortSource::Column(column), descending }];
            let sorted = SortedSearch { keys, ..SortedSearch::default() };
            let start = std::time::Instant::now();
            found(&fixture, &sorted, 10);
            println!("{path} descending {descending}: {:?}", start.elapsed());
        }
    }
}
