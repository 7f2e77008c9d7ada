//! Values of `completion` fields: texts, and objects of texts with a weight.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::completion::{Completion, value};
use super::super::error::{Cause, DocumentError, DocumentErrorKind, ILLEGAL_ARGUMENT};
use super::super::java::{java_string, token_name};
use super::super::types::FieldType;
use super::super::{LeafNode, join};
use super::Reader;

/// Characters that separate words, stand for gaps and end terms in the index.
const RESERVED: [char; 3] = ['\u{1f}', '\u{1e}', '\0'];

/// Weight of an input that has none.
const DEFAULT_WEIGHT: u32 = 1;

/// The inputs of a document in one field, with their weights.
type Inputs = BTreeMap<String, u32>;

impl Reader<'_> {
    /// Reads the value of a `completion` field, which may be a list, and hands its texts to the multi-fields.
    pub(super) fn completion(
        &mut self,
        leaf: &LeafNode,
        field: &Completion,
        path: &str,
        given: &Value,
    ) -> Result<(), DocumentError> {
        if given.is_null() {
            return Ok(());
        }
        let values = match given {
            Value::Array(values) => &values[..],
            single => std::slice::from_ref(single),
        };
        let mut inputs = Inputs::new();
        let read = values.iter().try_for_each(|value| add(&mut inputs, path, value));
        read.and_then(|()| self.inputs(field, path, &inputs)).map_err(|causes| {
            self.fail(DocumentErrorKind::Field {
                path: path.to_owned(),
                type_name: leaf.field_type.name(),
                id: self.id.to_owned(),
                preview: java_string(given),
                causes,
            })
        })?;
        for (input, weight) in inputs {
            for (name, sub) in &leaf.fields {
                // Only a field of this type knows what to do with a weight.
                let value = match sub.field_type {
                    FieldType::Completion(_) => json!({"input": input, "weight": weight}),
                    _ => Value::String(input.clone()),
                };
                self.leaf(sub, &join(path, name), &value)?;
            }
        }
        Ok(())
    }

    fn inputs(&mut self, field: &Completion, path: &str, inputs: &Inputs) -> Result<(), Vec<Cause>> {
        for (input, weight) in inputs {
            // As Java trims.
            if input.trim_matches(|character| character <= ' ').is_empty() {
                self.ignored(path);
                continue;
            }
            let input = field.kept(input);
            if let Some((at, found)) = input.char_indices().find(|(_, found)| RESERVED.contains(found)) {
                let units = input[..at].encode_utf16().count();
                return Err(illegal(format!(
                    "Illegal input [{input}] UTF-16 codepoint [0x{:x}] at position {units} is a reserved character",
                    u32::from(found)
                )));
            }
            self.values.add_keyword(path, value(input, *weight).into());
        }
        self.values.seen(path);
        Ok(())
    }
}

/// Adds the inputs of one value: a text, or an object.
fn add(inputs: &mut Inputs, path: &str, value: &Value) -> Result<(), Vec<Cause>> {
    let members = match value {
        Value::String(text) => {
            inputs.insert(text.clone(), DEFAULT_WEIGHT);
            return Ok(());
        }
        Value::Object(members) => members,
        other => {
            let name = path.rsplit('.').next().unwrap_or(path);
            return Err(vec![(
                "parsing_exception",
                format!("failed to parse [{name}]: expected text or object, but got {}", token(other)),
            )]);
        }
    };
    let (mut texts, mut weight) = (Vec::new(), DEFAULT_WEIGHT);
    for (name, member) in members {
        match (name.as_str(), member) {
            ("input", Value::String(text)) => texts.push(text),
            ("input", Value::Array(list)) => {
                for one in list {
                    let Value::String(text) = one else {
                        return Err(illegal(format!(
                            "input array must have string values, but was [{}]",
                            token(one)
                        )));
                    };
                    texts.push(text);
                }
            }
            ("input", other) => {
                return Err(illegal(format!("input must be a string or array, but was [{}]", token(other))));
            }
            ("weight", value) => weight = weight_of(value)?,
            ("contexts", _) => {
                return Err(illegal(format!("contexts field is not supported for field: [{path}]")));
            }
            (other, _) => {
                return Err(illegal(format!(
                    "unknown field name [{other}], must be one of [input, weight, contexts]"
                )));
            }
        }
    }
    for text in texts {
        match inputs.get_mut(text) {
            Some(known) => *known = weight.max(*known),
            None => {
                inputs.insert(text.clone(), weight);
            }
        }
    }
    Ok(())
}

fn weight_of(value: &Value) -> Result<u32, Vec<Cause>> {
    let no_integer = || illegal(format!("weight must be an integer, but was [{}]", java_string(value)));
    let weight = match value {
        Value::String(text) => text.parse().map_err(|_| no_integer())?,
        Value::Number(number) => number.as_i64().ok_or_else(no_integer)?,
        other => {
            return Err(illegal(format!("weight must be a number or string, but was [{}]", token(other))));
        }
    };
    u32::try_from(weight)
        .ok()
        .filter(|weight| i32::try_from(*weight).is_ok())
        .ok_or_else(|| illegal(format!("weight must be in the interval [0..2147483647], but was [{weight}]")))
}

/// The name of a value's token, of which there is one for both booleans.
fn token(value: &Value) -> &'static str {
    if value.is_boolean() { "VALUE_BOOLEAN" } else { token_name(value) }
}

fn illegal(reason: String) -> Vec<Cause> {
    vec![(ILLEGAL_ARGUMENT, reason)]
}
