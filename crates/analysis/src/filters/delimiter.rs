//! The token filters `word_delimiter` and `word_delimiter_graph`, which split words at punctuation and at changes
//! between cases or to digits.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens};
use super::{Filter, InRules};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    /// A letter that counts as both lower and upper case, so that next to it the case does not change.
    Alpha,
    Digit,
    /// A character that counts both as a letter and as a digit.
    Alphanum,
    Delimiter,
}

#[derive(Debug, Clone)]
struct Options {
    word_parts: bool,
    number_parts: bool,
    catenate_words: bool,
    catenate_numbers: bool,
    catenate_all: bool,
    case_change: bool,
    preserve_original: bool,
    numerics: bool,
    possessive: bool,
    ignore_keywords: bool,
    adjust_offsets: bool,
}

#[derive(Debug)]
pub(super) struct Delimiter {
    options: Options,
    protected: FxHashSet<String>,
    types: FxHashMap<char, Kind>,
    graph: bool,
}

impl Delimiter {
    pub fn new(params: &Params<'_>, graph: bool) -> Result<Self, AnalysisError> {
        params.refuse(&["protected_words_path", "type_table_path"])?;
        let mut types = FxHashMap::default();
        for rule in params.lines("type_table")?.unwrap_or_default() {
            let bad = || AnalysisError::illegal(format!("Invalid Mapping Rule : [{rule}]"));
            let (from, to) = rule.rsplit_once("=>").ok_or_else(bad)?;
            let kind = match to.trim() {
                "LOWER" => Kind::Lower,
                "UPPER" => Kind::Upper,
                "ALPHA" => Kind::Alpha,
                "DIGIT" => Kind::Digit,
                "ALPHANUM" => Kind::Alphanum,
                "SUBWORD_DELIM" => Kind::Delimiter,
                _ => {
                    return Err(AnalysisError::illegal(format!(
                        "Invalid Mapping Rule : [{rule}]. Illegal type."
                    )));
                }
            };
            let from = from.trim();
            let from = match from.strip_prefix("\\u") {
                Some(digits) => u32::from_str_radix(digits, 16).ok().and_then(char::from_u32),
                None => {
                    let mut chars =
                        from.strip_prefix('\\').filter(|rest| !rest.is_empty()).unwrap_or(from).chars();
                    chars.next().filter(|_| chars.next().is_none())
                }
            };
            let from = from.ok_or_else(|| {
                AnalysisError::illegal(format!(
                    "Invalid Mapping Rule : [{rule}]. Only a single character is allowed."
                ))
            })?;
            types.insert(from, kind);
        }
        Ok(Self {
            options: Options {
                word_parts: params.flag("generate_word_parts", true)?,
                number_parts: params.flag("generate_number_parts", true)?,
                catenate_words: params.flag("catenate_words", false)?,
                catenate_numbers: params.flag("catenate_numbers", false)?,
                catenate_all: params.flag("catenate_all", false)?,
                case_change: params.flag("split_on_case_change", true)?,
                preserve_original: params.flag("preserve_original", false)?,
                numerics: params.flag("split_on_numerics", true)?,
                possessive: params.flag("stem_english_possessive", true)?,
                ignore_keywords: graph && params.flag("ignore_keywords", false)?,
                adjust_offsets: !graph || params.flag("adjust_offsets", true)?,
            },
            protected: params.list("protected_words")?.unwrap_or_default().into_iter().collect(),
            types,
            graph,
        })
    }

    fn kind(&self, c: char) -> Kind {
        if let Some(kind) = self.types.get(&c) {
            return *kind;
        }
        if c.is_lowercase() {
            Kind::Lower
        } else if c.is_uppercase() {
            Kind::Upper
        } else if c.is_alphabetic() {
            Kind::Alpha
        } else if c.is_numeric() {
            Kind::Digit
        } else {
            Kind::Delimiter
        }
    }

    fn is_break(&self, last: Kind, next: Kind) -> bool {
        if last == next || last == Kind::Alphanum || next == Kind::Alphanum {
            return last == Kind::Delimiter;
        }
        let alpha = |kind| matches!(kind, Kind::Lower | Kind::Upper | Kind::Alpha);
        if last == Kind::Delimiter || next == Kind::Delimiter {
            return true;
        }
        if alpha(last) && alpha(next) {
            // From lower to upper case only: `Word` is one word.
            return self.options.case_change && last == Kind::Lower && next == Kind::Upper;
        }
        self.options.numerics
    }

    /// Byte ranges of the parts of a word, each with whether it is a number.
    fn parts(&self, text: &str) -> Vec<(usize, usize, bool)> {
        let kinds: Vec<(usize, char, Kind)> =
            text.char_indices().map(|(at, c)| (at, c, self.kind(c))).collect();
        let end_of = |at: usize| kinds.get(at).map_or(text.len(), |(at, ..)| *at);
        let mut parts = Vec::new();
        let mut at = 0;
        while at < kinds.len() {
            if kinds[at].2 == Kind::Delimiter {
                at += 1;
                continue;
            }
            let start = at;
            at += 1;
            while at < kinds.len() && !self.is_break(kinds[at - 1].2, kinds[at].2) {
                at += 1;
            }
            parts.push((kinds[start].0, end_of(at), kinds[start].2 == Kind::Digit));
            // A possessive goes.
            if self.options.possessive
                && kinds[at - 1].2 != Kind::Digit
                && kinds.get(at).is_some_and(|(_, c, _)| *c == '\'')
                && kinds.get(at + 1).is_some_and(|(_, c, _)| matches!(c, 's' | 'S'))
                && kinds.get(at + 2).is_none_or(|(.., kind)| *kind == Kind::Delimiter)
            {
                at += 2;
            }
        }
        parts
    }

