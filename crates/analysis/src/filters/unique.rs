//! The token filters `unique`, `remove_duplicates` and `fingerprint`.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens};
use super::{Filter, InRules};
use crate::filters::simple::utf16_len;

#[derive(Debug)]
pub(super) struct Unique {
    /// Whether only tokens at the same position count as duplicates.
    same_position: bool,
}

impl Unique {
    pub fn new(params: &Params<'_>, kind: &str) -> Result<Self, AnalysisError> {
        if kind == "remove_duplicates" {
            return Ok(Self { same_position: true });
        }
        Ok(Self { same_position: params.flag("only_on_same_position", false)? })
    }
}

impl Filter for Unique {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        let mut seen = FxHashSet::default();
        Box::new(tokens.filter_map(move |token| {
            if self.same_position && token.increment > 0 {
                seen.clear();
            }
            seen.insert(token.text.clone()).then_some(token)
        }))
    }
}

/// The `fingerprint` filter: joins all tokens into one, sorted and without duplicates.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    separator: String,
    max_length: usize,
}

impl Fingerprint {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        let separator = params.text("separator")?.unwrap_or_else(|| " ".to_owned());
        if separator.chars().count() != 1 {
            return Err(AnalysisError::illegal(format!(
                "Setting [separator] must be a single, non-null character. [{separator}] was provided."
            )));
        }
        let max_length = usize::try_from(params.number("max_output_size", 255)?)
            .map_err(|_| AnalysisError::illegal("max_output_size must not be negative"))?;
        Ok(Self { separator, max_length })
    }
}

impl Filter for Fingerprint {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        let mut tokens = Some(tokens);
        Box::new(std::iter::from_fn(move || {
            let mut words = BTreeSet::new();
            let mut length = 0;
            let mut end = 0;
            for token in tokens.take()? {
                end = end.max(token.end);
                let size = utf16_len(&token.text);
                if words.insert(token.text) {
                    length += size + usize::from(words.len() > 1);
                    // Longer than may be: nothing comes out.
                    if length > self.max_length {
                        return None;
                    }
                }
            }
            let text = words.into_iter().collect::<Vec<_>>().join(&self.separator);
            (!text.is_empty()).then(|| Token::new(text, 0, end, "fingerprint"))
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Refused
    }
}
