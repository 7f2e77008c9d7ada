//! Synonym rules in the format of Solr.

use std::fmt;

use rustc_hash::FxHashMap;
use sparrow_runtime::work;

use super::super::error::AnalysisError;
use super::super::token::Token;

/// Limit on the number of outputs of all rules together: n equivalent words have about n² outputs.
const MAX_OUTPUTS: usize = 1_000_000;

/// Function that analyzes the text of one side of a rule.
type ReadRule<'a> = dyn Fn(&str) -> Result<Vec<Token>, AnalysisError> + 'a;

/// Analyzer for the words in rules: the chain before the synonym filter.
pub(crate) struct RuleAnalyzer<'a>(pub Box<ReadRule<'a>>);

/// What the words of a rule are replaced by.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// Whether the original words are kept beside their synonyms.
    pub keeps: bool,
    /// The synonyms, each a list of words.
    pub paths: Vec<Vec<String>>,
}

/// Rules by their words, joined by [`SEPARATOR`].
#[derive(Default)]
pub(super) struct Rules {
    pub by_words: FxHashMap<String, Outputs>,
    /// Number of words of the longest rule.
    pub longest: usize,
    outputs: usize,
}

/// Separator between the words of a rule's key.
pub(super) const SEPARATOR: char = '\0';

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} synonym rules", self.by_words.len())
    }
}

impl Rules {
    /// Parses rules: `a, b => c` and `a, b, c`. If `lenient`, words that cannot be analyzed are left out.
    pub fn parse(
        lines: &[String],
        expand: bool,
        lenient: bool,
        analyzer: &RuleAnalyzer<'_>,
    ) -> Result<Self, AnalysisError> {
        let mut rules = Self::default();
        for (number, line) in lines.iter().enumerate() {
            work::check()?;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = |error: AnalysisError| {
                AnalysisError::illegal("failed to build synonyms").because(
                    "parse_exception",
                    format!("Invalid synonym rule at line {}: {}", number + 1, error.reason),
                )
            };
            let words = |side: &str| -> Result<Vec<Vec<String>>, AnalysisError> {
                let mut all = Vec::new();
                for part in split(side, ",") {
                    match read(&unescape(part.trim()), analyzer) {
                        Ok(words) => all.push(words),
                        Err(_) if lenient => {}
                        Err(error) => return Err(invalid(error)),
                    }
                }
                Ok(all)
            };
            let sides = split(line, "=>");
            match sides.as_slice() {
                [same] => {
                    let same = words(same)?;
                    for (at, from) in same.iter().enumerate() {
                        if expand {
                            for (other, to) in same.iter().enumerate() {
                                if at != other {
                                    rules.add(from, to, true)?;
                                }
                            }
                        } else {
                            rules.add(from, &same[0], false)?;
                        }
                    }
                }
                [from, to] => {
                    let (from, to) = (words(from)?, words(to)?);
                    for from in &from {
                        for to in &to {
                            rules.add(from, to, false)?;
                        }
                    }
                }
                _ => {
                    return Err(invalid(AnalysisError::illegal(
                        "more than one explicit mapping specified on the same line",
                    )));
                }
            }
        }
        Ok(rules)
    }

    fn add(&mut self, from: &[String], to: &[String], keeps: bool) -> Result<(), AnalysisError> {
        self.outputs += 1;
        if self.outputs > MAX_OUTPUTS {
            return Err(AnalysisError::illegal(format!(
                "failed to build synonyms: more than {MAX_OUTPUTS} pairs of synonyms"
            )));
        }
        self.longest = self.longest.max(from.len());
        let outputs = self.by_words.entry(from.join("\0")).or_default();
        outputs.keeps |= keeps;
        if !outputs.paths.iter().any(|known| known == to) {
            outputs.paths.push(to.to_vec());
        }
        Ok(())
    }
}

/// Splits a text at each `separator` that has no backslash before it.
fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(escaped) = rest.strip_prefix('\\') {
            at += 1 + escaped.chars().next().map_or(0, char::len_utf8);
        } else if rest.starts_with(separator) {
            parts.push(&text[start..at]);
            at += separator.len();
            start = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    out
}

/// Analyzes one side of a rule into its words, which must be at consecutive positions.
fn read(text: &str, analyzer: &RuleAnalyzer<'_>) -> Result<Vec<String>, AnalysisError> {
    let mut words = Vec::new();
    for token in (analyzer.0)(text)? {
        if token.text.is_empty() {
            return Err(AnalysisError::illegal(format!("term: {text} analyzed to a zero-length token")));
        }
        if token.increment != 1 {
            return Err(AnalysisError::illegal(format!(
                "term: {text} analyzed to a token ({}) with position increment != 1 (got: {})",
                token.text, token.increment
            )));
        }
        words.push(token.text);
    }
    if words.is_empty() {
        return Err(AnalysisError::illegal(format!("term: {text} was completely eliminated by analyzer")));
    }
    Ok(words)
}
