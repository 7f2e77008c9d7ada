//! Names of time zones in dates: those of the tz database, short ones (`CEST`) and long ones (`Central European Summer Time`).

use std::collections::HashMap;
use std::sync::LazyLock;

use time::OffsetDateTime;

use super::offset::{OffsetForm, write_localized};
use crate::zone::{NamedZone, Zone};

/// Longest name of a time zone, in bytes.
const LONGEST: usize = 48;

/// Names of time zones by abbreviations that mean one zone to nearly everybody.
const ABBREVIATIONS: [(&str, &str); 19] = [
    ("AKDT", "America/Anchorage"),
    ("AKST", "America/Anchorage"),
    ("CDT", "America/Chicago"),
    ("CEST", "Europe/Paris"),
    ("CET", "Europe/Paris"),
    ("CST", "America/Chicago"),
    ("EDT", "America/New_York"),
    ("EEST", "Europe/Bucharest"),
    ("EET", "Europe/Bucharest"),
    ("EST", "America/New_York"),
    ("HST", "Pacific/Honolulu"),
    ("JST", "Asia/Tokyo"),
    ("MDT", "America/Denver"),
    ("MSK", "Europe/Moscow"),
    ("MST", "America/Denver"),
    ("PDT", "America/Los_Angeles"),
    ("PST", "America/Los_Angeles"),
    ("WEST", "Europe/Lisbon"),
    ("WET", "Europe/Lisbon"),
];

/// The English names of Unicode's CLDR 47, as Java 25 has them. Rows: the name of standard time; that of daylight saving time, empty for
/// a zone without it; names in the tz database, of which the first is the zone that a text with such a name means.
const LONG_NAMES: &str = include_str!("zone_names.tsv");

/// Long names of zones.
#[derive(Default)]
struct LongNames {
    /// By the name in the tz database: the name of standard time, and that of daylight saving time or an empty one.
    of_zones: HashMap<&'static str, (&'static str, &'static str)>,
    /// The zone that a text means by a long name.
    meant: HashMap<&'static str, &'static str>,
}

static LONG: LazyLock<LongNames> = LazyLock::new(|| {
    let mut names = LongNames::default();
    for row in LONG_NAMES.lines() {
        let mut cells = row.splitn(3, '\t');
        let mut cell = || cells.next().unwrap_or_default();
        let (standard, daylight, zones) = (cell(), cell(), cell());
        for zone in zones.split(' ') {
            names.of_zones.insert(zone, (standard, daylight));
            names.meant.entry(standard).or_insert(zone);
            names.meant.entry(daylight).or_insert(zone);
        }
    }
    names.meant.remove("");
    names
});

/// How a pattern names time zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `VV`: the name in the tz database.
    Id,
    /// `z`: an abbreviation, or the offset.
    Short,
    /// `zzzz`: words.
    Long,
}

/// What the time zone of a date that is written is known by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Known<'z> {
    Named(&'z NamedZone),
    /// UTC where it is a zone, and no offset.
    Utc,
    Offset,
}

impl Style {
    /// Reads the longest name of a time zone. Returns the zone with what follows. Every style reads names of the tz database too.
    pub(super) fn read(self, text: &str) -> Option<(Zone, &str)> {
        if text.starts_with(['+', '-']) {
            let (seconds, rest) = OffsetForm::WITH_COLONS.read(text)?;
            return Some((Zone::Fixed(i64::from(seconds) * 1000), rest));
        }
        let is_part = |char: &char| {
            char.is_alphanumeric() || "/_+-:".contains(*char) || self == Self::Long && " .&’".contains(*char)
        };
        let ends = text.char_indices().take_while(|(at, char)| *at < LONGEST && is_part(char));
        let ends: Vec<usize> = ends.map(|(at, char)| at + char.len_utf8()).collect();
        ends.into_iter().rev().find_map(|end| {
            let (name, rest) = text.split_at(end);
            Some((self.named(name)?, rest))
        })
    }

    fn named(self, name: &str) -> Option<Zone> {
        let meant = match self {
            Self::Id => None,
            Self::Short => ABBREVIATIONS.iter().find(|(short, _)| *short == name).map(|(_, zone)| *zone),
            Self::Long => LONG.meant.get(name).copied(),
        };
        meant.map_or_else(|| Zone::parse_in_date(name), Zone::parse)
    }

    pub(super) fn write(self, date: OffsetDateTime, zone: Known<'_>, out: &mut String) {
        match (self, zone) {
            (_, Known::Offset) => OffsetForm::WITH_COLONS.write(date.offset(), out),
            (Self::Long, Known::Utc) => out.push_str("Coordinated Universal Time"),
            (_, Known::Utc) => out.push_str("UTC"),
            (Self::Id, Known::Named(zone)) => out.push_str(zone.name()),
            (style, Known::Named(zone)) => {
                let (short, is_daylight) = zone.abbreviation_at(date.unix_timestamp());
                let long = match LONG.of_zones.get(zone.name()).filter(|_| style == Self::Long) {
                    Some((_, daylight)) if is_daylight && !daylight.is_empty() => Some(*daylight),
                    Some((standard, _)) => Some(*standard),
                    None => None,
                };
                match long.or(short.as_deref()) {
                    Some(name) => out.push_str(name),
                    None => write_localized(date.offset(), true, out),
                }
            }
        }
    }
}
