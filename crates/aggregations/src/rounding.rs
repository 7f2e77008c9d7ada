//! Rounding of dates and numbers to the start of their bucket.

use time::{Date, Month, OffsetDateTime};

use sparrow_wire::Zone;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Calendar units as interval lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarUnit {
    /// Seconds of clock time.
    Second,
    /// Minutes of clock time.
    Minute,
    /// Hours of clock time.
    Hour,
    /// Calendar days, from midnight.
    Day,
    /// Weeks, from Monday.
    Week,
    /// Calendar months, from the first day.
    Month,
    /// Calendar quarters, from January, April, July and October.
    Quarter,
    /// Calendar years, from January 1.
    Year,
}

/// The length of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// A fixed number of milliseconds.
    Fixed(i64),
    /// One calendar unit.
    Calendar(CalendarUnit),
}

/// Division of time into intervals; times are in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounding {
    /// Length of each interval.
    pub interval: Interval,
    /// Time zone in whose local time intervals start.
    pub zone: Zone,
    /// Amount by which interval starts are shifted later, in milliseconds; may be negative.
    pub offset: i64,
}

impl Rounding {
    /// Start of the interval that `at` is in.
    pub fn round(&self, at: i64) -> i64 {
        self.start(at.saturating_sub(self.offset)).saturating_add(self.offset)
    }

    /// Start of the interval after the one that starts at `start`.
    pub fn next(&self, start: i64) -> i64 {
        let start = start.saturating_sub(self.offset);
        let next = match self.length() {
            Some(length) => self.next_by_length(start, length),
            None => {
                // Half of the next one is in it, whatever its length.
                let beyond = match self.interval {
                    Interval::Calendar(CalendarUnit::Week) => 10 * DAY,
                    Interval::Calendar(CalendarUnit::Month) => 45 * DAY,
                    Interval::Calendar(CalendarUnit::Quarter) => 135 * DAY,
                    Interval::Calendar(CalendarUnit::Year) => 548 * DAY,
                    _ => DAY + DAY / 2,
                };
                let local = start.saturating_add(self.zone.offset_at(start));
                self.zone.first_of(self.start_of_local(local.saturating_add(beyond)))
            }
        };
        next.saturating_add(self.offset)
    }

    /// Length in milliseconds of intervals that are not made of whole calendar days; `None` for days and longer
    /// units.
    fn length(&self) -> Option<i64> {
        match self.interval {
            Interval::Fixed(length) => Some(length),
            Interval::Calendar(CalendarUnit::Second) => Some(1_000),
            Interval::Calendar(CalendarUnit::Minute) => Some(60_000),
            Interval::Calendar(CalendarUnit::Hour) => Some(3_600_000),
            Interval::Calendar(_) => None,
        }
    }

    fn start_of_local(&self, local: i64) -> i64 {
        match self.interval {
            Interval::Fixed(length) => multiple(local, length),
            Interval::Calendar(unit) => start_of(unit, local),
        }
    }

    /// Start of the interval that contains `at`, disregarding `offset`.
    fn start(&self, mut at: i64) -> i64 {
        let fixed = matches!(self.interval, Interval::Fixed(_));
        let to_midnight = self.length().is_none();
        loop {
            let range = self.zone.range_at(at);
            let local = self.start_of_local(at.saturating_add(range.offset));
            let start = local.saturating_sub(range.offset);
            if to_midnight {
                // A day after clocks changed, midnight is one moment and was no other.
                return match start.saturating_sub(DAY) >= range.start {
                    true => start,
                    false => self.zone.first_of(local),
                };
            }
            if start >= range.start {
                return start;
            }
            // Clocks changed since: the interval is the one they were in, unless they passed over its start.
            let before = self.zone.offset_at(range.start - 1);
            if fixed && local.saturating_sub(before) >= range.start {
                return range.start;
            }
            at = range.start - 1;
        }
    }

    /// The next time after `start` at which local clocks show a multiple of `length`, in milliseconds.
    fn next_by_length(&self, start: i64, length: i64) -> i64 {
        let mut at = start;
        loop {
            let range = self.zone.range_at(at);
            // Not the start and a length more: the first multiple of all may be before the beginning of time.
            let number = at.saturating_add(range.offset).div_euclid(length).saturating_add(1);
            let next = number.saturating_mul(length).saturating_sub(range.offset);
            if next < range.end || range.end == i64::MAX {
                return next;
            }
            let around = self.start(range.end);
            if around > start {
                return around;
            }
            at = range.end;
        }
    }

    /// Shortest possible length of an interval in milliseconds, disregarding clock changes.
    pub fn shortest(&self) -> i64 {
        match self.interval {
            Interval::Fixed(length) => length,
            Interval::Calendar(unit) => match unit {
                CalendarUnit::Second => 1_000,
                CalendarUnit::Minute => 60_000,
                CalendarUnit::Hour => 3_600_000,
                CalendarUnit::Day => DAY,
                CalendarUnit::Week => 7 * DAY,
                CalendarUnit::Month => 28 * DAY,
                CalendarUnit::Quarter => 90 * DAY,
                CalendarUnit::Year => 365 * DAY,
            },
        }
    }
}

