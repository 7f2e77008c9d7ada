//! A naive evaluator, which computes the expected results directly from the documents.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Doc;
use sparrow_mapping::date::format_millis;

/// Function that gives the values by which a document is grouped.
type Values<'a, K> = &'a dyn Fn(&Doc) -> Vec<K>;

fn groups<'a, K: Ord + Clone>(docs: &[&'a Doc], keys: Values<'_, K>) -> BTreeMap<K, Vec<&'a Doc>> {
    let mut groups: BTreeMap<K, Vec<&Doc>> = BTreeMap::new();
    for &doc in docs {
        for key in keys(doc).into_iter().collect::<BTreeSet<K>>() {
            groups.entry(key).or_default().push(doc);
        }
    }
    groups
}

fn fraction(doc: &Doc) -> Vec<f64> {
    doc.fraction.iter().map(|&fraction| f64::from(fraction) / 4.0).collect()
}

fn numbers(doc: &Doc) -> Vec<f64> {
    doc.numbers.iter().map(|&number| f64::from(number)).collect()
}

fn tags(doc: &Doc) -> Vec<String> {
    doc.tags.iter().map(|tag| format!("t{tag}")).collect()
}

fn stats(docs: &[&Doc], values: &dyn Fn(&Doc) -> Vec<f64>) -> Value {
    let all: Vec<f64> = docs.iter().flat_map(|doc| values(doc)).collect();
    if all.is_empty() {
        return json!({"count": 0, "min": null, "max": null, "avg": null, "sum": 0.0});
    }
    let sum: f64 = all.iter().sum();
    json!({
        "count": all.len(),
        "min": all.iter().copied().fold(f64::INFINITY, f64::min),
        "max": all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "avg": sum / all.len() as f64,
        "sum": sum,
    })
}

/// The three largest groups, and the number of documents in all other groups.
fn largest<K: Ord + Clone>(groups: BTreeMap<K, Vec<&Doc>>) -> (Vec<(K, Vec<&Doc>)>, usize) {
    let mut list: Vec<_> = groups.into_iter().collect();
    list.sort_by_key(|(_, docs)| std::cmp::Reverse(docs.len()));
    let other = list.iter().skip(3).map(|(_, docs)| docs.len()).sum();
    list.truncate(3);
    (list, other)
}

