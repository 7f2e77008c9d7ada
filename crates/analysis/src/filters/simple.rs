//! Filters that look at one token at a time.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::pattern::{Replacement, compile};
use super::super::token::{Tokens, map_text, retain};
use super::super::unicode::{lower, lowercase};
use super::{Filter, InRules};

/// A filter that changes the text of each token separately.
pub(super) struct TextFilter {
    name: &'static str,
    normalizes: bool,
    change: Box<dyn Fn(&mut String) + Send + Sync>,
}

impl fmt::Debug for TextFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Filter for TextFilter {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        map_text(tokens, &self.change)
    }

    fn normalizes(&self) -> bool {
        self.normalizes
    }
}

/// A filter that changes the text of each token.
pub(super) fn text_filter(
    name: &'static str,
    normalizes: bool,
    change: impl Fn(&mut String) + Send + Sync + 'static,
) -> Arc<dyn Filter> {
    Arc::new(TextFilter { name, normalizes, change: Box::new(change) })
}

fn uppercase(text: &mut String) {
    *text = text
        .chars()
        .map(|c| {
            let mut upper = c.to_uppercase();
            match (upper.next(), upper.next()) {
                (Some(one), None) => one,
                _ => c,
            }
        })
        .collect();
}

/// The `lowercase` filter, with the special rules of `language` if it has any.
pub(crate) fn lowercase_filter(language: Option<&str>) -> Result<Arc<dyn Filter>, AnalysisError> {
    Ok(match language {
        None => text_filter("lowercase", true, lowercase),
        Some("turkish") => text_filter("lowercase", true, turkish),
        Some("greek") => text_filter("lowercase", true, greek),
        Some("irish") => text_filter("lowercase", true, irish),
        Some(other) => {
            return Err(AnalysisError::illegal(format!("language [{other}] not support for lower case")));
        }
    })
}

/// Lowercases by Turkish rules, in which the dotless i is a separate letter.
fn turkish(text: &mut String) {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            'I' if chars.peek() == Some(&'\u{307}') => {
                chars.next();
                out.push('i');
            }
            'I' => out.push('ı'),
            'İ' => out.push('i'),
            other => out.push(lower(other)),
        }
    }
    *text = out;
}

/// Lowercases Greek, removing accents and replacing final sigma by sigma.
fn greek(text: &mut String) {
    *text = text
        .chars()
        .map(|c| match c {
            'ς' => 'σ',
            'Ά' | 'ά' => 'α',
            'Έ' | 'έ' => 'ε',
            'Ή' | 'ή' => 'η',
            'Ί' | 'Ϊ' | 'ί' | 'ϊ' | 'ΐ' => 'ι',
            'Ύ' | 'Ϋ' | 'ύ' | 'ϋ' | 'ΰ' => 'υ',
            'Ό' | 'ό' => 'ο',
            'Ώ' | 'ώ' => 'ω',
            '\u{3A2}' => 'ς',
            other => lower(other),
        })
        .collect();
}

/// Lowercases Irish: an n or t prefixed to a capital vowel is separated by a hyphen.
fn irish(text: &mut String) {
    let mut chars = text.chars();
    if let (Some(first @ ('n' | 't')), Some('A' | 'E' | 'I' | 'O' | 'U' | 'Á' | 'É' | 'Í' | 'Ó' | 'Ú')) =
        (chars.next(), chars.next())
    {
        let mut out = format!("{first}-");
        out.extend(text[1..].chars().map(lower));
        *text = out;
        return;
    }
    lowercase(text);
}

/// The `elision` filter: removes articles before an apostrophe.
pub(crate) fn elision(articles: FxHashSet<String>, ignore_case: bool) -> Arc<dyn Filter> {
    text_filter("elision", true, move |text| {
        let Some((at, apostrophe)) = text.char_indices().find(|(_, c)| matches!(c, '\'' | '\u{2019}')) else {
            return;
        };
        let mut article = text[..at].to_owned();
        if ignore_case {
            lowercase(&mut article);
        }
        if articles.contains(&article) {
            text.drain(..at + apostrophe.len_utf8());
        }
    })
}

