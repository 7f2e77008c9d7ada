//! The postings of one term, in every layout.
//!
//! Record of a term: `blob u64` (position in the file), `df u32`, and in V3 `escapes u32`,
//! `max u16` (highest weight, half bits), `kind u8`, 5 zero bytes. V1 ends with 4 zero bytes.
//!
//! Blob of a term with `n = df` postings and `e` escapes:
//!
//! ```text
//! V1 plain    (document u32, weight f32)[n]
//! V3 rare     documents u32[n], weights u16[n] (half bits)
//! V3 sparse   windows u32[windows + 1], ids u16[n], impacts u8[n], residuals u8[n], escapes
//! V3 dense    levels u8[chunks * 64], bitmap u64[chunks * 16], ranks u16[chunks * 8],
//!             regions u32[regions], codes u8[16], impacts u8[n], residuals u8[n], escapes
//! escapes     positions u32[e], weights u16[e] (half bits)
//! ```
//!
//! `windows[i]` is the number of postings before window `i`, an id is the document's distance
//! from its window's start. Of a dense term, a chunk is 1,024 documents, a region 65,536:
//! `regions[i]` is the number of postings before region `i`, `ranks[i]` that from the start of the
//! region to 128 documents `i`. A level, of 4 bits, stands for an upper bound of the impacts of 8
//! documents: `codes[level]`, ascending, 0 for level 0, which says that there is no posting. Where
//! a chunk has which level tells [`level_place`].
//!
//! A term in at least 1/24 of the documents (and 64) is dense: such terms hold 93% of the postings
//! that questions touch. One with no more postings than windows is rare, so that a directory never
//! outweighs its postings.

use sparrow_types::DocId;

use crate::bytes::{partition_point, slice, u16_at, u32_at, u64_at};
use crate::frame::{Footer, Format, HEADER_BYTES};
use crate::kernels;
use crate::quantize::{ESCAPE, Scale, half_value};
use crate::resolved::ResolvedTerm;

/// Layout of a term's postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Rare,
    Sparse,
    Dense,
}

impl Kind {
    /// The layout of V3 with this number in a record.
    #[inline]
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Rare),
            2 => Some(Self::Sparse),
            3 => Some(Self::Dense),
            _ => None,
        }
    }
}

/// Documents of a chunk of a dense term.
pub(crate) const CHUNK: u32 = 1024;
/// Bytes of a chunk's levels and of its bitmap.
pub(crate) const CHUNK_LEVELS: usize = 64;
pub(crate) const CHUNK_BITMAP: usize = 128;
/// Levels, and what each stands for.
const CODES: usize = 16;
/// Documents that share the base of their ranks.
pub(crate) const REGION: u32 = 65_536;
/// Documents that share a rank.
pub(crate) const RANKED: u32 = 128;
/// A term in at least one of so many documents is dense.
const DENSE_SHARE: u64 = 24;

/// Where a chunk has the level of a block (0 to 127) of 8 documents: the byte, and the shift in it.
///
/// The even bytes have the first 32 of 64 blocks, so that widening to 16 bits leaves them in order.
#[inline]
pub(crate) fn level_place(block: usize) -> (usize, u32) {
    ((block % 32) * 2 + block / 32 % 2, (block / 64) as u32 * 4)
}

/// Which layout V3 gives a term with `df` postings.
pub(crate) fn kind_for(df: u32, num_docs: u32, window: u32) -> Kind {
    if df <= num_docs.div_ceil(window) {
        Kind::Rare
    } else if df >= 64 && u64::from(df) * DENSE_SHARE >= u64::from(num_docs) {
        Kind::Dense
    } else {
        Kind::Sparse
    }
}

/// A term's entry in the `records` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) blob: u64,
    pub(crate) df: u32,
    pub(crate) escapes: u32,
    pub(crate) max: u16,
    pub(crate) kind: Kind,
}

