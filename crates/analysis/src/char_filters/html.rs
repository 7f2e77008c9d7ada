//! The `html_strip` char filter, after Lucene's `HTMLStripCharFilter`: inline tags are removed; other tags, scripts
//! and styles become a line break; character references become the character.

use rustc_hash::FxHashSet;

use super::entities::ENTITIES;
use super::filter::{CharFilter, Filtered, OffsetMap};
use crate::error::AnalysisError;
use crate::params::Params;

/// Elements whose tags separate no words.
const INLINE: [&str; 31] = [
    "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "cite", "code", "dfn", "em", "font", "i", "img",
    "input", "kbd", "label", "q", "s", "samp", "select", "small", "span", "strike", "strong", "sub", "sup",
    "textarea", "tt", "u", "var",
];
/// Longest element name in bytes; a longer one is text.
const LONGEST_NAME: usize = 64;
/// Longest tag in bytes; one that is not closed by then is text.
const LONGEST_TAG: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct HtmlStrip {
    escaped: FxHashSet<String>,
}

impl HtmlStrip {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        let escaped = params.list("escaped_tags")?.unwrap_or_default();
        Ok(Self { escaped: escaped.into_iter().map(|tag| tag.to_ascii_lowercase()).collect() })
    }
}

/// A piece of markup, and what it is replaced by.
struct Markup {
    /// Length of the markup in bytes.
    length: usize,
    output: String,
}

impl CharFilter for HtmlStrip {
    fn filter(&self, text: &str, _: &dyn Fn() -> bool) -> Filtered {
        let mut out = String::with_capacity(text.len());
        let mut offsets = OffsetMap::default();
        // Searches for an end that is not there are made once, so that hostile text costs no more than its length.
        let mut ends = Ends::default();
        let mut at = 0;
        while let Some(found) = text[at..].find(['<', '&']) {
            out.push_str(&text[at..at + found]);
            at += found;
            let rest = &text[at..];
            // What is in it is text.
            if let Some(cdata) = rest.strip_prefix("<![CDATA[")
                && let Some(length) = ends.find(cdata, "]]>")
            {
                let (start, end) = (at + 9, at + 9 + length - 3);
                offsets.replaced(out.len(), 0, at..start, 1);
                out.push_str(&text[start..end]);
                offsets.replaced(out.len(), 0, end..end + 3, 1);
                at = end + 3;
                continue;
            }
            let markup = if rest.starts_with('&') { reference(rest) } else { self.tag(text, at, &mut ends) };
            match markup {
                Some(Markup { length, output }) => {
                    let last = usize::from(length > 0);
                    offsets.replaced(out.len(), output.len(), at..at + length, last);
                    out.push_str(&output);
                    at += length;
                }
                None => {
                    out.push_str(&rest[..1]);
                    at += 1;
                }
            }
        }
        out.push_str(&text[at..]);
        Filtered { text: out, offsets }
    }
}

/// End markers that do not occur in the rest of the text, so that they need not be searched for again.
#[derive(Default)]
struct Ends(FxHashSet<&'static str>);

impl Ends {
    fn find(&mut self, text: &str, end: &'static str) -> Option<usize> {
        if self.0.contains(end) {
            return None;
        }
        let found = text.find(end);
        if found.is_none() {
            self.0.insert(end);
        }
        found.map(|at| at + end.len())
    }

    /// Byte offset of the closing tag `end`, in upper or lower case.
    fn find_tag(&mut self, text: &str, end: &'static str) -> Option<usize> {
        if self.0.contains(end) {
            return None;
        }
        let mut windows = text.as_bytes().windows(end.len());
        let found = windows.position(|window| window.eq_ignore_ascii_case(end.as_bytes()));
        if found.is_none() {
            self.0.insert(end);
        }
        found
    }
}

impl HtmlStrip {
    fn tag(&self, text: &str, at: usize, ends: &mut Ends) -> Option<Markup> {
        let rest = &text[at..];
        let gone = |length| Some(Markup { length, output: String::new() });
        let line = |length| Some(Markup { length, output: "\n".to_owned() });
        if let Some(comment) = rest.strip_prefix("<!--") {
            return gone(4 + ends.find(comment, "-->")?);
        }
        if rest.starts_with("<?") {
            return gone(ends.find(rest, ">")?);
        }
        if rest.starts_with("<!") {
            return gone(ends.find(rest, ">")?);
        }
        let name_at = if rest.starts_with("</") { 2 } else { 1 };
        let name_len = rest[name_at..]
            .bytes()
            .take(LONGEST_NAME)
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.'))
            .count();
        let name = rest[name_at..name_at + name_len].to_ascii_lowercase();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let length = tag_length(rest, name_at + name_len)?;
        if self.escaped.contains(&name) {
            return Some(Markup { length, output: rest[..length].to_owned() });
        }
        if name_at == 1 && !rest[..length].ends_with("/>") {
            let end = match name.as_str() {
                "script" => Some("</script"),
                "style" => Some("</style"),
                _ => None,
            };
            if let Some(end) = end
                && let Some(found) = ends.find_tag(&rest[length..], end)
            {
                let close = length + found;
                return line(close + tag_length(&rest[close..], end.len())?);
            }
        }
        if INLINE.contains(&name.as_str()) { gone(length) } else { line(length) }
    }
}

/// Length in bytes of the tag whose name ends at `at`; attribute values in quotes may contain `>`. `None` if it is
/// not a tag.
fn tag_length(rest: &str, at: usize) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = at;
    if !matches!(bytes.get(at), Some(b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r')) {
        return None;
    }
    let mut quote = None;
    let end = bytes.len().min(at + LONGEST_TAG);
    while let Some(&byte) = bytes[..end].get(at) {
        at += 1;
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'<') => return None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    None
}

/// Parses a character reference such as `&amp;`, `&#38;` or `&#x26;`; the semicolon may be missing.
fn reference(rest: &str) -> Option<Markup> {
    let body = &rest[1..];
    let take = |text: &str, wanted: fn(&u8) -> bool| text.bytes().take(10).take_while(wanted).count();
    let (length, c) = if let Some(number) = body.strip_prefix('#') {
        let (digits_at, radix, count) = if number.starts_with(['x', 'X']) {
            (3, 16, take(&number[1..], u8::is_ascii_hexdigit))
        } else {
            (2, 10, take(number, u8::is_ascii_digit))
        };
        let digits = &rest[digits_at..digits_at + count];
        (digits_at + count, char::from_u32(u32::from_str_radix(digits, radix).ok()?)?)
    } else {
        let count = take(body, u8::is_ascii_alphanumeric);
        let name = &body[..count];
        let at = ENTITIES.binary_search_by_key(&name, |(known, _)| known).ok()?;
        (1 + count, char::from_u32(ENTITIES[at].1)?)
    };
    let length = length + usize::from(rest[length..].starts_with(';'));
    // A non-breaking space separates words.
    let c = if c == '\u{A0}' { ' ' } else { c };
    Some(Markup { length, output: c.to_string() })
}

#[cfg(test)]
mod tests {
    use super::ENTITIES;

    #[test]
    fn entities_are_sorted_as_they_are_searched() {
        assert!(ENTITIES.is_sorted_by(|a, b| a.0 < b.0));
    }
}
