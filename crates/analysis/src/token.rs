//! Tokens, and the streams that tokenizers and filters make of them.

/// One token on its way through an analyzer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// Where it begins in the text as it was given, in bytes.
    pub start: usize,
    /// Where it ends there, in bytes.
    pub end: usize,
    /// Distance to the position of the token before: 0 for a token beside it, 2 behind a removed one.
    pub increment: u32,
    /// Positions that it spans: more than one beside a synonym of several words.
    pub length: u32,
    /// Distance to the first position of the text. Set at the end of the chain.
    pub position: usize,
    /// Lexical type: `<ALPHANUM>`, `word`, `SYNONYM`, ...
    pub kind: &'static str,
    /// Stemmers leave it as it is.
    pub keyword: bool,
}

/// Tokens of one text, made as they are asked for.
pub type Tokens<'a> = Box<dyn Iterator<Item = Token> + 'a>;

/// Type of tokens whose tokenizer tells no types apart.
pub const WORD: &str = "word";

impl Token {
    /// A token of `text` at a new position.
    pub fn new(text: impl Into<String>, start: usize, end: usize, kind: &'static str) -> Self {
        Self { text: text.into(), start, end, increment: 1, length: 1, position: 0, kind, keyword: false }
    }

    /// A copy of the token with another text.
    #[must_use]
    pub fn with_text(&self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            start: self.start,
            end: self.end,
            increment: self.increment,
            length: self.length,
            position: self.position,
            kind: self.kind,
            keyword: self.keyword,
        }
    }
}

/// Numbers the positions.
pub(super) fn positioned(tokens: Tokens<'_>) -> Tokens<'_> {
    let mut next = 0usize;
    Box::new(tokens.map(move |mut token| {
        // The first token is at position 0 whatever lies before it is skipped over.
        next += token.increment as usize;
        token.position = next.saturating_sub(1);
        token
    }))
}

/// Keeps some tokens; the positions of the others stay empty.
pub(super) fn retain<'a>(tokens: Tokens<'a>, mut keep: impl FnMut(&Token) -> bool + 'a) -> Tokens<'a> {
    let mut skipped = 0;
    Box::new(tokens.filter_map(move |mut token| {
        if keep(&token) {
            token.increment += std::mem::take(&mut skipped);
            Some(token)
        } else {
            skipped += token.increment;
            None
        }
    }))
}

/// Changes the text of every token.
pub(super) fn map_text<'a>(tokens: Tokens<'a>, mut change: impl FnMut(&mut String) + 'a) -> Tokens<'a> {
    Box::new(tokens.map(move |mut token| {
        change(&mut token.text);
        token
    }))
}