impl Record {
    pub(crate) fn encode(&self, format: Format, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.blob.to_le_bytes());
        out.extend_from_slice(&self.df.to_le_bytes());
        out.extend_from_slice(&self.escapes.to_le_bytes());
        if format == Format::V3 {
            out.extend_from_slice(&self.max.to_le_bytes());
            out.push(self.kind as u8);
            out.extend_from_slice(&[0; 5]);
        }
    }

    /// Reads a record; `None` when its kind is unknown.
    pub(crate) fn decode(bytes: &[u8], format: Format) -> Option<Self> {
        let (blob, df, escapes) = (u64_at(bytes, 0), u32_at(bytes, 8), u32_at(bytes, 12));
        if format == Format::V1 {
            return Some(Self { blob, df, escapes, max: 0, kind: Kind::Plain });
        }
        let kind = Kind::from_number(*bytes.get(18)?)?;
        Some(Self { blob, df, escapes, max: u16_at(bytes, 16), kind })
    }

    /// Bytes of the directory in front of the postings of this kind.
    fn directory_bytes(kind: Kind, num_docs: u32, window: u32) -> u64 {
        match kind {
            Kind::Plain | Kind::Rare => 0,
            Kind::Sparse => (u64::from(num_docs.div_ceil(window)) + 1) * 4,
            Kind::Dense => {
                let chunks = u64::from(num_docs.div_ceil(CHUNK));
                chunks * (64 + 128 + 16) + u64::from(num_docs.div_ceil(REGION)) * 4 + 16
            }
        }
    }

    pub(crate) fn blob_bytes(&self, num_docs: u32, window: u32) -> u64 {
        let (df, escapes) = (u64::from(self.df), u64::from(self.escapes));
        let directory = Self::directory_bytes(self.kind, num_docs, window);
        directory
            + match self.kind {
                Kind::Plain => df * 8,
                Kind::Rare => df * 6,
                Kind::Sparse => df * 4 + escapes * 6,
                Kind::Dense => df * 2 + escapes * 6,
            }
    }

    /// Has the start of the term fetched: of a dense one, the levels up to where bounding chunks fetches ahead.
    #[inline]
    pub(crate) fn fetch_start(&self, bytes: &[u8], footer: &Footer) {
        let blob = self.blob as usize;
        kernels::fetch(bytes, blob);
        if self.kind == Kind::Dense {
            (1..kernels::AHEAD).for_each(|chunk| kernels::fetch(bytes, blob + chunk * CHUNK_LEVELS));
        }
        if self.kind == Kind::Sparse {
            let after = blob + Self::directory_bytes(self.kind, footer.num_docs, footer.window) as usize;
            kernels::fetch(bytes, after);
            kernels::fetch(bytes, after + self.df as usize * 2);
        }
    }

    /// Where the codes of a dense term are.
    fn codes_at(&self, footer: &Footer) -> Option<usize> {
        let after = self.blob + Self::directory_bytes(self.kind, footer.num_docs, footer.window);
        (self.kind == Kind::Dense).then(|| after as usize - CODES)
    }

    /// Has the codes of a dense term fetched.
    pub(crate) fn fetch_codes(&self, bytes: &[u8], footer: &Footer) {
        self.codes_at(footer).into_iter().for_each(|at| kernels::fetch(bytes, at));
    }

    /// The codes of a dense term whose record was checked; of others 0.
    pub(crate) fn codes(&self, bytes: &[u8], footer: &Footer) -> [u8; CODES] {
        let codes = self.codes_at(footer).and_then(|at| slice(bytes, at, CODES).first_chunk().copied());
        codes.unwrap_or_default()
    }

    /// Whether the record fits the file.
    pub(crate) fn is_valid(&self, footer: &Footer) -> bool {
        let max_ok = match self.kind {
            Kind::Plain => true,
            _ => (1..=0x7BFF).contains(&self.max),
        };
        max_ok
            && self.df >= 1
            && self.df <= footer.num_docs
            && self.escapes <= self.df
            && self.blob >= HEADER_BYTES as u64
            && self
                .blob
                .checked_add(self.blob_bytes(footer.num_docs, footer.window))
                .is_some_and(|end| end <= footer.postings_end)
    }
}

