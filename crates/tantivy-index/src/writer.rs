//! The mutable part of an index: tantivy's writer and reader, commits and rollback.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sparrow_postings::Format;
use tantivy::index::SegmentId;
use tantivy::indexer::{IndexWriterOptions, UserOperation};
use tantivy::schema::OwnedValue;
use tantivy::{
    FutureResult, Index, IndexReader, IndexWriter, Opstamp, ReloadPolicy, SegmentMeta, SegmentReader,
    TantivyDocument, Term,
};

use crate::merge_policy::{Pauses, Tiers};
use crate::options::{IndexOptions, WriteDocument};
use crate::segment_snapshot::SegmentSnapshot;
use crate::snapshot::Snapshot;
use crate::values;
use sparrow_analysis::Analysis;
use sparrow_mapping::{DenseVector, FieldType, Mapping, NumberValue, ParsedDocument};
use sparrow_segments::IndexError;
use sparrow_segments::directory::LazyDirectory;
use sparrow_segments::filter_cache::SegmentFilters;
use sparrow_segments::nested::{self, NestedObjects};
use sparrow_segments::plugins::{
    InFlightLimiter, SegmentParts, SegmentPlugins, VectorSettings, encode_passages, encode_tokens,
    encode_vector,
};
use sparrow_segments::schema::{self, IndexSchema};

/// Smallest memory budget per indexing thread that tantivy accepts, in bytes.
const MIN_THREAD_BUDGET: usize = 15_000_000;
/// Largest memory budget per indexing thread, in bytes: even if the last document beyond it doubles every list of postings, addresses in a
/// buffer of terms fit 32 bits.
const MAX_THREAD_BUDGET: usize = 1_600_000_000;
/// Number of decompressed blocks of stored documents that are cached per segment, unless most documents fill one by themselves.
const STORE_CACHE_BLOCKS: usize = 64;

/// What a commit records besides its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    /// Sequence number up to which the commit contains every write.
    pub seq_no: Option<u64>,
    /// Format number of the sparse postings: 1 or 3.
    pub sparse_format: u8,
}

impl Payload {
    /// Decodes the payload of the commit of the index in `dir`.
    pub fn decode(dir: &Path, payload: Option<&str>) -> Result<Self, IndexError> {
        serde_json::from_str(payload.unwrap_or_default()).map_err(|error| IndexError::Corrupt {
            path: dir.join(sparrow_segments::manifest::META),
            reason: format!("commit payload: {error}"),
        })
    }

    /// The payload as JSON, as a commit stores it.
    pub fn encode(&self) -> Result<String, IndexError> {
        serde_json::to_string(self).map_err(|error| IndexError::Corrupt {
            path: sparrow_segments::manifest::META.into(),
            reason: error.to_string(),
        })
    }

    /// The postings format of that number; `None` if this build does not know it.
    pub fn format(self) -> Option<Format> {
        match self.sparse_format {
            1 => Some(Format::V1),
            3 => Some(Format::V3),
            _ => None,
        }
    }
}

/// The number that payloads use for a postings format.
pub(crate) fn format_number(format: Format) -> u8 {
    match format {
        Format::V1 => 1,
        Format::V3 => 3,
    }
}

/// All state behind the writer lock.
pub(crate) struct Writer {
    pub index: Index,
    pub directory: LazyDirectory,
    pub schema: Arc<IndexSchema>,
    mapping: Arc<Mapping>,
    /// Number of mappings that have been in force so far.
    mapping_epoch: u64,
    pub payload: Payload,
    pub limiter: Arc<InFlightLimiter>,
    vectors: Arc<VectorSettings>,
    indexer: Indexer,
    /// When the indexer was last used.
    used: Instant,
    reader: IndexReader,
    options: IndexOptions,
    /// Shared with the merge policy of each of tantivy's writers.
    pauses: Pauses,
    /// Whether there are writes that no commit contains yet.
    dirty: bool,
    published_generation: Option<u64>,
    /// Whether writing has ended because the directory is about to be reopened or removed.
    retired: bool,
    opened: FxHashMap<SegmentId, OpenedSegment>,
    live: FxHashMap<(SegmentId, Opstamp), Arc<[u64]>>,
}

/// The parts of a segment that stay open as long as it lives; deletions do not change them.
#[derive(Clone)]
struct OpenedSegment {
    plugins: Arc<SegmentPlugins>,
    filters: Arc<SegmentFilters>,
    nested: Option<Arc<NestedObjects>>,
}

