//! Offsets from UTC in dates.

use time::UtcOffset;

/// Largest offset, in seconds.
const MOST: i32 = 18 * 3600;

/// How an offset is written: `+01`, `+0100`, `+01:00` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetForm {
    colons: bool,
    minutes: Minutes,
    /// Whether seconds are written where there are any.
    seconds: bool,
    /// How no offset is written.
    zero: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minutes {
    Always,
    IfAny,
}

impl OffsetForm {
    /// `+01:00` or, with seconds, `+01:00:30`; `Z` for none.
    pub(super) const WITH_COLONS: Self =
        Self { colons: true, minutes: Minutes::Always, seconds: true, zero: "Z" };

    /// How an offset is written by so many of the letter `X`, `x` or `Z`; `None` if a pattern may not have so many of it.
    pub(super) fn of(letter: char, length: usize) -> Option<Self> {
        let (length, zero) = match (letter, length) {
            ('X', 1..=5) => (length, "Z"),
            ('x', 1) => (length, "+00"),
            ('x', 2 | 4) => (length, "+0000"),
            ('x', 3 | 5) => (length, "+00:00"),
            ('Z', 1..=3) => (2, "+0000"),
            ('Z', 5) => (5, "Z"),
            _ => return None,
        };
        let minutes = if length == 1 { Minutes::IfAny } else { Minutes::Always };
        Some(Self { colons: matches!(length, 3 | 5), minutes, seconds: length >= 4, zero })
    }

    /// Reads an offset. Returns it in seconds, with what follows.
    pub(super) fn read(self, text: &str) -> Option<(i32, &str)> {
        if let Some(rest) = text.strip_prefix(self.zero) {
            return Some((0, rest));
        }
        let (sign, rest) = sign(text)?;
        let (hours, rest) = two(rest)?;
        let part = |rest| {
            let rest: &str = rest;
            two(if self.colons { rest.strip_prefix(':')? } else { rest })
        };
        let (minutes, rest) = match (part(rest), self.minutes) {
            (Some(read), _) => read,
            (None, Minutes::IfAny) => (0, rest),
            (None, Minutes::Always) => return None,
        };
        let (seconds, rest) = part(rest).filter(|_| self.seconds).unwrap_or((0, rest));
        total(sign, hours, minutes, seconds).map(|offset| (offset, rest))
    }

    pub(super) fn write(self, offset: UtcOffset, out: &mut String) {
        if offset.is_utc() {
            out.push_str(self.zero);
            return;
        }
        let (hours, minutes, seconds) = offset.as_hms();
        let (hours, minutes, seconds) =
            (hours.unsigned_abs(), minutes.unsigned_abs(), seconds.unsigned_abs());
        let colon = if self.colons { ":" } else { "" };
        out.push(if offset.is_negative() { '-' } else { '+' });
        out.push_str(&format!("{hours:02}"));
        if self.minutes == Minutes::Always || minutes != 0 {
            out.push_str(&format!("{colon}{minutes:02}"));
        }
        if self.seconds && seconds != 0 {
            out.push_str(&format!("{colon}{seconds:02}"));
        }
    }
}

/// Reads an offset such as `GMT+1` or, with `full`, `GMT+01:00`. Returns it in seconds, with what follows.
pub(super) fn read_localized(text: &str, full: bool) -> Option<(i32, &str)> {
    let rest = text.strip_prefix("GMT")?;
    let Some((sign, behind)) = sign(rest) else { return Some((0, rest)) };
    let (hours, behind) = match two(behind) {
        Some(read) => read,
        None if !full => digits(behind, 1)?,
        None => return None,
    };
    let minutes = behind.strip_prefix(':').and_then(two);
    let (minutes, rest) = match minutes {
        Some(read) => read,
        None if full => return None,
        None => (0, behind),
    };
    total(sign, hours, minutes, 0).map(|offset| (offset, rest))
}

/// Writes an offset such as `GMT+1` or, with `full`, `GMT+01:00`.
pub(super) fn write_localized(offset: UtcOffset, full: bool, out: &mut String) {
    out.push_str("GMT");
    if offset.is_utc() {
        return;
    }
    let (hours, minutes, _) = offset.as_hms();
    let (hours, minutes) = (hours.unsigned_abs(), minutes.unsigned_abs());
    out.push(if offset.is_negative() { '-' } else { '+' });
    match full {
        true => out.push_str(&format!("{hours:02}:{minutes:02}")),
        false if minutes == 0 => out.push_str(&hours.to_string()),
        false => out.push_str(&format!("{hours}:{minutes:02}")),
    }
}

fn sign(text: &str) -> Option<(i32, &str)> {
    text.strip_prefix('+').map(|rest| (1, rest)).or_else(|| text.strip_prefix('-').map(|rest| (-1, rest)))
}

fn two(text: &str) -> Option<(i32, &str)> {
    digits(text, 2)
}

fn digits(text: &str, count: usize) -> Option<(i32, &str)> {
    let (digits, rest) = text.split_at_checked(count)?;
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if are_digits { Some((digits.parse().ok()?, rest)) } else { None }
}

fn total(sign: i32, hours: i32, minutes: i32, seconds: i32) -> Option<i32> {
    let total = hours * 3600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= MOST).then_some(sign * total)
}
