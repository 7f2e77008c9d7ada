//! A consistent, read-only view of an index: what a search sees.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use sparrow_runtime::attempt;
use sparrow_runtime::{SeqNo, TokenWeights};
use tantivy::schema::{IndexRecordOption, Value};
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, TERMINATED, TantivyDocument, TantivyError, Term};

use crate::open_document::OpenDocument;
use crate::query::{QueryError, SnapshotCache};
use crate::segment_snapshot::SegmentSnapshot;
use sparrow_analysis::{Analysis, Analyzer};
use sparrow_mapping::passages::{self, StoredParts};
use sparrow_mapping::{DEFAULT_ANALYZER, FieldType, Mapping};
use sparrow_query::Query;
use sparrow_segments::IndexError;
use sparrow_segments::doc_bits::contains;
use sparrow_segments::plugins::{DenseReader, SparseReader};
use sparrow_segments::schema::IndexSchema;

/// Location of a live document, with the sequence number and version of its last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocMeta {
    pub addr: DocAddress,
    pub seq_no: SeqNo,
    pub version: u64,
}

/// A document as stored. `source` is empty when the mapping disables `_source`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDoc {
    pub id: String,
    pub seq_no: SeqNo,
    pub version: u64,
    pub source: Vec<u8>,
    /// Encoded passages of the document ([`sparrow_mapping::passages::decode`]), if it has any.
    pub passages: Option<Vec<u8>>,
    /// The routing that the document was written with; none for an object.
    pub routing: Option<String>,
}

/// The newest snapshot of an index.
pub(crate) struct Newest(RwLock<Arc<Snapshot>>);

impl Newest {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self(RwLock::new(Arc::new(snapshot)))
    }

    pub(crate) fn get(&self) -> Arc<Snapshot> {
        self.0.read().clone()
    }

    /// Replaces the snapshot. Nobody waits while the files of the old one are unmapped.
    pub(crate) fn replace(&self, snapshot: Snapshot) {
        let old = std::mem::replace(&mut *self.0.write(), Arc::new(snapshot));
        drop(old);
    }
}

/// Id, source, encoded passages and routing of a document, as its segment stores them.
struct Stored {
    id: String,
    source: Vec<u8>,
    passages: Option<Vec<u8>>,
    routing: Option<String>,
}

/// A fixed list of segments, with the mapping and schema through which they are read.
pub struct Snapshot {
    searcher: Searcher,
    segments: Vec<SegmentSnapshot>,
    schema: Arc<IndexSchema>,
    mapping: Arc<Mapping>,
    mapping_epoch: u64,
    analysis: Arc<Analysis>,
    name: Arc<str>,
    cache: Arc<SnapshotCache>,
    /// Path of the nested field whose objects are the documents of this view; `None` for the documents themselves.
    pub(crate) scope: Option<Arc<str>>,
    /// Paths of the nested fields in whose objects those of this view were asked for, outermost first.
    pub(crate) outer: Vec<Arc<str>>,
    /// Whether only the objects in one document are visible.
    pub(crate) of_document: bool,
    /// The views inside this one that have been asked for, by the path of their nested field.
    pub(crate) inside: Mutex<FxHashMap<String, Arc<Snapshot>>>,
}

impl Snapshot {
    pub(crate) fn new(
        searcher: Searcher,
        segments: Vec<SegmentSnapshot>,
        schema: Arc<IndexSchema>,
        mapping: Arc<Mapping>,
        mapping_epoch: u64,
        analysis: Arc<Analysis>,
        name: Arc<str>,
    ) -> Self {
        debug_assert_eq!(searcher.segment_readers().len(), segments.len());
        Self {
            searcher,
            segments,
            schema,
            mapping,
            mapping_epoch,
            analysis,
            name,
            cache: Arc::default(),
            scope: None,
            outer: Vec::new(),
            of_document: false,
            inside: Mutex::default(),
        }
    }

    /// The same segments under a newer mapping (fields of the shared JSON fields were added).
    pub(crate) fn with_mapping(&self, mapping: Arc<Mapping>, mapping_epoch: u64) -> Self {
        Self {
            searcher: self.searcher.clone(),
            segments: self.segments.clone(),
            schema: self.schema.clone(),
            mapping,
            mapping_epoch,
            analysis: self.analysis.clone(),
            name: self.name.clone(),
            cache: self.cache.clone(),
            scope: self.scope.clone(),
            outer: self.outer.clone(),
            of_document: self.of_document,
            inside: Mutex::default(),
        }
    }

    /// The view of the objects of the nested field at `path` in these segments, asked for in this view.
    pub(crate) fn view(&self, segments: Vec<SegmentSnapshot>, path: &str) -> Self {
        let outer = self.outer.iter().cloned().chain(self.scope.clone()).collect();
        Self { scope: Some(path.into()), outer, ..self.with_live(segments) }
    }

