//! Text analysis: the `standard` and `english` analyzers, after Lucene's.

mod porter;
mod words;

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};

use crate::mapping::Analyzer;
use words::Words;

/// Lucene's `EnglishAnalyzer` stop words.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// tantivy's tokenizers with ours registered under the analyzers' names.
pub fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::default();
    for analyzer in [Analyzer::Standard, Analyzer::English] {
        manager.register(analyzer.name(), tokenizer(analyzer));
    }
    manager
}

/// The analyzer as a tantivy tokenizer.
pub fn tokenizer(analyzer: Analyzer) -> TextAnalyzer {
    TextAnalyzer::builder(AnalyzerTokenizer { analyzer, token: Token::default() }).build()
}

/// Words of a text as the analyzer gives them.
pub fn analyze(analyzer: Analyzer, text: &str) -> Vec<String> {
    let mut tokenizer = tokenizer(analyzer);
    let mut stream = tokenizer.token_stream(text);
    let mut tokens = Vec::new();
    while let Some(token) = stream.next() {
        tokens.push(token.text.clone());
    }
    tokens
}

#[derive(Clone)]
struct AnalyzerTokenizer {
    analyzer: Analyzer,
    token: Token,
}

struct AnalyzerStream<'a> {
    analyzer: Analyzer,
    text: &'a str,
    words: Words<'a>,
    token: &'a mut Token,
}

impl Tokenizer for AnalyzerTokenizer {
    type TokenStream<'a> = AnalyzerStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> AnalyzerStream<'a> {
        self.token.reset();
        AnalyzerStream { analyzer: self.analyzer, text, words: Words::new(text), token: &mut self.token }
    }
}

impl TokenStream for AnalyzerStream<'_> {
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
                out.extend(word.chars().flat_map(char::to_lowercase));
            }
            if matches!(self.analyzer, Analyzer::English) {
                remove_possessive(out);
                if STOP_WORDS.contains(&out.as_str()) {
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

/// Drops a final `'s`, with any of the three apostrophes Lucene knows.
fn remove_possessive(word: &mut String) {
    for suffix in ["'s", "\u{2019}s", "\u{FF07}s"] {
        if let Some(stripped) = word.strip_suffix(suffix) {
            let len = stripped.len();
            word.truncate(len);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(analyzer: Analyzer, text: &str, expected: &[&str]) {
        assert_eq!(analyze(analyzer, text), expected, "{text}");
    }

    #[test]
    fn standard_splits_as_lucene() {
        check(Analyzer::Standard, "The 2 QUICK Brown-Foxes", &["the", "2", "quick", "brown", "foxes"]);
        check(
            Analyzer::Standard,
            "don't 3.14 1,000 a.b U.S.A. x_y",
            &["don't", "3.14", "1,000", "a.b", "u.s.a", "x_y"],
        );
        check(
            Analyzer::Standard,
            "user@example.com foo:bar ab's- -",
            &["user", "example.com", "foo:bar", "ab's"],
        );
        check(Analyzer::Standard, "wi-fi 4G e5 (x)y", &["wi", "fi", "4g", "e5", "x", "y"]);
        check(Analyzer::Standard, "Straße ÉCOLE naïve", &["straße", "école", "naïve"]);
        check(
            Analyzer::Standard,
            "日本語 ひらがな カタカナ 한국어",
            &["日", "本", "語", "ひ", "ら", "が", "な", "カタカナ", "한국어"],
        );
        check(Analyzer::Standard, "e\u{301}te 🙂 a", &["e\u{301}te", "🙂", "a"]);
        check(Analyzer::Standard, "", &[]);
        check(Analyzer::Standard, " ... __ '' ", &[]);
    }

    #[test]
    fn long_words_are_cut_at_255_characters() {
        let tokens = analyze(Analyzer::Standard, &"a".repeat(600));
        assert_eq!(tokens.iter().map(String::len).collect::<Vec<_>>(), [255, 255, 90]);
    }

    #[test]
    fn english_stems_and_removes_stop_words() {
        check(
            Analyzer::English,
            "The dog's owners were running to the generalizations of ponies",
            &["dog", "owner", "were", "run", "gener", "poni"],
        );
    }

    #[test]
    fn stop_words_leave_gaps() {
        let mut tokenizer = tokenizer(Analyzer::English);
        let mut stream = tokenizer.token_stream("state of the art");
        let mut positions = Vec::new();
        while let Some(token) = stream.next() {
            positions.push((token.position, token.offset_from, token.offset_to));
        }
        assert_eq!(positions, [(0, 0, 5), (3, 13, 16)]);
    }
}
