//! `date`: text in one of several formats becomes a date in another.

pub(crate) mod pattern;

use serde_json::Value;
use time::{Duration, OffsetDateTime, UtcOffset};

pub(crate) use self::pattern::Pattern;
use crate::pipelines::chain::Processor;
use crate::pipelines::config::Config;
use crate::pipelines::document::{Document, as_text, java_type};
use crate::pipelines::error::{ConfigError, ProcessorError};

/// Parses a date.
#[derive(Debug)]
pub(crate) struct Date {
    field: String,
    target: String,
    formats: Vec<Format>,
    offset: UtcOffset,
    output: Pattern,
}

#[derive(Debug)]
enum Format {
    Iso8601,
    Unix,
    UnixMs,
    Tai64n,
    Pattern(Pattern),
}

impl Date {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let target = config.optional_text("target_field")?.unwrap_or_else(|| "@timestamp".into());
        let names = config.optional_list("formats")?.ok_or_else(|| config.missing("formats"))?;
        let mut formats = Vec::with_capacity(names.len());
        for name in names {
            let Value::String(name) = name else { return Err(config.wrong_type("formats", "string", &name)) };
            formats.push(match name.as_str() {
                "ISO8601" => Format::Iso8601,
                "UNIX" => Format::Unix,
                "UNIX_MS" => Format::UnixMs,
                "TAI64N" => Format::Tai64n,
                _ => Format::Pattern(
                    Pattern::parse(&name).map_err(|reason| config.unusable("formats", reason))?,
                ),
            });
        }
        let offset = match config.optional_text("timezone")? {
            None => UtcOffset::UTC,
            Some(zone) => pattern::fixed_offset(&zone).ok_or_else(|| {
                config.unusable(
                    "timezone",
                    format!(
                        "unable to use [{zone}]: only UTC and fixed offsets such as +01:00 are supported"
                    ),
                )
            })?,
        };
        if let Some(locale) = config.optional_text("locale")? {
            let language = locale.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
            if !["en", "english", "root"].contains(&language.as_str()) {
                return Err(
                    config.unusable("locale", format!("unable to use [{locale}]: only English is supported"))
                );
            }
        }
        let output = match config.optional_text("output_format")? {
            None => Pattern::parse("yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
            Some(name) => Pattern::parse(&name),
        }
        .map_err(|reason| config.unusable("output_format", reason))?;
        Ok(Self { field, target, formats, offset, output })
    }

    fn parse(&self, text: &str) -> Option<OffsetDateTime> {
        self.formats.iter().find_map(|format| match format {
            Format::Iso8601 => pattern::parse_iso8601(text, self.offset),
            Format::Unix => {
                let seconds: f64 = text.parse().ok()?;
                from_millis((seconds * 1000.0).round())
            }
            Format::UnixMs => from_millis(text.parse().ok()?),
            Format::Tai64n => tai64n(text),
            Format::Pattern(pattern) => pattern.read(text, self.offset),
        })
    }
}

impl Processor for Date {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let text = match document.get_optional(&self.field, false)? {
            None => {
                return Err(ProcessorError::Null {
                    path: self.field.clone(),
                    refusal: "cannot extract date".into(),
                });
            }
            Some(value @ (Value::String(_) | Value::Number(_))) => as_text(value),
            Some(other) => {
                return Err(ProcessorError::Cast {
                    path: self.field.clone(),
                    found: java_type(other),
                    expected: "java.lang.String",
                });
            }
        };
        let date = self.parse(&text).ok_or(ProcessorError::Date { value: text })?;
        document.set(&self.target, Value::String(self.output.write(date.to_offset(self.offset))))
    }
}

fn from_millis(millis: f64) -> Option<OffsetDateTime> {
    // Years -9999 to 9999 are what the calendar of `time` covers: 3e14 milliseconds either way.
    if !millis.is_finite() || millis.abs() > 2.5e14 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    OffsetDateTime::UNIX_EPOCH.checked_add(Duration::milliseconds(millis as i64))
}