/// A document, and where the ids of a segment's sparse terms have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) doc: DocId,
    pub(crate) window: u32,
    /// In the window.
    pub(crate) id: u16,
    /// Share of the window's documents before it, of 65,536.
    pub(crate) share: u32,
}

/// Borrowed postings of one term. Positions count from 0 to `df`, ascending by document.
#[derive(Clone, Copy)]
pub(crate) struct Postings<'a> {
    pub(crate) kind: Kind,
    pub(crate) df: u32,
    pub(crate) scale: Scale,
    pub(crate) window: u32,
    num_docs: u32,
    /// Plain: the pairs. Rare, sparse: documents or ids. Dense: the bitmap.
    pub(crate) docs: &'a [u8],
    /// Sparse: windows. Dense: regions.
    pub(crate) directory: &'a [u8],
    /// Dense only, as the three that follow.
    pub(crate) levels: &'a [u8],
    pub(crate) ranks: &'a [u8],
    pub(crate) codes: [u8; CODES],
    pub(crate) impacts: &'a [u8],
    /// Place of `impacts` in the file: kernels read past their end.
    pub(crate) impacts_at: usize,
    /// Rare: weights as half bits.
    pub(crate) residuals: &'a [u8],
    escape_positions: &'a [u8],
    escape_weights: &'a [u8],
}

impl<'a> Postings<'a> {
    /// View of a validated record's blob.
    pub(crate) fn new(
        bytes: &'a [u8],
        footer: &Footer,
        ResolvedTerm { record, codes }: &ResolvedTerm,
    ) -> Self {
        let (df, escapes) = (record.df as usize, record.escapes as usize);
        let mut at = record.blob as usize;
        let mut take = |len: usize| {
            let part = slice(bytes, at, len);
            at += len;
            part
        };
        let (directory, docs, impacts, residuals);
        let (mut levels, mut ranks) = (&[][..], &[][..]);
        let before = match record.kind {
            Kind::Sparse => u64::from(record.df) * 2,
            _ => 0,
        };
        let impacts_at =
            record.blob + Record::directory_bytes(record.kind, footer.num_docs, footer.window) + before;
        match record.kind {
            Kind::Plain => {
                (directory, docs, impacts, residuals) = (&[][..], take(df * 8), &[][..], &[][..]);
            }
            Kind::Rare => {
                docs = take(df * 4);
                (directory, impacts, residuals) = (&[][..], &[][..], take(df * 2));
            }
            Kind::Sparse => {
                directory = take((footer.num_docs.div_ceil(footer.window) as usize + 1) * 4);
                docs = take(df * 2);
                impacts = take(df);
                residuals = take(df);
            }
            Kind::Dense => {
                let chunks = footer.num_docs.div_ceil(CHUNK) as usize;
                levels = take(chunks * CHUNK_LEVELS);
                docs = take(chunks * CHUNK_BITMAP);
                ranks = take(chunks * 16);
                directory = take(footer.num_docs.div_ceil(REGION) as usize * 4);
                take(CODES);
                impacts = take(df);
                residuals = take(df);
            }
        }
        let escape_positions = take(escapes * 4);
        let escape_weights = take(escapes * 2);
        Self {
            kind: record.kind,
            df: record.df,
            scale: Scale::new(record.max.max(1)),
            window: footer.window,
            num_docs: footer.num_docs,
            docs,
            directory,
            levels,
            ranks,
            codes: *codes,
            impacts,
            impacts_at: impacts_at as usize,
            residuals,
            escape_positions,
            escape_weights,
        }
    }

    /// Weight of the posting at a position.
    #[inline]
    pub(crate) fn weight_at(&self, position: usize) -> f32 {
        match self.kind {
            Kind::Plain => f32::from_bits(u32_at(self.docs, position * 8 + 4)),
            Kind::Rare => half_value(u16_at(self.residuals, position * 2)),
            Kind::Sparse | Kind::Dense => {
                let residual = self.residuals.get(position).copied().unwrap_or(ESCAPE);
                if residual == ESCAPE {
                    return self.escaped_weight(position);
                }
                self.scale.restore(self.impacts.get(position).copied().unwrap_or(1), residual)
            }
        }
    }

