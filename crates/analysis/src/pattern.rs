//! Regular expressions in Java's syntax, executed by `fancy-regex`: in linear time, unless a pattern has look-around
//! or back-references; then with a limit on the number of steps.

use fancy_regex::{Captures, Regex, RegexBuilder};

use super::error::AnalysisError;

/// Limit on the backtracking steps of one match.
const BACKTRACK_LIMIT: usize = 100_000;
/// Largest compiled pattern, in bytes.
const SIZE_LIMIT: usize = 1 << 20;
/// Longest pattern, in bytes.
const LENGTH_LIMIT: usize = 10_000;

/// Compiles a pattern with Java's flags, separated by vertical bars (such as `CASE_INSENSITIVE|COMMENTS`).
pub(super) fn compile(pattern: &str, flags: &str) -> Result<Regex, AnalysisError> {
    let mut inline = String::new();
    let mut unicode_classes = false;
    let mut literal = false;
    for flag in flags.split('|').map(str::trim).filter(|flag| !flag.is_empty()) {
        match flag {
            "CASE_INSENSITIVE" => inline.push('i'),
            "MULTILINE" => inline.push('m'),
            "DOTALL" => inline.push('s'),
            "COMMENTS" => inline.push('x'),
            "LITERAL" => literal = true,
            "UNICODE_CHARACTER_CLASS" | "UNICODE_CHAR_CLASS" => unicode_classes = true,
            "UNICODE_CASE" | "UNIX_LINES" | "CANON_EQ" => {}
            other => return Err(AnalysisError::illegal(format!("Unknown regex flag [{other}]"))),
        }
    }
    if pattern.len() > LENGTH_LIMIT {
        return Err(AnalysisError::illegal(format!(
            "The length of regex [{}] is longer than the maximum of [{LENGTH_LIMIT}]",
            pattern.len()
        )));
    }
    let body =
        if literal { fancy_regex::escape(pattern).into_owned() } else { from_java(pattern, unicode_classes) };
    let full = if inline.is_empty() { body } else { format!("(?{inline}){body}") };
    RegexBuilder::new(&full).backtrack_limit(BACKTRACK_LIMIT).delegate_size_limit(SIZE_LIMIT).build().map_err(
        |error| AnalysisError {
            es_type: "pattern_syntax_exception",
            reason: format!("{error} near index 0\n{pattern}"),
            caused_by: None,
            stopped: None,
        },
    )
}

/// A compiled pattern for cutting texts at its matches.
#[derive(Debug, Clone)]
pub struct JavaPattern(Regex);

impl JavaPattern {
    /// Compiles a pattern in which `^` and `$` match at line ends.
    ///
    /// # Errors
    /// The message about an invalid pattern.
    pub fn multi_line(pattern: &str) -> Result<Self, String> {
        compile(pattern, "MULTILINE").map(Self).map_err(|error| error.reason)
    }

    /// Byte offsets of the matches in `text`, ascending. They end early if a match needs too many backtracking steps.
    pub fn starts<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        self.0.find_iter(text).map_while(Result::ok).map(|found| found.start())
    }
}

/// Translates a pattern from Java's syntax: Java's character classes are ASCII-only by default, and some have other
/// names.
fn from_java(pattern: &str, unicode_classes: bool) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escaped = &rest[at + 1..];
        let Some(c) = escaped.chars().next() else {
            out.push('\\');
            return out;
        };
        rest = &escaped[c.len_utf8()..];
        match c {
            'Q' => {
                let end = rest.find("\\E").unwrap_or(rest.len());
                out.push_str(&fancy_regex::escape(&rest[..end]));
                rest = rest[end..].strip_prefix("\\E").unwrap_or_default();
            }
            'd' if !unicode_classes => out.push_str("[0-9]"),
            'D' if !unicode_classes => out.push_str("[^0-9]"),
            'w' if !unicode_classes => out.push_str("[0-9A-Za-z_]"),
            'W' if !unicode_classes => out.push_str("[^0-9A-Za-z_]"),
            's' if !unicode_classes => out.push_str("[\\t\\n\\x0B\\f\\r ]"),
            'S' if !unicode_classes => out.push_str("[^\\t\\n\\x0B\\f\\r ]"),
            'p' | 'P' if rest.starts_with('{') => {
                let end = rest.find('}').map_or(rest.len(), |end| end + 1);
                out.push_str(&property(c, rest[..end].trim_matches(['{', '}'])));
                rest = &rest[end..];
            }
            _ => {
                out.push('\\');
                out.push(c);
            }
        }
    }
    out.push_str(rest);
    out
}

