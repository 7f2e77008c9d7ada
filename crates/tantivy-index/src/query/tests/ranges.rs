//! Tests of ranges that differ each time, on columns that are scanned at first and sorted later, against a
//! check of every value.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use crate::{FilterCache, IndexOptions};
use sparrow_query::{BoolQuery, ExistsQuery, Query, QueryKind, RangeQuery, TermsQuery};

/// A field's value in the type in which it is compared.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Number {
    Whole(i128),
    Float(f64),
    Flag(bool),
}

impl Number {
    fn json(self) -> Value {
        match self {
            Number::Whole(value) => match i64::try_from(value) {
                Ok(value) => json!(value),
                Err(_) => json!(value as u64),
            },
            Number::Float(value) => json!(value),
            Number::Flag(value) => json!(value),
        }
    }
}

/// A field type, with values for documents and for the bounds of ranges.
fn field() -> impl Strategy<Value = (&'static str, Vec<Number>)> {
    let long = [i64::MIN, i64::MIN + 1, -3, -2, -1, 0, 1, 2, 1000, 2000, i64::MAX - 1, i64::MAX];
    let near = 0..6_i64;
    let unsigned = [0, 1, 2, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX];
    let double = [f64::MIN, -1e300, -2.0, -0.5, -0.0, 0.0, 5e-324, 0.5, 1.0, 2.0, 1e300, f64::MAX];
    let dates = [-1, 0, 1_700_000_000_000_i64, 1_700_000_000_001, 1_700_086_400_000];
    let whole = |values: Vec<i64>| values.into_iter().map(|value| Number::Whole(value.into())).collect();
    prop_oneof![
        Just(("long", whole(long.to_vec()))),
        Just(("integer", whole(near.collect()))),
        Just(("long", whole(vec![7]))),
        Just((
            "unsigned_long",
            unsigned.into_iter().map(|value| Number::Whole(value.into())).collect::<Vec<_>>()
        )),
        Just(("double", double.into_iter().map(Number::Float).collect())),
        // A column of whole numbers in some segments.
        Just(("double", [-1.0, -0.0, 0.0, 1.0, 2.0, 2.5].into_iter().map(Number::Float).collect())),
        Just(("date", whole(dates.to_vec()))),
        Just(("boolean", vec![Number::Flag(false), Number::Flag(true)])),
    ]
}

/// Selects the values of a document, as indices into the field's values.
fn places() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop_oneof![
        1 => Just(Vec::new()),
        6 => proptest::collection::vec(any::<prop::sample::Index>(), 1),
    ]
}

#[derive(Debug, Clone)]
struct Bounds {
    lower: Option<(prop::sample::Index, bool)>,
    upper: Option<(prop::sample::Index, bool)>,
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let bound = || proptest::option::weighted(0.8, (any::<prop::sample::Index>(), any::<bool>()));
    (bound(), bound()).prop_map(|(lower, upper)| Bounds { lower, upper })
}

impl Bounds {
    fn query(&self, values: &[Number]) -> Query {
        let mut range = RangeQuery { field: "n".into(), ..RangeQuery::default() };
        if let Some((place, included)) = &self.lower {
            let bound = Some(place.get(values).json());
            *if *included { &mut range.gte } else { &mut range.gt } = bound;
        }
        if let Some((place, included)) = &self.upper {
            let bound = Some(place.get(values).json());
            *if *included { &mut range.lte } else { &mut range.lt } = bound;
        }
        Query::new(QueryKind::Range(range))
    }

