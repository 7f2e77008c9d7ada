//! What a text says about a date, and the date that it means.

use time::{Date, Duration, Month, PrimitiveDateTime, Time, Weekday, util};

use crate::zone::Zone;

/// A field of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// 0 before the common era, else 1.
    Era,
    Year,
    YearOfEra,
    /// Year of the ISO 8601 week.
    WeekYear,
    Week,
    Quarter,
    Month,
    Day,
    DayOfYear,
    /// 1 (Monday) to 7.
    DayOfWeek,
    /// 0 before noon, else 1.
    HalfDay,
    /// Hour of the day, 0 to 23.
    Hour,
    /// Hour of the day, 1 to 24.
    ClockHour,
    /// Hour of the half day, 0 to 11.
    HalfDayHour,
    /// Hour of the half day, 1 to 12.
    HalfDayClockHour,
    Minute,
    Second,
    Nano,
    MilliOfDay,
    NanoOfDay,
}

const FIELDS: usize = Field::NanoOfDay as usize + 1;

/// The fields that a text has given so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    values: [Option<i64>; FIELDS],
    pub(super) zone: Option<Zone>,
}

/// A local date and time, with the time zone if the text names one.
pub(super) type Local = (PrimitiveDateTime, Option<Zone>);

impl Fields {
    /// Sets a field; `None` if it has another value already.
    pub(super) fn set(&mut self, field: Field, value: i64) -> Option<()> {
        match self.values[field as usize].replace(value) {
            Some(before) if before != value => None,
            _ => Some(()),
        }
    }

    /// Sets the nanoseconds from the digits behind the decimal point of the seconds; `None` if there are more than nine, or others already.
    pub(super) fn set_fraction(&mut self, digits: i64, length: usize) -> Option<()> {
        let missing = 9_u32.checked_sub(u32::try_from(length).ok()?)?;
        self.set(Field::Nano, digits * 10_i64.pow(missing))
    }

    fn get(&self, field: Field) -> Option<i64> {
        self.values[field as usize]
    }

    /// The value of a field; `Err` if it is out of bounds.
    fn within(&self, field: Field, least: i64, most: i64) -> Result<Option<i64>, OutOfBounds> {
        match self.get(field) {
            Some(value) if !(least..=most).contains(&value) => Err(OutOfBounds),
            value => Ok(value),
        }
    }

    /// The first moment that the fields stand for; `year` is that of dates without one.
    pub(super) fn earliest(self, year: i64) -> Option<Local> {
        let time = self.time(false).ok()?;
        let date = match self.whole_date(false).ok()? {
            Some(date) => date,
            None => self.part_of_date(time.is_some(), year)?,
        };
        Some((date.with_time(time.unwrap_or(Time::MIDNIGHT)), self.zone))
    }

    /// The last moment of the day that the fields stand for. What they leave open of the date is the first that there is, as in
    /// Elasticsearch; `in_pattern` says which fields the pattern has.
    pub(super) fn latest(mut self, in_pattern: impl Fn(Field) -> bool) -> Option<Local> {
        if in_pattern(Field::DayOfYear) {
            self.default(Field::DayOfYear, 1);
        } else if self.year().ok()?.is_some() || self.get(Field::WeekYear).is_none() {
            self.default(Field::Month, 1);
            self.default(Field::Day, 1);
        }
        if in_pattern(Field::HalfDayClockHour) {
            self.default(Field::HalfDayClockHour, 11);
            self.default(Field::HalfDay, 1);
        } else if in_pattern(Field::HalfDayHour) {
            self.default(Field::HalfDayHour, 11);
            self.default(Field::HalfDay, 1);
        } else {
            self.default(Field::Hour, 23);
        }
        self.default(Field::Minute, 59);
        self.default(Field::Second, 59);
        self.default(Field::Nano, 999_999_999);
        let time = self.time(true).ok()??;
        let date = match self.whole_date(true).ok()? {
            Some(date) => date,
            None => self.part_of_date(true, 1970)?,
        };
        Some((date.with_time(time), self.zone))
    }

    fn default(&mut self, field: Field, value: i64) {
        self.values[field as usize].get_or_insert(value);
    }

    /// The year, also where it is one of the common era.
    fn year(&self) -> Result<Option<i64>, OutOfBounds> {
        let of_era = self.within(Field::YearOfEra, 1, 999_999_999)?;
        let of_era = of_era.map(|year| if self.get(Field::Era) == Some(0) { 1 - year } else { year });
        match (self.get(Field::Year), of_era) {
            (Some(year), Some(other)) if year != other => Err(OutOfBounds),
            (year, other) => Ok(year.or(other)),
        }
    }

