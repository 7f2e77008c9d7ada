//! The postings of one term, whatever their layout (see `record`).

use sparrow_runtime::DocId;

use crate::bytes::{partition_point, slice, u16_at, u32_at, u64_at};
use crate::kernels::{self, Bitmap, SparseIds};
use crate::layout::{BLOCK, CHUNK, CHUNK_LEVELS, CODES, Place, Posting, RANKED, REGION};
use crate::quantize::{ESCAPE, Scale, half_value};
use crate::record::{Kind, Record, Shape};
use crate::resolved::ResolvedTerm;

/// Borrowed postings of one term. Positions run from 0 up to `df`, in ascending document order.
#[derive(Clone, Copy)]
pub(crate) struct Postings<'a> {
    /// Bytes of the file; kernels read past the end of a term's impacts and ids.
    bytes: &'a [u8],
    shape: &'a Shape,
    record: Record,
    /// Quantised upper bound that each of a dense term's 16 levels stands for.
    pub(crate) codes: [u8; CODES],
    pub(crate) scale: Scale,
    /// Offset in the file of the first impact of a sparse or dense term.
    impacts_at: usize,
    /// Segment document that is numbered 0 here; `first_window` is the number of its window.
    first: DocId,
    first_window: usize,
}

impl<'a> Postings<'a> {
    /// View of the postings of a resolved term.
    #[inline]
    pub(crate) fn new(
        bytes: &'a [u8],
        shape: &'a Shape,
        ResolvedTerm { record, codes }: &ResolvedTerm,
    ) -> Self {
        Self {
            bytes,
            shape,
            record: *record,
            codes: *codes,
            scale: Scale::new(record.max.max(1)),
            impacts_at: record.impacts_at(shape),
            first: 0,
            first_window: 0,
        }
    }

    /// View of the same term that starts at document `first`, a multiple of [`REGION`] and of the segment's
    /// window: earlier documents are not found, and later ones are numbered from it. Positions do not change.
    pub(crate) fn from(self, first: DocId) -> Self {
        debug_assert!(first.is_multiple_of(REGION) && first.is_multiple_of(self.shape.window));
        Self { first, first_window: (first / self.shape.window) as usize, ..self }
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.record.kind
    }

    /// Number of postings.
    #[inline]
    pub(crate) fn df(&self) -> u32 {
        self.record.df
    }

    /// Number of postings among the first `docs` documents of this view.
    pub(crate) fn df_of(&self, docs: u32) -> u32 {
        if self.first == 0 && docs >= self.shape.num_docs {
            return self.df();
        }
        self.lower_bound(docs).saturating_sub(self.lower_bound(0)) as u32
    }

    #[inline]
    fn blob(&self) -> usize {
        self.record.blob as usize
    }

