//! Reading patterns. Errors are in Java's words where Java has them.

use super::fields::Field;
use super::number::{Digits, Sign};
use super::offset::OffsetForm;
use super::part::Part;
use super::zone_name::Style;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const SHORT_MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const SHORT_DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const QUARTERS: [&str; 4] = ["Q1", "Q2", "Q3", "Q4"];
const HALVES: [&str; 2] = ["AM", "PM"];
const ERAS: [&str; 2] = ["BC", "AD"];

/// Most digits that a number may have.
const MOST_DIGITS: usize = 19;
/// Deepest nesting of optional parts: each level takes some of the stack when a text is read.
const MOST_LEVELS: usize = 32;

/// Reads a pattern; with `bounds`, letters may have bounds for their digits.
///
/// # Errors
/// Why the pattern cannot be used: a letter or a character in it, a quotation or a bracket without its end.
pub(super) fn parse(pattern: &str, bounds: bool) -> Result<Vec<Part>, String> {
    let mut open: Vec<Parts> = vec![Parts::default()];
    let mut rest = pattern;
    while let Some(char) = rest.chars().next() {
        let levels = open.len();
        let innermost = open.last_mut().ok_or("a bracket is closed twice")?;
        match char {
            '\'' => {
                let (literal, behind) = quoted(&rest[1..])
                    .ok_or_else(|| format!("Pattern ends with an incomplete string literal: {pattern}"))?;
                innermost.literal(&literal);
                rest = behind;
                continue;
            }
            letter if letter.is_ascii_alphabetic() => {
                let length = rest.chars().take_while(|next| *next == letter).count();
                rest = &rest[length..];
                let mut part = of_letter(letter, length)?;
                if let (true, Some((least, most, behind))) = (bounds, bounds_in(rest)) {
                    bound(&mut part, length, least, most);
                    rest = behind;
                }
                innermost.push(part);
                continue;
            }
            '[' if levels > MOST_LEVELS => {
                return Err(format!("optional parts are nested more than [{MOST_LEVELS}] levels deep"));
            }
            '[' => open.push(Parts::default()),
            ']' if levels == 1 => {
                return Err("Pattern invalid as it contains ] without previous [".to_owned());
            }
            ']' => close(&mut open),
            '{' | '}' | '#' => return Err(format!("Pattern includes reserved character: '{char}'")),
            other => innermost.literal(other.encode_utf8(&mut [0; 4])),
        }
        rest = &rest[char.len_utf8()..];
    }
    // Java closes what is open at the end.
    while open.len() > 1 {
        close(&mut open);
    }
    Ok(open.pop().unwrap_or_default().list)
}

/// Ends the innermost optional part.
fn close(open: &mut Vec<Parts>) {
    let inner = open.pop().unwrap_or_default();
    if let Some(around) = open.last_mut().filter(|_| !inner.list.is_empty()) {
        around.push(Part::Optional(inner.list));
    }
}

/// The text up to the end of a quotation, in which two quotes are one, and what follows; `None` if it has no end.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut literal = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once('\'')?;
        literal.push_str(before);
        match behind.strip_prefix('\'') {
            Some(behind) => {
                literal.push('\'');
                rest = behind;
            }
            // Two quotes outside of a quotation.
            None if literal.is_empty() => return Some(("'".to_owned(), behind)),
            None => return Some((literal, behind)),
        }
    }
}

/// Bounds such as `{1,2}`, and what follows.
fn bounds_in(text: &str) -> Option<(usize, usize, &str)> {
    let (bounds, rest) = text.strip_prefix('{')?.split_once('}')?;
    let (least, most) = bounds.split_once(',')?;
    Some((least.parse().ok()?, most.parse().ok()?, rest))
}

fn bound(part: &mut Part, length: usize, least: usize, most: usize) {
    if let Part::Fraction { shown, .. } = part {
        *shown = length;
    }
    if let Some(digits) = part.digits_mut() {
        // A plus says that there are more digits than the letters ask for, which bounds say already.
        let sign = if digits.sign == Sign::Never { Sign::Never } else { Sign::Normal };
        *digits = Digits { padded: length, ..Digits::new(least, most, sign) };
    }
}

#[derive(Debug, Default)]
struct Parts {
    list: Vec<Part>,
    /// Place of the number from which those of fixed length right behind it take their digits.
    first_number: Option<usize>,
}

impl Parts {
    fn literal(&mut self, literal: &str) {
        self.first_number = None;
        match self.list.last_mut() {
            Some(Part::Literal(before)) => before.push_str(literal),
            _ => self.list.push(Part::Literal(literal.to_owned())),
        }
    }

    fn push(&mut self, mut part: Part) {
        match (part.digits_mut().copied(), self.first_number) {
            (None, _) => self.first_number = None,
            (Some(digits), Some(first)) if digits.are_fixed() => {
                if let Some(before) = self.list.get_mut(first).and_then(Part::digits_mut) {
                    before.reserved += digits.most;
                }
            }
            (Some(_), _) => self.first_number = Some(self.list.len()),
        }
        self.list.push(part);
    }
}