/// The French articles, which `elision` uses by default.
pub(crate) const FRENCH_ARTICLES: [&str; 13] =
    ["l", "m", "t", "qu", "n", "s", "j", "d", "c", "jusqu", "quoiqu", "lorsqu", "puisqu"];

/// The `decimal_digit` filter: decimal digits of all scripts become ASCII digits.
pub(super) fn decimal_digit() -> Arc<dyn Filter> {
    text_filter("decimal_digit", true, decimal_digits)
}

fn decimal_digits(text: &mut String) {
    if text.is_ascii() {
        return;
    }
    *text = text
        .chars()
        .map(|c| match digit_value(c) {
            Some(value) => char::from(b'0' + value),
            None => c,
        })
        .collect();
}

/// Value of a decimal digit of a non-ASCII script; `None` for any other character.
fn digit_value(c: char) -> Option<u8> {
    if c.is_ascii() {
        return None;
    }
    // Decimal digits come in rows of ten that begin with the zero.
    let zeros = &*ZEROS;
    let at = zeros.partition_point(|zero| *zero <= c as u32).checked_sub(1)?;
    let value = c as u32 - zeros[at];
    (value < 10).then_some(value as u8)
}

static ZEROS: std::sync::LazyLock<Vec<u32>> = std::sync::LazyLock::new(|| {
    use regex_syntax::hir::{Class, HirKind};
    match regex_syntax::parse(r"\p{Nd}").map(|hir| hir.into_kind()) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            class.iter().flat_map(|range| (range.start() as u32..=range.end() as u32).step_by(10)).collect()
        }
        _ => Vec::new(),
    }
});

/// The `classic` filter: removes the possessive `'s`, and the dots of acronyms, from tokens with those types.
#[derive(Debug)]
struct ClassicFilter;

impl Filter for ClassicFilter {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        Box::new(tokens.map(|mut token| {
            match token.kind {
                "<APOSTROPHE>" if token.text.ends_with("'s") || token.text.ends_with("'S") => {
                    token.text.truncate(token.text.len() - 2);
                }
                "<ACRONYM>" => token.text.retain(|c| c != '.'),
                _ => {}
            }
            token
        }))
    }
}

#[derive(Debug)]
struct Length {
    min: usize,
    max: usize,
}

impl Filter for Length {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        retain(tokens, |token| (self.min..=self.max).contains(&utf16_len(&token.text)))
    }
}

/// Length of a text in UTF-16 code units, as Java counts it.
pub(super) fn utf16_len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

#[derive(Debug)]
struct Limit {
    max: usize,
    /// The `consume_all_tokens` option: accepted, but tokens beyond the limit are not read, as that would change
    /// nothing here.
    _consume: bool,
}

impl Filter for Limit {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        Box::new(tokens.take(self.max))
    }
}

/// The `flatten_graph` filter: makes token graphs flat enough to be indexed.
#[derive(Debug)]
struct FlattenGraph;

impl Filter for FlattenGraph {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        super::synonym::flatten(tokens)
    }

    fn in_rules(&self) -> InRules {
        InRules::Skipped
    }
}

/// The `pattern_capture` filter: emits what the capture groups match, at the token's position.
#[derive(Debug)]
struct PatternCapture {
    patterns: Vec<fancy_regex::Regex>,
    preserve_original: bool,
}