/// tantivy's writer, which takes three threads, and three megabytes for its document queue alone.
enum Indexer {
    /// No writer, as nothing has been written for a while: the next write creates one.
    Resting,
    Ready(Box<IndexWriter>),
    /// No writer, after a failure: the next write reopens the index.
    Lost,
}

/// Registers the segment plugin, and what tantivy wants to be there.
pub(crate) fn prepare(
    index: &mut Index,
    format: Format,
    limiter: &Arc<InFlightLimiter>,
    vectors: &Arc<VectorSettings>,
) {
    index.set_tokenizers(schema::tokenizers(&index.schema()));
    index.register_plugin(Arc::new(SegmentParts {
        format,
        limiter: limiter.clone(),
        vectors: vectors.clone(),
    }));
}

fn open_reader(index: &Index) -> tantivy::Result<IndexReader> {
    index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .doc_store_cache_num_blocks(STORE_CACHE_BLOCKS)
        .try_into()
}

fn open_indexer(index: &Index, options: &IndexOptions, pauses: &Pauses) -> tantivy::Result<IndexWriter> {
    let threads = options.indexing_threads.max(1);
    let writer = index.writer_with_options(
        IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread(
                (options.memory_budget / threads).clamp(MIN_THREAD_BUDGET, MAX_THREAD_BUDGET),
            )
            .num_merge_threads(1)
            .build(),
    )?;
    writer.set_merge_policy(Tiers::new(options, pauses));
    pass_commit_stamp(&writer)?;
    Ok(writer)
}

/// Uses up the first operation stamp of a new tantivy writer, which is that of the last commit. A delete with
/// this stamp would count as applied already for segments whose deletions are as of that commit: a merge that
/// starts at that moment takes the delete queue as read from the first of its segments, and the document to
/// be deleted would stay in the others.
fn pass_commit_stamp(writer: &IndexWriter) -> tantivy::Result<()> {
    writer.run(std::iter::empty()).map(|_| ())
}

impl Writer {
    /// Opens the writer for a prepared index directory.
    pub fn open(
        mut index: Index,
        directory: LazyDirectory,
        schema: IndexSchema,
        mapping: Arc<Mapping>,
        payload: Payload,
        format: Format,
        options: IndexOptions,
    ) -> Result<Self, IndexError> {
        let limiter = Arc::new(InFlightLimiter::with(directory.merge_failures().clone()));
        let vectors = Arc::new(VectorSettings::new(&mapping, options.min_graph_vectors));
        prepare(&mut index, format, &limiter, &vectors);
        Ok(Self {
            reader: open_reader(&index)?,
            index,
            directory,
            schema: Arc::new(schema),
            mapping,
            mapping_epoch: 0,
            payload,
            limiter,
            vectors,
            indexer: Indexer::Resting,
            used: Instant::now(),
            options,
            pauses: Pauses::default(),
            dirty: false,
            published_generation: None,
            retired: false,
            opened: FxHashMap::default(),
            live: FxHashMap::default(),
        })
    }

    /// Puts a mapping in force whose fields are all in the schema already.
    pub fn set_mapping(&mut self, mapping: Arc<Mapping>) {
        self.vectors.set(&mapping);
        self.mapping = mapping;
        self.mapping_epoch += 1;
    }

    /// Layout of dense vectors in new segments.
    pub fn vector_settings(&self) -> &Arc<VectorSettings> {
        &self.vectors
    }

    /// Number of the mapping in force, counted from the first.
    pub fn mapping_epoch(&self) -> u64 {
        self.mapping_epoch
    }

    fn format(&self) -> Format {
        self.payload.format().unwrap_or(Format::V3)
    }

