//! Checks of the benchmark's results against those computed directly from the generated rows.

use std::collections::BTreeMap;

use serde_json::Value;

/// Upper bound, exclusive, of `n` in the documents that the benchmark's selective query matches.
pub const SOME: u64 = 300;

/// A generated document.
pub struct Row {
    pub tag: u64,
    pub user: u64,
    pub price: f64,
    pub n: u64,
    pub at: i64,
}

const DAY: i64 = 86_400_000;

/// Checks the result of a benchmark case against counts over the rows.
pub fn check(case: &str, answer: &Value, rows: &[&Row]) -> Result<(), String> {
    let tag = |row: &Row| format!("tag{}", row.tag);
    let mean = |rows: &[&Row]| rows.iter().map(|row| row.price).sum::<f64>() / rows.len() as f64;
    match case {
        "terms" | "terms > avg" => {
            let groups = top(group(rows, tag));
            counts(answer, groups.iter().map(|(key, rows)| (Value::from(key.clone()), rows.len())))?;
            for (bucket, (_, rows)) in buckets(answer)?.iter().zip(&groups) {
                if case == "terms > avg" {
                    near(&bucket["a1"]["value"], mean(rows), 1e-9)?;
                }
            }
            Ok(())
        }
        "terms, all distinct" => {
            let groups = top(group(rows, |row| format!("user{}", row.user)));
            counts(answer, groups.into_iter().map(|(key, rows)| (key.into(), rows.len())))
        }
        "histogram" => {
            let groups = group(rows, |row| (row.price / 50.0).floor() as i64);
            counts(answer, groups.into_iter().map(|(key, rows)| ((key as f64 * 50.0).into(), rows.len())))
        }
        "date_histogram > terms > avg" => {
            let days = group(rows, |row| row.at.div_euclid(DAY));
            counts(answer, days.iter().map(|(day, rows)| ((day * DAY).into(), rows.len())))?;
            // Days without documents have buckets too.
            let filled = buckets(answer)?.iter().filter(|bucket| bucket["doc_count"] != 0);
            for (bucket, rows) in filled.zip(days.values()) {
                let groups = top(group(rows, tag));
                let counted = groups.iter().map(|(key, rows)| (Value::from(key.clone()), rows.len()));
                counts(&bucket["a1"], counted)?;
                for (bucket, (_, rows)) in buckets(&bucket["a1"])?.iter().zip(&groups) {
                    near(&bucket["a2"]["value"], mean(rows), 1e-9)?;
                }
            }
            Ok(())
        }
        "stats" => {
            near(&answer["count"], rows.len() as f64, 0.0)?;
            near(&answer["avg"], mean(rows), 1e-9)?;
            near(&answer["min"], rows.iter().map(|row| row.price).fold(f64::MAX, f64::min), 0.0)?;
            near(&answer["max"], rows.iter().map(|row| row.price).fold(0.0, f64::max), 0.0)
        }
        "cardinality" => near(&answer["value"], group(rows, |row| row.user).len() as f64, 0.05),
        "percentiles" => {
            for point in ["50.0", "95.0", "99.0"] {
                let value = answer["values"][point].as_f64().ok_or("no such percentile")?;
                let below = rows.iter().filter(|row| row.price <= value).count() as f64 / rows.len() as f64;
                let wanted: f64 = point.parse().map_err(|_| "no number")?;
                // A hundred rows' worth in small runs.
                if (below - wanted / 100.0).abs() > 0.01 + 1.0 / rows.len() as f64 {
                    return Err(format!("{point} is {value}, above which are {}", 1.0 - below));
                }
            }
            Ok(())
        }
        "range" => {
            let of = |from: f64, to: f64| rows.iter().filter(|row| (from..to).contains(&row.price)).count();
            let expected = [of(f64::MIN, 100.0), of(100.0, 500.0), of(500.0, f64::MAX)];
            let found: Vec<u64> = buckets(answer)?.iter().filter_map(|b| b["doc_count"].as_u64()).collect();
            same(&found, &expected.map(|count| count as u64).to_vec())
        }
        "composite" => {
            let groups = group(rows, |row| (tag(row), row.n));
            let expected: Vec<(Value, Value, u64)> = groups
                .into_iter()
                .take(100)
                .map(|((tag, n), rows)| (tag.into(), n.into(), rows.len() as u64))
                .collect();
            let of = |bucket: &Value| {
                let count = bucket["doc_count"].as_u64().unwrap_or(0);
                (bucket["key"]["t"].clone(), bucket["key"]["n"].clone(), count)
            };
            same(&buckets(answer)?.iter().map(of).collect(), &expected)
        }
        _ => Err("nothing says what it should be".to_owned()),
    }
}

fn group<'r, K: Ord>(rows: &[&'r Row], key: impl Fn(&Row) -> K) -> BTreeMap<K, Vec<&'r Row>> {
    let mut groups: BTreeMap<K, Vec<&'r Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    groups
}

/// The ten largest groups, equal ones by key.
fn top(groups: BTreeMap<String, Vec<&Row>>) -> Vec<(String, Vec<&Row>)> {
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
    groups.truncate(10);
    groups
}

fn buckets(answer: &Value) -> Result<&Vec<Value>, String> {
    answer["buckets"].as_array().ok_or_else(|| format!("no buckets in {answer}"))
}

/// Checks the keys and document counts of all non-empty buckets.
fn counts(answer: &Value, expected: impl Iterator<Item = (Value, usize)>) -> Result<(), String> {
    let of = |bucket: &Value| (bucket["key"].clone(), bucket["doc_count"].as_u64().unwrap_or(0));
    let found: Vec<(Value, u64)> = buckets(answer)?.iter().map(of).filter(|(_, count)| *count > 0).collect();
    same(&found, &expected.map(|(key, count)| (key, count as u64)).collect())
}

fn same<T: PartialEq + std::fmt::Debug>(found: &Vec<T>, expected: &Vec<T>) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{found:?} instead of {expected:?}")),
    }
}

fn near(found: &Value, expected: f64, share: f64) -> Result<(), String> {
    match found.as_f64() {
        Some(found) if (found - expected).abs() <= expected.abs() * share => Ok(()),
        _ => Err(format!("{found} instead of {expected}")),
    }
}