    fn contain(&self, values: &[Number], value: Number) -> bool {
        let above = self.lower.as_ref().is_none_or(|(place, included)| {
            let bound = *place.get(values);
            value > bound || *included && value == bound
        });
        let below = self.upper.as_ref().is_none_or(|(place, included)| {
            let bound = *place.get(values);
            value < bound || *included && value == bound
        });
        above && below
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn ranges_are_what_every_value_says(
        (name, values) in field(),
        segments in proptest::collection::vec(proptest::collection::vec(places(), 8..40), 1..4),
        several in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
        deleted in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        asked in proptest::collection::vec(bounds(), 12..30),
    ) {
        let mut fixture = Fixture::new(json!({"n": {"type": name}}));
        let mut docs: Vec<(String, Vec<Number>)> = Vec::new();
        for segment in &segments {
            let start = docs.len();
            for places in segment {
                let numbers = places.iter().map(|place| *place.get(&values)).collect();
                docs.push((format!("d{}", docs.len()), numbers));
            }
            if let Some(place) = several {
                let at = start + place.index(segment.len());
                docs[at].1 = vec![values[0], *place.get(&values)];
            }
            let sources: Vec<(&str, Value)> = docs[start..]
                .iter()
                .map(|(id, numbers)| {
                    let numbers: Vec<Value> = numbers.iter().map(|number| number.json()).collect();
                    (id.as_str(), if numbers.is_empty() { json!({}) } else { json!({ "n": numbers }) })
                })
                .collect();
            fixture.batch(&sources);
        }
        for place in deleted {
            if docs.len() > 1 {
                fixture.delete(&docs.remove(place.index(docs.len())).0);
            }
        }
        for bounds in &asked {
            let mut expected: Vec<&str> = docs
                .iter()
                .filter(|(_, numbers)| numbers.iter().any(|number| bounds.contain(&values, *number)))
                .map(|(id, _)| id.as_str())
                .collect();
            expected.sort_unstable();
            let query = bounds.query(&values);
            let filtered = BoolQuery { filter: vec![query.clone()], ..BoolQuery::default() };
            prop_assert_eq!(fixture.snapshot().count(&query).unwrap(), expected.len() as u64, "{:?}", query);
            prop_assert_eq!(fixture.ids(QueryKind::Bool(filtered)), expected.join(" "), "{:?}", query);
            prop_assert_eq!(fixture.ids(query), expected.join(" "));
        }
    }
}

fn range(from: f64) -> Query {
    let gte = Some(json!(from));
    Query::new(QueryKind::Range(RangeQuery { field: "n".into(), gte, ..RangeQuery::default() }))
}

/// An index of documents with the numbers from 0 to 999.
fn numbers(cache: &Arc<FilterCache>) -> Fixture {
    let options = IndexOptions { filter_cache: cache.clone(), ..IndexOptions::default() };
    let mut fixture = Fixture::with_options(json!({"n": {"type": "integer"}}), options);
    let ids: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let docs: Vec<(&str, Value)> =
        ids.iter().zip(0..).map(|(id, n)| (id.as_str(), json!({"n": n}))).collect();
    fixture.batch(&docs);
    fixture
}

#[test]
fn a_column_is_sorted_after_some_scans_and_new_ranges_are_no_longer_kept() {
    let cache = Arc::new(FilterCache::default().sorting_after(2));
    let fixture = numbers(&cache);
    let snapshot = fixture.snapshot();
    let mut bytes = Vec::new();
    for from in 0..20_u32 {
        assert_eq!(snapshot.count(&range(f64::from(from) + 0.5)).unwrap(), 999 - u64::from(from));
        bytes.push(cache.stats().bytes);
    }
    // A bitmap for each, then the order of the column, then nothing.
    assert!(bytes[1] > bytes[0] + 125 && bytes[2] > bytes[1] + 4000, "{bytes:?}");
    assert!(bytes[3..].iter().all(|later| *later == bytes[2]), "{bytes:?}");
    // What comes again is kept after all.
    snapshot.count(&range(19.5)).unwrap();
    assert!(cache.stats().bytes > bytes[2] + 125);
    let hits = cache.stats().hits;
    snapshot.count(&range(19.5)).unwrap();
    assert_eq!(cache.stats().hits, hits + 1);
    drop((snapshot, fixture));
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_column_that_has_no_room_is_scanned() {
    // A bitmap of a thousand documents fits, their order does not.
    let cache = Arc::new(FilterCache::new(10_000).sorting_after(2));
    let fixture = numbers(&cache);
    for from in 0..60_u32 {
        assert_eq!(fixture.snapshot().count(&range(f64::from(from) + 0.5)).unwrap(), 999 - u64::from(from));
        assert!(cache.stats().bytes <= 10_000);
    }
    assert!(cache.stats().evictions > 0);
}

#[test]
fn an_order_that_was_evicted_is_made_again() {
    let cache = Arc::new(FilterCache::new(30_000).sorting_after(2));
    let fixture = numbers(&cache);
    let snapshot = fixture.snapshot();
    for round in 0..3 {
        for from in 0..8 {
            let from = f64::from(round * 10 + from) + 0.5;
            assert_eq!(snapshot.count(&range(from)).unwrap(), 1000 - from.ceil() as u64);
        }
        let evicted = cache.stats().evictions;
        for prefix in 0..200 {
            let query = Query::new(QueryKind::Exists(ExistsQuery { field: format!("none{prefix}") }));
            let terms = QueryKind::Terms(TermsQuery {
                field: "n".into(),
                values: vec![json!(prefix), json!(round)].into(),
            });
            assert_eq!(snapshot.count(&query).unwrap(), 0);
            snapshot.count(&Query::new(terms)).unwrap();
            assert!(cache.stats().bytes <= 30_000);
        }
        assert!(cache.stats().evictions > evicted);
    }
}
