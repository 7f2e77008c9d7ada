//! A document on its way through a pipeline, and the paths that address its fields.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::effort::{MOST_ADDED, Matching, weight};
use super::error::ProcessorError;
use sparrow_wire::strict_json::{MOST_LEVELS, levels};

/// Names of metadata fields, which a path may have as its first step.
const METADATA: [&str; 8] = [
    "_index",
    "_id",
    "_version",
    "_routing",
    "_version_type",
    "_if_seq_no",
    "_if_primary_term",
    "_dynamic_templates",
];

/// Source, metadata and ingest metadata of one document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    /// The fields of the document as the user sent them.
    pub source: Map<String, Value>,
    /// The metadata fields: `_index`, `_id`, `_version` and `_routing`.
    pub metadata: Map<String, Value>,
    /// What `_ingest.` addresses: timestamp, pipeline, reasons of a failure.
    pub ingest: Map<String, Value>,
    /// Bytes that processors have added, minus those that they have removed.
    pub added: isize,
    /// Time that regular expressions have spent on the document.
    pub matching: Matching,
}

impl Document {
    /// The value at a path.
    ///
    /// # Errors
    /// If a step of the path does not exist.
    pub fn get(&self, path: &str) -> Result<&Value, ProcessorError> {
        let (root, keys) = self.locate(path)?;
        let mut value = match root.get(keys[0]) {
            Some(value) => value,
            None => return Err(not_present(keys[0], path)),
        };
        for key in &keys[1..] {
            value = step(value, key, path)?;
        }
        Ok(value)
    }