impl Filter for PatternCapture {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        Box::new(tokens.flat_map(move |token| {
            let mut found: Vec<(usize, usize, usize)> = Vec::new();
            for (at, regex) in self.patterns.iter().enumerate() {
                for captures in regex.captures_iter(&token.text).map_while(Result::ok) {
                    for group in captures.iter().skip(1).flatten() {
                        let whole = group.start() == 0 && group.end() == token.text.len();
                        if group.end() > group.start() && !(whole && self.preserve_original) {
                            found.push((group.start(), at, group.end()));
                        }
                    }
                }
            }
            // In the order of the text, then of the patterns.
            found.sort_by_key(|(start, at, _)| (*start, *at));
            let mut out = Vec::with_capacity(found.len() + 1);
            for (start, _, end) in &found {
                let mut part = token.with_text(&token.text[*start..*end]);
                if self.preserve_original || !out.is_empty() {
                    part.increment = 0;
                }
                out.push(part);
            }
            if self.preserve_original || out.is_empty() {
                out.insert(0, token);
            }
            out
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Refused
    }
}

pub(super) fn build(kind: &str, params: &Params<'_>) -> Result<Option<Arc<dyn Filter>>, AnalysisError> {
    Ok(Some(match kind {
        "lowercase" => lowercase_filter(params.text("language")?.map(|name| name.to_lowercase()).as_deref())?,
        "uppercase" => text_filter("uppercase", true, uppercase),
        "trim" => text_filter("trim", true, |text| {
            // Java's `trim`-like idea of whitespace.
            let trimmed = text.trim_matches(|c: char| c <= ' ' || c.is_whitespace() && c != '\u{A0}');
            if trimmed.len() != text.len() {
                *text = trimmed.to_owned();
            }
        }),
        "reverse" => text_filter("reverse", false, |text| *text = text.chars().rev().collect()),
        "apostrophe" => text_filter("apostrophe", false, |text| {
            if let Some(at) = text.find(['\'', '\u{2019}']) {
                text.truncate(at);
            }
        }),
        "decimal_digit" => decimal_digit(),
        "classic" => Arc::new(ClassicFilter),
        "flatten_graph" => Arc::new(FlattenGraph),
        "elision" => {
            params.refuse(&["articles_path"])?;
            let ignore_case = params.flag("articles_case", false)?;
            let articles = match params.list("articles")? {
                Some(articles) if ignore_case => {
                    articles.into_iter().map(|article| article.to_lowercase()).collect()
                }
                Some(articles) => articles.into_iter().collect(),
                None => FRENCH_ARTICLES.map(str::to_owned).into_iter().collect(),
            };
            elision(articles, ignore_case || !params.has("articles"))
        }
        "truncate" => {
            let length = params.number("length", -1)?;
            let length = usize::try_from(length)
                .ok()
                .filter(|length| *length > 0)
                .ok_or_else(|| AnalysisError::illegal("length parameter must be provided"))
                .or_else(|error| if params.has("length") { Err(error) } else { Ok(10) })?;
            text_filter("truncate", false, move |text| {
                if let Some((at, _)) = text.char_indices().nth(length) {
                    text.truncate(at);
                }
            })
        }
        "length" => {
            let (min, max) = (params.number("min", 0)?, params.number("max", i64::from(i32::MAX))?);
            if min < 0 {
                return Err(AnalysisError::illegal("minimum length must be greater than or equal to zero"));
            }
            if min > max {
                return Err(AnalysisError::illegal("maximum length must not be greater than minimum length"));
            }
            Arc::new(Length { min: min as usize, max: max as usize })
        }
        "limit" => {
            let max = params.number("max_token_count", 1)?;
            if max < 1 {
                return Err(AnalysisError::illegal("maxTokenCount must be greater than zero"));
            }
            Arc::new(Limit { max: max as usize, _consume: params.flag("consume_all_tokens", false)? })
        }
        "pattern_replace" => {
            let pattern = params.text("pattern")?.ok_or_else(|| {
                AnalysisError::illegal(format!(
                    "pattern is missing for [{}] token filter of type 'pattern_replace'",
                    params.name
                ))
            })?;
            let regex = compile(&pattern, &params.text("flags")?.unwrap_or_default())?;
            let replacement = Replacement::parse(&params.text("replacement")?.unwrap_or_default(), &regex)?;
            let all = params.flag("all", true)?;
            text_filter("pattern_replace", true, move |text| {
                if regex.is_match(text).unwrap_or(false) {
                    *text = replacement.apply(&regex, text, |_, _| all);
                }
            })
        }
        "pattern_capture" => {
            let patterns = params.lines("patterns")?.ok_or_else(|| {
                AnalysisError::illegal(format!(
                    "required setting 'patterns' is missing for token filter [{}]",
                    params.name
                ))
            })?;
            let patterns =
                patterns.iter().map(|pattern| compile(pattern, "")).collect::<Result<Vec<_>, _>>()?;
            Arc::new(PatternCapture { patterns, preserve_original: params.flag("preserve_original", true)? })
        }
        _ => return Ok(None),
    }))
}