    /// This snapshot over copies of its segments that differ in which documents are visible.
    pub(crate) fn with_live(&self, segments: Vec<SegmentSnapshot>) -> Self {
        Self { segments, ..self.with_mapping(self.mapping.clone(), self.mapping_epoch) }
    }

    /// The same segments, restricted to documents that match `filter`: nothing else can be found, counted or
    /// read through it.
    ///
    /// # Errors
    /// As [`Snapshot::search`].
    pub fn restricted(&self, filter: &Query) -> Result<Self, QueryError> {
        let mut restricted = self.with_mapping(self.mapping.clone(), self.mapping_epoch);
        for (segment, words) in restricted.segments.iter_mut().zip(self.matching(filter)?) {
            *segment = segment.restricted(words.into());
        }
        Ok(restricted)
    }

    /// Values that queries have already computed for these segments.
    pub(crate) fn cache(&self) -> &SnapshotCache {
        &self.cache
    }

    /// tantivy's searcher; its segment ordinals are those of [`Snapshot::segments`].
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    /// The tantivy fields of mapped fields.
    pub fn schema(&self) -> &IndexSchema {
        &self.schema
    }

    /// The mapping as of this snapshot.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// The analyzers that the index's mapping may name.
    pub fn analysis(&self) -> &Arc<Analysis> {
        &self.analysis
    }

    /// The analyzer for documents of the field: a text field's own, or a keyword's normalizer. `None` for
    /// fields without terms, and for keywords without a normalizer.
    pub fn index_analyzer(&self, path: &str) -> Option<Arc<Analyzer>> {
        match self.mapping.field(path)? {
            FieldType::Text { options } => self.analysis.analyzer(&options.analyzer),
            FieldType::Keyword { normalizer, .. } => self.analysis.normalizer(normalizer.as_deref()?),
            FieldType::Completion(field) => self.analysis.analyzer(&field.analyzer),
            _ => None,
        }
    }

    /// The analyzer for queries on the field, or for phrases if `quoted`; `None` as for
    /// [`Snapshot::index_analyzer`].
    pub fn search_analyzer(&self, path: &str, quoted: bool) -> Option<Arc<Analyzer>> {
        let FieldType::Text { options } = self.mapping.field(path)? else { return self.index_analyzer(path) };
        let named = options.search_quote_analyzer.as_ref().filter(|_| quoted);
        match named.or(options.search_analyzer.as_ref()) {
            Some(name) => self.analysis.analyzer(name),
            None if options.analyzer == DEFAULT_ANALYZER => self.analysis.default_search(),
            None => self.analysis.analyzer(&options.analyzer),
        }
    }

