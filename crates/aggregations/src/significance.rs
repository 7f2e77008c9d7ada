//! `significant_terms` and `significant_text`: the values that are more frequent in the documents of a bucket than in the background,
//! which is the index or a part of it.
//!
//! The background is counted when all that is in the foreground is known, in whichever segment or index it was found. It has the
//! documents that the search could see: nothing of those that the filter of an alias or of a key hides.

use rustc_hash::{FxHashMap, FxHashSet};
use sparrow_runtime::work;

use super::Collected;
use super::ast::{Aggregation, AggregationKind, Heuristic, Significant};
use super::bind::{Bound, Scope};
use super::collect::{each_block, live_words};
use super::error::AggregationError;
use super::key::Key;
use super::partial::{Bucket, Partial};
use super::values::{MOST_CODES, Scratch, dedup_codes};

/// Numbers of documents: those of a bucket and of the background, with a value and altogether.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Documents of the bucket that have the value.
    pub found: u64,
    /// Documents of the bucket.
    pub bucket: u64,
    /// Documents of the background that have the value.
    pub spread: u64,
    /// Documents of the background.
    pub background: u64,
}

/// The four numbers of documents that a value and a bucket divide the documents into: with and without the value (`n1`, `n0`), in
/// and out of the bucket (`1`, `0`).
struct Table {
    n00: f64,
    n01: f64,
    n10: f64,
    n11: f64,
}

impl Table {
    fn new(counts: Counts, superset: bool) -> Result<Self, AggregationError> {
        let Counts { found, bucket, spread, background } = counts;
        let refused = |what: &str| {
            Err(AggregationError::IllegalArgument(format!(
                "{what}, does your background filter not include all documents in the bucket? If so and it is \
                 intentional, set \"background_is_superset\": false"
            )))
        };
        if superset && found > spread {
            return refused("subsetFreq > supersetFreq");
        }
        if superset && bucket > background {
            return refused("subsetSize > supersetSize");
        }
        if superset && spread - found > background - bucket {
            return refused("supersetFreq - subsetFreq > supersetSize - subsetSize");
        }
        let outside = |all: u64, inside: u64| (if superset { all - inside } else { all }) as f64;
        let n10 = outside(spread, found);
        let n_0 = outside(background, bucket);
        Ok(Self { n00: n_0 - n10, n01: (bucket - found) as f64, n10, n11: found as f64 })
    }

    /// Whether the value is rarer in the bucket than outside of it.
    fn is_negative(&self) -> bool {
        self.n11 / (self.n01 + self.n11) < self.n10 / (self.n00 + self.n10)
    }

    /// Documents without the value, with it, out of the bucket, in it, and all.
    fn margins(&self) -> (f64, f64, f64, f64, f64) {
        let Self { n00, n01, n10, n11 } = *self;
        (n00 + n01, n10 + n11, n00 + n10, n01 + n11, n00 + n01 + n10 + n11)
    }
}

impl Heuristic {
    /// How significant a value with these counts is; what is not positive is not significant.
    ///
    /// # Errors
    /// If the background is said to have all documents of the bucket, and has not.
    pub fn score(self, counts: Counts) -> Result<f64, AggregationError> {
        let share = |part: u64, all: u64| part as f64 / all as f64;
        Ok(match self {
            Heuristic::Jlh => {
                if counts.bucket == 0 || counts.background == 0 {
                    return Ok(0.0);
                }
                let inside = share(counts.found, counts.bucket);
                // A background that is no superset may lack the value.
                let outside = share(counts.spread.max(1), counts.background);
                (inside - outside).max(0.0) * (inside / outside)
            }
            Heuristic::Percentage if counts.spread == 0 => 0.0,
            Heuristic::Percentage => share(counts.found, counts.spread),
            Heuristic::MutualInformation { negatives, superset } => {
                let table = Table::new(counts, superset)?;
                let (n0, n1, n_0, n_1, n) = table.margins();
                let term = |both: f64, value: f64, bucket: f64| match both == 0.0 {
                    true => 0.0,
                    false => both / n * (n * both / (value * bucket)).ln(),
                };
                let sum = term(table.n00, n0, n_0)
                    + term(table.n01, n0, n_1)
                    + term(table.n10, n1, n_0)
                    + term(table.n11, n1, n_1);
                match sum.is_nan() || !negatives && table.is_negative() {
                    true => f64::NEG_INFINITY,
                    false => sum / std::f64::consts::LN_2,
                }
            }
            Heuristic::ChiSquare { negatives, superset } => {
                let table = Table::new(counts, superset)?;
                let (n0, n1, n_0, n_1, n) = table.margins();
                match !negatives && table.is_negative() {
                    true => f64::NEG_INFINITY,
                    false => {
                        n * (table.n11 * table.n00 - table.n01 * table.n10).powi(2) / (n_1 * n1 * n0 * n_0)
                    }
                }
            }
            Heuristic::Gnd { superset } => {
                let table = Table::new(counts, superset)?;
                let (_, value, _, bucket, n) = table.margins();
                if table.n11 == 0.0 {
                    return Ok(0.0);
                }
                if value == bucket && value == table.n11 {
                    return Ok(1.0);
                }
                let (most, least) = (value.max(bucket).ln(), value.min(bucket).ln());
                (-(most - table.n11.ln()) / (n.ln() - least)).exp()
            }
        })
    }
}

