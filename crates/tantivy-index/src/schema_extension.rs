//! Gives an index new tantivy fields without rewriting its segments.
//!
//! tantivy has no function for this. What works is to append the fields to the schema in the meta file and
//! reopen the index. Old segments then have no hits for the new fields, and merge with new ones, except for
//! fields with field norms, where a merge fails ("Field norm not found"), in the background. So every old
//! segment gets a `.fieldnorm` file with zeros for the new text fields first.

use std::path::PathBuf;
use std::sync::Arc;

use tantivy::fieldnorm::{FieldNormReaders, FieldNormsSerializer};
use tantivy::index::SegmentComponent;
use tantivy::schema::{Field, FieldEntry};
use tantivy::{Directory, Index, TantivyError};

use crate::writer::Writer;
use sparrow_mapping::Mapping;
use sparrow_segments::IndexError;
use sparrow_segments::directory::LazyDirectory;
use sparrow_segments::manifest::META;

/// Puts `mapping` in force; returns `true` if the index had to be reopened for it.
pub(crate) fn extend(writer: &mut Writer, mapping: Arc<Mapping>) -> Result<bool, IndexError> {
    let missing = writer.schema.missing_entries(&mapping);
    if missing.is_empty() {
        writer.set_mapping(mapping);
        return Ok(false);
    }
    writer.commit()?;
    writer.reopen(|directory| {
        add_field_norms(directory, &missing)?;
        append_to_schema(directory, &missing)
    })?;
    writer.set_mapping(mapping);
    Ok(true)
}

/// Appends entries to the schema of the newest commit.
fn append_to_schema(directory: &LazyDirectory, missing: &[FieldEntry]) -> Result<(), IndexError> {
    edit_commit(directory, |meta| {
        let schema = meta["schema"]
            .as_array_mut()
            .ok_or_else(|| corrupt("the schema is not a list of fields".to_owned()))?;
        for entry in missing {
            schema.push(serde_json::to_value(entry).map_err(|error| corrupt(error.to_string()))?);
        }
        Ok(())
    })
}

/// Rewrites the newest commit as `edit` leaves it. No tantivy writer may exist meanwhile.
pub(crate) fn edit_commit(
    directory: &LazyDirectory,
    edit: impl FnOnce(&mut serde_json::Value) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let bytes = directory.read_meta().map_err(TantivyError::from)?;
    let mut meta = serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
    edit(&mut meta)?;
    let bytes = serde_json::to_vec(&meta).map_err(|error| corrupt(error.to_string()))?;
    directory.write_meta(&bytes).map_err(IndexError::io(META))
}

fn corrupt(reason: String) -> IndexError {
    IndexError::Corrupt { path: META.into(), reason }
}

/// Rewrites the field norms of every segment, with zeros for new fields that have norms.
fn add_field_norms(directory: &LazyDirectory, missing: &[FieldEntry]) -> Result<(), IndexError> {
    let index = Index::open(directory.clone())?;
    let old_fields = index.schema().num_fields() as u32;
    let with_norms: Vec<Field> = (old_fields..)
        .zip(missing)
        .filter(|(_, entry)| entry.is_indexed() && entry.has_fieldnorms())
        .map(|(id, _)| Field::from_field_id(id))
        .collect();
    if with_norms.is_empty() {
        return Ok(());
    }
    let mut replacements = Vec::new();
    for segment in index.searchable_segments()? {
        let target = segment.relative_path(SegmentComponent::FieldNorms);
        let replacement = PathBuf::from(format!("{}.new", target.display()));
        let max_doc = segment.meta().max_doc();
        let file = segment.open_read(SegmentComponent::FieldNorms).map_err(TantivyError::from)?;
        let old = FieldNormReaders::open(file)?;
        let out = index.directory().open_write(&replacement).map_err(TantivyError::from)?;
        let mut out = FieldNormsSerializer::from_write(out).map_err(IndexError::io(&replacement))?;
        for field in (0..old_fields).map(Field::from_field_id) {
            if let Some(norms) = old.get_field(field)? {
                let ids: Vec<u8> = (0..max_doc).map(|doc| norms.fieldnorm_id(doc)).collect();
                out.serialize_field(field, &ids).map_err(IndexError::io(&replacement))?;
            }
        }
        for &field in &with_norms {
            out.serialize_field(field, &vec![0; max_doc as usize]).map_err(IndexError::io(&replacement))?;
        }
        out.close().map_err(IndexError::io(&replacement))?;
        replacements.push((replacement, target));
    }
    directory.replace(&replacements).map_err(IndexError::io(META))
}
