//! Sets of documents of one segment.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tantivy::query::Scorer;
use tantivy::{SegmentReader, TERMINATED};

use super::doc_bits::{BitsScorer, DocBits};

/// The documents of one segment that pass a filter; deleted documents may be among them.
#[derive(Debug, Clone)]
pub enum SegmentDocs {
    All,
    None,
    Some(Arc<DocBits>),
}

impl SegmentDocs {
    /// The documents of a scorer from its current one on; incomplete if `cancel` is set meanwhile.
    pub fn collect(scorer: &mut dyn Scorer, reader: &SegmentReader, cancel: Option<&AtomicBool>) -> Self {
        if scorer.doc() == TERMINATED {
            return SegmentDocs::None;
        }
        match scorer.downcast_ref::<BitsScorer>() {
            Some(scorer) => Self::of(scorer.bits()),
            None => Self::of(Arc::new(DocBits::from_docset(scorer, reader.max_doc(), cancel))),
        }
    }

    /// The documents of a bitmap.
    pub fn of(bits: Arc<DocBits>) -> Self {
        if bits.is_empty() {
            SegmentDocs::None
        } else if bits.is_full() {
            SegmentDocs::All
        } else {
            SegmentDocs::Some(bits)
        }
    }

    /// Whether `doc` is in the set.
    pub fn contains(&self, doc: tantivy::DocId) -> bool {
        match self {
            SegmentDocs::All => true,
            SegmentDocs::None => false,
            SegmentDocs::Some(bits) => bits.contains(doc),
        }
    }

    /// The words of the bitmap; `None` if the set has all documents, and an empty slice if it has none.
    pub fn words(&self) -> Option<&[u64]> {
        match self {
            SegmentDocs::All => None,
            SegmentDocs::None => Some(&[]),
            SegmentDocs::Some(bits) => Some(bits.words()),
        }
    }

    /// Keeps the documents that are in both sets.
    pub fn intersect(&mut self, other: SegmentDocs) {
        match (&mut *self, other) {
            (SegmentDocs::None, _) | (_, SegmentDocs::All) => {}
            (SegmentDocs::All, other) => *self = other,
            (_, SegmentDocs::None) => *self = SegmentDocs::None,
            (SegmentDocs::Some(bits), SegmentDocs::Some(other)) => match Arc::get_mut(bits) {
                Some(bits) => bits.intersect(&other),
                None => *bits = Arc::new(bits.intersection(&other)),
            },
        }
    }

    /// Adds the documents of another set.
    pub fn unite(&mut self, other: SegmentDocs) {
        match (&mut *self, other) {
            (SegmentDocs::All, _) | (_, SegmentDocs::None) => {}
            (SegmentDocs::None, other) => *self = other,
            (_, SegmentDocs::All) => *self = SegmentDocs::All,
            (SegmentDocs::Some(bits), SegmentDocs::Some(other)) => Arc::make_mut(bits).unite(&other),
        }
    }

    /// Takes the documents of another set out.
    pub fn subtract(&mut self, other: SegmentDocs) {
        match (&mut *self, other) {
            (SegmentDocs::None, _) | (_, SegmentDocs::None) => {}
            (_, SegmentDocs::All) => *self = SegmentDocs::None,
            (SegmentDocs::All, SegmentDocs::Some(other)) => {
                *self = SegmentDocs::Some(Arc::new(DocBits::clone(&other).complement()));
            }
            (SegmentDocs::Some(bits), SegmentDocs::Some(other)) => match Arc::get_mut(bits) {
                Some(bits) => bits.subtract(&other),
                None => *bits = Arc::new(bits.difference(&other)),
            },
        }
    }
}
