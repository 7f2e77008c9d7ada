//! The objects of `nested` fields in a segment. Each is a document of the segment, and lies right before the object or document that
//! it is in: what belongs together is written together, and no merge tears it apart.
//!
//! In `_field_names` an object has the path of its field with a dot before it, which no field's own path begins with; the same is
//! stored in place of a source. It carries the `_id` of its document, so that both are deleted together.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED};

use crate::doc_bits::{contains, last_before, next_in};

/// The term in `_field_names` of the objects of the nested field at `path`.
pub fn object_term(path: &str) -> String {
    format!(".{path}")
}

/// Whether what is stored as a document's source is that of an object.
pub fn is_object(source: &[u8]) -> bool {
    source.starts_with(b".")
}

/// Which documents of a segment are objects of nested fields, deleted ones included: bitmaps, document `d` is bit `d % 64` of word
/// `d / 64`.
#[derive(Debug)]
pub struct NestedObjects {
    /// The documents of the index, which are not objects.
    roots: Arc<[u64]>,
    by_path: BTreeMap<String, Arc<[u64]>>,
}

impl NestedObjects {
    /// Reads them from the terms of `_field_names`; `None` if the segment has none.
    ///
    /// # Errors
    /// When the term dictionary cannot be read.
    pub fn open(reader: &SegmentReader, field_names: Field) -> tantivy::Result<Option<Self>> {
        let inverted = reader.inverted_index(field_names)?;
        let words = reader.max_doc().div_ceil(64) as usize;
        let mut roots = vec![u64::MAX; words];
        if let Some(last) = roots.last_mut()
            && !reader.max_doc().is_multiple_of(64)
        {
            *last = (1 << (reader.max_doc() % 64)) - 1;
        }
        let mut by_path = BTreeMap::new();
        let mut terms = inverted.terms().range().ge(b".").lt(b"/").into_stream()?;
        while let Some((term, info)) = terms.next() {
            let path = String::from_utf8_lossy(&term[1..]).into_owned();
            let mut objects = vec![0; words];
            let mut postings = inverted.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
            while postings.doc() != TERMINATED {
                let (word, bit) = (postings.doc() as usize / 64, 1 << (postings.doc() % 64));
                objects[word] |= bit;
                roots[word] &= !bit;
                postings.advance();
            }
            by_path.insert(path, objects.into());
        }
        Ok((!by_path.is_empty()).then(|| Self { roots: roots.into(), by_path }))
    }

    /// The documents of the index themselves.
    pub fn roots(&self) -> &Arc<[u64]> {
        &self.roots
    }

    /// Path of the nested field that an object belongs to; `None` for a document of the index.
    pub fn path_of(&self, doc: DocId) -> Option<&str> {
        if contains(&self.roots, doc) {
            return None;
        }
        self.by_path.iter().find(|(_, objects)| contains(objects, doc)).map(|(path, _)| path.as_str())
    }

    /// The objects of the nested field at `path`; `None` if the segment has none.
    pub fn objects(&self, path: &str) -> Option<&Arc<[u64]>> {
        self.by_path.get(path)
    }
}

/// Some documents of a segment, and objects in them: bitmaps. An object lies in the next document after it.
#[derive(Debug, Clone)]
pub struct Blocks {
    documents: Arc<[u64]>,
    objects: Arc<[u64]>,
}

impl Blocks {
    /// Blocks of these documents and these of their objects.
    pub fn new(documents: Arc<[u64]>, objects: Arc<[u64]>) -> Self {
        Self { documents, objects }
    }

    /// The first document number of the block that ends with this document, or that it would end.
    pub fn first_in(&self, document: DocId) -> DocId {
        last_before(&self.documents, document).map_or(0, |before| before + 1)
    }

    /// The objects in a document, ascending.
    pub fn objects_in(&self, document: DocId) -> impl Iterator<Item = DocId> + '_ {
        let next = move |from| Some(self.next_object(from)).filter(|object| *object < document);
        std::iter::successors(next(self.first_in(document)), move |object| next(object + 1))
    }

    /// Whether this is one of the objects.
    pub fn has_object(&self, doc: DocId) -> bool {
        contains(&self.objects, doc)
    }

    /// The first object at or after `from`; [`TERMINATED`] behind the last.
    pub fn next_object(&self, from: DocId) -> DocId {
        next_in(&self.objects, from)
    }

    /// The document that an object is in; [`TERMINATED`] if it is in none of them.
    pub fn document_around(&self, object: DocId) -> DocId {
        next_in(&self.documents, object)
    }
}

/// Whose values a hit is sorted by.
#[derive(Debug)]
pub enum Owners {
    /// The hit itself.
    Document,
    /// The objects in it; `None` where the segment has none.
    Objects(Option<Blocks>),
}

impl Owners {
    /// Calls `see` with each of them.
    #[inline]
    pub fn each(&self, doc: DocId, mut see: impl FnMut(DocId)) {
        match self {
            Self::Document => see(doc),
            Self::Objects(None) => {}
            Self::Objects(Some(blocks)) => blocks.objects_in(doc).for_each(see),
        }
    }
}