    /// The value at a path; none if it is null or, with `ignore_missing`, absent.
    ///
    /// # Errors
    /// As [`Document::get`], unless missing values are ignored.
    pub fn get_optional(&self, path: &str, ignore_missing: bool) -> Result<Option<&Value>, ProcessorError> {
        match self.get(path) {
            Ok(Value::Null) => Ok(None),
            Ok(value) => Ok(Some(value)),
            Err(error @ (ProcessorError::EmptyPath | ProcessorError::InvalidPath { .. })) => Err(error),
            Err(_) if ignore_missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The text at a path; none if it is null or, with `ignore_missing`, absent.
    ///
    /// # Errors
    /// As [`Document::get`], and for a value that is not a string.
    pub fn get_text(&self, path: &str, ignore_missing: bool) -> Result<Option<&str>, ProcessorError> {
        match self.get_optional(path, ignore_missing)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(ProcessorError::Cast {
                path: path.into(),
                found: java_type(other),
                expected: "java.lang.String",
            }),
        }
    }

    /// Whether a path leads to a value; null counts.
    pub fn has(&self, path: &str) -> bool {
        self.get(path).is_ok()
    }

    /// Sets the value at a path; missing objects on the way are created.
    ///
    /// # Errors
    /// The step of the path that cannot hold a field.
    pub fn set(&mut self, path: &str, value: Value) -> Result<(), ProcessorError> {
        let replaced = self.get(path).map_or(0, weight);
        self.grow(path, weight(&value) as isize - replaced as isize)?;
        let (root, keys) = self.locate_mut(path)?;
        // Bounded here, and not only when the document is written: pipelines that call each other could make one so deep
        // that no stack suffices to copy or drop it.
        if keys.len() + levels(&value) > MOST_LEVELS {
            return Err(ProcessorError::TooDeep { path: path.to_owned() });
        }
        if keys.len() == 1 {
            if is_metadata(keys[0]) && !path.starts_with("_ingest.") {
                check_metadata(keys[0], &value)?;
            }
            root.insert(keys[0].to_owned(), value);
            return Ok(());
        }
        let (last, parents) = keys.split_last().expect("a path has at least two steps here");
        let mut context = root.entry(parents[0]).or_insert_with(|| Value::Object(Map::new()));
        for key in &parents[1..] {
            context = match context {
                Value::Object(map) => map.entry(*key).or_insert_with(|| Value::Object(Map::new())),
                other => step_mut(other, key, path)?,
            };
        }
        match context {
            Value::Object(map) => {
                map.insert((*last).to_owned(), value);
            }
            Value::Array(list) => {
                let at = index(last, list.len(), path)?;
                list[at] = value;
            }
            Value::Null => return Err(ProcessorError::SetOnNull { key: (*last).into(), path: path.into() }),
            other => {
                return Err(ProcessorError::SetOnValue {
                    key: (*last).into(),
                    found: java_type(other),
                    path: path.into(),
                });
            }
        }
        Ok(())
    }

    /// Counts bytes that will be added to the document, or removed from it if the number is negative.
    ///
    /// # Errors
    /// If more than [`MOST_ADDED`] bytes have been added.
    pub fn grow(&mut self, path: &str, bytes: isize) -> Result<(), ProcessorError> {
        if bytes > 0 && self.added.saturating_add(bytes) > MOST_ADDED as isize {
            return Err(ProcessorError::TooMuch { path: path.to_owned(), limit: MOST_ADDED });
        }
        self.added += bytes;
        Ok(())
    }

    /// Approximate size of the document in memory, in bytes.
    pub fn weight(&self) -> usize {
        let all = self.source.values().chain(self.ingest.values());
        all.map(weight).sum()
    }

    /// Removes the value at a path and returns it.
    ///
    /// # Errors
    /// If a step of the path does not exist.
    pub fn remove(&mut self, path: &str) -> Result<Value, ProcessorError> {
        let removed = self.take(path)?;
        self.grow(path, -(weight(&removed) as isize))?;
        Ok(removed)
    }

    fn take(&mut self, path: &str) -> Result<Value, ProcessorError> {
        let (root, keys) = self.locate_mut(path)?;
        let (last, parents) = keys.split_last().expect("a path has at least one step");
        let Some((first, inner)) = parents.split_first() else {
            if matches!(*last, "_index" | "_version") && !path.starts_with("_ingest.") {
                return Err(ProcessorError::Metadata { reason: format!("{last} cannot be removed") });
            }
            return root.shift_remove(*last).ok_or_else(|| not_present(last, path));
        };
        let mut context = root.get_mut(*first).ok_or_else(|| not_present(first, path))?;
        for key in inner {
            context = step_mut(context, key, path)?;
        }
        match context {
            Value::Object(map) => map.shift_remove(*last).ok_or_else(|| not_present(last, path)),
            Value::Array(list) => {
                let at = index(last, list.len(), path)?;
                Ok(list.remove(at))
            }
            Value::Null => Err(ProcessorError::ResolveFromNull { key: (*last).into(), path: path.into() }),
            other => Err(ProcessorError::RemoveFromValue {
                key: (*last).into(),
                found: java_type(other),
                path: path.into(),
            }),
        }
    }

    /// Appends values to the list at a path; a single value is turned into a list, and an absent one is created as a
    /// list.
    ///
    /// # Errors
    /// As [`Document::set`].
    pub fn append(
        &mut self,
        path: &str,
        values: Vec<Value>,
        allow_duplicates: bool,
    ) -> Result<(), ProcessorError> {
        // In its place: a list that was copied for each of its elements took quadratic time.
        let (list, given) = match self.get_optional(path, true)? {
            Some(Value::Array(_)) => {
                let Some(Value::Array(list)) = self.get_mut(path) else { return Ok(()) };
                (std::mem::take(list), None)
            }
            Some(single) => (vec![single.clone()], Some(1)),
            None => (Vec::new(), Some(0)),
        };
        let mut list = list;
        let before = list.len();
        let mut seen: Option<HashSet<Value>> = (!allow_duplicates).then(|| list.iter().cloned().collect());
        for value in values {
            if seen.as_mut().is_none_or(|seen| seen.insert(value.clone())) {
                list.push(value);
            }
        }
        if given.is_some() {
            // A value that stays alone stays what it is.
            return if given == Some(1) && list.len() == before {
                Ok(())
            } else {
                self.set(path, Value::Array(list))
            };
        }
        let more = &list[before..];
        let (bytes, inner) =
            (more.iter().map(weight).sum::<usize>(), more.iter().map(levels).max().unwrap_or(0));
        let refused = match split(path)?.1.len() + 1 + inner > MOST_LEVELS {
            true => Err(ProcessorError::TooDeep { path: path.to_owned() }),
            false => self.grow(path, bytes as isize),
        };
        if refused.is_err() {
            list.truncate(before);
        }
        if let Some(place) = self.get_mut(path) {
            *place = Value::Array(list);
        }
        refused
    }

    /// The value at a path, if there is one.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Value> {
        let (root, keys) = self.locate_mut(path).ok()?;
        let (first, inner) = keys.split_first()?;
        let mut value = root.get_mut(*first)?;
        for key in inner {
            value = step_mut(value, key, path).ok()?;
        }
        Some(value)
    }

    /// The document as `_simulate` shows it.
    pub fn to_simulated(&self, with_pipeline: bool) -> Value {
        let mut shown = Map::new();
        for (name, value) in &self.metadata {
            shown.insert(name.clone(), value.clone());
        }
        shown.insert("_source".into(), Value::Object(self.source.clone()));
        let ingest = self
            .ingest
            .iter()
            .filter(|(name, _)| with_pipeline || name.as_str() != "pipeline")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        shown.insert("_ingest".into(), Value::Object(ingest));
        Value::Object(shown)
    }

