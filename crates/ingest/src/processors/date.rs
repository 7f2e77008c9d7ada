//! `date`, which converts text in one of several formats to a date in another.

use serde_json::Value;
use sparrow_wire::date_format::{DateFormat, parse_formats};
use sparrow_wire::{DatePattern, Zone};
use time::{Duration, OffsetDateTime};

use crate::chain::Processor;
use crate::config::Config;
use crate::document::{Document, as_text, java_type};
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, list, of_field, target, text};
use crate::template::{Escape, Template};

/// Parses a date and writes it in another format.
#[derive(Debug)]
pub(crate) struct Date {
    field: String,
    target: String,
    formats: Vec<Format>,
    zone: TimeZone,
    output: DatePattern,
}

/// A format in which dates are read.
#[derive(Debug)]
pub(super) enum Format {
    Unix,
    UnixMs,
    Tai64n,
    /// A format of date fields, with its alternatives.
    OfFields(Vec<DateFormat>),
}

/// The time zone of dates that name none, which is also that of the output.
#[derive(Debug)]
enum TimeZone {
    Fixed(Zone),
    /// A template, whose text names the zone.
    Template(Template),
}

pub(super) fn date_shape() -> Shape {
    of_field([target(), ("formats", list(text()))])
        .and(["timezone", "locale", "output_format"].map(|name| (name, text())))
        .needs(&["field", "formats"])
}

impl Date {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let target = config.optional_text("target_field")?.unwrap_or_else(|| "@timestamp".into());
        let formats = formats(config, "formats")?.ok_or_else(|| config.missing("formats"))?;
        let zone = TimeZone::from_config(config)?;
        english_only(config)?;
        let output = config.optional_text("output_format")?;
        let output = DatePattern::parse(output.as_deref().unwrap_or("yyyy-MM-dd'T'HH:mm:ss.SSSXXX"))
            .map_err(|reason| config.unusable("output_format", reason))?;
        Ok(Self { field, target, formats, zone, output })
    }
}

impl Processor for Date {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let text = text_of(document, &self.field)?;
        let zone = self.zone.of(document).ok_or_else(|| ProcessorError::Date { value: text.clone() })?;
        let date = parse(&self.formats, &text, &zone).ok_or(ProcessorError::Date { value: text })?;
        document.set(&self.target, Value::String(self.output.write_local(date, &zone)))
    }
}

/// The date in the value of a field, which may be a number.
pub(super) fn text_of(document: &Document, field: &str) -> Result<String, ProcessorError> {
    match document.get_optional(field, false)? {
        None => Err(ProcessorError::Null { path: field.to_owned(), refusal: "cannot extract date".into() }),
        Some(value @ (Value::String(_) | Value::Number(_))) => Ok(as_text(value)),
        Some(other) => Err(ProcessorError::Cast {
            path: field.to_owned(),
            found: java_type(other),
            expected: "java.lang.String",
        }),
    }
}

/// Parses a text by the first format that matches it, to a date in the local time of the zone.
pub(super) fn parse(formats: &[Format], text: &str, zone: &Zone) -> Option<OffsetDateTime> {
    let date = formats.iter().find_map(|format| match format {
        Format::Unix => {
            let seconds: f64 = text.parse().ok()?;
            // To microseconds first, so that 1.001 does not become 1.000.
            from_millis(((seconds * 1e6).round() / 1e3).trunc())
        }
        Format::UnixMs => from_millis(text.parse().ok()?),
        Format::Tai64n => tai64n(text),
        Format::OfFields(formats) => formats.iter().find_map(|format| format.moment(text, zone)),
    })?;
    zone.local(date)
}

/// Reads an optional list of date formats.
pub(super) fn formats(config: &mut Config, property: &str) -> Result<Option<Vec<Format>>, ConfigError> {
    let Some(names) = config.optional_list(property)? else { return Ok(None) };
    let mut formats = Vec::with_capacity(names.len());
    for name in names {
        let Value::String(name) = name else { return Err(config.wrong_type(property, "string", &name)) };
        formats.push(Format::parse(&name).map_err(|reason| config.unusable(property, reason))?);
    }
    Ok(Some(formats))
}

