//! Texts with known upper bounds on their scores: a sum of clauses, or the best of several sums, as for
//! `multi_match` and for `dis_max` over texts.
//!
//! With several, a document's score is that of its best clause plus a share of the others'. A document that
//! reaches a given score has a clause that reaches nearly as much alone. So each clause is walked with that
//! as its minimum score, and the others are only looked up for the documents it finds.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tantivy::{DocId, SegmentReader};

use crate::query::compile::Compiler;
use crate::query::search::document_at_a_time::{BLOCK, DocumentAtATime};
use crate::query::search::max_score::{MaxScoreDisjunction, ROUNDING, RequiredBitsets};
use crate::query::search::window_at_a_time::{Source, WINDOW};
use crate::query::search::words::Word;
use sparrow_query::{BoolQuery, DisMaxQuery, Query, QueryKind};
use sparrow_runtime::Executor;
use sparrow_scoring::error::QueryError;
use sparrow_segments::segment_docs::SegmentDocs;

/// Highest number of sums: each is walked beside all others, so the cost grows with the square of their
/// number.
const MAX_SUMS: usize = 8;

/// Highest number of clauses whose terms are looked up to see which of them match anything.
const MAX_QUERIES: usize = 64;

/// Sums of clause scores, of which the best counts; or a single sum.
pub(crate) struct DisMaxOfSums {
    sums: Vec<MaxScoreDisjunction>,
    tie_breaker: f32,
    /// Whether a document must match one of the sums. For a single sum, see its own required clauses.
    required: bool,
}

