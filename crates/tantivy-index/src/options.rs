//! The options that an index is opened with, and the documents that are written to it.

use std::sync::Arc;

use sparrow_analysis::Analysis;
use sparrow_mapping::ParsedDocument;
use sparrow_postings::Format;
use sparrow_segments::plugins;

use sparrow_segments::filter_cache::FilterCache;

/// How an index uses memory and threads, and what it shares with other indices.
#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// Memory for buffered documents over all indexing threads, in bytes; when it is full a segment is
    /// written. At least 15 MB per thread.
    pub memory_budget: usize,
    /// Number of indexing threads. More threads index faster, but the order of documents inside segments then
    /// varies.
    pub indexing_threads: usize,
    /// Layout of sparse postings in a **new** index; an opened one keeps its own.
    pub sparse_format: Format,
    /// Highest number of documents of a segment that still takes part in merges. A merge holds the postings
    /// of one sparse field in memory.
    pub max_docs_before_merge: usize,
    /// Number of vectors from which a merged segment gets an HNSW graph, where the mapping asks for one.
    pub min_graph_vectors: usize,
    /// Cache of filter results. Clones of these options share it.
    pub filter_cache: Arc<FilterCache>,
    /// The analyzers that the index's mapping may name. They must be the same each time it is opened.
    pub analysis: Arc<Analysis>,
    /// Name of the index, with which clauses on `_index` are compared.
    pub name: Arc<str>,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            memory_budget: 48_000_000,
            indexing_threads: 1,
            sparse_format: Format::V3,
            max_docs_before_merge: 250_000,
            min_graph_vectors: plugins::MIN_GRAPH_VECTORS,
            filter_cache: Arc::default(),
            analysis: Analysis::built_in(),
            name: "".into(),
        }
    }
}

/// A document to be written.
#[derive(Debug, Clone)]
pub struct WriteDocument {
    pub id: String,
    pub seq_no: u64,
    pub version: u64,
    pub parsed: ParsedDocument,
    /// Source of the document, exactly as it was sent; `parsed.stored_source` replaces it when the mapping
    /// filters `_source`.
    pub source: Vec<u8>,
    /// Whether an older document with this `_id` may exist and has to be deleted. Always set for a write
    /// replayed from the log.
    pub replaces: bool,
}
