//! Documents of a segment that contain all of several terms, anywhere or as a phrase.
//!
//! The rarest term leads, and the others are only looked up in its documents. A document that cannot be among the
//! best by what is known so far is skipped before that; positions are read last.

use tantivy::{DocId, TERMINATED};

use crate::clause::Clause;
use crate::least_score;
use crate::list::Cursor;
use crate::positions::Positions;

/// Amount of work between two checks of whether the search is to continue: documents looked up in a list, plus
/// positions read. Takes well under a millisecond.
const PAUSE: usize = 1 << 16;

/// Receiver of matching documents, which also says which ones are wanted.
pub trait Hits {
    /// Whether a document may be a hit: it is live and passes the filters.
    fn wants(&self, doc: DocId) -> bool;
    /// Lowest score that is wanted: documents below are neither shown nor counted. May rise from call to call, never
    /// fall.
    fn least(&self) -> f32;
    /// Receives a matching document and its score.
    fn take(&mut self, doc: DocId, score: f32);
    /// Whether the search is to continue.
    fn goes_on(&self) -> bool;
}

/// Periodic check of whether a search is to continue.
struct Pace {
    until_pause: usize,
    goes_on: bool,
}

impl Pace {
    fn new() -> Self {
        Self { until_pause: PAUSE, goes_on: true }
    }

    /// Counts `work` units; returns whether the search is to continue.
    #[inline]
    fn goes_on(&mut self, work: usize, hits: &impl Hits) -> bool {
        if self.until_pause > work {
            self.until_pause -= work;
        } else {
            self.until_pause = PAUSE;
            self.goes_on &= hits.goes_on();
        }
        self.goes_on
    }
}

/// A term of the query with a cursor in its posting list.
struct Part<'a> {
    clause: Clause<'a>,
    cursor: Cursor<'a>,
}

impl<'a> Part<'a> {
    fn new(clause: Clause<'a>) -> Self {
        let cursor = Cursor::new(clause.list);
        Self { clause, cursor }
    }

    fn score(&mut self, doc: DocId) -> f32 {
        self.clause.score(doc, self.cursor.count())
    }
}

/// Finds documents that contain all terms in any positions; their score is the sum of the terms' scores.
pub fn anywhere(mut clauses: Vec<Clause<'_>>, hits: &mut impl Hits) {
    // Scores are added in this order, as tantivy's intersections do.
    clauses.sort_by_key(|clause| clause.list.doc_freq());
    let others: f32 = clauses.iter().skip(1).map(|clause| clause.weight).sum();
    let mut parts: Vec<Part<'_>> = clauses.into_iter().map(Part::new).collect();
    let Some((lead, rest)) = parts.split_first_mut() else { return };
    aligned(
        lead,
        rest,
        hits,
        |lead, doc, least| lead.score(doc) + others >= least,
        |lead, rest, doc, _, _, _| {
            let first = lead.score(doc);
            let Some((second, rest)) = rest.split_first_mut() else { return Some(first) };
            let both = first + second.score(doc);
            Some(both + rest.iter_mut().map(|part| part.score(doc)).sum::<f32>())
        },
    );
}

/// A term of a phrase.
pub struct Place<'a> {
    /// The term's list; its weight is that of the whole phrase.
    pub clause: Clause<'a>,
    pub positions: Positions<'a>,
    /// Position that the analyzer gave the term in the text of the phrase. Only differences between terms count: the first need not
    /// be 0, as where a stop word before it was left out.
    pub offset: u32,
}

/// Finds documents that contain the terms as a phrase, which is scored like a single term.
pub fn phrase(mut places: Vec<Place<'_>>, hits: &mut impl Hits) {
    places.sort_by_key(|place| place.clause.list.doc_freq());
    let end = places.iter().map(|place| place.offset).max().unwrap_or(0);
    let mut positions = Vec::with_capacity(places.len());
    let mut parts = Vec::with_capacity(places.len());
    for place in places {
        positions.push((end - place.offset, place.positions));
        parts.push(Part::new(place.clause));
    }
    let (mut starts, mut others) = (Vec::new(), Vec::new());
    let Some((lead, rest)) = parts.split_first_mut() else { return };
    aligned(
        lead,
        rest,
        hits,
        // It is no more frequent than its rarest term.
        |lead, doc, least| lead.score(doc) >= least,
        |lead, rest, doc, least, pace, hits| {
            let counts = rest.iter_mut().map(|part| part.cursor.count());
            let most = counts.fold(lead.cursor.count(), u32::min);
            if least > 0.0 && lead.clause.score(doc, most) < least {
                return None;
            }
            let (shift, read) = positions.first_mut()?;
            read.read(lead.cursor.positions_before(), lead.cursor.count(), *shift, &mut starts);
            for (part, (shift, read)) in rest.iter_mut().zip(&mut positions[1..]) {
                let count = part.cursor.count();
                if !pace.goes_on(count as usize, hits) {
                    return None;
                }
                read.read(part.cursor.positions_before(), count, *shift, &mut others);
                keep_common(&mut starts, &others);
                if starts.is_empty() {
                    return None;
                }
            }
            Some(lead.clause.score(doc, starts.len() as u32))
        },
    );
}

/// Keeps in `some` only what is also in `others`; both are ascending.
fn keep_common(some: &mut Vec<u32>, others: &[u32]) {
    let mut others = others.iter().peekable();
    some.retain(|one| {
        while others.next_if(|other| *other < one).is_some() {}
        others.next_if_eq(&one).is_some()
    });
}

/// Visits the documents that contain the terms of all parts.
fn aligned<'a, H: Hits>(
    lead: &mut Part<'a>,
    rest: &mut [Part<'a>],
    hits: &mut H,
    mut may_reach: impl FnMut(&mut Part<'a>, DocId, f32) -> bool,
    mut score: impl FnMut(&mut Part<'a>, &mut [Part<'a>], DocId, f32, &mut Pace, &H) -> Option<f32>,
) {
    let mut pace = Pace::new();
    let mut least = hits.least();
    let mut doc = lead.cursor.seek(0);
    'documents: while doc != TERMINATED {
        if !pace.goes_on(1, hits) {
            return;
        }
        if least > 0.0 && !may_reach(lead, doc, least_score(least, 0.0)) {
            doc = lead.cursor.seek(doc + 1);
            continue;
        }
        for (sought, part) in (1..).zip(&mut *rest) {
            let found = part.cursor.seek(doc);
            if found == TERMINATED {
                return;
            }
            if found != doc {
                doc = lead.cursor.seek(found);
                if !pace.goes_on(sought, hits) {
                    return;
                }
                continue 'documents;
            }
        }
        if hits.wants(doc)
            && let Some(score) = score(lead, rest, doc, least_score(least, 0.0), &mut pace, hits)
            && score >= least
        {
            hits.take(doc, score);
            least = hits.least();
        }
        if !pace.goes_on(rest.len(), hits) {
            return;
        }
        doc = lead.cursor.seek(doc + 1);
    }
}
