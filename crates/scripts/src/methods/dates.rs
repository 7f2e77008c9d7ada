//! Methods of dates and durations.

use std::slice::from_ref;
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

use sparrow_wire::{DatePattern, Zone};

use super::{Found, int, long, text};
use crate::error::Fault;
use crate::machine::Run;
use crate::value::Value;
use crate::value::moment::{Class, Moment, ZoneName, out_of_range, unit_nanos, utc};
use crate::value::object::Object;

fn moment(value: &Value) -> Result<Moment, Fault> {
    match value {
        Value::Object(object) => match &**object {
            Object::Moment(moment) => Ok(moment.clone()),
            _ => Err(Fault::cast(value.class_name(), "java.time.temporal.Temporal")),
        },
        Value::Null => Err(Fault::null("Temporal")),
        _ => Err(Fault::cast(value.class_name(), "java.time.temporal.Temporal")),
    }
}

fn named(value: &Value) -> Result<&'static str, Fault> {
    match value {
        Value::Object(object) => match **object {
            Object::Named(_, name) => Ok(name),
            _ => Err(Fault::cast(value.class_name(), "java.time.temporal.TemporalUnit")),
        },
        _ => Err(Fault::cast(value.class_name(), "java.time.temporal.TemporalUnit")),
    }
}

/// Whole units between two moments.
pub(super) fn between(from: &Value, to: &Value, unit: &str) -> Result<i64, Fault> {
    moment(from)?.until(&moment(to)?, unit)
}

fn span(value: &Value) -> Result<i128, Fault> {
    match value {
        Value::Object(object) => match **object {
            Object::Span(nanos) => Ok(nanos),
            _ => Err(Fault::cast(value.class_name(), "java.time.Duration")),
        },
        _ => Err(Fault::cast(value.class_name(), "java.time.Duration")),
    }
}

fn as_long(nanos: i128) -> Result<Value, Fault> {
    i64::try_from(nanos).map(Value::Long).map_err(|_| Fault::new("arithmetic_exception", "long overflow"))
}

/// A date from its year, month and day.
fn date(parts: &[Value]) -> Result<Date, Fault> {
    let [year, month, day, ..] = parts else { return Err(out_of_range()) };
    let month = match named(month) {
        Ok(name) => crate::tables::ordinal("Month", name) as u8 + 1,
        Err(_) => u8::try_from(int(month)?).map_err(|_| out_of_range())?,
    };
    let (year, day) = (int(year)?, u8::try_from(int(day)?).map_err(|_| out_of_range())?);
    let invalid = || Fault::new("date_time_exception", format!("Invalid date: {year}-{month}-{day}"));
    Date::from_calendar_date(year, Month::try_from(month).map_err(|_| invalid())?, day).map_err(|_| invalid())
}

/// A time from its hour, minute, second and nanoseconds, of which the last ones may be missing.
fn time(parts: &[Value]) -> Result<Time, Fault> {
    let part = |at: usize| parts.get(at).map_or(Ok(0), int);
    let small = |at: usize| part(at).map(|part| u8::try_from(part).unwrap_or(u8::MAX));
    let nanos = u32::try_from(part(3)?).unwrap_or(u32::MAX);
    Time::from_hms_nano(small(0)?, small(1)?, small(2)?, nanos)
        .map_err(|_| Fault::new("date_time_exception", "Invalid time of the day"))
}