    /// Levels of a dense term's chunks, from the first document of this view on.
    #[inline]
    pub(crate) fn levels(&self) -> &'a [u8] {
        let levels = slice(self.bytes, self.blob(), self.shape.dense_parts()[0]);
        levels.get((self.first / CHUNK) as usize * CHUNK_LEVELS..).unwrap_or(&[])
    }

    /// Bitmap of the documents that contain a dense term.
    #[inline]
    pub(crate) fn bitmap(&self) -> Bitmap<'a> {
        let [levels, bits, ranks, regions] = self.shape.dense_parts();
        let at = self.blob() + levels;
        Bitmap {
            bits: slice(self.bytes, at, bits).get(self.first as usize / BLOCK..).unwrap_or(&[]),
            ranks: slice(self.bytes, at + bits, ranks)
                .get((self.first / RANKED) as usize * 2..)
                .unwrap_or(&[]),
            regions: slice(self.bytes, at + bits + ranks, regions)
                .get((self.first / REGION) as usize * 4..)
                .unwrap_or(&[]),
        }
    }

    /// Impacts of a sparse or dense term, and the 8 bytes that follow them.
    #[inline]
    pub(crate) fn impacts(&self) -> &'a [u8] {
        slice(self.bytes, self.impacts_at, self.df() as usize + BLOCK)
    }

    /// Impacts of a sparse or dense term, from a position on, and what follows them in the file.
    #[inline]
    pub(crate) fn impacts_from(&self, position: usize) -> &'a [u8] {
        self.bytes.get(self.impacts_at + position..).unwrap_or(&[])
    }

    /// Document column of the postings: document-weight pairs of a plain term, document numbers of a rare
    /// one, window ids of a sparse one.
    #[inline]
    fn documents(&self) -> &'a [u8] {
        let (directory, size) = match self.kind() {
            Kind::Plain => (0, 8),
            Kind::Rare => (0, 4),
            Kind::Sparse => (self.shape.windows_bytes(), 2),
            Kind::Dense => (0, 0),
        };
        slice(self.bytes, self.blob() + directory, self.df() as usize * size)
    }

    /// Ids and impacts of a sparse term in one window.
    #[inline]
    pub(crate) fn in_window(&self, window: usize) -> (&'a [[u8; 2]], &'a [u8]) {
        let range = self.window_range(window);
        let ids = self.documents().get(range.start * 2..range.end * 2).unwrap_or(&[]);
        (ids.as_chunks().0, slice(self.bytes, self.impacts_at + range.start, range.len()))
    }

    /// Weight of the posting at a position.
    #[inline]
    pub(crate) fn weight_at(&self, position: usize) -> f32 {
        match self.kind() {
            Kind::Plain => f32::from_bits(u32_at(self.bytes, self.blob() + position * 8 + 4)),
            Kind::Rare => half_value(self.rare_weight_at(position)),
            Kind::Sparse | Kind::Dense => {
                let at = self.impacts_at + position;
                let residual = self.bytes.get(at + self.df() as usize).copied().unwrap_or(ESCAPE);
                if residual == ESCAPE {
                    return self.escaped_weight(position);
                }
                self.scale.restore(self.bytes.get(at).copied().unwrap_or(1), residual)
            }
        }
    }

    /// Half-precision bits of the weight at a position of a rare term.
    #[inline]
    fn rare_weight_at(&self, position: usize) -> u16 {
        u16_at(self.bytes, self.blob() + self.df() as usize * 4 + position * 2)
    }

    /// Window, id in the window and estimated share of it at which to look for a document.
    pub(crate) fn place(&self, doc: DocId) -> Place {
        let Shape { num_docs, window: size, .. } = *self.shape;
        let (window, id) = (doc / size, doc % size);
        let documents = num_docs.saturating_sub(self.first + window * size).clamp(1, size);
        Place { doc, window, id: id as u16, share: ((u64::from(id) << 16) / u64::from(documents)) as u32 }
    }

    /// Prefetches what [`Self::find_all`] reads, where its address is known in advance: the bitmap of a dense
    /// term.
    #[inline]
    pub(crate) fn fetch_places(&self, places: &[Place]) {
        // In sparse lists the search of all documents read a moment ago.
        if self.kind() == Kind::Dense {
            let bitmap = self.bitmap();
            places.iter().for_each(|place| bitmap.fetch(place.doc));
        }
    }

    /// Looks up the documents of `places` and writes those that have the term to the start of `found`, which
    /// has room for all; their `of` is the index in `places` plus `first`. Returns how many were found.
    pub(crate) fn find_all(&self, places: &[Place], first: u32, found: &mut [Posting]) -> usize {
        match self.kind() {
            Kind::Dense => kernels::chosen().find_dense(&self.bitmap(), places, first, found),
            Kind::Sparse => kernels::chosen().find_sparse(&self.sparse_ids(), places, first, found),
            Kind::Plain | Kind::Rare => {
                let mut count = 0;
                for (of, place) in (first..).zip(places) {
                    if let Some(position) = self.find(place.doc) {
                        found[count] = Posting { of, position: position as u32 };
                        count += 1;
                    }
                }
                count
            }
        }
    }

    /// Prefetches what [`Self::weight_at`] reads of a sparse or dense term.
    #[inline]
    pub(crate) fn fetch_weight(&self, position: usize) {
        kernels::fetch(self.bytes, self.impacts_at + position);
        kernels::fetch(self.bytes, self.impacts_at + self.df() as usize + position);
    }

    /// Prefetches the ids and impacts of a sparse term in one window.
    pub(crate) fn fetch_window(&self, window: usize) {
        let (ids, impacts) = self.in_window(window);
        let ids = ids.as_flattened();
        (0..ids.len()).step_by(64).for_each(|at| kernels::fetch(ids, at));
        (0..impacts.len()).step_by(64).for_each(|at| kernels::fetch(impacts, at));
    }

    fn escaped_weight(&self, position: usize) -> f32 {
        let (df, escapes) = (self.df() as usize, self.record.escapes as usize);
        let positions = slice(self.bytes, self.impacts_at + df * 2, escapes * 4);
        let at = partition_point(escapes, |i| (u32_at(positions, i * 4) as usize) < position);
        let weights = slice(self.bytes, self.impacts_at + df * 2 + escapes * 4, escapes * 2);
        half_value(u16_at(weights, at * 2))
    }

    /// 8-bit impact of a posting (rare postings compute it).
    #[inline]
    pub(crate) fn impact_at(&self, position: usize) -> u8 {
        match self.kind() {
            Kind::Plain => 255,
            Kind::Rare => self.scale.impact(self.rare_weight_at(position)),
            Kind::Sparse | Kind::Dense => self.bytes.get(self.impacts_at + position).copied().unwrap_or(1),
        }
    }

    /// The ids of a sparse term.
    #[inline]
    fn ids(&self) -> &'a [[u8; 2]] {
        self.documents().as_chunks().0
    }

    /// Ids of a sparse term with its window directory, as the kernels take them.
    #[inline]
    fn sparse_ids(&self) -> SparseIds<'a> {
        let at = self.blob() + self.shape.windows_bytes();
        let ids = self.bytes.get(at..).unwrap_or(&[]).as_chunks().0;
        SparseIds { windows: self.windows(), ids, count: self.df() as usize }
    }

    /// Window directory of a sparse term: the number of postings before each window.
    #[inline]
    fn windows(&self) -> &'a [u8] {
        let windows = slice(self.bytes, self.blob(), self.shape.windows_bytes());
        windows.get(self.first_window * 4..).unwrap_or(&[])
    }

    /// Positions of a sparse term in one window.
    #[inline]
    pub(crate) fn window_range(&self, window: usize) -> std::ops::Range<usize> {
        let windows = self.windows();
        let end = (u32_at(windows, window * 4 + 4) as usize).min(self.df() as usize);
        let start = (u32_at(windows, window * 4) as usize).min(end);
        start..end
    }

    /// Position of a document's posting; `None` if it does not have the term.
    #[inline]
    pub(crate) fn find(&self, doc: DocId) -> Option<usize> {
        match self.kind() {
            Kind::Dense => self.bitmap().find(doc).map(|at| at as usize),
            Kind::Sparse => {
                let mut found = [Posting::default()];
                let places = [self.place(doc)];
                let count = kernels::chosen().find_sparse(&self.sparse_ids(), &places, 0, &mut found);
                (count > 0).then(|| found[0].position as usize)
            }
            Kind::Plain | Kind::Rare => {
                let at = self.lower_bound(doc);
                (at < self.df() as usize && self.doc_at(at) == self.first.saturating_add(doc)).then_some(at)
            }
        }
    }

    /// Document at a position of a plain or rare term, counted from the first of the segment.
    fn doc_at(&self, position: usize) -> DocId {
        let size = if self.kind() == Kind::Plain { 8 } else { 4 };
        u32_at(self.bytes, self.blob() + position * size)
    }

    /// First position whose document is at or after `doc`.
    pub(crate) fn lower_bound(&self, doc: DocId) -> usize {
        match self.kind() {
            Kind::Plain | Kind::Rare => {
                let doc = self.first.saturating_add(doc);
                partition_point(self.df() as usize, |i| self.doc_at(i) < doc)
            }
            Kind::Sparse => {
                let Shape { window: size, windows, .. } = *self.shape;
                let (window, id) = ((doc / size) as usize, (doc % size) as u16);
                if self.first_window + window >= windows {
                    return self.df() as usize;
                }
                let range = self.window_range(window);
                let ids = self.ids().get(range.clone()).unwrap_or(&[]);
                range.start + ids.partition_point(|bytes| u16::from_le_bytes(*bytes) < id)
            }
            Kind::Dense => {
                let bitmap = self.bitmap();
                if doc as usize / 8 >= bitmap.bits.len() {
                    return self.df() as usize;
                }
                bitmap.rank(doc) as usize
            }
        }
    }

    /// Calls `each(document, position)` for the postings in `start..end`, and for no others; ascending, if the bytes do.
    #[inline]
    pub(crate) fn for_range(&self, start: DocId, end: DocId, mut each: impl FnMut(DocId, usize)) {
        if start >= end {
            return;
        }
        match self.kind() {
            Kind::Plain | Kind::Rare => {
                for position in self.lower_bound(start)..self.df() as usize {
                    // Damaged documents may not ascend.
                    let Some(doc) = self.doc_at(position).checked_sub(self.first) else { continue };
                    if doc >= end {
                        return;
                    }
                    if doc >= start {
                        each(doc, position);
                    }
                }
            }
            Kind::Sparse => {
                let Shape { window: size, windows, .. } = *self.shape;
                let (ids, windows) = (self.ids(), windows.saturating_sub(self.first_window));
                for window in (start / size) as usize..(end.div_ceil(size) as usize).min(windows) {
                    let base = window as u32 * size;
                    let range = self.window_range(window);
                    let first = if base < start { self.lower_bound(start) } else { range.start };
                    for (position, id) in (first..range.end).zip(ids.get(first..range.end).unwrap_or(&[])) {
                        let doc = base.saturating_add(u32::from(u16::from_le_bytes(*id)));
                        if doc >= end {
                            return;
                        }
                        if doc >= start {
                            each(doc, position);
                        }
                    }
                }
            }
            Kind::Dense => {
                let first = start as usize / 64;
                let mut position = self.lower_bound(start);
                let bits = self.bitmap().bits;
                for word in first..(end as usize).div_ceil(64).min(bits.len() / 8) {
                    let mut bits = u64_at(bits, word * 8);
                    if word == first {
                        bits &= u64::MAX << (start % 64);
                    }
                    while bits != 0 {
                        let doc = word as u32 * 64 + bits.trailing_zeros();
                        if doc >= end {
                            return;
                        }
                        each(doc, position);
                        position += 1;
                        bits &= bits - 1;
                    }
                }
            }
        }
    }

    /// Sets bit `document - start` of `bits` for the postings in `start..end`; `start` is a
    /// multiple of 64.
    pub(crate) fn mark_range(&self, start: DocId, end: DocId, bits: &mut [u64]) {
        if self.kind() == Kind::Dense {
            let (first, bitmap) = (start as usize / 64, self.bitmap());
            for (i, word) in bits.iter_mut().enumerate().take((end as usize).div_ceil(64) - first) {
                *word |= u64_at(bitmap.bits, (first + i) * 8);
            }
            return;
        }
        self.for_range(start, end, |doc, _| {
            if let Some(word) = bits.get_mut((doc - start) as usize / 64) {
                *word |= 1 << ((doc - start) % 64);
            }
        });
    }
}
