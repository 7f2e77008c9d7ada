//! The column by whose values the hits of an index are collapsed.

use sparrow_mapping::{FieldType, Mapping};
use sparrow_search_body::collapse::Collapse;
use sparrow_tantivy_index::query::sorted::{ColumnKey, ColumnKind, Missing, SortMode};

use super::error::{SearchError, Shard};
use super::sort::plan::without_columns;

/// The column of an index by whose values hits are collapsed.
///
/// # Errors
/// When the field has no column, or one of another type.
pub fn column(collapse: &Collapse, mapping: &Mapping, shard: &Shard) -> Result<ColumnKey, SearchError> {
    let refused = |reason: String| SearchError::OfShard {
        shard: Box::new(shard.clone()),
        kind: "illegal_argument_exception",
        reason,
    };
    let field = &collapse.field;
    let kind = match mapping.field(field) {
        None => {
            return Err(refused(format!("no mapping found for `{field}` in order to collapse on")));
        }
        Some(field_type) => {
            let off = mapping.parameter(field, "doc_values") == Some(&serde_json::Value::Bool(false));
            match field_type {
                FieldType::Keyword { .. } if !off => ColumnKind::Keyword,
                FieldType::UnsignedLong if !off => ColumnKind::Unsigned,
                whole if whole.is_integer() && !off => ColumnKind::Long,
                float if float.is_float() && !off => ColumnKind::Double,
                FieldType::Date { .. } if !off => ColumnKind::Long,
                other if off && without_columns(field, other, true, &shard.index).is_some() => {
                    return Err(refused(format!("cannot collapse on field `{field}` without `doc_values`")));
                }
                other => {
                    return Err(refused(format!(
                        "collapse is not supported for the field [{field}] of the type [{}]",
                        other.name()
                    )));
                }
            }
        }
    };
    Ok(ColumnKey {
        path: mapping.concrete(field).into_owned(),
        kind,
        mode: SortMode::Min,
        missing: Missing::Last,
        nested: Vec::new(),
    })
}
