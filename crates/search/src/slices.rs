//! A slice of the documents of a search, as it applies to one index.

use sparrow_mapping::{FieldType, Mapping};
use sparrow_search_body::paging::SliceOf;
use sparrow_tantivy_index::query::sorted::{ColumnKey, ColumnKind, Missing, Slice, SortMode, SortValue};

use super::error::{SearchError, Shard};

/// The number of the slice, from 0, and the number of slices, if documents are divided by their ids.
///
/// # Errors
/// When they are divided by a field.
pub fn by_id(slice: &SliceOf) -> Result<(u32, u32), SearchError> {
    match slice.field.as_deref() {
        None | Some("_id" | "_doc" | "_seq_no") => Ok((slice.id, slice.max)),
        Some(field) => Err(SearchError::illegal(format!(
            "[slice] by the field [{field}] is not supported in this context"
        ))),
    }
}

/// The slice as it applies to one index.
///
/// # Errors
/// When the field that divides the documents is not numeric.
pub fn bind(slice: &SliceOf, mapping: &Mapping, shard: &Shard) -> Result<Slice, SearchError> {
    let column = match slice.field.as_deref() {
        None | Some("_id" | "_doc" | "_seq_no") => None,
        Some(path) => {
            let kind = match mapping.field(path) {
                Some(FieldType::UnsignedLong) => Some(ColumnKind::Unsigned),
                Some(FieldType::Date { .. } | FieldType::DateNanos { .. }) => Some(ColumnKind::Long),
                Some(whole) if whole.is_integer() => Some(ColumnKind::Long),
                Some(float) if float.is_float() => Some(ColumnKind::Double),
                Some(_) => None,
                None => {
                    return Err(SearchError::OfShard {
                        shard: Box::new(shard.clone()),
                        kind: "illegal_argument_exception",
                        reason: format!("field {path} not found"),
                    });
                }
            };
            let kind = kind.ok_or_else(|| SearchError::OfShard {
                shard: Box::new(shard.clone()),
                kind: "illegal_argument_exception",
                reason: format!("cannot load numeric doc values on {path}"),
            })?;
            let missing = Missing::Value(SortValue::Long(0));
            Some(ColumnKey {
                path: mapping.concrete(path).into_owned(),
                kind,
                mode: SortMode::Min,
                missing,
                nested: Vec::new(),
            })
        }
    };
    Ok(Slice { id: slice.id, max: slice.max, column })
}
