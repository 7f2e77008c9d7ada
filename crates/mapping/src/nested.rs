//! Objects that are documents of their own (`nested`).

use super::error::MappingError;
use super::types::FieldType;
use super::{Mapping, Node};

/// The parameters of a `nested` field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Nested {
    /// Whether the values of an object count as values of the document or object around it as well.
    pub include_in_parent: bool,
    /// Whether they count as values of the document as well.
    pub include_in_root: bool,
}

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

/// Checks an update of an object: what its documents are is fixed once some are written.
///
/// # Errors
/// What would change, in Elasticsearch's words.
pub(crate) fn update(old: Option<Nested>, update: Option<Nested>, path: &str) -> Result<(), MappingError> {
    let refused = match (old, update) {
        (None, None) => return Ok(()),
        (None, Some(_)) => format!("can't merge a non nested mapping [{path}] with a nested mapping"),
        (Some(_), None) => format!("can't merge a nested mapping [{path}] with a non nested mapping"),
        (Some(old), Some(update)) if old == update => return Ok(()),
        (Some(old), Some(update)) => {
            let parameter = match old.include_in_parent != update.include_in_parent {
                true => "include_in_parent",
                false => "include_in_root",
            };
            format!("the [{parameter}] parameter can't be updated on a nested object mapping")
        }
    };
    Err(MappingError::BadValue { reason: refused })
}
