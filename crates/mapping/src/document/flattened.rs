//! Values of `flattened` fields: all scalars in an object, as keywords of the field and of their paths in it.

use rustc_hash::FxHashSet;
use serde_json::Value;

use super::super::error::{Cause, DocumentError, DocumentErrorKind, ILLEGAL_ARGUMENT};
use super::super::java::{java_string, token_name};
use super::super::types::{FieldType, KeywordKind};
use super::super::{LeafNode, join};
use super::Reader;

/// Most different paths in the object of one document. Each has a column, as a field has.
const MOST_PATHS: usize = 1000;

impl Reader<'_> {
    /// Reads the object of a `flattened` field.
    pub(super) fn flattened(
        &mut self,
        leaf: &LeafNode,
        path: &str,
        value: &Value,
    ) -> Result<(), DocumentError> {
        if value.is_null() {
            return Ok(());
        }
        let mut paths = FxHashSet::default();
        let read = match value {
            Value::Object(_) => self.scalars(leaf, path, path, value, 0, &mut paths),
            other => Err(vec![(
                "parsing_exception",
                format!(
                    "Failed to parse object: expecting token of type [START_OBJECT] but found [{}]",
                    token_name(other)
                ),
            )]),
        };
        read.map_err(|causes| {
            self.fail(DocumentErrorKind::Field {
                path: path.to_owned(),
                type_name: leaf.field_type.name(),
                id: self.id.to_owned(),
                preview: java_string(value),
                causes,
            })
        })
    }

    /// Adds the scalars of a part of the object, which lies at `path`.
    fn scalars(
        &mut self,
        leaf: &LeafNode,
        root: &str,
        path: &str,
        value: &Value,
        level: usize,
        paths: &mut FxHashSet<String>,
    ) -> Result<(), Vec<Cause>> {
        let FieldType::Keyword { ignore_above, kind: KeywordKind::Flattened { depth_limit }, .. } =
            leaf.field_type
        else {
            return Ok(());
        };
        let refuse = |reason: String| Err(vec![(ILLEGAL_ARGUMENT, reason)]);
        let value = match (value, &leaf.options.null_value) {
            (Value::Null, Some(null_value)) => null_value,
            (value, _) => value,
        };
        match value {
            Value::Object(members) => {
                if level + 1 > depth_limit {
                    return refuse(format!(
                        "The provided [flattened] field [{root}] exceeds the maximum depth limit of [{depth_limit}]."
                    ));
                }
                for (key, member) in members {
                    if key.contains('\0') {
                        return refuse(format!(
                            "Keys in [flattened] fields cannot contain the reserved character \\0. Offending key: [{key}]."
                        ));
                    }
                    self.scalars(leaf, root, &join(path, key), member, level + 1, paths)?;
                }
                Ok(())
            }
            Value::Array(values) => {
                values.iter().try_for_each(|value| self.scalars(leaf, root, path, value, level, paths))
            }
            scalar => {
                let Some(text) = self.text_of(scalar)?.map(|text| text.into_owned()) else { return Ok(()) };
                if !paths.contains(path) {
                    if paths.len() == MOST_PATHS {
                        return refuse(format!(
                            "The provided [flattened] field [{root}] has more than [{MOST_PATHS}] different keys in one document."
                        ));
                    }
                    paths.insert(path.to_owned());
                }
                self.keyword(leaf, root, ignore_above, text.as_str().into())?;
                self.keyword(leaf, path, ignore_above, text.into())
            }
        }
    }
}
