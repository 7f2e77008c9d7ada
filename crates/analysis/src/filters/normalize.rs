//! Normalization filters for scripts and languages: different spellings of a letter become one.

use std::sync::Arc;

use super::Filter;
use super::simple::text_filter;

fn map(name: &'static str, change: fn(char) -> Option<char>) -> Arc<dyn Filter> {
    text_filter(name, true, move |text| {
        if !text.is_ascii() {
            *text = text.chars().filter_map(change).collect();
        }
    })
}

/// The normalization filter called `name`, such as `arabic_normalization`; `None` for an unknown name.
pub(crate) fn build(name: &str) -> Option<Arc<dyn Filter>> {
    Some(match name {
        "arabic_normalization" => map("arabic_normalization", |c| match c {
            '\u{622}' | '\u{623}' | '\u{625}' => Some('\u{627}'),
            '\u{649}' => Some('\u{64A}'),
            '\u{629}' => Some('\u{647}'),
            '\u{640}' | '\u{64B}'..='\u{652}' => None,
            other => Some(other),
        }),
        "persian_normalization" => map("persian_normalization", |c| match c {
            '\u{6CC}' | '\u{6D2}' => Some('\u{64A}'),
            '\u{6A9}' => Some('\u{643}'),
            '\u{6C0}' | '\u{6C1}' => Some('\u{647}'),
            '\u{654}' => None,
            other => Some(other),
        }),
        "german_normalization" => text_filter("german_normalization", true, german),
        "scandinavian_folding" => text_filter("scandinavian_folding", true, scandinavian_folding),
        "scandinavian_normalization" => {
            text_filter("scandinavian_normalization", true, scandinavian_normalization)
        }
        "serbian_normalization" => text_filter("serbian_normalization", true, serbian),
        "sorani_normalization" => text_filter("sorani_normalization", true, sorani),
        _ => return None,
    })
}

/// The `german_normalization`: umlauts lose their dots; `ae`, `oe` and `ue` (unless after a vowel or q) lose their e;
/// ß becomes ss.
fn german(text: &mut String) {
    let mut out = String::with_capacity(text.len());
    // What an e is to follow: nothing, a letter whose e goes, or a vowel that leaves a u alone.
    #[derive(PartialEq)]
    enum State {
        Nothing,
        Vowel,
        Umlaut,
    }
    let mut state = State::Nothing;
    for c in text.chars() {
        match c {
            'a' | 'o' => {
                state = State::Umlaut;
                out.push(c);
            }
            'u' => {
                state = if state == State::Nothing { State::Umlaut } else { State::Vowel };
                out.push(c);
            }
            'e' => {
                if state != State::Umlaut {
                    out.push(c);
                }
                state = State::Vowel;
            }
            'i' | 'q' | 'y' => {
                state = State::Vowel;
                out.push(c);
            }
            'ä' | 'ö' | 'ü' => {
                state = State::Vowel;
                out.push(match c {
                    'ä' => 'a',
                    'ö' => 'o',
                    _ => 'u',
                });
            }
            'ß' => {
                state = State::Nothing;
                out.push_str("ss");
            }
            other => {
                state = State::Nothing;
                out.push(other);
            }
        }
    }
    *text = out;
}

fn scandinavian_folding(text: &mut String) {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let (plain, pairs): (char, &[char]) = match c {
            'å' | 'ä' | 'æ' => ('a', &[]),
            'Å' | 'Ä' | 'Æ' => ('A', &[]),
            'ö' | 'ø' => ('o', &[]),
            'Ö' | 'Ø' => ('O', &[]),
            'a' | 'A' => (c, &['a', 'A', 'e', 'E', 'o', 'O']),
            'o' | 'O' => (c, &['e', 'E', 'o', 'O']),
            other => (other, &[]),
        };
        out.push(plain);
        chars.next_if(|next| pairs.contains(next));
    }
    *text = out;
}

fn scandinavian_normalization(text: &mut String) {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let joined = match (c, next) {
            ('a', Some('a' | 'o' | 'A' | 'O')) => Some('å'),
            ('A', Some('a' | 'A' | 'o' | 'O')) => Some('Å'),
            ('a', Some('e' | 'E')) => Some('æ'),
            ('A', Some('e' | 'E')) => Some('Æ'),
            ('o', Some('e' | 'E' | 'o' | 'O')) => Some('ø'),
            ('O', Some('e' | 'E' | 'o' | 'O')) => Some('Ø'),
            _ => None,
        };
        match joined {
            Some(joined) => {
                chars.next();
                out.push(joined);
            }
            None => out.push(match c {
                'ä' => 'æ',
                'Ä' => 'Æ',
                'ö' => 'ø',
                'Ö' => 'Ø',
                other => other,
            }),
        }
    }
    *text = out;
}

/// The `serbian_normalization`: Cyrillic letters, and Latin ones with diacritics, become plain Latin letters.
fn serbian(text: &mut String) {
    if text.is_ascii() {
        return;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let to = match c {
            'а' => "a",
            'б' => "b",
            'в' => "v",
            'г' => "g",
            'д' => "d",
            'ђ' | 'đ' => "dj",
            'е' => "e",
            'ж' | 'з' | 'ž' => "z",
            'и' => "i",
            'ј' => "j",
            'к' => "k",
            'л' => "l",
            'љ' => "lj",
            'м' => "m",
            'н' => "n",
            'њ' => "nj",
            'о' => "o",
            'п' => "p",
            'р' => "r",
            'с' | 'ш' | 'š' => "s",
            'т' => "t",
            'ћ' | 'ц' | 'ч' | 'ć' | 'č' => "c",
            'у' => "u",
            'ф' => "f",
            'х' => "h",
            'џ' => "dz",
            other => {
                out.push(other);
                continue;
            }
        };
        out.push_str(to);
    }
    *text = out;
}

fn sorani(text: &mut String) {
    if text.is_ascii() {
        return;
    }
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for (at, &c) in chars.iter().enumerate() {
        match c {
            '\u{64A}' | '\u{649}' => out.push('\u{6CC}'),
            '\u{643}' => out.push('\u{6A9}'),
            '\u{629}' => out.push('\u{6D5}'),
            // Behind a heh a non-joiner makes it a vowel, as does the end of the word.
            '\u{647}' if chars.get(at + 1).is_none_or(|next| *next == '\u{200C}') => out.push('\u{6D5}'),
            '\u{6BE}' => out.push('\u{647}'),
            '\u{692}' => out.push('\u{695}'),
            '\u{631}' if at == 0 => out.push('\u{695}'),
            '\u{640}' | '\u{64B}'..='\u{652}' | '\u{200C}' | '\u{200D}'..='\u{200F}' | '\u{AD}' => {}
            other => out.push(other),
        }
    }
    *text = out;
}
