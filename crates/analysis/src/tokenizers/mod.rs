//! Tokenizers, which split a text into tokens.

mod grams;
mod paths;
mod patterns;
mod runs;
mod urls;

use std::fmt::Debug;
use std::sync::Arc;

use super::error::AnalysisError;
use super::params::Params;
use super::token::{Token, Tokens, WORD};
use super::words::{MAX_CHARS, Words, word_kind};

pub(super) use grams::Grams;
pub(super) use patterns::Pattern;
pub(super) use runs::Runs;

/// Splits a text into tokens, with offsets in bytes of that text.
pub(super) trait Tokenizer: Debug + Send + Sync {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a>;
}

/// The `standard` tokenizer.
#[derive(Debug)]
pub(super) struct Standard {
    pub max_chars: usize,
}

impl Tokenizer for Standard {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        Box::new(Words::with_max(text, self.max_chars).map(|range| {
            let word = &text[range.clone()];
            Token::new(word, range.start, range.end, word_kind(word))
        }))
    }
}

/// The whole text as one token.
#[derive(Debug)]
pub(super) struct Keyword;

impl Tokenizer for Keyword {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        // An empty text is a token as well.
        Box::new(std::iter::once(Token::new(text, 0, text.len(), WORD)))
    }
}

/// Reads `max_token_length`, in characters: 255 by default, from 1 to 1,048,576.
pub(super) fn max_token_length(params: &Params<'_>) -> Result<usize, AnalysisError> {
    let length = params.number("max_token_length", MAX_CHARS as i64)?;
    match usize::try_from(length) {
        Ok(length) if (1..=1024 * 1024).contains(&length) => Ok(length),
        _ => Err(AnalysisError::illegal(format!(
            "maxTokenLen must be greater than 0 and less than 1048576 passed: {length}"
        ))),
    }
}

/// Builds a tokenizer of the given type; `None` if there is no such type. `max_diff` is the index's
/// `index.max_ngram_diff`.
pub(super) fn build(
    kind: &str,
    params: &Params<'_>,
    max_diff: i64,
) -> Result<Option<Arc<dyn Tokenizer>>, AnalysisError> {
    let tokenizer: Arc<dyn Tokenizer> = match kind {
        "standard" => Arc::new(Standard { max_chars: max_token_length(params)? }),
        "keyword" => {
            params.number("buffer_size", 256)?;
            Arc::new(Keyword)
        }
        "whitespace" => Arc::new(Runs::whitespace(max_token_length(params)?)),
        "letter" => Arc::new(Runs::letters(max_token_length(params)?, false)),
        "lowercase" => Arc::new(Runs::letters(max_token_length(params)?, true)),
        "char_group" => Arc::new(Runs::char_group(params)?),
        "pattern" => Arc::new(Pattern::new(params)?),
        "simple_pattern" => Arc::new(Pattern::matching(params)?),
        "simple_pattern_split" => Arc::new(Pattern::splitting(params)?),
        "ngram" | "nGram" => Arc::new(Grams::new(params, false, max_diff)?),
        "edge_ngram" | "edgeNGram" => Arc::new(Grams::new(params, true, max_diff)?),
        "path_hierarchy" | "PathHierarchy" => Arc::new(paths::Paths::new(params)?),
        "uax_url_email" => Arc::new(urls::UrlEmail::new(max_token_length(params)?)?),
        "classic" => Arc::new(urls::Classic::new(max_token_length(params)?)?),
        _ => return Ok(None),
    };
    params.finish()?;
    Ok(Some(tokenizer))
}

/// Types of tokenizers that can be used by name, without a definition.
pub(super) const BUILT_IN: &[&str] = &[
    "standard",
    "keyword",
    "whitespace",
    "letter",
    "lowercase",
    "pattern",
    "ngram",
    "nGram",
    "edge_ngram",
    "edgeNGram",
    "path_hierarchy",
    "PathHierarchy",
    "uax_url_email",
    "classic",
];
