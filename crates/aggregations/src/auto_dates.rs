//! `auto_date_histogram`: buckets of dates whose interval is chosen so that there are at most as many as asked for.

use serde_json::{Map, Value};
use sparrow_runtime::work;

use super::ast::{Aggregation, AutoDates};
use super::error::AggregationError;
use super::key::Key;
use super::partial::{Bucket, merge_all};
use super::rounding::{CalendarUnit, Interval, Rounding};
use super::slots::room_to_grow;

/// A unit of intervals, its letter, and how many of it an interval may have.
const LEVELS: [(CalendarUnit, &str, &[usize]); 6] = [
    (CalendarUnit::Second, "s", &[1, 5, 10, 30]),
    (CalendarUnit::Minute, "m", &[1, 5, 10, 30]),
    (CalendarUnit::Hour, "h", &[1, 3, 12]),
    (CalendarUnit::Day, "d", &[1, 7]),
    (CalendarUnit::Month, "M", &[1, 3]),
    (CalendarUnit::Year, "y", &[1, 5, 10, 20, 50, 100]),
];

/// Largest number of units in an interval, years apart: so many times fewer buckets may be asked for than a search may have.
pub const MOST_UNITS: usize = 30;

impl AutoDates {
    /// Number of the unit whose name this is, for `least`.
    pub fn level(unit: &str) -> Option<usize> {
        ["second", "minute", "hour", "day", "month", "year"].iter().position(|name| *name == unit)
    }

    /// How dates are rounded to units of a level.
    pub fn rounding(&self, level: usize) -> Rounding {
        Rounding { interval: Interval::Calendar(LEVELS[level].0), zone: self.zone.clone(), offset: 0 }
    }

    /// The first level, from `least` on, of which few enough units lie between two dates. Of a part of the range it is the same or a
    /// finer one, so that parts of the documents can be collected at levels of their own.
    ///
    /// # Errors
    /// If the request must stop.
    fn level_of(&self, least: usize, first: i64, last: i64) -> Result<usize, AggregationError> {
        for level in least..LEVELS.len() - 1 {
            work::check()?;
            if units_fit(&self.rounding(level), first, last, most_units(level, self.buckets)) {
                return Ok(level);
            }
        }
        Ok(LEVELS.len() - 1)
    }

    /// Brings buckets of several levels, by their [`code`], to that of all of them, fills gaps, and joins neighbours while there are
    /// too many. The number that goes with them says which interval they have, for [`write_interval`].
    ///
    /// # Errors
    /// If there are more than `most` buckets, or the request must stop.
    pub fn arrange(
        &self,
        aggregation: &Aggregation,
        list: Vec<(Key, Bucket)>,
        most: usize,
    ) -> Result<(Vec<(Key, Bucket)>, u64), AggregationError> {
        let mut dates: Vec<(i64, Bucket)> = Vec::with_capacity(list.len());
        let mut least = self.least;
        for (key, bucket) in list {
            let Key::Long(code) = key else { continue };
            least = least.max(code as usize % 8);
            dates.push(((code >> 3).saturating_mul(1_000), bucket));
        }
        dates.sort_by_key(|(date, _)| *date);
        let (Some(&(first, _)), Some(&(last, _))) = (dates.first(), dates.last()) else {
            return Ok((Vec::new(), number_of(self.least, 1)));
        };
        let level = self.level_of(least, first, last)?;
        let rounding = self.rounding(level);
        let mut starts: Vec<(i64, Vec<Bucket>)> = vec![(rounding.round(first), Vec::new())];
        for (date, bucket) in dates {
            let start = rounding.round(date);
            while let Some(&(at, _)) = starts.last()
                && at < start
            {
                work::check()?;
                if starts.len() > most_units(level, most) {
                    return Err(AggregationError::TooManyBuckets { limit: most });
                }
                starts.push((rounding.next(at).max(at + 1), Vec::new()));
            }
            if let Some((_, buckets)) = starts.last_mut() {
                buckets.push(bucket);
            }
        }
        let fits = |units: &usize| starts.len().div_ceil(*units) <= self.buckets;
        let units = LEVELS[level].2.iter().copied().find(fits).unwrap_or(1);
        let mut joined = Vec::with_capacity(starts.len().div_ceil(units));
        let mut starts = starts.into_iter();
        while let Some((start, mut buckets)) = starts.next() {
            work::check()?;
            buckets.extend(starts.by_ref().take(units - 1).flat_map(|(_, buckets)| buckets));
            joined.push((Key::Long(start), merge_all(aggregation, buckets)?));
        }
        Ok((joined, number_of(level, units)))
    }
}