impl Compiler<'_> {
    /// Splits a `bool` of `must` and `should` into sums; `None` when the upper bound of one of its clauses is
    /// not known.
    pub(crate) fn dis_max_of_sums(&mut self, query: &Query) -> Result<Option<DisMaxOfSums>, QueryError> {
        if let Some(sum) = self.max_score(query)? {
            return Ok(Some(DisMaxOfSums {
                required: sum.has_required(),
                sums: vec![sum],
                tie_breaker: 0.0,
            }));
        }
        let QueryKind::Bool(tree) = &query.kind else { return Ok(None) };
        let (clause, required) = match (&tree.must[..], &tree.should[..]) {
            ([clause], []) => (clause, true),
            ([], [clause]) => (clause, false),
            _ => return Ok(None),
        };
        let (queries, tie_breaker) = match &clause.kind {
            QueryKind::DisMax(DisMaxQuery { queries, tie_breaker }) => (queries.clone(), *tie_breaker),
            QueryKind::MultiMatch(text) => match self.fields_of(text)? {
                Some(found) => found,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let boost = query.boost * clause.boost;
        // Where only one query can match anything, a sum of its clauses takes the place of the best of all.
        let instead = |only: &Query| {
            let only = vec![only.clone()];
            let (must, should) = if required { (only, Vec::new()) } else { (Vec::new(), only) };
            let alone = QueryKind::Bool(BoolQuery { must, should, ..BoolQuery::default() });
            Query::new(alone).with_boost(boost)
        };
        if let [only] = &queries[..] {
            return self.dis_max_of_sums(&instead(only));
        }
        if queries.len() > MAX_QUERIES {
            return Ok(None);
        }
        let before = self.clauses();
        let mut found = Vec::with_capacity(queries.len().min(MAX_SUMS));
        for query in &queries {
            let alone = BoolQuery { must: vec![query.clone()], ..BoolQuery::default() };
            match self.max_score(&Query::new(QueryKind::Bool(alone)).with_boost(boost))? {
                // A query without documents decides nothing. With `*`, most of the fields have none of the words.
                Some(sum) if sum.is_empty() => {}
                Some(sum) if found.len() < MAX_SUMS => found.push((query, sum)),
                _ => {
                    self.restore_clauses(before);
                    return Ok(None);
                }
            }
        }
        if found.len() > 1 {
            let sums = found.into_iter().map(|(_, sum)| sum).collect();
            return Ok(Some(DisMaxOfSums { sums, tie_breaker, required }));
        }
        self.restore_clauses(before);
        match found.first().map(|(only, _)| *only).or(queries.first()) {
            Some(only) => self.dis_max_of_sums(&instead(only)),
            None => Ok(None),
        }
    }
}

impl DisMaxOfSums {
    /// Whether a document must match some of the clauses.
    pub(crate) fn has_required(&self) -> bool {
        self.required
    }

    /// The algorithm with which [`Self::walk`] visits the documents.
    pub(crate) fn executor(&self) -> Executor {
        match &self.sums[..] {
            [_] => Executor::MaxScoreDisjunction,
            _ => Executor::DisjunctionMax,
        }
    }

    /// The words of each sum, if each is a text any of whose words may match, and only the best sum counts;
    /// `None` for other texts.
    pub(crate) fn words(&self) -> Option<Vec<Vec<&Word>>> {
        if self.sums.len() > 1 && (!self.required || self.tie_breaker != 0.0) {
            return None;
        }
        self.sums.iter().map(|sum| sum.words().map(Iterator::collect)).collect()
    }

    /// Whether documents can be skipped: with a single term none can, unless its posting lists are read
    /// directly (`words.rs`).
    pub(crate) fn passes_over(&self) -> bool {
        self.sums.len() > 1
            || self.words().is_some_and(|words| words.iter().any(|words| !words.is_empty()))
            || self.sums.iter().any(MaxScoreDisjunction::has_several_terms)
    }

    /// Whether the required clauses match a large share of all documents; see
    /// [`MaxScoreDisjunction::is_broad`].
    pub(crate) fn is_broad(&self, num_docs: u64) -> bool {
        match &self.sums[..] {
            [sum] => sum.is_broad(num_docs),
            sums => !self.required || sums.iter().any(|sum| sum.is_broad(num_docs)),
        }
    }

    /// Documents of a segment that match every required clause.
    pub(crate) fn required_docs(&self, reader: &SegmentReader) -> Result<SegmentDocs, QueryError> {
        match &self.sums[..] {
            [sum] => sum.required_docs(reader),
            _ if self.required => self.any_docs(reader),
            _ => Ok(SegmentDocs::All),
        }
    }

    /// Documents of a segment that match any clause.
    pub(crate) fn any_docs(&self, reader: &SegmentReader) -> Result<SegmentDocs, QueryError> {
        MaxScoreDisjunction::any_docs(&self.sums, reader)
    }

    /// Starts a bitmap, filled on demand, of the documents that match every required clause.
    pub(crate) fn required_marks(&self, reader: &SegmentReader) -> Result<RequiredBitsets, QueryError> {
        match &self.sums[..] {
            [sum] => sum.required_marks(reader),
            sums => RequiredBitsets::of_any(if self.required { sums } else { &[] }, reader),
        }
    }

    /// Prepares to look up documents of a segment, in ascending order.
    pub(crate) fn look_up<'c>(
        &self,
        reader: &SegmentReader,
        cancel: Option<&'c AtomicBool>,
    ) -> Result<LookUp<'c>, QueryError> {
        let walks = self.sums.iter().map(|sum| sum.walk(reader, cancel));
        Ok(LookUp { walks: walks.collect::<Result<_, _>>()?, tie_breaker: self.tie_breaker })
    }

    /// Calls `offer` once for each document of a segment that may reach the score `least`, with its score, in
    /// no particular order. `least` may rise with every offer, but must not fall.
    pub(crate) fn walk(
        &self,
        reader: &SegmentReader,
        cancel: Option<&AtomicBool>,
        wanted: impl Fn(DocId) -> bool,
        least: impl Fn() -> f32,
        mut offer: impl FnMut(DocId, f32),
    ) -> Result<(), QueryError> {
        if let [sum] = &self.sums[..] {
            let mut walk = sum.walk(reader, cancel)?;
            while let Some((doc, score)) = walk.next(least(), &wanted) {
                offer(doc, score);
            }
            return Ok(());
        }
        let share = self.share();
        for leading in 0..self.sums.len() {
            let mut lookup = self.look_up(reader, cancel)?;
            while let Some((doc, score)) = lookup.walks[leading].next(least() * share, &wanted) {
                let mut scores = [None; MAX_SUMS];
                for (at, (clause_score, walk)) in scores.iter_mut().zip(&mut lookup.walks).enumerate() {
                    *clause_score = if at == leading { Some(score) } else { walk.score(doc) };
                }
                // Found again, or found before, where another clause is the best.
                let better = |(at, clause_score): (usize, &Option<f32>)| {
                    clause_score.is_some_and(|clause_score| {
                        clause_score > score || (clause_score == score && at < leading)
                    })
                };
                if !scores.iter().enumerate().any(better) {
                    offer(doc, combine(scores, self.tie_breaker).unwrap_or(score));
                }
            }
        }
        Ok(())
    }

    /// Walks the documents of a segment a window at a time, as [`DocumentAtATime::windows`] does.
    pub(crate) fn windows(
        &self,
        reader: &SegmentReader,
        cancel: Option<&AtomicBool>,
        least: impl Fn() -> f32,
        needed: impl Fn(DocId) -> f32,
        wanted: impl Fn(DocId) -> bool,
        mut offer: impl FnMut(DocId, f32),
    ) -> Result<(), QueryError> {
        if let [sum] = &self.sums[..] {
            return sum.walk(reader, cancel)?.windows(sum, reader, least, needed, wanted, offer);
        }
        let share = self.share();
        let mut all = self.look_up(reader, cancel)?;
        let mut windows = Vec::with_capacity(self.sums.len());
        for (sum, walk) in self.sums.iter().zip(&all.walks) {
            windows.push(Window::new(sum, walk, reader)?);
        }
        for start in (0..reader.max_doc()).step_by(WINDOW as usize) {
            if cancel.is_some_and(|flag| flag.load(Relaxed)) {
                return Ok(());
            }
            let least = least() * share;
            let docs = WINDOW.min(reader.max_doc() - start) as usize;
            let mut ended = true;
            for (window, walk) in windows.iter_mut().zip(&mut all.walks) {
                window.fill(walk, start, docs, least);
                ended &= window.ended;
            }
            if ended {
                return Ok(());
            }
            for first in (0..docs).step_by(BLOCK) {
                if !windows.iter().any(|window| window.reaches(first, window.floor)) {
                    continue;
                }
                let place = start + first as DocId;
                let needed_here = needed(place) * share;
                if !windows.iter().any(|window| window.may_reach(first, needed_here)) {
                    continue;
                }
                for at in first..docs.min(first + BLOCK) {
                    let doc = start + at as DocId;
                    let needed = needed(place) * share;
                    if windows.iter().any(|window| window.may_reach_at(at, needed))
                        && wanted(doc)
                        && let Some(score) = all.complete(doc, &windows, at, needed)
                    {
                        offer(doc, score);
                    }
                }
            }
        }
        Ok(())
    }

    /// Smallest share of a document's score that its best clause contributes, less the rounding error of all
    /// sums.
    fn share(&self) -> f32 {
        let most = 1.0 + self.tie_breaker.max(0.0) * (self.sums.len() - 1) as f32;
        (1.0 - 2.0 * ROUNDING) / most
    }
}

