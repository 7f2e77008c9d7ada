//! A text field as searches for words need it: its bytes in each segment, and what BM25 makes of frequencies and lengths.

use std::sync::Arc;

use tantivy::directory::{CompositeFile, OwnedBytes};
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{InvertedIndexReader, SegmentComponent};
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Searcher, SegmentReader, TantivyError, Term};

use crate::ROUNDING;
use crate::list::{Entry, PostingList};
use crate::positions::Positions;

/// How soon a frequent term counts no more: a constant of BM25, as Elasticsearch and tantivy have it.
pub const K1: f32 = 1.2;
/// How much the length of a text counts: a constant of BM25, as Elasticsearch and tantivy have it.
pub const B: f32 = 0.75;

/// Frequencies up to this one have a table.
const SMALL: usize = 8;

/// One text field of a snapshot.
pub struct TextField {
    /// By segment; `None` where no document has the field.
    segments: Vec<Option<SegmentField>>,
    factors: Factors,
}

/// BM25 without the weight of a term, by frequency and code of the field's length. Scores are those of tantivy, to the last bit.
pub struct Factors {
    norms: [f32; 256],
    small: Box<[[f32; 256]; SMALL]>,
}

/// A text field in one segment.
pub struct SegmentField {
    inverted: Arc<InvertedIndexReader>,
    postings: OwnedBytes,
    positions: OwnedBytes,
    /// Codes of the lengths by document; `None` when they are not kept.
    lengths: Option<OwnedBytes>,
    /// As [`Factors::norms`], but by the segment's own average and lowered so that no factor of a block, whatever the average of the
    /// search, is above the one that its best document gets with these. `None` when blocks do not say which document is the best.
    bounds: Option<Box<[f32; 256]>>,
    option: IndexRecordOption,
}

impl TextField {
    /// Opens a field whose values have `average` tokens. `None` if it is written in a way that is not read here.
    ///
    /// # Errors
    /// When files of the segments cannot be read.
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

    /// Where a term is in each segment, and in how many documents of all.
    ///
    /// # Errors
    /// When a dictionary of terms cannot be read.
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
    fn open(
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
        Ok(Some(Self { inverted, postings, positions, lengths, bounds, option }))
    }

    pub fn list(&self, term: &TermInfo) -> PostingList<'_> {
        PostingList::open(&self.postings, term, self.option)
    }

    pub fn positions(&self, term: &TermInfo) -> Positions<'_> {
        Positions::open(&self.positions, term)
    }

    /// No document of a block has a higher factor.
    #[inline]
    pub fn most(&self, entry: &Entry) -> f32 {
        let Some(bounds) = &self.bounds else { return 1.0 };
        let (length, count) = entry.best();
        (count / (count + bounds[usize::from(length)])) * (1.0 + ROUNDING)
    }

    /// Codes of the lengths by document; `None` when they are not kept.
    pub fn lengths(&self) -> Option<&[u8]> {
        self.lengths.as_deref()
    }

    /// Code of a document's length.
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
    fn new(average: f32) -> Self {
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

/// What frequencies are compared with, by code of the field's length; rounded as in tantivy.
fn norms(average: f32) -> [f32; 256] {
    std::array::from_fn(|code| {
        let length = FieldNormReader::id_to_fieldnorm(code as u8) as f32;
        K1 * (1.0 - B + B * length / average)
    })
}
