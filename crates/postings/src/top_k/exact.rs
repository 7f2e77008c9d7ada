//! Exact scores of single documents.

use sparrow_runtime::DocId;

use super::search::Clause;
use crate::layout::{Place, Posting};

/// Documents that are scored together.
const DOCS: usize = 16;
/// Number of searched documents up to which the candidates' bitmap lines are assumed to be still cached:
/// prefetching them again saves 2% of a search of a million documents, and costs 2% with 100,000.
const STILL_CACHED: u64 = 1 << 18;
/// Terms per pass over the documents that are scored together.
const TERMS: usize = 32;

/// Calls `each(document, score summed in query order, whether it shares a term)` for documents of which
/// nothing may have been read so far.
pub(super) fn for_each_score(clauses: &[Clause<'_>], docs: &[DocId], mut each: impl FnMut(DocId, f32, bool)) {
    let segment = std::iter::once((0, clauses, docs));
    for_each_in(segment, true, |_, doc, score, shares| each(doc, score, shares));
}

/// Scores candidates of several segments, each given as its number, clauses and documents: `each(segment,
/// document, score)`. A search of `searched` documents has already read the candidates' bitmaps.
pub(super) fn for_each_candidate<'c, 'a: 'c>(
    segments: impl Iterator<Item = (usize, &'c [Clause<'a>], &'c [DocId])>,
    searched: u64,
    mut each: impl FnMut(usize, DocId, f32),
) {
    for_each_in(segments, searched > STILL_CACHED, |segment, doc, score, _| each(segment, doc, score));
}

fn for_each_in<'c, 'a: 'c>(
    segments: impl Iterator<Item = (usize, &'c [Clause<'a>], &'c [DocId])>,
    fetches: bool,
    mut each: impl FnMut(usize, DocId, f32, bool),
) {
    let mut batch = Batch { parts: Vec::new(), places: Vec::with_capacity(DOCS), fetches };
    for (segment, clauses, docs) in segments {
        let mut rest = docs;
        while !rest.is_empty() {
            let now;
            (now, rest) = rest.split_at(rest.len().min(DOCS - batch.places.len()));
            batch.push(segment, clauses, now);
            if batch.places.len() == DOCS {
                batch.score(&mut each);
            }
        }
    }
    batch.score(&mut each);
}

/// Documents of one or several segments that are scored together.
struct Batch<'c, 'a> {
    /// Per segment: its number, its clauses, and the end of its documents in `places`.
    parts: Vec<(usize, &'c [Clause<'a>], usize)>,
    places: Vec<Place>,
    /// Whether to prefetch what finding a posting reads.
    fetches: bool,
}

impl<'c, 'a> Batch<'c, 'a> {
    fn push(&mut self, segment: usize, clauses: &'c [Clause<'a>], docs: &[DocId]) {
        let Some(first) = clauses.first() else { return };
        self.places.extend(docs.iter().map(|doc| first.postings.place(*doc)));
        self.parts.push((segment, clauses, self.places.len()));
    }

    /// Scores the documents and clears the batch. In three passes, each over all documents and terms, so that
    /// cache misses overlap: what finding a posting reads is prefetched (if `fetches`), postings are found
    /// and their weights prefetched, and the scores are added up.
    fn score(&mut self, each: &mut impl FnMut(usize, DocId, f32, bool)) {
        let mut postings_found = [Posting::default(); DOCS * TERMS];
        let mut scores = [(0.0_f32, false); DOCS];
        let terms = self.parts.iter().map(|(_, clauses, _)| clauses.len()).max().unwrap_or(0);
        for first in (0..terms).step_by(TERMS) {
            if self.fetches {
                self.for_each_part(first, |_, clauses, places, _| {
                    clauses.iter().for_each(|clause| clause.postings.fetch_places(places));
                });
            }
            let mut count = 0;
            self.for_each_part(first, |part, clauses, places, at| {
                for (term, Clause { postings, .. }) in clauses.iter().enumerate() {
                    let place = ((part * TERMS + term) * DOCS + at) as u32;
                    count += postings.find_all(places, place, &mut postings_found[count..]);
                }
            });
            // One list for all clauses: how many documents have which is not to be foretold.
            let clause = |of: usize| &self.parts[of / DOCS / TERMS].1[first + of / DOCS % TERMS];
            for Posting { of, position } in &postings_found[..count] {
                clause(*of as usize).postings.fetch_weight(*position as usize);
            }
            for Posting { of, position } in &postings_found[..count] {
                let Clause { postings, weight, .. } = clause(*of as usize);
                let (score, shares) = &mut scores[*of as usize % DOCS];
                *score += weight * postings.weight_at(*position as usize);
                *shares = true;
            }
        }
        let mut start = 0;
        for (segment, _, end) in self.parts.drain(..) {
            for (place, (score, shares)) in self.places[start..end].iter().zip(&scores[start..end]) {
                each(segment, place.doc, *score, *shares);
            }
            start = end;
        }
        self.places.clear();
    }

    /// Calls `each(index of the part, clauses, places, index of its first place)` for all parts, with at most
    /// [`TERMS`] of the part's clauses, from `first` on.
    fn for_each_part(&self, first: usize, mut each: impl FnMut(usize, &[Clause<'a>], &[Place], usize)) {
        let mut start = 0;
        for (part, (_, clauses, end)) in self.parts.iter().enumerate() {
            let some = first.min(clauses.len())..clauses.len().min(first + TERMS);
            each(part, &clauses[some], &self.places[start..*end], start);
            start = *end;
        }
    }
}
