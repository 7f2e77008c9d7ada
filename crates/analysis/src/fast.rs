//! Analyzers as tantivy's tokenizers: `standard` and `english` in one pass without a token of their own, all
//! others through their chain.

use std::sync::Arc;

use tantivy::tokenizer::{BoxTokenStream, Token, TokenStream, Tokenizer};

use super::chain::{Analyzer, Fast};
use super::filters::{remove_possessive, stop_words};
use super::porter;
use super::token::Tokens;
use super::unicode::lower;
use super::words::Words;

/// An analyzer for tantivy.
#[derive(Clone)]
pub(super) struct IndexTokenizer {
    analyzer: Arc<Analyzer>,
    token: Token,
}

impl IndexTokenizer {
    pub fn new(analyzer: Arc<Analyzer>) -> Self {
        Self { analyzer, token: Token::default() }
    }
}

impl Tokenizer for IndexTokenizer {
    type TokenStream<'a> = BoxTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> BoxTokenStream<'a> {
        self.token.reset();
        match self.analyzer.fast {
            Some(fast) => BoxTokenStream::new(FastStream {
                fast,
                text,
                words: Words::new(text),
                token: &mut self.token,
            }),
            None => BoxTokenStream::new(ChainStream {
                tokens: self.analyzer.tokens(text),
                token: &mut self.token,
            }),
        }
    }
}

struct FastStream<'a> {
    fast: Fast,
    text: &'a str,
    words: Words<'a>,
    token: &'a mut Token,
}

impl TokenStream for FastStream<'_> {
    fn advance(&mut self) -> bool {
        for range in self.words.by_ref() {
            // A removed stop word leaves its position empty, for phrases.
            self.token.position = self.token.position.wrapping_add(1);
            self.token.offset_from = range.start;
            self.token.offset_to = range.end;
            let word = &self.text[range];
            let out = &mut self.token.text;
            out.clear();
            if word.is_ascii() {
                out.push_str(word);
                out.make_ascii_lowercase();
            } else {
                out.extend(word.chars().map(lower));
            }
            if matches!(self.fast, Fast::English) {
                remove_possessive(out);
                if is_stop_word(out) {
                    continue;
                }
                porter::stem(out);
            }
            return true;
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// English stop words have two to five letters, or are `a`.
fn is_stop_word(word: &str) -> bool {
    word.len() <= 5 && stop_words("english").is_some_and(|words| words.contains(&word))
}

struct ChainStream<'a> {
    tokens: Tokens<'a>,
    token: &'a mut Token,
}

impl TokenStream for ChainStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(token) = self.tokens.next() else { return false };
        self.token.text = token.text;
        self.token.offset_from = token.start;
        self.token.offset_to = token.end;
        self.token.position = token.position;
        self.token.position_length = token.length as usize;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
