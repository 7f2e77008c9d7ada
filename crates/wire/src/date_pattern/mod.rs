//! Java date patterns (`DateTimeFormatter`), for parsing and formatting.
//!
//! A text is read and a date is written as Elasticsearch does it with the formatter of the same pattern. Letters whose meaning depends
//! on a region, or that no text can be read by, are refused with the pattern.

mod fields;
mod iso8601;
mod number;
mod offset;
mod part;
mod pattern;
mod zone_name;

use time::OffsetDateTime;

use self::fields::{Field, Fields};
use self::part::Part;
use self::zone_name::Known;
use crate::zone::Zone;

pub use self::iso8601::IsoDate;

/// A parsed pattern such as `dd/MMM/yyyy:HH:mm:ss Z`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatePattern {
    parts: Vec<Part>,
}

impl DatePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A sentence, beginning with `Invalid format`, when the pattern is empty, malformed, or contains a letter that is not
    /// supported.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        match pattern::parse(pattern, false) {
            Ok(parts) if parts.is_empty() => Err("Invalid format: the pattern is empty".into()),
            Ok(parts) => Ok(Self { parts }),
            Err(reason) => Err(format!("Invalid format: [{pattern}]: {reason}")),
        }
    }

    /// Parses a pattern in which a letter may have bounds for the number of its digits: `M{1,2}`. Java has no such notation; the
    /// formats that Elasticsearch knows by names need it.
    ///
    /// # Errors
    /// As [`DatePattern::parse`].
    pub fn with_bounds(pattern: &str) -> Result<Self, String> {
        Ok(Self { parts: pattern::parse(pattern, true)? })
    }

    /// Parses a date; `zone` applies if the text has no offset, and this year if it has none. `None` if the text does not match.
    pub fn read(&self, text: &str, zone: &Zone) -> Option<OffsetDateTime> {
        self.read_with_zone(text, zone).map(|(date, _)| date)
    }

    /// Parses a date as [`DatePattern::read`] does, with the time zone or offset that the text gives.
    pub fn read_with_zone(&self, text: &str, zone: &Zone) -> Option<(OffsetDateTime, Option<Zone>)> {
        let year = i64::from(OffsetDateTime::now_utc().year());
        let (local, given) = self.fields(text)?.earliest(year)?;
        Some((at((local, given.clone()), zone)?, given))
    }

    /// Parses a date as a value of a field: the first moment that the text stands for, in 1970 if it has no year. Days that a month
    /// does not have are refused. `None` if the text does not match.
    pub fn first_moment(&self, text: &str, zone: &Zone) -> Option<OffsetDateTime> {
        at(self.fields(text)?.earliest(1970)?, zone)
    }

    /// Parses a date as the upper end of a range: what the text leaves open of the time of the day is the last that there is. `None` if
    /// the text does not match.
    pub fn last_moment(&self, text: &str, zone: &Zone) -> Option<OffsetDateTime> {
        at(self.fields(text)?.latest(|field| self.has(field))?, zone)
    }

    /// Formats a date. The time zone of one without an offset is called `UTC`.
    pub fn write(&self, date: OffsetDateTime) -> String {
        self.written(date, if date.offset().is_utc() { Known::Utc } else { Known::Offset })
    }

    /// Formats a date that is in the local time of a zone, as [`DatePattern::write`] does.
    pub fn write_local(&self, date: OffsetDateTime, zone: &Zone) -> String {
        match zone {
            Zone::Named(zone) => self.written(date, Known::Named(zone)),
            Zone::Fixed(_) => self.write(date),
        }
    }

    /// Formats a date that is in the local time of a zone. A fixed zone has no name, so that its offset is written instead, `Z` for UTC.
    pub fn write_in(&self, date: OffsetDateTime, zone: &Zone) -> String {
        self.written(date, if let Zone::Named(zone) = zone { Known::Named(zone) } else { Known::Offset })
    }

    fn written(&self, date: OffsetDateTime, zone: Known<'_>) -> String {
        let mut out = String::new();
        self.parts.iter().for_each(|part| part.write(date, zone, &mut out));
        out
    }

    /// The fields of a text; `None` if it does not match.
    fn fields(&self, text: &str) -> Option<Fields> {
        let mut fields = Fields::default();
        let rest = Part::read_all(&self.parts, text, &mut fields)?;
        rest.is_empty().then_some(fields)
    }

    fn has(&self, field: Field) -> bool {
        Part::any(&self.parts, &|part| part.field() == Some(field))
    }
}

/// The moment of a local date and time with its offset in the zone that the text names, or in `zone`. `None` if it is outside the years
/// -9999 to 9999 there or in UTC.
fn at((local, named): (time::PrimitiveDateTime, Option<Zone>), zone: &Zone) -> Option<OffsetDateTime> {
    let zone = named.as_ref().unwrap_or(zone);
    let millis = zone.to_utc(local.assume_utc().unix_timestamp() * 1000);
    let utc = OffsetDateTime::from_unix_timestamp(millis.div_euclid(1000)).ok()?;
    zone.local(utc.replace_nanosecond(local.nanosecond()).ok()?)
}

#[cfg(test)]
mod tests;
