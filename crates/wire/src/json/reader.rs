//! Parses bytes into nodes.

use compact_str::CompactString;

use crate::limit;

use super::{Json, JsonError, Location, Member, Node};

/// Deepest nesting of objects and arrays that is accepted, in levels.
const MAX_DEPTH: usize = 500;
/// Most bytes of the request that a syntax error quotes.
const MAX_QUOTED_BYTES: usize = 500;

/// Parses one JSON value, and returns the next token after it, if there is one.
///
/// # Errors
/// On a syntax error, invalid UTF-8, a repeated key or nesting beyond 500 levels, and when the request of the thread is over a limit.
pub fn read(source: &[u8]) -> Result<(Node, Option<TrailingToken>), JsonError> {
    let mut reader = Reader { source, offset: 0, line: 1, line_start: 0, open: Vec::new() };
    reader.skip_whitespace();
    if reader.peek().is_none() {
        return Err(reader.error("No content to map due to end-of-input".to_owned(), true));
    }
    let node = reader.value()?;
    reader.skip_whitespace();
    let trailing = match reader.peek() {
        None => None,
        Some(_) => {
            let at = reader.location();
            Some(TrailingToken { at, token: reader.value()?.token() })
        }
    };
    Ok((node, trailing))
}

/// First token of anything after the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailingToken {
    /// Location of the token.
    pub at: Location,
    /// Name of the token, as in Elasticsearch's messages.
    pub token: &'static str,
}