/// Looks up scores of single documents, which must ascend from call to call.
pub(crate) struct LookUp<'c> {
    walks: Vec<DocumentAtATime<'c>>,
    tie_breaker: f32,
}

impl LookUp<'_> {
    /// Score of a document; `None` if no clause matches it.
    pub(crate) fn score(&mut self, doc: DocId) -> Option<f32> {
        if let [walk] = &mut self.walks[..] {
            return walk.score(doc);
        }
        combine(self.walks.iter_mut().map(|walk| walk.score(doc)), self.tie_breaker)
    }

    /// Score of a document whose partial scores are known from the windows; `None` if no clause alone reaches
    /// `needed`.
    fn complete(&mut self, doc: DocId, windows: &[Window], at: usize, needed: f32) -> Option<f32> {
        let mut scores = [None; MAX_SUMS];
        for ((score, walk), window) in scores.iter_mut().zip(&mut self.walks).zip(windows) {
            if window.may_reach_at(at, needed) {
                *score = walk.complete(doc, window.sums[at], needed);
            }
        }
        if scores.iter().all(Option::is_none) {
            return None;
        }
        // Of clauses that give less, only a share counts.
        if self.tie_breaker != 0.0 {
            for (score, walk) in scores.iter_mut().zip(&mut self.walks).filter(|(score, _)| score.is_none()) {
                *score = walk.score(doc);
            }
        }
        combine(scores, self.tie_breaker)
    }
}

