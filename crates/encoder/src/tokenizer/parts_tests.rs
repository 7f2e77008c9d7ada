//! A tokenizer with more rules than it may have is refused before the library reads any.

use serde_json::{Value, json};

use super::TextTokenizer;
use super::tests::TOKENIZER;

fn load(text: &str) -> Result<TextTokenizer, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    TextTokenizer::load(file.path(), 512).map_err(|error| error.to_string())
}

fn changed(change: impl Fn(&mut Value)) -> Result<TextTokenizer, String> {
    let mut tokenizer: Value = serde_json::from_str(TOKENIZER).unwrap();
    change(&mut tokenizer);
    load(&tokenizer.to_string())
}

#[track_caller]
fn refused(change: impl Fn(&mut Value), words: &str) {
    let error = changed(change).unwrap_err();
    assert!(error.contains(words), "{error}");
}

fn with_added(number: usize, length: usize) -> impl Fn(&mut Value) {
    move |tokenizer| {
        let added = tokenizer["added_tokens"].as_array_mut().unwrap();
        let mut one = added[0].clone();
        while added.len() < number {
            one["content"] = format!("{:x>length$}", added.len()).into();
            added.push(one.clone());
        }
    }
}

#[test]
fn added_tokens_are_bounded() {
    changed(with_added(16_384, 8)).unwrap();
    refused(with_added(16_385, 8), "it has [16385] added tokens; at most [16384] are taken");
    changed(with_added(1002, 1000)).unwrap();
    refused(
        with_added(1102, 1000),
        "its added tokens have [1100010] bytes together; at most [1048576] are taken",
    );
}

#[test]
fn rules_in_lists_are_bounded_together() {
    let list = |key: &str, kind: &str, each: Value, number: usize| {
        let mut sequence = json!({ "type": "Sequence" });
        sequence[kind] = vec![each; number].into();
        let key = key.to_owned();
        move |tokenizer: &mut Value| tokenizer[&key] = sequence.clone()
    };
    // The template has 5 parts in its lists, and 4 of its special tokens.
    let said = |number: usize| format!("have [{}] parts; at most [256] are taken", number + 9);
    let lower = json!({"type": "Lowercase"});
    changed(list("normalizer", "normalizers", lower.clone(), 247)).unwrap();
    refused(list("normalizer", "normalizers", lower.clone(), 248), &said(248));
    let split = json!({"type": "WhitespaceSplit"});
    refused(list("pre_tokenizer", "pretokenizers", split, 248), &said(248));
    refused(list("decoder", "decoders", json!({"type": "Fuse"}), 100_000), &said(100_000));
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    refused(list("post_processor", "processors", level, 300), "have [300] parts");
    // A list in lists has the parts of all.
    let lists = json!({"type": "Sequence", "normalizers": vec![lower; 99]});
    refused(list("normalizer", "normalizers", lists, 3), &said(300));
}

#[test]
fn patterns_and_words_are_bounded() {
    let split = |pattern: Value| {
        move |tokenizer: &mut Value| {
            tokenizer["pre_tokenizer"] =
                json!({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false});
        }
    };
    changed(split(json!({"Regex": "x".repeat(4096)}))).unwrap();
    for kind in ["Regex", "String"] {
        refused(
            split(json!({ kind: "x".repeat(4097) })),
            "a pattern of [4097] bytes; at most [4096] are taken",
        );
    }
    let word =
        |most: u64| move |tokenizer: &mut Value| tokenizer["model"]["max_input_chars_per_word"] = most.into();
    changed(word(256)).unwrap();
    refused(word(257), "its [max_input_chars_per_word] is [257]; at most [256] is taken");
}

/// The library takes the last of members that come twice; what is looked at before would be another one, or nothing.
#[test]
fn what_would_be_read_in_two_ways_is_refused() {
    let twice = TOKENIZER.replacen("\"normalizer\":", "\"normalizer\": null, \"normalizer\":", 1);
    let error = load(&twice).unwrap_err();
    assert!(error.contains("duplicate field `normalizer`"), "{error}");
    refused(|tokenizer| tokenizer["model"]["end_of_word_suffix"] = 7.into(), "invalid type: integer `7`");
}
