//! Objects that are documents of their own (`nested`).

use super::error::MappingError;
use super::types::FieldType;
use super::{Mapping, Node};

impl Mapping {
    /// Paths of the `nested` fields, sorted: one comes before those inside it.
    pub fn nested_fields(&self) -> &[String] {
        &self.nested
    }

    /// Path of the innermost `nested` field that `path` lies inside, or is; `None` if its values are those of the document.
    pub fn nested_around(&self, path: &str) -> Option<&str> {
        let around = |nested: &&String| is_inside(path, nested);
        self.nested.iter().rev().find(around).map(String::as_str)
    }

    /// Whether `path` is that of a `nested` field inside the one at `scope`, or inside the document.
    pub fn is_nested_inside(&self, scope: Option<&str>, path: &str) -> bool {
        let is_deeper = scope.is_none_or(|scope| path != scope && is_inside(path, scope));
        is_deeper && self.nested.iter().any(|nested| nested == path)
    }

    /// Path of the outermost `nested` field inside the one at `scope`, or inside the document, that `path` lies inside.
    pub fn nested_inside(&self, scope: Option<&str>, path: &str) -> Option<&str> {
        let is_deeper = |nested: &str| scope.is_none_or(|scope| nested != scope && is_inside(nested, scope));
        self.nested.iter().map(String::as_str).find(|nested| is_inside(path, nested) && is_deeper(nested))
    }

    /// Whether documents have the values of a field inside a `nested` one as well.
    pub fn is_included(&self, path: &str) -> bool {
        let (mut object, mut included) = (&self.root, true);
        for part in path.split('.') {
            let Some(Node::Object(inner)) = object.properties.get(part) else { break };
            if let Some(nested) = inner.nested {
                included = nested.include_in_root || included && nested.include_in_parent;
            }
            object = inner;
        }
        included
    }

    /// Checks what fields inside `nested` ones may not be.
    ///
    /// # Errors
    /// A field that has no meaning there, or that copies into an object which is not the one around it.
    pub(crate) fn check_nested(&self) -> Result<(), MappingError> {
        if self.nested.is_empty() {
            return Ok(());
        }
        let mut fields: Vec<(&str, &FieldType)> = self.leaf_fields().collect();
        fields.sort_unstable_by_key(|(path, _)| *path);
        for (path, field_type) in fields {
            let around = self.nested_around(path);
            if around.is_some() && matches!(field_type, FieldType::SemanticText(_)) {
                let name = path.rsplit('.').next().unwrap_or(path);
                return Err(MappingError::Malformed {
                    reason: format!("semantic_text field [{name}] cannot be nested"),
                });
            }
            if around.is_some() && matches!(field_type, FieldType::Completion(_)) {
                return Err(MappingError::Malformed {
                    reason: format!(
                        "Field [{path}] of type [completion] cannot be inside a [nested] field on this server"
                    ),
                });
            }
            for target in self.leaf(path).map_or(&[][..], |leaf| &leaf.options.copy_to) {
                let to = self.nested_around(target);
                if to.is_some_and(|to| around.is_none_or(|around| !is_inside(around, to))) {
                    let source = around
                        .map_or_else(|| "root object".to_owned(), |path| format!("nested object [{path}]"));
                    return Err(MappingError::BadValue {
                        reason: format!(
                            "Illegal combination of [copy_to] and [nested] mappings: [copy_to] may only copy data to the \
                             current nested document or any of its parents, however one [copy_to] directive is trying to \
                             copy data from {source} to nested object [{}]",
                            to.unwrap_or_default()
                        ),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Whether `path` is `object` or lies inside it.
pub(crate) fn is_inside(path: &str, object: &str) -> bool {
    path.strip_prefix(object).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
