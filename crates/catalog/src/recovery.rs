//! Parsing logged documents again when the log is replayed.
//!
//! They were acknowledged, so none is ever refused. The mapping was widened durably before each was logged, but explicit changes of
//! mapping and settings may have come since: whatever the current mapping cannot index is left out of the index. The stored source
//! has it all the same.

use serde_json::{Map, Value};
use sparrow_mapping::passages::{self, StoredParts};
use sparrow_mapping::{DocumentError, DocumentErrorKind, Limits, Mapping, ParsedDocument};
use sparrow_runtime::work;
use sparrow_wire::json::WrittenNumbers;
use sparrow_write_path::RereadDocument;

use super::{prepare, write};

/// Most fields of one document that are left out one by one; if there are more, all its fields are.
const MOST_LEFT_OUT: usize = 100;

/// Limits that no logged document exceeds. No field is added to the mapping: the document's new fields were added before it was
/// logged, and any others were ignored then, too.
const LIMITS: Limits = Limits {
    total_fields: 0,
    ignore_dynamic_beyond_limit: true,
    depth: usize::MAX,
    field_name: usize::MAX,
    nested_fields: usize::MAX,
    nested_objects: usize::MAX,
    ignore_malformed: false,
};

/// Parses a logged document by the current mapping, leaving out the fields that do not fit. `ignore_malformed` is what the index is set to.
pub fn reread(mapping: &Mapping, ignore_malformed: bool, id: &str, logged: &[u8]) -> RereadDocument {
    // Nobody's request, even where one opens an index: a field must not be left out because that request has to stop.
    let _nobodys = work::leave_behind();
    let limits = Limits { ignore_malformed, ..LIMITS };
    let StoredParts { json, passages: payload, routing } = passages::split(logged);
    let mut left_out = Vec::new();
    let numbers = WrittenNumbers::of(json);
    let mut value: Value = serde_json::from_slice(json).unwrap_or_else(|error| {
        left_out.push(format!("all ({error})"));
        Value::Object(Map::new())
    });
    let mut parsed = loop {
        match mapping.parse_written_document(id, &value, numbers.as_ref(), &limits) {
            Ok((parsed, _)) => break parsed,
            Err(error) => {
                let removed = field_of(&error).filter(|path| remove(&mut value, path));
                match removed {
                    Some(path) if left_out.len() < MOST_LEFT_OUT => left_out.push(path),
                    _ => {
                        left_out.push(format!("all ({error})"));
                        value = Value::Object(Map::new());
                        match mapping.parse_written_document(id, &value, numbers.as_ref(), &limits) {
                            Ok((parsed, _)) => break parsed,
                            Err(_) => break ParsedDocument::default(),
                        }
                    }
                }
            }
        }
    };
    if let Err(error) = write::attach_logged(mapping, &mut parsed, payload) {
        left_out.push(format!("passages ({error})"));
    }
    if !left_out.is_empty() {
        // What the mapping filters was made of a value that lacks fields now.
        parsed.stored_source = None;
    }
    prepare::add_stored_parts(&mut parsed, payload, routing);
    RereadDocument { parsed, left_out }
}

/// Path of the field because of which a document was refused; none if it was not for a single field.
fn field_of(error: &DocumentError) -> Option<String> {
    match error.kind() {
        DocumentErrorKind::Field { path, .. }
        | DocumentErrorKind::ConcreteForObject { path, .. }
        | DocumentErrorKind::Alias { path, .. } => Some(path.clone()),
        DocumentErrorKind::Strict { name, parent } if parent == "_doc" => Some(name.clone()),
        DocumentErrorKind::Strict { name, parent } => Some(format!("{parent}.{name}")),
        DocumentErrorKind::Failed { .. } => Some(error.path()).filter(|path| !path.is_empty()),
        DocumentErrorKind::Depth { .. } | DocumentErrorKind::Stopped(_) => None,
    }
}