    /// The date, if the fields give all of it. With `clamp`, a day that a month does not have is its last one.
    fn whole_date(&self, clamp: bool) -> Result<Option<Date>, OutOfBounds> {
        let date = if let Some(year) = self.year()? {
            let month = self.within(Field::Month, 1, 12)?;
            let day = self.within(Field::Day, 1, 31)?;
            match (month, day, self.get(Field::DayOfYear)) {
                (Some(month), Some(day), _) => Some(calendar_date(year, month, day, clamp)?),
                (_, _, Some(day)) => Some(ordinal_date(year, day)?),
                _ => None,
            }
        } else {
            None
        };
        let week_date = match (self.get(Field::WeekYear), self.week()?, self.day_of_week()?) {
            (Some(year), Some(week), Some(day)) => Some(week_date(year, week, day)?),
            _ => None,
        };
        let is_by_week = week_date.is_some();
        let date = match (date, week_date) {
            (Some(date), Some(other)) if date != other => return Err(OutOfBounds),
            (date, other) => date.or(other),
        };
        // Where it is strict, Java does not know the date of a year of an era without the era, and leaves all of these unchecked.
        let is_known =
            clamp || is_by_week || [Field::Year, Field::Era].iter().any(|field| self.get(*field).is_some());
        if let Some(date) = date.filter(|_| is_known) {
            self.check(date, is_by_week)?;
        }
        Ok(date)
    }

    /// Checks that the fields from which the date does not come are those that it has.
    fn check(&self, date: Date, is_by_week: bool) -> Result<(), OutOfBounds> {
        let is =
            |field: &Field| self.get(*field).is_none_or(|given| given == value_of(*field, date.midnight()));
        let of_years =
            [Field::Era, Field::Year, Field::YearOfEra, Field::Quarter, Field::Month, Field::DayOfYear];
        let of_weeks = [Field::WeekYear, Field::Week, Field::DayOfWeek];
        // The last day of a month or the last week of a year stands for those behind it.
        let fits = of_years.iter().all(is)
            && (is_by_week || of_weeks.iter().all(is))
            && (self.get(Field::Month).is_some() || is(&Field::Day));
        if fits { Ok(()) } else { Err(OutOfBounds) }
    }

    fn week(&self) -> Result<Option<i64>, OutOfBounds> {
        self.within(Field::Week, 1, 53)
    }

    fn day_of_week(&self) -> Result<Option<i64>, OutOfBounds> {
        self.within(Field::DayOfWeek, 1, 7)
    }

    /// The first day of a date of which only a part is given.
    fn part_of_date(&self, has_time: bool, usual_year: i64) -> Option<Date> {
        if let (None, Some(year)) = (self.year().ok()?, self.get(Field::WeekYear)) {
            return match self.week().ok()? {
                Some(week) => {
                    let (year, week) = (i32::try_from(year).ok()?, u8::try_from(week).ok()?);
                    Date::from_iso_week_date(year, week, Weekday::Monday).ok()
                }
                None => ordinal_date(year, 1).ok(),
            };
        }
        let (year, month) = (self.year().ok()?, self.get(Field::Month));
        if year.is_none() && month.is_none() && !has_time {
            return None;
        }
        let day = self.get(Field::Day).filter(|_| month.is_some() || year.is_none());
        calendar_date(year.unwrap_or(usual_year), month.unwrap_or(1), day.unwrap_or(1), false).ok()
    }

    /// The time of the day, if there is an hour and nothing is left out between it and the smallest unit that is given. With `lenient`,
    /// 0 is an hour of clocks too.
    fn time(&self, lenient: bool) -> Result<Option<Time>, OutOfBounds> {
        let nanos = match (self.get(Field::NanoOfDay), self.get(Field::MilliOfDay)) {
            (Some(nanos), _) => Some(nanos),
            (None, Some(millis)) => Some(millis.checked_mul(1_000_000).ok_or(OutOfBounds)?),
            (None, None) => None,
        };
        let hour = self.hour(lenient)?;
        let minute = self.within(Field::Minute, 0, 59)?;
        let second = self.within(Field::Second, 0, 59)?;
        let nano = self.within(Field::Nano, 0, 999_999_999)?;
        let same = |given: Option<i64>, own: i64| given.is_none_or(|given| given == own);
        let half = self.get(Field::HalfDay);
        if let Some(nanos) = nanos {
            let time = Time::MIDNIGHT + Duration::nanoseconds(nanos);
            let fits = (0..86_400_000_000_000).contains(&nanos)
                && same(half, i64::from(time.hour() / 12))
                && same(hour, time.hour().into())
                && same(minute, time.minute().into())
                && same(second, time.second().into())
                && same(nano, time.nanosecond().into());
            return if fits { Ok(Some(time)) } else { Err(OutOfBounds) };
        }
        let Some(hour) = hour else { return Ok(None) };
        if !same(half, hour / 12) {
            return Err(OutOfBounds);
        }
        let is_broken =
            minute.is_none() && (second.is_some() || nano.is_some()) || second.is_none() && nano.is_some();
        if is_broken {
            return Ok(None);
        }
        let part = |value: Option<i64>| u8::try_from(value.unwrap_or(0)).map_err(|_| OutOfBounds);
        let nano = u32::try_from(nano.unwrap_or(0)).map_err(|_| OutOfBounds)?;
        let time = Time::from_hms_nano(part(Some(hour))?, part(minute)?, part(second)?, nano);
        time.map(Some).map_err(|_| OutOfBounds)
    }

