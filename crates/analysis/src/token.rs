//! Tokens, and the streams that tokenizers and filters make of them.

/// One token on its way through an analyzer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// Byte offset in the original text at which the token starts.
    pub start: usize,
    /// Byte offset in the original text at which the token ends.
    pub end: usize,
    /// Position increment from the previous token: 0 for a token at the same position, 2 after a removed token.
    pub increment: u32,
    /// Number of positions that the token spans: more than one beside a synonym of several words.
    pub length: u32,
    /// Position in the text, counted from 0. Set at the end of the chain.
    pub position: usize,
    /// Lexical type: `<ALPHANUM>`, `word`, `SYNONYM`, ...
    pub kind: &'static str,
    /// Whether the token is protected from stemmers.
    pub keyword: bool,
}

/// The tokens of one text, produced lazily.
pub type Tokens<'a> = Box<dyn Iterator<Item = Token> + 'a>;

/// Type of tokens from tokenizers that do not distinguish types.
pub const WORD: &str = "word";

impl Token {
    /// A token at the next position, with byte offsets.
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

/// Sets the position of every token from the increments.
pub(super) fn positioned(tokens: Tokens<'_>) -> Tokens<'_> {
    let mut next = 0usize;
    Box::new(tokens.map(move |mut token| {
        // Positions count from 0; a first token behind a removed one is at position 1.
        next += token.increment as usize;
        token.position = next.saturating_sub(1);
        token
    }))
}

/// Removes tokens for which `keep` is false; their positions stay empty.
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
