//! The texts and values that a document's source has at a field's path.

use serde_json::Value;

/// The strings at a path, found through objects, arrays and keys that contain dots themselves.
pub fn texts_at<'s>(source: &'s Value, path: &str) -> Vec<&'s str> {
    let mut texts = Vec::new();
    collect(source, path, &mut |value| {
        if let Value::String(text) = value {
            texts.push(text.as_str());
        }
    });
    texts
}

/// The strings, numbers and booleans at a path, as text.
pub fn values_at(source: &Value, path: &str) -> Vec<String> {
    let mut values = Vec::new();
    collect(source, path, &mut |value| match value {
        Value::String(text) => values.push(text.clone()),
        Value::Number(number) => values.push(number.to_string()),
        Value::Bool(flag) => values.push(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {}
    });
    values
}

/// Java's name for the type of a value at a path that is neither a scalar nor a list of scalars; none if there is no such value.
pub fn no_scalar_at(source: &Value, path: &str) -> Option<&'static str> {
    match source {
        Value::Object(_) if path.is_empty() => Some("HashMap"),
        Value::Object(members) => path
            .match_indices('.')
            .chain([(path.len(), "")])
            .filter_map(|(end, _)| {
                Some((members.get(&path[..end])?, path.get(end + 1..).unwrap_or_default()))
            })
            .find_map(|(inner, rest)| no_scalar_at(inner, rest)),
        Value::Array(items) => items.iter().find_map(|item| match item {
            Value::Array(_) if path.is_empty() => Some("ArrayList"),
            item => no_scalar_at(item, path),
        }),
        _ => None,
    }
}

fn collect<'s>(value: &'s Value, path: &str, see: &mut dyn FnMut(&'s Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, see)),
        Value::Object(members) if !path.is_empty() => {
            for (end, _) in path.match_indices('.').chain([(path.len(), "")]) {
                if let Some(inner) = members.get(&path[..end]) {
                    collect(inner, path.get(end + 1..).unwrap_or_default(), see);
                }
            }
        }
        scalar if path.is_empty() => see(scalar),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{no_scalar_at, texts_at, values_at};

    #[test]
    fn texts_are_found_however_the_path_is_written() {
        let source = json!({"a": {"b": "1", "c": [{"d": "2"}, {"d": ["3", 4, null]}]}, "a.b": "5", "a.c": {"x.y": "6"}});
        assert_eq!(texts_at(&source, "a.b"), ["1", "5"]);
        assert_eq!(texts_at(&source, "a.c.d"), ["2", "3"]);
        assert_eq!(texts_at(&source, "a.c.x.y"), ["6"]);
        assert_eq!(values_at(&source, "a.c.d"), ["2", "3", "4"]);
        assert!(texts_at(&source, "a").is_empty() && texts_at(&source, "a.b.c").is_empty());
        assert!(texts_at(&json!({"a": "x"}), "").is_empty());
    }

    #[test]
    fn what_is_no_scalar_is_named() {
        let source = json!({"a": {"b": "1", "c": [1, {"d": 2}], "d": [["3"]]}, "e": {"f": null}});
        assert_eq!(no_scalar_at(&source, "a.b"), None);
        assert_eq!(no_scalar_at(&source, "a.c"), Some("HashMap"));
        assert_eq!(no_scalar_at(&source, "a.c.d"), None);
        assert_eq!(no_scalar_at(&source, "a.d"), Some("ArrayList"));
        assert_eq!(no_scalar_at(&source, "e"), Some("HashMap"));
        assert_eq!(no_scalar_at(&source, "e.f"), None);
    }
}