/// Leaves out the formats that cannot be used of processors and of those inside them. Returns the reasons.
pub(super) fn leave_out_unusable(processors: Option<&mut Value>) -> Vec<String> {
    let list = match processors {
        Some(Value::Array(list)) => list.as_mut_slice(),
        Some(one) => std::slice::from_mut(one),
        None => return Vec::new(),
    };
    let mut reasons = Vec::new();
    for (kind, parameters) in list.iter_mut().filter_map(Value::as_object_mut).flatten() {
        let formats = match kind.as_str() {
            "date" => parameters.get_mut("formats"),
            "date_index_name" => parameters.get_mut("date_formats"),
            _ => None,
        };
        if let Some(Value::Array(formats)) = formats {
            formats.retain(|format| {
                let reason = format.as_str().and_then(|format| Format::parse(format).err());
                reasons.extend(reason.clone());
                reason.is_none()
            });
        }
        for inside in ["processor", "on_failure"] {
            reasons.extend(leave_out_unusable(parameters.get_mut(inside)));
        }
    }
    reasons
}

impl Format {
    /// ISO 8601, which is the default.
    pub(super) fn iso8601() -> Self {
        Self::OfFields(vec![DateFormat::StrictDateOptionalTime])
    }

    /// A format that only processors have, or one of date fields.
    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "ISO8601" => Self::iso8601(),
            "UNIX" => Self::Unix,
            "UNIX_MS" => Self::UnixMs,
            "TAI64N" => Self::Tai64n,
            other => Self::OfFields(parse_formats(other)?),
        })
    }
}

impl TimeZone {
    fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let Some(name) = config.optional_text("timezone")? else { return Ok(Self::Fixed(Zone::UTC)) };
        if name.contains("{{") {
            return Template::parse(&name)
                .map(Self::Template)
                .map_err(|reason| config.unusable("timezone", reason));
        }
        let zone = Zone::parse(&name);
        zone.map(Self::Fixed)
            .ok_or_else(|| config.unusable("timezone", format!("Unknown time-zone ID: {name}")))
    }

    /// The zone for a document; `None` if the document names an unknown one.
    fn of(&self, document: &Document) -> Option<Zone> {
        match self {
            Self::Fixed(zone) => Some(zone.clone()),
            Self::Template(template) => match template.render(document, Escape::Plain).ok()?.as_str() {
                "" => Some(Zone::UTC),
                name => Zone::parse(name),
            },
        }
    }
}

/// Checks that `locale` is English, the only language for names of months and days.
pub(super) fn english_only(config: &mut Config) -> Result<(), ConfigError> {
    let Some(locale) = config.optional_text("locale")? else { return Ok(()) };
    let language = locale.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    if ["en", "english", "root"].contains(&language.as_str()) {
        return Ok(());
    }
    Err(config.unusable("locale", format!("unable to use [{locale}]: only English is supported")))
}

fn from_millis(millis: f64) -> Option<OffsetDateTime> {
    // Years -9999 to 9999 are what the calendar of `time` covers: 3e14 milliseconds either way.
    if !millis.is_finite() || millis.abs() > 2.5e14 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    OffsetDateTime::UNIX_EPOCH.checked_add(Duration::milliseconds(millis as i64))
}