    /// A value in the form in which the field's terms are indexed: passed through a keyword's normalizer,
    /// unchanged otherwise.
    pub fn normalized<'a>(&self, path: &str, value: &'a str) -> Cow<'a, str> {
        let normalizer = match self.mapping.field(path) {
            Some(FieldType::Keyword { normalizer: Some(name), .. }) => self.analysis.normalizer(name),
            _ => None,
        };
        normalizer.map_or(Cow::Borrowed(value), |normalizer| Cow::Owned(normalizer.normalize(value)))
    }

    /// A number that identifies the mapping among all that have been in force in this process.
    pub(crate) fn mapping_epoch(&self) -> u64 {
        self.mapping_epoch
    }

    /// Sparrow's data for each segment, in segment order.
    pub fn segments(&self) -> &[SegmentSnapshot] {
        &self.segments
    }

    /// Postings of the sparse field at `path` in one segment.
    pub fn sparse_reader(&self, ord: u32, path: &str) -> Option<&SparseReader> {
        self.segment(ord).sparse(self.schema.sparse(&self.mapping.concrete(path))?)
    }

    /// Vectors of the dense field at `path` in one segment.
    pub fn vectors_reader(&self, ord: u32, path: &str) -> Option<&DenseReader> {
        self.segment(ord).dense(self.schema.dense(&self.mapping.concrete(path))?)
    }

    /// Sparrow's data for one segment.
    pub fn segment(&self, ord: u32) -> &SegmentSnapshot {
        &self.segments[ord as usize]
    }

    /// Name of the index.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of the segments: 32 hexadecimal digits each.
    pub fn segment_names(&self) -> impl Iterator<Item = String> + '_ {
        self.searcher.segment_readers().iter().map(|reader| reader.segment_id().uuid_string())
    }

    /// For each segment, the number of live documents, and of deleted ones that no merge has removed yet.
    pub fn segment_docs(&self) -> Vec<(u64, u64)> {
        let figures = |(segment, reader): (&SegmentSnapshot, &SegmentReader)| {
            (segment.num_docs(reader), u64::from(reader.num_deleted_docs()))
        };
        self.segments.iter().zip(self.searcher.segment_readers()).map(figures).collect()
    }

    /// Number of visible documents.
    pub fn num_docs(&self) -> u64 {
        let both = self.segments.iter().zip(self.searcher.segment_readers());
        both.map(|(segment, reader)| segment.num_docs(reader)).sum()
    }

    /// The highest sequence number of any document, including deleted ones that no merge has removed yet.
    pub fn max_seq_no(&self) -> Option<u64> {
        let with_documents = self.segments.iter().filter(|segment| segment.seq_no.num_docs() > 0);
        with_documents.map(|segment| segment.seq_no.max_value()).max()
    }

    /// Finds the live document with this `_id`.
    ///
    /// # Errors
    /// When the term dictionary cannot be read.
    pub fn lookup(&self, id: &str) -> Result<Option<DocMeta>, IndexError> {
        let term = Term::from_field_text(self.schema.id, id);
        for (ord, reader) in self.searcher.segment_readers().iter().enumerate() {
            let inverted = reader.inverted_index(self.schema.id)?;
            let Some(mut postings) = inverted
                .read_postings(&term, IndexRecordOption::Basic)
                .map_err(tantivy::TantivyError::from)?
            else {
                continue;
            };
            let segment = &self.segments[ord];
            let mut doc = postings.doc();
            while doc != TERMINATED {
                if segment.is_live(doc) {
                    return Ok(Some(DocMeta {
                        addr: DocAddress::new(ord as u32, doc),
                        seq_no: segment.seq_no(doc),
                        version: segment.version(doc),
                    }));
                }
                doc = postings.advance();
            }
        }
        Ok(None)
    }

    /// Reads a document's stored part: id, source and passages.
    ///
    /// # Errors
    /// When the document store cannot be read.
    pub fn fetch(&self, addr: DocAddress) -> Result<StoredDoc, IndexError> {
        self.fetch_within(addr, &mut None)
    }

    /// Like [`Snapshot::fetch`]; `open` keeps the document of an object for further objects of the same document. An object has no passages.
    ///
    /// # Errors
    /// As [`Snapshot::fetch`].
    pub fn fetch_within(
        &self,
        addr: DocAddress,
        open: &mut Option<OpenDocument>,
    ) -> Result<StoredDoc, IndexError> {
        let segment = self.segment(addr.segment_ord);
        let root = self.root_of(addr);
        let (seq_no, version) = (segment.seq_no(addr.doc_id), segment.version(addr.doc_id));
        if root == addr {
            let Stored { id, source, passages, routing } = self.stored(root)?;
            return Ok(StoredDoc { id, seq_no, version, source, passages, routing });
        }
        let at = (self.searcher.segment_reader(root.segment_ord).segment_id(), root.doc_id);
        let document = match open {
            Some(document) if document.is_at(at) => document,
            _ => {
                let Stored { id, source, .. } = self.stored(root)?;
                open.insert(OpenDocument::new(at, id, source))
            }
        };
        let source = document.object(self.place_of(addr));
        Ok(StoredDoc { id: document.id.clone(), seq_no, version, source, passages: None, routing: None })
    }

    /// Reads id, source, passages and routing of a document from its segment. `root` is not the address of an object of a `nested` field,
    /// which has none of its own.
    fn stored(&self, root: DocAddress) -> Result<Stored, IndexError> {
        let stored: TantivyDocument = match &self.segment(root.segment_ord).past_cache {
            Some(store) => store.get(root.doc_id)?,
            None => self.searcher.doc(root)?,
        };
        let id = stored.get_first(self.schema.id).and_then(|value| value.as_str().map(str::to_owned));
        let source = stored.get_first(self.schema.source);
        let source = source.as_ref().and_then(|value| value.as_bytes()).unwrap_or_default();
        if attempt::give_up_document(source.len()) {
            return Err(TantivyError::InternalError("the attempt was given up".to_owned()).into());
        }
        let mut source = source.to_vec();
        let StoredParts { json, passages, routing } = passages::split(&source);
        let (length, passages, routing) =
            (json.len(), passages.map(<[u8]>::to_vec), routing.map(str::to_owned));
        source.truncate(length);
        Ok(Stored { id: id.unwrap_or_default(), source, passages, routing })
    }

    /// Token weights of a document in a sparse field, read back from the postings.
    pub fn sparse_tokens(&self, addr: DocAddress, path: &str) -> Option<TokenWeights> {
        let field = self.schema.sparse(&self.mapping.concrete(path))?;
        let reader = self.segment(addr.segment_ord).sparse(field)?;
        if !reader.has_value(addr.doc_id) {
            return None;
        }
        let mut pairs = Vec::new();
        reader.doc_tokens(addr.doc_id, &mut pairs);
        Some(TokenWeights::from_pairs(
            pairs.into_iter().map(|(term, weight)| (reader.token(term).into(), weight)).collect(),
        ))
    }

    /// Vector of a document in a dense field.
    pub fn dense_vector(&self, addr: DocAddress, path: &str) -> Option<Vec<f32>> {
        let field = self.schema.dense(&self.mapping.concrete(path))?;
        let reader = self.segment(addr.segment_ord).dense(field)?;
        reader.vector(addr.doc_id)
    }

    /// Vectors of a document in a dense field, or of its passages in a `semantic_text` field.
    pub fn dense_vectors(&self, addr: DocAddress, path: &str) -> Vec<Vec<f32>> {
        let Some((slot, _)) = self.mapping.searched_slot(path) else {
            return self.dense_vector(addr, path).into_iter().collect();
        };
        let Some(field) = self.schema.passages(&slot) else { return Vec::new() };
        let segment = self.segment(addr.segment_ord);
        match (segment.plugins().passages(field), segment.dense(field)) {
            (Some(map), Some(vectors)) => {
                let passages = map.start(addr.doc_id)..map.start(addr.doc_id + 1);
                passages.filter_map(|passage| vectors.vector(passage)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The next `batch` live documents with a sequence number above `after`, in sequence order.
    ///
    /// `matching` holds one bitset per segment (`None`: every live document). Costs one pass over the
    /// sequence numbers; use [`Snapshot::scan_all`] when the whole list is wanted.
    pub fn scan_matching(
        &self,
        matching: Option<&[Vec<u64>]>,
        after: Option<SeqNo>,
        batch: usize,
    ) -> Vec<(SeqNo, DocAddress)> {
        let mut heap = std::collections::BinaryHeap::with_capacity(batch.min(1 << 16) + 1);
        if batch == 0 {
            return Vec::new();
        }
        self.for_each_match(matching, &mut |seq_no, addr| {
            if after.is_some_and(|after| seq_no <= after) {
                return;
            }
            if heap.len() < batch {
                heap.push((seq_no, addr));
            } else if heap.peek().is_some_and(|(largest, _)| seq_no < *largest) {
                heap.pop();
                heap.push((seq_no, addr));
            }
        });
        heap.into_sorted_vec()
    }

    /// All live documents that match, in sequence order; takes 16 bytes of memory per document.
    pub fn scan_all(&self, matching: Option<&[Vec<u64>]>) -> Vec<(SeqNo, DocAddress)> {
        let mut all = Vec::new();
        self.for_each_match(matching, &mut |seq_no, addr| all.push((seq_no, addr)));
        all.sort_unstable();
        all
    }

    fn for_each_match(&self, matching: Option<&[Vec<u64>]>, visit: &mut dyn FnMut(SeqNo, DocAddress)) {
        for (ord, reader) in self.searcher.segment_readers().iter().enumerate() {
            let segment = &self.segments[ord];
            for doc in 0..reader.max_doc() {
                let wanted =
                    matching.is_none_or(|sets| sets.get(ord).is_some_and(|words| contains(words, doc)));
                if wanted && segment.is_live(doc) {
                    visit(segment.seq_no(doc), DocAddress::new(ord as u32, doc));
                }
            }
        }
    }

    /// Calls `see` with the path of each field that a document of some segment has a value in, those that are deleted included.
    ///
    /// # Errors
    /// When a term dictionary cannot be read.
    pub fn each_field_name(&self, see: &mut dyn FnMut(&str)) -> Result<(), IndexError> {
        for reader in self.searcher.segment_readers() {
            let inverted = reader.inverted_index(self.schema.field_names)?;
            let mut names = inverted.terms().stream().map_err(TantivyError::from)?;
            while names.advance() {
                if let Ok(name) = std::str::from_utf8(names.key()) {
                    see(name);
                }
            }
        }
        Ok(())
    }

    /// Whether any visible document has a value in a field.
    ///
    /// # Errors
    /// When the term dictionary cannot be read.
    pub fn has_values(&self, path: &str) -> Result<bool, IndexError> {
        let term = Term::from_field_text(self.schema.field_names, &self.mapping.concrete(path));
        if let Some(nested) = self.mapping.nested_inside(self.scope(), path) {
            return self.inside(nested).has_values(path);
        }
        for (reader, segment) in self.searcher.segment_readers().iter().zip(&self.segments) {
            let inverted = reader.inverted_index(self.schema.field_names)?;
            let postings = inverted.read_postings(&term, IndexRecordOption::Basic);
            let Some(mut postings) = postings.map_err(TantivyError::from)? else { continue };
            while postings.doc() != TERMINATED {
                if segment.is_live(postings.doc()) {
                    return Ok(true);
                }
                postings.advance();
            }
        }
        Ok(false)
    }
}
