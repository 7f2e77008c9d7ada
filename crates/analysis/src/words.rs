//! Words of a text as Lucene's `StandardTokenizer` finds them (the word break rules of UAX #29).
//!
//! Letters and digits join; `'`, `.` and `:` join letters, `.`, `,` and `;` join digits; underscores join
//! both. Ideographs and Hiragana are words of one character, runs of Katakana and of the scripts of
//! Southeast Asia are words, and pictographs (emoji) are words of their own. Long words are cut.

use std::ops::Range;

use super::unicode::{WordClass as Class, word_class as class};

/// Longest word in characters, beyond which it is cut: Lucene's `maxTokenLength`.
pub(super) const MAX_CHARS: usize = 255;

/// Token type of a word, such as `<ALPHANUM>`.
pub(super) fn word_kind(text: &str) -> &'static str {
    let mut hangul = true;
    let mut katakana = true;
    let mut digits = true;
    for c in text.chars() {
        match class(c) {
            Class::Ideograph => return "<IDEOGRAPHIC>",
            Class::Hiragana => return "<HIRAGANA>",
            Class::SoutheastAsian => return "<SOUTHEAST_ASIAN>",
            Class::Emoji => return "<EMOJI>",
            Class::Hangul => (katakana, digits) = (false, false),
            Class::Katakana => (hangul, digits) = (false, false),
            Class::Digit => (hangul, katakana) = (false, false),
            Class::Letter | Class::Hebrew => return "<ALPHANUM>",
            Class::Connector => (hangul, katakana) = (false, false),
            // An emoji that needs a variation selector or keycap is one all the same.
            Class::Extend if c == '\u{20E3}' => return "<EMOJI>",
            _ => {}
        }
    }
    match (hangul, katakana, digits) {
        (true, ..) => "<HANGUL>",
        (_, true, _) => "<KATAKANA>",
        (_, _, true) => "<NUM>",
        _ => "<ALPHANUM>",
    }
}

/// Iterator over byte ranges of words.
pub(super) struct Words<'a> {
    text: &'a str,
    at: usize,
    /// End of a long word that is being cut into pieces.
    pending_end: Option<usize>,
    max_chars: usize,
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str) -> Self {
        Self::with_max(text, MAX_CHARS)
    }

    /// Words of a text; those longer than `max_chars` characters are cut.
    pub fn with_max(text: &'a str, max_chars: usize) -> Self {
        Self { text, at: 0, pending_end: None, max_chars }
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

    /// Byte offset after the combining marks that start at `at`.
    fn skip_marks(&self, at: usize) -> usize {
        // No mark is ASCII.
        if self.text.as_bytes().get(at).is_none_or(u8::is_ascii) {
            return at;
        }
        let marks = self.text[at..].chars().take_while(|&c| class(c) == Class::Extend);
        at + marks.map(char::len_utf8).sum::<usize>()
    }

    /// End of the run that starts with `first` at `start`, and whether it is a word: not only connectors.
    fn word_end(&self, start: usize, first: char, class_of_first: Class) -> (usize, bool) {
        let mut last = class_of_first;
        let mut end = start + first.len_utf8();
        if first.is_ascii_alphanumeric() {
            // Most words are letters and digits of ASCII up to something that joins nothing.
            let run = self.ascii_run(end);
            if run > end {
                last = class(char::from(self.text.as_bytes()[run - 1]));
                end = run;
            }
            if self.text.as_bytes().get(end).is_none_or(|&byte| ends_word(byte)) {
                return (end, true);
            }
        }
        end = self.skip_marks(end);
        match class_of_first {
            Class::Hiragana | Class::Ideograph => return (end, true),
            Class::SoutheastAsian => {
                while let Some((at, c, Class::SoutheastAsian)) = self.next_base(end) {
                    end = self.skip_marks(at + c.len_utf8());
                }
                return (end, true);
            }
            Class::Emoji => return (self.emoji_end(end, first), true),
            _ => {}
        }
        let letter = |class| matches!(class, Class::Letter | Class::Hebrew | Class::Hangul);
        let mut wordlike = class_of_first != Class::Connector;
        while let Some((at, c, next)) = self.next_base(end) {
            let after = at + c.len_utf8();
            let joins = match (last, next) {
                (Class::Katakana, Class::Katakana) => true,
                (last, Class::Digit) if letter(last) || last == Class::Digit => true,
                (last, next) if letter(next) && (letter(last) || last == Class::Digit) => true,
                (Class::Digit | Class::Katakana | Class::Connector, Class::Connector) => true,
                (last, Class::Connector) if letter(last) => true,
                (Class::Connector, Class::Digit | Class::Katakana) => true,
                (Class::Connector, next) if letter(next) => true,
                (last, Class::MidLetter | Class::MidBoth) if letter(last) => {
                    self.followed_by(after, letter) || last == Class::Hebrew && c == '\''
                }
                (Class::Hebrew, Class::DoubleQuote) => {
                    self.followed_by(after, |class| class == Class::Hebrew)
                }
                (Class::Digit, Class::MidNumber | Class::MidBoth) => {
                    self.followed_by(after, |class| class == Class::Digit)
                }
                _ => false,
            };
            if !joins {
                break;
            }
            wordlike |= next != Class::Connector;
            if matches!(next, Class::MidLetter | Class::MidNumber | Class::MidBoth | Class::DoubleQuote) {
                // The next round takes the letter or digit; `last` stays what it joins to.
                end = self.skip_marks(after);
                continue;
            }
            last = next;
            end = self.skip_marks(after);
        }
        (end, wordlike)
    }

    /// Byte offset after the ASCII letters and digits that start at `at`.
    fn ascii_run(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        at + rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len())
    }

    fn followed_by(&self, at: usize, wanted: impl Fn(Class) -> bool) -> bool {
        self.next_base(at).is_some_and(|(_, _, class)| wanted(class))
    }

    /// End of an emoji sequence of which the part up to `end` has been read: joined pictographs, or a flag of two
    /// regional indicators.
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

    /// The next piece, of at most `max_chars` characters, of the word that ends at `end`.
    fn piece(&mut self, end: usize) -> Range<usize> {
        let start = self.at;
        // Most words are short in bytes already.
        let long = end - start > self.max_chars;
        let cut = long.then(|| self.text[start..end].char_indices().nth(self.max_chars)).flatten();
        let piece = cut.map_or(end, |(len, _)| start + len);
        self.at = piece;
        self.pending_end = (piece < end).then_some(end);
        start..piece
    }
}

