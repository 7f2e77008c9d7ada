//! Single documents that are scored term by term, so that what is read of them is fetched for all at once.

use sparrow_types::DocId;

use crate::kernels::{Bitmap, fetch};

/// A document that is being scored.
pub(super) struct Scored {
    pub(super) doc: DocId,
    /// Of the terms so far, in units.
    pub(super) sum: u16,
    /// What the others can add, if the caller keeps that by document.
    pub(super) rest: u16,
    /// Where the impact of the term is that is being added; [`NOWHERE`]: it has none.
    place: u32,
}

const NOWHERE: u32 = u32::MAX;

impl Scored {
    pub(super) fn new(doc: DocId, sum: u16, rest: u16) -> Self {
        Self { doc, sum, rest, place: NOWHERE }
    }
}

/// A dense term that is added to documents.
#[derive(Clone, Copy)]
pub(super) struct AddedTerm<'a> {
    pub(super) bitmap: Bitmap<'a>,
    pub(super) impacts: &'a [u8],
    pub(super) factor: u16,
}

/// Adds a term to the sums of documents, and drops those for which `stays(document, whether it has the term)` is false. What
/// finding the `next` term reads is fetched.
pub(super) fn add_term(
    documents: &mut Vec<Scored>,
    term: AddedTerm<'_>,
    next: Option<&Bitmap<'_>>,
    mut stays: impl FnMut(&mut Scored, bool) -> bool,
) {
    for scored in &mut *documents {
        scored.place = term.bitmap.find(scored.doc).unwrap_or(NOWHERE);
        if scored.place != NOWHERE {
            fetch(term.impacts, scored.place as usize);
        }
        next.inspect(|next| next.fetch(scored.doc));
    }
    documents.retain_mut(|scored| {
        let has = scored.place != NOWHERE;
        if has {
            let impact = u32::from(term.impacts.get(scored.place as usize).copied().unwrap_or(0));
            scored.sum = scored.sum.wrapping_add(((impact * u32::from(term.factor)) >> 8) as u16);
        }
        stays(scored, has)
    });
}
