//! Rust sources as the checks read them: without what only tests compile, and without comments and the contents of strings.
//!
//! This reads characters, not a syntax tree, and knows as much of the language as finding the end of an item takes.

/// How an attribute begins that makes the item behind it one that only tests compile.
const TEST_ONLY: &[&str] = &["#[cfg(test)", "#[cfg(all(test,"];

/// Words that an item with a body begins with, which ends at the body's brace or at a semicolon.
const BLOCK_ITEMS: &[&str] =
    &["mod", "fn", "impl", "struct", "enum", "trait", "union", "unsafe", "extern", "async", "macro_rules"];

/// Words that an item begins with which ends at a semicolon, whatever braces it has.
const STATEMENT_ITEMS: &[&str] = &["use", "static", "type", "let"];

/// The source without each item behind `#[cfg(test)]`, and without that attribute; everything else stays as it is.
pub fn without_tests(text: &str) -> String {
    let kept = Tokens::of(text).kept();
    kept.into_iter().map(|(start, end)| &text[start..end]).collect()
}

/// The same, with blanks in place of comments and of what strings and characters contain.
pub fn code(text: &str) -> String {
    let tokens = Tokens::of(text);
    let kept = tokens.kept();
    kept.into_iter()
        .map(|(start, end)| String::from_utf8_lossy(&tokens.code[start..end]).into_owned())
        .collect()
}

/// A source of the same length in bytes, in which comments and contents of literals are blank, so that every bracket left is one.
struct Tokens {
    code: Vec<u8>,
}

impl Tokens {
    fn of(text: &str) -> Self {
        let source = text.as_bytes();
        let mut code = source.to_vec();
        let mut at = 0;
        while at < source.len() {
            let end = match source[at] {
                b'/' if source[at..].starts_with(b"//") => {
                    let end = line_end(source, at);
                    blank(&mut code[at..end]);
                    end
                }
                b'/' if source[at..].starts_with(b"/*") => {
                    let end = comment_end(source, at);
                    blank(&mut code[at..end]);
                    end
                }
                b'"' => {
                    let end = string_end(source, at, hashes_before(source, at));
                    blank(&mut code[at + 1..end]);
                    end
                }
                b'\'' => {
                    let end = character_end(text, at);
                    blank(&mut code[at + 1..end]);
                    end
                }
                _ => at + 1,
            };
            at = end;
        }
        Self { code }
    }

    /// The ranges of bytes that are not behind `#[cfg(test)]`.
    fn kept(&self) -> Vec<(usize, usize)> {
        if self.starts_with(0, "#![cfg(test)]") {
            return Vec::new();
        }
        let (mut kept, mut start, mut at) = (Vec::new(), 0, 0);
        while at < self.code.len() {
            if TEST_ONLY.iter().any(|attribute| self.starts_with(at, attribute)) {
                kept.push((start, at));
                start = self.item_end(self.bracket_end(at + 1));
                at = start;
            } else {
                at += 1;
            }
        }
        kept.push((start, self.code.len()));
        kept
    }

