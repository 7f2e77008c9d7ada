//! Exact scores of single documents.

use sparrow_types::DocId;

use super::pruned::Clause;

/// Documents scored at a time.
const DOCS: usize = 16;
/// Terms of them at a time.
const TERMS: usize = 32;
/// Position of a document without the term.
const NONE: u32 = u32::MAX;

/// Calls `each(document, score summed in query order, whether it shares a term)`.
pub(super) fn for_each_score(clauses: &[Clause<'_>], docs: &[DocId], mut each: impl FnMut(DocId, f32, bool)) {
    let mut found = [(0_f32, false); DOCS];
    let mut wanted: [(&[Clause<'_>], DocId); DOCS] = [(clauses, 0); DOCS];
    for docs in docs.chunks(DOCS) {
        wanted.iter_mut().zip(docs).for_each(|(wanted, doc)| wanted.1 = *doc);
        score(&wanted[..docs.len()], &mut found);
        docs.iter().zip(found).for_each(|(doc, (score, shares))| each(*doc, score, shares));
    }
}

/// The same for documents of several segments, each with its segment's clauses: `each(place, score)`.
pub(super) fn for_each_score_of(wanted: &[(&[Clause<'_>], DocId)], mut each: impl FnMut(usize, f32)) {
    let mut found = [(0_f32, false); DOCS];
    for (at, wanted) in wanted.chunks(DOCS).enumerate() {
        score(wanted, &mut found);
        (at * DOCS..).zip(&found[..wanted.len()]).for_each(|(place, (score, _))| each(place, *score));
    }
}

/// Scores a few documents: first everything that finding a posting reads is fetched, then all are found
/// and their weights fetched, so that the cache misses of documents and terms overlap.
fn score(wanted: &[(&[Clause<'_>], DocId)], found: &mut [(f32, bool); DOCS]) {
    let mut positions = [[NONE; TERMS]; DOCS];
    found.fill((0.0, false));
    let terms = wanted.iter().map(|(clauses, _)| clauses.len()).max().unwrap_or(0);
    for first in (0..terms).step_by(TERMS) {
        let some = |clauses: &'_ [Clause<'_>]| first.min(clauses.len())..clauses.len().min(first + TERMS);
        for (clauses, doc) in wanted {
            clauses[some(clauses)].iter().for_each(|clause| clause.postings.fetch_place(*doc));
        }
        for ((clauses, doc), positions) in wanted.iter().zip(&mut positions) {
            for (Clause { postings, .. }, position) in clauses[some(clauses)].iter().zip(positions) {
                *position = NONE;
                if let Some(at) = postings.find(*doc) {
                    postings.fetch_weight(at);
                    *position = at as u32;
                }
            }
        }
        for (((clauses, _), positions), (score, shares)) in wanted.iter().zip(&positions).zip(&mut *found) {
            for (Clause { postings, weight, .. }, position) in clauses[some(clauses)].iter().zip(positions) {
                if *position != NONE {
                    *score += weight * postings.weight_at(*position as usize);
                    *shares = true;
                }
            }
        }
    }
}