/// The last multiple of `length` up to `local`, or the beginning of time if it is before that.
fn multiple(local: i64, length: i64) -> i64 {
    local.div_euclid(length).saturating_mul(length)
}

fn start_of(unit: CalendarUnit, local: i64) -> i64 {
    match unit {
        CalendarUnit::Second => multiple(local, 1_000),
        CalendarUnit::Minute => multiple(local, 60_000),
        CalendarUnit::Hour => multiple(local, 3_600_000),
        CalendarUnit::Day => multiple(local, DAY),
        // The epoch is a Thursday.
        CalendarUnit::Week => multiple(local.saturating_add(3 * DAY), 7 * DAY).saturating_sub(3 * DAY),
        CalendarUnit::Month => of_month(local, |month| month),
        CalendarUnit::Quarter => of_month(local, |month| (month - 1) / 3 * 3 + 1),
        CalendarUnit::Year => of_month(local, |_| 1),
    }
}

/// Midnight of the first day of the month that `first` maps the date's month (1 to 12) to; local time in
/// milliseconds.
fn of_month(local: i64, first: impl Fn(u8) -> u8) -> i64 {
    let start = || {
        let date = OffsetDateTime::from_unix_timestamp(local.div_euclid(1_000)).ok()?.date();
        let month = Month::try_from(first(u8::from(date.month()))).ok()?;
        let start = Date::from_calendar_date(date.year(), month, 1).ok()?;
        Some(start.midnight().assume_utc().unix_timestamp() * 1_000)
    };
    // Dates that the calendar does not reach are in a bucket of their own.
    start().unwrap_or(local)
}

/// Rounds dates to interval starts. Caches the last interval, as consecutive dates are often close together.
pub struct Rounder {
    rounding: Rounding,
    from: i64,
    to: i64,
}

impl Rounder {
    /// A rounder without a cached interval; each segment needs its own.
    pub fn new(rounding: Rounding) -> Self {
        Self { rounding, from: 0, to: 0 }
    }

    /// Start of the interval that a time is in.
    pub fn round(&mut self, at: i64) -> i64 {
        if at < self.from || at >= self.to {
            self.from = self.rounding.round(at);
            self.to = self.rounding.next(self.from);
        }
        self.from
    }
}

