//! Text fields prepared for word searches: their bytes in each segment, and the BM25 factors for frequencies and
//! lengths.

use std::sync::Arc;

use tantivy::directory::{CompositeFile, OwnedBytes};
use tantivy::error::DataCorruption;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{InvertedIndexReader, SegmentComponent};
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Searcher, SegmentReader, TantivyError, Term};

use crate::ROUNDING;
use crate::list::{Entry, PostingList};
use crate::positions::Positions;

/// BM25's k1, which controls how quickly further occurrences of a term count less; the same as in Elasticsearch and
/// tantivy.
pub const K1: f32 = 1.2;
/// BM25's b, which controls how much the length of a text counts (0 to 1); the same as in Elasticsearch and tantivy.
pub const B: f32 = 0.75;

/// Largest term frequency whose factors are kept in a table.
const SMALL: usize = 8;

/// A text field in all segments of a snapshot.
pub struct TextField {
    /// The field in each segment; `None` in those where no document has it.
    segments: Vec<Option<SegmentField>>,
    factors: Factors,
}

/// BM25 factors, which a term's weight is multiplied by, for each term frequency and length code. Scores equal
/// tantivy's bit for bit.
pub struct Factors {
    norms: [f32; 256],
    small: Box<[[f32; 256]; SMALL]>,
}

/// A text field in one segment.
pub struct SegmentField {
    pub(crate) inverted: Arc<InvertedIndexReader>,
    pub(crate) postings: OwnedBytes,
    pub(crate) positions: OwnedBytes,
    /// Code of the field's length for each document; `None` if lengths are not stored.
    pub(crate) lengths: Option<OwnedBytes>,
    /// Like [`Factors::norms`], but for the segment's own average length, and lowered so that, whatever average a
    /// search uses, no document of a block has a higher factor than the block's best document gets with these. `None`
    /// if blocks do not record their best document.
    pub(crate) bounds: Option<Box<[f32; 256]>>,
    pub(crate) option: IndexRecordOption,
    /// Number of documents in the segment.
    pub(crate) max_doc: DocId,
}

impl TextField {
    /// Opens a field whose values have `average` tokens on average. `None` if the field is stored in a form that is
    /// not supported here.
    ///
    /// # Errors
    /// If files of the segments cannot be read.
    pub fn open(searcher: &Searcher, field: Field, average: f32) -> Result<Option<Self>, TantivyError> {
        let option = searcher.schema().get_field_entry(field).field_type().get_index_record_option();
        let Some(option) = option else { return Ok(None) };
        let readers = searcher.segment_readers().iter();
        let segments = readers.map(|reader| SegmentField::open(reader, field, option, average));
        Ok(Some(Self { segments: segments.collect::<Result<_, _>>()?, factors: Factors::new(average) }))
    }

    pub fn segment(&self, ord: u32) -> Option<&SegmentField> {
        self.segments.get(ord as usize)?.as_ref()
    }

    pub fn factors(&self) -> &Factors {
        &self.factors
    }

    /// Location of a term in each segment, and the number of documents that contain it in all segments.
    ///
    /// # Errors
    /// If a term dictionary cannot be read.
    pub fn term(&self, term: &Term) -> Result<(Vec<Option<TermInfo>>, u64), TantivyError> {
        let mut all = 0;
        let mut infos = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let info = match segment {
                Some(segment) => segment.inverted.get_term_info(term).map_err(TantivyError::from)?,
                None => None,
            };
            all += info.as_ref().map_or(0, |info| u64::from(info.doc_freq));
            infos.push(info);
        }
        Ok((infos, all))
    }
}

impl SegmentField {
    pub(crate) fn open(
        reader: &SegmentReader,
        field: Field,
        option: IndexRecordOption,
        average: f32,
    ) -> Result<Option<Self>, TantivyError> {
        let read = |file: &CompositeFile| -> Result<Option<OwnedBytes>, TantivyError> {
            Ok(file.open_read(field).map(|file| file.read_bytes()).transpose()?)
        };
        let open = |component| -> Result<Option<OwnedBytes>, TantivyError> {
            read(&CompositeFile::open(&reader.open_read(component)?)?)
        };
        let Some(postings) = open(SegmentComponent::Postings)? else { return Ok(None) };
        // The number of tokens comes first.
        if postings.len() < size_of::<u64>() {
            return Ok(None);
        }
        let (_, postings) = postings.split(size_of::<u64>());
        let inverted = reader.inverted_index(field)?;
        let positions = if option.has_positions() { open(SegmentComponent::Positions)? } else { None };
        let positions = positions.unwrap_or_else(OwnedBytes::empty);
        let lengths = read(&reader.fieldnorms_readers().get_inner_file())?;
        let has_best = option.has_freq() && lengths.is_some();
        // The best of a block was chosen by this average when the segment was written.
        let average_here = inverted.total_num_tokens() as f32 / reader.max_doc() as f32;
        let bounds = (has_best && average_here > 0.0).then(|| {
            let share = (average_here / average).min(1.0) * (1.0 - ROUNDING);
            Box::new(norms(average_here).map(|norm| norm * share))
        });
        let max_doc = reader.max_doc();
        if lengths.as_ref().is_some_and(|lengths| lengths.len() < max_doc as usize) {
            let reason =
                format!("{} lengths for {max_doc} documents", lengths.map_or(0, |lengths| lengths.len()));
            return Err(DataCorruption::comment_only(reason).into());
        }
        Ok(Some(Self { inverted, postings, positions, lengths, bounds, option, max_doc }))
    }

    pub fn list(&self, term: &TermInfo) -> PostingList<'_> {
        PostingList::open(&self.postings, term, self.option, self.max_doc)
    }

    pub fn positions(&self, term: &TermInfo) -> Positions<'_> {
        Positions::open(&self.positions, term)
    }

    /// Upper bound of the BM25 factors of a block's documents.
    #[inline]
    pub fn most(&self, entry: &Entry) -> f32 {
        let Some(bounds) = &self.bounds else { return 1.0 };
        let (length, count) = entry.best();
        (count / (count + bounds[usize::from(length)])) * (1.0 + ROUNDING)
    }

    /// Code of the field's length for each document; `None` if lengths are not stored.
    pub fn lengths(&self) -> Option<&[u8]> {
        self.lengths.as_deref()
    }

    /// Code of the field's length in a document.
    #[inline]
    pub fn length(&self, doc: DocId) -> u8 {
        match &self.lengths {
            Some(lengths) => lengths[doc as usize],
            // tantivy takes fields without lengths for one token long.
            None => 1,
        }
    }
}

impl Factors {
    pub(crate) fn new(average: f32) -> Self {
        let norms = norms(average);
        let mut small = Box::new([[0.0; 256]; SMALL]);
        for (count, row) in (1u8..).zip(small.iter_mut()) {
            let count = f32::from(count);
            *row = norms.map(|norm| count / (count + norm));
        }
        Self { norms, small }
    }

    #[inline]
    pub fn factor(&self, count: u32, length: u8) -> f32 {
        match self.small.get((count as usize).wrapping_sub(1)) {
            Some(row) => row[usize::from(length)],
            None => {
                let count = count as f32;
                count / (count + self.norms[usize::from(length)])
            }
        }
    }
}

/// Denominator terms of BM25 for each length code, `k1 * (1 - b + b * length / average)`; rounded as in tantivy.
fn norms(average: f32) -> [f32; 256] {
    std::array::from_fn(|code| {
        let length = FieldNormReader::id_to_fieldnorm(code as u8) as f32;
        K1 * (1.0 - B + B * length / average)
    })
}