    /// Drops tantivy's writer, lets `change` modify the directory, and reopens everything over a new handle
    /// to it. Uncommitted writes are lost: commit first.
    pub fn reopen(
        &mut self,
        change: impl FnOnce(&LazyDirectory) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let successor = self.directory.successor()?;
        // Waits for the indexing threads; merges that still run fail on the retired directory.
        self.vectors.stop();
        self.indexer = Indexer::Lost;
        self.vectors = Arc::new(VectorSettings::new(&self.mapping, self.options.min_graph_vectors));
        self.directory = successor;
        self.dirty = false;
        self.limiter.reset();
        let changed = change(&self.directory);
        // A second successor, since tantivy caches mappings of files that `change` may have replaced.
        let directory = self.directory.successor()?;
        self.directory = directory.clone();
        let mut index = Index::open(directory)?;
        prepare(&mut index, self.format(), &self.limiter, &self.vectors);
        let reader = open_reader(&index)?;
        let schema = IndexSchema::from_schema(index.schema());
        self.schema = Arc::new(schema.ok_or_else(|| IndexError::Corrupt {
            path: sparrow_segments::manifest::META.into(),
            reason: "a reserved field is missing from the schema".to_owned(),
        })?);
        self.index = index;
        self.reader = reader;
        self.indexer = Indexer::Resting;
        self.published_generation = None;
        self.live.clear();
        changed
    }

    /// Stops writing for good: ends the indexing threads and keeps merges from touching the directory.
    pub fn retire(&mut self) {
        self.retired = true;
        self.directory.retire();
        self.vectors.stop();
        // Waits for the indexing threads, and gives back the lock on the folder.
        self.indexer = Indexer::Lost;
    }

    fn indexer(&mut self) -> Result<&mut IndexWriter, IndexError> {
        if self.retired {
            return Err(self.directory.poisoned());
        }
        self.used = Instant::now();
        if matches!(self.indexer, Indexer::Lost) {
            self.reopen(|_| Ok(()))?;
        }
        if matches!(self.indexer, Indexer::Resting) {
            self.indexer = Indexer::Ready(Box::new(open_indexer(&self.index, &self.options, &self.pauses)?));
        }
        match &mut self.indexer {
            Indexer::Ready(writer) => Ok(writer),
            Indexer::Resting | Indexer::Lost => Err(self.directory.poisoned()),
        }
    }

    /// Whether threads and memory are held for writing although everything is committed, and for `time`
    /// nothing was requested and no merge ran.
    pub fn is_idle(&self, time: Duration) -> bool {
        matches!(self.indexer, Indexer::Ready(_))
            && !self.dirty
            && self.used.elapsed() >= time
            && self.directory.is_quiet(time)
    }

    /// Releases the threads and the memory that only writing needs; the next write gets them again. Waits for
    /// merges, without which files could be removed that the newest commit names.
    pub fn rest(&mut self) -> Result<(), IndexError> {
        match std::mem::replace(&mut self.indexer, Indexer::Resting) {
            Indexer::Ready(writer) => Ok(writer.wait_merging_threads()?),
            other => {
                self.indexer = other;
                Ok(())
            }
        }
    }

    /// What is needed to build documents: the schema, mapping and analyzers in force.
    pub fn form(&self) -> Form {
        Form {
            schema: self.schema.clone(),
            mapping: self.mapping.clone(),
            analysis: self.options.analysis.clone(),
        }
    }

    /// Buffers a built document; an older document with the same id is deleted if there may be one.
    pub fn add(&mut self, built: BuiltDocument) -> Result<(), IndexError> {
        let BuiltDocument { document, mut nested, replaces, size, .. } = built;
        let limiter = self.limiter.clone();
        let writer = self.indexer()?;
        if let Some(term) = replaces {
            writer.delete_term(term);
        }
        // Before the document is sent, as an indexing thread may take it at once.
        limiter.sent_together(size, nested.len() + 1);
        let added = match nested.is_empty() {
            true => writer.add_document(document),
            // Documents that are added together get into the same segment, one after the other.
            false => {
                nested.push(document);
                writer.run(nested.into_iter().map(UserOperation::Add))
            }
        };
        self.dirty = true;
        added.map(|_| ()).map_err(|error| self.lost(error))
    }

    /// Buffers the deletion of a document by its id.
    pub fn delete(&mut self, id: &str) -> Result<(), IndexError> {
        let term = Term::from_field_text(self.schema.id, id);
        self.indexer()?.delete_term(term);
        self.dirty = true;
        Ok(())
    }

    /// Commits what is buffered, in memory. On failure everything buffered is rolled back.
    pub fn commit(&mut self) -> Result<(), IndexError> {
        self.commit_as(self.payload)
    }

    /// As [`Writer::commit`], even if nothing is buffered.
    pub fn commit_again(&mut self) -> Result<(), IndexError> {
        self.dirty = true;
        self.commit()
    }