impl Run<'_> {
    pub(super) fn moment_method(&mut self, own: &Moment, name: &str, arguments: &[Value]) -> Found {
        let at = own.at;
        let has_date = own.class != Class::Time;
        let with = |date: Option<Date>, time: Option<Time>| {
            let moment =
                Moment::local(own.class, date.unwrap_or(at.date()), time.unwrap_or(at.time()), &own.zone);
            moment.map(Value::from)
        };
        let count = |number: u8| Value::Int(i32::from(number));
        Ok(Some(match (name, arguments) {
            ("getTime" | "toEpochMilli" | "getMillis", []) => Value::Long(own.millis()),
            ("getEpochSecond" | "toEpochSecond", [] | [_]) => Value::Long(at.unix_timestamp()),
            ("toEpochDay", []) => Value::Long(own.nanos().div_euclid(86_400_000_000_000) as i64),
            ("getNano", []) => Value::Int(at.nanosecond().cast_signed()),
            ("getYear", []) if has_date => Value::Int(at.year()),
            ("getMonthValue", []) if has_date => count(u8::from(at.month())),
            ("getMonth", []) if has_date => {
                Object::Named("Month", crate::tables::members("Month")[usize::from(u8::from(at.month())) - 1])
                    .into()
            }
            ("getDayOfMonth", []) => count(at.day()),
            ("getDayOfYear", []) => Value::Int(i32::from(at.ordinal())),
            ("getDayOfWeek" | "getDayOfWeekEnum", []) if has_date => {
                let day = usize::from(at.weekday().number_days_from_monday());
                Object::Named("DayOfWeek", crate::tables::members("DayOfWeek")[day]).into()
            }
            ("getHour", []) => count(at.hour()),
            ("getMinute", []) => count(at.minute()),
            ("getSecond", []) => count(at.second()),
            ("isLeapYear", []) => Value::Bool(time::util::is_leap_year(at.year())),
            ("lengthOfMonth", []) => count(at.month().length(at.year())),
            ("get" | "getLong", [field]) => {
                let value = match named(field)? {
                    "DAY_OF_WEEK" => i64::from(at.weekday().number_from_monday()),
                    "DAY_OF_MONTH" => i64::from(at.day()),
                    "DAY_OF_YEAR" => i64::from(at.ordinal()),
                    "MONTH_OF_YEAR" => i64::from(u8::from(at.month())),
                    "YEAR" => i64::from(at.year()),
                    "HOUR_OF_DAY" => i64::from(at.hour()),
                    "MINUTE_OF_HOUR" => i64::from(at.minute()),
                    "SECOND_OF_MINUTE" => i64::from(at.second()),
                    "MILLI_OF_SECOND" => i64::from(at.millisecond()),
                    "EPOCH_DAY" => at.unix_timestamp().div_euclid(86_400),
                    "INSTANT_SECONDS" => at.unix_timestamp(),
                    "ALIGNED_WEEK_OF_YEAR" => i64::from((at.ordinal() - 1) / 7 + 1),
                    other => return Err(Fault::illegal(format!("Unsupported field: {other}"))),
                };
                if name == "get" { Value::Int(value as i32) } else { Value::Long(value) }
            }
            ("toInstant", [] | [_]) => Moment::of(Class::Instant, own.nanos(), &utc())?.into(),
            ("toLocalDate", []) => Moment::local(Class::Date, at.date(), Time::MIDNIGHT, &utc())?.into(),
            ("toLocalTime", []) => {
                Moment::local(Class::Time, OffsetDateTime::UNIX_EPOCH.date(), at.time(), &utc())?.into()
            }
            ("toLocalDateTime", []) => Moment::local(Class::DateTime, at.date(), at.time(), &utc())?.into(),
            ("toZonedDateTime" | "toOffsetDateTime", []) => {
                Moment::of(Class::Zoned, own.nanos(), &own.zone)?.into()
            }
            ("atZone" | "atOffset", [zone]) => {
                let zone = self.zone(zone)?;
                match own.class {
                    Class::Instant => Moment::of(Class::Zoned, own.nanos(), &zone)?.into(),
                    _ => Moment::local(Class::Zoned, at.date(), at.time(), &zone)?.into(),
                }
            }
            ("atStartOfDay", []) => Moment::local(Class::DateTime, at.date(), Time::MIDNIGHT, &utc())?.into(),
            ("atStartOfDay", [zone]) => {
                Moment::local(Class::Zoned, at.date(), Time::MIDNIGHT, &self.zone(zone)?)?.into()
            }
            ("atTime", parts) => Moment::local(Class::DateTime, at.date(), time(parts)?, &utc())?.into(),
            ("withZoneSameInstant" | "withOffsetSameInstant", [zone]) => {
                Moment::of(own.class, own.nanos(), &self.zone(zone)?)?.into()
            }
            ("withZoneSameLocal", [zone]) => {
                Moment::local(own.class, at.date(), at.time(), &self.zone(zone)?)?.into()
            }
            ("getZone" | "getOffset", []) => Object::Zone(own.zone.clone()).into(),
            ("isBefore" | "before", [other]) => Value::Bool(own.order(&moment(other)?).is_lt()),
            ("isAfter" | "after", [other]) => Value::Bool(own.order(&moment(other)?).is_gt()),
            ("isEqual", [other]) => Value::Bool(own.order(&moment(other)?).is_eq()),
            ("until", [other, unit]) => Value::Long(own.until(&moment(other)?, named(unit)?)?),
            ("plus" | "minus", [by, unit]) => {
                let by = if name == "plus" { long(by)? } else { long(by)?.saturating_neg() };
                own.plus(by, named(unit)?)?.into()
            }
            ("plus" | "minus", [by]) => {
                let by = if name == "plus" { span(by)? } else { -span(by)? };
                own.plus(i64::try_from(by).map_err(|_| out_of_range())?, "NANOS")?.into()
            }
            ("truncatedTo", [unit]) => {
                let nanos = unit_nanos(named(unit)?)
                    .ok_or_else(|| Fault::illegal("Unit is too large to be used for truncation"))?;
                let of_day = at.time().duration_since(Time::MIDNIGHT).whole_nanoseconds();
                let kept = time::Duration::nanoseconds((of_day - of_day.rem_euclid(nanos)) as i64);
                with(None, Some(Time::MIDNIGHT + kept))?
            }
            ("withYear", [year]) => with(at.date().replace_year(int(year)?).ok(), None)?,
            ("withMonth", [month]) => {
                let by = i64::from(int(month)?) - i64::from(u8::from(at.month()));
                own.plus(by, "MONTHS")?.into()
            }
            ("withDayOfMonth", [day]) => {
                let day = u8::try_from(int(day)?).map_err(|_| out_of_range())?;
                with(Some(at.date().replace_day(day).map_err(|_| out_of_range())?), None)?
            }
            ("withDayOfYear", [day]) => {
                own.plus(i64::from(int(day)?) - i64::from(at.ordinal()), "DAYS")?.into()
            }
            ("withHour" | "withMinute" | "withSecond" | "withNano", [to]) => {
                let to = u32::try_from(int(to)?).map_err(|_| out_of_range())?;
                let small = u8::try_from(to).unwrap_or(u8::MAX);
                let time = match name {
                    "withHour" => at.time().replace_hour(small),
                    "withMinute" => at.time().replace_minute(small),
                    "withSecond" => at.time().replace_second(small),
                    _ => at.time().replace_nanosecond(to),
                };
                with(None, Some(time.map_err(|_| out_of_range())?))?
            }
            ("format", [by]) => self.call_method(by, "format", &[own.clone().into()])?,
            (_, [by]) if name.starts_with("plus") || name.starts_with("minus") => {
                let (sign, unit) = match name.strip_prefix("plus") {
                    Some(unit) => (1, unit),
                    None => (-1, &name["minus".len()..]),
                };
                let unit = unit.to_uppercase();
                let known = crate::tables::members("ChronoUnit").into_iter().find(|known| *known == unit);
                let Some(unit) = known.filter(|unit| !matches!(*unit, "DECADES" | "HALF_DAYS" | "MICROS"))
                else {
                    return Ok(None);
                };
                own.plus(long(by)?.saturating_mul(sign), unit)?.into()
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn span_method(&mut self, own: i128, name: &str, arguments: &[Value]) -> Found {
        Ok(Some(match (name, arguments) {
            ("toNanos", []) => as_long(own)?,
            ("toMillis", []) => as_long(own.div_euclid(1_000_000))?,
            ("getSeconds" | "toSeconds", []) => as_long(own.div_euclid(1_000_000_000))?,
            ("toMinutes", []) => as_long(own / 60_000_000_000)?,
            ("toHours", []) => as_long(own / 3_600_000_000_000)?,
            ("toDays", []) => as_long(own / 86_400_000_000_000)?,
            ("isNegative", []) => Value::Bool(own < 0),
            ("isZero", []) => Value::Bool(own == 0),
            ("abs", []) => Object::Span(own.abs()).into(),
            ("negated", []) => Object::Span(-own).into(),
            ("plus", [other]) => Object::Span(own.saturating_add(span(other)?)).into(),
            ("minus", [other]) => Object::Span(own.saturating_sub(span(other)?)).into(),
            _ => return Ok(None),
        }))
    }

    /// Static methods of the classes of dates.
    pub(super) fn date_static(
        &mut self,
        class: &'static str,
        name: &str,
        arguments: &[Value],
    ) -> Result<Value, Fault> {
        let kind = match class {
            "Instant" => Class::Instant,
            "ZonedDateTime" | "OffsetDateTime" => Class::Zoned,
            "LocalDate" => Class::Date,
            "LocalDateTime" => Class::DateTime,
            "LocalTime" => Class::Time,
            _ => Class::Legacy,
        };
        Ok(match (class, name, arguments) {
            ("Duration", "between", [from, to]) => {
                Object::Span(moment(to)?.nanos() - moment(from)?.nanos()).into()
            }
            ("Duration", _, [count]) => {
                let unit = name.strip_prefix("of").unwrap_or_default().to_uppercase();
                Object::Span(i128::from(long(count)?) * unit_nanos(&unit).unwrap_or(1)).into()
            }
            ("DateTimeFormatter", _, [pattern, ..]) => self.formatter(class, from_ref(pattern))?,
            ("ZoneId" | "ZoneOffset" | "TimeZone", "ofHours", [hours]) => {
                let offset = UtcOffset::from_hms(i8::try_from(int(hours)?).unwrap_or(i8::MAX), 0, 0)
                    .map_err(|_| out_of_range())?;
                let zone = Zone::Fixed(i64::from(offset.whole_seconds()) * 1000);
                Object::Zone(ZoneName { name: crate::value::moment::offset_name(offset).into(), zone }).into()
            }
            ("ZoneId" | "ZoneOffset" | "TimeZone", _, [name]) => {
                Object::Zone(ZoneName::named(&text(name)?)?).into()
            }
            ("DayOfWeek" | "Month", "of", [number]) => {
                let all = crate::tables::members(class);
                let at = usize::try_from(int(number)?).unwrap_or_default().checked_sub(1);
                let member = at
                    .and_then(|at| all.get(at))
                    .ok_or_else(|| Fault::new("date_time_exception", format!("Invalid value for {class}")))?;
                Object::Named(class, member).into()
            }
            (_, "valueOf", [name]) => {
                let name = text(name)?;
                let member = crate::tables::members(class).into_iter().find(|member| **member == **name);
                Object::Named(
                    class,
                    member.ok_or_else(|| Fault::illegal(format!("No enum constant {class}.{}", &**name)))?,
                )
                .into()
            }
            ("Year", _, [year]) => Value::Bool(time::util::is_leap_year(int(year)?)),
            ("Locale", ..) => Object::Named("Locale", "ROOT").into(),
            (_, "parse", [text_of]) => Moment::read(kind, &text(text_of)?, None)?.into(),
            (_, "parse", [text_of, by]) => self.parsed(by, &text(text_of)?, kind)?,
            (_, "from", [of]) => Moment::of(kind, moment(of)?.nanos(), &moment(of)?.zone)?.into(),
            ("Instant", "ofEpochMilli", [millis]) => {
                Moment::of(kind, i128::from(long(millis)?) * 1_000_000, &utc())?.into()
            }
            (_, "ofEpochSecond", [seconds, rest @ ..]) => {
                let nanos = rest.first().map_or(Ok(0), long)?;
                Moment::of(kind, i128::from(long(seconds)?) * 1_000_000_000 + i128::from(nanos), &utc())?
                    .into()
            }
            ("LocalDate", "ofEpochDay", [day]) => {
                Moment::of(kind, i128::from(long(day)?) * 86_400_000_000_000, &utc())?.into()
            }
            ("LocalDate", "of", parts) => Moment::local(kind, date(parts)?, Time::MIDNIGHT, &utc())?.into(),
            ("LocalTime", "of", parts) => {
                Moment::local(kind, OffsetDateTime::UNIX_EPOCH.date(), time(parts)?, &utc())?.into()
            }
            (_, "of", [day, hour]) => {
                Moment::local(kind, moment(day)?.at.date(), moment(hour)?.at.time(), &utc())?.into()
            }
            (_, "of", [day, hour, zone]) => {
                Moment::local(kind, moment(day)?.at.date(), moment(hour)?.at.time(), &self.zone(zone)?)?
                    .into()
            }
            ("ZonedDateTime", "of", parts) => {
                let zone = parts.last().map_or(Ok(utc()), |zone| self.zone(zone))?;
                Moment::local(kind, date(parts)?, time(&parts[3..parts.len() - 1])?, &zone)?.into()
            }
            (_, "of", parts) => {
                Moment::local(kind, date(parts)?, time(parts.get(3..).unwrap_or_default())?, &utc())?.into()
            }
            (_, "ofInstant", [instant, zone]) => {
                let moment = Moment::of(Class::Zoned, moment(instant)?.nanos(), &self.zone(zone)?)?;
                match kind {
                    Class::Zoned => moment.into(),
                    _ => Moment::local(kind, moment.at.date(), moment.at.time(), &utc())?.into(),
                }
            }
            _ => return Err(Fault::no_method(class, name, arguments.len())),
        })
    }

    /// A formatter of dates.
    pub(super) fn formatter(&mut self, class: &'static str, arguments: &[Value]) -> Result<Value, Fault> {
        let source = text(arguments.first().unwrap_or(&Value::Null))?;
        if source.len() > 200 {
            return Err(Fault::illegal("the pattern is longer than [200] bytes"));
        }
        let pattern = DatePattern::parse(&source).map_err(Fault::illegal)?;
        let is_simple = class == "SimpleDateFormat";
        Ok(Object::Format { pattern, source: source.to_string(), zone: None, is_simple }.into())
    }

    /// Methods of formatters of dates.
    pub(super) fn format_method(&mut self, own: &Value, name: &str, arguments: &[Value]) -> Found {
        let Value::Object(object) = own else { return Ok(None) };
        let Object::Format { pattern, source, zone, is_simple } = &**object else { return Ok(None) };
        Ok(Some(match (name, arguments) {
            ("format", [what]) => {
                let what = moment(what)?;
                let what = match zone {
                    Some(zone) => Moment::of(what.class, what.nanos(), zone)?,
                    None => what,
                };
                self.text(pattern.write_local(what.at, &what.zone.zone))?
            }
            ("parse", [what]) => {
                self.parsed(own, &text(what)?, if *is_simple { Class::Legacy } else { Class::Zoned })?
            }
            ("withZone", [zone]) => {
                let zone = Some(self.zone(zone)?);
                Object::Format {
                    pattern: pattern.clone(),
                    source: source.clone(),
                    zone,
                    is_simple: *is_simple,
                }
                .into()
            }
            ("withLocale", [_]) => own.clone(),
            _ => return Ok(None),
        }))
    }

    /// Reads a date by a formatter.
    fn parsed(&mut self, by: &Value, what: &str, class: Class) -> Result<Value, Fault> {
        self.tick_text(what.len())?;
        let Value::Object(object) = by else {
            return Err(Fault::cast(by.class_name(), "java.time.format.DateTimeFormatter"));
        };
        match &**object {
            Object::Format { pattern, zone, .. } => {
                let zone = zone.clone().unwrap_or_else(utc);
                Ok(Moment::read(class, what, Some((pattern, &zone)))?.into())
            }
            Object::Named("DateTimeFormatter", "BASIC_ISO_DATE") => {
                let pattern = DatePattern::parse("yyyyMMdd").map_err(Fault::illegal)?;
                Ok(Moment::read(class, what, Some((&pattern, &utc())))?.into())
            }
            Object::Named("DateTimeFormatter", _) => Ok(Moment::read(class, what, None)?.into()),
            _ => Err(Fault::cast(by.class_name(), "java.time.format.DateTimeFormatter")),
        }
    }
}
