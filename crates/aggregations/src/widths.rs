//! `variable_width_histogram`: buckets of numbers that are near to each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde_json::{Map, Value};
use sparrow_runtime::work;

use super::ast::{Aggregation, VariableWidths};
use super::error::AggregationError;
use super::key::Key;
use super::partial::{Bucket, merge_all};
use super::write_values::number;

/// Neighbouring values that are one bucket.
struct Run {
    min: f64,
    max: f64,
    /// Mean of the values, by their numbers of documents.
    center: f64,
    docs: f64,
    /// Place of the run after it among all, and of the one before it.
    next: usize,
    before: usize,
    /// How often it has grown; `None` if it is part of another.
    grown: Option<u32>,
}

const NONE: usize = usize::MAX;

impl VariableWidths {
    /// Joins the buckets of single values: those whose centers are nearest to each other first, the lower ones of equally near,
    /// until no more are left than asked for. Keys are the smallest value, the center, and the largest value.
    ///
    /// # Errors
    /// When there is no memory for them, or the request must stop.
    pub fn arrange(
        &self,
        aggregation: &Aggregation,
        mut list: Vec<(Key, Bucket)>,
    ) -> Result<Vec<(Key, Bucket)>, AggregationError> {
        list.sort_by(|a, b| a.0.cmp(&b.0));
        work::room_for(list.len() * (size_of::<Run>() + size_of::<Pair>()))?;
        let mut runs: Vec<Run> = Vec::with_capacity(list.len());
        for (place, (key, bucket)) in list.iter().enumerate() {
            let value = key.number();
            runs.push(Run {
                min: value,
                max: value,
                center: value,
                docs: bucket.docs as f64,
                next: if place + 1 < list.len() { place + 1 } else { NONE },
                before: place.checked_sub(1).unwrap_or(NONE),
                grown: Some(0),
            });
        }
        let mut nearest = BinaryHeap::with_capacity(list.len());
        for place in 1..runs.len() {
            nearest.extend(pair(&runs, place - 1, place));
        }
        let mut left = runs.len();
        while left > self.buckets.max(1) {
            work::check()?;
            let Some(Reverse((_, first, second, grown, also))) = nearest.pop() else { break };
            // A pair that has grown since, or is no more.
            if runs[first].grown != Some(grown)
                || runs[second].grown != Some(also)
                || runs[first].next != second
            {
                continue;
            }
            let docs = runs[first].docs + runs[second].docs;
            let center =
                (runs[first].center * runs[first].docs + runs[second].center * runs[second].docs) / docs;
            let (max, next) = (runs[second].max, runs[second].next);
            runs[second].grown = None;
            let run = &mut runs[first];
            (run.max, run.next, run.center, run.docs, run.grown) = (max, next, center, docs, Some(grown + 1));
            let before = run.before;
            if next != NONE {
                runs[next].before = first;
                nearest.extend(pair(&runs, first, next));
            }
            if before != NONE {
                nearest.extend(pair(&runs, before, first));
            }
            left -= 1;
        }
        let mut arranged: Vec<(Key, Vec<Bucket>)> = Vec::with_capacity(left);
        for (run, (_, bucket)) in runs.iter().zip(list) {
            work::check()?;
            if run.grown.is_some() {
                let key = [run.min, run.center, run.max].map(Key::double);
                arranged.push((Key::Tuple(key.into()), Vec::new()));
            }
            if let Some((_, buckets)) = arranged.last_mut() {
                buckets.push(bucket);
            }
        }
        let merged = arranged.into_iter().map(|(key, buckets)| Ok((key, merge_all(aggregation, buckets)?)));
        merged.collect()
    }
}

/// Two neighbours: the bits of their distance, their places, and how often each has grown. The nearest come first from a heap.
type Pair = Reverse<(u64, usize, usize, u32, u32)>;

/// Two neighbours by how far their centers are from each other.
fn pair(runs: &[Run], first: usize, second: usize) -> Option<Pair> {
    let distance = (runs[second].center - runs[first].center).max(0.0);
    Some(Reverse((distance.to_bits(), first, second, runs[first].grown?, runs[second].grown?)))
}

/// Writes the ends and the center of a bucket.
pub fn write_key(key: &Key, head: &mut Map<String, Value>) {
    let Key::Tuple(parts) = key else { return };
    for (name, part) in ["min", "key", "max"].into_iter().zip(parts) {
        head.insert(name.to_owned(), number(part.number()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::VariableWidths;
    use crate::ast::{Aggregation, AggregationKind, ValueSource};
    use crate::key::Key;
    use crate::partial::Bucket;

    /// The buckets found the slow way: all distances are looked at for each step.
    fn naive(values: &[(f64, u64)], buckets: usize) -> Vec<(f64, f64, f64, u64)> {
        let mut runs: Vec<(f64, f64, f64, u64)> =
            values.iter().map(|&(value, docs)| (value, value, value, docs)).collect();
        while runs.len() > buckets {
            let distance = |place: &usize| runs[place + 1].1 - runs[*place].1;
            let place = (0..runs.len() - 1).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
            let second = runs.remove(place + 1);
            let first = &mut runs[place];
            let docs = first.3 + second.3;
            first.1 = (first.1 * first.3 as f64 + second.1 * second.3 as f64) / docs as f64;
            (first.2, first.3) = (second.2, docs);
        }
        runs
    }

    proptest! {
        #[test]
        fn the_nearest_are_joined_first(
            values in prop::collection::btree_map(-60i32..60, 1u64..5, 0..40),
            buckets in 1usize..12,
        ) {
            let values: Vec<(f64, u64)> =
                values.into_iter().map(|(value, docs)| (f64::from(value) / 4.0, docs)).collect();
            let asked = VariableWidths { source: ValueSource::default(), buckets };
            let aggregation = Aggregation {
                name: String::new(),
                id: 0,
                kind: AggregationKind::VariableWidths(asked.clone()),
                subs: Vec::new(),
                meta: None,
            };
            let list = values.iter().rev().map(|&(value, docs)| (Key::double(value), Bucket { docs, subs: Vec::new() }));
            let found = asked.arrange(&aggregation, list.collect()).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|(key, bucket)| {
                    let Key::Tuple(parts) = key else { panic!("{key:?}") };
                    (parts[0].number(), parts[1].number(), parts[2].number(), bucket.docs)
                })
                .collect();
            prop_assert_eq!(found, naive(&values, buckets));
        }
    }
}
