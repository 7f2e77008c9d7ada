//! What is looked at of a `tokenizer.json` before the library puts anything together.

use serde::Deserialize;
use serde_json::Value;

/// The parts that rules are in, whose kinds are left to the library.
#[derive(Debug, Deserialize)]
pub(super) struct Description {
    #[serde(default)]
    pub(super) added_tokens: Vec<Added>,
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) post_processor: Value,
    #[serde(default)]
    pub(super) decoder: Value,
    pub(super) model: Option<Model>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Added {
    pub(super) content: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Model {
    pub(super) continuing_subword_prefix: Option<String>,
    pub(super) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(super) max_input_chars_per_word: Value,
}

impl Description {
    /// Reads a `tokenizer.json`. What cannot be read here, such as a member that comes twice, could not be bounded, whatever the library
    /// makes of it.
    ///
    /// # Errors
    /// The message of the JSON parser, for bytes that are not JSON, a member that comes twice, or one of another type than it has here.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(json).map_err(|error| error.to_string())
    }
}

/// Visits every object of a value; the JSON parser has limited how deeply they are nested.
pub(super) fn each_object<'v>(value: &'v Value, visit: &mut dyn FnMut(&'v serde_json::Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_object(item, visit)),
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| each_object(member, visit));
        }
        _ => {}
    }
}
