//! Scores single documents term by term, so that their cache misses overlap.

use sparrow_runtime::DocId;

use crate::kernels::{Bitmap, fetch};

/// A document that is being scored.
pub(super) struct Scored {
    pub(super) doc: DocId,
    /// Sum of the terms seen so far, in quantisation units.
    pub(super) sum: u16,
    /// Upper bound of what the remaining terms can add; 0 if the caller does not track it per document.
    pub(super) rest: u16,
    /// Position of the document's impact of the term that is being added; [`NOWHERE`] if it lacks the term.
    place: u32,
}

const NOWHERE: u32 = u32::MAX;

impl Scored {
    pub(super) fn new(doc: DocId, sum: u16, rest: u16) -> Self {
        Self { doc, sum, rest, place: NOWHERE }
    }
}

/// A dense term as [`add_term`] needs it.
#[derive(Clone, Copy)]
pub(super) struct AddedTerm<'a> {
    pub(super) bitmap: Bitmap<'a>,
    pub(super) impacts: &'a [u8],
    pub(super) factor: u16,
}

/// Adds a term to the sums of documents, and drops those for which `stays(document, whether it has the term)`
/// is false. Prefetches what finding the `next` term reads.
pub(super) fn add_term(
    documents: &mut Vec<Scored>,
    term: AddedTerm<'_>,
    next: Option<&Bitmap<'_>>,
    mut stays: impl FnMut(&mut Scored, bool) -> bool,
) {
    next.inspect(|next| next.fetch_regions());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_added_to_the_documents_that_have_it_and_those_that_do_not_stay_are_dropped() {
        // Documents 1, 9 and 130; there are two groups of 128.
        let mut bits = [0; 32];
        (bits[0], bits[1], bits[16]) = (0b10, 0b10, 0b100);
        let bitmap = Bitmap { bits: &bits, ranks: &[0, 0, 2, 0], regions: &[0; 4] };
        let term = |impacts| AddedTerm { bitmap, impacts, factor: 512 };
        let listed = || -> Vec<Scored> { [1, 2, 9, 130].map(|doc| Scored::new(doc, 5, doc as u16)).into() };
        let sums = |documents: &[Scored]| -> Vec<_> {
            documents.iter().map(|scored| (scored.doc, scored.sum, scored.rest)).collect()
        };
        let mut documents = listed();
        add_term(&mut documents, term(&[10, 20, 30]), Some(&bitmap), |scored, has| {
            scored.rest += u16::from(has);
            scored.doc != 9
        });
        assert_eq!(sums(&documents), [(1, 25, 2), (2, 5, 2), (130, 65, 131)]);
        // Impacts that damage took away count nothing.
        let mut documents = listed();
        add_term(&mut documents, term(&[10]), None, |_, has| has);
        assert_eq!(sums(&documents), [(1, 25, 1), (9, 5, 9), (130, 5, 130)]);
    }
}