struct Reader<'a> {
    source: &'a [u8],
    offset: usize,
    line: u32,
    line_start: usize,
    /// Open objects (`true`) and arrays, with the locations of their brackets.
    open: Vec<(bool, Location)>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.source.get(self.offset).copied()
    }

    fn location(&self) -> Location {
        self.location_of(self.offset)
    }

    fn location_of(&self, offset: usize) -> Location {
        Location { line: self.line, column: (offset - self.line_start + 1) as u32 }
    }

    fn skip_whitespace(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => {
                    self.offset += 1;
                    self.line += 1;
                    self.line_start = self.offset;
                }
                b' ' | b'\t' | b'\r' => self.offset += 1,
                _ => break,
            }
        }
    }

    fn describe(&self, at: Location) -> String {
        let shown = &self.source[..self.source.len().min(MAX_QUOTED_BYTES)];
        let text = String::from_utf8_lossy(shown);
        let left_out = match self.source.len() - shown.len() {
            0 => String::new(),
            bytes => format!("[truncated {bytes} bytes]"),
        };
        format!("[Source: (byte[])\"{text}\"{left_out}; line: {}, column: {}]", at.line, at.column)
    }

    fn error(&self, message: String, end_of_file: bool) -> JsonError {
        let at = self.location();
        JsonError { at, detail: format!("{message}\n at {}", self.describe(at)), end_of_file }
    }

    /// Error for a character that is not allowed here. Consumes the character, because the error's location
    /// is after it.
    fn unexpected(&mut self, expected: &str) -> JsonError {
        let Some(byte) = self.peek() else {
            return self.end_between();
        };
        let shown = match byte {
            0x20..=0x7e => format!("'{}' (code {byte})", byte as char),
            0x80..=0xff => String::from_utf8_lossy(&self.source[self.offset..])
                .chars()
                .next()
                .map(|c| format!("'{c}' (code {})", c as u32))
                .unwrap_or_default(),
            _ => format!("(CTRL-CHAR, code {byte})"),
        };
        let expected = match byte {
            b'/' | b'#' => {
                "maybe a comment? Comments are no part of JSON and are not read here, leave them out"
            }
            _ => expected,
        };
        self.error(format!("Unexpected character ({shown}): {expected}"), false)
    }

    fn context_name(&self) -> &'static str {
        match self.open.last() {
            None => "root",
            Some((true, _)) => "Object",
            Some((false, _)) => "Array",
        }
    }

    fn end_between(&self) -> JsonError {
        self.error(format!("Unexpected end-of-input within/between {} entries", self.context_name()), true)
    }

    fn end_before_close(&self) -> JsonError {
        match self.open.last() {
            Some((_, start)) => self.error(
                format!(
                    "Unexpected end-of-input: expected close marker for {} (start marker at {})",
                    self.context_name(),
                    self.describe(*start)
                ),
                true,
            ),
            None => self.end_between(),
        }
    }

    fn value(&mut self) -> Result<Node, JsonError> {
        let at = self.location();
        let scalar = |json| Node { at, end: at, json };
        match self.peek() {
            None => Err(self.end_between()),
            Some(b'{') => self.object(at),
            Some(b'[') => self.array(at),
            Some(b'"') => Ok(scalar(Json::String(self.string(false)?))),
            Some(b'-' | b'0'..=b'9') => Ok(scalar(Json::Number(self.number()?))),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' => {
                Ok(scalar(self.word()?))
            }
            Some(_) => Err(self.unexpected(
                "expected a valid value (JSON String, Number, Array, Object or token 'null', 'true' or 'false')",
            )),
        }
    }

    fn enter(&mut self, is_object: bool, at: Location) -> Result<(), JsonError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.error(
                format!(
                    "Document nesting depth ({}) exceeds the maximum allowed ({MAX_DEPTH})",
                    self.open.len() + 1
                ),
                false,
            ));
        }
        self.open.push((is_object, at));
        self.offset += 1;
        self.go_on(0)
    }

    /// Called before the first and for each further value of an object or array, with the number of those before it.
    fn go_on(&self, values: usize) -> Result<(), JsonError> {
        match limit::stops_at(values) {
            true => Err(self.error(limit::REASON.to_owned(), false)),
            false => Ok(()),
        }
    }

    fn object(&mut self, at: Location) -> Result<Node, JsonError> {
        self.enter(true, at)?;
        let mut members: Vec<Member> = Vec::new();
        let mut names = rustc_hash::FxHashSet::default();
        loop {
            self.skip_whitespace();
            match self.peek() {
                None => return Err(self.end_before_close()),
                Some(b'}') => break,
                Some(b',') if !members.is_empty() => {
                    self.offset += 1;
                    self.skip_whitespace();
                    if self.peek().is_none() {
                        return Err(JsonError { end_of_file: false, ..self.end_between() });
                    }
                }
                Some(_) if !members.is_empty() => {
                    return Err(self.unexpected("was expecting comma to separate Object entries"));
                }
                Some(_) => {}
            }
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("was expecting double-quote to start field name"));
            }
            let key_at = self.location();
            let name = self.string(true)?;
            if !names.insert(name.clone()) {
                return Err(self.error(format!("Duplicate field '{name}'"), false));
            }
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("was expecting a colon to separate field name and value"));
            }
            self.offset += 1;
            self.skip_whitespace();
            let value = self.value()?;
            self.go_on(members.len())?;
            // Most objects that there are many of have one member, and a vector begins with room for four.
            if members.is_empty() {
                members.reserve_exact(1);
            }
            members.push(Member { name, at: key_at, value });
        }
        let end = self.location();
        self.offset += 1;
        self.open.pop();
        Ok(Node { at, end, json: Json::Object(members) })
    }

    fn array(&mut self, at: Location) -> Result<Node, JsonError> {
        self.enter(false, at)?;
        let mut items = Vec::new();
        loop {
            self.skip_whitespace();
            match self.peek() {
                None => return Err(self.end_before_close()),
                Some(b']') => break,
                Some(b',') if !items.is_empty() => {
                    self.offset += 1;
                    self.skip_whitespace();
                }
                Some(_) if !items.is_empty() => {
                    return Err(self.unexpected("was expecting comma to separate Array entries"));
                }
                Some(_) => {}
            }
            let item = match self.peek() {
                // Vectors are most of many a body, and a number that passes through a result is copied three times.
                Some(b'-' | b'0'..=b'9') => {
                    let at = self.location();
                    Node { at, end: at, json: Json::Number(self.number()?) }
                }
                _ => self.value()?,
            };
            self.go_on(items.len())?;
            if items.is_empty() {
                items.reserve_exact(1);
            }
            items.push(item);
        }
        let end = self.location();
        self.offset += 1;
        self.open.pop();
        Ok(Node { at, end, json: Json::Array(items) })
    }

    fn word(&mut self) -> Result<Json, JsonError> {
        let start = self.offset;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$') {
            self.offset += 1;
        }
        let word = String::from_utf8_lossy(&self.source[start..self.offset]).into_owned();
        match word.as_str() {
            "null" => return Ok(Json::Null),
            "true" => return Ok(Json::Bool(true)),
            "false" => return Ok(Json::Bool(false)),
            _ => {}
        }
        let message = match word.as_str() {
            "NaN" | "Infinity" => format!(
                "Non-standard token '{word}': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow"
            ),
            _ => format!(
                "Unrecognized token '{word}': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
            ),
        };
        // The parser counts the character that ended the word as read.
        if self.peek().is_some() {
            let at = self.location_of(self.offset);
            return Err(JsonError {
                at: Location { column: at.column + 1, ..at },
                detail: {
                    let shown = Location { column: at.column + 1, ..at };
                    format!("{message}\n at {}", self.describe(shown))
                },
                end_of_file: false,
            });
        }
        Err(self.error(message, false))
    }

    fn number(&mut self) -> Result<CompactString, JsonError> {
        let start = self.offset;
        if self.peek() == Some(b'-') {
            self.offset += 1;
            if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
                return Err(
                    self.unexpected("Expected digit (0-9) to follow minus sign, for valid numeric value")
                );
            }
        }
        let leading_zero = self.peek() == Some(b'0');
        let digits = self.digits();
        if leading_zero && digits > 1 {
            return Err(self.error("Invalid numeric value: Leading zeroes not allowed".to_owned(), false));
        }
        if self.peek() == Some(b'.') {
            self.offset += 1;
            if self.digits() == 0 {
                return Err(self.unexpected("Decimal point not followed by a digit"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.offset += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            if self.digits() == 0 {
                return Err(self.unexpected("Exponent indicator not followed by a digit"));
            }
        }
        if self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_') {
            return Err(self.unexpected("Expected space separating root-level values"));
        }
        // ASCII alone has passed.
        Ok(std::str::from_utf8(&self.source[start..self.offset]).unwrap_or_default().into())
    }

    fn digits(&mut self) -> usize {
        let start = self.offset;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.offset += 1;
        }
        self.offset - start
    }

    fn string(&mut self, is_key: bool) -> Result<CompactString, JsonError> {
        self.offset += 1;
        let mut text: Vec<u8> = Vec::new();
        let start = self.offset;
        let read = loop {
            // Runs without escapes are copied whole: a query text may be megabytes long.
            let run = self.offset;
            while self.peek().is_some_and(|b| b != b'"' && b != b'\\' && b >= 0x20) {
                self.offset += 1;
            }
            let run = &self.source[run..self.offset];
            // Most strings are one run, and short.
            if text.is_empty() && self.peek() == Some(b'"') {
                self.offset += 1;
                break std::str::from_utf8(run).map(CompactString::from);
            }
            text.extend_from_slice(run);
            match self.peek() {
                None => {
                    let message = if is_key {
                        "Unexpected end-of-input in field name"
                    } else {
                        "Unexpected end-of-input: was expecting closing quote for a string value"
                    };
                    return Err(self.error(message.to_owned(), true));
                }
                Some(b'"') => {
                    self.offset += 1;
                    break std::str::from_utf8(&text).map(CompactString::from);
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(byte) => {
                    let kind = if is_key { "name" } else { "string value" };
                    return Err(self.error(
                        format!(
                            "Illegal unquoted character ((CTRL-CHAR, code {byte})): has to be escaped using backslash to be included in {kind}"
                        ),
                        false,
                    ));
                }
            }
        };
        read.map_err(|error| {
            let bytes = if text.is_empty() { &self.source[start..] } else { &text[..] };
            let byte = bytes.get(error.valid_up_to()).copied();
            self.offset = start;
            self.error(format!("Invalid UTF-8 start byte 0x{:x}", byte.unwrap_or_default()), false)
        })
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), JsonError> {
        self.offset += 1;
        let Some(byte) = self.peek() else {
            return Err(self.error("Unexpected end-of-input in character escape sequence".to_owned(), true));
        };
        self.offset += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let character = self.unicode_escape()?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            other => {
                return Err(self.error(
                    format!("Unrecognized character escape '{}' (code {other})", other as char),
                    false,
                ));
            }
        };
        text.push(plain);
        Ok(())
    }

    /// Parses the digits after `\u`, and the second half of a surrogate pair. A lone surrogate, which UTF-8
    /// cannot represent, becomes the replacement character.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.four_hex_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if self.source[self.offset..].starts_with(b"\\u") {
            let back = self.offset;
            self.offset += 2;
            let second = self.four_hex_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.offset = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_hex_digits(&mut self) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| (byte as char).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("expected a hex-digit for character escape sequence"));
            };
            code = code * 16 + digit;
            self.offset += 1;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, Location, read};

    fn error(text: &str) -> (String, bool) {
        let error = read(text.as_bytes()).expect_err(text);
        (error.to_string(), error.end_of_file)
    }

    #[test]
    fn tokens_know_their_places() {
        let (node, trailing) = read(b"{\"a\": [1,\n  {\"b\": null}] }").expect("valid");
        assert_eq!(trailing, None);
        let members = node.as_object().expect("object");
        assert_eq!(members[0].at, Location { line: 1, column: 2 });
        let items = members[0].value.as_array().expect("array");
        assert_eq!(items[0].at, Location { line: 1, column: 8 });
        assert_eq!(items[1].at, Location { line: 2, column: 3 });
        assert_eq!(items[1].end, Location { line: 2, column: 13 });
        assert_eq!(node.end, Location { line: 2, column: 16 });
    }

    #[test]
    fn strings_are_unescaped() {
        let (node, _) = read(br#""a\"\\\/\n\u00e9\ud83d\ude00\ud800x""#).expect("valid");
        assert_eq!(node.json, Json::String("a\"\\/\né😀\u{fffd}x".into()));
    }

    #[test]
    fn syntax_errors_read_as_recorded() {
        assert_eq!(
            error("{\"query\": {\"match_all\": {}"),
            (
                "[1:27] Unexpected end-of-input: expected close marker for Object (start marker at [Source: (byte[])\"{\"query\": {\"match_all\": {}\"; line: 1, column: 11])\n at [Source: (byte[])\"{\"query\": {\"match_all\": {}\"; line: 1, column: 27]".to_owned(),
                true
            )
        );
        assert_eq!(
            error("not json"),
            (
                "[1:5] Unrecognized token 'not': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')\n at [Source: (byte[])\"not json\"; line: 1, column: 5]".to_owned(),
                false
            )
        );
        assert_eq!(
            error("{\"title\": \"x\", "),
            (
                "[1:16] Unexpected end-of-input within/between Object entries\n at [Source: (byte[])\"{\"title\": \"x\", \"; line: 1, column: 16]".to_owned(),
                false
            )
        );
        assert_eq!(
            error("{\"index\""),
            (
                "[1:9] Unexpected end-of-input within/between Object entries\n at [Source: (byte[])\"{\"index\"\"; line: 1, column: 9]".to_owned(),
                true
            )
        );
    }

    #[test]
    fn other_bad_input_is_refused() {
        for (text, part) in [
            ("{\"a\":1,\"a\":2}", "Duplicate field 'a'"),
            ("[1 2]", "was expecting comma to separate Array entries"),
            ("{\"a\" 1}", "was expecting a colon"),
            ("{a:1}", "was expecting double-quote to start field name"),
            ("{/* size */ \"a\": 1}", "Unexpected character ('/' (code 47)): maybe a comment?"),
            ("{\"a\": 1 // size\n}", "maybe a comment?"),
            ("[1, # size\n2]", "maybe a comment?"),
            ("// size\n{}", "maybe a comment?"),
            ("[NaN]", "Non-standard token 'NaN'"),
            ("[01]", "Leading zeroes"),
            ("[-]", "Expected digit"),
            ("[1.]", "Decimal point"),
            ("[1e]", "Exponent"),
            ("\"a\nb\"", "Illegal unquoted character"),
            ("\"\\x\"", "Unrecognized character escape"),
            ("[1,]", "expected a valid value"),
            ("", "No content"),
        ] {
            let (message, _) = error(text);
            assert!(message.contains(part), "{text}: {message}");
        }
        assert!(error(&"[".repeat(100_000)).0.contains("nesting depth"));
        assert!(read(b"\"\xff\"").is_err());
    }

    #[test]
    fn a_second_value_is_reported() {
        let (_, trailing) = read(b"{} []").expect("valid");
        let trailing = trailing.expect("second value");
        assert_eq!((trailing.at, trailing.token), (Location { line: 1, column: 4 }, "START_ARRAY"));
    }
}
