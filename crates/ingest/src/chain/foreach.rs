//! `foreach`: one processor for every element of a list, or every value of an object.

use serde_json::{Map, Value};

use super::node::{Item, Node, State, fail};
use crate::config::Config;
use crate::document::{Document, java_type};
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, ignore_missing, named, of_field};

/// Key under `_ingest` that holds the current element while the inner processor runs.
const VALUE: &str = "_value";
/// Key under `_ingest` that holds the name of the current element while looping over an object.
const KEY: &str = "_key";

/// The `foreach` processor: runs an inner processor for every element of a field.
#[derive(Debug)]
pub(crate) struct ForEach {
    field: String,
    ignore_missing: bool,
    /// The inner processor, which reads and writes `_ingest._value`.
    pub processor: Box<Node>,
}

/// The elements of one document's field on their way through the inner processor.
struct Elements {
    /// Index of the document in the batch.
    at: usize,
    /// Member names of the elements, parallel to `waiting`, when the field holds an object; `None` for a list.
    keys: Option<Vec<String>>,
    waiting: Vec<Value>,
    done: Vec<Value>,
    done_keys: Vec<String>,
    /// Values that an enclosing `foreach` had put under `_value` and `_key`, to be restored at the end.
    outer: [Option<Value>; 2],
    trace: Option<Vec<Value>>,
    /// `Document::added` before the loop, in bytes: restored at the end, when the whole field is counted anew.
    added: isize,
}

/// Runs a processor on those of the documents whose places it gets.
pub(super) type RunOn<'a> = dyn FnMut(&Node, &mut [Item], &[usize]) + 'a;

pub(crate) fn foreach_shape() -> Shape {
    of_field([("processor", named("Processor")), ignore_missing()]).needs(&["field", "processor"])
}

impl ForEach {
    /// Reads the processor's parameters; `build` makes the inner processor from its definition.
    pub fn from_config(
        config: &mut Config,
        build: impl FnOnce(Value) -> Result<Node, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let processor = config.optional_object("processor")?.ok_or_else(|| config.missing("processor"))?;
        if processor.len() != 1 {
            return Err(config.unusable("processor", "Must specify exactly one processor type"));
        }
        Ok(Self {
            field,
            ignore_missing: config.boolean("ignore_missing", false)?,
            processor: Box::new(build(Value::Object(processor))?),
        })
    }

    /// Runs the inner processor on the first element of every document, then on the second of every document that has
    /// one, and so on, so that an `inference` processor sees the texts of many documents at once, just as it does
    /// outside a loop. `run` runs it on those documents whose places it gets.
    pub fn run(&self, node: &Node, items: &mut [Item], who: &[usize], run: &mut RunOn<'_>) {
        let mut all = Vec::with_capacity(who.len());
        for &at in who {
            match self.elements(at, &mut items[at]) {
                Ok(elements) => all.extend(elements),
                Err(error) => fail(&mut items[at], node, error),
            }
        }
        loop {
            let mut live = Vec::new();
            for elements in &mut all {
                let item = &mut items[elements.at];
                if matches!(item.state, State::Live) && elements.start(&mut item.document) {
                    live.push(elements.at);
                }
            }
            if live.is_empty() {
                break;
            }
            run(&self.processor, items, &live);
            for elements in &mut all {
                if live.binary_search(&elements.at).is_ok() {
                    elements.finish(&mut items[elements.at].document);
                }
            }
        }
        for elements in all {
            self.write(node, &mut items[elements.at], elements);
        }
    }

    fn elements(&self, at: usize, item: &mut Item) -> Result<Option<Elements>, ProcessorError> {
        let (keys, waiting) = match item.document.get_optional(&self.field, self.ignore_missing)? {
            None if self.ignore_missing => return Ok(None),
            None => {
                return Err(ProcessorError::Null {
                    path: self.field.clone(),
                    refusal: "cannot loop over its elements.".into(),
                });
            }
            Some(Value::Array(list)) => (None, list.clone()),
            Some(Value::Object(map)) => {
                (Some(map.keys().cloned().collect()), map.values().cloned().collect())
            }
            Some(other) => {
                return Err(ProcessorError::NotElements {
                    path: self.field.clone(),
                    found: java_type(other),
                });
            }
        };
        let outer = [VALUE, KEY].map(|name| item.document.ingest.shift_remove(name));
        let trace = item.trace.take();
        let (done, added) = (Vec::with_capacity(waiting.len()), item.document.added);
        Ok(Some(Elements { at, keys, waiting, done, done_keys: Vec::new(), outer, trace, added }))
    }

    /// Writes the processed elements back to the field, unless the document was dropped or failed on the way.
    fn write(&self, node: &Node, item: &mut Item, elements: Elements) {
        for (name, value) in [VALUE, KEY].into_iter().zip(elements.outer) {
            match value {
                Some(value) => item.document.ingest.insert(name.into(), value),
                None => item.document.ingest.shift_remove(name),
            };
        }
        item.trace = elements.trace;
        match &mut item.state {
            State::Live => {
                let value = match elements.keys {
                    None => Value::Array(elements.done),
                    Some(_) => Value::Object(
                        elements.done_keys.into_iter().zip(elements.done).collect::<Map<_, _>>(),
                    ),
                };
                // Counted anew, as a whole.
                item.document.added = elements.added;
                if let Err(error) = item.document.set(&self.field, value) {
                    fail(item, node, error);
                }
            }
            // Handlers are told of the processor that is in the pipeline.
            State::Failed(failure) => {
                failure.kind.clone_from(&node.kind);
                failure.tag.clone_from(&node.tag);
            }
            State::Dropped | State::Terminated => {}
        }
    }
}

impl Elements {
    /// Makes the next element available to the inner processor; `false` if none is left.
    fn start(&mut self, document: &mut Document) -> bool {
        let next = self.done.len();
        let Some(value) = self.waiting.get_mut(next) else { return false };
        document.ingest.insert(VALUE.into(), value.take());
        if let Some(keys) = &self.keys {
            document.ingest.insert(KEY.into(), Value::String(keys[next].clone()));
        }
        true
    }

    /// Takes the processed element back, with its member name, which the processor may have changed.
    fn finish(&mut self, document: &mut Document) {
        let next = self.done.len();
        self.done.push(document.ingest.shift_remove(VALUE).unwrap_or_default());
        if let Some(keys) = &self.keys {
            let key = match document.ingest.shift_remove(KEY) {
                Some(Value::String(key)) if !key.is_empty() => key,
                _ => keys[next].clone(),
            };
            self.done_keys.push(key);
        }
    }
}
