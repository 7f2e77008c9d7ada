//! Tokenizers whose tokens are runs of characters of some kind: `letter`, `lowercase`, `whitespace`,
//! `char_group`.

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens, WORD};
use super::{Tokenizer, max_token_length};

/// The characters that tokens consist of.
#[derive(Debug)]
enum Inside {
    Letters,
    NotWhitespace,
    /// All characters except these kinds.
    Not(Vec<CharKind>),
}

/// A single character, or a named class of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CharKind {
    One(char),
    Whitespace,
    Letter,
    Digit,
    Punctuation,
    Symbol,
}

impl CharKind {
    /// Reads the name of a character class, as in `char_group` and the n-gram tokenizers.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "letter" => CharKind::Letter,
            "digit" => CharKind::Digit,
            "whitespace" => CharKind::Whitespace,
            "punctuation" => CharKind::Punctuation,
            "symbol" => CharKind::Symbol,
            _ => return None,
        })
    }

    pub fn has(self, c: char) -> bool {
        match self {
            CharKind::One(one) => c == one,
            CharKind::Whitespace => is_java_whitespace(c),
            CharKind::Letter => is_letter(c),
            CharKind::Digit => c.is_ascii_digit() || !c.is_ascii() && is_digit(c),
            CharKind::Punctuation => matches_class(c, &PUNCTUATION),
            CharKind::Symbol => matches_class(c, &SYMBOL),
        }
    }
}

/// Like Java's `Character.isWhitespace`, which excludes non-breaking spaces.
pub(super) fn is_java_whitespace(c: char) -> bool {
    match c {
        '\t'..='\r' | '\u{1C}'..='\u{1F}' | ' ' => true,
        c if c.is_ascii() => false,
        '\u{A0}' | '\u{2007}' | '\u{202F}' | '\u{85}' => false,
        c => c.is_whitespace(),
    }
}

/// Like Java's `Character.isLetter`.
pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { matches_class(c, &LETTER) }
}

fn is_digit(c: char) -> bool {
    matches_class(c, &DIGIT)
}

/// Sorted ranges of the characters in a Unicode general category.
type Ranges = std::sync::LazyLock<Vec<(char, char)>>;

static LETTER: Ranges = Ranges::new(|| ranges(r"\p{L}"));
static DIGIT: Ranges = Ranges::new(|| ranges(r"\p{Nd}"));
static PUNCTUATION: Ranges = Ranges::new(|| ranges(r"\p{P}"));
static SYMBOL: Ranges = Ranges::new(|| ranges(r"\p{S}"));

fn ranges(pattern: &str) -> Vec<(char, char)> {
    use regex_syntax::hir::{Class, HirKind};
    match regex_syntax::parse(pattern).map(|hir| hir.into_kind()) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            class.iter().map(|range| (range.start(), range.end())).collect()
        }
        _ => Vec::new(),
    }
}

fn matches_class(c: char, ranges: &Ranges) -> bool {
    let at = ranges.partition_point(|(start, _)| *start <= c);
    at > 0 && c <= ranges[at - 1].1
}

#[derive(Debug)]
pub(crate) struct Runs {
    inside: Inside,
    lowercase: bool,
    max_chars: usize,
}

impl Runs {
    pub fn whitespace(max_chars: usize) -> Self {
        Self { inside: Inside::NotWhitespace, lowercase: false, max_chars }
    }

    pub fn letters(max_chars: usize, lowercase: bool) -> Self {
        Self { inside: Inside::Letters, lowercase, max_chars }
    }

    pub fn char_group(params: &Params<'_>) -> Result<Self, AnalysisError> {
        let max_chars = max_token_length(params)?;
        let names = params.lines("tokenize_on_chars")?.unwrap_or_default();
        if names.is_empty() {
            return Err(AnalysisError::illegal("[tokenize_on_chars] must be set"));
        }
        let mut kinds = Vec::with_capacity(names.len());
        for name in names {
            let mut chars = name.chars();
            kinds.push(match (chars.next(), chars.next(), chars.next()) {
                (None, ..) => {
                    return Err(AnalysisError::illegal(
                        "[tokenize_on_chars] cannot contain empty characters",
                    ));
                }
                (Some(one), None, _) => CharKind::One(one),
                (Some('\\'), Some(escaped), None) => CharKind::One(match escaped {
                    '\\' => '\\',
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    other => {
                        return Err(AnalysisError::illegal(format!("Invalid escaped char [\\{other}]")));
                    }
                }),
                (Some('\\'), Some('u'), _) => u32::from_str_radix(&name[2..], 16)
                    .ok()
                    .and_then(char::from_u32)
                    .map(CharKind::One)
                    .ok_or_else(|| AnalysisError::illegal(format!("Invalid escaped char [{name}]")))?,
                _ => CharKind::named(&name)
                    .ok_or_else(|| AnalysisError::illegal(format!("Invalid escaped char in [{name}]")))?,
            });
        }
        Ok(Self { inside: Inside::Not(kinds), lowercase: false, max_chars })
    }

    fn has(&self, c: char) -> bool {
        match &self.inside {
            Inside::Letters => is_letter(c),
            Inside::NotWhitespace => !is_java_whitespace(c),
            Inside::Not(kinds) => !kinds.iter().any(|kind| kind.has(c)),
        }
    }
}

impl Tokenizer for Runs {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        let mut chars = text.char_indices().peekable();
        Box::new(std::iter::from_fn(move || {
            let (start, first) = chars.by_ref().find(|(_, c)| self.has(*c))?;
            let mut end = start + first.len_utf8();
            let mut count = 1;
            while count < self.max_chars
                && let Some((at, c)) = chars.next_if(|(_, c)| self.has(*c))
            {
                end = at + c.len_utf8();
                count += 1;
            }
            let word = &text[start..end];
            let word = if self.lowercase { lowercase(word) } else { word.to_owned() };
            Some(Token::new(word, start, end, WORD))
        }))
    }
}

fn lowercase(word: &str) -> String {
    let mut word = word.to_owned();
    super::super::unicode::lowercase(&mut word);
    word
}
