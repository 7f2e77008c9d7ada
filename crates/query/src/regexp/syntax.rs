//! Reads regular expressions in Lucene's syntax.

use super::expression::{Builder, EMPTY, EVERYTHING, Id, NEVER};
use crate::regexp_flags;

/// Parentheses that may be open at once.
const MAX_DEPTH: usize = 200;

/// Reads an expression.
///
/// # Errors
/// What is wrong and where, in Lucene's words.
pub(super) fn parse(
    text: &str,
    flags: u8,
    case_insensitive: bool,
    builder: &mut Builder,
) -> Result<Id, String> {
    let mut parser =
        Parser { text: text.chars().collect(), at: 0, depth: 0, flags, case_insensitive, builder };
    if parser.text.is_empty() {
        return Ok(EMPTY);
    }
    let id = parser.union()?;
    match parser.peek() {
        None => Ok(id),
        Some(_) => Err(format!("end-of-string expected at position {}", parser.at)),
    }
}

struct Parser<'a> {
    text: Vec<char>,
    at: usize,
    depth: usize,
    flags: u8,
    case_insensitive: bool,
    builder: &'a mut Builder,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn next(&mut self) -> Result<char, String> {
        let next = self.peek().ok_or("unexpected end-of-string")?;
        self.at += 1;
        Ok(next)
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn union(&mut self) -> Result<Id, String> {
        let mut parts = vec![self.intersection()?];
        while self.eat('|') {
            parts.push(self.intersection()?);
        }
        Ok(self.builder.or(parts))
    }

    fn intersection(&mut self) -> Result<Id, String> {
        let mut parts = vec![self.concatenation()?];
        while self.has(regexp_flags::INTERSECTION) && self.eat('&') {
            parts.push(self.concatenation()?);
        }
        Ok(self.builder.and(parts))
    }

    fn concatenation(&mut self) -> Result<Id, String> {
        let mut parts = vec![self.repetition()?];
        while let Some(next) = self.peek() {
            if matches!(next, ')' | '|') || next == '&' && self.has(regexp_flags::INTERSECTION) {
                break;
            }
            parts.push(self.repetition()?);
        }
        let mut whole = EMPTY;
        for part in parts.into_iter().rev() {
            whole = self.builder.cat(part, whole);
        }
        Ok(whole)
    }

    fn repetition(&mut self) -> Result<Id, String> {
        let mut inner = self.complement()?;
        loop {
            inner = match self.peek() {
                Some('?') => self.builder.repeat(inner, 0, Some(1)),
                Some('*') => self.builder.repeat(inner, 0, None),
                Some('+') => self.builder.repeat(inner, 1, None),
                Some('{') => {
                    self.at += 1;
                    let least = self.number()?;
                    let most = if !self.eat(',') {
                        Some(least)
                    } else if self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
                        Some(self.number()?)
                    } else {
                        None
                    };
                    if self.peek() != Some('}') {
                        return Err(format!("expected '}}' at position {}", self.at));
                    }
                    if let Some(most) = most.filter(|most| *most < least) {
                        return Err(format!("invalid repetition range(out of order): {least}..{most}"));
                    }
                    self.builder.repeat(inner, least, most)
                }
                _ => return Ok(inner),
            };
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<u32, String> {
        let start = self.at;
        while self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.text[start..self.at].iter().collect();
        digits.parse().map_err(|_| format!("integer expected at position {start}"))
    }

    fn complement(&mut self) -> Result<Id, String> {
        if self.has(regexp_flags::COMPLEMENT) && self.eat('~') {
            self.deeper()?;
            let inner = self.complement()?;
            self.depth -= 1;
            return Ok(self.builder.not(inner));
        }
        if self.eat('[') {
            return self.class();
        }
        self.simple()
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} nested groups at position {}", self.at));
        }
        Ok(())
    }

    /// Parses the rest of a character class after its opening bracket.
    fn class(&mut self) -> Result<Id, String> {
        let negated = self.eat('^');
        let mut ranges = Vec::new();
        let mut first = true;
        while first || self.peek().is_some_and(|next| next != ']') {
            first = false;
            if let Some(predefined) = self.predefined() {
                ranges.extend(predefined);
                continue;
            }
            let from = self.character()?;
            let ends = self.text.get(self.at + 1).is_none_or(|after| *after == ']');
            if self.peek() != Some('-') || ends {
                self.case_variants(from, from, &mut ranges);
                continue;
            }
            self.at += 1;
            let to = self.character()?;
            if from > to {
                return Err(format!("invalid range: from ({}) cannot be > to ({})", from as u32, to as u32));
            }
            self.case_variants(from, to, &mut ranges);
        }
        if !self.eat(']') {
            return Err(format!("expected ']' at position {}", self.at));
        }
        Ok(if negated { self.builder.class_without(&ranges) } else { self.builder.class(&ranges) })
    }

    fn case_variants(&self, from: char, to: char, ranges: &mut Vec<(char, char)>) {
        ranges.push((from, to));
        if !self.case_insensitive {
            return;
        }
        for (first, last, other) in [('a', 'z', 'A'), ('A', 'Z', 'a')] {
            let (low, high) = (from.max(first), to.min(last));
            if low <= high {
                let shift = |letter: char| (letter as u8 - first as u8 + other as u8) as char;
                ranges.push((shift(low), shift(high)));
            }
        }
    }

    /// Parses `\d`, `\w`, `\s` or one of their opposites; `None` if the pattern does not go on with one.
    fn predefined(&mut self) -> Option<Vec<(char, char)>> {
        if self.peek() != Some('\\') {
            return None;
        }
        let letter = *self.text.get(self.at + 1)?;
        let ranges: &[(char, char)] = match letter.to_ascii_lowercase() {
            'd' => &[('0', '9')],
            'w' => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            's' => &[('\t', '\n'), ('\r', '\r'), (' ', ' ')],
            _ => return None,
        };
        self.at += 2;
        if letter.is_ascii_lowercase() {
            return Some(ranges.to_vec());
        }
        let mut rest = Vec::new();
        let mut from = '\0';
        for (first, last) in ranges {
            // All of them are ASCII.
            rest.push((from, (*first as u8 - 1) as char));
            from = (*last as u8 + 1) as char;
        }
        rest.push((from, char::MAX));
        Some(rest.into_iter().filter(|(from, to)| from <= to).collect())
    }

    fn simple(&mut self) -> Result<Id, String> {
        if let Some(ranges) = self.predefined() {
            return Ok(self.builder.class(&ranges));
        }
        if self.eat('.') {
            return Ok(self.builder.class_without(&[]));
        }
        if self.has(regexp_flags::EMPTY) && self.eat('#') {
            return Ok(NEVER);
        }
        if self.has(regexp_flags::ANYSTRING) && self.eat('@') {
            return Ok(EVERYTHING);
        }
        if self.eat('"') {
            let start = self.at;
            while self.peek().is_some_and(|next| next != '"') {
                self.at += 1;
            }
            if self.peek().is_none() {
                return Err(format!("expected '\"' at position {}", self.at));
            }
            let literal: Vec<char> = self.text[start..self.at].to_vec();
            self.at += 1;
            let mut whole = EMPTY;
            for character in literal.into_iter().rev() {
                let one = self.literal(character);
                whole = self.builder.cat(one, whole);
            }
            return Ok(whole);
        }
        if self.eat('(') {
            if self.eat(')') {
                return Ok(EMPTY);
            }
            self.deeper()?;
            let inner = self.union()?;
            if !self.eat(')') {
                return Err(format!("expected ')' at position {}", self.at));
            }
            self.depth -= 1;
            return Ok(inner);
        }
        if self.has(regexp_flags::INTERVAL) && self.eat('<') {
            return self.interval();
        }
        let character = self.character()?;
        Ok(self.literal(character))
    }

    fn character(&mut self) -> Result<char, String> {
        self.eat('\\');
        self.next()
    }

    fn literal(&mut self, character: char) -> Id {
        let mut ranges = Vec::new();
        self.case_variants(character, character, &mut ranges);
        self.builder.class(&ranges)
    }

    /// Parses the rest of an interval, `1-20>`: the numbers between two bounds. If both bounds have the same number of digits, so
    /// must the numbers.
    fn interval(&mut self) -> Result<Id, String> {
        let start = self.at;
        while self.peek().is_some_and(|next| next != '>') {
            self.at += 1;
        }
        let text: String = self.text[start..self.at].iter().collect();
        if !self.eat('>') {
            return Err(format!("expected '>' at position {}", self.at));
        }
        let malformed = || format!("interval syntax error at position {}", self.at - 1);
        let (low, high) = text.split_once('-').ok_or_else(malformed)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| malformed());
        let (mut least, mut most) = (number(low)?, number(high)?);
        if least > most {
            std::mem::swap(&mut least, &mut most);
        }
        if low.len() == high.len() {
            let width = low.len();
            return Ok(self.digits(&format!("{least:0width$}"), &format!("{most:0width$}")));
        }
        let mut parts = Vec::new();
        for width in least.to_string().len()..=most.to_string().len() {
            let first = if width == 1 { 0 } else { 10_u64.pow(width as u32 - 1) };
            let low = first.max(u64::from(least));
            let high = (10_u64.pow(width as u32) - 1).min(u64::from(most));
            parts.push(self.digits(&low.to_string(), &high.to_string()));
        }
        let numbers = self.builder.or(parts);
        let zero = self.builder.class(&[('0', '0')]);
        let zeros = self.builder.repeat(zero, 0, None);
        Ok(self.builder.cat(zeros, numbers))
    }

    /// A term for the numbers from `low` to `high` that have as many digits as these two, which are equally long.
    fn digits(&mut self, low: &str, high: &str) -> Id {
        let (Some(first), Some(last)) = (low.chars().next(), high.chars().next()) else { return EMPTY };
        let (low, high) = (&low[1..], &high[1..]);
        if first == last {
            let digit = self.builder.class(&[(first, first)]);
            let rest = self.digits(low, high);
            return self.builder.cat(digit, rest);
        }
        let mut parts = Vec::new();
        let mut part = |parser: &mut Self, from: char, to: char, low: &str, high: &str| {
            let digit = parser.builder.class(&[(from, to)]);
            let rest = parser.digits(low, high);
            parts.push(parser.builder.cat(digit, rest));
        };
        let (zeros, nines) = ("0".repeat(low.len()), "9".repeat(low.len()));
        part(self, first, first, low, &nines);
        let (after, before) = ((first as u8 + 1) as char, (last as u8 - 1) as char);
        if after <= before {
            part(self, after, before, &zeros, &nines);
        }
        part(self, last, last, &zeros, high);
        self.builder.or(parts)
    }
}
