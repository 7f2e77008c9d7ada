//! Parser for Lucene's query syntax. What a term means in a field is decided later, in the index that the query is bound to.

use crate::MAX_CLAUSES;

/// Parentheses that may be open at once.
const MAX_DEPTH: usize = 64;

/// Characters that end a term, besides whitespace.
const SPECIAL: [char; 13] = ['!', '(', ')', ':', '^', '[', ']', '"', '{', '}', '~', '/', '\u{3000}'];

/// A parsed query.
#[derive(Debug, Clone, PartialEq)]
pub enum Syntax {
    /// Clauses with the operators between them.
    Group(Vec<Clause>),
    /// One term, phrase or range.
    Leaf { field: Option<String>, leaf: Leaf },
    /// A query with a boost.
    Boost(Box<Syntax>, f32),
}

/// One clause of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    pub conjunction: Conjunction,
    pub modifier: Modifier,
    pub syntax: Syntax,
}

/// The operator before a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conjunction {
    None,
    And,
    Or,
}

/// The sign before a clause: `+`, `-` or `!`, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modifier {
    None,
    Required,
    Prohibited,
}

/// What is searched in a field: a term, phrase, pattern or range.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    /// A text to analyse; several plain terms in a row make one text.
    Text(String),
    /// A quoted text; the slop is the one after `~`.
    Phrase(String, Option<u32>),
    /// `*` alone: any value.
    Any,
    /// A text before a final `*`.
    Prefix(String),
    /// A pattern with `*` and `?`, its escapes kept.
    Wildcard(String),
    /// A term with `~`, and the number after it.
    Fuzzy(String, Option<f32>),
    /// A regular expression between slashes.
    Regexp(String),
    /// Bounds of a range, open if absent; the flags say whether a bound belongs to the range.
    Range { lower: Option<String>, upper: Option<String>, with_lower: bool, with_upper: bool },
}

/// Parses a Lucene query. `join_terms` joins plain terms in a row into one text, which matters when they are searched in several
/// fields. Blank text is an empty group.
///
/// # Errors
/// What is wrong and where, in Lucene's words.
pub fn parse(text: &str, join_terms: bool) -> Result<Syntax, String> {
    let mut parser = Parser { text: text.chars().collect(), at: 0, depth: 0, clauses: 0, join_terms };
    let syntax = parser.group(None)?;
    match parser.peek() {
        None => Ok(syntax),
        Some(_) => Err(parser.unexpected()),
    }
}

struct Parser {
    text: Vec<char>,
    at: usize,
    depth: usize,
    clauses: usize,
    join_terms: bool,
}

/// An unquoted word: an operator or a term.
enum Word {
    And,
    Or,
    Not,
    Term(String),
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn unexpected(&self) -> String {
        match self.peek() {
            None => format!("Encountered \"<EOF>\" at line 1, column {}.", self.at),
            Some(found) => {
                format!("Encountered \" \"{found}\" \"{found} \"\" at line 1, column {}.", self.at)
            }
        }
    }

    fn unexpected_word(&self, name: &str, word: &str, at: usize) -> String {
        format!("Encountered \" <{name}> \"{word} \"\" at line 1, column {at}.")
    }

    fn lexical(&self) -> String {
        let encountered = self.peek().map_or("<EOF>".to_owned(), |c| format!("\"{c}\""));
        format!("Lexical error at line 1, column {}.  Encountered: {encountered}", self.at + 1)
    }

