//! The `ngram` and `edge_ngram` tokenizers: every substring of some length.

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens, WORD};
use super::Tokenizer;
use super::runs::CharKind;

#[derive(Debug)]
pub(crate) struct Grams {
    min: usize,
    max: usize,
    /// Whether only substrings at the start of a run are tokens.
    edge: bool,
    /// Kinds of characters that tokens may contain; if empty, all.
    kinds: Vec<CharKind>,
}

impl Grams {
    pub fn new(params: &Params<'_>, edge: bool, max_diff: i64) -> Result<Self, AnalysisError> {
        let (min, max) = params.gram_bounds(edge, max_diff)?;
        let mut kinds = Vec::new();
        for name in params.list("token_chars")?.unwrap_or_default() {
            let name = name.to_lowercase();
            match name.as_str() {
                "custom" => {
                    let own = params.text("custom_token_chars")?.ok_or_else(|| {
                        AnalysisError::illegal(
                            "Token type: 'custom' requires setting `custom_token_chars`",
                        )
                    })?;
                    kinds.extend(own.chars().map(CharKind::One));
                }
                name => kinds.push(CharKind::named(name).ok_or_else(|| {
                    AnalysisError::illegal(format!(
                        "Unknown token type: '{name}', must be one of [letter, digit, whitespace, punctuation, \
                         symbol, custom]"
                    ))
                })?),
            }
        }
        if params.has("custom_token_chars") && kinds.is_empty() {
            return Err(AnalysisError::illegal(
                "[custom_token_chars] needs [token_chars] to name [custom]".to_owned(),
            ));
        }
        Ok(Self { min, max, edge, kinds })
    }

    fn has(&self, c: char) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.has(c))
    }
}

impl Tokenizer for Grams {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        // Where the run ends that `start` is in, and where the next gram of it ends.
        let mut start = 0;
        let mut in_run = false;
        let mut ends = Vec::new().into_iter();
        let mut left_in_start: Option<usize> = None;
        Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(from) = left_in_start {
                    if let Some(end) = ends.next() {
                        return Some(Token::new(&text[from..end], from, end, WORD));
                    }
                    left_in_start = None;
                }
                let c = text[start..].chars().next()?;
                let from = start;
                start += c.len_utf8();
                if !self.has(c) {
                    in_run = false;
                    continue;
                }
                if self.edge && in_run {
                    continue;
                }
                in_run = true;
                // The ends of the grams that start here.
                let found: Vec<usize> = text[from..]
                    .char_indices()
                    .take_while(|(_, c)| self.has(*c))
                    .take(self.max)
                    .map(|(at, c)| from + at + c.len_utf8())
                    .skip(self.min - 1)
                    .collect();
                ends = found.into_iter();
                left_in_start = Some(from);
            }
        }))
    }
}
