//! Numbers that a [`Value`] cannot give back as they were written: `1.10`, `1E5`, an id of 30 digits.
//!
//! A [`Value`] holds what does not fit into 64 bits as a double, and prints every double in one way. To change a
//! part of a document and keep the bytes of the rest, these numbers are written as they stand here.

use compact_str::CompactString;
use std::collections::HashMap;

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde_json::Value;

use super::{Json, Node, read};

/// The numbers of a JSON text that are written in another way than [`Value`] prints them.
#[derive(Debug, Clone)]
pub struct WrittenNumbers {
    root: Part,
    /// The text of each of the numbers by the bits of its double; `None` where several texts stand for one double.
    anywhere: FxHashMap<u64, Option<CompactString>>,
}

/// A part of the text that has such numbers.
#[derive(Debug, Clone)]
enum Part {
    Number { bits: u64, text: CompactString },
    Array(FxHashMap<usize, Part>),
    Object(FxHashMap<CompactString, Part>),
}

impl WrittenNumbers {
    /// The numbers of a JSON text, which has been found to be valid; `None` if a [`Value`] prints all of them as they are
    /// written.
    pub fn of(text: &[u8]) -> Option<Self> {
        if tokens(text).all(prints_the_same) {
            return None;
        }
        let (node, _) = read(text).ok()?;
        let mut written = Self::new(part(node)?)?;
        // A double that stands in the text both in the spelling of a [`Value`] and in another one has no single text to be written back.
        for double in tokens(text).filter(|token| prints_the_same(token)).filter_map(bits) {
            written.anywhere.entry(double).and_modify(|text| *text = None);
        }
        Some(written)
    }

    fn new(root: Part) -> Option<Self> {
        let mut anywhere = FxHashMap::default();
        root.collect(&mut anywhere);
        Some(Self { root, anywhere })
    }

    /// Those inside the member `name` of the text's object.
    pub fn member(&self, name: &str) -> Option<Self> {
        let Part::Object(members) = &self.root else { return None };
        let mut inside = Self::new(members.get(name)?.clone())?;
        for (double, text) in &mut inside.anywhere {
            if self.anywhere.get(double).is_none_or(Option::is_none) {
                *text = None;
            }
        }
        Some(inside)
    }

    /// The text of each number of `value`, which was parsed from the same JSON, by the number's address.
    pub fn by_address<'a>(&'a self, value: &Value) -> TextsByAddress<'a> {
        let mut texts = FxHashMap::default();
        self.root.locate(value, &mut texts);
        TextsByAddress(texts)
    }
}

/// Texts of numbers by the address of the [`Value`] that holds the number.
#[derive(Debug, Default)]
pub struct TextsByAddress<'a>(FxHashMap<usize, &'a str>);

impl<'a> TextsByAddress<'a> {
    /// The text of a number, if `value` is one that is printed in another way than it was written.
    pub fn of(&self, value: &Value) -> Option<&'a str> {
        if self.0.is_empty() { None } else { self.0.get(&std::ptr::from_ref(value).addr()).copied() }
    }
}

/// Appends `value` to `out` as JSON. Its numbers are written as in the last of `texts` that has the same number at the same
/// place, else as in any of them that has that number with one spelling only; without `texts`, as a [`Value`] prints itself.
pub fn write(value: &Value, texts: &[&WrittenNumbers], out: &mut Vec<u8>) {
    if texts.is_empty() {
        return print(value, out);
    }
    let parts: Vec<&Part> = texts.iter().map(|text| &text.root).collect();
    write_part(value, &parts, texts, out);
}

fn write_part(value: &Value, parts: &[&Part], texts: &[&WrittenNumbers], out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                let inner: Vec<&Part> = parts.iter().filter_map(|part| part.item(at)).collect();
                write_part(item, &inner, texts, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (at, (name, member)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                print(name, out);
                out.push(b':');
                let inner: Vec<&Part> = parts.iter().filter_map(|part| part.member(name)).collect();
                write_part(member, &inner, texts, out);
            }
            out.push(b'}');
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()).map(f64::to_bits) {
            Some(double) => {
                let here = parts.iter().rev().find_map(|part| match part {
                    Part::Number { bits, text } if *bits == double => Some(text),
                    _ => None,
                });
                let anywhere = || texts.iter().rev().find_map(|text| text.anywhere.get(&double)?.as_ref());
                match here.or_else(anywhere) {
                    Some(text) => out.extend_from_slice(text.as_bytes()),
                    None => print(number, out),
                }
            }
            None => print(number, out),
        },
        other => print(other, out),
    }
}