/// The part of a letter.
///
/// # Errors
/// When the letter is unknown, not supported, or there are too many or too few of it.
fn of_letter(letter: char, length: usize) -> Result<Part, String> {
    let too_many = || Err(format!("Too many pattern letters: {letter}"));
    let unsupported = |what: &str| Err(format!("{what} [{letter}] are not supported by this server"));
    let field = match letter {
        'G' => Field::Era,
        'u' => Field::Year,
        'y' => Field::YearOfEra,
        'Y' => Field::WeekYear,
        'w' => Field::Week,
        'Q' | 'q' => Field::Quarter,
        'M' | 'L' => Field::Month,
        'd' => Field::Day,
        'D' => Field::DayOfYear,
        'E' | 'e' | 'c' => Field::DayOfWeek,
        'a' => Field::HalfDay,
        'H' => Field::Hour,
        'k' => Field::ClockHour,
        'K' => Field::HalfDayHour,
        'h' => Field::HalfDayClockHour,
        'm' => Field::Minute,
        's' => Field::Second,
        'S' | 'n' => Field::Nano,
        'A' => Field::MilliOfDay,
        'N' => Field::NanoOfDay,
        'Z' if length == 4 => return Ok(Part::LocalizedOffset { full: true }),
        'X' | 'x' | 'Z' => {
            return OffsetForm::of(letter, length)
                .map(Part::Offset)
                .ok_or_else(|| format!("Too many pattern letters: {letter}"));
        }
        'O' if matches!(length, 1 | 4) => return Ok(Part::LocalizedOffset { full: length == 4 }),
        'O' => return Err("Pattern letter count must be 1 or 4: O".to_owned()),
        'V' if length == 2 => return Ok(Part::Zone(Style::Id)),
        'V' => return Err("Pattern letter count must be 2: V".to_owned()),
        'z' if length < 4 => return Ok(Part::Zone(Style::Short)),
        'z' if length == 4 => return Ok(Part::Zone(Style::Long)),
        'z' => return too_many(),
        'v' => return unsupported("names of time zones without their daylight saving time"),
        'W' | 'F' => return unsupported("weeks of a month"),
        'g' => return unsupported("Julian days"),
        'B' => return unsupported("periods of the day"),
        'p' => return unsupported("numbers that are padded with spaces"),
        _ => return Err(format!("Unknown pattern letter: {letter}")),
    };
    let name = |names: &'static [&'static str], first| Ok(Part::Name { field, names, first });
    let number = |least, most, sign| Ok(Part::Number { field, digits: Digits::new(least, most, sign) });
    match (letter, length) {
        (_, 20..) => {
            Err(format!("The minimum width must be from 1 to {MOST_DIGITS} inclusive but was {length}"))
        }
        ('u' | 'y' | 'Y', 2) => Ok(Part::ShortYear { field, digits: Digits::new(2, 2, Sign::Never) }),
        ('u' | 'y' | 'Y', 1 | 3) => number(length, MOST_DIGITS, Sign::Normal),
        ('u' | 'y' | 'Y', _) => number(length, MOST_DIGITS, Sign::ExceedsPad),
        ('S', 1..=9) => {
            Ok(Part::Fraction { digits: Digits::new(length, length, Sign::Never), shown: length })
        }
        ('n' | 'A' | 'N', _) => number(length, MOST_DIGITS, Sign::Never),
        ('D', 1) => number(1, MOST_DIGITS, Sign::Normal),
        ('D', 2 | 3) => number(length, 3, Sign::Never),
        ('w' | 'e', 1 | 2) => number(length, 2, Sign::Never),
        ('c', 1) => number(1, 1, Sign::Never),
        ('c', 2) => Err("Invalid pattern \"cc\"".to_owned()),
        ('E', 1..=3) | ('e' | 'c', 3) => name(&SHORT_DAYS, 1),
        ('E' | 'e' | 'c', 4) => name(&DAYS, 1),
        ('a', 1) => name(&HALVES, 0),
        ('G', 1..=3) => name(&ERAS, 0),
        ('M' | 'L', 3) => name(&SHORT_MONTHS, 1),
        ('M' | 'L', 4) => name(&MONTHS, 1),
        ('Q' | 'q', 3) => name(&QUARTERS, 1),
        ('M' | 'L' | 'Q' | 'q', 1) | ('d' | 'H' | 'k' | 'K' | 'h' | 'm' | 's', 1) => {
            number(1, MOST_DIGITS, Sign::Normal)
        }
        ('M' | 'L' | 'Q' | 'q', 2) | ('d' | 'H' | 'k' | 'K' | 'h' | 'm' | 's', 2) => {
            number(2, 2, Sign::Never)
        }
        ('G' | 'Q' | 'q' | 'M' | 'L' | 'E' | 'e' | 'c', 4 | 5) => Err(format!(
            "[{length}] pattern letters [{letter}] are not supported by this server: no text can be read by them"
        )),
        _ => too_many(),
    }
}
