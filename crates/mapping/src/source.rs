//! Filters for the parts of a document's source that are stored or returned.

use serde_json::{Map, Value};
use sparrow_wire::glob;

/// Include and exclude patterns over dotted paths; `*` matches any characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFilter {
    /// Patterns of paths that pass; if empty, all paths do.
    pub includes: Vec<String>,
    pub excludes: Vec<String>,
}

impl SourceFilter {
    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.includes.is_empty() && self.excludes.is_empty()
    }

    /// Whether an exclude pattern matches the path itself, so that nothing at it or below passes. Patterns for paths
    /// below are not considered.
    pub fn excludes(&self, path: &str) -> bool {
        self.excludes.iter().any(|pattern| glob::matches(pattern, path))
    }

    /// Whether an include pattern matches the path itself, so that everything at it and below passes that is not excluded.
    pub(crate) fn includes(&self, path: &str) -> bool {
        self.includes.iter().any(|pattern| glob::matches(pattern, path))
    }

    /// The part of `source` that passes. A pattern that names an object takes all of it.
    pub fn apply(&self, source: &Value) -> Value {
        match source {
            Value::Object(map) if !self.is_empty() => {
                Value::Object(self.object(map, "", self.includes.is_empty()))
            }
            other => other.clone(),
        }
    }

    fn object(&self, map: &Map<String, Value>, prefix: &str, included: bool) -> Map<String, Value> {
        let mut out = Map::new();
        for (key, value) in map {
            let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            if self.excludes(&path) {
                continue;
            }
            let included = included || self.includes(&path);
            if let Some(value) = self.value(value, &path, included) {
                out.insert(key.clone(), value);
            }
        }
        out
    }

    /// The part of the value at `path` that passes; `included` says whether an include pattern matches that path or one
    /// above it, or whether there is none.
    pub(crate) fn value(&self, value: &Value, path: &str, included: bool) -> Option<Value> {
        match value {
            Value::Object(map) => {
                let inner = self.object(map, path, included);
                (included || !inner.is_empty()).then_some(Value::Object(inner))
            }
            Value::Array(values) => {
                let inner: Vec<Value> =
                    values.iter().filter_map(|value| self.value(value, path, included)).collect();
                (included || !inner.is_empty()).then_some(Value::Array(inner))
            }
            scalar => included.then(|| scalar.clone()),
        }
    }
}

/// Adds the values at a path to `out`, with arrays flattened. Dots in member names and nested objects are equivalent.
pub fn values_at<'a>(source: &'a Value, path: &str, out: &mut Vec<&'a Value>) {
    match source {
        Value::Object(map) => {
            for (key, inner) in map {
                if key == path {
                    flatten(inner, out);
                } else if let Some(rest) =
                    path.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('.'))
                {
                    values_at(inner, rest, out);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values_at(item, path, out)),
        _ => {}
    }
}

/// A value inside an object for each name of a dotted path: `{"a": {"b": value}}` for `a.b`.
pub fn wrapped(path: &str, value: &Value) -> Value {
    path.rsplit('.').fold(value.clone(), |inner, name| Map::from_iter([(name.to_owned(), inner)]).into())
}

fn flatten<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| flatten(item, out)),
        scalar => out.push(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(includes: &[&str], excludes: &[&str], expected: Value) {
        let owned = |list: &[&str]| list.iter().map(|&item| item.to_owned()).collect();
        let filter = SourceFilter { includes: owned(includes), excludes: owned(excludes) };
        let source = json!({
            "title": "t", "ml": {"tokens": {"a": 1.0, "b.c": 2.0}, "model_id": "m"},
            "list": [{"x": 1, "y": 2}, {"y": 3}], "empty": {}
        });
        assert_eq!(filter.apply(&source), expected, "{includes:?} {excludes:?}");
    }

    #[test]
    fn values_are_found_through_objects_and_arrays() {
        let source = json!({"a": {"b": [1, [2, {"c": 3}]]}, "a.b": 4, "d": null});
        let at = |path: &str| {
            let mut out = Vec::new();
            values_at(&source, path, &mut out);
            json!(out)
        };
        assert_eq!(at("a.b"), json!([1, 2, {"c": 3}, 4]));
        assert_eq!(at("a.b.c"), json!([3]));
        assert_eq!(at("d"), json!([null]));
        assert_eq!(at("x"), json!([]));
    }

    #[test]
    fn filters_like_elasticsearch() {
        let all = json!({
            "title": "t", "ml": {"tokens": {"a": 1.0, "b.c": 2.0}, "model_id": "m"},
            "list": [{"x": 1, "y": 2}, {"y": 3}], "empty": {}
        });
        check(&[], &[], all);
        check(&["title"], &[], json!({"title": "t"}));
        check(&["ml"], &["ml.tokens"], json!({"ml": {"model_id": "m"}}));
        check(&["ml.tokens"], &[], json!({"ml": {"tokens": {"a": 1.0, "b.c": 2.0}}}));
        check(&["*.y"], &[], json!({"list": [{"y": 2}, {"y": 3}]}));
        check(&["list.x"], &[], json!({"list": [{"x": 1}]}));
        check(&[], &["ml.*", "list"], json!({"title": "t", "ml": {}, "empty": {}}));
        check(&["nothing"], &[], json!({}));
    }
}