    /// Where to look for a document.
    pub(crate) fn place(&self, doc: DocId) -> Place {
        let (window, id) = (doc / self.window, doc % self.window);
        let documents = self.num_docs.saturating_sub(window * self.window).clamp(1, self.window);
        Place { doc, window, id: id as u16, share: ((u64::from(id) << 16) / u64::from(documents)) as u32 }
    }

    /// Has what [`Self::find_all`] reads fetched, as far as it is known where that is.
    #[inline]
    pub(crate) fn fetch_places(&self, places: &[Place]) {
        // In sparse lists the search of all documents read a moment ago.
        if self.kind == Kind::Dense {
            for Place { doc, .. } in places {
                kernels::fetch(self.docs, *doc as usize / 8);
                kernels::fetch(self.ranks, (doc / RANKED) as usize * 2);
            }
        }
    }

    /// Writes the positions of some documents' postings, and has what [`Self::weight_at`] reads of them fetched.
    pub(crate) fn find_all(&self, places: &[Place], positions: &mut [Option<u32>]) {
        let (docs, directory) = (self.docs, self.directory);
        match self.kind {
            Kind::Dense => kernels::chosen().find_dense(docs, self.ranks, directory, places, positions),
            Kind::Sparse => kernels::chosen().find_sparse(docs, directory, places, positions),
            Kind::Plain | Kind::Rare => {
                for (place, position) in places.iter().zip(&mut *positions) {
                    *position = self.find(place.doc).map(|at| at as u32);
                }
            }
        }
        for position in positions.iter().flatten().map(|position| *position as usize) {
            kernels::fetch(self.impacts, position);
            kernels::fetch(self.residuals, if self.kind == Kind::Rare { position * 2 } else { position });
        }
    }

    /// Has the postings of a sparse term in one window fetched.
    pub(crate) fn fetch_window(&self, window: usize) {
        let range = self.window_range(window);
        (range.start * 2..range.end * 2).step_by(64).for_each(|at| kernels::fetch(self.docs, at));
        range.step_by(64).for_each(|at| kernels::fetch(self.impacts, at));
    }

    fn escaped_weight(&self, position: usize) -> f32 {
        let count = self.escape_weights.len() / 2;
        let at = partition_point(count, |i| (u32_at(self.escape_positions, i * 4) as usize) < position);
        half_value(u16_at(self.escape_weights, at * 2))
    }

    /// 8-bit impact of a posting (rare postings compute it).
    #[inline]
    pub(crate) fn impact_at(&self, position: usize) -> u8 {
        match self.kind {
            Kind::Plain => 255,
            Kind::Rare => self.scale.impact(u16_at(self.residuals, position * 2)),
            Kind::Sparse | Kind::Dense => self.impacts.get(position).copied().unwrap_or(1),
        }
    }

    /// Positions of a sparse term in one window.
    #[inline]
    pub(crate) fn window_range(&self, window: usize) -> std::ops::Range<usize> {
        let end = (u32_at(self.directory, window * 4 + 4) as usize).min(self.df as usize);
        let start = (u32_at(self.directory, window * 4) as usize).min(end);
        start..end
    }

    #[inline]
    pub(crate) fn id_at(&self, position: usize) -> u16 {
        u16_at(self.docs, position * 2)
    }

    #[inline]
    pub(crate) fn rare_doc_at(&self, position: usize) -> u32 {
        u32_at(self.docs, position * 4)
    }

