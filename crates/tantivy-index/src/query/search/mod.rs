//! Searches of a snapshot: the best hits over all segments, and the number of all hits.

pub(super) mod conjunction;
pub mod dis_max;
pub(super) mod document_at_a_time;
pub(super) mod hits;
pub(super) mod max_score;
mod nested_search;
pub mod sorted;
pub(super) mod sparse_search;
pub(super) mod text_search;
pub(super) mod top_docs;
pub(super) mod unit;
pub(super) mod window_at_a_time;
pub(super) mod words;

use std::sync::atomic::AtomicBool;

use tantivy::query::Scorer;
use tantivy::{DocAddress, DocId, TERMINATED};

use crate::query::compile::Compiler;
use crate::query::kinds::semantic;
use crate::query::search::sparse_search::SparsePlan;
use crate::query::search::top_docs::TopCollector;
use crate::query::{SearchOptions, TopDocs, TotalHits};
use crate::segment_snapshot::SegmentSnapshot;
use crate::snapshot::Snapshot;
use sparrow_query::{Query, QueryKind};
use sparrow_runtime::{Executor, SeqNo, work};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::stoppable::has_stopped;
use sparrow_segments::doc_bits::next_in;
use sparrow_segments::segment_docs::SegmentDocs;

/// Number of documents between two checks of the cancel flag.
const CANCEL_INTERVAL: u32 = 4096;

