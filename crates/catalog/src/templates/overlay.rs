//! Mappings of one template laid over those of another.

use serde_json::{Map, Value};

/// Overrides mappings by others: objects are merged, a field is replaced as a whole.
pub(super) fn overlay(below: &Map<String, Value>, above: &Map<String, Value>) -> Map<String, Value> {
    let mut result = below.clone();
    for (key, value) in above {
        let joined = match (key.as_str(), result.get(key).and_then(Value::as_object), value.as_object()) {
            ("properties", Some(old), Some(new)) => overlay_fields(old, new),
            ("_meta", Some(old), Some(new)) => {
                let mut joined = old.clone();
                joined.extend(new.clone());
                joined
            }
            _ => {
                result.insert(key.clone(), value.clone());
                continue;
            }
        };
        result.insert(key.clone(), Value::Object(joined));
    }
    result
}

fn overlay_fields(below: &Map<String, Value>, above: &Map<String, Value>) -> Map<String, Value> {
    let mut result = below.clone();
    for (name, field) in above {
        let is_object = |field: &Value| field.get("properties").is_some();
        let joined = match result.get(name) {
            Some(old) if is_object(old) && is_object(field) => match (old.as_object(), field.as_object()) {
                (Some(old), Some(new)) => Value::Object(overlay(old, new)),
                _ => field.clone(),
            },
            _ => field.clone(),
        };
        result.insert(name.clone(), joined);
    }
    result
}
