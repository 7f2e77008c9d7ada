//! Analyzers: char filters, a tokenizer and token filters, one behind the other.

use std::sync::Arc;

use super::char_filters::{CharFilter, OffsetMap};
use super::filters::Filter;
use super::token::{Token, Tokens, positioned};
use super::tokenizers::Tokenizer;

/// Default gap in term positions between the last token of one value of a field and the first token of the next,
/// which keeps phrases from matching across values.
pub const POSITION_INCREMENT_GAP: usize = 100;

/// An analyzer, or a normalizer (whose text stays one token). Cheap to share, safe to use from many threads.
#[derive(Debug, Clone)]
pub struct Analyzer {
    pub(super) name: String,
    /// Whether the analyzer is of type `custom`, put together from named components.
    pub(super) custom: bool,
    pub(super) char_filters: Vec<(String, Arc<dyn CharFilter>)>,
    pub(super) tokenizer: (String, Arc<dyn Tokenizer>),
    pub(super) filters: Vec<(String, Arc<dyn Filter>)>,
    pub(super) gap: usize,
    /// A faster single-pass implementation of the chain, if there is one for this analyzer.
    pub(super) fast: Option<Fast>,
}

/// Analyzers common enough to have a single-pass implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fast {
    Standard,
    English,
}

/// Output of the tokenizer or of one token filter of an analyzer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub name: String,
    pub tokens: Vec<Token>,
}

/// Output of each step of an analyzer, as `_analyze` with `explain` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Name of each char filter and the text after it.
    pub char_filters: Vec<(String, String)>,
    pub tokenizer: Step,
    pub filters: Vec<Step>,
}

impl Analyzer {
    /// Name of the analyzer, as mappings refer to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the analyzer is of type `custom`, put together from named components.
    pub fn is_custom(&self) -> bool {
        self.custom
    }

    /// Gap in term positions between two values of a field.
    pub fn position_increment_gap(&self) -> usize {
        self.gap
    }

    /// Whether a query looks for paths through the tokens of a text, some of which stand for several positions.
    pub fn makes_graphs(&self) -> bool {
        !self.filters.iter().any(|(_, filter)| filter.makes_no_graph())
    }

    /// The tokens of a text, in the order of their positions. Offsets are bytes of `text`.
    pub fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        self.filtered_tokens(self.tokenized(text))
    }

    /// The tokens of a text that has passed the char filters, with offsets in that.
    pub(super) fn terms_of<'a>(&'a self, filtered: &'a str) -> Tokens<'a> {
        self.filtered_tokens(self.tokenizer.1.tokens(filtered))
    }

    /// Passes what the tokenizer made through the token filters.
    fn filtered_tokens<'a>(&'a self, mut tokens: Tokens<'a>) -> Tokens<'a> {
        for (_, filter) in &self.filters {
            tokens = filter.apply(tokens);
        }
        positioned(tokens)
    }

    /// The tokens that the tokenizer makes of a text, before any token filters.
    fn tokenized<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        if self.char_filters.is_empty() {
            return self.tokenizer.1.tokens(text);
        }
        let (filtered, offsets) = self.filtered(text);
        // The tokens cannot borrow from a text that only lives here.
        let mut tokens: Vec<Token> = self.tokenizer.1.tokens(&filtered).collect();
        for token in &mut tokens {
            token.start = correct(&offsets, token.start, text);
            token.end = correct(&offsets, token.end, text).max(token.start);
        }
        Box::new(tokens.into_iter())
    }

    pub(super) fn filtered(&self, text: &str) -> (String, Vec<OffsetMap>) {
        let mut filtered = text.to_owned();
        let mut offsets = Vec::with_capacity(self.char_filters.len());
        for (_, filter) in &self.char_filters {
            let next = filter.filter(&filtered, &|| false);
            filtered = next.text;
            offsets.push(next.offsets);
        }
        (filtered, offsets)
    }

    /// Normalizes a text as a single token, through those filters that work on single characters. Term-level queries
    /// and keyword values are compared in this form.
    pub fn normalize(&self, text: &str) -> String {
        let mut filtered = text.to_owned();
        for (_, filter) in self.char_filters.iter().filter(|(_, filter)| filter.normalizes()) {
            filtered = filter.filter(&filtered, &|| false).text;
        }
        if filtered.is_empty() {
            return filtered;
        }
        let mut tokens: Tokens<'_> = Box::new(std::iter::once(Token::new(filtered, 0, text.len(), "word")));
        for (_, filter) in self.filters.iter().filter(|(_, filter)| filter.normalizes()) {
            tokens = filter.apply(tokens);
        }
        tokens.next().map(|token| token.text).unwrap_or_default()
    }
}

/// Maps a byte offset behind all char filters back to the original text, to the start of a character.
pub(super) fn correct(offsets: &[OffsetMap], offset: usize, text: &str) -> usize {
    let offset = offsets.iter().rev().fold(offset, |offset, map| map.correct(offset)).min(text.len());
    (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