    /// Clauses up to `)` or the end.
    fn group(&mut self, field: Option<&str>) -> Result<Syntax, String> {
        let mut clauses = Vec::new();
        loop {
            self.skip_space();
            if matches!(self.peek(), None | Some(')')) {
                break;
            }
            let mut conjunction = Conjunction::None;
            let mut modifier = Modifier::None;
            loop {
                let start = self.at;
                match self.peek() {
                    Some(sign @ ('+' | '-' | '!')) if modifier == Modifier::None => {
                        if self.text.get(self.at + 1).is_none_or(|c| c.is_whitespace()) {
                            break;
                        }
                        self.at += 1;
                        modifier = if sign == '+' { Modifier::Required } else { Modifier::Prohibited };
                    }
                    Some(c) if can_start_term(c) => match self.word()? {
                        Word::And | Word::Or if modifier != Modifier::None => {
                            let word: String = self.text[start..self.at].iter().collect();
                            return Err(self.unexpected_word("AND", &word, start));
                        }
                        Word::And if conjunction == Conjunction::None && !clauses.is_empty() => {
                            conjunction = Conjunction::And;
                        }
                        Word::Or if conjunction == Conjunction::None && !clauses.is_empty() => {
                            conjunction = Conjunction::Or;
                        }
                        Word::And => return Err(self.unexpected_word("AND", "AND", start)),
                        Word::Or => return Err(self.unexpected_word("OR", "OR", start)),
                        Word::Not if modifier == Modifier::None => {
                            modifier = Modifier::Prohibited;
                        }
                        Word::Not => return Err(self.unexpected_word("NOT", "NOT", start)),
                        Word::Term(_) => {
                            self.at = start;
                            break;
                        }
                    },
                    _ => break,
                }
                self.skip_space();
            }
            let syntax = self.clause(field)?;
            self.clauses += 1;
            if self.clauses > MAX_CLAUSES {
                return Err(format!("too many boolean clauses: more than {MAX_CLAUSES}"));
            }
            clauses.push(Clause { conjunction, modifier, syntax });
        }
        Ok(Syntax::Group(clauses))
    }