    fn locate<'p>(&self, path: &'p str) -> Result<(&Map<String, Value>, Vec<&'p str>), ProcessorError> {
        let (root, keys) = split(path)?;
        Ok((
            match root {
                Root::Source => &self.source,
                Root::Metadata => &self.metadata,
                Root::Ingest => &self.ingest,
            },
            keys,
        ))
    }

    fn locate_mut<'p>(
        &mut self,
        path: &'p str,
    ) -> Result<(&mut Map<String, Value>, Vec<&'p str>), ProcessorError> {
        let (root, keys) = split(path)?;
        Ok((
            match root {
                Root::Source => &mut self.source,
                Root::Metadata => &mut self.metadata,
                Root::Ingest => &mut self.ingest,
            },
            keys,
        ))
    }
}

/// The name that Elasticsearch's error texts give to the type of a value.
pub(crate) fn java_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "java.lang.Boolean",
        Value::Number(number) => match number.as_i64() {
            Some(whole) if i32::try_from(whole).is_ok() => "java.lang.Integer",
            Some(_) => "java.lang.Long",
            None if number.is_u64() => "java.math.BigInteger",
            None => "java.lang.Double",
        },
        Value::String(_) => "java.lang.String",
        Value::Array(_) => "java.util.ArrayList",
        Value::Object(_) => "java.util.HashMap",
    }
}

/// A value as a string: strings without quotes, others as JSON.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

enum Root {
    Source,
    Metadata,
    Ingest,
}

fn split(path: &str) -> Result<(Root, Vec<&str>), ProcessorError> {
    if path.is_empty() {
        return Err(ProcessorError::EmptyPath);
    }
    let (mut root, path_below) = match path.strip_prefix("_ingest.") {
        Some(path_below) => (Root::Ingest, path_below),
        None => (Root::Source, path.strip_prefix("_source.").unwrap_or(path)),
    };
    let mut keys: Vec<&str> = path_below.split('.').collect();
    // Trailing dots name nothing.
    while keys.len() > 1 && keys.last().is_some_and(|key| key.is_empty()) {
        keys.pop();
    }
    if keys.len() == 1 && keys[0].is_empty() {
        return Err(ProcessorError::InvalidPath { path: path.into() });
    }
    if matches!(root, Root::Source) && is_metadata(keys[0]) {
        root = Root::Metadata;
    }
    Ok((root, keys))
}

pub(crate) fn is_metadata(name: &str) -> bool {
    METADATA.contains(&name)
}

/// Checks what a processor writes to a metadata field.
pub(crate) fn check_metadata(name: &str, value: &Value) -> Result<(), ProcessorError> {
    let refuse = |reason: String| Err(ProcessorError::Metadata { reason });
    let wrong = |expected: &str| {
        refuse(format!(
            "{name} [{}] is wrong type, expected assignable to [{expected}], not [{}]",
            as_text(value),
            java_type(value)
        ))
    };
    match (name, value) {
        ("_id" | "_routing" | "_version_type" | "_if_seq_no" | "_if_primary_term", Value::Null) => Ok(()),
        (_, Value::Null) => refuse(format!("{name} cannot be null")),
        ("_version" | "_if_seq_no" | "_if_primary_term", Value::Number(number)) if number.is_i64() => Ok(()),
        ("_version" | "_if_seq_no" | "_if_primary_term", Value::Number(_)) => refuse(format!(
            "{name} may only be set to an int or a long but was [{value}] with type [{}]",
            java_type(value)
        )),
        ("_version" | "_if_seq_no" | "_if_primary_term", _) => wrong("java.lang.Number"),
        ("_version_type", Value::String(text)) if VERSION_TYPES.contains(&text.as_str()) => Ok(()),
        ("_version_type", Value::String(text)) => refuse(format!(
            "_version_type must be a null or one of [internal, external, external_gte] but was [{text}] with type \
             [java.lang.String]"
        )),
        ("_dynamic_templates", _) => {
            refuse("_dynamic_templates cannot be set by a pipeline on this server".into())
        }
        (_, Value::String(_)) => Ok(()),
        _ => wrong("java.lang.String"),
    }
}

const VERSION_TYPES: [&str; 3] = ["internal", "external", "external_gte"];

fn not_present(key: &str, path: &str) -> ProcessorError {
    ProcessorError::NotPresent { key: key.into(), path: path.into() }
}

fn step<'v>(context: &'v Value, key: &str, path: &str) -> Result<&'v Value, ProcessorError> {
    match context {
        Value::Object(map) => map.get(key).ok_or_else(|| not_present(key, path)),
        Value::Array(list) => Ok(&list[index(key, list.len(), path)?]),
        Value::Null => Err(ProcessorError::ResolveFromNull { key: key.into(), path: path.into() }),
        other => Err(ProcessorError::ResolveFromValue {
            key: key.into(),
            found: java_type(other),
            path: path.into(),
        }),
    }
}

