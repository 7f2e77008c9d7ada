//! Time zones: fixed UTC offsets, and named zones of the tz database.

use std::sync::{Arc, LazyLock, OnceLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use time::{OffsetDateTime, UtcOffset};

/// Largest difference between local time and UTC, in milliseconds.
const FARTHEST: i64 = 26 * 3_600_000;
/// Time up to which daylight saving rules of named zones are computed, in milliseconds since the epoch (the
/// year 2500); after it the last offset applies.
const END_OF_RULES: i64 = 16_725_225_600_000;

/// A time zone: the offset of local clocks from UTC at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Zone {
    /// A fixed offset in milliseconds, positive if local clocks are ahead of UTC.
    Fixed(i64),
    /// A named zone, whose offset changes by rules.
    Named(Arc<NamedZone>),
}

/// A named zone of the tz database.
#[derive(Debug)]
pub struct NamedZone {
    name: String,
    /// Knows the abbreviations, such as `CEST`.
    rules: TimeZone,
    /// Start (milliseconds since the epoch) and offset (milliseconds) of each range; the first starts at
    /// `i64::MIN`.
    ranges: Vec<(i64, i64)>,
}

impl Eq for NamedZone {}

impl PartialEq for NamedZone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Result of converting a local time to UTC.
#[derive(Debug, PartialEq)]
pub enum Moment {
    /// The local time occurs, in milliseconds since the epoch; if twice, this is the first time.
    At(i64),
    /// The local time does not occur, because clocks were put forward over it at `transition`; until then,
    /// they were `before` ahead of UTC.
    Gap {
        /// Time at which clocks were put forward, in milliseconds since the epoch.
        transition: i64,
        /// Offset before the transition, in milliseconds.
        before: i64,
    },
}

/// A range of time with a constant offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffsetRange {
    /// Start of the range, in milliseconds since the epoch; `i64::MIN` if unlimited.
    pub start: i64,
    /// End of the range, exclusive, in milliseconds since the epoch; `i64::MAX` if unlimited.
    pub end: i64,
    /// Offset of local clocks from UTC, in milliseconds.
    pub offset: i64,
}

impl Default for Zone {
    fn default() -> Self {
        Zone::UTC
    }
}

impl Zone {
    /// The zone with the offset 0.
    pub const UTC: Zone = Zone::Fixed(0);

    /// Parses `Z`, `+01:00`, `UTC+1`, `Europe/Berlin` and the like; names are case-sensitive. `None` if
    /// unknown.
    pub fn parse(text: &str) -> Option<Self> {
        if matches!(text, "Z" | "UTC" | "GMT" | "UT") {
            return Some(Zone::UTC);
        }
        if text.starts_with(['+', '-']) {
            return parse_offset(text).map(Zone::Fixed);
        }
        for prefix in ["UTC", "GMT", "UT"] {
            if let Some(offset) = text.strip_prefix(prefix)
                && offset.starts_with(['+', '-'])
            {
                return parse_offset(offset).map(Zone::Fixed);
            }
        }
        named(text).map(Zone::Named)
    }

    /// Parses the zone at the end of a date. Elasticsearch knows the abbreviations that are names in the tz database where a request names
    /// a zone, but not in dates.
    pub(crate) fn parse_in_date(text: &str) -> Option<Self> {
        Self::parse(text).filter(|_| !matches!(text, "EST" | "HST" | "MST" | "ROC"))
    }

    /// Name in the tz database; `None` for a fixed offset, which is its own name.
    pub fn name(&self) -> Option<&str> {
        match self {
            Zone::Fixed(_) => None,
            Zone::Named(zone) => Some(&zone.name),
        }
    }

    /// Offset of local clocks from UTC at a time; both in milliseconds.
    pub fn offset_at(&self, at: i64) -> i64 {
        self.range_at(at).offset
    }