    fn clause(&mut self, outer: Option<&str>) -> Result<Syntax, String> {
        let start = self.at;
        let mut own = None;
        if self.peek().is_some_and(can_start_term) {
            if let Word::Term(name) = self.word()?
                && self.eat(':')
            {
                own = Some(unescape(&name)?);
                self.skip_space();
            }
            if own.is_none() {
                self.at = start;
            }
        }
        let field = own.as_deref().or(outer);
        if self.eat('(') {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(format!("more than {MAX_DEPTH} nested parentheses"));
            }
            let group = self.group(field)?;
            if !self.eat(')') {
                return Err(self.unexpected());
            }
            if group == Syntax::Group(Vec::new()) {
                self.at -= 1;
                return Err(self.unexpected());
            }
            self.depth -= 1;
            return self.boosted(group);
        }
        let leaf = match self.peek() {
            Some('"') => self.phrase()?,
            Some('[' | '{') => self.range()?,
            Some('/') => self.regexp()?,
            Some(sign @ ('+' | '-' | '!'))
                if self.text.get(self.at + 1).is_none_or(|c| c.is_whitespace()) =>
            {
                self.at += 1;
                Leaf::Text(sign.to_string())
            }
            Some(c) if can_start_term(c) => self.term(field.is_none())?,
            _ => return Err(self.unexpected()),
        };
        let field = field.map(str::to_owned);
        self.boosted(Syntax::Leaf { field, leaf })
    }

    /// Parses the boost that may follow a clause; a boosted term may still be made fuzzy by `~`.
    fn boosted(&mut self, mut syntax: Syntax) -> Result<Syntax, String> {
        if !self.eat('^') {
            return Ok(syntax);
        }
        let boost = self.number()?.ok_or_else(|| self.lexical())?;
        if let Syntax::Leaf { leaf, .. } = &mut syntax
            && let Leaf::Text(text) = leaf
            && self.eat('~')
        {
            *leaf = Leaf::Fuzzy(std::mem::take(text), self.number()?);
        }
        Ok(Syntax::Boost(Box::new(syntax), boost))
    }

    /// Takes the next word as it is written, escapes included.
    fn word(&mut self) -> Result<Word, String> {
        let start = self.at;
        while let Some(c) = self.peek() {
            if c == '\\' {
                self.at += 1;
                if self.peek().is_none() {
                    return Err(self.lexical());
                }
            } else if c.is_whitespace() || SPECIAL.contains(&c) {
                break;
            }
            self.at += 1;
        }
        let word: String = self.text[start..self.at].iter().collect();
        Ok(match word.as_str() {
            "AND" | "&&" => Word::And,
            "OR" | "||" => Word::Or,
            "NOT" => Word::Not,
            _ => Word::Term(word),
        })
    }

    /// Takes the next word if it is a term without wildcards, field, boost or `~`.
    fn plain_term(&mut self) -> Result<Option<String>, String> {
        let start = self.at;
        self.skip_space();
        if self.peek().is_some_and(can_start_term)
            && let Word::Term(word) = self.word()?
            && wildcards(&word) == 0
            && !matches!(self.peek(), Some(':' | '^' | '~'))
        {
            return Ok(Some(word));
        }
        self.at = start;
        Ok(None)
    }

    fn term(&mut self, may_join: bool) -> Result<Leaf, String> {
        let start = self.at;
        let word = match self.word()? {
            Word::Term(word) => word,
            Word::And | Word::Or | Word::Not => {
                let word: String = self.text[start..self.at].iter().collect();
                return Err(self.unexpected_word(&word, &word, start));
            }
        };
        if self.eat('~') {
            return Ok(Leaf::Fuzzy(unescape(&word)?, self.number()?));
        }
        match wildcards(&word) {
            0 => {
                let mut text = unescape(&word)?;
                if self.join_terms && may_join && !matches!(self.peek(), Some('^' | ':')) {
                    while let Some(next) = self.plain_term()? {
                        text.push(' ');
                        text.push_str(&unescape(&next)?);
                    }
                }
                Ok(Leaf::Text(text))
            }
            1 if word == "*" => Ok(Leaf::Any),
            1 if word.ends_with('*') => Ok(Leaf::Prefix(unescape(&word[..word.len() - 1])?)),
            _ => Ok(Leaf::Wildcard(word)),
        }
    }

    fn phrase(&mut self) -> Result<Leaf, String> {
        let text = self.quoted()?;
        let slop = if self.eat('~') { self.number()?.map(|slop| slop as u32) } else { None };
        Ok(Leaf::Phrase(text, slop))
    }

    fn quoted(&mut self) -> Result<String, String> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                None => return Err(self.lexical()),
                Some('"') => break,
                Some('\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        let text: String = self.text[start..self.at].iter().collect();
        self.at += 1;
        unescape(&text)
    }

    fn regexp(&mut self) -> Result<Leaf, String> {
        self.at += 1;
        let mut pattern = String::new();
        loop {
            match self.peek() {
                None => return Err(self.lexical()),
                Some('/') => break,
                Some('\\') if self.text.get(self.at + 1) == Some(&'/') => {
                    pattern.push('/');
                    self.at += 2;
                }
                Some(c) => {
                    pattern.push(c);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(Leaf::Regexp(pattern))
    }

    fn range(&mut self) -> Result<Leaf, String> {
        let with_lower = self.peek() == Some('[');
        self.at += 1;
        let lower = self.bound()?;
        self.skip_space();
        let start = self.at;
        if self.goop() != "TO" {
            self.at = start;
            return Err(self.unexpected());
        }
        let upper = self.bound()?;
        self.skip_space();
        let with_upper = match self.peek() {
            Some(']') => true,
            Some('}') => false,
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(Leaf::Range { lower, upper, with_lower, with_upper })
    }

    fn goop(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| !c.is_whitespace() && !matches!(c, ']' | '}')) {
            self.at += 1;
        }
        self.text[start..self.at].iter().collect()
    }

    fn bound(&mut self) -> Result<Option<String>, String> {
        self.skip_space();
        if self.peek() == Some('"') {
            return self.quoted().map(Some);
        }
        match self.goop().as_str() {
            "" => Err(self.unexpected()),
            "*" => Ok(None),
            text => unescape(text).map(Some),
        }
    }

    /// Takes a number of digits with an optional fraction; none if there is no digit.
    fn number(&mut self) -> Result<Option<f32>, String> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            self.at += 1;
        }
        let text: String = self.text[start..self.at].iter().collect();
        if text.is_empty() {
            return Ok(None);
        }
        text.parse()
            .map(Some)
            .map_err(|_| format!("Lexical error at line 1, column {}.  Encountered: \"{text}\"", start + 1))
    }
}

