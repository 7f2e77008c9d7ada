//! What an index is opened with and what is written to it.

use std::sync::Arc;

use sparrow_analysis::Analysis;
use sparrow_mapping::ParsedDocument;
use sparrow_postings::Format;
use sparrow_segments::plugins;

use crate::filter_cache::FilterCache;

/// How an index uses the machine.
#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// Bytes buffered over all indexing threads before a segment is written. At least 15 MB a thread.
    pub memory_budget: usize,
    /// Indexing threads. Several index faster, and then document order inside segments varies.
    pub indexing_threads: usize,
    /// Layout of sparse postings in a **new** index; an opened one keeps its own.
    pub sparse_format: Format,
    /// Segments of more documents are not merged any further. A merge holds the postings of one sparse
    /// field in memory.
    pub max_docs_before_merge: usize,
    /// Segments of a merge with at least so many vectors get an HNSW graph, where the mapping asks for one.
    pub min_graph_vectors: usize,
    /// Where searches keep what filters match. Clones of these options share it.
    pub filter_cache: Arc<FilterCache>,
    /// The analyzers that the index's mapping may name. They must be the same each time it is opened.
    pub analysis: Arc<Analysis>,
    /// What clauses on `_index` compare with.
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

/// A document to write.
#[derive(Debug, Clone)]
pub struct WriteDocument {
    pub id: String,
    pub seq_no: u64,
    pub version: u64,
    pub parsed: ParsedDocument,
    /// The JSON as it came; `parsed.stored_source` replaces it when the mapping filters `_source`.
    pub source: Vec<u8>,
    /// Whether a document with this `_id` may exist and has to go. A replayed write always says so.
    pub replaces: bool,
}