impl Snapshot {
    /// Finds the best hits of a query.
    ///
    /// Hits come highest score first, equal scores by sequence number, so that neither hits nor total depend
    /// on segments, merges or threads.
    ///
    /// # Errors
    /// When a clause does not fit its field, the search is cancelled or the index cannot be read.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<TopDocs, QueryError> {
        let mut compiler = Compiler::new(self, options.cancel.as_deref());
        let bound = semantic::bound(query, self.mapping())?;
        let mut top = self.search_bound(bound.as_ref().unwrap_or(query), &mut compiler, options)?;
        top.executors = compiler.executors.noted();
        Ok(top)
    }

    /// Searches with a query whose clauses on `semantic_text` fields are already bound to the mapping;
    /// `compiler` records the executors.
    fn search_bound(
        &self,
        query: &Query,
        compiler: &mut Compiler<'_>,
        options: &SearchOptions,
    ) -> Result<TopDocs, QueryError> {
        if !self.of_document
            && let Some(top) = self.search_all(query, compiler, options)?
        {
            is_over(compiler, options)?;
            return Ok(top);
        }
        let allowed = compiler.filter_docs(&options.post_filter, [])?;
        let weight = compiler.compile(query, true)?;
        compiler.executors.note(Executor::DocumentAtATime);
        let mut top = TopCollector::new(options.size);
        let mut matched = 0;
        for (ord, allowed) in (0..).zip(&allowed) {
            if is_over(compiler, options)? {
                break;
            }
            let reader = self.searcher().segment_reader(ord);
            let mut segment = SegmentSearch {
                segment: self.segment(ord),
                ord,
                allowed,
                min_score: options.min_score,
                cancel: options.cancel.as_deref(),
                partial: options.partial,
                few: self.segment(ord).live().filter(|_| self.of_document),
            };
            if segment.few.is_some_and(|few| next_in(few, 0) == TERMINATED) {
                continue;
            }
            let mut scorer = weight.scorer(reader, 1.0)?;
            matched += segment.run(&mut *scorer, &mut top)?;
        }
        // Scores that are computed end early when the search is cancelled.
        is_over(compiler, options)?;
        compiler.score_errors().check()?;
        Ok(top.finish(matched, options.track_total_hits))
    }

    /// Searches by a method that is faster where very many documents may match; `None` if no such method fits the query.
    fn search_all(
        &self,
        query: &Query,
        compiler: &mut Compiler<'_>,
        options: &SearchOptions,
    ) -> Result<Option<TopDocs>, QueryError> {
        if let Some(plan) = SparsePlan::find(query)?
            && let Some(top) = plan.search(self, compiler, options)?
        {
            return Ok(Some(top));
        }
        if let Some(top) = self.search_nested(query, compiler, options)? {
            return Ok(Some(top));
        }
        // All words and phrases, then any words: each leaves to the next what it does not know.
        if let Some(top) = self.search_words(query, compiler, options)? {
            compiler.executors.note(Executor::Conjunction);
            return Ok(Some(top));
        }
        if let Some(top) = self.search_text(query, compiler, options)? {
            return Ok(Some(top));
        }
        if options.size == 0 && options.min_score.is_none() {
            let docs = compiler.filter_docs([query].into_iter().chain(&options.post_filter), [])?;
            compiler.executors.note(Executor::Bitset);
            let matched = docs.iter().enumerate().map(|(ord, docs)| self.count_live(ord, docs)).sum();
            return Ok(Some(TopCollector::new(0).finish(matched, options.track_total_hits)));
        }
        Ok(None)
    }

    /// Number of live documents that match.
    ///
    /// # Errors
    /// As [`Snapshot::search`].
    pub fn count(&self, query: &Query) -> Result<u64, QueryError> {
        let options =
            SearchOptions { size: 0, track_total_hits: TotalHits::Exact, ..SearchOptions::default() };
        self.search(query, &options).map(|top| top.total)
    }

    /// The live documents that match, one bitset per segment, for [`Snapshot::scan_matching`] and
    /// [`Snapshot::scan_all`].
    ///
    /// # Errors
    /// As [`Snapshot::search`].
    pub fn matching(&self, query: &Query) -> Result<Vec<Vec<u64>>, QueryError> {
        self.matching_until(query, None)
    }

    /// Like [`Snapshot::matching`], but ends early when `cancel` is set.
    ///
    /// # Errors
    /// As [`Snapshot::search`]; [`QueryError::Cancelled`] soon after the flag is set.
    pub fn matching_until(
        &self,
        query: &Query,
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Vec<u64>>, QueryError> {
        let mut compiler = Compiler::new(self, cancel);
        let docs = compiler.matching_docs(query)?;
        // Sets of documents end early when the search is cancelled: what is not in one may match all the same.
        compiler.check_cancelled()?;
        Ok(docs.iter().enumerate().map(|(ord, docs)| self.live_words(ord, docs).collect()).collect())
    }

    /// Scores of all documents: for each segment, a score by document number, NaN for documents that do not
    /// match. Takes four bytes per document of the index; for callers that need more than the best hits.
    ///
    /// # Errors
    /// As [`Snapshot::search`].
    pub fn all_scores(
        &self,
        query: &Query,
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Vec<f32>>, QueryError> {
        let mut compiler = Compiler::new(self, cancel);
        let weight = compiler.compile(query, true)?;
        let mut all = Vec::with_capacity(self.segments().len());
        for (reader, segment) in self.searcher().segment_readers().iter().zip(self.segments()) {
            compiler.check_cancelled()?;
            work::room_for(size_of::<f32>() * reader.max_doc() as usize)?;
            let mut scores = vec![f32::NAN; reader.max_doc() as usize];
            let mut scorer = weight.scorer(reader, 1.0)?;
            let mut doc = scorer.doc();
            while doc != TERMINATED {
                if doc % CANCEL_INTERVAL == 0 {
                    compiler.check_cancelled()?;
                }
                // Objects of nested fields may lack what a function needs, whose error would end the scores of all.
                if segment.is_live(doc) {
                    scores[doc as usize] = scorer.score();
                }
                doc = scorer.advance();
            }
            all.push(scores);
        }
        compiler.check_cancelled()?;
        Ok(all)
    }

    /// Bitmap words of the documents of a set that are live.
    fn live_words<'a>(&'a self, ord: usize, docs: &'a SegmentDocs) -> impl Iterator<Item = u64> + 'a {
        self.live_words_from(ord, docs, 0)
    }

    /// Bitmap words of the documents of a set that are live, from word number `first` on.
    pub(crate) fn live_words_from<'a>(
        &'a self,
        ord: usize,
        docs: &'a SegmentDocs,
        first: usize,
    ) -> impl Iterator<Item = u64> + 'a {
        let max_doc = self.searcher().segment_reader(ord as u32).max_doc();
        let live = self.segment(ord as u32).live();
        let docs = docs.words();
        (first..max_doc.div_ceil(64) as usize).map(move |word| {
            let of = |words: Option<&[u64]>| match words {
                None => u64::MAX,
                Some(words) => words.get(word).copied().unwrap_or(0),
            };
            // No document lies behind the last.
            let docs_left = max_doc - word as u32 * 64;
            of(docs) & of(live) & if docs_left < 64 { (1 << docs_left) - 1 } else { u64::MAX }
        })
    }

    /// Number of documents of a set that are live.
    pub(super) fn count_live(&self, ord: usize, docs: &SegmentDocs) -> u64 {
        match (docs, self.segment(ord as u32).live()) {
            (SegmentDocs::None, _) => 0,
            (SegmentDocs::All, None) => u64::from(self.searcher().segment_reader(ord as u32).max_doc()),
            _ => self.live_words(ord, docs).map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// The next `batch` matching documents after a sequence number, in sequence order.
    ///
    /// Evaluates the query anew; for many batches keep the result of [`Snapshot::matching`].
    ///
    /// # Errors
    /// As [`Snapshot::search`].
    pub fn scan(
        &self,
        query: &Query,
        after: Option<SeqNo>,
        batch: usize,
    ) -> Result<Vec<(SeqNo, DocAddress)>, QueryError> {
        if query.kind == QueryKind::MatchAll {
            return Ok(self.scan_matching(None, after, batch));
        }
        Ok(self.scan_matching(Some(&self.matching(query)?), after, batch))
    }
}

/// Whether a search ends here and returns the hits found so far.
///
/// # Errors
/// [`QueryError::Cancelled`] if the search is cancelled and may not return a part.
pub(super) fn is_over(compiler: &Compiler<'_>, options: &SearchOptions) -> Result<bool, QueryError> {
    match compiler.check_cancelled() {
        Err(QueryError::Cancelled) if options.partial => Ok(true),
        checked => checked.map(|()| false),
    }
}

/// A search of one segment that visits every match.
struct SegmentSearch<'a> {
    segment: &'a SegmentSnapshot,
    ord: u32,
    allowed: &'a SegmentDocs,
    min_score: Option<f32>,
    cancel: Option<&'a AtomicBool>,
    partial: bool,
    /// The visible documents where they are few: those between them are not looked at.
    few: Option<&'a [u64]>,
}

