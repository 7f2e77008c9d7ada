//! Refuses a `tokenizer.json` of which a few bytes become many: what it puts in place of a text, or around it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::description::{Description, each_object};

/// Most bytes of a text that a tokenizer puts somewhere. Those of published ones have up to a few dozen.
const MOST_TEXT: usize = 1000;
/// How many times longer the replacements of a normalizer, one after another, may make a text. Published ones replace a
/// space by three bytes.
const MOST_GROWTH: usize = 256;
/// Most places of all templates in which the text stands. Published ones have one for a text, and two for a pair.
const MOST_PLACES: usize = 16;

/// Says why a `tokenizer.json` is refused, if it is. `limit` is the most tokens of a text with its special tokens.
pub(super) fn problem(description: &Description, limit: usize) -> Option<String> {
    let model = description.model.iter();
    let around = model.flat_map(|model| [&model.continuing_subword_prefix, &model.end_of_word_suffix]);
    let mut longest = around.flatten().map(String::len).max().unwrap_or(0);
    let mut growth = 1_usize;
    for part in [&description.normalizer, &description.pre_tokenizer] {
        each_object(part, &mut |object| {
            let length = |name: &str| object.get(name).and_then(Value::as_str).map_or(0, str::len);
            longest = longest.max(length("content")).max(length("prepend"));
            if let Some(charsmap) = object.get("precompiled_charsmap").and_then(Value::as_str) {
                growth = growth.saturating_mul(longest_replacement(charsmap));
            }
            if object.get("type").and_then(Value::as_str) == Some("Replace") {
                // A regular expression may match between any two characters.
                let literal = object.get("pattern").and_then(|pattern| pattern.get("String")?.as_str());
                let each = match literal.map(str::len) {
                    Some(replaced) if replaced > 0 => length("content").div_ceil(replaced),
                    _ => length("content") + 1,
                };
                growth = growth.saturating_mul(each.max(1));
            }
        });
    }
    let (mut places, mut specials) = (0_usize, 0_usize);
    each_object(&description.post_processor, &mut |object| {
        let tokens = object.get("tokens").and_then(Value::as_array).into_iter().flatten();
        longest = tokens.filter_map(Value::as_str).map(str::len).fold(longest, usize::max);
        for name in ["single", "pair"] {
            let pieces = object.get(name).and_then(Value::as_array).into_iter().flatten();
            let mut of_template = 0_usize;
            for piece in pieces {
                places += usize::from(piece.get("Sequence").is_some());
                let Some(special) = piece.get("SpecialToken") else { continue };
                let named = special.get("id").and_then(Value::as_str).unwrap_or_default();
                let ids = object.get("special_tokens").and_then(|all| all.get(named)?.get("ids")?.as_array());
                of_template = of_template.saturating_add(ids.map_or(1, Vec::len));
            }
            specials = specials.max(of_template);
        }
    });
    if longest > MOST_TEXT {
        return Some(format!("it inserts a text of {longest} bytes, more than {MOST_TEXT}"));
    }
    if growth > MOST_GROWTH {
        return Some(format!("its replacements make a text more than {MOST_GROWTH} times as long"));
    }
    if places > MOST_PLACES {
        return Some(format!("its templates repeat the text in {places} places, more than {MOST_PLACES}"));
    }
    (specials >= limit).then(|| format!("special tokens leave no room in {limit} tokens"))
}

/// Length in bytes of the longest text that SentencePiece's table of replacements puts in place of a character; at least 1. The
/// table is a number of four bytes, a trie of so many bytes, and the texts, with a zero after each. What is no such table is left to
/// the library.
fn longest_replacement(charsmap: &str) -> usize {
    let Ok(bytes) = BASE64_STANDARD.decode(charsmap) else { return 1 };
    let Some((size, rest)) = bytes.split_first_chunk::<4>() else { return 1 };
    let texts = rest.get(u32::from_le_bytes(*size) as usize..).unwrap_or_default();
    texts.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0).max(1)
}
