//! Minimal intervals of a document: no interval in a list contains another one, so that starts and ends both
//! ascend.

use sparrow_query::{IntervalsOrder, IntervalsRelation};

use crate::stoppable::stops_after;

/// Intervals that are gathered before those that contain another one are looked for.
const MOST_UNSORTED: usize = 4096;

/// A stretch of word positions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// First position.
    pub start: u32,
    /// Last position.
    pub end: u32,
    /// Number of positions inside that none of its parts covers.
    pub gaps: u32,
    /// Number of positions that it covers itself, where it is a part of another interval.
    pub covered: u32,
}

impl Interval {
    /// An interval that covers all of its positions where it is a part of another one.
    pub fn new(start: u32, end: u32, gaps: u32) -> Self {
        Self { start, end, gaps, covered: end - start + 1 }
    }
}

/// Removes intervals that contain another one. Of several equal ones the first is kept.
pub fn minimal(mut list: Vec<Interval>) -> Vec<Interval> {
    list.sort_by_key(|interval| (interval.start, std::cmp::Reverse(interval.end), interval.gaps));
    let mut kept: Vec<Interval> = Vec::with_capacity(list.len());
    // Back to front: what ends no earlier than one that starts no earlier holds it.
    for interval in list.into_iter().rev() {
        match kept.last_mut() {
            Some(last) if last.start == interval.start && last.end == interval.end => *last = interval,
            Some(last) if interval.end >= last.end => {}
            _ => kept.push(interval),
        }
    }
    kept.reverse();
    kept
}

/// The minimal intervals of any of several lists; none if the request must stop.
pub fn any_of(lists: impl Iterator<Item = Vec<Interval>>) -> Vec<Interval> {
    let (mut all, mut several, mut known) = (Vec::new(), false, 0);
    for list in lists {
        if stops_after(list.len() + 1) {
            return Vec::new();
        }
        if list.is_empty() {
            continue;
        }
        if all.is_empty() {
            all = list;
            continue;
        }
        several = true;
        all.extend(list);
        // Lists that say the same are not all kept.
        if all.len() > 2 * known + MOST_UNSORTED {
            all = minimal(all);
            known = all.len();
        }
    }
    if several { minimal(all) } else { all }
}

/// The shortest stretches that contain an interval of each list; not all of them if the request must stop.
pub fn all_of(lists: &[Vec<Interval>], order: IntervalsOrder) -> Vec<Interval> {
    if lists.iter().any(Vec::is_empty) || lists.is_empty() {
        return Vec::new();
    }
    let intervals = match lists {
        [alone] => alone.clone(),
        _ if order.ordered => in_order(lists),
        _ => in_any_order(lists),
    };
    let mut intervals = minimal(intervals);
    if let Some(most) = order.max_gaps {
        intervals.retain(|interval| interval.gaps <= most);
    }
    intervals
}

/// The shortest stretches that contain `times` intervals of a list; none if the request must stop. As in Lucene, such a stretch covers
/// what its parts cover.
pub fn repeated(list: &[Interval], times: usize) -> Vec<Interval> {
    if stops_after(list.len() + times) {
        return Vec::new();
    }
    // Starts and ends ascend, so that the gaps of a stretch are those beside each other.
    let of = |window: &[Interval]| {
        let (start, end) = (window[0].start, window[window.len() - 1].end);
        let between = |pair: &[Interval]| (pair[1].start).saturating_sub(pair[0].end + 1);
        let gaps = window.windows(2).map(between).sum();
        Interval { covered: end - start + 1 - gaps, ..Interval::new(start, end, gaps) }
    };
    list.windows(times.max(1)).map(of).collect()
}

fn in_order(lists: &[Vec<Interval>]) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let mut places = vec![0; lists.len()];
    for first in &lists[0] {
        if stops_after(lists.len()) {
            break;
        }
        let (mut end, mut covered) = (first.end, first.covered);
        for (list, place) in lists.iter().zip(&mut places).skip(1) {
            // Ends ascend with the starts, so that places only move on.
            while list.get(*place).is_some_and(|next| next.start <= end) {
                *place += 1;
            }
            let Some(next) = list.get(*place) else { return intervals };
            end = next.end;
            covered += next.covered;
        }
        intervals.push(Interval::new(first.start, end, end - first.start + 1 - covered));
    }
    intervals
}

fn in_any_order(lists: &[Vec<Interval>]) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let mut places = vec![0; lists.len()];
    while !stops_after(lists.len()) {
        let current = lists.iter().zip(&places).map(|(list, &place)| list[place]);
        let (mut start, mut end, mut covered, mut least) = (u32::MAX, 0, 0, 0);
        for (number, interval) in current.enumerate() {
            // Of intervals with the same start the shorter one has to move.
            if interval.start < start {
                (start, least) = (interval.start, number);
            }
            end = end.max(interval.end);
            covered += interval.covered;
        }
        intervals.push(Interval::new(start, end, (end - start + 1).saturating_sub(covered)));
        places[least] += 1;
        if places[least] == lists[least].len() {
            break;
        }
    }
    intervals
}