/// Number of documents in the background of an aggregation, and of those that have each value of the foreground.
#[derive(Default)]
pub struct Background {
    pub docs: u64,
    pub counts: FxHashMap<Key, u64>,
}

impl Background {
    /// The counts of a value that so many documents of a bucket have.
    pub fn counts(&self, key: &Key, found: u64, bucket: u64) -> Counts {
        let spread = self.counts.get(key).copied().unwrap_or(0);
        Counts { found, bucket, spread, background: self.docs }
    }
}

/// Counts the backgrounds of an aggregation and of those below it, for the values that were found.
pub fn count_backgrounds(
    aggregation: &Aggregation,
    result: &Partial,
    collected: &[Collected],
    into: &mut FxHashMap<usize, Background>,
) -> Result<(), AggregationError> {
    let mut wanted = FxHashMap::default();
    gather(aggregation, result, false, &mut wanted)?;
    for (id, (asked, keys)) in wanted {
        let mut background = Background::default();
        for index in collected {
            if let Some(scope) = index.bound.scopes.get(&id) {
                background.add(asked, &keys, scope, &index.bound, id)?;
            }
        }
        into.insert(id, background);
    }
    Ok(())
}

type Wanted<'a> = FxHashMap<usize, (&'a Significant, FxHashSet<&'a Key>)>;

/// Collects the values that may be in the answer. In buckets that are joined later (`is_joined`) that is every value: it may have more
/// documents then than it has in any of them.
fn gather<'a>(
    aggregation: &'a Aggregation,
    result: &'a Partial,
    is_joined: bool,
    wanted: &mut Wanted<'a>,
) -> Result<(), AggregationError> {
    let list: &[(Key, Bucket)] = if let Partial::Buckets(list) = result { list } else { &[] };
    if let AggregationKind::Significant(asked) = &aggregation.kind {
        let least = if is_joined { 0 } else { asked.min_doc_count };
        let (_, keys) = wanted.entry(aggregation.id).or_insert_with(|| (asked, FxHashSet::default()));
        for (key, bucket) in list {
            work::check()?;
            if bucket.docs >= least {
                keys.insert(key);
            }
        }
    }
    let is_joined = is_joined
        || matches!(aggregation.kind, AggregationKind::AutoDates(_) | AggregationKind::VariableWidths(_));
    for (place, sub) in aggregation.subs.iter().enumerate().filter(|(_, sub)| sub.has_background()) {
        if list.is_empty() {
            gather(sub, &Partial::Nothing, is_joined, wanted)?;
        }
        for (_, bucket) in list {
            work::check()?;
            gather(sub, bucket.subs.get(place).unwrap_or(&Partial::Nothing), is_joined, wanted)?;
        }
    }
    Ok(())
}

