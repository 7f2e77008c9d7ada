//! `terms` with the values of another document: read before the search, so that every index it looks at is
//! asked for the same values.

use serde_json::Value;
use sparrow_index::query::{Query, QueryKind, TermsLookupQuery};

use super::error::SearchError;
use super::resolve::change;
use crate::Engine;
use crate::error::EngineError;

/// Most values that are taken from a document.
const MAX_VALUES: usize = 65_536;

/// Puts the values in the place of all lookups. A document that does not exist has none.
///
/// # Errors
/// When an index does not exist, or a value is no scalar.
pub fn look_up_terms(engine: &Engine, queries: &mut [&mut Query]) -> Result<(), EngineError> {
    for query in queries {
        change(query, &mut |kind| {
            if let QueryKind::TermsLookup(lookup) = kind {
                let values = values(engine, lookup)?;
                *kind = QueryKind::Terms { field: std::mem::take(&mut lookup.field), values };
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn values(engine: &Engine, lookup: &TermsLookupQuery) -> Result<Vec<Value>, EngineError> {
    let handle = engine.indices.get(&lookup.index)?;
    let Some(found) = handle.get(&lookup.id)? else { return Ok(Vec::new()) };
    if found.source.is_empty() {
        return Ok(Vec::new());
    }
    let source: Value = serde_json::from_slice(&found.source)
        .map_err(|error| EngineError::internal(format!("stored document is not JSON: {error}")))?;
    let mut values = Vec::new();
    collect(&source, &lookup.path, &mut values);
    values.retain(|value| !value.is_null());
    if values.len() > MAX_VALUES {
        return Err(SearchError::illegal(format!(
            "The number of terms [{}] of the document [{}] is over the limit of [{MAX_VALUES}]",
            values.len(),
            lookup.id
        ))
        .into());
    }
    if values.iter().any(|value| value.is_object()) {
        return Err(SearchError::illegal(format!(
            "[terms] lookup of [{}] in document [{}] found an object where a value was expected",
            lookup.path, lookup.id
        ))
        .into());
    }
    Ok(values)
}

/// Values at a dotted path, through arrays; keys may hold dots themselves.
fn collect(value: &Value, path: &str, out: &mut Vec<Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, out)),
        Value::Object(members) if !path.is_empty() => {
            for (key, inner) in members {
                match path.strip_prefix(key.as_str()) {
                    Some("") => collect(inner, "", out),
                    Some(rest) => {
                        if let Some(rest) = rest.strip_prefix('.') {
                            collect(inner, rest, out);
                        }
                    }
                    None => {}
                }
            }
        }
        other if path.is_empty() => out.push(other.clone()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn at(source: &Value, path: &str) -> Value {
        let mut out = Vec::new();
        super::collect(source, path, &mut out);
        Value::Array(out)
    }

    #[test]
    fn values_are_found_through_objects_and_arrays() {
        let source = json!({"a": {"b": [1, [2, {"c": 3}]]}, "a.b": 4, "d": null});
        assert_eq!(at(&source, "a.b"), json!([1, 2, {"c": 3}, 4]));
        assert_eq!(at(&source, "a.b.c"), json!([3]));
        assert_eq!(at(&source, "d"), json!([null]));
        assert_eq!(at(&source, "x"), json!([]));
    }
}