/// `@` and 24 hexadecimal digits: seconds since the epoch plus 2^62 (and ten leap seconds), then nanoseconds.
fn tai64n(text: &str) -> Option<OffsetDateTime> {
    let text = text.strip_prefix('@').unwrap_or(text);
    let seconds = i64::from_str_radix(text.get(1..16)?, 16).ok()?;
    let nanos = i64::from_str_radix(text.get(16..24)?, 16).ok()?;
    OffsetDateTime::from_unix_timestamp(seconds.checked_sub(10)?)
        .ok()?
        .checked_add(Duration::nanoseconds(nanos))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::pipelines::processors::check;

    fn date(format: &str, value: Value) -> Result<String, String> {
        check(json!({"date": {"field": "a", "formats": [format]}}), json!({"a": value}))
            .map(|source| source["@timestamp"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn formats_are_read() {
        for (format, value, expected) in [
            ("ISO8601", json!("2016-04-05T11:12:12.345Z"), "2016-04-05T11:12:12.345Z"),
            ("ISO8601", json!("2016-04-05"), "2016-04-05T00:00:00.000Z"),
            ("ISO8601", json!("2016-04-05T11:12:12+0200"), "2016-04-05T09:12:12.000Z"),
            ("UNIX", json!(1_500_000_000), "2017-07-14T02:40:00.000Z"),
            ("UNIX", json!("1500000000.5"), "2017-07-14T02:40:00.500Z"),
            ("UNIX_MS", json!(1_500_000_000_123_i64), "2017-07-14T02:40:00.123Z"),
            ("TAI64N", json!("@4000000050d506482dbdf024"), "2012-12-22T01:00:46.767Z"),
            ("yyyy-MM-dd HH:mm:ss", json!("2020-02-29 23:59:59"), "2020-02-29T23:59:59.000Z"),
            ("dd/MM/yyyy", json!("05/04/2016"), "2016-04-05T00:00:00.000Z"),
            ("dd/MMM/yyyy:HH:mm:ss Z", json!("10/Oct/2000:13:55:36 -0700"), "2000-10-10T20:55:36.000Z"),
            ("EEE, d MMM yyyy hh:mm a", json!("Wed, 1 Jan 2020 12:05 PM"), "2020-01-01T12:05:00.000Z"),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", json!("2020-01-01T00:00:00.5+01:00"), ""),
        ] {
            let read = date(format, value);
            if expected.is_empty() {
                assert!(read.is_err(), "{format}: {read:?}");
            } else {
                assert_eq!(read.unwrap(), expected, "{format}");
            }
        }
    }

    #[test]
    fn zone_target_and_output_format_are_used() {
        assert_eq!(
            check(
                json!({"date": {"field": "a", "target_field": "b", "formats": ["dd.MM.yyyy HH:mm"],
                       "timezone": "+02:00", "output_format": "yyyy/MM/dd HH:mm XXX"}}),
                json!({"a": "01.06.2020 10:30"}),
            )
            .unwrap(),
            json!({"a": "01.06.2020 10:30", "b": "2020/06/01 10:30 +02:00"})
        );
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for (format, value, message) in [
            ("ISO8601", json!("tomorrow"), "unable to parse date [tomorrow]"),
            ("yyyy-MM-dd", json!("2020-02-30"), "unable to parse date [2020-02-30]"),
            ("yyyy-MM-dd", json!("2020-02-03x"), "unable to parse date [2020-02-03x]"),
            ("ISO8601", Value::Null, "field [a] is null, cannot extract date"),
            (
                "ISO8601",
                json!([1]),
                "field [a] of type [java.util.ArrayList] cannot be cast to [java.lang.String]",
            ),
        ] {
            assert_eq!(date(format, value).unwrap_err(), message);
        }
        for parameters in [
            json!({"field": "a"}),
            json!({"field": "a", "formats": ["bbb"]}),
            json!({"field": "a", "formats": ["ISO8601"], "timezone": "Europe/Amsterdam"}),
            json!({"field": "a", "formats": ["ISO8601"], "locale": "fr"}),
        ] {
            assert!(
                check(json!({"date": parameters}), json!({"a": "x"})).unwrap_err().starts_with("config: ")
            );
        }
    }
}
