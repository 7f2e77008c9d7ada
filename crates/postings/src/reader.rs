//! Reading one sparse field of one segment.

use std::ops::{Deref, Range};

use sparrow_runtime::{DocId, TermId};

use crate::bytes::{slice, u64_at};
use crate::dictionary::Dictionary;
use crate::error::PostingsError;
use crate::frame::{Footer, Format, HEADER_BYTES, check_crc};
use crate::kernels;
use crate::layout::CODES;
use crate::record::{Kind, Record, Shape};
use crate::resolved::ResolvedTerm;
use crate::term::Postings;

/// One sparse field of one segment over borrowed or shared bytes. Cheap to clone when `B` is.
#[derive(Clone)]
pub struct PostingsReader<B> {
    bytes: B,
    footer: Footer,
    shape: Shape,
}

impl<B> PostingsReader<B>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    /// Opens a field. Checks magic, version, section bounds, the checksums of footer and
    /// directory, every token and every term record: the cost depends on the vocabulary, not on
    /// the postings, whose checksum [`Self::verify`] checks. Damaged postings may give wrong
    /// documents and scores, never a panic or undefined behaviour.
    ///
    /// # Errors
    /// [`PostingsError`] when the bytes are not a sparse field of a known format.
    pub fn open(bytes: B) -> Result<Self, PostingsError> {
        let footer = Footer::decode(&bytes)?;
        let shape = Shape::new(footer.num_docs, footer.window);
        let reader = Self { bytes, footer, shape };
        reader.dictionary().check()?;
        let mut posting_count = 0;
        for term in 0..footer.term_count {
            match reader.record(term) {
                Some(record) if record.is_valid(&footer, &shape) => posting_count += u64::from(record.df),
                _ => return Err(PostingsError::InvalidTerm { term }),
            }
        }
        if posting_count != footer.posting_count {
            return Err(PostingsError::Invalid { section: "posting count" });
        }
        Ok(reader)
    }

    /// Checks the checksum of the postings, which reads all bytes.
    ///
    /// # Errors
    /// [`PostingsError::Checksum`] when they changed since they were written.
    pub fn verify(&self) -> Result<(), PostingsError> {
        check_crc(
            "postings",
            self.footer.postings_crc,
            slice(&self.bytes, 0, self.footer.presence as usize),
        )?;
        debug_assert!(self.footer.presence >= HEADER_BYTES as u64);
        Ok(())
    }

    /// Format version of the encoded field.
    pub fn format(&self) -> Format {
        self.footer.format
    }

    /// Number of documents in the segment, with or without the field.
    pub fn num_docs(&self) -> u32 {
        self.footer.num_docs
    }

    /// Number of documents with a value, even an empty one.
    pub fn docs_with_field(&self) -> u32 {
        self.footer.docs_with_field
    }

    /// Number of distinct tokens.
    pub fn term_count(&self) -> u32 {
        self.footer.term_count
    }

    /// Number of token-weight pairs in all documents.
    pub fn posting_count(&self) -> u64 {
        self.footer.posting_count
    }

    /// Size of the encoded field, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn window(&self) -> u32 {
        self.footer.window
    }

    fn dictionary(&self) -> Dictionary<'_> {
        let footer = &self.footer;
        let offsets = footer.token_offsets as usize;
        let text = footer.token_bytes as usize;
        Dictionary::new(
            slice(&self.bytes, offsets, text - offsets),
            slice(&self.bytes, text, footer.records as usize - text),
            footer.term_count,
        )
    }

    fn record(&self, term: TermId) -> Option<Record> {
        if term >= self.footer.term_count {
            return None;
        }
        let size = self.footer.format.record_bytes();
        let at = self.footer.records as usize + term as usize * size;
        Record::decode(slice(&self.bytes, at, size), self.footer.format)
    }

    /// Postings of a term; empty for an unknown term.
    pub(crate) fn postings(&self, term: TermId) -> Postings<'_> {
        let empty = Record { blob: HEADER_BYTES as u64, df: 0, escapes: 0, max: 1, kind: Kind::Plain };
        self.postings_of(&self.resolve(term).unwrap_or(ResolvedTerm { record: empty, codes: [0; CODES] }))
    }

    /// Prefetches the record of a term into the CPU cache.
    pub(crate) fn fetch_record(&self, term: TermId) {
        let size = self.footer.format.record_bytes();
        kernels::fetch(&self.bytes, self.footer.records as usize + term as usize * size);
    }

    /// Record of a term, or `None` if it is unknown or invalid. Validated on every call, because the bytes
    /// may have changed since `open`.
    pub(crate) fn checked_record(&self, term: TermId) -> Option<Record> {
        self.record(term).filter(|record| record.is_valid(&self.footer, &self.shape))
    }

    /// Prefetches the level codes of a dense term, which [`Self::resolve`] reads beside the record.
    pub(crate) fn fetch_codes(&self, record: &Record) {
        record.fetch_codes(&self.bytes, &self.shape);
    }

    /// Completes a validated record with its level codes.
    pub(crate) fn resolved(&self, record: Record) -> ResolvedTerm {
        ResolvedTerm { record, codes: record.codes(&self.bytes, &self.shape) }
    }

    /// Looks up and validates a term once, so that repeated searches need not; `None` for an unknown term.
    /// See [`SegmentSearch::terms`](crate::SegmentSearch::terms).
    pub fn resolve(&self, term: TermId) -> Option<ResolvedTerm> {
        self.checked_record(term).map(|record| self.resolved(record))
    }

    /// Prefetches the first bytes that a search of all documents reads of a term's postings.
    pub(crate) fn fetch_start(&self, record: &Record) {
        record.fetch_start(&self.bytes, &self.shape);
    }

    /// Postings of a term that was already looked up and validated.
    pub(crate) fn postings_of(&self, term: &ResolvedTerm) -> Postings<'_> {
        Postings::new(&self.bytes, &self.shape, term)
    }

    /// Id of a token in this segment.
    pub fn term(&self, token: &str) -> Option<TermId> {
        self.dictionary().term(token)
    }

    /// Token of a term; empty for an unknown one.
    pub fn token(&self, term: TermId) -> &str {
        self.dictionary().token(term)
    }

    /// Number of documents with a term, including deleted ones.
    pub fn doc_freq(&self, term: TermId) -> u32 {
        self.record(term).map_or(0, |record| record.df)
    }

    /// Whether a document has a value, be it empty.
    pub fn has_value(&self, doc: DocId) -> bool {
        doc < self.footer.num_docs
            && u64_at(&self.bytes, self.footer.presence as usize + doc as usize / 64 * 8) >> (doc % 64) & 1
                == 1
    }

    /// Weight of a term in a document, as stored.
    pub fn stored_weight(&self, term: TermId, doc: DocId) -> Option<f32> {
        if doc >= self.footer.num_docs {
            return None;
        }
        let postings = self.postings(term);
        postings.find(doc).map(|position| postings.weight_at(position))
    }

    /// Reads one document's vector back: terms ascending, appended to `out`. Costs a look-up per
    /// token of the dictionary (about a millisecond for 30,000); for many documents use
    /// [`Self::for_each_doc`].
    pub fn doc_tokens(&self, doc: DocId, out: &mut Vec<(TermId, f32)>) {
        if !self.has_value(doc) {
            return;
        }
        for term in 0..self.footer.term_count {
            let postings = self.postings(term);
            if let Some(position) = postings.find(doc) {
                out.push((term, postings.weight_at(position)));
            }
        }
    }

    /// Reads all vectors back: `each(document, terms ascending)`, documents with a value ascending.
    /// Transposes the postings a few thousand documents at a time.
    pub fn for_each_doc(&self, mut each: impl FnMut(DocId, &[(TermId, f32)])) {
        for start in (0..self.footer.num_docs).step_by(CHUNK as usize) {
            self.for_each_doc_in(start..self.footer.num_docs.min(start + CHUNK), &mut each);
        }
    }

    /// Same as [`Self::for_each_doc`], for a range of documents; holds their postings in memory.
    pub fn for_each_doc_in(&self, docs: Range<DocId>, each: &mut impl FnMut(DocId, &[(TermId, f32)])) {
        let end = docs.end.min(self.footer.num_docs);
        if docs.start >= end {
            return;
        }
        let mut lists: Vec<Vec<(TermId, f32)>> = vec![Vec::new(); (end - docs.start) as usize];
        for term in 0..self.footer.term_count {
            let postings = self.postings(term);
            postings.for_range(docs.start, end, |doc, position| {
                if let Some(list) = lists.get_mut((doc - docs.start) as usize) {
                    list.push((term, postings.weight_at(position)));
                }
            });
        }
        for (doc, list) in (docs.start..end).zip(&lists) {
            if self.has_value(doc) {
                each(doc, list);
            }
        }
    }

    /// Prepares scoring single documents, in any order, against the terms and weights of `query`.
    pub fn look_up(&self, query: &[(TermId, f32)]) -> LookUp<'_> {
        LookUp {
            num_docs: self.footer.num_docs,
            terms: query.iter().map(|(term, weight)| (self.postings(*term), *weight)).collect(),
        }
    }
}

/// Terms and weights of a query, to score documents that another search has found.
pub struct LookUp<'a> {
    num_docs: u32,
    terms: Vec<(Postings<'a>, f32)>,
}

impl LookUp<'_> {
    /// The dot product of a document, summed in query order; `None` if it shares no term.
    pub fn score(&self, doc: DocId) -> Option<f32> {
        if doc >= self.num_docs {
            return None;
        }
        let mut score = None;
        for (postings, weight) in &self.terms {
            if let Some(position) = postings.find(doc) {
                *score.get_or_insert(0.0) += weight * postings.weight_at(position);
            }
        }
        score
    }
}

/// Documents whose vectors are rebuilt per pass over the postings; their lists take a few megabytes.
const CHUNK: u32 = 4096;
