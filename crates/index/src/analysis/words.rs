//! Words of a text, close to Lucene's `StandardTokenizer` (the word break rules of UAX #29).
//!
//! Letters and digits join; `'`, `.` and `:` join letters, `.`, `,` and `;` join digits; underscores join
//! both. Ideographs and Hiragana are words of one character, Katakana runs are words, and pictographs
//! (emoji) are words of their own. Words longer than 255 characters are cut there, as Lucene does.
//! Not done: dictionary-less runs of Thai and Khmer follow plain letter rules.

use std::ops::Range;

/// Lucene's `maxTokenLength`.
const MAX_CHARS: usize = 255;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Katakana,
    /// A word of one character.
    Single,
    Emoji,
    /// `_` and other connectors.
    Connector,
    /// Joins letters.
    MidLetter,
    /// Joins digits.
    MidNumber,
    /// Joins both.
    MidBoth,
    /// Combining marks and format characters: belong to what is before.
    Extend,
    Other,
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Class::Letter,
            '0'..='9' => Class::Digit,
            '_' => Class::Connector,
            '\'' | '.' => Class::MidBoth,
            ':' => Class::MidLetter,
            ',' | ';' => Class::MidNumber,
            _ => Class::Other,
        };
    }
    match c {
        '\u{B7}' | '\u{387}' | '\u{55F}' | '\u{5F4}' | '\u{2027}' | '\u{FE13}' | '\u{FE55}' | '\u{FF1A}' => {
            Class::MidLetter
        }
        '\u{2018}' | '\u{2019}' | '\u{2024}' | '\u{FE52}' | '\u{FF07}' | '\u{FF0E}' => Class::MidBoth,
        '\u{37E}' | '\u{589}' | '\u{60C}' | '\u{60D}' | '\u{66C}' | '\u{7F8}' | '\u{2044}' | '\u{FE10}'
        | '\u{FE14}' | '\u{FE50}' | '\u{FE54}' | '\u{FF0C}' | '\u{FF1B}' => Class::MidNumber,
        '\u{203F}'
        | '\u{2040}'
        | '\u{2054}'
        | '\u{FE33}'
        | '\u{FE34}'
        | '\u{FE4D}'..='\u{FE4F}'
        | '\u{FF3F}' => Class::Connector,
        '\u{AD}'
        | '\u{200C}'
        | '\u{200D}'
        | '\u{2060}'
        | '\u{FEFF}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{300}'..='\u{36F}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5BD}'
        | '\u{610}'..='\u{61A}'
        | '\u{64B}'..='\u{65F}'
        | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20F0}'
        | '\u{FE20}'..='\u{FE2F}'
        | '\u{1F3FB}'..='\u{1F3FF}'
        | '\u{E0100}'..='\u{E01EF}' => Class::Extend,
        '\u{3041}'..='\u{309F}' => Class::Single,
        '\u{30A0}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{FF66}'..='\u{FF9F}' => Class::Katakana,
        '\u{2E80}'..='\u{2FD5}'
        | '\u{3005}'
        | '\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Class::Single,
        '\u{2600}'..='\u{27BF}' | '\u{1F1E6}'..='\u{1F1FF}' | '\u{1F300}'..='\u{1FAFF}' => Class::Emoji,
        c if c.is_numeric() && c.to_digit(10).is_none() && !c.is_alphabetic() && !is_decimal(c) => {
            Class::Other
        }
        c if is_decimal(c) => Class::Digit,
        c if c.is_alphabetic() => Class::Letter,
        _ => Class::Other,
    }
}

/// Decimal digits of other scripts: blocks of ten, most of which start at a multiple of sixteen or six.
fn is_decimal(c: char) -> bool {
    const STARTS: [u32; 24] = [
        0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50,
        0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0xA620, 0xFF10,
    ];
    STARTS.iter().any(|&start| (start..start + 10).contains(&u32::from(c)))
}

