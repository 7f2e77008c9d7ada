//! Scripts that nobody would write.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use sparrow_scripts::{Limits, Machine, Script, Value};

use super::TEST;

/// Runs a script, if it is one, over a document, and converts what it leaves. Nothing may panic.
fn survives(source: &str) {
    let Ok(script) = Script::compile(source, &TEST) else { return };
    let params = json!({"a": 1, "s": "text", "l": [1, 2.5, "x"]}).as_object().cloned().map(Arc::new);
    let mut machine =
        Machine::new(Arc::new(script), params).with_limits(Limits { steps: 20_000, memory: 4 << 20 });
    for _ in 0..2 {
        let ctx = Value::from_json(
            &json!({"a": 5, "l": [3, 1, 2], "m": {"k": "v", "n": null}, "s": "a,b ü😀", "d": 1.5}),
        );
        machine.set("ctx", ctx.clone());
        let result = machine.run(&mut ());
        if let Ok(value) = result {
            let _ = machine.to_text(&value);
            let _ = machine.to_json(&value);
        }
        let _ = machine.to_json(&ctx);
    }
}

/// Valid scripts: those of the tables.
fn scripts() -> Vec<String> {
    let lines =
        [include_str!("language.jsonl"), include_str!("methods.jsonl"), include_str!("documents.jsonl")];
    let cases =
        lines.iter().flat_map(|lines| lines.lines()).map(|line| serde_json::from_str::<Json>(line).unwrap());
    cases.filter_map(|case| case["script"].as_str().map(str::to_owned)).collect()
}

const WORDS: &str = "ctx params . a l m s d [ ] ( ) { } ; , : ? ?: ?. + - * / % = == != < > <= >= && || ! ~ & | ^ << >> >>> ++ -- += \
                     -> :: 0 1 2 -1 5L 1.5 2f 'x' 'ü' \"\" null true false def int long double String List Map x y f if else for while do \
                     break continue return new try catch throw in instanceof ArrayList HashMap StringBuilder Exception e Math . max abs \
                     length() size() add remove get put substring indexOf splitOnToken stream() map filter collect Collectors.toList() \
                     sort sum() each toString() equals hashCode() iterator() next() keySet() entrySet() values() removeIf repeat replace \
                     /a+/ =~ ==~ Integer.parseInt Instant.ofEpochMilli ZonedDateTime.parse plusDays";

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn soups_of_tokens_do_no_harm(picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40)) {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let soup: Vec<&str> = picks.iter().map(|pick| *pick.get(&words)).collect();
        survives(&soup.join(" "));
        survives(&soup.concat());
    }

    #[test]
    fn changed_scripts_do_no_harm(
        script in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4_u8), 1..4),
    ) {
        let scripts = scripts();
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let mut chars: Vec<char> = script.get(&scripts).chars().collect();
        for (place, what, kind) in edits {
            let at = place.index(chars.len() + 1);
            match kind {
                0 if at < chars.len() => { chars.remove(at); }
                1 => { chars.splice(at..at, what.get(&words).chars()); }
                2 => { chars.truncate(at); chars.extend(other.get(&scripts).chars()); }
                _ => {
                    let end = (at + what.index(10)).min(chars.len());
                    let copy = chars[at..end].to_vec();
                    chars.splice(at..at, copy);
                }
            }
        }
        survives(&chars.into_iter().collect::<String>());
    }

    #[test]
    fn any_text_does_no_harm(text in "\\PC{0,60}") {
        survives(&text);
    }
}
