//! The token filters `cjk_width` and `cjk_bigram`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens};
use super::simple::text_filter;
use super::{Filter, InRules};

/// The `cjk_width` filter: full-width ASCII characters become ASCII, half-width Katakana full-width.
pub(crate) fn width() -> Arc<dyn Filter> {
    text_filter("cjk_width", true, |text| {
        if text.chars().any(|c| ('\u{FF01}'..='\u{FF9F}').contains(&c)) {
            *text = fold_width(text);
        }
    })
}

/// Full-width forms of U+FF65 to U+FF9D.
const KATAKANA: &str = "・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン";

fn fold_width(text: &str) -> String {
    let katakana: Vec<char> = KATAKANA.chars().collect();
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{FF01}'..='\u{FF5E}' => {
                out.push(char::from_u32(c as u32 - 0xFEE0).unwrap_or(c));
            }
            '\u{FF65}'..='\u{FF9D}' => out.push(katakana[c as usize - 0xFF65]),
            // The marks join what is before them.
            '\u{FF9E}' | '\u{FF9F}' => {
                let joined = out.last().and_then(|last| voiced(*last, c == '\u{FF9F}'));
                match joined {
                    Some(joined) => {
                        out.pop();
                        out.push(joined);
                    }
                    None => out.push(if c == '\u{FF9E}' { '\u{3099}' } else { '\u{309A}' }),
                }
            }
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}

fn voiced(c: char, half: bool) -> Option<char> {
    let next = |by: u32| char::from_u32(c as u32 + by);
    match c {
        'ハ' | 'ヒ' | 'フ' | 'ヘ' | 'ホ' => next(if half { 2 } else { 1 }),
        _ if half => None,
        'カ' | 'キ' | 'ク' | 'ケ' | 'コ' | 'サ' | 'シ' | 'ス' | 'セ' | 'ソ' | 'タ' | 'チ' | 'ツ' | 'テ'
        | 'ト' => next(1),
        'ウ' => Some('ヴ'),
        'ワ' => Some('ヷ'),
        'ヲ' => Some('ヺ'),
        _ => None,
    }
}

/// The `cjk_bigram` filter: forms bigrams of neighbouring Chinese, Japanese and Korean characters.
#[derive(Debug)]
pub(crate) struct Bigrams {
    kinds: Vec<&'static str>,
    unigrams: bool,
}

const SCRIPTS: [(&str, &str); 4] = [
    ("han", "<IDEOGRAPHIC>"),
    ("hiragana", "<HIRAGANA>"),
    ("katakana", "<KATAKANA>"),
    ("hangul", "<HANGUL>"),
];

impl Default for Bigrams {
    fn default() -> Self {
        Self { kinds: SCRIPTS.map(|(_, kind)| kind).to_vec(), unigrams: false }
    }
}

impl Bigrams {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        let mut kinds = Self::default().kinds;
        for script in params.list("ignored_scripts")?.unwrap_or_default() {
            let Some((_, kind)) = SCRIPTS.iter().find(|(name, _)| *name == script) else {
                return Err(AnalysisError::illegal(format!(
                    "unknown script [{script}] in [ignored_scripts]"
                )));
            };
            kinds.retain(|known| known != kind);
        }
        Ok(Self { kinds, unigrams: params.flag("output_unigrams", false)? })
    }

    /// Emits the bigrams, or single character, of a run of neighbouring characters.
    fn flush(&self, run: &mut Vec<(char, usize, usize)>, increment: u32, out: &mut VecDeque<Token>) {
        let mut increment = increment;
        let mut put =
            |text: String, start, end, kind, beside: bool, length: u32, out: &mut VecDeque<Token>| {
                let mut token = Token::new(text, start, end, kind);
                token.length = length;
                token.increment = if beside { 0 } else { std::mem::replace(&mut increment, 1) };
                out.push_back(token);
            };
        let count = run.len();
        for at in 0..count {
            let (c, start, end) = run[at];
            let single = count == 1 || self.unigrams;
            if single {
                put(c.to_string(), start, end, "<SINGLE>", false, 1, out);
            }
            if let Some((second, _, end)) = run.get(at + 1) {
                let length = if self.unigrams { 2 } else { 1 };
                put(format!("{c}{second}"), start, *end, "<DOUBLE>", single, length, out);
            }
        }
        run.clear();
    }
}

impl Filter for Bigrams {
    fn makes_no_graph(&self) -> bool {
        self.unigrams
    }

    fn apply<'a>(&'a self, mut tokens: Tokens<'a>) -> Tokens<'a> {
        let mut out: VecDeque<Token> = VecDeque::new();
        let mut run: Vec<(char, usize, usize)> = Vec::new();
        let mut increment = 1;
        Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(token) = out.pop_front() {
                    return Some(token);
                }
                let Some(token) = tokens.next() else {
                    if run.is_empty() {
                        return None;
                    }
                    self.flush(&mut run, increment, &mut out);
                    continue;
                };
                if !self.kinds.contains(&token.kind) {
                    self.flush(&mut run, increment, &mut out);
                    out.push_back(token);
                    continue;
                }
                if run.last().is_some_and(|(.., end)| *end != token.start) || token.increment > 1 {
                    self.flush(&mut run, increment, &mut out);
                }
                if run.is_empty() {
                    increment = token.increment.max(1);
                }
                let whole = token.text.len() == token.end - token.start;
                let mut at = token.start;
                for c in token.text.chars() {
                    let end = if whole { at + c.len_utf8() } else { token.end };
                    run.push((c, at, end));
                    at = if whole { end } else { at };
                }
                // A run of any length costs no more than a window of it: all but the last can go.
                if run.len() > 1024 {
                    let last = run[run.len() - 1];
                    self.flush_part(&mut run, &mut increment, &mut out);
                    run.push(last);
                }
            }
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Refused
    }
}

impl Bigrams {
    /// Emits the tokens of a run that begin before its last character, which is kept as the start of the next part.
    fn flush_part(
        &self,
        run: &mut Vec<(char, usize, usize)>,
        increment: &mut u32,
        out: &mut VecDeque<Token>,
    ) {
        self.flush(run, *increment, out);
        *increment = 1;
        if self.unigrams {
            // The last one stands alone here, and begins the next part.
            out.pop_back();
        }
    }
}