/// Iterator over byte ranges of words.
pub(super) struct Words<'a> {
    text: &'a str,
    at: usize,
    /// End of a long word that is being cut into pieces.
    pending_end: Option<usize>,
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, pending_end: None }
    }

    /// First character at or after `at` that is not [`Class::Extend`], with its class and position.
    fn next_base(&self, mut at: usize) -> Option<(usize, char, Class)> {
        for c in self.text[at..].chars() {
            let class = class(c);
            if class != Class::Extend {
                return Some((at, c, class));
            }
            at += c.len_utf8();
        }
        None
    }

    /// Position after the marks that follow `at`.
    fn skip_marks(&self, at: usize) -> usize {
        let marks = self.text[at..].chars().take_while(|&c| class(c) == Class::Extend);
        at + marks.map(char::len_utf8).sum::<usize>()
    }

    /// End of the word that starts with `first` at `start`; `None` if it has neither letter nor digit.
    fn word_end(&self, start: usize, first: char, class_of_first: Class) -> (usize, bool) {
        let mut end = self.skip_marks(start + first.len_utf8());
        match class_of_first {
            Class::Single => return (end, true),
            Class::Emoji => return (self.emoji_end(end, first), true),
            _ => {}
        }
        let mut last = class_of_first;
        let mut wordlike = class_of_first != Class::Connector;
        while let Some((at, c, next)) = self.next_base(end) {
            let after = at + c.len_utf8();
            let joins = match (last, next) {
                (Class::Letter | Class::Digit, Class::Letter | Class::Digit)
                | (Class::Katakana, Class::Katakana)
                | (Class::Letter | Class::Digit | Class::Katakana | Class::Connector, Class::Connector)
                | (Class::Connector, Class::Letter | Class::Digit | Class::Katakana) => true,
                (Class::Letter, Class::MidLetter | Class::MidBoth) => self.followed_by(after, Class::Letter),
                (Class::Digit, Class::MidNumber | Class::MidBoth) => self.followed_by(after, Class::Digit),
                _ => false,
            };
            if !joins {
                break;
            }
            wordlike |= next != Class::Connector;
            if matches!(next, Class::MidLetter | Class::MidNumber | Class::MidBoth) {
                // The next round takes the letter or digit; `last` stays what it joins to.
                end = self.skip_marks(after);
                continue;
            }
            last = next;
            end = self.skip_marks(after);
        }
        (end, wordlike)
    }

    fn followed_by(&self, at: usize, wanted: Class) -> bool {
        self.next_base(at).is_some_and(|(_, _, class)| class == wanted)
    }

    /// Takes the rest of an emoji sequence: joined pictographs, and flags of two regional letters.
    fn emoji_end(&self, mut end: usize, first: char) -> usize {
        let regional = |c: char| ('\u{1F1E6}'..='\u{1F1FF}').contains(&c);
        if regional(first) {
            return match self.text[end..].chars().next() {
                Some(second) if regional(second) => end + second.len_utf8(),
                _ => end,
            };
        }
        while self.text[..end].ends_with('\u{200D}') {
            match self.text[end..].chars().next() {
                Some(next) if class(next) == Class::Emoji => end = self.skip_marks(end + next.len_utf8()),
                _ => break,
            }
        }
        end
    }

    /// The next piece of at most 255 characters of the word up to `end`.
    fn piece(&mut self, end: usize) -> Range<usize> {
        let start = self.at;
        let piece = match self.text[start..end].char_indices().nth(MAX_CHARS) {
            Some((len, _)) => start + len,
            None => end,
        };
        self.at = piece;
        self.pending_end = (piece < end).then_some(end);
        start..piece
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if let Some(end) = self.pending_end {
            return Some(self.piece(end));
        }
        while let Some(c) = self.text[self.at..].chars().next() {
            let class = class(c);
            if matches!(
                class,
                Class::Letter
                    | Class::Digit
                    | Class::Katakana
                    | Class::Single
                    | Class::Emoji
                    | Class::Connector
            ) {
                let (end, wordlike) = self.word_end(self.at, c, class);
                if wordlike {
                    return Some(self.piece(end));
                }
                self.at = end;
            } else {
                self.at += c.len_utf8();
            }
        }
        None
    }
}