    /// Position of a document's posting.
    #[inline]
    pub(crate) fn find(&self, doc: DocId) -> Option<usize> {
        match self.kind {
            Kind::Dense => {
                let (word, bit) = (doc as usize / 64, doc % 64);
                let bits = u64_at(self.docs, word * 8);
                (bits >> bit & 1 == 1).then(|| self.dense_rank(doc))
            }
            Kind::Sparse => {
                let mut position = [None];
                kernels::chosen().find_sparse(self.docs, self.directory, &[self.place(doc)], &mut position);
                position[0].map(|at| at as usize)
            }
            Kind::Plain | Kind::Rare => {
                let at = self.lower_bound(doc);
                (at < self.df as usize && self.doc_at(at) == doc).then_some(at)
            }
        }
    }

    /// Distance from `range.start` of the first id of a window that is not below `id`.
    fn id_lower_bound(&self, range: std::ops::Range<usize>, id: u16) -> usize {
        let ids = self.docs.get(range.start * 2..range.end * 2).unwrap_or(&[]).as_chunks::<2>().0;
        ids.partition_point(|bytes| u16::from_le_bytes(*bytes) < id)
    }

    /// Postings of a dense term before a document.
    #[inline]
    pub(crate) fn dense_rank(&self, doc: DocId) -> usize {
        let ranked = (doc / RANKED) as usize;
        let before = match self.docs.get(ranked * 16..).and_then(<[u8]>::first_chunk) {
            Some(bits) => kernels::chosen().rank(bits, doc % RANKED),
            None => 0,
        };
        let region = u32_at(self.directory, (doc / REGION) as usize * 4);
        region as usize + usize::from(u16_at(self.ranks, ranked * 2)) + before as usize
    }

    /// Document at a position of a plain or rare term.
    fn doc_at(&self, position: usize) -> DocId {
        if self.kind == Kind::Plain { u32_at(self.docs, position * 8) } else { self.rare_doc_at(position) }
    }

    /// First position whose document is at or after `doc`.
    pub(crate) fn lower_bound(&self, doc: DocId) -> usize {
        match self.kind {
            Kind::Plain => partition_point(self.df as usize, |i| u32_at(self.docs, i * 8) < doc),
            Kind::Rare => partition_point(self.df as usize, |i| self.rare_doc_at(i) < doc),
            Kind::Sparse => {
                let range = self.window_range((doc / self.window) as usize);
                if range.is_empty() && (doc / self.window) as usize + 1 >= self.directory.len() / 4 {
                    return self.df as usize;
                }
                let id = (doc % self.window) as u16;
                range.start + self.id_lower_bound(range.clone(), id)
            }
            Kind::Dense => {
                if doc as usize / 8 >= self.docs.len() {
                    return self.df as usize;
                }
                self.dense_rank(doc)
            }
        }
    }

    /// Calls `each(document, position)` for the postings in `start..end`, ascending.
    #[inline]
    pub(crate) fn for_range(&self, start: DocId, end: DocId, mut each: impl FnMut(DocId, usize)) {
        if start >= end {
            return;
        }
        match self.kind {
            Kind::Plain | Kind::Rare => {
                for position in self.lower_bound(start)..self.df as usize {
                    let doc = self.doc_at(position);
                    if doc >= end {
                        return;
                    }
                    each(doc, position);
                }
            }
            Kind::Sparse => {
                let last = self.directory.len() / 4;
                for window in (start / self.window) as usize..(end.div_ceil(self.window) as usize).min(last) {
                    let base = window as u32 * self.window;
                    let range = self.window_range(window);
                    let first = if base < start { self.lower_bound(start) } else { range.start };
                    for position in first..range.end {
                        let doc = base.saturating_add(u32::from(self.id_at(position)));
                        if doc >= end {
                            return;
                        }
                        each(doc, position);
                    }
                }
            }
            Kind::Dense => {
                let first = start as usize / 64;
                let mut position = self.lower_bound(start);
                for word in first..(end as usize).div_ceil(64).min(self.docs.len() / 8) {
                    let mut bits = u64_at(self.docs, word * 8);
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
        if self.kind == Kind::Dense {
            let first = start as usize / 64;
            for (i, word) in bits.iter_mut().enumerate().take((end as usize).div_ceil(64) - first) {
                *word |= u64_at(self.docs, (first + i) * 8);
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