/// The intervals of a list that stand in the given relation to the intervals of another list.
pub fn related(mut list: Vec<Interval>, relation: IntervalsRelation, others: &[Interval]) -> Vec<Interval> {
    // The first that starts no earlier, and the last that starts no later.
    let from = |at: u32| others.get(others.partition_point(|other| other.start < at));
    let upto =
        |at: u32| others.partition_point(|other| other.start <= at).checked_sub(1).map(|place| others[place]);
    let holds = |interval: &Interval| from(interval.start).is_some_and(|other| other.end <= interval.end);
    let inside = |interval: &Interval| upto(interval.start).is_some_and(|other| other.end >= interval.end);
    let overlaps = |interval: &Interval| upto(interval.end).is_some_and(|other| other.end >= interval.start);
    list.retain(|interval| match relation {
        IntervalsRelation::Before => others.last().is_some_and(|other| interval.end < other.start),
        IntervalsRelation::After => others.first().is_some_and(|other| other.end < interval.start),
        IntervalsRelation::Containing => holds(interval),
        IntervalsRelation::NotContaining => !holds(interval),
        IntervalsRelation::ContainedBy => inside(interval),
        IntervalsRelation::NotContainedBy => !inside(interval),
        IntervalsRelation::Overlapping => overlaps(interval),
        IntervalsRelation::NotOverlapping => !overlaps(interval),
    });
    list
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LENGTH: u32 = 12;

    fn list() -> impl Strategy<Value = Vec<Interval>> {
        proptest::collection::vec((0..LENGTH, 0u32..3), 0..6).prop_map(|intervals| {
            minimal(
                intervals.into_iter().map(|(start, more)| Interval::new(start, start + more, 0)).collect(),
            )
        })
    }

    fn ends(list: &[Interval]) -> Vec<(u32, u32)> {
        list.iter().map(|interval| (interval.start, interval.end)).collect()
    }

    /// All choices of one interval from each list, as (start, end), without those that contain another one.
    fn naive(lists: &[Vec<Interval>], ordered: bool) -> Vec<(u32, u32)> {
        let mut choices: Vec<Vec<Interval>> = vec![Vec::new()];
        for list in lists {
            choices = choices
                .iter()
                .flat_map(|choice| list.iter().map(|interval| [&choice[..], &[*interval]].concat()))
                .collect();
        }
        choices.retain(|choice| !ordered || choice.windows(2).all(|pair| pair[0].end < pair[1].start));
        let mut all: Vec<(u32, u32)> = choices
            .iter()
            .filter_map(|choice| {
                let start = choice.iter().map(|interval| interval.start).min()?;
                Some((start, choice.iter().map(|interval| interval.end).max()?))
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        let holds = |a: &(u32, u32), b: &(u32, u32)| a != b && a.0 <= b.0 && a.1 >= b.1;
        let kept: Vec<_> =
            all.iter().filter(|one| !all.iter().any(|other| holds(one, other))).copied().collect();
        kept
    }

    proptest! {
        #[test]
        fn combinations_are_what_trying_all_gives(lists in proptest::collection::vec(list(), 1..4), ordered: bool) {
            let found = all_of(&lists, IntervalsOrder { max_gaps: None, ordered });
            prop_assert_eq!(ends(&found), naive(&lists, ordered));
        }

        #[test]
        fn repetitions_are_what_trying_all_gives(list in list(), times in 1usize..4) {
            let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
            for _ in 0..times {
                let more = |choice: &Vec<usize>| {
                    let from = choice.last().map_or(0, |last| last + 1);
                    (from..list.len()).map(|next| [&choice[..], &[next]].concat()).collect::<Vec<_>>()
                };
                choices = choices.iter().flat_map(more).collect();
            }
            let stretches = choices.iter().map(|choice| {
                let chosen = || choice.iter().map(|number| list[*number]);
                let start = chosen().map(|one| one.start).min().unwrap();
                Interval::new(start, chosen().map(|one| one.end).max().unwrap(), 0)
            });
            let found = repeated(&list, times);
            prop_assert_eq!(ends(&found), ends(&minimal(stretches.collect())));
            for one in &found {
                let inside = list.iter().filter(|part| one.start <= part.start && part.end <= one.end);
                let covered = (one.start..=one.end)
                    .filter(|place| inside.clone().any(|part| (part.start..=part.end).contains(place)));
                prop_assert_eq!(one.gaps as usize, (one.start..=one.end).count() - covered.count());
            }
        }

        #[test]
        fn relations_are_what_looking_at_all_gives(list in list(), others in list()) {
            let check = |relation, holds: &dyn Fn(&Interval, &Interval) -> bool, wanted: bool| {
                let naive: Vec<Interval> =
                    list.iter().filter(|one| others.iter().any(|other| holds(one, other)) == wanted).copied().collect();
                prop_assert_eq!(related(list.clone(), relation, &others), naive);
                Ok(())
            };
            let contains = |a: &Interval, b: &Interval| a.start <= b.start && b.end <= a.end;
            let inside = |a: &Interval, b: &Interval| contains(b, a);
            let overlaps = |a: &Interval, b: &Interval| a.start <= b.end && b.start <= a.end;
            check(IntervalsRelation::Containing, &contains, true)?;
            check(IntervalsRelation::NotContaining, &contains, false)?;
            check(IntervalsRelation::ContainedBy, &inside, true)?;
            check(IntervalsRelation::NotContainedBy, &inside, false)?;
            check(IntervalsRelation::Overlapping, &overlaps, true)?;
            check(IntervalsRelation::NotOverlapping, &overlaps, false)?;
            check(IntervalsRelation::Before, &|a, b| a.end < b.start, true)?;
            check(IntervalsRelation::After, &|a, b| b.end < a.start, true)?;
        }
    }
}