    /// Where the item ends that begins at `at`, maybe with more attributes.
    fn item_end(&self, mut at: usize) -> usize {
        at = self.behind_blanks(at);
        while self.starts_with(at, "#[") {
            at = self.behind_blanks(self.bracket_end(at + 1));
        }
        let mut words = self.words(at).filter(|word| !matches!(word.as_str(), "pub" | "default"));
        let first = words.next().unwrap_or_default();
        let is_block = BLOCK_ITEMS.contains(&first.as_str())
            || first == "const" && words.next().is_some_and(|next| BLOCK_ITEMS.contains(&next.as_str()));
        let is_statement = STATEMENT_ITEMS.contains(&first.as_str()) || first == "const";
        // What else there is stands in a list (a field, a variant, an arm), or is an expression.
        let is_element = !is_block && !is_statement;
        let mut angles = 0_usize;
        while at < self.code.len() {
            match self.code[at] {
                b'{' if is_block => return self.bracket_end(at),
                b'{' | b'(' | b'[' => {
                    let end = self.bracket_end(at);
                    // An arm or a block needs no comma behind it.
                    let next = self.behind_blanks(end);
                    let goes_on = matches!(self.code.get(next), Some(b',' | b';' | b'.'))
                        || self.starts_with(next, "=>");
                    if is_element && self.code[at] == b'{' && !goes_on {
                        return end;
                    }
                    at = end;
                    continue;
                }
                b';' => return at + 1,
                b',' if is_element && angles == 0 => return at + 1,
                b'}' | b')' | b']' => return at,
                b'<' => angles += 1,
                b'>' if !matches!(self.code[at - 1], b'-' | b'=') => angles = angles.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// The names from `at` on; what is in parentheses behind the first of them, as in `pub(crate)`, is none.
    fn words(&self, at: usize) -> impl Iterator<Item = String> {
        let rest = String::from_utf8_lossy(&self.code[at..]).into_owned();
        let rest = match rest.strip_prefix("pub(") {
            Some(visibility) => visibility.split_once(')').map_or("", |(_, rest)| rest).to_owned(),
            None => rest,
        };
        let words: Vec<String> = rest
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .take(3)
            .map(str::to_owned)
            .collect();
        words.into_iter()
    }

    /// The byte behind the bracket that closes the one at `at`.
    fn bracket_end(&self, at: usize) -> usize {
        let mut depth = 0_usize;
        for (offset, byte) in self.code[at..].iter().enumerate() {
            match byte {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return at + offset + 1;
                    }
                }
                _ => {}
            }
        }
        self.code.len()
    }

    fn behind_blanks(&self, at: usize) -> usize {
        let blanks = self.code[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        at + blanks
    }

    fn starts_with(&self, at: usize, text: &str) -> bool {
        self.code[at..].starts_with(text.as_bytes())
    }
}

/// Blanks of the same length; lines stay lines.
fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

fn line_end(source: &[u8], at: usize) -> usize {
    source[at..].iter().position(|byte| *byte == b'\n').map_or(source.len(), |length| at + length)
}

/// The byte behind a comment in `/* */`, which may hold others.
fn comment_end(source: &[u8], at: usize) -> usize {
    let (mut depth, mut at) = (0_usize, at);
    while at < source.len() {
        match &source[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// How many `#` a raw string has whose quote is at `at`; none for a string with escapes.
fn hashes_before(source: &[u8], at: usize) -> Option<usize> {
    let hashes = source[..at].iter().rev().take_while(|byte| **byte == b'#').count();
    (at > hashes && source[at - hashes - 1] == b'r').then_some(hashes)
}

/// The closing quote's place, of a string that is raw if it has `hashes`; the end of the source if it is never closed.
fn string_end(source: &[u8], open: usize, hashes: Option<usize>) -> usize {
    let mut at = open + 1;
    while at < source.len() {
        match (source[at], hashes) {
            (b'\\', None) => at += 1,
            (b'"', None) => return at + 1,
            (b'"', Some(hashes))
                if source[at + 1..].iter().take(hashes).filter(|it| **it == b'#').count() == hashes =>
            {
                return at + 1 + hashes;
            }
            _ => {}
        }
        at += 1;
    }
    source.len()
}

/// The byte behind a character in quotes, or behind the quote alone of a lifetime.
fn character_end(text: &str, at: usize) -> usize {
    let mut rest = text[at + 1..].chars();
    match rest.next() {
        Some('\\') => {
            let escaped = text.as_bytes().get(at + 2).map_or(0, |_| 1);
            text[at + 2 + escaped..].find('\'').map_or(text.len(), |length| at + 2 + escaped + length + 1)
        }
        Some(c) if rest.next() == Some('\'') => at + 1 + c.len_utf8() + 1,
        _ => at + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source without tests, with its blanks made one each.
    fn left(text: &str) -> String {
        without_tests(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_the_item_behind_the_attribute_goes() {
        for (item, rest) in [
            ("use a::{b, c};", "fn d() {}"),
            ("mod tests;", "mod d;"),
            ("#[path = \"a_tests.rs\"]\nmod tests;", "mod d;"),
            ("pub(crate) use {a::b, c};", "use d;"),
            ("mod tests {\n    fn a() { let b = [1; 2]; }\n}", "fn d() {}"),
            ("pub(super) fn a<B, C>(b: B, c: C) -> Option<B> { b }", "fn d() {}"),
            ("fn a() -> [u8; 3];", "fn d();"),
            ("#[derive(Debug, Clone)]\nstruct A<B, C>(B, C);", "struct D;"),
            ("const A: B = B { c: 1 };", "const D: u8 = 1;"),
            ("const fn a() { b(); }", "const D: u8 = 1;"),
            ("impl<A, B> C<A, B> for D {}", "impl D {}"),
            ("let a = match b { c => 1, d => 2 };", "let e = 1;"),
            ("assert!(a, b);", "let e = 1;"),
        ] {
            assert_eq!(left(&format!("use z;\n#[cfg(test)]\n{item}\n{rest}")), format!("use z; {rest}"));
        }
    }

    #[test]
    fn a_platform_may_be_named_beside_the_tests() {
        assert_eq!(
            left(
                "#[cfg(all(test, unix))]\nuse a;\n#[cfg(all(unix, windows))]\nuse b;\n#[cfg(not(test))]\nuse c;"
            ),
            "#[cfg(all(unix, windows))] use b; #[cfg(not(test))] use c;"
        );
    }

    #[test]
    fn an_element_of_a_list_ends_with_its_comma_or_with_the_list() {
        assert_eq!(left("struct A { b: B, #[cfg(test)] c: Map<C, D>, e: E }"), "struct A { b: B, e: E }");
        assert_eq!(left("struct A { b: B, #[cfg(test)] c: fn(C, D) -> E }"), "struct A { b: B, }");
        assert_eq!(left("A { b: 1, #[cfg(test)] c: d(1, 2), e: 3 }"), "A { b: 1, e: 3 }");
        assert_eq!(left("match a { #[cfg(test)] B { .. } => c, D => e }"), "match a { D => e }");
        assert_eq!(left("match a { #[cfg(test)] B => { c } D => e }"), "match a { D => e }");
        assert_eq!(left("enum A { #[cfg(test)] B { c: D }, E }"), "enum A { E }");
    }

    #[test]
    fn brackets_in_comments_and_literals_are_none() {
        let item =
            "fn a() { b(\"}\\\"}\", '}', '\\'', r#\"}\"}\"#, c::<'static>()); /* } /* } */ } */ // }\n}";
        assert_eq!(left(&format!("#[cfg(test)]\n{item}\nfn d() {{}}")), "fn d() {}");
        assert_eq!(
            left("const A: &str = \"#[cfg(test)]\"; use b; // #[cfg(test)]\nuse c;").matches("use").count(),
            2
        );
    }

    #[test]
    fn a_source_of_tests_is_empty() {
        assert_eq!(without_tests("#![cfg(test)]\nfn a() {}"), "");
    }

    #[test]
    fn code_has_neither_comments_nor_contents_of_literals() {
        let text = "use a; // use b;\nlet c = \"use d; // e\"; /* use f;\n*/ let g = ('h', b'\\n'); fn i<'j>(k: &'j str) {}";
        let code = code(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code, "use a; let c = \" ; let g = (' , b' ); fn i<'j>(k: &'j str) {}");
    }
}