/// The largest number of units of a level that so many buckets can have.
fn most_units(level: usize, buckets: usize) -> usize {
    buckets.saturating_mul(LEVELS[level].2.last().copied().unwrap_or(1))
}

/// The number of a bucket while documents are collected: the second that it starts with, and its level.
pub fn code(start: i64, level: usize) -> i64 {
    start.div_euclid(1_000) << 3 | level as i64
}

/// Whether at most so many intervals lie between two dates, those of the dates included.
fn units_fit(rounding: &Rounding, first: i64, last: i64, most: usize) -> bool {
    let (mut at, last) = (rounding.round(first), rounding.round(last));
    let length = i128::from(last) - i128::from(at);
    let (shortest, limit) = (i128::from(rounding.shortest().max(1)), most as i128);
    // Where clocks change, a unit is a little shorter; none is a third longer than its shortest for long.
    if length * 10 / (shortest * 9) < limit {
        return true;
    }
    if length * 3 / (shortest * 4) > limit {
        return false;
    }
    let mut count = 1;
    while at < last && count <= most {
        let next = rounding.next(at);
        if next <= at {
            break;
        }
        at = next;
        count += 1;
    }
    count <= most
}

fn number_of(level: usize, units: usize) -> u64 {
    (level * 256 + units) as u64
}

/// The `interval` of an answer, such as `7d`.
pub fn write_interval(number: u64, out: &mut Map<String, Value>) {
    let (level, units) = (number as usize / 256, number % 256);
    let letter = LEVELS.get(level).map_or("", |(_, letter, _)| letter);
    out.insert("interval".to_owned(), format!("{units}{letter}").into());
}

/// Documents that wait until it is known which dates their buckets have, each with the number of its bucket.
#[derive(Default)]
pub struct Waiting {
    docs: Vec<u32>,
    parents: Vec<u32>,
}

