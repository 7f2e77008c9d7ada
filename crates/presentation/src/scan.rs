//! Splits JSON into tokens that are slices of the text: numbers keep their digits, strings their escapes.

/// One JSON token. Strings keep their quotes and escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Key(&'a [u8]),
    Scalar(&'a [u8]),
}

/// Most bytes of commas, colons, brackets and spaces that stand around a token, without indentation.
pub(super) const SIGNS: usize = 8;

impl Token<'_> {
    /// Length of its text in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Token::Key(text) | Token::Scalar(text) => text.len(),
            Token::ObjectStart | Token::ObjectEnd | Token::ArrayStart | Token::ArrayEnd => 1,
        }
    }
}

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads JSON that this server has written. Checks it only as far as reading requires; what follows the first
/// value is ignored. Uses heap memory per nesting level, but no stack.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Open containers, outermost first; true for an object.
    open: Vec<bool>,
    expects_key: bool,
    is_over: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, open: Vec::new(), expects_key: false, is_over: false }
    }

    /// The next token; `None` after the end of the value.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, Malformed> {
        if self.is_over {
            return Ok(None);
        }
        let Some(byte) = self.peek() else { return Err(Malformed) };
        let token = match byte {
            b'{' | b'[' => {
                let object = byte == b'{';
                self.at += 1;
                self.open.push(object);
                self.expects_key = object;
                return Ok(Some(if object { Token::ObjectStart } else { Token::ArrayStart }));
            }
            b'}' | b']' => {
                self.at += 1;
                let object = byte == b'}';
                if self.open.pop() != Some(object) {
                    return Err(Malformed);
                }
                if object { Token::ObjectEnd } else { Token::ArrayEnd }
            }
            b'"' => {
                let text = self.string()?;
                if self.expects_key {
                    self.expects_key = false;
                    return Ok(Some(Token::Key(text)));
                }
                Token::Scalar(text)
            }
            _ if self.expects_key => return Err(Malformed),
            _ => {
                let rest = &self.bytes[self.at..];
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
                let end = rest.iter().position(ends).unwrap_or(rest.len());
                self.at += end;
                Token::Scalar(&rest[..end])
            }
        };
        // A value is complete.
        self.expects_key = self.open.last() == Some(&true);
        self.is_over = self.open.is_empty();
        Ok(Some(token))
    }

    /// Whether the container that has just been opened is empty; if so, its end is skipped.
    pub(super) fn takes_empty(&mut self) -> bool {
        match self.peek() {
            Some(b'}' | b']') => self.next().is_ok(),
            _ => false,
        }
    }

    /// Skips the next value.
    pub(super) fn skip(&mut self) -> Result<(), Malformed> {
        let depth = self.open.len();
        loop {
            match self.next()? {
                None => return Err(Malformed),
                Some(Token::Key(_)) => {}
                Some(_) if self.open.len() <= depth => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// First byte of the next token, if there is one.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.bytes.get(self.at..)?;
        let between = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':');
        self.at += rest.iter().position(between)?;
        self.bytes.get(self.at).copied()
    }

    fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            match self.bytes.get(at) {
                None => return Err(Malformed),
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        Ok(&self.bytes[start..self.at])
    }
}

/// The text of a quoted string. Lone surrogates are encoded as UTF-8 would encode them if it allowed them, so
/// that they differ from all other text.
pub(super) fn unescaped(quoted: &[u8]) -> Vec<u8> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escaped = inner.get(at).copied().unwrap_or(b'\\');
        at += 1;
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let first = unit(inner, at).unwrap_or(0xfffd);
                at += 4;
                let second = match (first, inner.get(at..at + 2)) {
                    (0xd800..=0xdbff, Some(b"\\u")) => {
                        unit(inner, at + 2).filter(|second| (0xdc00..=0xdfff).contains(second))
                    }
                    _ => None,
                };
                match second {
                    Some(second) => {
                        at += 6;
                        push(&mut out, 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
                    }
                    None => push(&mut out, first),
                }
            }
            other => out.push(other),
        }
    }
    out
}

fn unit(text: &[u8], at: usize) -> Option<u32> {
    let digits = std::str::from_utf8(text.get(at..at + 4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Writes a code point, or a lone surrogate, in UTF-8.
fn push(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(letter) => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend_from_slice(&[
            0xe0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3f) as u8,
            0x80 | (code & 0x3f) as u8,
        ]),
    }
}

/// A text as a JSON string with as few escapes as possible; the inverse of [`unescaped`].
pub(super) fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            // UTF-8 has no surrogates: this is a lone one.
            0xed if text.get(at).is_some_and(|next| *next >= 0xa0) => {
                let low = |place: usize| u32::from(text.get(place).copied().unwrap_or(0x80) & 0x3f);
                out.extend_from_slice(format!("\\u{:04x}", 0xd000 | low(at) << 6 | low(at + 1)).as_bytes());
                at += 2;
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}
