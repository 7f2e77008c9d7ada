//! Salvages a damaged index: builds a new one from the segments whose files are intact, and reads the stored
//! documents of the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use sparrow_file_system as fs;
use tantivy::TantivyDocument;
use tantivy::columnar::{Column, ColumnarReader, DynamicColumn};
use tantivy::directory::{FileSlice, OwnedBytes};
use tantivy::fastfield::AliveBitSet;
use tantivy::schema::{Schema, Value};
use tantivy::store::StoreReader;

use crate::error::IndexError;
use crate::manifest::META;
use crate::manifest::{Checksum, Manifest, segment_of};
use crate::nested::is_object;
use crate::schema::{IndexSchema, SEQ_NO, VERSION};
use crate::verify::CheckedCommit;

/// What could be saved of a damaged index.
#[derive(Debug, Default)]
pub struct SalvagedIndex {
    /// Number of live documents in intact segments, which are in the new index.
    pub kept: u64,
    /// Live documents of damaged segments whose stored documents are intact.
    pub documents: Vec<SalvagedDoc>,
    /// Number of live documents in damaged segments that cannot be read.
    pub lost: u64,
}

/// A stored document, with the payload of its passages appended to the source.
#[derive(Debug)]
pub struct SalvagedDoc {
    pub id: String,
    /// Sequence number and version; `None` where the file that they are in is damaged.
    pub numbers: Option<(u64, u64)>,
    pub source: Vec<u8>,
}

/// Creates in `to` an index of the segments in `from` whose files are all intact, and reads the stored
/// documents of the other segments. `from` stays as it is.
///
/// # Errors
/// When the commit of `from` cannot be read, or `to` cannot be written.
pub fn salvage(from: &Path, to: &Path) -> Result<SalvagedIndex, IndexError> {
    let missing = || IndexError::Corrupt { path: from.join(META), reason: "it is missing".to_owned() };
    let corrupt = |reason: String| IndexError::Corrupt { path: from.join(META), reason };
    let commit = CheckedCommit::read(from)?.ok_or_else(missing)?;
    let (sums, damages) = commit.check(from)?;
    let mut meta: Json =
        serde_json::from_slice(commit.meta_bytes()).map_err(|error| corrupt(error.to_string()))?;
    let schema: Schema =
        serde_json::from_value(meta["schema"].clone()).map_err(|error| corrupt(error.to_string()))?;
    let schema = IndexSchema::from_schema(schema)
        .ok_or_else(|| corrupt("a reserved field is missing from the schema".to_owned()))?;
    let is_whole = |segment: &str| {
        !damages.iter().any(|damage| segment_of(&damage.file).unwrap_or(&damage.file) == segment)
    };
    let mut salvaged = SalvagedIndex::default();
    let (mut kept, mut kept_names) = (Vec::new(), Vec::new());
    for segment in meta["segments"].as_array().into_iter().flatten() {
        let name = segment["segment_id"].as_str().unwrap_or_default().replace('-', "");
        let docs = segment["max_doc"].as_u64().unwrap_or_default();
        let live = docs.saturating_sub(segment["deletes"]["num_deleted_docs"].as_u64().unwrap_or_default());
        if is_whole(&name) {
            salvaged.kept += live;
            kept.push(segment.clone());
            kept_names.push(name);
            continue;
        }
        let deletions = segment["deletes"]["opstamp"].as_u64();
        let read = documents(from, &sums, &schema, &name, docs as u32, deletions);
        salvaged.lost += live.saturating_sub(read.len() as u64);
        // Objects of nested fields are made again from the sources of their documents.
        salvaged.documents.extend(read.into_iter().filter(|document| !is_object(&document.source)));
    }
    meta["segments"] = Json::Array(kept);
    fs::create_dir_all(to).map_err(IndexError::io(to))?;
    let mut copied: HashMap<PathBuf, Checksum> = HashMap::new();
    for (path, sum) in &sums {
        let segment = path.to_str().and_then(segment_of).unwrap_or_default();
        if kept_names.iter().any(|name| name == segment) {
            fs::copy(from.join(path), to.join(path)).map_err(IndexError::io(path))?;
            fs::sync_data(to.join(path)).map_err(IndexError::io(path))?;
            copied.insert(path.clone(), *sum);
        }
    }
    let bytes = serde_json::to_vec(&meta).map_err(|error| corrupt(error.to_string()))?;
    let manifest = Manifest {
        files: copied.iter().map(|(path, sum)| (path.display().to_string(), vec![*sum])).collect(),
    };
    let bytes = manifest.encode(&bytes).map_err(|error| corrupt(error.to_string()))?;
    fs::durable::atomic_write(&to.join(META), &bytes).map_err(IndexError::io(to))?;
    Ok(salvaged)
}

/// The live documents of a damaged segment. Empty if the files that hold them are damaged themselves, as
/// there is no telling which of their bytes are right.
fn documents(
    root: &Path,
    sums: &HashMap<PathBuf, Checksum>,
    schema: &IndexSchema,
    segment: &str,
    count: u32,
    deletions: Option<u64>,
) -> Vec<SalvagedDoc> {
    let body = |name: String| {
        sums.get(Path::new(&name))?;
        body(&root.join(name)).ok()
    };
    let alive = match deletions {
        None => None,
        Some(stamp) => match body(format!("{segment}.{stamp}.del")) {
            Some(bytes) => Some(AliveBitSet::open(OwnedBytes::new(bytes))),
            None => return Vec::new(),
        },
    };
    let Some(store) = body(format!("{segment}.store")) else { return Vec::new() };
    let Ok(store) = StoreReader::open(FileSlice::new(Arc::new(OwnedBytes::new(store))), 1) else {
        return Vec::new();
    };
    let columns = body(format!("{segment}.fast"))
        .and_then(|bytes| ColumnarReader::open(FileSlice::new(Arc::new(OwnedBytes::new(bytes)))).ok());
    let column = |name: &str| -> Option<Column<u64>> {
        match columns.as_ref()?.read_columns(name).ok()?.first()?.open().ok()? {
            DynamicColumn::U64(column) => Some(column),
            _ => None,
        }
    };
    let (seq_nos, versions) = (column(SEQ_NO), column(VERSION));
    (0..count)
        .filter(|doc| alive.as_ref().is_none_or(|alive| alive.is_alive(*doc)))
        .filter_map(|doc| {
            let document: TantivyDocument = store.get(doc).ok()?;
            Some(SalvagedDoc {
                id: document.get_first(schema.id)?.as_str()?.to_owned(),
                numbers: seq_nos
                    .as_ref()
                    .and_then(|column| column.first(doc))
                    .zip(versions.as_ref().and_then(|column| column.first(doc))),
                source: document.get_first(schema.source)?.as_bytes()?.to_vec(),
            })
        })
        .collect()
}

/// The content of a file without tantivy's footer.
fn body(path: &Path) -> Result<Vec<u8>, IndexError> {
    let mut bytes = fs::read(path).map_err(IndexError::io(path))?;
    let length = crate::verify::body_length(&bytes).ok_or_else(|| IndexError::Corrupt {
        path: path.to_path_buf(),
        reason: "it has no end".to_owned(),
    })?;
    bytes.truncate(length);
    Ok(bytes)
}
