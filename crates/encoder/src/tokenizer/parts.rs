//! Refuses a `tokenizer.json` with rules by the thousands: each is applied to every text, or looked for in it.

use serde_json::Value;

use super::description::{Description, each_object};

/// Most added tokens. Published tokenizers have up to a few thousand.
const MOST_ADDED: usize = 16_384;
/// Most bytes of all added tokens, which are normalized when a tokenizer is loaded.
const MOST_ADDED_BYTES: usize = 1 << 20;
/// Most parts of the lists of normalizers, of what splits a text, of post-processors with their templates, and of decoders, together.
/// Published tokenizers have a few dozen.
const MOST_PARTS: usize = 256;
/// Most bytes of a pattern. Published ones have a few hundred.
const MOST_PATTERN: usize = 4096;
/// Most characters of a word that WordPiece divides; a longer one is unknown. The time grows with the third
/// power. Published tokenizers have 100.
const MOST_WORD: u64 = 256;

/// Says why a `tokenizer.json` is refused, if it is.
pub(super) fn problem(description: &Description) -> Option<String> {
    let added = &description.added_tokens;
    if added.len() > MOST_ADDED {
        return Some(format!("it has [{}] added tokens; at most [{MOST_ADDED}] are taken", added.len()));
    }
    let bytes: usize = added.iter().map(|token| token.content.len()).sum();
    if bytes > MOST_ADDED_BYTES {
        return Some(format!(
            "its added tokens have [{bytes}] bytes together; at most [{MOST_ADDED_BYTES}] are taken"
        ));
    }
    let (mut parts, mut pattern) = (0, 0);
    let rules = [
        &description.normalizer,
        &description.pre_tokenizer,
        &description.post_processor,
        &description.decoder,
    ];
    for rule in rules {
        each_object(rule, &mut |object| {
            let lists = object.values().filter_map(Value::as_array);
            parts += lists.map(Vec::len).sum::<usize>();
            let texts = object.get("pattern").and_then(Value::as_object).into_iter().flatten();
            let lengths = texts.filter_map(|(_, text)| text.as_str()).map(str::len);
            pattern = lengths.fold(pattern, usize::max);
        });
    }
    if parts > MOST_PARTS {
        return Some(format!(
            "the lists of its normalizer, pre_tokenizer, post_processor and decoder have [{parts}] parts; at most [{MOST_PARTS}] are taken"
        ));
    }
    if pattern > MOST_PATTERN {
        return Some(format!("it has a pattern of [{pattern}] bytes; at most [{MOST_PATTERN}] are taken"));
    }
    let word = description.model.as_ref().and_then(|model| model.max_input_chars_per_word.as_u64());
    word.filter(|word| *word > MOST_WORD)
        .map(|word| format!("its [max_input_chars_per_word] is [{word}]; at most [{MOST_WORD}] is taken"))
}
