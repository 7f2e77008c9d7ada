//! `standard` and `english` in one pass that allocates no tokens: most texts are analyzed by one of them, and that is much of the cost
//! of indexing a text.

use super::chain::{Analyzer, Fast};
use super::filters::{remove_possessive, stop_words};
use super::porter;
use super::unicode::lower;
use super::words::Words;

impl Analyzer {
    /// Passes each term of a text with its position to `take`, until that returns `false`: the same as [`Analyzer::tokens`], in the same
    /// order. Returns whether it took all of them.
    pub fn take_terms(&self, text: &str, mut take: impl FnMut(&str, usize) -> bool) -> bool {
        match self.fast {
            Some(Fast::Standard) => standard(text, take),
            Some(Fast::English) => english(text, take),
            None if self.char_filters.is_empty() => {
                self.tokens(text).all(|token| take(&token.text, token.position))
            }
            // Offsets in the original text, which would take all tokens of the tokenizer at once, are not wanted.
            None => {
                let (filtered, _) = self.filtered(text);
                self.terms_of(&filtered).all(|token| take(&token.text, token.position))
            }
        }
    }
}

fn standard(text: &str, mut take: impl FnMut(&str, usize) -> bool) -> bool {
    let mut term = String::new();
    Words::new(text).enumerate().all(|(position, range)| {
        let word = &text[range];
        if word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
            return take(word, position);
        }
        set_lower(&mut term, word);
        take(&term, position)
    })
}

fn english(text: &str, mut take: impl FnMut(&str, usize) -> bool) -> bool {
    let mut term = String::new();
    Words::new(text).enumerate().all(|(position, range)| {
        set_lower(&mut term, &text[range]);
        remove_possessive(&mut term);
        // The position of a stop word stays empty, so that phrases match.
        if is_stop_word(&term) {
            return true;
        }
        porter::stem(&mut term);
        take(&term, position)
    })
}

fn set_lower(term: &mut String, word: &str) {
    term.clear();
    if word.is_ascii() {
        term.push_str(word);
        term.make_ascii_lowercase();
    } else {
        term.extend(word.chars().map(lower));
    }
}

/// Whether a word is an English stop word. These have at most five letters.
fn is_stop_word(word: &str) -> bool {
    word.len() <= 5 && stop_words("english").is_some_and(|words| words.contains(&word))
}