fn property(c: char, name: &str) -> String {
    let posix = match name {
        "Lower" | "Upper" | "ASCII" | "Alpha" | "Digit" | "Alnum" | "Punct" | "Graph" | "Print" | "Blank"
        | "Cntrl" | "XDigit" | "Space" => Some(name.to_ascii_lowercase()),
        _ => None,
    };
    match posix {
        Some(class) if c == 'p' => format!("[[:{class}:]]"),
        Some(class) => format!("[[:^{class}:]]"),
        None => {
            let name = name.strip_prefix("Is").filter(|rest| !rest.is_empty()).unwrap_or(name);
            format!("\\{c}{{{name}}}")
        }
    }
}

/// Largest size in bytes that a text may reach by replacements: a dozen replacements in a row can turn one letter
/// into gigabytes.
pub(super) fn most_bytes(text: &str) -> usize {
    (16 << 20).max(text.len() + text.len() / 4)
}

/// A replacement in Java's syntax: `$1`, `${name}`, and `\` before a literal character.
#[derive(Debug, Clone)]
pub(super) struct Replacement(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Group(usize),
    Name(String),
}

impl Replacement {
    pub fn parse(text: &str, regex: &Regex) -> Result<Self, AnalysisError> {
        let groups = regex.captures_len();
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(next) => literal.push(next),
                    None => return Err(AnalysisError::illegal("character to be escaped is missing")),
                },
                '$' => {
                    if !literal.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    }
                    if chars.next_if_eq(&'{').is_some() {
                        let mut name = String::new();
                        while let Some(next) = chars.next_if(|next| *next != '}') {
                            name.push(next);
                        }
                        if chars.next().is_none()
                            || !regex.capture_names().flatten().any(|known| known == name)
                        {
                            return Err(AnalysisError::illegal(format!("No group with name {{{name}}}")));
                        }
                        pieces.push(Piece::Name(name));
                        continue;
                    }
                    let Some(first) = chars.next_if(char::is_ascii_digit) else {
                        return Err(AnalysisError::illegal("Illegal group reference"));
                    };
                    let mut group = first.to_digit(10).unwrap_or_default() as usize;
                    if group >= groups {
                        return Err(AnalysisError::illegal(format!("No group {group}")));
                    }
                    // As many digits as still name a group.
                    while let Some(digit) = chars.peek().and_then(|next| next.to_digit(10)) {
                        let longer = group * 10 + digit as usize;
                        if longer >= groups {
                            break;
                        }
                        group = longer;
                        chars.next();
                    }
                    pieces.push(Piece::Group(group));
                }
                other => literal.push(other),
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Self(pieces))
    }

    /// Length in bytes of the replacement for a match.
    fn length(&self, captures: &Captures<'_>) -> usize {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Group(group) => captures.get(*group).map_or(0, |found| found.range().len()),
            Piece::Name(name) => captures.name(name).map_or(0, |found| found.range().len()),
        };
        self.0.iter().map(piece).sum()
    }

    fn push(&self, captures: &Captures<'_>, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Group(group) => out.push_str(captures.get(*group).map_or("", |found| found.as_str())),
                Piece::Name(name) => out.push_str(captures.name(name).map_or("", |found| found.as_str())),
            }
        }
    }

    /// Replaces the matches in `text`. `goes_on` is told each match and the bytes that stand for it, and says whether to look
    /// for another.
    pub fn apply(
        &self,
        regex: &Regex,
        text: &str,
        mut goes_on: impl FnMut(std::ops::Range<usize>, usize) -> bool,
    ) -> String {
        let mut out = String::with_capacity(text.len());
        let mut last = 0;
        let most = most_bytes(text);
        for captures in regex.captures_iter(text) {
            // A pattern that needs too many steps: the rest stays as it is.
            let Ok(captures) = captures else { break };
            let Some(found) = captures.get(0) else { break };
            // As with one that makes too much.
            if out.len() + self.length(&captures) > most {
                break;
            }
            out.push_str(&text[last..found.start()]);
            let before = out.len();
            self.push(&captures, &mut out);
            last = found.end();
            if !goes_on(found.range(), out.len() - before) {
                break;
            }
        }
        out.push_str(&text[last..]);
        out
    }
}