impl Waiting {
    /// Keeps documents.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn keep(&mut self, docs: &[u32], parents: &[u32]) -> Result<(), AggregationError> {
        room_to_grow(self.docs.len(), docs.len(), self.docs.capacity(), size_of::<(u32, u32)>())?;
        self.docs.extend_from_slice(docs);
        self.parents.extend_from_slice(parents);
        Ok(())
    }

    /// The documents of each level that a bucket above has. `ends` sees documents with their buckets, and widens the first and last
    /// date of each bucket.
    ///
    /// # Errors
    /// When there is no memory for their lists, or the request must stop.
    pub fn by_level(
        self,
        asked: &AutoDates,
        parents: usize,
        ends: impl FnOnce(&[u32], &[u32], &mut [(i64, i64)]) -> Result<(), AggregationError>,
    ) -> Result<Vec<(usize, Self)>, AggregationError> {
        work::room_for(parents * size_of::<(i64, i64, usize)>())?;
        let mut range = vec![(i64::MAX, i64::MIN); parents];
        ends(&self.docs, &self.parents, &mut range)?;
        let mut levels = Vec::with_capacity(parents);
        for (first, last) in range {
            levels.push(if first > last {
                LEVELS.len()
            } else {
                asked.level_of(asked.least, first, last)?
            });
        }
        let mut found: Vec<usize> = levels.iter().copied().filter(|level| *level < LEVELS.len()).collect();
        found.sort_unstable();
        found.dedup();
        if let [only] = found[..] {
            return Ok(vec![(only, self)]);
        }
        work::room_for(2 * self.docs.len() * size_of::<(u32, u32)>())?;
        let mut parts = Vec::with_capacity(found.len());
        for level in found {
            work::check()?;
            let pairs = self.docs.iter().zip(&self.parents);
            let (docs, parents) = pairs.filter(|(_, parent)| levels[**parent as usize] == level).unzip();
            parts.push((level, Self { docs, parents }));
        }
        Ok(parts)
    }

    /// The documents and their buckets.
    pub fn lists(&self) -> (&[u32], &[u32]) {
        (&self.docs, &self.parents)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sparrow_wire::Zone;

    use super::{AutoDates, LEVELS, code, units_fit};
    use crate::ast::{Aggregation, AggregationKind, ValueSource};
    use crate::key::Key;
    use crate::partial::Bucket;

    fn asked(buckets: usize) -> (AutoDates, Aggregation) {
        let zone = Zone::parse("Europe/Berlin").unwrap();
        let asked = AutoDates { source: ValueSource::default(), buckets, least: 0, zone };
        let kind = AggregationKind::AutoDates(asked.clone());
        (asked, Aggregation { name: String::new(), id: 0, kind, subs: Vec::new(), meta: None })
    }

    proptest! {
        /// Whether dates come one by one or in parts, each collected at its own level, the buckets are the same, and have all of them.
        #[test]
        fn parts_at_levels_of_their_own_come_to_the_same(
            mut parts in prop::collection::vec(
                prop::collection::vec((0i64..1_700_000_000, 0u32..31), 1..9), 1..5),
            buckets in 1usize..15,
        ) {
            // Ranges from seconds to decades.
            for part in &mut parts {
                let shift = part[0].1;
                part.iter_mut().for_each(|(second, _)| *second = 1_600_000_000 + (*second >> shift));
            }
            let (asked, aggregation) = asked(buckets);
            let bucket = || Bucket { docs: 1, subs: Vec::new() };
            let mut whole = Vec::new();
            let mut split = Vec::new();
            let mut dates = Vec::new();
            for part in &parts {
                let of: Vec<i64> = part.iter().map(|(second, _)| second * 1_000).collect();
                let level = asked.level_of(0, *of.iter().min().unwrap(), *of.iter().max().unwrap()).unwrap();
                let rounding = asked.rounding(level);
                split.extend(of.iter().map(|date| (Key::Long(code(rounding.round(*date), level)), bucket())));
                whole.extend(of.iter().map(|date| (Key::Long(code(*date, 0)), bucket())));
                dates.extend(of);
            }
            let found = asked.arrange(&aggregation, whole, 65_536).unwrap();
            let of_parts = asked.arrange(&aggregation, split, 65_536).unwrap();
            let shown = |(list, number): &(Vec<(Key, Bucket)>, u64)| {
                (list.iter().map(|(key, bucket)| (key.clone(), bucket.docs)).collect::<Vec<_>>(), *number)
            };
            prop_assert_eq!(shown(&found), shown(&of_parts));
            let (level, units) = (found.1 as usize / 256, found.1 as usize % 256);
            prop_assert!(LEVELS[level].2.contains(&units));
            prop_assert!(found.0.len() <= buckets);
            // Each bucket has the dates from its start to that of the next one.
            for (place, (key, bucket)) in found.0.iter().enumerate() {
                let start = key.number() as i64;
                let end = found.0.get(place + 1).map_or(i64::MAX, |(key, _)| key.number() as i64);
                let inside = dates.iter().filter(|date| (start..end).contains(*date)).count();
                prop_assert_eq!(bucket.docs, inside as u64);
            }
        }

        /// `units_fit` estimates, and counts only where that does not tell: it agrees with counting every unit, also where clocks change.
        #[test]
        fn units_are_counted(
            first in 0i64..2_000_000_000,
            units in 0i64..400,
            percent in 90i64..140,
            level in 0usize..6,
            most in 1usize..300,
        ) {
            let rounding = asked(1).0.rounding(level);
            let first = first * 1_000;
            // Ranges that have about `units` of them, of which some are longer than the shortest.
            let last = first + units * (rounding.shortest() / 100) * percent;
            let starts = std::iter::successors(Some(rounding.round(first)), |at| Some(rounding.next(*at)));
            let count = starts.take_while(|at| *at <= last).take(most + 1).count();
            prop_assert_eq!(units_fit(&rounding, first, last, most), count <= most);
        }
    }
}
