//! Regular expressions as Java writes them, for an engine whose time is linear in the text.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

/// Most bytes of a compiled expression, and its deepest nesting.
const MOST_BYTES: usize = 1 << 17;
const MOST_LEVELS: u32 = 100;
/// Longest expression in bytes.
const MOST_LENGTH: usize = 4096;

/// A regular expression with Java's flags.
#[derive(Debug, Clone)]
pub struct Pattern {
    pub source: Arc<str>,
    pub regex: Regex,
    /// The same over a whole text.
    pub whole: Regex,
}

/// Compiles an expression with Java's flags, such as `i`.
///
/// # Errors
/// The reason: what is not supported, or not an expression.
pub(crate) fn compile(source: &str, flags: &str) -> Result<Pattern, String> {
    if source.len() > MOST_LENGTH {
        return Err(format!("it is longer than [{MOST_LENGTH}] bytes"));
    }
    let translated = translated(source)?;
    if let Some(other) = flags.chars().find(|flag| !"imsxuU".contains(*flag)) {
        return Err(format!("unknown flag [{other}]"));
    }
    // Unicode cases are how the engine compares anyway, whether or not there is a `u`.
    let build = |expression: &str| {
        RegexBuilder::new(expression)
            .size_limit(MOST_BYTES)
            .dfa_size_limit(MOST_BYTES)
            .nest_limit(MOST_LEVELS)
            .case_insensitive(flags.contains('i'))
            .multi_line(flags.contains('m'))
            .dot_matches_new_line(flags.contains('s'))
            .ignore_whitespace(flags.contains('x'))
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(limit) => format!("it would take more than [{limit}] bytes"),
                other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
            })
    };
    let regex = build(&translated)?;
    // A comment may end the expression.
    let whole = build(&format!("\\A(?:{translated}{})\\z", if flags.contains('x') { "\n" } else { "" }))?;
    Ok(Pattern { source: source.into(), regex, whole })
}

/// The expression in the engine's syntax. Java's classes `\d`, `\w`, `\s` and `\b` are those of ASCII.
fn translated(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    // Open brackets of classes.
    let mut classes = 0_usize;
    // Whether a quantifier ended here, which a plus would make possessive.
    let mut quantified = false;
    while let Some(char) = chars.next() {
        let was_quantified = std::mem::take(&mut quantified);
        match char {
            '\\' => {
                let Some(escaped) = chars.next() else { return Err("it ends with a backslash".into()) };
                let class = match escaped {
                    'd' => "0-9",
                    'w' => "a-zA-Z0-9_",
                    's' => " \\t\\n\\x0B\\f\\r",
                    'h' => " \\t\\x{A0}",
                    'D' => "^0-9",
                    'W' => "^a-zA-Z0-9_",
                    'S' => "^ \\t\\n\\x0B\\f\\r",
                    _ => "",
                };
                match escaped {
                    _ if !class.is_empty() && (classes == 0 || class.starts_with('^')) => {
                        out.push_str(&format!("[{class}]"));
                    }
                    _ if !class.is_empty() => out.push_str(class),
                    'b' | 'B' if classes == 0 => out.push_str(&format!("(?-u:\\{escaped})")),
                    'Q' => {
                        let rest: String = chars.by_ref().collect();
                        let (quoted, after) = rest.split_once("\\E").unwrap_or((&rest, ""));
                        out.push_str(&regex::escape(quoted));
                        out.push_str(&translated(after)?);
                        return Ok(out);
                    }
                    'R' => out.push_str("(?:\\r\\n|[\\n\\x0B\\f\\r\\x{85}\\x{2028}\\x{2029}])"),
                    'Z' => return Err("the anchor [\\Z] is not supported".into()),
                    'G' => return Err("the anchor [\\G] is not supported".into()),
                    '1'..='9' | 'k' => {
                        return Err(
                            "backreferences are not supported, because their time is not bounded".into()
                        );
                    }
                    'p' | 'P' => out.push_str(&property(escaped, &mut chars, classes > 0)),
                    '/' | '"' | '\'' | ' ' | ',' | ':' | ';' | '=' | '!' | '@' | '%' | '_' | '<' | '>'
                    | '`' => {
                        out.push_str(&regex::escape(&escaped.to_string()));
                    }
                    other => out.extend(['\\', other]),
                }
            }
            '[' => {
                classes += 1;
                out.push(char);
                // A bracket that is first would end the class in Java's reading of an empty one; it is an error there too.
            }
            ']' if classes > 0 => {
                classes -= 1;
                out.push(char);
            }
            '(' if classes == 0 && chars.peek() == Some(&'?') => {
                let ahead: String = chars.clone().take(3).collect();
                let unsupported = match ahead.as_str() {
                    "?<=" | "?<!" => Some("look-behind"),
                    _ if ahead.starts_with("?=") || ahead.starts_with("?!") => Some("look-ahead"),
                    _ if ahead.starts_with("?>") => Some("an atomic group"),
                    _ => None,
                };
                if let Some(name) = unsupported {
                    return Err(format!("{name} is not supported, because its time is not bounded"));
                }
                out.push(char);
            }
            '+' if classes == 0 && was_quantified => {
                return Err(
                    "possessive quantifiers are not supported, because their time is not bounded".into()
                );
            }
            '*' | '+' | '?' | '}' if classes == 0 => {
                // In `a*?` the question mark belongs to the quantifier.
                quantified = !(char == '?' && was_quantified);
                out.push(char);
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

/// A class such as `\p{Alpha}`, whose POSIX names the engine writes otherwise.
fn property(letter: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>, inside: bool) -> String {
    if chars.peek() != Some(&'{') {
        return format!("\\{letter}");
    }
    let name: String = chars.by_ref().skip(1).take_while(|char| *char != '}').collect();
    let posix = matches!(
        name.as_str(),
        "Lower"
            | "Upper"
            | "ASCII"
            | "Alpha"
            | "Digit"
            | "Alnum"
            | "Punct"
            | "Graph"
            | "Print"
            | "Blank"
            | "Cntrl"
            | "XDigit"
            | "Space"
    );
    let negated = if letter == 'P' { "^" } else { "" };
    match posix {
        true if inside => format!("[:{negated}{}:]", name.to_lowercase()),
        true => format!("[[:{negated}{}:]]", name.to_lowercase()),
        false => format!("\\{letter}{{{}}}", name.strip_prefix("Is").unwrap_or(&name)),
    }
}