/// Parses a TAI64N timestamp: `@` and 24 hexadecimal digits, of which the first 16 are the seconds since the epoch plus
/// 2^62 (and ten leap seconds), the others nanoseconds.
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

    use crate::processors::check;

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
            ("epoch_second", json!("1688548995.987654321"), "2023-07-05T09:23:15.987Z"),
            ("epoch_millis", json!(1), "1970-01-01T00:00:00.001Z"),
            ("strict_date_optional_time", json!("2020-03"), "2020-03-01T00:00:00.000Z"),
            ("YYYY-ww", json!("2020-33"), "2020-08-10T00:00:00.000Z"),
            ("YYYY-'W'w-e", json!("2020-W1-3"), "2020-01-01T00:00:00.000Z"),
            ("YYYY-ww", json!("2021-53"), ""),
            ("basic_week_date_time", json!("2024W065T050607.089Z"), "2024-02-09T05:06:07.089Z"),
            ("ordinal_date", json!("2024-40"), "2024-02-09T00:00:00.000Z"),
            ("date_hour_minute", json!("2024-2-9T5:06"), "2024-02-09T05:06:00.000Z"),
            ("strict_date_time", json!("2024-02-09"), ""),
            ("strict_date", json!("2024-2-9"), ""),
            ("dd.MM.yyyy||epoch_second", json!(1_707_455_167), "2024-02-09T05:06:07.000Z"),
            ("ISO8601", json!("2016-04-05T11:12:12Europe/Paris"), "2016-04-05T09:12:12.000Z"),
            ("ISO8601", json!("2016-04-05 11:12:12"), ""),
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
    fn zones_have_summer_time() {
        let in_amsterdam = |text: &str, zone: &str| {
            check(
                json!({"date": {"field": "a", "target_field": "a", "formats": ["dd/MM/yyyy HH:mm", "ISO8601"],
                       "timezone": zone}}),
                json!({"a": text, "zone": "Europe/Amsterdam"}),
            )
            .map(|source| source["a"].as_str().unwrap_or_default().to_owned())
        };
        for (zone, expected) in [("Europe/Amsterdam", "+01:00 Europe/Amsterdam"), ("UTC", "Z UTC")] {
            let written = check(
                json!({"date": {"field": "a", "target_field": "a", "formats": ["yyyy-MM-dd"], "timezone": zone,
                       "output_format": "XXX VV"}}),
                json!({"a": "2010-01-12"}),
            );
            assert_eq!(written.unwrap(), json!({"a": expected}));
        }
        for zone in ["Europe/Amsterdam", "{{zone}}"] {
            for (text, expected) in [
                ("12/06/2010 00:00", "2010-06-12T00:00:00.000+02:00"),
                ("12/01/2010 00:00", "2010-01-12T00:00:00.000+01:00"),
                // The clocks passed over this time.
                ("28/03/2010 02:30", "2010-03-28T03:30:00.000+02:00"),
                ("2010-06-12T00:00:00Z", "2010-06-12T02:00:00.000+02:00"),
            ] {
                assert_eq!(in_amsterdam(text, zone).unwrap(), expected, "{zone}");
            }
        }
        assert_eq!(in_amsterdam("2010-06-12", "{{none}}").unwrap(), "2010-06-12T00:00:00.000Z");
        assert_eq!(in_amsterdam("2010", "x{{zone}}").unwrap_err(), "unable to parse date [2010]");
        assert_eq!(
            in_amsterdam("", "Europe/Nowhere").unwrap_err(),
            "config: [timezone] Unknown time-zone ID: Europe/Nowhere"
        );
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for (format, value, message) in [
            ("ISO8601", json!("tomorrow"), "unable to parse date [tomorrow]"),
            ("yyyy-MM-dd", json!("2020-02-30"), "unable to parse date [2020-02-30]"),
            ("yyyy-MM-dd", json!("2020-02-03x"), "unable to parse date [2020-02-03x]"),
            (
                "ISO8601",
                json!("9999-12-31T23:59:59-18:00"),
                "unable to parse date [9999-12-31T23:59:59-18:00]",
            ),
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
            json!({"field": "a", "formats": ["ISO8601"], "timezone": "Nowhere"}),
            json!({"field": "a", "formats": ["ISO8601"], "locale": "fr"}),
        ] {
            assert!(
                check(json!({"date": parameters}), json!({"a": "x"})).unwrap_err().starts_with("config: ")
            );
        }
    }
}