    /// As [`Writer::commit`], with `payload` recorded in the commit; it takes effect only if the commit
    /// succeeds.
    pub fn commit_as(&mut self, payload: Payload) -> Result<(), IndexError> {
        if !self.dirty && payload == self.payload {
            return Ok(());
        }
        let encoded = payload.encode()?;
        let committed = self.indexer()?.prepare_commit().and_then(|mut prepared| {
            // A plain `commit` would erase the payload.
            prepared.set_payload(&encoded);
            prepared.commit()
        });
        match committed {
            Ok(_) => {
                self.payload = payload;
                self.dirty = false;
                self.limiter.reset();
                // Of something else, which is over.
                self.directory.take_refusal();
                Ok(())
            }
            Err(error) => Err(self.lost(error)),
        }
    }

    /// Discards everything buffered since the last commit.
    pub fn rollback(&mut self) -> Result<(), IndexError> {
        self.dirty = false;
        let result = match &mut self.indexer {
            Indexer::Ready(writer) => writer.rollback(),
            Indexer::Resting => return Ok(()),
            Indexer::Lost => return self.reopen(|_| Ok(())),
        };
        self.limiter.reset();
        if result.is_err() {
            // tantivy's writer is half taken apart now, its directory lock included.
            return self.reopen(|_| Ok(()));
        }
        // Rolling back made a new tantivy writer, with the default merge policy.
        if let Indexer::Ready(writer) = &self.indexer {
            writer.set_merge_policy(Tiers::new(&self.options, &self.pauses));
            pass_commit_stamp(writer)?;
        }
        Ok(())
    }

    /// Recovers from an error of tantivy's writer: some buffered documents are lost although adding them
    /// succeeded.
    fn lost(&mut self, source: tantivy::TantivyError) -> IndexError {
        if let Err(error) = self.rollback() {
            tracing::error!(%error, "rollback failed; the index is reopened at the next write");
            self.indexer = Indexer::Lost;
        }
        // Of a thread that ended tantivy says no more than that; the directory knows what the disk said.
        let source = match self.directory.take_refusal() {
            Some((path, source)) => IndexError::Io { path, source }.into(),
            None => source.into(),
        };
        IndexError::RolledBack { replay_after: self.payload.seq_no, source }
    }

    /// Whether the newest commit or merge is not yet part of the published snapshot.
    pub fn needs_publishing(&self) -> bool {
        self.published_generation != Some(self.directory.generation())
    }

    /// Opens a searcher over the newest commit.
    pub fn publish(&mut self) -> Result<Snapshot, IndexError> {
        let generation = self.directory.generation();
        // A segment reader does not open plugin files, and after a merge the file of a segment may go
        // before we opened it: keep the segments known to the garbage collection, and its files.
        let _segments = self.index.searchable_segment_metas()?;
        let _files = self.directory.hold_files();
        self.reader.reload()?;
        let searcher = self.reader.searcher();
        let mut all_opened = FxHashMap::default();
        let mut live = FxHashMap::default();
        let mut segments = Vec::with_capacity(searcher.segment_readers().len());
        for reader in searcher.segment_readers() {
            let id = reader.segment_id();
            let opened = match self.opened.get(&id) {
                Some(opened) => opened.clone(),
                None => OpenedSegment {
                    plugins: Arc::new(SegmentPlugins::open(reader)?),
                    filters: self.options.filter_cache.segment(),
                    nested: NestedObjects::open(reader, self.schema.field_names)?.map(Arc::new),
                },
            };
            all_opened.insert(id, opened.clone());
            let roots = opened.nested.as_ref().map(|nested| nested.roots());
            let words = reader.delete_opstamp().and_then(|opstamp| {
                let words = match self.live.get(&(id, opstamp)) {
                    Some(words) => words.clone(),
                    None => live_words(reader, roots)?,
                };
                live.insert((id, opstamp), words.clone());
                Some(words)
            });
            let words = words.or_else(|| roots.cloned());
            let OpenedSegment { plugins, filters, nested } = opened;
            segments.push(SegmentSnapshot::open(reader, plugins, filters, words, nested)?);
        }
        self.opened = all_opened;
        self.live = live;
        self.published_generation = Some(generation);
        Ok(Snapshot::new(
            searcher,
            segments,
            self.schema.clone(),
            self.mapping.clone(),
            self.mapping_epoch,
            self.options.analysis.clone(),
            self.options.name.clone(),
        ))
    }