    /// A date with the offset that the zone has then; `None` if local clocks are outside the years -9999 to 9999.
    pub fn local(&self, date: OffsetDateTime) -> Option<OffsetDateTime> {
        let seconds = self.offset_at(date.unix_timestamp().saturating_mul(1000)) / 1000;
        date.checked_to_offset(UtcOffset::from_whole_seconds(i32::try_from(seconds).ok()?).ok()?)
    }

    /// Range of constant offset that contains a time, given in milliseconds since the epoch.
    pub fn range_at(&self, at: i64) -> OffsetRange {
        match self {
            Zone::Fixed(offset) => OffsetRange { start: i64::MIN, end: i64::MAX, offset: *offset },
            Zone::Named(zone) => zone.range(zone.ranges.partition_point(|(start, _)| *start <= at) - 1),
        }
    }

    /// First time at which local clocks show `local`, in milliseconds.
    pub fn moment(&self, local: i64) -> Moment {
        let zone = match self {
            Zone::Fixed(offset) => return Moment::At(local.saturating_sub(*offset)),
            Zone::Named(zone) => zone,
        };
        let earliest = local.saturating_sub(FARTHEST);
        let first = zone.ranges.partition_point(|(start, _)| *start <= earliest) - 1;
        let mut place = first;
        loop {
            let range = zone.range(place);
            let at = local.saturating_sub(range.offset);
            if at >= range.start && at < range.end {
                return Moment::At(at);
            }
            // Not yet in this range, behind the end of the one before.
            if at < range.start && place > first {
                let before = zone.range(place - 1).offset;
                return Moment::Gap { transition: range.start, before };
            }
            if place + 1 == zone.ranges.len() {
                return Moment::At(at);
            }
            place += 1;
        }
    }

    /// Converts a local time to UTC, in milliseconds. A time that clocks skipped is moved forward by the
    /// length of the gap.
    pub fn to_utc(&self, local: i64) -> i64 {
        match self.moment(local) {
            Moment::At(at) => at,
            Moment::Gap { before, .. } => local.saturating_sub(before),
        }
    }

    /// First moment of a day, month or year that starts at a local time; both in milliseconds.
    pub fn first_of(&self, local: i64) -> i64 {
        match self.moment(local) {
            Moment::At(at) => at,
            Moment::Gap { transition, .. } => transition,
        }
    }
}

impl NamedZone {
    /// The abbreviation of local time at a moment, such as `CEST`, and whether it is daylight saving time; for a zone that has no
    /// abbreviations in letters, `None` in its place.
    pub(crate) fn abbreviation_at(&self, seconds: i64) -> (Option<String>, bool) {
        let Ok(at) = Timestamp::from_second(seconds) else { return (None, false) };
        let info = self.rules.to_offset_info(at);
        let letters =
            Some(info.abbreviation()).filter(|short| short.bytes().all(|byte| byte.is_ascii_alphabetic()));
        (letters.map(str::to_owned), info.dst().is_dst())
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn range(&self, place: usize) -> OffsetRange {
        let (start, offset) = self.ranges[place];
        let end = self.ranges.get(place + 1).map_or(i64::MAX, |next| next.0);
        OffsetRange { start, end, offset }
    }
}

/// Parses an offset, `+1`, `+01`, `+01:30`, `+0130` or `+01:30:15`, to milliseconds; at most 18 hours.
fn parse_offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes() {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let two = |tens: u8, ones: u8| {
        let are_digits = tens.is_ascii_digit() && ones.is_ascii_digit();
        are_digits.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    };
    let (hours, minutes, seconds) = match *rest {
        [h] => (two(b'0', h)?, 0, 0),
        [h, i] => (two(h, i)?, 0, 0),
        [h, i, m, n] | [h, i, b':', m, n] => (two(h, i)?, two(m, n)?, 0),
        [h, i, m, n, s, t] | [h, i, b':', m, n, b':', s, t] => (two(h, i)?, two(m, n)?, two(s, t)?),
        _ => return None,
    };
    let total = hours * 3600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= 18 * 3600).then_some(sign * total * 1000)
}