/// Checks results against those computed from the matching documents `docs` and from all live documents `all`.
pub fn check(found: &Map<String, Value>, docs: &[&Doc], all: &[&Doc]) -> Result<(), TestCaseError> {
    let tags_or_none = |doc: &Doc| if doc.tags.is_empty() { vec!["none".to_owned()] } else { tags(doc) };
    let (list, other) = largest(groups(docs, &tags_or_none));
    prop_assert_eq!(&found["tags"]["sum_other_doc_count"], &json!(other));
    prop_assert_eq!(found["tags"]["buckets"].as_array().map(Vec::len), Some(list.len()));
    for (place, (key, docs)) in list.iter().enumerate() {
        let bucket = &found["tags"]["buckets"][place];
        prop_assert_eq!(
            (&bucket["key"], &bucket["doc_count"], &bucket["s"]),
            (&json!(key), &json!(docs.len()), &stats(docs, &fraction))
        );
        let values: BTreeSet<i64> = docs.iter().flat_map(|doc| &doc.numbers).map(|&n| interval(n)).collect();
        let shown = bucket["h"]["buckets"].as_array().map_or(0, Vec::len) as i64;
        let expected = match (values.first(), values.last()) {
            (Some(first), Some(last)) => (last - first) / 3 + 1,
            _ => 0,
        };
        prop_assert_eq!(shown, expected);
    }

    let (list, _) = largest(groups(docs, &|doc| doc.numbers.clone()));
    let expected: Vec<(i8, usize)> = list.iter().map(|(key, docs)| (*key, docs.len())).collect();
    let shown: Vec<(i8, usize)> = found["numbers"]["buckets"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|bucket| {
            (bucket["key"].as_i64().unwrap_or(99) as i8, bucket["doc_count"].as_u64().unwrap_or(0) as usize)
        })
        .collect();
    prop_assert_eq!(shown, expected);

    let inside = |from: f64, to: f64| -> Vec<&Doc> {
        docs.iter().copied().filter(|doc| numbers(doc).iter().any(|&n| n >= from && n < to)).collect()
    };
    for (place, (key, from, to)) in
        [("*-0.0", f64::NEG_INFINITY, 0.0), ("-2.0-3.0", -2.0, 3.0), ("3.0-*", 3.0, f64::INFINITY)]
            .iter()
            .enumerate()
    {
        let bucket = &found["ranges"]["buckets"][place];
        prop_assert_eq!(
            (&bucket["key"], &bucket["doc_count"]),
            (&json!(key), &json!(inside(*from, *to).len()))
        );
    }

    let by_interval = groups(docs, &|doc| doc.numbers.iter().map(|&n| interval(n)).collect());
    let mut sum = 0.0;
    for bucket in found["histogram"]["buckets"].as_array().into_iter().flatten() {
        let key = bucket["key"].as_f64().unwrap_or(f64::NAN) as i64;
        let docs = by_interval.get(&key).cloned().unwrap_or_default();
        prop_assert_eq!((&bucket["doc_count"], &bucket["s"]), (&json!(docs.len()), &stats(&docs, &fraction)));
        sum += docs.iter().flat_map(|doc| fraction(doc)).sum::<f64>();
        prop_assert_eq!(&bucket["sum"]["value"], &json!(sum));
    }

    // Months of a clock that is an hour ahead: no document is within an hour of midnight but at it.
    let by_month = groups(docs, &|doc| {
        let day = |&day: &u16| format_millis(i64::from(day) * 86_400_000 + 3_600_000)[..7].to_owned();
        doc.day.iter().map(day).collect()
    });
    for bucket in found["dates"]["buckets"].as_array().into_iter().flatten() {
        let at = bucket["key"].as_i64().unwrap_or(0);
        let month = format_millis(at + 3_600_000)[..7].to_owned();
        prop_assert_eq!(&bucket["doc_count"], &json!(by_month.get(&month).map_or(0, Vec::len)), "{}", month);
    }

    composite(found, docs)?;
    let distinct: BTreeSet<String> = docs.iter().flat_map(|doc| tags(doc)).collect();
    prop_assert_eq!(&found["distinct"]["value"], &json!(distinct.len()));
    let count: usize = docs.iter().map(|doc| doc.tags.len()).sum();
    prop_assert_eq!(&found["count"]["value"], &json!(count));
    let without: Vec<&Doc> = docs.iter().copied().filter(|doc| doc.fraction.is_none()).collect();
    prop_assert_eq!(&found["missing"], &json!({"doc_count": without.len(), "s": stats(&without, &numbers)}));
    prop_assert_eq!(&found["global"], &json!({"doc_count": all.len(), "s": stats(all, &numbers)}));
    let positive: Vec<&Doc> =
        docs.iter().copied().filter(|doc| doc.numbers.iter().any(|&n| n >= 1)).collect();
    prop_assert_eq!(
        &found["filter"],
        &json!({"doc_count": positive.len(), "s": stats(&positive, &fraction)})
    );
    let other = &found["filters"]["buckets"]["other"];
    prop_assert_eq!(&other["doc_count"], &json!(0));

    let mut values: Vec<f64> = docs.iter().flat_map(|doc| fraction(doc)).collect();
    values.sort_by(f64::total_cmp);
    if let (Some(first), Some(last)) = (values.first(), values.last()) {
        prop_assert_eq!(&found["percentiles"]["values"]["0.0"], &json!(first));
        let median = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        prop_assert_eq!(&found["percentiles"]["values"]["50.0"], &json!(median));
        prop_assert!(found["percentiles"]["values"]["99.0"].as_f64().is_some_and(|value| value <= *last));
    } else {
        prop_assert_eq!(&found["percentiles"]["values"]["50.0"], &Value::Null);
    }
    let mut best: Vec<i8> = docs.iter().filter_map(|doc| doc.numbers.iter().max()).copied().collect();
    best.sort_by_key(|&n| std::cmp::Reverse(n));
    let shown = found["top"]["hits"]["sort"][0][0].as_i64();
    prop_assert_eq!(shown, best.first().map(|&n| i64::from(n)));
    Ok(())
}

/// Start of the interval of width 3 and offset 1 that contains `n`.
fn interval(n: i8) -> i64 {
    (i64::from(n) - 1).div_euclid(3) * 3 + 1
}

fn composite(found: &Map<String, Value>, docs: &[&Doc]) -> Result<(), TestCaseError> {
    // Downwards by tag, no tag last; then upwards, no flag first.
    type Tuple = (std::cmp::Reverse<Option<String>>, i64, Option<bool>);
    let tuples = groups(docs, &|doc| {
        let mut tuples: Vec<Tuple> = Vec::new();
        let own: Vec<Option<String>> =
            if doc.tags.is_empty() { vec![None] } else { tags(doc).into_iter().map(Some).collect() };
        for tag in own {
            for n in &doc.numbers {
                tuples.push((std::cmp::Reverse(tag.clone()), i64::from(*n).div_euclid(3) * 3, doc.flag));
            }
        }
        tuples
    });
    let json_of = |(tag, n, flag): &Tuple| json!({"tag": tag.0, "n": *n as f64, "b": flag});
    let first: Vec<Value> = tuples
        .iter()
        .take(4)
        .map(|(key, docs)| json!({"key": json_of(key), "doc_count": docs.len(), "s": stats(docs, &fraction)}))
        .collect();
    prop_assert_eq!(found["page"]["buckets"].as_array(), Some(&first));
    let after = |tag: &str, n, flag| (std::cmp::Reverse(Some(tag.to_owned())), n, flag);
    for (name, after) in [("next", after("t2", -3, None)), ("between", after("t15", 0, Some(false)))] {
        let next: Vec<Value> = tuples
            .iter()
            .filter(|(key, _)| **key > after)
            .take(4)
            .map(|(key, docs)| json!({"key": json_of(key), "doc_count": docs.len()}))
            .collect();
        prop_assert_eq!(found[name]["buckets"].as_array(), Some(&next));
    }
    Ok(())
}