    /// Starts to merge the committed segments into one, except those that have at most `left_out_up_to` documents (0: all are merged);
    /// `None` when there is nothing to merge.
    pub fn start_merge(&mut self, left_out_up_to: u32) -> Result<Option<StartedMerge>, IndexError> {
        let mut metas = self.index.searchable_segment_metas()?;
        metas.retain(|meta| left_out_up_to == 0 || meta.num_docs() > left_out_up_to);
        let is_merged = match &metas[..] {
            [] => true,
            [only] => only.num_deleted_docs() == 0 && !self.lacks_graph(&only.id()),
            _ => false,
        };
        if is_merged {
            return Ok(None);
        }
        let ids: Vec<SegmentId> = metas.iter().map(SegmentMeta::id).collect();
        let documents = metas.iter().map(|meta| (meta.id(), meta.num_docs())).collect();
        Ok(Some(StartedMerge { documents, end: self.indexer()?.merge(&ids) }))
    }

    /// Number of documents of the largest of these segments that no longer exist; 0 if all exist.
    pub fn largest_gone(&self, documents: &[(SegmentId, u32)]) -> Result<u32, IndexError> {
        let there = self.index.searchable_segment_ids()?;
        Ok(documents.iter().filter(|(id, _)| !there.contains(id)).map(|(_, count)| *count).max().unwrap_or(0))
    }

    /// What keeps background merges from beginning.
    pub fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// Whether a merge would build a graph over vectors of a published segment that has none.
    pub fn lacks_graphs(&self) -> bool {
        self.opened.keys().any(|id| self.lacks_graph(id))
    }

    fn lacks_graph(&self, id: &SegmentId) -> bool {
        let lacks = |plugins: &SegmentPlugins| self.vectors.lacks_graph(&self.schema.schema, plugins);
        self.opened.get(id).is_some_and(|opened| lacks(&opened.plugins))
    }
}

/// A merge that has begun.
pub(crate) struct StartedMerge {
    /// The segments that it merges, and the documents that they had when it began, without deleted ones.
    pub documents: Vec<(SegmentId, u32)>,
    pub end: FutureResult<Option<SegmentMeta>>,
}

/// What documents are built with: the schema, mapping and analyzers in force.
pub(crate) struct Form {
    schema: Arc<IndexSchema>,
    mapping: Arc<Mapping>,
    analysis: Arc<Analysis>,
}

impl Form {
    /// Converts a document to the form in which segments take it.
    pub fn build(&self, mut document: WriteDocument) -> Result<BuiltDocument, IndexError> {
        let replaces = document.replaces.then(|| Term::from_field_text(self.schema.id, &document.id));
        let mut parsed = std::mem::take(&mut document.parsed);
        // A replay and a repair have inverted nothing ahead. What an older version took has to be indexed as far as it goes.
        if let Some(field) = values::invert_texts(&self.mapping, &self.analysis, &mut parsed) {
            tracing::warn!(
                id = document.id,
                field,
                "the last terms of a document are not indexed: they are too many"
            );
        }
        let of_terms =
            |parsed: &ParsedDocument| parsed.inverted.iter().map(|(_, terms)| terms.len()).sum::<usize>();
        let objects = std::mem::take(&mut parsed.nested);
        let terms = of_terms(&parsed) + objects.iter().map(|(_, object)| of_terms(object)).sum::<usize>();
        let size = document.source.len() * 2 + terms + 1024 * (1 + objects.len());
        let mut nested = Vec::with_capacity(objects.len());
        for (path, mut object) in objects {
            let term = nested::object_term(&path);
            object.field_names.push(term.clone());
            nested.push(self.document(&document, term.as_bytes(), object)?);
        }
        let stored = parsed.stored_source.take();
        let built = self.document(&document, stored.as_ref().unwrap_or(&document.source), parsed)?;
        let WriteDocument { id, source, .. } = document;
        Ok(BuiltDocument { id, source, document: built, nested, replaces, size })
    }

