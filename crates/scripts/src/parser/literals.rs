//! Numbers, regular expressions, lists and maps, and `new`.

use super::Parser;
use crate::lexer::Refusal;
use crate::regexes;
use crate::tables::has_constructor;
use crate::tree::Kind;

/// Most regular expressions of a script.
const MOST_PATTERNS: usize = 50;

impl Parser<'_> {
    /// Reads a number, which a minus precedes if it is negative.
    pub(super) fn number(&mut self, negative: bool) -> Result<Kind, Refusal> {
        let token = self.token();
        let text = self.source[token.start..token.end].to_ascii_lowercase();
        let invalid = |kind: &str| Refusal::new(token.start, format!("Invalid {kind} constant [{text}]."));
        let signed = |digits: &str| if negative { format!("-{digits}") } else { digits.to_owned() };
        let integer = |digits: &str| match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(&signed(hex), 16).ok(),
            None if digits.len() > 1 && digits.starts_with('0') => {
                i64::from_str_radix(&signed(digits), 8).ok()
            }
            None => signed(digits).parse().ok(),
        };
        let is_hex = text.starts_with("0x");
        let kind = if let Some(digits) = text.strip_suffix('l') {
            Kind::Long(integer(digits).ok_or_else(|| invalid("long"))?)
        } else if let Some(digits) = text.strip_suffix('f').filter(|_| !is_hex) {
            Kind::Float(signed(digits).parse().map_err(|_| invalid("float"))?)
        } else if !is_hex && text.contains(['.', 'e', 'd']) {
            let digits = text.strip_suffix('d').unwrap_or(&text);
            Kind::Double(signed(digits).parse().map_err(|_| invalid("double"))?)
        } else {
            let int = integer(&text).and_then(|long| i32::try_from(long).ok());
            Kind::Int(int.ok_or_else(|| {
                let reason = format!(
                    "Invalid int constant [{text}]. If you want a long constant then change it to [{text}L]."
                );
                Refusal::new(token.start, reason)
            })?)
        };
        self.next += 1;
        Ok(kind)
    }

    pub(super) fn regex(&mut self, source: &str, flags: &str) -> Result<Kind, Refusal> {
        let at = self.at();
        if self.code.patterns.len() >= MOST_PATTERNS {
            return Err(Refusal::new(
                at,
                format!("the script has more than [{MOST_PATTERNS}] regular expressions"),
            ));
        }
        let pattern = regexes::compile(source, flags)
            .map_err(|reason| Refusal::new(at, format!("Error compiling regex: {reason}")))?;
        self.next += 1;
        self.code.patterns.push(pattern);
        let place = self.code.patterns.len() - 1;
        Ok(Kind::Pattern(u32::try_from(place).map_err(|_| Refusal::new(at, "too many regular expressions"))?))
    }

    /// Reads `[a, b]`, `['a': 1]` or `[:]`.
    pub(super) fn collection(&mut self) -> Result<Kind, Refusal> {
        self.expect("[")?;
        if self.sign(":") {
            self.expect("]")?;
            return Ok(Kind::Map(Vec::new()));
        }
        if self.sign("]") {
            return Ok(Kind::List(Vec::new()));
        }
        let first = self.expression()?;
        if !self.sign(":") {
            let mut items = vec![first];
            if self.sign(",") {
                items.extend(self.items("]")?);
            } else {
                self.expect("]")?;
            }
            return Ok(Kind::List(items));
        }
        let mut entries = vec![(first, self.expression()?)];
        while self.sign(",") {
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
        }
        self.expect("]")?;
        Ok(Kind::Map(entries))
    }

    /// Reads what follows `new`: a class and its arguments, or an array.
    pub(super) fn creation(&mut self) -> Result<Kind, Refusal> {
        let at = self.tokens[self.next - 1].start;
        let Some((mut kind, end)) = self.type_at(self.next) else {
            let name = self.name()?;
            return Err(Refusal::new(at, format!("Not a type [{name}].")));
        };
        self.next = end;
        if kind.dimensions > 0 {
            self.expect("{")?;
            kind.dimensions -= 1;
            return Ok(Kind::ArrayOf { of: kind, items: self.items("}")? });
        }
        if self.is_sign("[") {
            let mut lengths = Vec::new();
            while self.sign("[") {
                lengths.push(self.expression()?);
                self.expect("]")?;
            }
            if lengths.len() > 3 {
                return Err(Refusal::new(at, "an array has at most [3] dimensions here"));
            }
            return Ok(Kind::NewArray { of: kind, lengths });
        }
        let arguments = self.arguments()?;
        let count = arguments.len();
        if !has_constructor(kind.name, count) {
            let class = kind.full_name();
            return Err(Refusal::new(at, format!("constructor [{class}, <init>/{count}] not found")));
        }
        Ok(Kind::New(kind, arguments))
    }
}
