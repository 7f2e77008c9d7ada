//! Text without its HTML: tags go, block tags leave a line break, entities become characters.

/// Tags that become line breaks, as in Lucene's HTML filter; all other tags leave nothing.
const BLOCK_TAGS: [&str; 40] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "canvas",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "title",
    "tr",
    "ul",
];

const ENTITIES: [(&str, char); 32] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", '\u{a0}'),
    ("copy", '©'),
    ("reg", '®'),
    ("trade", '™'),
    ("hellip", '…'),
    ("mdash", '—'),
    ("ndash", '–'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bull", '•'),
    ("middot", '·'),
    ("deg", '°'),
    ("euro", '€'),
    ("pound", '£'),
    ("cent", '¢'),
    ("yen", '¥'),
    ("sect", '§'),
    ("para", '¶'),
    ("times", '×'),
    ("divide", '÷'),
    ("plusmn", '±'),
    ("frac12", '½'),
    ("shy", '\u{ad}'),
];

/// Accented letters by base letters and accent: names of entities such as `eacute` and `Uuml`.
const ACCENTS: [(&str, &str, &str); 7] = [
    ("acute", "aeiouyAEIOUY", "áéíóúýÁÉÍÓÚÝ"),
    ("grave", "aeiouAEIOU", "àèìòùÀÈÌÒÙ"),
    ("circ", "aeiouAEIOU", "âêîôûÂÊÎÔÛ"),
    ("uml", "aeiouyAEIOU", "äëïöüÿÄËÏÖÜ"),
    ("tilde", "anoANO", "ãñõÃÑÕ"),
    ("cedil", "cC", "çÇ"),
    ("ring", "aA", "åÅ"),
];

/// Strips HTML from a text.
pub(crate) fn strip(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    // Where the last tag can end: what opens after it was looked for to the end of the text each time.
    let last = html.rfind('>');
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = match rest.starts_with('<') {
            true if last.is_some_and(|last| last > html.len() - rest.len()) => tag(rest, &mut out),
            true => unclosed(rest, &mut out),
            false => entity(rest, &mut out),
        };
    }
    out.push_str(rest);
    out
}

/// Handles a `<` without a closing `>`; returns the rest of the text.
fn unclosed<'t>(text: &'t str, out: &mut String) -> &'t str {
    if text.starts_with("<!--") || text.starts_with("<![CDATA[") {
        return "";
    }
    out.push('<');
    &text[1..]
}

/// Handles a tag, comment or lone `<` at the start of a text; returns the rest of the text.
fn tag<'t>(text: &'t str, out: &mut String) -> &'t str {
    for (open, close) in [("<!--", "-->"), ("<![CDATA[", "]]>")] {
        if let Some(inner) = text.strip_prefix(open) {
            let Some(end) = inner.find(close) else { return "" };
            if open == "<![CDATA[" {
                out.push_str(&inner[..end]);
            }
            return &inner[end + close.len()..];
        }
    }
    let name_start = text[1..].trim_start_matches('/');
    if !name_start.starts_with(|char: char| char.is_ascii_alphabetic() || char == '!' || char == '?') {
        // A lone `<`, as in `1 < 2`.
        out.push('<');
        return &text[1..];
    }
    let Some(end) = tag_end(text) else {
        out.push('<');
        return &text[1..];
    };
    let name: String =
        name_start.chars().take_while(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let after = &text[end + 1..];
    if BLOCK_TAGS.contains(&name.as_str()) {
        out.push('\n');
    }
    let closes_itself = text.starts_with("</") || text[..end].ends_with('/');
    if (name == "script" || name == "style") && !closes_itself {
        let close = format!("</{name}");
        return match find_ignore_case(after, &close) {
            Some(at) => after[at..].find('>').map_or("", |end| &after[at + end + 1..]),
            None => "",
        };
    }
    after
}

/// Byte offset of the end of a tag; a `>` inside quotes does not end it.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    // An apostrophe that is no quote: the first `>` ends the tag.
    text.find('>')
}

fn find_ignore_case(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

/// Handles an entity or lone `&` at the start of a text; returns the rest of the text.
fn entity<'t>(text: &'t str, out: &mut String) -> &'t str {
    let name: &str = {
        let end = text[1..]
            .find(|char: char| !char.is_ascii_alphanumeric() && char != '#')
            .unwrap_or(text.len() - 1);
        &text[1..=end]
    };
    let decoded = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => number.parse().ok(),
            };
            code.and_then(char::from_u32)
        }
        None => named(name),
    };
    match decoded {
        Some(char) => {
            out.push(char);
            let after = &text[1 + name.len()..];
            after.strip_prefix(';').unwrap_or(after)
        }
        None => {
            out.push('&');
            &text[1..]
        }
    }
}

fn named(name: &str) -> Option<char> {
    if let Some((_, char)) = ENTITIES.iter().find(|(entity, _)| *entity == name) {
        return Some(*char);
    }
    let base = name.chars().next()?;
    let accent = &name[base.len_utf8()..];
    let (_, bases, letters) = ACCENTS.iter().find(|(ending, _, _)| *ending == accent)?;
    let at = bases.chars().position(|char| char == base)?;
    letters.chars().nth(at)
}

#[cfg(test)]
mod tests {
    use super::strip;

    #[test]
    fn html_becomes_text() {
        for (html, text) in [
            ("plain", "plain"),
            ("<b>bold</b> text", "bold text"),
            ("<p>one</p><p>two</p>", "\none\n\ntwo\n"),
            ("a<br/>b", "a\nb"),
            ("<a title='x > y' href=\"#\">link</a>", "link"),
            ("x<!-- no --><script>if (a < b) {}</script><STYLE>p{}</style>y", "xy"),
            ("&lt;tag&gt; &amp; &eacute;&#233;&#xE9; &unknown; &", "<tag> & ééé &unknown; &"),
            ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
            ("open <b", "open <b"),
            ("it's <i>John's</i> <em class=it's>x</em>", "it's John's x"),
        ] {
            assert_eq!(strip(html), text, "{html}");
        }
    }
}
