//! The tokenizers `uax_url_email` and `classic`, which recognise URLs, email addresses or host names.

use regex::Regex;

use super::super::error::AnalysisError;
use super::super::token::{Token, Tokens};
use super::super::words::{Words, word_kind};
use super::Tokenizer;

/// The `uax_url_email` tokenizer: like `standard`, but URLs and email addresses stay in one piece. A host without a
/// scheme counts as a URL if it ends in a known generic domain or a two-letter country domain.
#[derive(Debug)]
pub(super) struct UrlEmail {
    addresses: Regex,
    max_chars: usize,
}

const HOST: &str = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+";
const DOMAINS: &str = r"(?:com|org|net|edu|gov|mil|int|info|biz|name|pro|aero|coop|museum|jobs|mobi|travel|tel|cat|asia|post|xxx|app|dev|io|ai|cloud|online|shop|site|xyz|[a-z]{2})";

fn own(pattern: &str) -> Result<Regex, AnalysisError> {
    Regex::new(pattern).map_err(|error| AnalysisError::illegal(error.to_string()))
}

impl UrlEmail {
    pub fn new(max_chars: usize) -> Result<Self, AnalysisError> {
        let rest = r"(?::[0-9]{1,5})?(?:/[A-Za-z0-9\-_.!~*'();/?:@&=+$,%#\[\]]*)?(?:\?[A-Za-z0-9\-_.!~*'();/?:@&=+$,%\[\]]*)?(?:#[A-Za-z0-9\-_.!~*'();/?:@&=+$,%]*)?";
        let addresses = own(&format!(
            r"(?P<email>(?:[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+)*)@(?:{HOST}[A-Za-z]{{2,}}|\[[0-9.]+\]))|(?P<url>(?i:https?|ftp|file)://[A-Za-z0-9\-._~%]+{rest}|(?i:{HOST}{DOMAINS})\b{rest})"
        ))?;
        Ok(Self { addresses, max_chars })
    }
}

impl Tokenizer for UrlEmail {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        let words = move |start: usize, end: usize| {
            Words::with_max(&text[start..end], self.max_chars).map(move |range| {
                let (from, to) = (start + range.start, start + range.end);
                Token::new(&text[from..to], from, to, word_kind(&text[from..to]))
            })
        };
        let mut last = 0;
        let mut matches = self.addresses.captures_iter(text);
        let mut done = false;
        Box::new(
            std::iter::from_fn(move || {
                if done {
                    return None;
                }
                for captures in matches.by_ref() {
                    let email = captures.name("email");
                    let Some(found) = email.or(captures.name("url")) else { continue };
                    // Part of a longer word: no address.
                    let before = text[..found.start()].chars().next_back();
                    if before.is_some_and(char::is_alphanumeric) {
                        continue;
                    }
                    let mut end = found.end();
                    // A full stop or comma ends the sentence, not the address.
                    while text[found.start()..end].ends_with(['.', ',', ';', ':', '!', '?', '\'', ')']) {
                        end -= 1;
                    }
                    let kind = if email.is_some() { "<EMAIL>" } else { "<URL>" };
                    let address = Token::new(&text[found.start()..end], found.start(), end, kind);
                    let gap = words(last, found.start());
                    last = end;
                    return Some(gap.chain(Some(address)));
                }
                done = true;
                Some(words(last, text.len()).chain(None))
            })
            .flatten(),
        )
    }
}

/// The `classic` tokenizer: Lucene's `ClassicTokenizer`, with the grammar of the original `standard` tokenizer.
#[derive(Debug)]
pub(super) struct Classic {
    /// Patterns of the token types, anchored at the start, each with the type's name.
    kinds: Vec<(Regex, &'static str)>,
    /// Pattern of the characters that can begin a token.
    start: Regex,
    max_chars: usize,
}

impl Classic {
    pub fn new(max_chars: usize) -> Result<Self, AnalysisError> {
        const ALPHANUM: &str = r"[\p{L}\p{Nd}&&[^\p{Han}\p{Hiragana}\p{Katakana}]]+";
        const LETTERS: &str = r"[\p{L}&&[^\p{Han}\p{Hiragana}\p{Katakana}]]";
        let p = r"(?:_|-|/|\.|,)";
        let has_digit = r"(?:[\p{L}\p{Nd}]*\p{Nd}[\p{L}\p{Nd}]*)";
        let numbers = [
            format!("{ALPHANUM}{p}{has_digit}"),
            format!("{has_digit}{p}{ALPHANUM}"),
            format!("{ALPHANUM}(?:{p}{has_digit}{p}{ALPHANUM})+"),
            format!("{has_digit}(?:{p}{ALPHANUM}{p}{has_digit})+"),
            format!("{ALPHANUM}{p}{has_digit}(?:{p}{ALPHANUM}{p}{has_digit})+"),
            format!("{has_digit}{p}{ALPHANUM}(?:{p}{has_digit}{p}{ALPHANUM})+"),
        ];
        let anchored = |pattern: &str| own(&format!("^(?:{pattern})"));
        let mut kinds = vec![
            (anchored(ALPHANUM)?, "<ALPHANUM>"),
            (anchored(&format!("{LETTERS}+(?:'{LETTERS}+)+"))?, "<APOSTROPHE>"),
            (anchored(&format!(r"{LETTERS}\.(?:{LETTERS}\.)+"))?, "<ACRONYM>"),
            (anchored(&format!("{LETTERS}+[&@]{LETTERS}+"))?, "<COMPANY>"),
            (
                anchored(&format!(r"{ALPHANUM}(?:[.\-_]{ALPHANUM})*@{ALPHANUM}(?:[.\-]{ALPHANUM})+"))?,
                "<EMAIL>",
            ),
            (anchored(&format!(r"{ALPHANUM}(?:\.{ALPHANUM})+"))?, "<HOST>"),
            (anchored(r"[\p{Han}\p{Hiragana}\p{Katakana}]")?, "<CJ>"),
        ];
        for number in &numbers {
            kinds.push((anchored(number)?, "<NUM>"));
        }
        Ok(Self { kinds, start: own(r"[\p{L}\p{Nd}]")?, max_chars })
    }
}

impl Tokenizer for Classic {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        let mut at = 0;
        let mut skipped = 0;
        Box::new(std::iter::from_fn(move || {
            loop {
                let start = at + self.start.find(&text[at..])?.start();
                // The longest counts, among equals the first.
                let mut best = (0, "<ALPHANUM>");
                for (regex, kind) in &self.kinds {
                    if let Some(found) = regex.find(&text[start..])
                        && found.end() > best.0
                    {
                        best = (found.end(), kind);
                    }
                }
                let (length, kind) = best;
                at = start + length.max(text[start..].chars().next().map_or(1, char::len_utf8));
                let word = &text[start..at];
                // Longer tokens are left out, not cut.
                if word.chars().count() > self.max_chars {
                    skipped += 1;
                    continue;
                }
                let mut token = Token::new(word, start, at, kind);
                token.increment += std::mem::take(&mut skipped);
                return Some(token);
            }
        }))
    }
}
