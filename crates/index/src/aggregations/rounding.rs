//! Where the bucket of a date starts.

use time::{Date, Month, OffsetDateTime};

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Units of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarUnit {
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days.
    Day,
    /// Weeks, from Monday.
    Week,
    /// Months.
    Month,
    /// Quarters.
    Quarter,
    /// Years.
    Year,
}

/// The length of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// So many milliseconds.
    Fixed(i64),
    /// One unit of the calendar.
    Calendar(CalendarUnit),
}

/// Intervals of dates in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounding {
    /// Their length.
    pub interval: Interval,
    /// Milliseconds that local clocks are ahead of UTC.
    pub zone: i64,
    /// Milliseconds by which intervals start later.
    pub offset: i64,
}

impl Rounding {
    /// Start of the interval that `at` is in.
    pub fn round(&self, at: i64) -> i64 {
        let shift = self.zone.saturating_sub(self.offset);
        let local = at.saturating_add(shift);
        let start = match self.interval {
            Interval::Fixed(length) => local.div_euclid(length) * length,
            Interval::Calendar(unit) => start_of(unit, local),
        };
        start.saturating_sub(shift)
    }

    /// Start of the interval after the one that starts at `start`.
    pub fn next(&self, start: i64) -> i64 {
        let shift = self.zone.saturating_sub(self.offset);
        let local = start.saturating_add(shift);
        let next = match self.interval {
            Interval::Fixed(length) => local.saturating_add(length),
            Interval::Calendar(unit) => {
                // Half of the next one is in it, whatever its length.
                let beyond = match unit {
                    CalendarUnit::Second => 1_500,
                    CalendarUnit::Minute => 90_000,
                    CalendarUnit::Hour => 5_400_000,
                    CalendarUnit::Day => DAY + DAY / 2,
                    CalendarUnit::Week => 10 * DAY,
                    CalendarUnit::Month => 45 * DAY,
                    CalendarUnit::Quarter => 135 * DAY,
                    CalendarUnit::Year => 548 * DAY,
                };
                start_of(unit, local.saturating_add(beyond))
            }
        };
        next.saturating_sub(shift)
    }

    /// Milliseconds of an interval, the least there can be.
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

fn start_of(unit: CalendarUnit, local: i64) -> i64 {
    let multiple = |length: i64| local.div_euclid(length) * length;
    match unit {
        CalendarUnit::Second => multiple(1_000),
        CalendarUnit::Minute => multiple(60_000),
        CalendarUnit::Hour => multiple(3_600_000),
        CalendarUnit::Day => multiple(DAY),
        // The epoch is a Thursday.
        CalendarUnit::Week => (local + 3 * DAY).div_euclid(7 * DAY) * (7 * DAY) - 3 * DAY,
        CalendarUnit::Month => of_month(local, |month| month),
        CalendarUnit::Quarter => of_month(local, |month| (month - 1) / 3 * 3 + 1),
        CalendarUnit::Year => of_month(local, |_| 1),
    }
}

/// Midnight of the first of the month that `first` makes of a date's month.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CalendarUnit, Interval, Rounding};
    use crate::mapping::date::{format_millis, parse_date, parse_formats};

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
            let rounding = Rounding { interval, zone, offset };
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
                zone: zone * 3_600_000,
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
    }
}
