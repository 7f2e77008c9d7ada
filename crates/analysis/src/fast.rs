//! Analyzers as tantivy's tokenizers. tantivy asks for the terms of a document on the one thread that makes the postings of an index, so
//! `standard` and `english` do their work before that, in one pass without a token of their own, and only hand over what they made
//! ([`Analyzer::packed`]); all others run through their chain there.

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
            Some(_) => BoxTokenStream::new(PackedStream { rest: text, token: &mut self.token }),
            None => BoxTokenStream::new(ChainStream {
                tokens: self.analyzer.tokens(text),
                token: &mut self.token,
            }),
        }
    }
}

impl Analyzer {
    /// The terms of a text in one string, which the index takes in place of the text; `None` for an analyzer that is to be given the
    /// text itself there.
    pub fn packed(&self, text: &str) -> Option<String> {
        self.fast.map(|fast| pack(fast, text))
    }
}

/// Stands behind each packed term. No word has one inside.
const END: char = ' ';
/// Stands for a removed stop word, whose position stays empty for phrases. No word has one inside.
const REMOVED: char = '\n';

fn pack(fast: Fast, text: &str) -> String {
    let mut packed = String::with_capacity(text.len() + 1);
    let mut term = String::new();
    for range in Words::new(text) {
        let word = &text[range];
        match fast {
            Fast::Standard => push_lower(word, &mut packed),
            Fast::English => {
                term.clear();
                push_lower(word, &mut term);
                remove_possessive(&mut term);
                if is_stop_word(&term) {
                    packed.push(REMOVED);
                    continue;
                }
                porter::stem(&mut term);
                packed.push_str(&term);
            }
        }
        packed.push(END);
    }
    packed
}

fn push_lower(word: &str, out: &mut String) {
    if word.is_ascii() {
        let start = out.len();
        out.push_str(word);
        out[start..].make_ascii_lowercase();
    } else {
        out.extend(word.chars().map(lower));
    }
}

/// The terms that [`pack`] made. Where they were in the text is not known any more, and the postings do not have it.
struct PackedStream<'a> {
    rest: &'a str,
    token: &'a mut Token,
}

impl TokenStream for PackedStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some(rest) = self.rest.strip_prefix(REMOVED) {
            self.rest = rest;
            self.token.position = self.token.position.wrapping_add(1);
        }
        let Some((term, rest)) = self.rest.split_once(END) else {
            debug_assert!(self.rest.is_empty(), "a text that was not packed");
            return false;
        };
        self.rest = rest;
        self.token.position = self.token.position.wrapping_add(1);
        self.token.text.clear();
        self.token.text.push_str(term);
        true
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
