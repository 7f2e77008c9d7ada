//! Dates by ISO 8601.

use time::OffsetDateTime;

use super::fields::{Field, Fields};
use super::number::{Digits, Sign};
use crate::zone::Zone;

/// Parses an ISO 8601 date: a year, optionally followed by the rest of a date, a time and an offset. `zone`
/// applies if there is no offset.
pub fn parse_iso8601(text: &str, zone: &Zone) -> Option<OffsetDateTime> {
    let mut fields = Fields::default();
    let mut rest = number(text, Field::Year, 4, &mut fields)?;
    if let Some(after) = rest.strip_prefix('-') {
        rest = number(after, Field::Month, 2, &mut fields)?;
        if let Some(after) = rest.strip_prefix('-') {
            rest = number(after, Field::Day, 2, &mut fields)?;
        }
    }
    if let Some(after) = rest.strip_prefix(['T', 't', ' ']) {
        rest = number(after, Field::Hour, 2, &mut fields)?;
        if let Some(after) = rest.strip_prefix(':') {
            rest = number(after, Field::Minute, 2, &mut fields)?;
            if let Some(after) = rest.strip_prefix(':') {
                rest = number(after, Field::Second, 2, &mut fields)?;
                if let Some(after) = rest.strip_prefix(['.', ',']) {
                    let (value, length, after) = Digits::new(1, 9, Sign::Never).read(after)?;
                    if after.starts_with(|next: char| next.is_ascii_digit()) {
                        return None;
                    }
                    fields.set_fraction(value, length)?;
                    rest = after;
                }
            }
        }
    }
    if !rest.is_empty() {
        let (offset, after) = leading_offset(rest)?;
        fields.zone = Some(Zone::Fixed(offset * 1000));
        rest = after;
    }
    if rest.is_empty() { super::at(fields.earliest(1970)?, zone) } else { None }
}

fn number<'t>(text: &'t str, field: Field, length: usize, fields: &mut Fields) -> Option<&'t str> {
    let (value, _, rest) = Digits::new(length, length, Sign::Never).read(text)?;
    fields.set(field, value)?;
    Some(rest)
}

/// Reads an offset in any form, `Z`, `+01`, `+0100` or `+01:00`, in seconds.
fn leading_offset(text: &str) -> Option<(i64, &str)> {
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return Some((0, rest));
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let two = |text| Digits::new(2, 2, Sign::Never).read(text);
    let (hours, _, rest) = two(&text[1..])?;
    let after = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, _, rest) = two(after).unwrap_or((0, 0, rest));
    (hours <= 18 && minutes <= 59).then_some((sign * (hours * 3600 + minutes * 60), rest))
}
