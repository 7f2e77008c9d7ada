//! Values of `completion` fields: texts, and objects of texts with a weight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use sparrow_runtime::work;

use super::super::completion::{Completion, value};
use super::super::completion_contexts::{CONTEXT_END, FieldValue, start_of_field, starts_of};
use super::super::error::{Cause, DocumentError, DocumentErrorKind, illegal};
use super::super::java::{java_string, token_name};
use super::super::location::Step;
use super::super::types::{FieldType, NumberValue};
use super::super::{GeoPoint, LeafNode, join};
use super::Reader;
use super::values::InContexts;

/// Characters that separate words, stand for gaps and end contexts and terms in the index.
const RESERVED: [char; 4] = ['\u{1f}', '\u{1e}', CONTEXT_END, '\0'];

/// Weight of an input that has none.
const DEFAULT_WEIGHT: u32 = 1;

/// Most values of contexts that the inputs of a document may have in one field, those of all inputs together.
const MOST_CONTEXTS: usize = 10_000;

/// The inputs of a document in one field.
type Inputs = BTreeMap<String, Input>;

/// The weight of an input, and the contexts that the document gives it.
struct Input {
    weight: u32,
    /// The values of the contexts by the names of these, as the document has them. The inputs of one JSON object share them.
    contexts: Arc<Map<String, Value>>,
}

impl Reader<'_> {
    /// Reads the value of a `completion` field, which may be a list, and hands its texts to the multi-fields.
    pub(super) fn completion(
        &mut self,
        leaf: &LeafNode,
        field: &Arc<Completion>,
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
        let read = values.iter().try_for_each(|value| add(&mut inputs, path, field, value));
        read.and_then(|()| self.inputs(field, path, &inputs)).map_err(|causes| {
            self.fail(DocumentErrorKind::Field {
                path: path.to_owned(),
                type_name: leaf.field_type.name(),
                id: self.id.to_owned(),
                preview: java_string(given),
                causes,
            })
        })?;
        for (input, Input { weight, contexts }) in &inputs {
            for (name, sub) in &leaf.fields {
                // Only a field of this type knows what to do with a weight.
                let value = match &sub.field_type {
                    FieldType::Completion(field) if !field.contexts.is_empty() => {
                        json!({"input": input, "weight": weight, "contexts": &**contexts})
                    }
                    FieldType::Completion(_) => json!({"input": input, "weight": weight}),
                    _ => Value::String(input.clone()),
                };
                self.leaf(sub, &join(path, name), &value)?;
            }
        }
        Ok(())
    }

    fn inputs(&mut self, field: &Arc<Completion>, path: &str, inputs: &Inputs) -> Result<(), Vec<Cause>> {
        let mut left = MOST_CONTEXTS;
        for (input, Input { weight, contexts }) in inputs {
            let starts = starts_of(&field.contexts, contexts).map_err(illegal)?;
            // Before there are those of many inputs in memory.
            left = left.checked_sub(starts.len()).ok_or_else(|| illegal(too_many_contexts()))?;
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
            if field.contexts.is_empty() {
                self.values.add_keyword(path, value(input, *weight).into());
            } else {
                let (path, field, input) = (path.to_owned(), Arc::clone(field), input.to_owned());
                self.values.in_contexts.push(InContexts { path, field, input, weight: *weight, starts });
            }
        }
        self.values.seen(path);
        Ok(())
    }

    /// Adds the inputs that have contexts, now that the values of all fields are there.
    pub(super) fn finish_contexts(&mut self) -> Result<(), DocumentError> {
        // By the path of the completion field: all its inputs have the contexts that fields of the document give.
        let mut of_fields: FxHashMap<String, BTreeSet<String>> = FxHashMap::default();
        let mut left = MOST_CONTEXTS;
        for InContexts { path, field, input, weight, mut starts } in
            std::mem::take(&mut self.values.in_contexts)
        {
            work::check().map_err(|stopped| self.fail(DocumentErrorKind::Stopped(stopped)))?;
            if !of_fields.contains_key(&path) {
                of_fields.insert(path.clone(), self.starts_of_fields(&field));
            }
            starts.extend(of_fields.get(&path).into_iter().flatten().cloned());
            let refused = |reader: &mut Self, reason| {
                reader.steps = path.split('.').map(|name| Step::Key(name.to_owned())).collect();
                reader.illegal(reason)
            };
            if starts.is_empty() {
                let reason = format!("Contexts are mandatory in context enabled completion field [{path}]");
                return Err(refused(self, reason));
            }
            left = left.checked_sub(starts.len()).ok_or_else(|| refused(self, too_many_contexts()))?;
            for start in starts {
                self.values.add_keyword(&path, value(&format!("{start}{input}"), weight).into());
            }
        }
        Ok(())
    }

    /// What the terms of all inputs of a field begin with, for its contexts that are the values of other fields.
    fn starts_of_fields(&self, field: &Completion) -> BTreeSet<String> {
        let mut starts = BTreeSet::new();
        for (number, context) in field.contexts.iter().enumerate() {
            let Some(of) = &context.path else { continue };
            let of = &*self.mapping.concrete(of);
            let out = &self.values.out;
            let texts = out.keywords.iter().chain(&out.texts).filter(|(path, _)| path == of);
            let points = out.numbers.iter().filter(|(path, _)| path == of);
            let is_point = matches!(self.mapping.field(of), Some(FieldType::GeoPoint));
            let points = points.filter_map(|(_, number)| match number {
                NumberValue::I64(encoded) if is_point => Some(FieldValue::Point(GeoPoint::decoded(*encoded))),
                _ => None,
            });
            let values = texts.map(|(_, text)| FieldValue::Text(text)).chain(points);
            starts.extend(values.filter_map(|value| start_of_field(&field.contexts, number, &value)));
        }
        starts
    }
}

fn too_many_contexts() -> String {
    format!("the inputs of completion fields have more than {MOST_CONTEXTS} contexts in one document")
}

/// Adds the inputs of one value: a text, or an object.
fn add(inputs: &mut Inputs, path: &str, field: &Completion, value: &Value) -> Result<(), Vec<Cause>> {
    let members = match value {
        Value::String(text) => {
            inputs.insert(text.clone(), Input { weight: DEFAULT_WEIGHT, contexts: Arc::default() });
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
    let (mut texts, mut weight, mut contexts) = (Vec::new(), DEFAULT_WEIGHT, Map::new());
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
            ("contexts", _) if field.contexts.is_empty() => {
                return Err(illegal(format!("contexts field is not supported for field: [{path}]")));
            }
            ("contexts", Value::Object(given)) => contexts.clone_from(given),
            ("contexts", other) => {
                return Err(illegal(format!("contexts must be an object, but was [{}]", token(other))));
            }
            (other, _) => {
                return Err(illegal(format!(
                    "unknown field name [{other}], must be one of [input, weight, contexts]"
                )));
            }
        }
    }
    let contexts = Arc::new(contexts);
    for text in texts {
        match inputs.get(text) {
            Some(known) if known.weight >= weight => {}
            _ => {
                inputs.insert(text.clone(), Input { weight, contexts: Arc::clone(&contexts) });
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
