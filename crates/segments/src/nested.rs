//! The objects of `nested` fields in a segment. Each is a document of the segment, and lies right before the object or document that
//! it is in: what belongs together is written together, and no merge tears it apart.
//!
//! In `_field_names` an object has the path of its field with a dot before it, which no field's own path begins with; the same is
//! stored in place of a source. It carries the `_id` of its document, so that both are deleted together.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED};

/// The term in `_field_names` of the objects of the nested field at `path`.
pub fn object_term(path: &str) -> String {
    format!(".{path}")
}

/// Whether what is stored as a document's source is that of an object.
pub fn is_object(source: &[u8]) -> bool {
    source.starts_with(b".")
}

/// Which documents of a segment are objects of nested fields: bitmaps, document `d` is bit `d % 64` of word `d / 64`. Deleted ones
/// count.
#[derive(Debug)]
pub struct NestedObjects {
    /// The documents that are none.
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

    /// Path of the nested field whose object a document is; `None` if it is none.
    pub fn path_of(&self, doc: DocId) -> Option<&str> {
        let has =
            |words: &[u64]| words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1);
        if has(&self.roots) {
            return None;
        }
        self.by_path.iter().find(|(_, objects)| has(objects)).map(|(path, _)| path.as_str())
    }

    /// The objects of the nested field at `path`; `None` if the segment has none.
    pub fn objects(&self, path: &str) -> Option<&Arc<[u64]>> {
        self.by_path.get(path)
    }
}

/// The first document of a bitmap at or after `from`; [`TERMINATED`] if there is none. The object or document that an object is in is
/// the first one after it that is of that kind.
pub fn next_in(words: &[u64], from: DocId) -> DocId {
    let mut index = from as usize / 64;
    let Some(word) = words.get(index) else { return TERMINATED };
    let mut word = word & (u64::MAX << (from % 64));
    while word == 0 {
        index += 1;
        match words.get(index) {
            Some(next) => word = *next,
            None => return TERMINATED,
        }
    }
    index as u32 * 64 + word.trailing_zeros()
}

/// The last document of a bitmap before `end`; `None` if there is none.
pub fn last_before(words: &[u64], end: DocId) -> Option<DocId> {
    let mut index = (end as usize / 64).min(words.len());
    let below = |index: usize| match index == end as usize / 64 {
        true => (1u64 << (end % 64)) - 1,
        false => u64::MAX,
    };
    loop {
        let word = words.get(index).map_or(0, |word| word & below(index));
        if word != 0 {
            return Some(index as u32 * 64 + 63 - word.leading_zeros());
        }
        index = index.checked_sub(1)?;
    }
}

/// The documents of a view in a segment, and the visible objects of another view that are in them.
#[derive(Debug, Clone)]
pub struct Blocks {
    documents: Arc<[u64]>,
    objects: Arc<[u64]>,
}

impl Blocks {
    /// The objects of the second bitmap, each in the first document of the first that comes after it.
    pub fn new(documents: Arc<[u64]>, objects: Arc<[u64]>) -> Self {
        Self { documents, objects }
    }

    /// The objects in a document, ascending.
    pub fn objects_in(&self, document: DocId) -> impl Iterator<Item = DocId> + '_ {
        let first = last_before(&self.documents, document).map_or(0, |before| before + 1);
        let next = move |from| Some(next_in(&self.objects, from)).filter(|object| *object < document);
        std::iter::successors(next(first), move |object| next(object + 1))
    }

    /// The document that an object is in.
    pub fn document_around(&self, object: DocId) -> DocId {
        next_in(&self.documents, object)
    }
}

/// The documents of a segment that have the values of a hit.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_over_empty_words() {
        let mut words = [0u64; 5];
        for doc in [3, 63, 64, 255] {
            words[doc / 64] |= 1 << (doc % 64);
        }
        let next: Vec<u32> = [0, 3, 4, 63, 64, 65, 255, 256, 900].map(|from| next_in(&words, from)).to_vec();
        assert_eq!(next, [3, 3, 63, 63, 64, 255, 255, TERMINATED, TERMINATED]);
        let last: Vec<Option<u32>> =
            [0, 3, 4, 64, 65, 255, 256, 900].map(|end| last_before(&words, end)).to_vec();
        assert_eq!(last, [None, None, Some(3), Some(63), Some(64), Some(64), Some(255), Some(255)]);
    }
}