    /// The hour of the day, from whichever fields give it.
    fn hour(&self, lenient: bool) -> Result<Option<i64>, OutOfBounds> {
        let least = i64::from(!lenient);
        let of_clock = self.within(Field::ClockHour, least, 24)?.map(|hour| hour % 24);
        // Clocks show 12 where the half day begins.
        let of_half_clock = self.within(Field::HalfDayClockHour, least, 12)?.map(|hour| hour % 12);
        let of_half_day = one_of([of_half_clock, self.within(Field::HalfDayHour, 0, 11)?])?;
        let of_half_day = of_half_day.zip(self.get(Field::HalfDay)).map(|(hour, half)| 12 * half + hour);
        one_of([self.within(Field::Hour, 0, 23)?, of_clock, of_half_day])
    }
}

/// The value that is given, also more than once.
fn one_of<const N: usize>(values: [Option<i64>; N]) -> Result<Option<i64>, OutOfBounds> {
    let mut given = values.into_iter().flatten();
    let first = given.next();
    if given.any(|other| Some(other) != first) { Err(OutOfBounds) } else { Ok(first) }
}

/// The value that a field has in a date and time.
pub(super) fn value_of(field: Field, date: PrimitiveDateTime) -> i64 {
    let year = i64::from(date.year());
    let (week_year, week, day) = date.date().to_iso_week_date();
    let hour = i64::from(date.hour());
    let nano_of_day = (date.time() - Time::MIDNIGHT).whole_nanoseconds();
    let nano_of_day = i64::try_from(nano_of_day).unwrap_or_default();
    match field {
        Field::Era => i64::from(year > 0),
        Field::Year => year,
        Field::YearOfEra if year > 0 => year,
        Field::YearOfEra => 1 - year,
        Field::WeekYear => week_year.into(),
        Field::Week => week.into(),
        Field::Quarter => (i64::from(u8::from(date.month())) + 2) / 3,
        Field::Month => u8::from(date.month()).into(),
        Field::Day => date.day().into(),
        Field::DayOfYear => date.ordinal().into(),
        Field::DayOfWeek => day.number_from_monday().into(),
        Field::HalfDay => i64::from(hour >= 12),
        Field::Hour => hour,
        Field::ClockHour => (hour + 23) % 24 + 1,
        Field::HalfDayHour => hour % 12,
        Field::HalfDayClockHour => (hour + 11) % 12 + 1,
        Field::Minute => date.minute().into(),
        Field::Second => date.second().into(),
        Field::Nano => date.nanosecond().into(),
        Field::MilliOfDay => nano_of_day / 1_000_000,
        Field::NanoOfDay => nano_of_day,
    }
}

/// A value that its field cannot have, or that contradicts another.
#[derive(Debug)]
struct OutOfBounds;

fn number<T: TryFrom<i64>>(value: i64) -> Result<T, OutOfBounds> {
    T::try_from(value).map_err(|_| OutOfBounds)
}

fn calendar_date(year: i64, month: i64, day: i64, clamp: bool) -> Result<Date, OutOfBounds> {
    let year = number(year)?;
    let month = Month::try_from(number::<u8>(month)?).map_err(|_| OutOfBounds)?;
    let day: u8 = number(day)?;
    let day = if clamp { day.min(month.length(year)) } else { day };
    Date::from_calendar_date(year, month, day).map_err(|_| OutOfBounds)
}

fn ordinal_date(year: i64, day: i64) -> Result<Date, OutOfBounds> {
    Date::from_ordinal_date(number(year)?, number(day)?).map_err(|_| OutOfBounds)
}

/// The day of a week, of the year's last week if the year has not so many.
fn week_date(year: i64, week: i64, day: i64) -> Result<Date, OutOfBounds> {
    let year: i32 = number(year)?;
    let week: u8 = number(week)?;
    let day = Weekday::Monday.nth_next(number::<u8>(day - 1)?);
    Date::from_iso_week_date(year, week.min(util::weeks_in_year(year)), day).map_err(|_| OutOfBounds)
}
