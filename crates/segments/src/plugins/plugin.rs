//! The tantivy segment plugin: builds, serializes and merges the container of a segment, and builds the postings of texts.
//!
//! A writer error makes tantivy drop the whole batch of buffered documents while later adds still say
//! Ok, so values are checked when a document is parsed and nothing here fails on data.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use sparrow_postings::{DROPPED, Format, MergeSource, PostingsBuilder, merge_postings};
use sparrow_runtime::{DocId, TokenIter, niceness};
use sparrow_vectors::VectorsError;
use tantivy::directory::{OwnedBytes, TerminatingWrite};
use tantivy::index::Segment;
use tantivy::indexer::doc_id_mapping::{DocIdMapping, MappingType};
use tantivy::plugin::{PluginMergeContext, PluginWriter, PluginWriterContext, SegmentPlugin};
use tantivy::schema::document::ErasedDocument;
use tantivy::schema::{Field, Schema, Value};
use tantivy::{SegmentReader, TantivyDocument, TantivyError};

use super::container::{ContainerWriter, PartKind};
use super::in_flight::InFlightLimiter;
use super::merges::{MergeFailures, on_indexing_thread};
use super::passages::{self, PassageBuilder};
use super::reader::SegmentPlugins;
use super::texts::TermBuffer;
use super::values::VectorFields;
use super::vectors::VectorSettings;
use crate::schema::{DENSE_TYPE, PASSAGES_TYPE, SPARSE_TYPE, custom_type};

/// The segment plugin; one per open index.
pub struct SegmentParts {
    /// Layout in which sparse postings are written.
    pub format: Format,
    pub limiter: Arc<InFlightLimiter>,
    pub vectors: Arc<VectorSettings>,
}

impl SegmentPlugin for SegmentParts {
    fn extensions(&self) -> &[&str] {
        &[super::EXTENSION]
    }

    fn create_writer(&self, _: &PluginWriterContext) -> tantivy::Result<Box<dyn PluginWriter>> {
        // tantivy starts the thread that indexes anew with each commit, from the one that commits.
        if on_indexing_thread() {
            niceness::step_behind_searches();
        }
        Ok(Box::new(PartsWriter {
            format: self.format,
            limiter: self.limiter.clone(),
            texts: TermBuffer::default(),
            sparse: BTreeMap::new(),
            dense: VectorFields::default(),
            passages: BTreeMap::new(),
            settings: self.vectors.clone(),
            num_docs: 0,
        }))
    }

    fn merge(&self, context: PluginMergeContext) -> tantivy::Result<()> {
        let segment = context.target_segment.id().uuid_string();
        let _panic = NotePanic { failures: &self.limiter.merges.failures, segment: &segment };
        let merged = self.merge_all(&context);
        match &merged {
            Ok(()) => self.limiter.merges.failures.mended(),
            Err(_) if self.vectors.is_stopped() => {}
            // What the disk refused the directory has noted.
            Err(
                TantivyError::IoError(_) | TantivyError::OpenReadError(_) | TantivyError::OpenWriteError(_),
            ) if self.limiter.merges.failures.last().is_some() => {}
            Err(error) => self.limiter.merges.failures.note(&segment, error),
        }
        merged
    }
}

/// Guard that records a failed merge if the merge panics.
struct NotePanic<'a> {
    failures: &'a MergeFailures,
    segment: &'a str,
}

impl Drop for NotePanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failures.note(self.segment, &"it panicked");
        }
    }
}

impl SegmentParts {
    fn merge_all(&self, context: &PluginMergeContext<'_>) -> tantivy::Result<()> {
        if matches!(context.doc_id_mapping.mapping_type(), MappingType::Shuffled) {
            // Only an index sort shuffles, and we never set one.
            return Err(TantivyError::InternalError("segments may not be shuffled".to_owned()));
        }
        let sources = context
            .readers
            .iter()
            .map(|reader| SegmentPlugins::open(reader).map_err(internal))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let maps = doc_maps(context.readers);
        let num_docs = context.readers.iter().map(SegmentReader::num_docs).sum();
        let bytes = sources.iter().map(SegmentPlugins::bytes).sum();
        let _merging = self.limiter.merges.begin(u64::from(num_docs), bytes);
        self.merge_parts(context, &sources, &maps, num_docs)
    }

    /// Writes the parts of all fields of merged segments.
    fn merge_parts(
        &self,
        context: &PluginMergeContext<'_>,
        sources: &[SegmentPlugins],
        maps: &[Arc<[DocId]>],
        num_docs: u32,
    ) -> tantivy::Result<()> {
        let file = context.target_segment.open_write(super::component())?;
        let mut container = ContainerWriter::new(file);
        for (field, entry) in context.schema.fields() {
            match custom_type(entry) {
                Some(SPARSE_TYPE) => {
                    let merged: Vec<MergeSource<'_, OwnedBytes>> = sources
                        .iter()
                        .zip(maps)
                        .filter_map(|(source, doc_map)| {
                            Some(MergeSource { reader: source.sparse(field)?, doc_map })
                        })
                        .collect();
                    if !merged.is_empty() {
                        container.part_with(field.field_id(), PartKind::Sparse, &mut |out| {
                            merge_postings(&merged, num_docs, self.format, out)
                        })?;
                    }
                }
                Some(DENSE_TYPE) => {
                    let merged: Vec<_> = sources
                        .iter()
                        .zip(maps)
                        .filter_map(|(source, doc_map)| Some((source.dense(field)?, doc_map.clone())))
                        .collect();
                    let schema = context.schema;
                    self.vectors.merge(schema, field.field_id(), &merged, num_docs, &mut container)?;
                }
                Some(PASSAGES_TYPE) => {
                    self.merge_passages(context.schema, field, sources, maps, num_docs, &mut container)?;
                }
                _ => {}
            }
        }
        container.finish()?.terminate()?;
        Ok(())
    }