fn print<T: serde::Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // A value always serialises, and a vector takes all bytes. (Printing it would go through text formatting.)
    let _ = serde_json::to_writer(out, value);
}

impl Part {
    fn item(&self, at: usize) -> Option<&Self> {
        match self {
            Self::Array(items) => items.get(&at),
            _ => None,
        }
    }

    fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    fn collect(&self, anywhere: &mut FxHashMap<u64, Option<CompactString>>) {
        match self {
            Self::Number { bits, text } => {
                let known = anywhere.entry(*bits).or_insert_with(|| Some(text.clone()));
                if known.as_ref().is_some_and(|known| known != text) {
                    *known = None;
                }
            }
            Self::Array(items) => items.values().for_each(|part| part.collect(anywhere)),
            Self::Object(members) => members.values().for_each(|part| part.collect(anywhere)),
        }
    }

    fn locate<'a>(&'a self, value: &Value, texts: &mut FxHashMap<usize, &'a str>) {
        match (self, value) {
            (Self::Number { text, .. }, Value::Number(_)) => {
                texts.insert(std::ptr::from_ref(value).addr(), text);
            }
            (Self::Array(parts), Value::Array(items)) => {
                for (at, part) in parts {
                    if let Some(item) = items.get(*at) {
                        part.locate(item, texts);
                    }
                }
            }
            (Self::Object(parts), Value::Object(members)) => {
                for (name, part) in parts {
                    if let Some(member) = members.get(&**name) {
                        part.locate(member, texts);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The numbers in a node and below it that a [`Value`] prints in another way than they are written; `None` if it prints all
/// of them as they are.
fn part(node: Node) -> Option<Part> {
    match node.json {
        Json::Number(text) if !prints_the_same(text.as_bytes()) => {
            Some(Part::Number { bits: bits(text.as_bytes())?, text })
        }
        Json::Array(items) => {
            let parts = items.into_iter().enumerate().filter_map(|(at, item)| Some((at, part(item)?)));
            let parts: HashMap<_, _, FxBuildHasher> = parts.collect();
            (!parts.is_empty()).then_some(Part::Array(parts))
        }
        Json::Object(members) => {
            let parts = members.into_iter().filter_map(|member| Some((member.name, part(member.value)?)));
            let parts: HashMap<_, _, FxBuildHasher> = parts.collect();
            (!parts.is_empty()).then_some(Part::Object(parts))
        }
        _ => None,
    }
}

/// The bits of the double that a number stands for.
fn bits(token: &[u8]) -> Option<u64> {
    std::str::from_utf8(token).ok()?.parse::<f64>().ok().map(f64::to_bits)
}

/// The numbers of a JSON text, as they are written.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            match *text.get(at)? {
                b'"' => at = end_of_string(text, at + 1),
                b'-' | b'0'..=b'9' => {
                    let start = at;
                    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                    at += text[at..].iter().take_while(|byte| is_part(byte)).count();
                    return Some(&text[start..at]);
                }
                _ => at += 1,
            }
        }
    })
}

/// The place after the closing quotation mark of a string whose first byte is at `from`.
fn end_of_string(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        let Some(found) = text.get(at..).and_then(|rest| rest.iter().position(|b| matches!(b, b'"' | b'\\')))
        else {
            return text.len();
        };
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
}

/// Most digits with which a decimal fraction is the shortest one that stands for its double.
const SURE_DIGITS: usize = 15;