/// The best score plus `tie_breaker` times each of the others; `None` if no clause matches.
fn combine(scores: impl IntoIterator<Item = Option<f32>>, tie_breaker: f32) -> Option<f32> {
    let (mut most, mut sum) = (None, 0.0);
    for score in scores.into_iter().flatten() {
        most = Some(f32::max(most.unwrap_or(0.0), score));
        sum += score;
    }
    // Of infinite scores there is no share.
    most.map(|most| if most.is_finite() { most + (sum - most) * tie_breaker } else { most })
}

/// Scores of one of several sums over a window of documents.
struct Window {
    sources: Vec<Source>,
    /// Each document's score from the essential parts of the sum, up to rounding.
    sums: Vec<f32>,
    /// Upper bound on the score from the remaining parts.
    inessential_bound: f32,
    /// Partial score below which a document cannot qualify, whatever the remaining parts add.
    floor: f32,
    /// Whether no document of this or a later window can reach the wanted score by this sum.
    ended: bool,
}

impl Window {
    fn new(
        sum: &MaxScoreDisjunction,
        walk: &DocumentAtATime<'_>,
        reader: &SegmentReader,
    ) -> Result<Self, QueryError> {
        let sources = walk.order.iter().map(|part| sum.source(*part, reader)).collect::<Result<_, _>>()?;
        let sums = vec![0.0; WINDOW as usize];
        Ok(Self { sources, sums, inessential_bound: 0.0, floor: f32::INFINITY, ended: false })
    }

    fn fill(&mut self, walk: &mut DocumentAtATime<'_>, start: DocId, docs: usize, least: f32) {
        while walk.below.get(walk.essential).is_some_and(|bound| *bound < least) {
            walk.essential += 1;
        }
        self.ended = walk.essential == self.sources.len();
        self.sums.fill(0.0);
        if self.ended {
            self.floor = f32::INFINITY;
            return;
        }
        let sums = &mut self.sums[..docs.next_multiple_of(BLOCK)];
        self.sources[walk.essential..].iter_mut().for_each(|source| source.add(start, sums));
        self.inessential_bound = walk.essential.checked_sub(1).map_or(0.0, |place| walk.below[place]);
        // Above 0, by what the essential parts are.
        self.floor = (least - self.inessential_bound).max(f32::MIN_POSITIVE);
    }

    /// Whether any document of the block that starts at `first` has a partial score of at least `floor`.
    fn reaches(&self, first: usize, floor: f32) -> bool {
        self.sums[first..first + BLOCK].iter().fold(0, |any, sum| any | u32::from(*sum >= floor)) != 0
    }

    /// Whether any document of the block that starts at `first` can have a score of at least `needed`.
    fn may_reach(&self, first: usize, needed: f32) -> bool {
        self.reaches(first, self.floor.max(needed - self.inessential_bound))
    }

    fn may_reach_at(&self, at: usize, needed: f32) -> bool {
        self.sums[at] >= self.floor.max(needed - self.inessential_bound)
    }
}