impl SegmentSearch<'_> {
    /// Moves a scorer at `doc` on to the first match from there on that is among the few, if they are few.
    fn settle(&self, scorer: &mut dyn Scorer, mut doc: DocId) -> DocId {
        let Some(few) = self.few else { return doc };
        while doc != TERMINATED {
            match next_in(few, doc) {
                next if next == doc => break,
                TERMINATED => return TERMINATED,
                next => doc = scorer.seek(next),
            }
        }
        doc
    }

    /// The match after `doc`.
    fn next(&self, scorer: &mut dyn Scorer, doc: DocId) -> DocId {
        match self.few.map(|few| next_in(few, doc + 1)) {
            None => scorer.advance(),
            Some(TERMINATED) => TERMINATED,
            Some(next) => {
                let doc = scorer.seek(next);
                self.settle(scorer, doc)
            }
        }
    }

    /// Offers every hit to `top`, and returns their number.
    fn run(&mut self, scorer: &mut dyn Scorer, top: &mut TopCollector) -> Result<u64, QueryError> {
        let mut matched = 0;
        let mut until_poll = CANCEL_INTERVAL;
        let first = scorer.doc();
        let mut doc = self.settle(scorer, first);
        while doc != TERMINATED {
            until_poll -= 1;
            // A clause that ended early excludes nothing any more.
            let mut stops = has_stopped();
            if until_poll == 0 {
                until_poll = CANCEL_INTERVAL;
                stops |= self.cancel.is_some_and(|flag| flag.load(std::sync::atomic::Ordering::Relaxed));
            }
            if stops {
                return if self.partial { Ok(matched) } else { Err(QueryError::Cancelled) };
            }
            if self.segment.is_live(doc) && self.allowed.contains(doc) {
                let score = scorer.score();
                if self.min_score.is_none_or(|least| score >= least) {
                    matched += 1;
                    let addr = DocAddress::new(self.ord, doc);
                    top.offer(addr, score, || self.segment.seq_no(doc));
                }
            }
            doc = self.next(scorer, doc);
        }
        Ok(matched)
    }
}
