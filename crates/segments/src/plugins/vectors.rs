//! Dense vectors in segments: their settings, and what is written of them, at first and in merges.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHashSet};
use sparrow_runtime::DocId;
use sparrow_vectors::{
    Element, GraphSource, MAX_BLOCK, MergeSource, VectorsBuilder, merge_vectors, write_graph,
};
use tantivy::directory::OwnedBytes;
use tantivy::schema::{Field, Schema};

use super::container::{ContainerWriter, DenseReader, PartKind};
use super::reader::SegmentPlugins;
use sparrow_mapping::{FieldType, Mapping, VectorOptions};

/// Number of vectors from which on a merged segment gets a graph, by default. Fewer are compared exactly in
/// less than 2 ms; see `docs/design/vectors/hnsw.md`.
pub const MIN_GRAPH_VECTORS: usize = 10_000;

/// Vector settings of the current mapping, by path.
#[derive(Debug)]
pub struct VectorSettings {
    options: RwLock<FxHashMap<String, VectorOptions>>,
    /// Slots of the mapping's `semantic_text` fields; merges drop the passages of all others.
    slots: RwLock<FxHashSet<String>>,
    min_graph_vectors: usize,
    /// Set to abort running merges when their result will not be used; building a graph can take minutes.
    stopped: AtomicBool,
}

impl VectorSettings {
    pub fn new(mapping: &Mapping, min_graph_vectors: usize) -> Self {
        let settings = Self {
            options: RwLock::default(),
            slots: RwLock::default(),
            min_graph_vectors,
            stopped: AtomicBool::new(false),
        };
        settings.set(mapping);
        settings
    }

    /// Adopts another mapping for segments that are written from now on.
    pub fn set(&self, mapping: &Mapping) {
        let options = mapping.leaf_fields().filter_map(|(path, field_type)| match field_type {
            FieldType::DenseVector(field) if !field.index => {
                Some((path.to_owned(), VectorOptions::stored_only()))
            }
            FieldType::DenseVector(field) => Some((path.to_owned(), field.options)),
            _ => None,
        });
        let of_slots = mapping
            .slots()
            .filter_map(|slot| Some((slot.name.into_owned(), slot.settings.dense.as_ref()?.options)));
        *self.options.write() = options.chain(of_slots).collect();
        *self.slots.write() = mapping.slots().map(|slot| slot.name.into_owned()).collect();
    }

    /// Aborts merges that are building graphs.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether merges were told to abort.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the mapping still has the slot of the schema field `p:<slot>`.
    pub(super) fn has_slot(&self, schema: &Schema, field: Field) -> bool {
        let name = schema.get_field_name(field);
        self.slots.read().contains(name.split_once(':').map_or(name, |(_, slot)| slot))
    }

    /// Vector options of the schema field `d:<path>`.
    fn of(&self, schema: &Schema, field: u32) -> VectorOptions {
        let name = schema.get_field_name(Field::from_field_id(field));
        let options = self.options.read();
        let path = name.split_once(':').map_or(name, |(_, path)| path);
        options.get(path).copied().unwrap_or_else(|| VectorOptions::default_for(Element::Float))
    }

    /// Whether a segment has enough vectors for a graph, but none: it was not merged since the mapping wants one.
    pub fn lacks_graph(&self, schema: &Schema, segment: &SegmentPlugins) -> bool {
        segment.dense_fields().any(|(field, vectors)| {
            let wanted = vectors.len() >= self.min_graph_vectors && self.of(schema, field).graph.is_some();
            wanted && segment.graph(Field::from_field_id(field)).is_none()
        })
    }

    /// Writes the vectors of a new segment. They get no graph: that is left to merges, so that a refresh is quick.
    pub(super) fn write(
        &self,
        schema: &Schema,
        builders: BTreeMap<u32, VectorsBuilder>,
        num_docs: u32,
        container: &mut ContainerWriter<impl Write>,
    ) -> io::Result<()> {
        for (field, builder) in builders {
            let codes = self.of(schema, field).codes();
            let bytes = builder.finish(num_docs, codes).map_err(io::Error::other)?;
            container.part(field, PartKind::Dense, &bytes)?;
        }
        Ok(())
    }

    /// Writes the surviving vectors of a field of several segments, with graphs if there are enough vectors.
    pub fn merge(
        &self,
        schema: &Schema,
        field: u32,
        sources: &[(&DenseReader, Arc<[DocId]>)],
        num_docs: u32,
        container: &mut ContainerWriter<impl Write>,
    ) -> io::Result<()> {
        if sources.is_empty() {
            return Ok(());
        }
        let options = self.of(schema, field);
        let merged: Vec<MergeSource<'_, OwnedBytes>> =
            sources.iter().map(|(reader, doc_map)| MergeSource { reader, doc_map }).collect();
        let mut count = 0;
        container.part_with(field, PartKind::Dense, &mut |out| {
            count = merge_vectors(&merged, num_docs, options.codes(), &self.stopped, out)?;
            Ok(())
        })?;
        let Some(graph) = options.graph.filter(|_| count >= self.min_graph_vectors) else { return Ok(()) };
        container.part_with(field, PartKind::Graph, &mut |out| {
            let sources: Vec<GraphSource<OwnedBytes>> = sources
                .iter()
                .map(|(reader, doc_map)| GraphSource {
                    reader: DenseReader::clone(reader),
                    doc_map: doc_map.clone(),
                })
                .collect();
            if write_graph(&sources, options.codes(), graph, MAX_BLOCK, &self.stopped, out)? {
                return Ok(());
            }
            Err(io::Error::new(io::ErrorKind::Interrupted, "the index is closing"))
        })
    }
}
