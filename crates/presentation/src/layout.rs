//! Formats an answer for people (`pretty`) or as YAML.

use sparrow_runtime::work;

use super::Problem;
use super::scan::{SIGNS, Scanner, Token, escaped, unescaped};

/// Output length in bytes above which formatting may enlarge an answer at most eightfold; `MOST` is the limit
/// in any case.
const LONG: usize = 256 << 20;
const MOST: usize = 2 << 30;

/// Refuses output that has grown too much: `so_far` bytes were written for an answer of `from` bytes.
fn check_length(so_far: usize, from: usize) -> Result<(), Problem> {
    if so_far > MOST || (so_far > LONG && so_far / 8 > from) { Err(Problem::TooLong) } else { Ok(()) }
}

/// An object or array that is being written.
struct Container {
    is_object: bool,
    /// Whether a member or an item was already written.
    has_any: bool,
}

/// Pretty-prints an answer: two spaces per level, ` : ` after keys, a newline at the end.
pub(super) fn pretty(bytes: &[u8]) -> Result<Vec<u8>, Problem> {
    check_length(bytes.len(), bytes.len())?;
    let mut out = Vec::new();
    work::grow(&mut out, bytes.len() + bytes.len() / 2)?;
    let mut scanner = Scanner::new(bytes);
    let mut open: Vec<Container> = Vec::new();
    while let Some(token) = scanner.next()? {
        check_length(out.len(), bytes.len())?;
        let depth = open.len();
        work::grow(&mut out, token.len() + 2 * depth + SIGNS)?;
        let begins =
            matches!(token, Token::Key(_)) || open.last().is_some_and(|container| !container.is_object);
        let ends = matches!(token, Token::ObjectEnd | Token::ArrayEnd);
        if begins
            && !ends
            && let Some(container) = open.last_mut()
        {
            if std::mem::replace(&mut container.has_any, true) {
                out.push(b',');
            }
            new_line(&mut out, depth);
        }
        match token {
            Token::Key(key) => {
                out.extend_from_slice(key);
                out.extend_from_slice(b" : ");
            }
            Token::Scalar(text) => out.extend_from_slice(text),
            Token::ObjectStart | Token::ArrayStart => {
                let is_object = token == Token::ObjectStart;
                if scanner.takes_empty() {
                    out.extend_from_slice(if is_object { b"{ }" } else { b"[ ]" });
                } else {
                    out.push(if is_object { b'{' } else { b'[' });
                    open.push(Container { is_object, has_any: false });
                }
            }
            Token::ObjectEnd | Token::ArrayEnd => {
                open.pop();
                new_line(&mut out, open.len());
                out.push(if token == Token::ObjectEnd { b'}' } else { b']' });
            }
        }
    }
    out.push(b'\n');
    Ok(out)
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

/// A YAML mapping or sequence that is being written.
#[derive(Clone, Copy, Default)]
struct Block {
    is_object: bool,
    /// Indentation of its lines, in spaces.
    margin: usize,
}

/// Writes an answer as YAML, laid out as Elasticsearch does: strings in double quotes, numbers as they were.
pub(super) fn yaml(bytes: &[u8]) -> Result<Vec<u8>, Problem> {
    check_length(bytes.len(), bytes.len())?;
    let mut out = Vec::new();
    work::grow(&mut out, bytes.len() + bytes.len() / 4)?;
    out.extend_from_slice(b"---\n");
    let mut scanner = Scanner::new(bytes);
    let mut open: Vec<Block> = Vec::new();
    // Whether the line has begun already, with the dash of a list.
    let mut is_begun = false;
    while let Some(token) = scanner.next()? {
        check_length(out.len(), bytes.len())?;
        let Block { is_object: in_object, margin } = open.last().copied().unwrap_or_default();
        work::grow(&mut out, token.len() + margin + SIGNS)?;
        if let Token::Key(key) = token {
            begin(&mut out, &mut is_begun, margin);
            write_key(&mut out, key);
            out.push(b':');
            continue;
        }
        if matches!(token, Token::ObjectEnd | Token::ArrayEnd) {
            open.pop();
            continue;
        }
        let is_root = open.is_empty();
        if !is_root && !in_object {
            begin(&mut out, &mut is_begun, margin);
            out.push(b'-');
        }
        let is_object = token == Token::ObjectStart;
        let inline = match token {
            Token::Scalar(text) => Some(text),
            _ if scanner.takes_empty() => Some(if is_object { b"{}".as_slice() } else { b"[]".as_slice() }),
            _ => None,
        };
        if let Some(text) = inline {
            if !is_root {
                out.push(b' ');
            }
            write_scalar(&mut out, text);
            out.push(b'\n');
        } else if is_root {
            open.push(Block { is_object, margin: 0 });
        } else if in_object {
            out.push(b'\n');
            // The items of a list stand under its key, not farther in.
            open.push(Block { is_object, margin: if is_object { margin + 2 } else { margin } });
        } else {
            out.push(b' ');
            is_begun = true;
            open.push(Block { is_object, margin: margin + 2 });
        }
    }
    Ok(out)
}

fn begin(out: &mut Vec<u8>, is_begun: &mut bool, margin: usize) {
    if !std::mem::take(is_begun) {
        out.resize(out.len() + margin, b' ');
    }
}

/// Writes a key, without quotes if it is a plain word that no version of YAML reads as anything else.
fn write_key(out: &mut Vec<u8>, key: &[u8]) {
    const RESERVED: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let name = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    let is_word = name.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(byte))
        && !RESERVED.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()));
    if is_word { out.extend_from_slice(name) } else { write_scalar(out, key) }
}

/// Writes a JSON scalar. JSON strings are valid YAML, except for escapes that YAML 1.1 lacks and for
/// surrogates, which are re-encoded.
fn write_scalar(out: &mut Vec<u8>, text: &[u8]) {
    let is_foreign = text.starts_with(b"\"") && text.windows(2).any(|pair| pair == b"\\u" || pair == b"\\/");
    if is_foreign {
        out.extend_from_slice(&escaped(&unescaped(text)));
    } else {
        out.extend_from_slice(text);
    }
}