fn can_start_term(c: char) -> bool {
    !c.is_whitespace() && !SPECIAL.contains(&c) && !matches!(c, '+' | '-')
}

/// Number of `*` and `?` that are not escaped.
fn wildcards(word: &str) -> usize {
    let mut escaped = false;
    word.chars()
        .filter(|&c| {
            let counts = !escaped && matches!(c, '*' | '?');
            escaped = !escaped && c == '\\';
            counts
        })
        .count()
}

/// Takes escapes out: `\c` is `c`, `\u0041` is a UTF-16 code unit, two of which may be a pair of surrogates.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match characters.next() {
            Some('u') => {
                let first = code_unit(&mut characters);
                let mut after = characters.clone();
                let second = match (first, after.next(), after.next()) {
                    (Some(0xD800..0xDC00), Some('\\'), Some('u')) => code_unit(&mut after),
                    _ => None,
                };
                if second.is_some() {
                    characters = after;
                }
                let mut decoded = char::decode_utf16(first.into_iter().chain(second));
                match (decoded.next(), decoded.next()) {
                    (Some(Ok(character)), None) => out.push(character),
                    _ => return Err("Truncated or non-hex unicode escape sequence.".to_owned()),
                }
            }
            Some(escaped) => out.push(escaped),
            None => return Err("Term can not end with escape character.".to_owned()),
        }
    }
    Ok(out)
}

