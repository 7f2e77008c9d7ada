//! From the text of a script to tokens.

/// Why a script is not compiled, and the byte at which that is seen.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub at: usize,
    pub reason: String,
}

impl Refusal {
    pub(crate) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }
}

/// A token, and the bytes between which it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub start: usize,
    pub end: usize,
    pub kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// A name, a keyword, or the name of a type.
    Word,
    /// A number with its suffix, as it is written.
    Number,
    Text(String),
    /// A regular expression and its flags.
    Regex(String, String),
    Sign(&'static str),
    End,
}

/// Longest first.
const SIGNS: [&str; 51] = [
    ">>>=", "<<=", ">>=", ">>>", "===", "!==", "==~", "->", "::", "?.", "?:", "&&", "||", "==", "!=", "<=",
    ">=", "=~", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "{", "}", "(", ")",
    "[", "]", ";", ",", ".", "?", ":", "=", "<", ">", "!", "~", "+", "-", "*", "%", "&",
];
const MORE_SIGNS: [&str; 4] = ["|", "^", "/", "$"];

/// Reads all tokens; the last one is the end.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, Refusal> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    loop {
        at = after_blanks(source, at)?;
        let rest = &source[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push(Token { start: at, end: at, kind: TokenKind::End });
            return Ok(tokens);
        };
        let before = tokens.last().map(|token| &token.kind);
        let after_dot = matches!(before, Some(TokenKind::Sign("." | "?.")));
        let (kind, length) = if first.is_ascii_alphabetic() || first == '_' {
            let length =
                rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            (TokenKind::Word, length)
        } else if first.is_ascii_digit() {
            // `list.0` is an access: what follows the digits is not theirs.
            let length =
                if after_dot { rest.bytes().take_while(u8::is_ascii_digit).count() } else { number(rest) };
            (TokenKind::Number, length)
        } else if first == '"' || first == '\'' {
            text(rest, first, at)?
        } else if first == '/' && !ends_value(source, tokens.last()) {
            regex(rest, at)?
        } else {
            let sign = SIGNS.iter().chain(&MORE_SIGNS).find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| Refusal::new(at, format!("unexpected character [{first}].")))?;
            (TokenKind::Sign(sign), sign.len())
        };
        tokens.push(Token { start: at, end: at + length, kind });
        at += length;
    }
}

/// The first byte that is neither white space nor part of a comment.
fn after_blanks(source: &str, mut at: usize) -> Result<usize, Refusal> {
    loop {
        let rest = &source[at..];
        let trimmed = rest.trim_start();
        if trimmed.starts_with("//") {
            at = source.len() - trimmed.find('\n').map_or(0, |end| trimmed.len() - end);
        } else if let Some(comment) = trimmed.strip_prefix("/*") {
            let end = comment.find("*/");
            let start = source.len() - trimmed.len();
            at = start + 4 + end.ok_or_else(|| Refusal::new(start, "the comment has no end"))?;
        } else {
            return Ok(source.len() - trimmed.len());
        }
    }
}

/// Whether a value may end with the token, so that a slash behind it divides.
fn ends_value(source: &str, token: Option<&Token>) -> bool {
    token.is_some_and(|token| match &token.kind {
        TokenKind::Word => {
            !matches!(&source[token.start..token.end], "return" | "in" | "instanceof" | "else" | "do")
        }
        TokenKind::Number | TokenKind::Text(_) | TokenKind::Regex(..) => true,
        TokenKind::Sign(sign) => matches!(*sign, ")" | "]" | "}" | "++" | "--"),
        TokenKind::End => false,
    })
}

/// Bytes of a number, with its suffix.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if let [b'0', b'x' | b'X', ..] = bytes {
        let length = 2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        return length + usize::from(matches!(bytes.get(length), Some(b'l' | b'L')));
    }
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if let Some(b'e' | b'E') = bytes.get(length) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(length + 1 + sign..).map_or(0, |_| digits(length + 1 + sign));
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length + usize::from(matches!(bytes.get(length), Some(b'l' | b'L' | b'f' | b'F' | b'd' | b'D')))
}

fn text(rest: &str, quote: char, at: usize) -> Result<(TokenKind, usize), Refusal> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((place, char)) = chars.next() {
        if char == quote {
            return Ok((TokenKind::Text(text), place + 1));
        }
        if char != '\\' {
            text.push(char);
            continue;
        }
        let escaped = chars.next().map(|(_, escaped)| escaped);
        text.push(match escaped {
            Some(same @ ('\\' | '\'' | '"')) => same,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            _ => {
                let reason = format!(
                    "unexpected character [{}]. The only valid escape sequences in strings starting with [{quote}] are \
                     [\\\\], [\\'], [\\\"], [\\n], [\\t], [\\r], [\\b] and [\\f].",
                    &rest[..(place + 1 + escaped.map_or(0, char::len_utf8)).min(rest.len())]
                );
                return Err(Refusal::new(at, reason));
            }
        });
    }
    Err(Refusal::new(at, "the string has no end"))
}

fn regex(rest: &str, at: usize) -> Result<(TokenKind, usize), Refusal> {
    let mut chars = rest.char_indices().skip(1).peekable();
    let mut pattern = String::new();
    while let Some((place, char)) = chars.next() {
        match char {
            '\n' => break,
            // A slash is escaped only for the script.
            '\\' if chars.next_if(|(_, next)| *next == '/').is_some() => pattern.push('/'),
            '\\' => {
                pattern.push('\\');
                pattern.extend(chars.next().map(|(_, next)| next));
            }
            '/' => {
                let flags: String = rest[place + 1..].chars().take_while(char::is_ascii_alphabetic).collect();
                let length = place + 1 + flags.len();
                return Ok((TokenKind::Regex(pattern, flags), length));
            }
            other => pattern.push(other),
        }
    }
    Err(Refusal::new(at, "the regular expression has no end"))
}
