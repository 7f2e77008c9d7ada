//! The token filters `shingle` and `common_grams`, which join several tokens into one.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens};
use super::stop::word_list;
use super::{Filter, InRules};

#[derive(Debug)]
pub(super) struct Shingle {
    min: usize,
    max: usize,
    unigrams: bool,
    unigrams_if_alone: bool,
    separator: String,
    filler: String,
}

impl Shingle {
    pub fn new(params: &Params<'_>, max_diff: i64) -> Result<Self, AnalysisError> {
        let (min, max) = (params.number("min_shingle_size", 2)?, params.number("max_shingle_size", 2)?);
        let unigrams = params.flag("output_unigrams", true)?;
        let diff = max - min + i64::from(unigrams);
        if diff > max_diff {
            return Err(AnalysisError::illegal(format!(
                "In Shingle TokenFilter the difference between max_shingle_size and min_shingle_size (and +1 if \
                 outputting unigrams) must be less than or equal to: [{max_diff}] but was [{diff}]. This limit can \
                 be set by changing the [index.max_shingle_diff] index level setting."
            )));
        }
        if max < 2 {
            return Err(AnalysisError::illegal("Max shingle size must be >= 2"));
        }
        if min < 2 {
            return Err(AnalysisError::illegal("Min shingle size must be >= 2"));
        }
        if min > max {
            return Err(AnalysisError::illegal("Min shingle size must be <= max shingle size"));
        }
        Ok(Self {
            min: min as usize,
            max: max as usize,
            unigrams,
            unigrams_if_alone: params.flag("output_unigrams_if_no_shingles", false)?,
            separator: params.text("token_separator")?.unwrap_or_else(|| " ".to_owned()),
            filler: params.text("filler_token")?.unwrap_or_else(|| "_".to_owned()),
        })
    }

    /// Emits the tokens and shingles that begin with the first part of the window; `alone` if no shingle can be
    /// formed in the text.
    fn at_front(&self, window: &VecDeque<Part>, alone: bool, out: &mut VecDeque<Token>) {
        let Some(front) = window.front() else { return };
        let before = out.len();
        if (self.unigrams || alone && self.unigrams_if_alone)
            && let Part::Token(token) = front
        {
            out.push_back(Token { increment: 1, ..token.clone() });
        }
        for size in self.min..=self.max.min(window.len()) {
            let parts = window.iter().take(size);
            let mut tokens = parts.clone().filter_map(|part| match part {
                Part::Token(token) => Some(token),
                Part::Filler(_) => None,
            });
            let Some(last) = tokens.next_back() else { continue };
            let text: Vec<&str> = parts
                .map(|part| match part {
                    Part::Token(token) => token.text.as_str(),
                    Part::Filler(_) => self.filler.as_str(),
                })
                .collect();
            let start = match front {
                Part::Token(token) => token.start,
                Part::Filler(at) => *at,
            };
            let end = match window.get(size - 1) {
                Some(Part::Filler(at)) => *at,
                _ => last.end,
            };
            let mut shingle = Token::new(text.join(&self.separator), start, end, "shingle");
            // Without words beside them, the shortest take one position.
            shingle.length = if self.unigrams { size } else { size - self.min + 1 } as u32;
            shingle.increment = u32::from(out.len() == before);
            out.push_back(shingle);
        }
    }
}

/// A token, or an empty position with the byte offset at which the next token begins.
enum Part {
    Token(Token),
    Filler(usize),
}

impl Filter for Shingle {
    fn apply<'a>(&'a self, mut tokens: Tokens<'a>) -> Tokens<'a> {
        let mut window: VecDeque<Part> = VecDeque::new();
        let mut out: VecDeque<Token> = VecDeque::new();
        let mut first = true;
        let mut skipped_first = 0;
        Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(mut token) = out.pop_front() {
                    token.increment += std::mem::take(&mut skipped_first);
                    return Some(token);
                }
                while window.len() < self.max {
                    let Some(token) = tokens.next() else { break };
                    if token.increment == 0 {
                        // Tokens beside others take no part, as in Lucene they would count as the next.
                        window.push_back(Part::Token(token));
                        continue;
                    }
                    let holes = (token.increment as usize - 1).min(self.max - 1);
                    if first && token.increment as usize - 1 > holes {
                        skipped_first = token.increment - 1 - holes as u32;
                    }
                    for _ in 0..holes {
                        window.push_back(Part::Filler(token.start));
                    }
                    window.push_back(Part::Token(token));
                }
                if window.is_empty() {
                    return None;
                }
                let alone = first && window.len() == 1;
                first = false;
                self.at_front(&window, alone, &mut out);
                window.pop_front();
            }
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Refused
    }

    fn makes_no_graph(&self) -> bool {
        self.unigrams || self.min != self.max
    }
}

/// The `common_grams` filter: joins common words with their neighbours.
#[derive(Debug)]
pub(super) struct CommonGrams {
    words: FxHashSet<String>,
    ignore_case: bool,
    query_mode: bool,
}

impl CommonGrams {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        params.refuse(&["common_words_path"])?;
        if !params.has("common_words") {
            return Err(AnalysisError::illegal(
                "missing or empty [common_words] or [common_words_path] configuration for common_grams token filter",
            ));
        }
        let ignore_case = params.flag("ignore_case", false)?;
        let words = word_list(params, "common_words", "")?;
        let words = if ignore_case { words.iter().map(|word| word.to_lowercase()).collect() } else { words };
        Ok(Self { words, ignore_case, query_mode: params.flag("query_mode", false)? })
    }

    fn is_common(&self, word: &str) -> bool {
        if self.ignore_case { self.words.contains(&word.to_lowercase()) } else { self.words.contains(word) }
    }
}

impl Filter for CommonGrams {
    fn apply<'a>(&'a self, mut tokens: Tokens<'a>) -> Tokens<'a> {
        let mut next: Option<Token> = None;
        let mut started = false;
        let mut gram: Option<Token> = None;
        // Whether the token that comes next was part of the gram before.
        let mut in_gram = false;
        Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(gram) = gram.take() {
                    return Some(gram);
                }
                if !std::mem::replace(&mut started, true) {
                    next = tokens.next();
                }
                let token = next.take()?;
                next = tokens.next();
                let was_in_gram = std::mem::take(&mut in_gram);
                if let Some(following) = &next
                    && (self.is_common(&token.text) || self.is_common(&following.text))
                {
                    let text = format!("{}_{}", token.text, following.text);
                    let mut joined = Token::new(text, token.start, following.end, "gram");
                    in_gram = true;
                    if self.query_mode {
                        joined.increment = token.increment;
                        return Some(joined);
                    }
                    joined.increment = 0;
                    joined.length = 2;
                    gram = Some(joined);
                } else if self.query_mode && was_in_gram && next.is_none() {
                    continue;
                }
                return Some(token);
            }
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Refused
    }
}