    /// The document itself with its source, or an object of it, without.
    fn document(
        &self,
        document: &WriteDocument,
        source: &[u8],
        parsed: ParsedDocument,
    ) -> Result<TantivyDocument, IndexError> {
        let Self { schema, mapping, analysis } = self;
        let unknown = |path: &str| IndexError::UnknownField { field: path.to_owned() };
        if let Some((path, _)) = parsed.texts.first() {
            return Err(unknown(path));
        }
        let mut out = TantivyDocument::with_capacity(bytes_of(document, source, &parsed));
        out.add_text(schema.id, &document.id);
        out.add_u64(schema.seq_no, document.seq_no);
        out.add_u64(schema.version, document.version);
        if !source.is_empty() {
            out.add_bytes(schema.source, source);
        }
        for name in &parsed.field_names {
            out.add_text(schema.field_names, name);
        }
        for (path, text) in &parsed.inverted {
            out.add_custom(schema.text(path).ok_or_else(|| unknown(path))?, text);
        }
        let keywords = values::keywords(mapping, analysis, parsed.keywords);
        if !keywords.is_empty() {
            out.add_object(schema.keywords, keywords);
        }
        let mut numbers = BTreeMap::new();
        for (path, number) in parsed.numbers {
            let value = match number {
                NumberValue::I64(value) => OwnedValue::I64(value),
                NumberValue::U64(value) => OwnedValue::U64(value),
                NumberValue::F64(value) => OwnedValue::F64(value),
                NumberValue::Bool(value) => OwnedValue::Bool(value),
            };
            values::push_value(&mut numbers, path, value);
        }
        if !numbers.is_empty() {
            out.add_object(schema.numbers, numbers);
        }
        for (path, tokens) in &parsed.sparse {
            let field = schema.sparse(path).ok_or_else(|| unknown(path))?;
            out.add_custom(field, &encode_tokens(tokens));
        }
        for (path, chunks) in &parsed.passages {
            let field = schema.passages(path).ok_or_else(|| unknown(path))?;
            let dense = mapping.slot(path).and_then(|semantic| semantic.dense.as_ref());
            let metric =
                |dims| dense.map_or_else(|| DenseVector::default().metric(dims), |dense| dense.metric(dims));
            out.add_custom(field, &encode_passages(chunks, metric));
        }
        for (path, vector) in &parsed.dense {
            let field = schema.dense(path).ok_or_else(|| unknown(path))?;
            let Some(FieldType::DenseVector(dense)) = mapping.field(path) else {
                return Err(unknown(path));
            };
            out.add_custom(field, &encode_vector(dense.metric(dense.dims_of(vector.len())), vector));
        }
        Ok(out)
    }
}

/// A document in the form in which segments take it.
pub struct BuiltDocument {
    /// The document's `_id`, which the caller wants back: adding the document does not need it.
    pub id: String,
    /// The source as it was sent, for the caller too.
    pub source: Vec<u8>,
    document: TantivyDocument,
    /// The objects of its nested fields, in the order in which they are stored before it.
    nested: Vec<TantivyDocument>,
    /// Term of the `_id` whose older document is to be deleted, if one may exist.
    replaces: Option<Term>,
    /// Estimated size in the write buffer, in bytes.
    size: usize,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.vectors.stop();
    }
}

/// Bitmap of live documents, of those in `roots` if it is there: bit `doc % 64` of word `doc / 64`. `None` if none are deleted.
fn live_words(reader: &SegmentReader, roots: Option<&Arc<[u64]>>) -> Option<Arc<[u64]>> {
    let alive = reader.alive_bitset()?;
    let mut words = vec![0u64; (reader.max_doc() as usize).div_ceil(64)];
    for doc in alive.iter_alive() {
        words[doc as usize / 64] |= 1 << (doc % 64);
    }
    for (word, roots) in words.iter_mut().zip(roots.into_iter().flat_map(|roots| roots.iter())) {
        *word &= roots;
    }
    Some(words.into())
}

/// Estimated bytes of the values of a document for tantivy, so that they rarely have to be moved as it grows.
fn bytes_of(document: &WriteDocument, source: &[u8], parsed: &ParsedDocument) -> usize {
    // The length of a value before it, or a number.
    const HEAD: usize = 8;
    let texts = parsed.inverted.iter().map(|(_, terms)| HEAD + terms.len());
    let names = parsed.field_names.iter().map(|name| HEAD + name.len());
    let keywords = parsed.keywords.iter().map(|(path, value)| 4 * HEAD + path.len() + value.len());
    let numbers = parsed.numbers.iter().map(|(path, _)| 4 * HEAD + path.len());
    let sizes = texts.chain(names).chain(keywords).chain(numbers);
    5 * HEAD + document.id.len() + source.len() + sizes.sum::<usize>()
}
