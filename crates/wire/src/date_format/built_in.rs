//! The formats that Elasticsearch knows by names.

use std::sync::Arc;

use crate::date_pattern::DatePattern;

use super::NamedPattern;

/// Stands in a pattern for a time zone: its name, an offset with a colon, or one without.
const ZONE: char = '%';

/// A date of which month and day may be left out, with any number of digits.
macro_rules! lenient_date {
    () => {
        "uuuu{1,9}[-MM{1,2}[-dd{1,2}]]"
    };
}
/// A date of which month and day may be left out.
macro_rules! date {
    () => {
        "uuuu{4,4}[-MM[-dd]]"
    };
}
macro_rules! lenient_time {
    () => {
        "HH{1,2}:mm{1,2}:ss{1,2}"
    };
}
macro_rules! lenient_week {
    () => {
        "YYYY{1,9}-'W'ww{1,2}-e"
    };
}
macro_rules! fraction {
    () => {
        ".SSS{1,9}"
    };
}

/// Name, how dates are read, and how they are written. Letters with bounds (`MM{1,2}`) are written with as many digits as there are
/// letters, fractions of seconds with as many more as they need; see [`DatePattern::with_bounds`].
const BUILT_IN: &[(&str, &str, &str)] = &[
    ("basic_date", "uuuu{4,4}MMdd", "uuuuMMdd"),
    ("basic_date_time", concat!("uuuu{4,4}MMdd'T'HHmmss", fraction!(), "%"), "uuuuMMdd'T'HHmmss.SSSX"),
    ("basic_date_time_no_millis", "uuuu{4,4}MMdd'T'HHmmss%", "uuuuMMdd'T'HHmmssX"),
    ("basic_ordinal_date", "uuuu{4,4}DDD", "uuuuDDD"),
    ("basic_ordinal_date_time", concat!("uuuu{4,4}DDD'T'HHmmss", fraction!(), "%"), "uuuuDDD'T'HHmmss.SSSX"),
    ("basic_ordinal_date_time_no_millis", "uuuu{4,4}DDD'T'HHmmss%", "uuuuDDD'T'HHmmssX"),
    ("basic_time", concat!("HHmmss", fraction!(), "%"), "HHmmss.SSSX"),
    ("basic_time_no_millis", "HHmmss%", "HHmmssX"),
    ("basic_t_time", concat!("'T'HHmmss", fraction!(), "%"), "'T'HHmmss.SSSX"),
    ("basic_t_time_no_millis", "'T'HHmmss%", "'T'HHmmssX"),
    ("basic_week_date", "YYYY{4,4}'W'wwe{1,1}", "YYYY'W'wwe"),
    (
        "basic_week_date_time",
        concat!("YYYY{4,4}'W'wwe{1,1}'T'HHmmss", fraction!(), "%"),
        "YYYY'W'wwe'T'HHmmss.SSSX",
    ),
    ("basic_week_date_time_no_millis", "YYYY{4,4}'W'wwe{1,1}'T'HHmmss%", "YYYY'W'wwe'T'HHmmssX"),
    ("date", lenient_date!(), "uuuu-MM-dd"),
    ("date_hour", concat!(lenient_date!(), "'T'HH{1,2}"), "uuuu-MM-dd'T'HH"),
    ("date_hour_minute", concat!(lenient_date!(), "'T'HH{1,2}:mm{1,2}"), "uuuu-MM-dd'T'HH:mm"),
    ("date_hour_minute_second", concat!(lenient_date!(), "'T'", lenient_time!()), "uuuu-MM-dd'T'HH:mm:ss"),
    (
        "date_hour_minute_second_fraction",
        concat!(lenient_date!(), "'T'", lenient_time!(), fraction!()),
        "uuuu-MM-dd'T'HH:mm:ss.SSS",
    ),
    (
        "date_hour_minute_second_millis",
        concat!(lenient_date!(), "'T'", lenient_time!(), ".SSS{1,3}"),
        "uuuu-MM-dd'T'HH:mm:ss.SSS",
    ),
    (
        "date_optional_time",
        concat!(lenient_date!(), "['T'[HH{1,2}[:mm{1,2}[:ss{1,2}[.SSS{1,9}][,SSS{1,9}]][VV][X]]]]"),
        "uuuu-MM-dd'T'HH:mm:ss.SSSXXX",
    ),
    (
        "date_time",
        concat!(lenient_date!(), "'T'HH{1,2}:mm{1,2}[:ss{1,2}.SSS{1,9}]%"),
        "uuuu-MM-dd'T'HH:mm:ss.SSSXXX",
    ),
    (
        "date_time_no_millis",
        concat!(lenient_date!(), "'T'HH{1,2}:mm{1,2}[:ss{1,2}][VV][X]"),
        "uuuu-MM-dd'T'HH:mm:ssXXX",
    ),
    ("hour", "HH{1,2}", "HH"),
    ("hour_minute", "HH{1,2}:mm{1,2}", "HH:mm"),
    ("hour_minute_second", lenient_time!(), "HH:mm:ss"),
    ("hour_minute_second_fraction", concat!(lenient_time!(), fraction!()), "HH:mm:ss.SSS"),
    ("hour_minute_second_millis", concat!(lenient_time!(), ".SSS{1,3}"), "HH:mm:ss.SSS"),
    ("ordinal_date", "uuuu{1,9}-DDD{1,3}", "uuuu-DDD"),
    (
        "ordinal_date_time",
        "uuuu{1,9}-DDD{1,3}'T'HH{1,2}:mm{1,2}[:ss{1,2}.SSS{1,9}]%",
        "uuuu-DDD'T'HH:mm:ss.SSSXXX",
    ),
    (
        "ordinal_date_time_no_millis",
        concat!("uuuu{1,9}-DDD{1,3}'T'", lenient_time!(), "%"),
        "uuuu-DDD'T'HH:mm:ssXXX",
    ),
    ("time", concat!(lenient_time!(), fraction!(), "%"), "HH:mm:ss.SSSXXX"),
    ("time_no_millis", concat!(lenient_time!(), "%"), "HH:mm:ssXXX"),
    ("t_time", concat!("'T'", lenient_time!(), fraction!(), "%"), "'T'HH:mm:ss.SSSXXX"),
    ("t_time_no_millis", concat!("'T'", lenient_time!(), "%"), "'T'HH:mm:ssXXX"),
    ("week_date", lenient_week!(), "YYYY-'W'ww-e"),
    (
        "week_date_time",
        concat!(lenient_week!(), "'T'", lenient_time!(), fraction!(), "%"),
        "YYYY-'W'ww-e'T'HH:mm:ss.SSSXXX",
    ),
    (
        "week_date_time_no_millis",
        concat!(lenient_week!(), "'T'", lenient_time!(), "%"),
        "YYYY-'W'ww-e'T'HH:mm:ssXXX",
    ),
    ("weekyear", "YYYY{1,9}", "YYYY"),
    ("weekyear_week", "YYYY{1,9}-'W'ww{1,2}", "YYYY-'W'ww"),
    ("weekyear_week_day", lenient_week!(), "YYYY-'W'ww-e"),
    ("year", "uuuu{1,9}", "uuuu"),
    ("year_month", "uuuu{1,9}-MM{1,2}", "uuuu-MM"),
    ("year_month_day", "uuuu{1,9}-MM{1,2}-dd{1,2}", "uuuu-MM-dd"),
    ("strict_basic_week_date", "YYYY{4,4}'W'wwe{1,1}", "YYYY'W'wwe"),
    (
        "strict_basic_week_date_time",
        concat!("YYYY{4,4}'W'wwe{1,1}'T'HHmmss", fraction!(), "%"),
        "YYYY'W'wwe'T'HHmmss.SSSX",
    ),
    ("strict_basic_week_date_time_no_millis", "YYYY{4,4}'W'wwe{1,1}'T'HHmmss%", "YYYY'W'wwe'T'HHmmssX"),
    ("strict_date", "uuuu-MM-dd", "uuuu-MM-dd"),
    ("strict_date_hour", "uuuu-MM-dd'T'HH", "uuuu-MM-dd'T'HH"),
    ("strict_date_hour_minute", "uuuu-MM-dd'T'HH:mm", "uuuu-MM-dd'T'HH:mm"),
    ("strict_date_hour_minute_second", "uuuu-MM-dd'T'HH:mm:ss", "uuuu-MM-dd'T'HH:mm:ss"),
    (
        "strict_date_hour_minute_second_fraction",
        concat!(date!(), "'T'HH:mm:ss", fraction!()),
        "uuuu-MM-dd'T'HH:mm:ss.SSS",
    ),
    (
        "strict_date_hour_minute_second_millis",
        concat!(date!(), "'T'HH:mm:ss", fraction!()),
        "uuuu-MM-dd'T'HH:mm:ss.SSS",
    ),
    (
        "strict_date_optional_time_nanos",
        concat!(date!(), "['T'HH:mm:ss[.SSS{1,9}][,SSS{1,9}][VV][X]]"),
        "uuuu-MM-dd'T'HH:mm:ss.SSS{3,9}XXX",
    ),
    ("strict_date_time", concat!(date!(), "'T'HH:mm:ss[.SSS{1,9}]%"), "uuuu-MM-dd'T'HH:mm:ss.SSSXXX"),
    ("strict_date_time_no_millis", concat!(date!(), "'T'HH:mm:ss%"), "uuuu-MM-dd'T'HH:mm:ssXXX"),
    ("strict_hour", "HH", "HH"),
    ("strict_hour_minute", "HH:mm", "HH:mm"),
    ("strict_hour_minute_second", "HH:mm:ss", "HH:mm:ss"),
    ("strict_hour_minute_second_fraction", concat!("HH:mm:ss", fraction!()), "HH:mm:ss.SSS"),
    ("strict_hour_minute_second_millis", concat!("HH:mm:ss", fraction!()), "HH:mm:ss.SSS"),
    ("strict_ordinal_date", "uuuu{4,4}-DDD", "uuuu-DDD"),
    ("strict_ordinal_date_time", "uuuu{4,4}-DDD'T'HH:mm[:ss.SSS{1,9}]%", "uuuu-DDD'T'HH:mm:ss.SSSXXX"),
    ("strict_ordinal_date_time_no_millis", "uuuu{4,4}-DDD'T'HH:mm:ss%", "uuuu-DDD'T'HH:mm:ssXXX"),
    ("strict_time", concat!("HH:mm:ss", fraction!(), "%"), "HH:mm:ss.SSSXXX"),
    ("strict_time_no_millis", "HH:mm:ss%", "HH:mm:ssXXX"),
    ("strict_t_time", concat!("'T'HH:mm:ss", fraction!(), "%"), "'T'HH:mm:ss.SSSXXX"),
    ("strict_t_time_no_millis", "'T'HH:mm:ss%", "'T'HH:mm:ssXXX"),
    ("strict_week_date", "YYYY{4,4}-'W'ww-e{1,1}", "YYYY-'W'ww-e"),
    (
        "strict_week_date_time",
        concat!("YYYY{4,4}-'W'ww-e{1,1}'T'HH:mm:ss", fraction!(), "%"),
        "YYYY-'W'ww-e'T'HH:mm:ss.SSSXXX",
    ),
    ("strict_week_date_time_no_millis", "YYYY{4,4}-'W'ww-e{1,1}'T'HH:mm:ss%", "YYYY-'W'ww-e'T'HH:mm:ssXXX"),
    ("strict_weekyear", "YYYY{4,4}", "YYYY"),
    ("strict_weekyear_week", "YYYY{4,4}-'W'ww", "YYYY-'W'ww"),
    ("strict_weekyear_week_day", "YYYY{4,4}-'W'ww-e{1,1}", "YYYY-'W'ww-e"),
    ("strict_year", "uuuu{4,4}", "uuuu"),
    ("strict_year_month", "uuuu{4,4}-MM", "uuuu-MM"),
    ("strict_year_month_day", date!(), "uuuu-MM-dd"),
];

/// The format that Elasticsearch knows by this name; `None` if it knows none.
///
/// # Errors
/// None in practice: all patterns of the table can be parsed, as a test shows.
pub(super) fn find(name: &str) -> Option<Result<NamedPattern, String>> {
    let (_, reads, writes) = BUILT_IN.iter().find(|(known, ..)| *known == name)?;
    let readers: Result<Vec<DatePattern>, String> = match reads.contains(ZONE) {
        false => [*reads].into_iter().map(DatePattern::with_bounds).collect(),
        true => {
            ["VV", "X"].into_iter().map(|zone| DatePattern::with_bounds(&reads.replace(ZONE, zone))).collect()
        }
    };
    Some(readers.and_then(|readers| {
        Ok(NamedPattern { name: Arc::from(name), readers, writer: DatePattern::with_bounds(writes)? })
    }))
}

#[cfg(test)]
mod tests {
    use super::{BUILT_IN, find};

    #[test]
    fn every_format_can_be_made() {
        for (name, ..) in BUILT_IN {
            assert!(find(name).is_some_and(|format| format.is_ok()), "{name}");
        }
    }
}