/// Start of the interval that a number is in.
pub fn interval_of(value: f64, interval: f64, offset: f64) -> f64 {
    let start = ((value - offset) / interval).floor() * interval + offset;
    if start == 0.0 { 0.0 } else { start }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CalendarUnit, Interval, Rounding};
    use sparrow_mapping::date::{format_millis, parse_date, parse_formats};
    use sparrow_wire::Zone;

    const UNITS: [CalendarUnit; 8] = [
        CalendarUnit::Second,
        CalendarUnit::Minute,
        CalendarUnit::Hour,
        CalendarUnit::Day,
        CalendarUnit::Week,
        CalendarUnit::Month,
        CalendarUnit::Quarter,
        CalendarUnit::Year,
    ];

    fn at(text: &str) -> i64 {
        parse_date(&parse_formats("strict_date_optional_time").unwrap(), text, false).unwrap()
    }

    #[test]
    fn dates_fall_into_intervals() {
        let check = |interval, zone, offset, text, expected: &str| {
            let rounding = Rounding { interval, zone: Zone::Fixed(zone), offset };
            assert_eq!(format_millis(rounding.round(at(text))), expected, "{rounding:?}");
        };
        let calendar = Interval::Calendar;
        let noon = "2024-05-15T12:34:56.789Z";
        check(calendar(CalendarUnit::Week), 0, 0, noon, "2024-05-13T00:00:00.000Z");
        check(calendar(CalendarUnit::Quarter), 0, 0, noon, "2024-04-01T00:00:00.000Z");
        check(calendar(CalendarUnit::Year), 0, 0, noon, "2024-01-01T00:00:00.000Z");
        check(calendar(CalendarUnit::Minute), 0, 0, noon, "2024-05-15T12:34:00.000Z");
        check(
            calendar(CalendarUnit::Day),
            2 * 3_600_000,
            0,
            "2024-05-15T23:00:00Z",
            "2024-05-15T22:00:00.000Z",
        );
        check(calendar(CalendarUnit::Month), 0, 86_400_000, "2016-01-01", "2015-12-02T00:00:00.000Z");
        check(Interval::Fixed(30 * 86_400_000), 0, 0, "1970-02-01", "1970-01-31T00:00:00.000Z");
        check(Interval::Fixed(10), 0, 0, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.990Z");
    }

    #[test]
    fn intervals_at_both_ends_of_time_are_cut_off_there() {
        let lengths = [1, 1000, 7 * 86_400_000, 1 << 62, i64::MAX].map(Interval::Fixed);
        for interval in lengths.into_iter().chain(UNITS.map(Interval::Calendar)) {
            for offset in [-3_600_000, 0, 3_600_000] {
                for zone in [-3_600_000, 0, 3_600_000] {
                    let rounding = Rounding { interval, zone: Zone::Fixed(zone), offset };
                    for at in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                        let start = rounding.round(at);
                        assert!(start <= at.saturating_add(7_200_000), "{rounding:?}: {start} for {at}");
                        let next = rounding.next(start);
                        // Nothing follows the last interval.
                        assert!(next > start || at > 0 && next == start, "{rounding:?}: {start}, {next}");
                    }
                }
            }
        }
        let halves = Rounding { interval: Interval::Fixed(i64::MAX), zone: Zone::Fixed(0), offset: 0 };
        assert_eq!(halves.round(i64::MIN), i64::MIN);
        assert_eq!(halves.next(i64::MIN), -i64::MAX);
        assert_eq!(halves.next(-i64::MAX), 0);
    }

    proptest! {
        #[test]
        fn intervals_follow_each_other(
            at in -10_000_000_000_000i64..10_000_000_000_000,
            unit in 0usize..8,
            zone in -12i64..12,
            offset in -3i64..3,
        ) {
            let rounding = Rounding {
                interval: Interval::Calendar(UNITS[unit]),
                zone: Zone::Fixed(zone * 3_600_000),
                offset: offset * 3_600_000,
            };
            let start = rounding.round(at);
            let next = rounding.next(start);
            prop_assert!(start <= at && at < next);
            prop_assert_eq!(rounding.round(start), start);
            prop_assert_eq!(rounding.round(next), next);
            prop_assert_eq!(rounding.round(next - 1), start);
            prop_assert!(next - start >= rounding.shortest());
        }

        /// In time zones whose clocks change by an hour, by half an hour, at midnight, or by a whole day: every
        /// moment is in the interval of the nearest start before it, and starts are where the naive rule finds them.
        #[test]
        fn clocks_that_change_move_intervals(
            near in 0usize..8,
            away in -3 * 24 * 60i64..3 * 24 * 60,
            unit in 0usize..8,
            length in prop::option::of(prop::sample::select(vec![15i64, 20, 30, 60, 90, 180, 720, 1440, 2880])),
            offset in -2i64..3,
        ) {
            let (zone, text) = CHANGES[near];
            let interval = match length {
                Some(minutes) => Interval::Fixed(minutes * 60_000),
                None => Interval::Calendar(UNITS[unit]),
            };
            let zone = Zone::parse(zone).unwrap();
            let rounding = Rounding { interval, zone: zone.clone(), offset: offset * 3_600_000 };
            let at = at(text) + away * 60_000 + 1;
            let start = rounding.round(at);
            let next = rounding.next(start);
            prop_assert!(start <= at && at < next, "{start} {at} {next}");
            prop_assert_eq!(rounding.round(start), start);
            prop_assert_eq!(rounding.round(next), next);
            prop_assert_eq!(rounding.round(next - 1), start);
            prop_assert_eq!(start - rounding.offset, naive(&rounding, at - rounding.offset));
        }
    }

    /// Zones and a moment at which their clocks change.
    const CHANGES: [(&str, &str); 8] = [
        ("Europe/Berlin", "2024-03-31T01:00:00Z"),
        ("Europe/Berlin", "2024-10-27T01:00:00Z"),
        ("America/New_York", "2024-11-03T06:00:00Z"),
        ("Australia/Lord_Howe", "2024-10-05T15:30:00Z"),
        ("Australia/Lord_Howe", "2024-04-06T15:00:00Z"),
        ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        ("America/Havana", "2024-11-03T05:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ];

    /// Start of an interval found the slow way: walks back minute by minute to the last moment at which local clocks
    /// show a multiple of the interval, or jump over one. If clocks show midnight twice, days and longer intervals
    /// start with the first; for shorter intervals, a repeated time starts a new one only where it is a multiple.
    fn naive(rounding: &Rounding, at: i64) -> i64 {
        let local = |at: i64| at + rounding.zone.offset_at(at);
        let floor = |at: i64| rounding.start_of_local(local(at));
        let midnight = rounding.length().is_none();
        let fixed = matches!(rounding.interval, Interval::Fixed(_));
        let step = if rounding.interval == Interval::Calendar(CalendarUnit::Second) { 1_000 } else { 60_000 };
        let mut start = at.div_euclid(step) * step;
        loop {
            let shows = local(start) == floor(start);
            let jumps = floor(start) > local(start - 1) && floor(start) < local(start);
            let again = midnight && floor(start - 1) >= floor(start);
            if (shows && !again) || (jumps && (midnight || fixed)) {
                return start;
            }
            start -= step;
        }
    }
}