    /// Merges the parts of a `semantic_text` field.
    fn merge_passages(
        &self,
        schema: &Schema,
        field: Field,
        sources: &[SegmentPlugins],
        doc_maps: &[Arc<[DocId]>],
        num_docs: u32,
        container: &mut ContainerWriter<impl Write>,
    ) -> io::Result<()> {
        let of_sources: Vec<_> = sources.iter().map(|source| source.passages(field)).collect();
        if of_sources.iter().all(Option::is_none) || !self.vectors.has_slot(schema, field) {
            return Ok(());
        }
        let merged = passages::merge(&of_sources, doc_maps, num_docs)?;
        let id = field.field_id();
        container.part(id, PartKind::Passages, &merged.bytes)?;
        let sparse: Vec<MergeSource<'_, OwnedBytes>> = sources
            .iter()
            .zip(&merged.maps)
            .filter_map(|(source, doc_map)| Some(MergeSource { reader: source.sparse(field)?, doc_map }))
            .collect();
        if !sparse.is_empty() {
            container.part_with(id, PartKind::Sparse, &mut |out| {
                merge_postings(&sparse, merged.count, self.format, out)
            })?;
        }
        let dense: Vec<_> = sources
            .iter()
            .zip(&merged.maps)
            .filter_map(|(source, map)| Some((source.dense(field)?, map.clone())))
            .collect();
        self.vectors.merge(schema, id, &dense, merged.count, container)
    }
}

/// New number of each document of each source.
///
/// tantivy keeps its own map private; without an index sort, live documents are numbered in reader order.
fn doc_maps(readers: &[SegmentReader]) -> Vec<Arc<[DocId]>> {
    let mut next: DocId = 0;
    readers
        .iter()
        .map(|reader| {
            let mut map = vec![DROPPED; reader.max_doc() as usize];
            for doc in reader.doc_ids_alive() {
                map[doc as usize] = next;
                next += 1;
            }
            map.into()
        })
        .collect()
}

fn vectors(error: VectorsError) -> TantivyError {
    TantivyError::InternalError(error.to_string())
}

fn internal(error: crate::error::IndexError) -> TantivyError {
    TantivyError::InternalError(error.to_string())
}

struct PartsWriter {
    format: Format,
    limiter: Arc<InFlightLimiter>,
    texts: TermBuffer,
    sparse: BTreeMap<u32, PostingsBuilder>,
    dense: VectorFields,
    passages: BTreeMap<u32, PassageBuilder>,
    settings: Arc<VectorSettings>,
    num_docs: DocId,
}

impl PluginWriter for PartsWriter {
    fn add_document(&mut self, doc_id: DocId, doc: &dyn ErasedDocument, _: &Schema) -> tantivy::Result<()> {
        self.limiter.taken();
        self.num_docs = doc_id + 1;
        let Some(doc) = doc.as_any().downcast_ref::<TantivyDocument>() else {
            return Err(TantivyError::InternalError("unexpected document type".to_owned()));
        };
        for (field, value) in doc.field_values() {
            let Some(bytes) = value.as_custom() else { continue };
            // The first byte tells the kind apart.
            match bytes.split_first() {
                Some((b't', text)) => self.texts.add(field.field_id(), doc_id, text),
                Some((b's', tokens)) => {
                    let builder = self.sparse.entry(field.field_id()).or_default();
                    builder.add(doc_id, TokenIter(tokens));
                }
                Some((b'p', chunks)) => {
                    let builder = self.passages.entry(field.field_id()).or_default();
                    builder.add(field.field_id(), doc_id, chunks).map_err(vectors)?;
                }
                Some((b'd', vector)) => {
                    self.dense.add(field.field_id(), doc_id, vector).map_err(vectors)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn serialize(
        self: Box<Self>,
        segment: &Segment,
        doc_id_map: Option<&DocIdMapping>,
    ) -> tantivy::Result<()> {
        if doc_id_map.is_some() {
            return Err(TantivyError::InternalError("segments may not be shuffled".to_owned()));
        }
        let this = *self;
        // tantivy has closed its own files by now.
        this.texts.write(segment, this.num_docs)?;
        let mut container = ContainerWriter::new(segment.open_write(super::component())?);
        for (field, builder) in this.sparse {
            let mut builder = Some(builder);
            container.part_with(field, PartKind::Sparse, &mut |out| match builder.take() {
                Some(builder) => builder.write_to(this.num_docs, this.format, out),
                None => Ok(()),
            })?;
        }
        let schema = segment.schema();
        this.settings.write(&schema, this.dense.builders, this.num_docs, &mut container)?;
        for (field, mut passages) in this.passages {
            container
                .part_with(field, PartKind::Passages, &mut |out| passages.write_map(this.num_docs, out))?;
            let count = passages.count();
            let mut sparse = passages.sparse.take();
            if sparse.is_some() {
                container.part_with(field, PartKind::Sparse, &mut |out| match sparse.take() {
                    Some(builder) => builder.write_to(count, this.format, out),
                    None => Ok(()),
                })?;
            }
            this.settings.write(&schema, passages.dense.builders, count, &mut container)?;
        }
        container.finish()?.terminate()?;
        Ok(())
    }

    fn mem_usage(&self) -> usize {
        self.texts.mem_usage()
            + self.sparse.values().map(PostingsBuilder::mem_usage).sum::<usize>()
            + self.dense.mem_usage()
            + self.passages.values().map(PassageBuilder::mem_usage).sum::<usize>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
