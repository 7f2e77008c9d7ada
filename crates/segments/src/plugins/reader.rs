//! Opened parts of one segment.

use std::path::PathBuf;

use rustc_hash::FxHashMap;
use sparrow_postings::{Format, PostingsReader};
use sparrow_vectors::{GraphReader, VectorsError, VectorsReader};
use tantivy::SegmentReader;
use tantivy::directory::OwnedBytes;
use tantivy::schema::{Field, Schema};

use super::container::{DenseGraph, DenseReader, PartKind, SparseReader, read_parts};
use super::passages::PassageMap;
use super::term_ids::TermIds;
use crate::error::IndexError;

/// Readers of all sparse and dense fields of one segment.
#[derive(Default)]
pub struct SegmentPlugins {
    sparse: FxHashMap<u32, (SparseReader, TermIds)>,
    dense: FxHashMap<u32, DenseReader>,
    graphs: FxHashMap<u32, DenseGraph>,
    passages: FxHashMap<u32, PassageMap>,
    bytes: u64,
}

impl SegmentPlugins {
    /// Opens the container of a segment; headers and bounds are checked, full checksums only of
    /// graphs.
    pub fn open(reader: &SegmentReader) -> Result<Self, IndexError> {
        let file = reader.open_read(super::component()).map_err(tantivy::TantivyError::from)?;
        let segment = reader.segment_id().uuid_string();
        let path = PathBuf::from(format!("{segment}.{}", super::EXTENSION));
        let bytes = file.read_bytes().map_err(IndexError::io(&path))?;
        Self::from_bytes(bytes, reader.schema(), &segment)
    }

    /// Opens a container's bytes. `segment` names the segment in errors.
    pub fn from_bytes(bytes: OwnedBytes, schema: &Schema, segment: &str) -> Result<Self, IndexError> {
        let mut plugins = Self { bytes: bytes.len() as u64, ..Self::default() };
        let parts = read_parts(&bytes).map_err(|error| IndexError::Corrupt {
            path: format!("{segment}.{}", super::EXTENSION).into(),
            reason: error.to_string(),
        })?;
        for part in parts {
            let name = || {
                if (part.field as usize) < schema.num_fields() {
                    schema.get_field_name(Field::from_field_id(part.field)).to_owned()
                } else {
                    part.field.to_string()
                }
            };
            match part.kind {
                PartKind::Sparse => {
                    let reader = PostingsReader::open(part.bytes).map_err(|source| IndexError::Postings {
                        field: name(),
                        segment: segment.to_owned(),
                        source,
                    })?;
                    plugins.sparse.insert(part.field, (reader, TermIds::default()));
                }
                PartKind::Dense => {
                    let damaged = |source| vectors_error(name(), segment, source);
                    let reader = VectorsReader::open(part.bytes).map_err(damaged)?;
                    plugins.dense.insert(part.field, reader);
                }
                PartKind::Graph => {
                    let damaged = |source| vectors_error(name(), segment, source);
                    let graph = GraphReader::open(part.bytes).map_err(damaged)?;
                    // A graph follows its vectors.
                    let vectors = plugins.dense.get(&part.field).map_or(0, VectorsReader::len);
                    if graph.len() != vectors {
                        return Err(damaged(VectorsError::Corrupt { detail: "graph of other vectors" }));
                    }
                    plugins.graphs.insert(part.field, graph);
                }
                PartKind::Passages => {
                    let map = PassageMap::open(part.bytes).map_err(|reason| IndexError::Corrupt {
                        path: format!("{segment}.{}", super::EXTENSION).into(),
                        reason: format!("{reason} (field [{}])", name()),
                    })?;
                    plugins.passages.insert(part.field, map);
                }
            }
        }
        // A passage without a document could not be shown.
        for (field, map) in &plugins.passages {
            let sparse = plugins.sparse.get(field).map_or(0, |(reader, _)| reader.num_docs());
            let dense = plugins.dense.get(field).map_or(0, VectorsReader::num_docs);
            if sparse.max(dense) > map.count() {
                return Err(IndexError::Corrupt {
                    path: format!("{segment}.{}", super::EXTENSION).into(),
                    reason: "vectors of more passages than there are".to_owned(),
                });
            }
        }
        Ok(plugins)
    }

    /// Postings of a sparse field.
    pub fn sparse(&self, field: Field) -> Option<&SparseReader> {
        self.sparse.get(&field.field_id()).map(|(reader, _)| reader)
    }

    /// Postings of a sparse field, with its cache of token numbers.
    pub fn sparse_with_ids(&self, field: Field) -> Option<(&SparseReader, &TermIds)> {
        self.sparse.get(&field.field_id()).map(|(reader, ids)| (reader, ids))
    }

    /// Vectors of a dense field.
    pub fn dense(&self, field: Field) -> Option<&DenseReader> {
        self.dense.get(&field.field_id())
    }

    /// Numbers of the dense fields, with their vectors.
    pub(super) fn dense_fields(&self) -> impl Iterator<Item = (u32, &DenseReader)> {
        self.dense.iter().map(|(field, vectors)| (*field, vectors))
    }

    /// Graphs over the vectors of a dense field; `None` where there are too few vectors for them.
    pub fn graph(&self, field: Field) -> Option<&DenseGraph> {
        self.graphs.get(&field.field_id())
    }

    /// Map between the documents and passages of a `semantic_text` field, whose postings and vectors are
    /// numbered by passage.
    pub fn passages(&self, field: Field) -> Option<&PassageMap> {
        self.passages.get(&field.field_id())
    }

    /// Whether no dense vectors and graphs are of a format that an upgrade rewrites.
    pub fn vectors_are_current(&self) -> bool {
        self.dense.values().all(VectorsReader::is_current)
            && self.graphs.values().all(GraphReader::is_current)
    }

    /// Size of the container, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Formats of the sparse postings in this segment.
    pub fn formats(&self) -> impl Iterator<Item = Format> + '_ {
        self.sparse.values().map(|(reader, _)| reader.format())
    }
}

fn vectors_error(field: String, segment: &str, source: VectorsError) -> IndexError {
    IndexError::Vectors { field, segment: segment.to_owned(), source }
}