impl Background {
    fn add(
        &mut self,
        asked: &Significant,
        keys: &FxHashSet<&Key>,
        scope: &Scope,
        bound: &Bound,
        id: usize,
    ) -> Result<(), AggregationError> {
        let Scope { snapshot, within } = scope;
        for (ord, reader) in (0_u32..).zip(snapshot.searcher().segment_readers()) {
            let only =
                within.as_ref().map(|sets| sets.get(ord as usize).map_or(&[] as &[u64], Vec::as_slice));
            let words =
                (0..).zip(live_words(snapshot.segment(ord), reader.max_doc())).map(|(place, live)| {
                    live & only.map_or(u64::MAX, |only| only.get(place).copied().unwrap_or(0))
                });
            if asked.text.is_some() {
                self.docs += words.map(|word| u64::from(word.count_ones())).sum::<u64>();
                continue;
            }
            let values = bound.field_of(id)?.open(reader)?;
            let mut codes: FxHashMap<u64, (&Key, u64)> = FxHashMap::default();
            for &key in keys {
                work::check()?;
                if let Some(code) = values.code(key)? {
                    codes.insert(code, (key, 0));
                }
            }
            let (mut scratch, mut found) = (Scratch::default(), Vec::new());
            each_block(words, |mut docs| {
                self.docs += docs.len() as u64;
                while !codes.is_empty() && !docs.is_empty() {
                    work::check()?;
                    let piece = values.fitting(docs, MOST_CODES);
                    values.codes(&docs[..piece], &mut scratch, &mut found);
                    dedup_codes(&mut found, piece);
                    for (_, code) in &found {
                        if let Some((_, count)) = codes.get_mut(code) {
                            *count += 1;
                        }
                    }
                    docs = &docs[piece..];
                }
                Ok(())
            })?;
            for (key, count) in codes.into_values() {
                *self.counts.entry(key.clone()).or_default() += count;
            }
        }
        if asked.text.is_some() {
            let path = snapshot.mapping().concrete(&asked.source.field);
            for &key in keys {
                work::check()?;
                let Key::Text(word) = key else { continue };
                let count = snapshot.visible_doc_freq(&path, word, within.as_deref())?;
                *self.counts.entry(key.clone()).or_default() += count;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Heuristic};

    /// Ten documents in the bucket of a hundred; a value that 5 of them and 10 of all have.
    const COUNTS: Counts = Counts { found: 5, bucket: 10, spread: 10, background: 100 };

    fn near(heuristic: Heuristic, counts: Counts, expected: f64) {
        let score = heuristic.score(counts).unwrap();
        assert!((score - expected).abs() < 1e-12, "{heuristic:?}: {score} is not {expected}");
    }

    #[test]
    fn values_are_as_significant_as_their_formulas_say() {
        near(Heuristic::Jlh, COUNTS, 0.4 * 5.0);
        near(Heuristic::Percentage, COUNTS, 0.5);
        // (n11 n00 - n01 n10)² n / (n_1 n1_ n0_ n_0)
        let chi = Heuristic::ChiSquare { negatives: false, superset: true };
        near(chi, COUNTS, (5.0 * 85.0 - 5.0 * 5.0_f64).powi(2) * 100.0 / (10.0 * 10.0 * 90.0 * 90.0));
        let both: f64 = [(85.0, 90.0, 90.0), (5.0, 90.0, 10.0), (5.0, 10.0, 90.0), (5.0, 10.0, 10.0_f64)]
            .iter()
            .map(|(n, value, bucket)| n / 100.0 * (100.0 * n / (value * bucket)).log2())
            .sum();
        near(Heuristic::MutualInformation { negatives: false, superset: true }, COUNTS, both);
        let distance = (10.0_f64.ln() - 5.0_f64.ln()) / (100.0_f64.ln() - 10.0_f64.ln());
        near(Heuristic::Gnd { superset: true }, COUNTS, (-distance).exp());
        // Everything with the value is in the bucket, and everything in the bucket has it.
        near(Heuristic::Gnd { superset: true }, Counts { found: 10, ..COUNTS }, 1.0);
    }

    #[test]
    fn what_is_rarer_in_the_bucket_counts_only_on_request() {
        let rare = Counts { found: 1, bucket: 10, spread: 60, background: 100 };
        assert_eq!(Heuristic::Jlh.score(rare).unwrap(), 0.0);
        for negatives in [false, true] {
            let chi = Heuristic::ChiSquare { negatives, superset: true }.score(rare).unwrap();
            let mutual = Heuristic::MutualInformation { negatives, superset: true }.score(rare).unwrap();
            assert_eq!((chi > 0.0, mutual > 0.0), (negatives, negatives));
        }
    }

    #[test]
    fn a_background_without_the_bucket_has_to_be_said_to_be_one() {
        let apart = Counts { found: 5, bucket: 10, spread: 2, background: 100 };
        for (superset, is_refused) in [(true, true), (false, false)] {
            let scores = [
                Heuristic::ChiSquare { negatives: false, superset },
                Heuristic::MutualInformation { negatives: false, superset },
                Heuristic::Gnd { superset },
            ]
            .map(|heuristic| heuristic.score(apart));
            assert!(scores.iter().all(|score| score.is_err() == is_refused), "{scores:?}");
        }
        // n11 5, n01 5, n10 2, n00 98
        let chi = Heuristic::ChiSquare { negatives: false, superset: false };
        near(chi, apart, 110.0 * (5.0 * 98.0 - 5.0 * 2.0_f64).powi(2) / (10.0 * 7.0 * 103.0 * 100.0));
        near(Heuristic::Jlh, Counts { spread: 0, ..apart }, 0.49 * 50.0);
    }
}
