//! A document that is read once for all of its objects.

use std::ops::Range;

use rustc_hash::FxHashMap;
use sparrow_mapping::{objects_at, wrapping};
use tantivy::DocId;
use tantivy::index::SegmentId;

/// A document whose objects are shown: it is read from the store, and read through, once for all of them. It belongs to who shows them, so
/// that the request pays for it.
#[derive(Debug)]
pub struct OpenDocument {
    at: (SegmentId, DocId),
    pub(crate) id: String,
    source: Vec<u8>,
    /// Where the objects of a path lie, by the place of the object or document around them.
    objects: FxHashMap<(Range<usize>, String), Vec<Range<usize>>>,
}

impl OpenDocument {
    pub(crate) fn new(at: (SegmentId, DocId), id: String, source: Vec<u8>) -> Self {
        Self { at, id, source, objects: FxHashMap::default() }
    }

    /// Whether it is the document with this number in this segment.
    pub(crate) fn is_at(&self, at: (SegmentId, DocId)) -> bool {
        self.at == at
    }

    /// The JSON that the document would be if it held nothing but the object at the end of these places (see
    /// [`crate::Snapshot::place_of`]), inside the fields around it. Empty if there is no object at these places.
    pub(crate) fn object(&mut self, places: Vec<(String, usize)>) -> Vec<u8> {
        let (mut span, mut around) = (0..self.source.len(), String::new());
        for (path, offset) in places {
            let inner = path.strip_prefix(&around).unwrap_or(&path).trim_start_matches('.').to_owned();
            let text = &self.source[span.clone()];
            let known = self.objects.entry((span.clone(), inner));
            let objects = known.or_insert_with_key(|(_, inner)| objects_at(text, inner));
            let Some(object) = objects.get(offset) else { return Vec::new() };
            (span, around) = (span.start + object.start..span.start + object.end, path);
        }
        let (before, after) = wrapping(&around);
        [before.as_bytes(), &self.source[span], after.as_bytes()].concat()
    }
}
