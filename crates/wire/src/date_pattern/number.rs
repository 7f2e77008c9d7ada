//! Numbers in dates: how many digits they have, and how they share digits with the numbers right behind them.

/// Whether a number may have a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// None, or a minus.
    Normal,
    Never,
    /// None, or a minus; a plus exactly where there are more digits than there must be.
    ExceedsPad,
}

/// The digits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digits {
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) sign: Sign,
    /// Digits that are written at least, with zeros before them.
    pub(super) padded: usize,
    /// Digits that belong to the numbers of fixed length right behind this one.
    pub(super) reserved: usize,
}

impl Digits {
    pub(super) fn new(least: usize, most: usize, sign: Sign) -> Self {
        Self { least, most, sign, padded: least, reserved: 0 }
    }

    /// Whether there are always as many of them.
    pub(super) fn are_fixed(self) -> bool {
        self.least == self.most && self.sign == Sign::Never
    }

    /// Reads a number. Returns it with the number of its digits, and what follows.
    pub(super) fn read(self, text: &str) -> Option<(i64, usize, &str)> {
        let first = text.as_bytes().first()?;
        let (sign, digits) = match (first, self.sign) {
            (b'-', Sign::Normal | Sign::ExceedsPad) | (b'+', Sign::ExceedsPad) => (Some(*first), &text[1..]),
            _ => (None, text),
        };
        let there = digits.bytes().take(self.most + self.reserved).take_while(u8::is_ascii_digit).count();
        // Those behind get their digits first.
        let length = there.saturating_sub(self.reserved).max(self.least).min(there);
        if length < self.least {
            return None;
        }
        let value: i64 = digits[..length].parse().ok()?;
        let value = match sign {
            Some(b'-') if value == 0 => return None,
            Some(b'-') => -value,
            Some(_) if length <= self.least => return None,
            None if self.sign == Sign::ExceedsPad && length > self.least => return None,
            _ => value,
        };
        Some((value, length, &digits[length..]))
    }

    pub(super) fn write(self, value: i64, out: &mut String) {
        let digits = value.unsigned_abs().to_string();
        if value < 0 {
            out.push('-');
        } else if self.sign == Sign::ExceedsPad && digits.len() > self.padded {
            out.push('+');
        }
        out.extend(std::iter::repeat_n('0', self.padded.saturating_sub(digits.len())));
        out.push_str(&digits);
    }
}