/// Whether this byte always ends a word of ASCII letters and digits, whatever follows, and never begins one.
fn ends_word(byte: u8) -> bool {
    byte.is_ascii() && class(char::from(byte)) == Class::Other
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if let Some(end) = self.pending_end {
            return Some(self.piece(end));
        }
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            self.at += rest.iter().position(|&byte| !ends_word(byte)).unwrap_or(rest.len());
            let c = self.text[self.at..].chars().next()?;
            let class = class(c);
            if matches!(
                class,
                Class::Letter
                    | Class::Hebrew
                    | Class::Hangul
                    | Class::Digit
                    | Class::Katakana
                    | Class::Hiragana
                    | Class::Ideograph
                    | Class::SoutheastAsian
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<usize>> {
        // By characters, as other letters have more bytes.
        let characters = |byte: usize| text[..byte].chars().count();
        Words::new(text).map(|range| vec![characters(range.start), characters(range.end)]).collect()
    }

    /// Words of ASCII letters and digits, for which there is a fast path, end like words of other letters and digits
    /// of the same classes.
    #[test]
    fn words_of_ascii_end_where_words_of_other_letters_do() {
        let other = |c: char| match c {
            'a'..='z' | 'A'..='Z' => 'ж',
            '0'..='9' => '٣',
            other => other,
        };
        let alphabet = [
            'a', 'Z', '7', ' ', '\'', '.', ':', ',', '_', '"', '-', '\u{301}', 'é', '日', 'א', 'カ', '🙂',
            '\u{20E3}',
        ];
        let mut texts = vec![String::new()];
        let mut seen = 0;
        for _ in 0..4 {
            texts =
                texts.iter().flat_map(|text| alphabet.iter().map(move |c| format!("{text}{c}"))).collect();
            for text in &texts {
                // In front of it a word that the short cut is in the middle of.
                for text in [text.clone(), format!("ab12{text}"), format!("{text} x9")] {
                    let others: String = text.chars().map(other).collect();
                    assert_eq!(words(&text), words(&others), "{text:?}");
                    seen += words(&text).len();
                }
            }
        }
        assert!(seen > 300_000, "{seen}");
    }
}
