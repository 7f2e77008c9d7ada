//! Analyzers in the form of tantivy tokenizers. tantivy asks for a document's terms on the single thread that builds
//! an index's postings. Therefore `standard` and `english` do their work earlier, in one pass that allocates no
//! tokens, and only hand over the finished terms ([`Analyzer::packed`]) on that thread; all other analyzers run their
//! whole chain there.

use std::sync::Arc;

use tantivy::tokenizer::{BoxTokenStream, Token, TokenStream, Tokenizer};

use super::chain::{Analyzer, Fast};
use super::filters::{remove_possessive, stop_words};
use super::porter;
use super::token::Tokens;
use super::unicode::lower;
use super::words::Words;

/// Adapter that presents an analyzer as a tantivy tokenizer.
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
    /// The terms of a text packed into one string, to be indexed in place of the text; `None` for an analyzer that
    /// runs when the text is indexed.
    pub fn packed(&self, text: &str) -> Option<String> {
        self.fast.map(|fast| pack(fast, text))
    }
}

/// Terminator of each packed term. Words never contain it.
const END: char = ' ';
/// Stands for a removed stop word, whose position stays empty so that phrases match. Words never contain it.
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

/// Reads the terms packed by [`pack`]. Their offsets in the text are lost, but postings do not store those anyway.
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

/// Whether a word is an English stop word. These have at most five letters.
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
