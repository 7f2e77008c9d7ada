//! Filters for the parts of a document's source that are stored or returned.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
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
    /// above it, or whether nothing includes it.
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
    each_at(source, path, &mut |value| flatten(value, out));
}

/// Calls `see` with the value of each member at a path, which may be an array.
pub(crate) fn each_at<'a>(source: &'a Value, path: &str, see: &mut dyn FnMut(&'a Value)) {
    match source {
        Value::Object(map) => {
            for (key, inner) in map {
                if key == path {
                    see(inner);
                } else if let Some(rest) =
                    path.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('.'))
                {
                    each_at(inner, rest, see);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_at(item, path, see)),
        _ => {}
    }
}

/// A value inside an object for each name of a dotted path: `{"a": {"b": value}}` for `a.b`.
pub fn wrapped(path: &str, value: &Value) -> Value {
    path.rsplit('.').fold(value.clone(), |inner, name| Map::from_iter([(name.to_owned(), inner)]).into())
}

/// Where the objects at a path lie in the bytes of a document, in their order and with arrays flattened, as [`values_at`] finds them. Nothing
/// of them is kept in memory; none if the bytes are not JSON.
pub fn objects_at(source: &[u8], path: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(source);
    let objects = Objects { path, start: source.as_ptr().addr(), found: &mut found };
    match objects.deserialize(&mut reader) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

/// Looks for the objects at a path of a value.
struct Objects<'p, 'f> {
    path: &'p str,
    /// Address of the first byte of the document.
    start: usize,
    found: &'f mut Vec<Range<usize>>,
}

impl Objects<'_, '_> {
    fn again(&mut self) -> Objects<'_, '_> {
        Objects { path: self.path, start: self.start, found: self.found }
    }

    /// Adds the value if it is an object, or the objects in it if it is an array.
    fn add(&mut self, value: &RawValue) -> serde_json::Result<()> {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'{') => {
                let at = text.as_ptr().addr() - self.start;
                self.found.push(at..at + text.len());
                Ok(())
            }
            Some(b'[') => {
                let elements = Objects { path: "", ..self.again() };
                elements.deserialize(&mut serde_json::Deserializer::from_str(text))
            }
            _ => Ok(()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Objects<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Objects<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == self.path {
                let value = map.next_value::<&RawValue>()?;
                self.add(value).map_err(serde::de::Error::custom)?;
            } else if let Some(rest) = self.path.strip_prefix(&*key).and_then(|rest| rest.strip_prefix('.')) {
                map.next_value_seed(Objects { path: rest, ..self.again() })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        if self.path.is_empty() {
            while let Some(value) = list.next_element::<&RawValue>()? {
                self.add(value).map_err(serde::de::Error::custom)?;
            }
        } else {
            while list.next_element_seed(self.again())?.is_some() {}
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The text before and after an object that put it inside an object for each name of a dotted path, as [`wrapped`] does.
pub fn wrapping(path: &str) -> (String, String) {
    let before: String = path.split('.').map(|name| format!("{{{}:", Value::from(name))).collect();
    let after = "}".repeat(path.split('.').count());
    (before, after)
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

    /// In the bytes of a document the same objects are found as in its value.
    #[test]
    fn objects_are_found_in_bytes_as_in_values() {
        let source = r#"{ "x": [1, {"y": null}], "o": [ {"a" : 1.50, "b": {"c": [{"d": 1}, [{"d": 2}], 3]}}, null, [[{"a": "}]"}], 2], {} ],
            "p.q": {"r": true}, "p": {"q": [{"r": false}], "q.r": {"s": -1}, "é\"": {"t": {}}}, "empty": [] }"#;
        let value: Value = serde_json::from_str(source).unwrap();
        for path in
            ["o", "o.b", "o.b.c", "p", "p.q", "p.q.r", "x", "x.y", "empty", "none", "o.a", "p.é\"", "p.é\".t"]
        {
            let mut wanted = Vec::new();
            values_at(&value, path, &mut wanted);
            wanted.retain(|value| value.is_object());
            let spans = objects_at(source.as_bytes(), path);
            let found: Vec<Value> =
                spans.iter().map(|span| serde_json::from_str(&source[span.clone()]).unwrap()).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{path}");
            for (span, value) in spans.into_iter().zip(&found) {
                let (before, after) = wrapping(path);
                let text = format!("{before}{}{after}", &source[span]);
                assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wrapped(path, value), "{path}");
            }
        }
        let first = objects_at(source.as_bytes(), "o").remove(0);
        assert_eq!(&source[first], r#"{"a" : 1.50, "b": {"c": [{"d": 1}, [{"d": 2}], 3]}}"#, "as it stands");
        assert!(objects_at(b"{\"o\": [{}, ", "o").is_empty());
    }

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