/// Removes a field from a document, in every object of the arrays along its path; `false` if it was nowhere. Names may contain
/// dots.
fn remove(value: &mut Value, path: &str) -> bool {
    match value {
        Value::Array(items) => {
            // In each of them, also behind the first that has it.
            let removed: Vec<bool> = items.iter_mut().map(|item| remove(item, path)).collect();
            removed.contains(&true)
        }
        Value::Object(members) => {
            let mut removed = members.shift_remove(path).is_some();
            for (at, _) in path.match_indices('.') {
                if let Some(inner) = members.get_mut(&path[..at]) {
                    removed |= remove(inner, &path[at + 1..]);
                }
            }
            if removed {
                return true;
            }
            // A multi-field is filled from the field that it belongs to.
            path.rsplit_once('.').is_some_and(|(parent, _)| members.shift_remove(parent).is_some())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reread_by(mapping: Value, document: &Value) -> RereadDocument {
        let mapping = Mapping::parse(&mapping).unwrap();
        reread(&mapping, false, "1", document.to_string().as_bytes())
    }

    #[test]
    fn a_vector_that_an_older_version_took_is_left_out_alone() {
        let mapping = json!({"properties": {"k": {"type": "keyword"},
            "o": {"properties": {"v": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}}}}});
        let reread = reread_by(mapping, &json!({"k": "a", "o": {"v": [1e20, 1e20]}}));
        assert_eq!(reread.left_out, ["o.v"]);
        assert_eq!(reread.parsed.keywords, [("k".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn what_no_longer_fits_is_left_out_and_named() {
        let mapping = json!({"dynamic": false, "properties": {
            "x": {"type": "integer"}, "o": {"properties": {"d": {"type": "date"}}}, "k": {"type": "keyword"}}});
        let document = json!({"x": "abc", "o": [{"d": "no date", "e": 1}, {"d": "2020-01-01"}], "k": "kept"});
        let reread = reread_by(mapping.clone(), &document);
        assert_eq!(reread.left_out, ["x", "o.d"]);
        assert!(reread_by(mapping.clone(), &json!({"x": 1, "k": "kept"})).left_out.is_empty());
        // Earlier versions took any number for a date.
        assert_eq!(reread_by(mapping, &json!({"o": {"d": i64::MAX}, "k": "kept"})).left_out, ["o.d"]);
    }

    #[test]
    fn a_completion_without_a_context_is_left_out_alone() {
        let contexts = json!({"name": "of", "type": "category", "path": "k"});
        let mapping = json!({"properties": {"k": {"type": "keyword"}, "title": {"type": "text",
            "fields": {"complete": {"type": "completion", "contexts": contexts}}}}, "dynamic": false});
        let reread = reread_by(mapping.clone(), &json!({"title": "a", "other": 1}));
        assert_eq!(reread.left_out, ["title.complete"]);
        assert!(reread_by(mapping, &json!({"title": "a", "k": "b"})).left_out.is_empty());
    }

    #[test]
    fn a_mapping_that_became_strict_and_text_that_is_no_json_are_taken() {
        let strict = json!({"dynamic": "strict", "properties": {"k": {"type": "keyword"}}});
        assert_eq!(reread_by(strict.clone(), &json!({"new": 1, "k": "a"})).left_out, ["new"]);
        let mapping = Mapping::parse(&strict).unwrap();
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        assert_eq!(reread(&mapping, false, "1", deep.as_bytes()).left_out.len(), 1);
        let concrete = json!({"properties": {"o": {"properties": {"a": {"type": "keyword"}}}}});
        assert_eq!(reread_by(concrete, &json!({"o": 1})).left_out, ["o"]);
    }

    #[test]
    fn fields_that_the_mapping_does_not_know_are_not_added() {
        let reread = reread_by(json!({"properties": {}}), &json!({"new": 1}));
        assert!(reread.left_out.is_empty());
    }
}