    fn split(&self, token: Token, out: &mut Vec<Token>) {
        let skip = self.options.ignore_keywords && token.keyword || self.protected.contains(&token.text);
        let parts = if skip { vec![(0, token.text.len(), false)] } else { self.parts(&token.text) };
        if parts.is_empty() {
            // Nothing but delimiters.
            if self.options.preserve_original {
                out.push(token);
            }
            return;
        }
        if parts.len() == 1 && parts[0].0 == 0 && parts[0].1 == token.text.len() {
            return out.push(token);
        }
        let mut spans = self.spans(&token, &parts);
        if self.options.preserve_original {
            let length = self.width(&parts).max(1);
            spans.push(Span {
                from: 0,
                to: length,
                start: 0,
                end: token.text.len(),
                text: token.text.clone(),
                original: true,
            });
        }
        // In the order of positions; the graph has the longest first, the other form the shortest.
        if self.graph {
            spans.sort_by_key(|span| (span.from, std::cmp::Reverse(span.to), !span.original));
        } else {
            spans.sort_by_key(|span| (span.from, !span.original, span.to));
        }
        let whole = token.end - token.start == token.text.len() && self.options.adjust_offsets;
        let mut at = 0;
        let mut increment = token.increment;
        for span in spans {
            let mut part = token.with_text(span.text);
            if whole {
                part.end = token.start + span.end;
                part.start = token.start + span.start;
            }
            part.increment = std::mem::take(&mut increment) + (span.from - at) as u32;
            part.length = if self.graph { (span.to - span.from).max(1) as u32 } else { 1 };
            at = span.from;
            out.push(part);
        }
    }

    /// Number of positions that the parts take up.
    fn width(&self, parts: &[(usize, usize, bool)]) -> usize {
        if self.options.word_parts && self.options.number_parts {
            return parts.len();
        }
        self.positions(parts).last().copied().unwrap_or(0)
    }

    /// Position of each part, followed by the position after the last one.
    fn positions(&self, parts: &[(usize, usize, bool)]) -> Vec<usize> {
        let mut positions = Vec::with_capacity(parts.len() + 1);
        let mut at = 0;
        for (index, (.., number)) in parts.iter().enumerate() {
            positions.push(at);
            let run_ends = parts.get(index + 1).is_none_or(|(.., next)| next != number);
            let (alone, joined) = if *number {
                (self.options.number_parts, self.options.catenate_numbers)
            } else {
                (self.options.word_parts, self.options.catenate_words)
            };
            if alone || joined && run_ends {
                at += 1;
            }
        }
        positions.push(at);
        positions
    }

    fn spans(&self, token: &Token, parts: &[(usize, usize, bool)]) -> Vec<Span> {
        let positions = self.positions(parts);
        let text = |range: &[(usize, usize, bool)]| -> String {
            range.iter().map(|(start, end, _)| &token.text[*start..*end]).collect()
        };
        let mut spans = Vec::new();
        let mut put = |from: usize, to: usize| {
            let range = &parts[from..to];
            spans.push(Span {
                from: positions[from],
                to: positions[to].max(positions[from] + 1),
                start: parts[from].0,
                end: parts[to - 1].1,
                text: text(range),
                original: false,
            });
        };
        let mut at = 0;
        while at < parts.len() {
            let number = parts[at].2;
            let run = parts[at..].iter().take_while(|(.., kind)| *kind == number).count();
            let (alone, joined) = if number {
                (self.options.number_parts, self.options.catenate_numbers)
            } else {
                (self.options.word_parts, self.options.catenate_words)
            };
            if alone {
                (at..at + run).for_each(|part| put(part, part + 1));
            }
            if joined && (run > 1 || !alone) {
                put(at, at + run);
            }
            at += run;
        }
        if self.options.catenate_all {
            let one_run = parts.iter().all(|(.., kind)| *kind == parts[0].2);
            let there = if parts.len() == 1 {
                if parts[0].2 {
                    self.options.number_parts || self.options.catenate_numbers
                } else {
                    self.options.word_parts || self.options.catenate_words
                }
            } else {
                one_run
                    && if parts[0].2 { self.options.catenate_numbers } else { self.options.catenate_words }
            };
            if !there {
                put(0, parts.len());
            }
        }
        spans
    }
}

struct Span {
    from: usize,
    to: usize,
    start: usize,
    end: usize,
    text: String,
    original: bool,
}

impl Filter for Delimiter {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        let mut skipped = 0;
        let mut shift = 0u32;
        Box::new(tokens.flat_map(move |mut token| {
            token.increment += std::mem::take(&mut skipped) + std::mem::take(&mut shift);
            let mut out = Vec::new();
            let whole = token.increment;
            self.split(token, &mut out);
            if out.is_empty() {
                skipped = whole;
            } else if self.graph {
                // The next token stands behind the longest of these.
                let mut at = 0;
                let mut end = 0;
                for (index, part) in out.iter().enumerate() {
                    at += if index == 0 { 0 } else { part.increment };
                    end = end.max(at + part.length);
                }
                shift = end.saturating_sub(at + 1);
            }
            out
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Skipped
    }
}