fn step_mut<'v>(context: &'v mut Value, key: &str, path: &str) -> Result<&'v mut Value, ProcessorError> {
    match context {
        Value::Object(map) => map.get_mut(key).ok_or_else(|| not_present(key, path)),
        Value::Array(list) => {
            let at = index(key, list.len(), path)?;
            Ok(&mut list[at])
        }
        Value::Null => Err(ProcessorError::ResolveFromNull { key: key.into(), path: path.into() }),
        other => Err(ProcessorError::ResolveFromValue {
            key: key.into(),
            found: java_type(other),
            path: path.into(),
        }),
    }
}

fn index(key: &str, length: usize, path: &str) -> Result<usize, ProcessorError> {
    let index: i64 =
        key.parse().map_err(|_| ProcessorError::NotAnIndex { key: key.into(), path: path.into() })?;
    usize::try_from(index).ok().filter(|at| *at < length).ok_or_else(|| ProcessorError::OutOfBounds {
        index,
        length,
        path: path.into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Document;

    fn document() -> Document {
        let Value::Object(source) = json!({"a": {"b": [{"c": 1}, 2]}, "t": "x", "n": null}) else {
            unreachable!()
        };
        let Value::Object(metadata) = json!({"_index": "i", "_id": "1"}) else { unreachable!() };
        Document { source, metadata, ..Document::default() }
    }

    #[test]
    fn paths_reach_objects_lists_and_metadata() {
        let document = document();
        for (path, expected) in [
            ("a.b.0.c", json!(1)),
            ("a.b.1", json!(2)),
            ("_source.t", json!("x")),
            ("_index", json!("i")),
            ("n", Value::Null),
        ] {
            assert_eq!(document.get(path).unwrap(), &expected, "{path}");
        }
    }

    #[test]
    fn paths_that_lead_nowhere_name_the_step() {
        let document = document();
        for (path, message) in [
            ("x", "field [x] not present as part of path [x]"),
            ("a.x.y", "field [x] not present as part of path [a.x.y]"),
            ("a.b.x", "[x] is not an integer, cannot be used as an index as part of path [a.b.x]"),
            ("a.b.7", "[7] is out of bounds for array with length [2] as part of path [a.b.7]"),
            ("t.u", "cannot resolve [u] from object of type [java.lang.String] as part of path [t.u]"),
            ("n.u", "cannot resolve [u] from null as part of path [n.u]"),
            ("", "path cannot be null nor empty"),
            (".", "path [.] is not valid"),
        ] {
            assert_eq!(document.get(path).unwrap_err().to_string(), message);
        }
        assert_eq!(
            document.get_text("a", true).unwrap_err().to_string(),
            "field [a] of type [java.util.HashMap] cannot be cast to [java.lang.String]"
        );
    }

    #[test]
    fn set_makes_parents_and_refuses_scalars() {
        let mut document = document();
        document.set("p.q.r", json!(1)).unwrap();
        document.set("a.b.0", json!("first")).unwrap();
        document.set("_id", json!("2")).unwrap();
        document.set("_ingest.mine", json!(true)).unwrap();
        assert_eq!(document.source["p"], json!({"q": {"r": 1}}));
        assert_eq!(document.source["a"], json!({"b": ["first", 2]}));
        assert_eq!(document.metadata["_id"], json!("2"));
        assert_eq!(document.ingest["mine"], json!(true));
        assert_eq!(
            document.set("t.u", json!(1)).unwrap_err().to_string(),
            "cannot set [u] with parent object of type [java.lang.String] as part of path [t.u]"
        );
        assert_eq!(
            document.set("n.u", json!(1)).unwrap_err().to_string(),
            "cannot set [u] with null parent as part of path [n.u]"
        );
        assert!(document.set("_index", json!(3)).is_err());
    }

    #[test]
    fn remove_and_append() {
        let mut document = document();
        assert_eq!(document.remove("a.b.1").unwrap(), json!(2));
        assert_eq!(document.remove("t").unwrap(), json!("x"));
        assert_eq!(
            document.remove("t").unwrap_err().to_string(),
            "field [t] not present as part of path [t]"
        );
        document.append("l", vec![json!(1)], true).unwrap();
        document.append("l", vec![json!(1), json!(2)], false).unwrap();
        assert_eq!(document.source["l"], json!([1, 2]));
        document.append("n", vec![json!("v")], true).unwrap();
        assert_eq!(document.source["n"], json!(["v"]));
    }
}