/// All names of the tz database in ascending order, with the zones that have been asked for: finding one waits for nobody.
static ZONES: LazyLock<Vec<(String, OnceLock<Arc<NamedZone>>)>> = LazyLock::new(|| {
    let mut zones: Vec<_> =
        jiff::tz::db().available().map(|name| (name.to_string(), OnceLock::new())).collect();
    zones.sort_by(|(one, _), (other, _)| one.cmp(other));
    zones
});

fn named(name: &str) -> Option<Arc<NamedZone>> {
    let place = ZONES.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
    let zone = &ZONES[place].1;
    match zone.get() {
        Some(zone) => Some(Arc::clone(zone)),
        None => {
            let computed = Arc::new(compute(name)?);
            Some(Arc::clone(zone.get_or_init(|| computed)))
        }
    }
}

/// The ranges of a zone, from the rules of the tz database.
fn compute(name: &str) -> Option<NamedZone> {
    let zone = TimeZone::get(name).ok()?;
    let millis = |seconds: i32| i64::from(seconds) * 1000;
    // The first offset is that before the first transition, which is in the 19th century at the earliest.
    let first = Timestamp::from_second(-10_000_000_000).ok()?;
    let mut ranges = vec![(i64::MIN, millis(zone.to_offset(first).seconds()))];
    for transition in zone.following(first) {
        let at = transition.timestamp().as_millisecond();
        if at >= END_OF_RULES {
            break;
        }
        let offset = millis(transition.offset().seconds());
        // Names and rules may change without the clocks.
        if ranges.last().is_some_and(|(_, last)| *last != offset) {
            ranges.push((at, offset));
        }
    }
    Some(NamedZone { name: name.to_owned(), rules: zone, ranges })
}

#[cfg(test)]
mod tests {
    use super::{Moment, Zone};

    #[test]
    fn names_and_offsets_are_read() {
        for (text, expected) in [
            ("Z", Some(0)),
            ("UTC", Some(0)),
            ("+1", Some(3_600_000)),
            ("-01:30", Some(-5_400_000)),
            ("+0530", Some(19_800_000)),
            ("UTC+2", Some(7_200_000)),
            ("GMT-03:00", Some(-10_800_000)),
            ("+18:00", Some(64_800_000)),
            ("+18:01", None),
            ("+1:5", None),
            ("+1:30", None),
            ("z", None),
            ("+99", None),
            ("+", None),
            ("Mars", None),
            ("europe/berlin", None),
            ("", None),
            ("../etc/passwd", None),
            ("Europe/Berlin", Some(3_600_000)),
            ("Asia/Kathmandu", Some(20_700_000)),
            ("Etc/GMT+5", Some(-18_000_000)),
            ("CET", Some(3_600_000)),
        ] {
            // In January 2024.
            let offset = Zone::parse(text).map(|zone| zone.offset_at(1_704_067_200_000));
            assert_eq!(offset, expected, "{text}");
        }
    }

    #[test]
    fn clocks_are_put_forward_and_back() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let hour = 3_600_000;
        // 2024-03-31T01:00Z and 2024-10-27T01:00Z.
        let (forward, back) = (1_711_846_800_000, 1_729_990_800_000);
        assert_eq!((berlin.offset_at(forward - 1), berlin.offset_at(forward)), (hour, 2 * hour));
        assert_eq!((berlin.offset_at(back - 1), berlin.offset_at(back)), (2 * hour, hour));
        // Half past two: not there in spring, twice in autumn.
        assert_eq!(
            berlin.moment(forward + hour + hour / 2),
            Moment::Gap { transition: forward, before: hour }
        );
        assert_eq!(berlin.to_utc(forward + hour + hour / 2), forward + hour / 2);
        assert_eq!(berlin.to_utc(back + hour + hour / 2), back - hour / 2);
        assert_eq!(berlin.to_utc(back + 2 * hour), back + hour);
        // Summer time in the year 2400 too.
        assert_eq!(berlin.offset_at(13_585_622_400_000), 2 * hour);
    }
}
