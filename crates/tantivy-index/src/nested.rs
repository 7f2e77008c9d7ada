//! Views of an index whose documents are the objects of a nested field.
//!
//! Objects are documents of the segments that no search of the index itself sees: they are not live in its snapshot. In a view they
//! are the live ones, and everything that works on a snapshot (queries, aggregations, reading documents) works on them.

use std::sync::Arc;

use sparrow_segments::doc_bits::next_in;
use sparrow_segments::nested::{Blocks, NestedObjects};
use tantivy::{DocAddress, TERMINATED};

use crate::segment_snapshot::SegmentSnapshot;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Path of the nested field whose objects are the documents of this view; `None` for the documents of the index.
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// The view of the objects of the nested field at `path` that are in the visible documents of this one: none unless that field lies
    /// inside the one whose objects are seen here.
    pub fn inside(&self, path: &str) -> Arc<Self> {
        if !self.mapping().is_nested_inside(self.scope(), path) {
            let nothing = self.segments().iter().map(|segment| segment.with_live(Some(Arc::default())));
            return Arc::new(self.view(nothing.collect(), path));
        }
        if let Some(view) = self.inside.lock().get(path) {
            return view.clone();
        }
        let segments = self.segments().iter().map(|segment| {
            let objects = segment.nested().and_then(|nested| nested.objects(path));
            let live = match (objects, self.documents(segment)) {
                (Some(objects), Some(documents)) => self.visible(segment, objects, documents),
                _ => Arc::default(),
            };
            segment.with_live(Some(live))
        });
        let view = Arc::new(self.view(segments.collect(), path));
        self.inside.lock().insert(path.to_owned(), view.clone());
        view
    }

    /// The objects whose document is visible.
    fn visible(&self, segment: &SegmentSnapshot, objects: &Arc<[u64]>, documents: &Arc<[u64]>) -> Arc<[u64]> {
        if segment.shared_live().is_none_or(|live| Arc::ptr_eq(live, documents)) {
            return objects.clone();
        }
        let mut live = vec![0u64; objects.len()];
        let mut object = next_in(objects, 0);
        while object != TERMINATED {
            let around = next_in(documents, object);
            if around != TERMINATED && segment.is_live(around) {
                live[object as usize / 64] |= 1 << (object % 64);
            }
            object = next_in(objects, object + 1);
        }
        live.into()
    }

    /// The view of the objects of the nested field at `path` that are in one document of this view.
    pub fn inside_of(&self, addr: DocAddress, path: &str) -> Self {
        let view = self.inside(path);
        let segments = (0..).zip(view.segments()).map(|(ord, segment)| {
            let mut live = Vec::new();
            if ord == addr.segment_ord
                && let Some(blocks) = self.blocks(&view, ord)
            {
                live = vec![0u64; self.searcher().segment_reader(ord).max_doc().div_ceil(64) as usize];
                blocks.objects_in(addr.doc_id).for_each(|object| {
                    live[object as usize / 64] |= 1 << (object % 64);
                });
            }
            segment.with_live(Some(live.into()))
        });
        let mut objects = self.view(segments.collect(), path);
        objects.of_document = true;
        objects
    }

    /// The documents of this view in a segment, deleted ones included; `None` if no nested field has objects there.
    pub(crate) fn documents<'s>(&self, segment: &'s SegmentSnapshot) -> Option<&'s Arc<[u64]>> {
        let nested = segment.nested()?;
        match self.scope() {
            None => Some(nested.roots()),
            Some(path) => nested.objects(path),
        }
    }

    /// The documents or objects that those of this view were asked for in, in a segment; `None` in the view of the documents themselves.
    pub(crate) fn documents_around<'s>(&self, segment: &'s SegmentSnapshot) -> Option<&'s Arc<[u64]>> {
        let nested = segment.nested().filter(|_| self.scope.is_some())?;
        match self.outer.last() {
            Some(path) => nested.objects(path),
            None => Some(nested.roots()),
        }
    }

    /// The objects around those of this view in a segment, by their nested field, innermost first, then the documents of the index.
    pub(crate) fn levels_around<'s>(&self, segment: &'s SegmentSnapshot) -> Vec<&'s Arc<[u64]>> {
        let (Some(nested), Some(scope)) = (segment.nested(), self.scope()) else { return Vec::new() };
        let outer = std::iter::successors(self.outer(scope), |path| self.outer(path));
        outer.filter_map(|path| nested.objects(path)).chain([nested.roots()]).collect()
    }

    /// The documents or objects around the objects of the nested field at `path`.
    fn around<'n>(&self, nested: &'n NestedObjects, path: &str) -> Option<&'n Arc<[u64]>> {
        match self.outer(path) {
            Some(outer) => nested.objects(outer),
            None => Some(nested.roots()),
        }
    }

    /// Path of the nested field around the one at `path`.
    fn outer(&self, path: &str) -> Option<&str> {
        path.rsplit_once('.').and_then(|(outer, _)| self.mapping().nested_around(outer))
    }

    /// What leads from the documents of this view in a segment to the objects of `inside` that are in them, and back; `None` if there
    /// are no such objects in the segment.
    pub fn blocks(&self, inside: &Snapshot, ord: u32) -> Option<Blocks> {
        let (documents, objects) = (self.documents(self.segment(ord))?, inside.segment(ord).shared_live()?);
        Some(Blocks::new(documents.clone(), objects.clone()))
    }

    /// Where an object lies in its document: the path and place of each object around it, and of itself, outermost first. Places are
    /// counted among the objects of the same field in the same object or document. Empty for a document of the index.
    pub fn place_of(&self, addr: DocAddress) -> Vec<(String, usize)> {
        let mut places = Vec::new();
        let Some(nested) = self.segment(addr.segment_ord).nested() else { return places };
        let mut object = addr.doc_id;
        let Some(mut path) = nested.path_of(object) else { return places };
        while let Some(objects) = nested.objects(path) {
            let Some(documents) = self.around(nested, path) else { break };
            let blocks = Blocks::new(documents.clone(), objects.clone());
            let document = blocks.document_around(object);
            places.push((
                path.to_owned(),
                blocks.objects_in(document).take_while(|other| *other < object).count(),
            ));
            let Some(outer) = self.outer(path) else { break };
            object = document;
            path = outer;
        }
        places.reverse();
        places
    }

    /// The document of the index that a document of this view is, or is in.
    pub fn root_of(&self, addr: DocAddress) -> DocAddress {
        let nested = self.segment(addr.segment_ord).nested();
        let root = nested.map_or(addr.doc_id, |nested| next_in(nested.roots(), addr.doc_id));
        DocAddress::new(addr.segment_ord, root)
    }
}
