//! One segment as of a snapshot: its data, and which of its documents are visible.

use std::sync::Arc;

use sparrow_runtime::{DocId, SeqNo};
use tantivy::columnar::Column;
use tantivy::schema::Field;
use tantivy::store::StoreReader;
use tantivy::{SegmentReader, TantivyError};

use sparrow_segments::IndexError;
use sparrow_segments::doc_bits::contains;
use sparrow_segments::filter_cache::SegmentFilters;
use sparrow_segments::nested::NestedObjects;
use sparrow_segments::plugins::{DenseGraph, DenseReader, SegmentPlugins, SparseReader};
use sparrow_segments::schema::{SEQ_NO, VERSION};

/// Sparrow's data for one segment, which queries use beside tantivy's own reader.
#[derive(Clone)]
pub struct SegmentSnapshot {
    plugins: Arc<SegmentPlugins>,
    filters: Arc<SegmentFilters>,
    live: Option<Arc<[u64]>>,
    /// Visible documents of the index, also in a view that has only some of them, or the objects in them, as its own.
    of_index: Option<Arc<[u64]>>,
    /// Which documents are objects of nested fields; `None` for a segment without such objects.
    nested: Option<Arc<NestedObjects>>,
    pub(crate) seq_no: Column<u64>,
    version: Column<u64>,
    /// Reads stored documents past the cache of their blocks, where on average each of them fills one.
    pub(crate) past_cache: Option<Arc<StoreReader>>,
}

/// Bytes of a block of stored documents before a document that does not fit begins the next one, as tantivy has it by default.
const BLOCK_BYTES: u64 = 16 << 10;

impl SegmentSnapshot {
    pub(crate) fn open(
        reader: &SegmentReader,
        plugins: Arc<SegmentPlugins>,
        filters: Arc<SegmentFilters>,
        live: Option<Arc<[u64]>>,
        nested: Option<Arc<NestedObjects>>,
    ) -> Result<Self, IndexError> {
        let columns = reader.fast_fields();
        let stored = reader.get_store_reader(0).map_err(TantivyError::from)?;
        let bytes = stored.space_usage().data_usage().get_bytes();
        Ok(Self {
            plugins,
            filters,
            of_index: live.clone(),
            live,
            nested,
            seq_no: columns.u64(SEQ_NO)?,
            version: columns.u64(VERSION)?,
            past_cache: (bytes > BLOCK_BYTES * u64::from(reader.max_doc())).then(|| Arc::new(stored)),
        })
    }

    /// This segment in a view of the documents or objects of a bitmap.
    pub(crate) fn with_live(&self, live: Option<Arc<[u64]>>) -> Self {
        Self { live, ..self.clone() }
    }

    /// This segment in an index that has no documents but those of a bitmap.
    pub(crate) fn restricted(&self, live: Arc<[u64]>) -> Self {
        Self { of_index: Some(live.clone()), live: Some(live), ..self.clone() }
    }

    /// Visible documents of the index, whatever the view is of; `None` means all are.
    pub(crate) fn documents_of_index(&self) -> Option<&[u64]> {
        self.of_index.as_deref()
    }

    /// Which documents are objects of nested fields; `None` for a segment without such objects.
    pub(crate) fn nested(&self) -> Option<&Arc<NestedObjects>> {
        self.nested.as_ref()
    }

    /// Visible documents, for sharing.
    pub(crate) fn shared_live(&self) -> Option<&Arc<[u64]>> {
        self.live.as_ref()
    }

    /// Sparse postings of `field` (a field of [`IndexSchema::sparse`]); `None` if no document of the
    /// segment has a value.
    pub fn sparse(&self, field: Field) -> Option<&SparseReader> {
        self.plugins.sparse(field)
    }

    /// Dense vectors of `field`; `None` if no document of the segment has a value.
    pub fn dense(&self, field: Field) -> Option<&DenseReader> {
        self.plugins.dense(field)
    }

    /// Graphs over the dense vectors of `field`; `None` where there are too few for them.
    pub fn graph(&self, field: Field) -> Option<&DenseGraph> {
        self.plugins.graph(field)
    }

    /// Visible documents, bit `doc % 64` of word `doc / 64`; `None` means all are.
    pub fn live(&self) -> Option<&[u64]> {
        self.live.as_deref()
    }

    /// Number of visible documents.
    pub(crate) fn num_docs(&self, reader: &SegmentReader) -> u64 {
        match &self.live {
            None => u64::from(reader.max_doc()),
            Some(words) => words.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// Whether `doc` is visible.
    pub fn is_live(&self, doc: DocId) -> bool {
        self.live.as_deref().is_none_or(|words| contains(words, doc))
    }

    /// Sequence number of `doc`, which breaks ties between equal scores.
    pub fn seq_no(&self, doc: DocId) -> SeqNo {
        self.seq_no.first(doc).unwrap_or(SeqNo::MAX)
    }

    /// Version number of `doc`.
    pub fn version(&self, doc: DocId) -> u64 {
        self.version.first(doc).unwrap_or(1)
    }

    /// Cached filter results of the segment.
    pub(crate) fn filters(&self) -> &SegmentFilters {
        &self.filters
    }

    /// Cached filter results of the segment, for sharing with the weights of a query.
    pub(crate) fn shared_filters(&self) -> &Arc<SegmentFilters> {
        &self.filters
    }

    /// Sparrow's plugin readers of the segment, for sharing with the weights of a query, which must own what
    /// they read.
    pub(crate) fn shared_plugins(&self) -> &Arc<SegmentPlugins> {
        &self.plugins
    }

    /// Sparrow's plugin readers of the segment: sparse postings, dense vectors, graphs.
    pub fn plugins(&self) -> &SegmentPlugins {
        &self.plugins
    }
}
