//! The token filter `asciifolding`: replaces characters by their ASCII equivalents, such as é by e.

use tantivy::tokenizer::{AsciiFoldingFilter, RawTokenizer, TextAnalyzer, TokenStream};

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::Tokens;
use super::{Filter, InRules};

#[derive(Debug)]
pub(super) struct AsciiFolding {
    preserve_original: bool,
}

impl AsciiFolding {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        Ok(Self { preserve_original: params.flag("preserve_original", false)? })
    }
}

/// ASCII folding by tantivy's table, which was taken from Lucene.
pub(super) struct Folder(TextAnalyzer);

impl Folder {
    pub fn new() -> Self {
        Self(TextAnalyzer::builder(RawTokenizer::default()).filter(AsciiFoldingFilter).build())
    }

    /// The folded text; `None` if there is nothing to fold.
    pub fn fold(&mut self, text: &str) -> Option<String> {
        if text.is_ascii() {
            return None;
        }
        let mut stream = self.0.token_stream(text);
        let folded = stream.advance().then(|| std::mem::take(&mut stream.token_mut().text));
        folded.filter(|folded| folded != text)
    }
}

impl Filter for AsciiFolding {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        let mut folder = Folder::new();
        Box::new(tokens.flat_map(move |mut token| {
            let mut original = None;
            if let Some(folded) = folder.fold(&token.text) {
                let before = std::mem::replace(&mut token.text, folded);
                if self.preserve_original {
                    let mut other = token.with_text(before);
                    other.increment = 0;
                    original = Some(other);
                }
            }
            std::iter::once(token).chain(original)
        }))
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn in_rules(&self) -> InRules {
        InRules::Applies
    }
}