/// Reads the four hexadecimal digits of a code unit; `None` if that is not what follows.
fn code_unit(characters: &mut std::str::Chars<'_>) -> Option<u16> {
    let mut value = 0;
    for _ in 0..4 {
        value = value * 16 + characters.next()?.to_digit(16)?;
    }
    u16::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    /// A parsed query in a short form for comparisons.
    fn show(syntax: &super::Syntax) -> String {
        use super::{Conjunction, Leaf, Modifier, Syntax};
        match syntax {
            Syntax::Group(clauses) => {
                let shown: Vec<String> = clauses
                    .iter()
                    .map(|clause| {
                        let conjunction = match clause.conjunction {
                            Conjunction::None => "",
                            Conjunction::And => "&",
                            Conjunction::Or => "|",
                        };
                        let sign = match clause.modifier {
                            Modifier::None => "",
                            Modifier::Required => "+",
                            Modifier::Prohibited => "-",
                        };
                        format!("{conjunction}{sign}{}", show(&clause.syntax))
                    })
                    .collect();
                format!("({})", shown.join(" "))
            }
            Syntax::Boost(inner, boost) => format!("{}^{boost}", show(inner)),
            Syntax::Leaf { field, leaf } => {
                let field = field.as_ref().map(|field| format!("{field}:")).unwrap_or_default();
                let leaf = match leaf {
                    Leaf::Text(text) => text.clone(),
                    Leaf::Phrase(text, slop) => format!("'{text}'{slop:?}"),
                    Leaf::Any => "ANY".into(),
                    Leaf::Prefix(text) => format!("prefix({text})"),
                    Leaf::Wildcard(text) => format!("wild({text})"),
                    Leaf::Fuzzy(text, edits) => format!("fuzzy({text},{edits:?})"),
                    Leaf::Regexp(text) => format!("regexp({text})"),
                    Leaf::Range { lower, upper, with_lower, with_upper } => {
                        format!("range({lower:?},{upper:?},{with_lower},{with_upper})")
                    }
                };
                format!("{field}{leaf}")
            }
        }
    }

    fn check(text: &str, expected: &str) {
        match parse(text, false) {
            Ok(syntax) => assert_eq!(show(&syntax), expected, "{text}"),
            Err(error) => assert_eq!(format!("error: {error}"), expected, "{text}"),
        }
    }

    #[test]
    fn trees() {
        check("", "()");
        check("foo bar", "(foo bar)");
        check("foo AND bar OR baz", "(foo &bar |baz)");
        check("foo && !bar || NOT baz", "(foo &-bar |-baz)");
        check("+foo -bar", "(+foo -bar)");
        check("wi-fi c++", "(wi-fi c++)");
        check("title:(foo bar)^2 x", "((title:foo title:bar)^2 x)");
        check("a.b:\"x y\"~3^1.5", "(a.b:'x y'Some(3)^1.5)");
        check("fo* f?o fo*o * *:*", "(prefix(fo) wild(f?o) wild(fo*o) ANY *:ANY)");
        check("foo~ foo~1 foo^2~", "(fuzzy(foo,None) fuzzy(foo,Some(1.0)) fuzzy(foo,None)^2)");
        check(
            "n:[1 TO 5} n:{* TO \"a b\"]",
            "(n:range(Some(\"1\"),Some(\"5\"),true,false) n:range(None,Some(\"a b\"),false,true))",
        );
        check("n:>=5", "(n:>=5)");
        check("foo\\:bar\\ baz\\*", "(foo:bar baz*)");
        check("\\u0041b", "(Ab)");
        check("\\uD83D\\uDE00b", "(😀b)");
        check("n:/a\\/b+/", "(n:regexp(a/b+))");
        check("_exists_:title", "(_exists_:title)");
        check("foo - bar", "(foo - bar)");
        check("a:(b c:d)", "((a:b c:d))");
    }

    #[test]
    fn errors_say_where() {
        check("(foo", "error: Encountered \"<EOF>\" at line 1, column 4.");
        check("foo)", "error: Encountered \" \")\" \") \"\" at line 1, column 3.");
        check("AND foo", "error: Encountered \" <AND> \"AND \"\" at line 1, column 0.");
        check("foo AND", "error: Encountered \"<EOF>\" at line 1, column 7.");
        check("foo AND OR bar", "error: Encountered \" <OR> \"OR \"\" at line 1, column 8.");
        check("\"foo", "error: Lexical error at line 1, column 5.  Encountered: <EOF>");
        check("[1 TO 2", "error: Encountered \"<EOF>\" at line 1, column 7.");
        check("a/b", "error: Lexical error at line 1, column 4.  Encountered: <EOF>");
        check("title:", "error: Encountered \"<EOF>\" at line 1, column 6.");
        check("foo^x", "error: Lexical error at line 1, column 5.  Encountered: \"x\"");
        check("()", "error: Encountered \" \")\" \") \"\" at line 1, column 1.");
        assert!(parse(&"(".repeat(1000), false).is_err());
    }

    #[test]
    fn plain_terms_join_for_several_fields() {
        let joined = |text: &str| parse(text, true).map(|syntax| show(&syntax)).unwrap();
        assert_eq!(joined("foo bar baz"), "(foo bar baz)");
        assert_eq!(joined("foo bar^2 baz"), "(foo bar^2 baz)");
        assert_eq!(joined("foo bar AND t:x y z*"), "(foo bar &t:x y prefix(z))");
        let super::Syntax::Group(clauses) = parse("foo bar AND baz qux", true).unwrap() else {
            panic!("not a group");
        };
        assert_eq!(clauses.len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = parse(&text, true);
        }

        #[test]
        fn operators_in_any_order_end(text in "[ab ()+\\-!\"\\[\\]{}~^*?:/\\\\&|0-9.]{0,20}") {
            let _ = parse(&text, false);
        }
    }
}