/// Whether a [`Value`] parsed from a number prints it as it is written.
pub fn prints_the_same(token: &[u8]) -> bool {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    if digits.iter().all(u8::is_ascii_digit) {
        let fits = |token: &[u8]| {
            let text = std::str::from_utf8(token).unwrap_or_default();
            text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
        };
        return token != b"-0" && (digits.len() < 19 || fits(token));
    }
    if let Some(point) = digits.iter().position(|&byte| byte == b'.') {
        let (whole, fraction) = (&digits[..point], &digits[point + 1..]);
        // Small fractions are printed with an exponent.
        let is_small = whole == b"0" && fraction.starts_with(b"000");
        let is_plain = digits.len() <= SURE_DIGITS && fraction.iter().all(u8::is_ascii_digit);
        if is_plain && !is_small {
            return fraction == b"0" || fraction.last() != Some(&b'0');
        }
    }
    let double = std::str::from_utf8(token).ok().and_then(|text| text.parse::<f64>().ok());
    let printed = double.and_then(serde_json::Number::from_f64).map(|number| number.to_string());
    printed.is_some_and(|printed| printed.as_bytes() == token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut value: Value = serde_json::from_str(text).expect("JSON");
        change(&mut value);
        let mut out = Vec::new();
        let numbers = WrittenNumbers::of(text.as_bytes());
        write(&value, &numbers.iter().collect::<Vec<_>>(), &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn a_number_keeps_its_text() {
        let text = r#"{"a":1.10,"b":[1E5,2,{"c":123456789012345678901234567890}],"d":-0,"e":"1.10","f":0.000010,"g":{}}"#;
        assert_eq!(rewritten(text, |_| {}), text);
    }

    #[test]
    fn the_same_double_at_two_places_keeps_both_texts() {
        let text =
            r#"{"a":123456789012345678901234567890,"b":123456789012345678901234567891,"c":[1.0,1.00,1.000]}"#;
        assert_eq!(rewritten(text, |_| {}), text);
    }

    #[test]
    fn a_number_in_the_usual_spelling_is_not_given_another_one() {
        for text in [r#"{"a":1.0,"b":1.00}"#, r#"[1.0,1e0]"#, r#"{"a":{"b":1E5},"c":[100000.0]}"#] {
            assert_eq!(rewritten(text, |_| {}), text);
        }
        let numbers =
            WrittenNumbers::of(br#"{"a":{"b":1.00},"c":1.0}"#).and_then(|numbers| numbers.member("a"));
        let mut out = Vec::new();
        write(&serde_json::json!({"b": 1.0, "d": 1.0}), &numbers.iter().collect::<Vec<_>>(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), r#"{"b":1.00,"d":1.0}"#);
    }

    #[test]
    fn a_number_that_moved_keeps_its_text_and_a_new_one_has_its_own() {
        let moved = rewritten(r#"{"a":1.10,"b":2.20}"#, |value| {
            let number = value["a"].take();
            value["list"] = serde_json::json!([number, 3.5, 3]);
            value["b"] = 7.into();
        });
        assert_eq!(moved, r#"{"a":null,"b":7,"list":[1.10,3.5,3]}"#);
        // Which of the two it was cannot be told.
        let moved = rewritten(r#"{"a":1.10,"b":1.100}"#, |value| value["c"] = value["a"].take());
        assert_eq!(moved, r#"{"a":null,"b":1.100,"c":1.1}"#);
    }

    #[test]
    fn later_texts_count_more() {
        let [old, new] = [r#"{"a":1.10,"b":2.20}"#, r#"{"a":1.100}"#]
            .map(|text| WrittenNumbers::of(text.as_bytes()).expect("numbers"));
        let mut out = Vec::new();
        write(&serde_json::json!({"a": 1.1, "b": 2.2}), &[&old, &new], &mut out);
        assert_eq!(String::from_utf8_lossy(&out), r#"{"a":1.100,"b":2.20}"#);
    }

    #[test]
    fn texts_are_found_by_address() {
        let text = r#"{"a":[0,1.10],"b":1.10}"#;
        let value: Value = serde_json::from_str(text).expect("JSON");
        let numbers = WrittenNumbers::of(text.as_bytes()).expect("numbers");
        let texts = numbers.by_address(&value);
        assert_eq!(texts.of(&value["a"][1]), Some("1.10"));
        assert_eq!(texts.of(&value["b"]), Some("1.10"));
        assert_eq!(texts.of(&value["a"][0]), None);
    }

    #[test]
    fn texts_without_such_numbers_need_nothing() {
        for text in [
            r#"{"a":1,"b":-7,"c":0.5,"d":-0.0,"e":12.25,"f":"1.10 \" 1.10","g":18446744073709551615}"#,
            r#"[-9223372036854775808,0.1234,1e+300,100000.0,"\\",0.0001,0.12345678901234568]"#,
        ] {
            assert!(WrittenNumbers::of(text.as_bytes()).is_none(), "{text}");
            assert_eq!(rewritten(text, |_| {}), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_quick_look_at_a_number_is_right(whole in "-?(0|[1-9][0-9]{0,20})", fraction in "(\\.[0-9]{1,18})?", exponent in "([eE][+-]?[0-9]{1,2})?") {
            let token = format!("{whole}{fraction}{exponent}");
            let printed = serde_json::from_str::<Value>(&token).expect("a number").to_string();
            proptest::prop_assert_eq!(prints_the_same(token.as_bytes()), printed == token);
        }
    }
}
