//! Searching a snapshot: all segments, best hits first, with the number of all hits.

use std::sync::atomic::AtomicBool;

use sparrow_types::SeqNo;
use tantivy::{DocAddress, TERMINATED};

use super::ast::{Query, QueryKind, SearchOptions, TopDocs, TotalHits};
use super::bits::DocBits;
use super::compile::Compiler;
use super::error::QueryError;
use super::knn::filter_bits;
use super::sparse_search::SparsePlan;
use super::top_docs::TopCollector;
use crate::snapshot::{SegmentSnapshot, Snapshot};

/// Documents between two looks at the cancel flag.
const CANCEL_INTERVAL: u32 = 4096;

impl Snapshot {
    /// Finds the best hits of a query.
    ///
    /// Hits come highest score first, equal scores by sequence number, so that a result does not
    /// depend on segments, merges or threads. Neither does its total.
    ///
    /// # Errors
    /// When a clause does not fit its field, the search is cancelled or the index cannot be read.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<TopDocs, QueryError> {
        let mut compiler = Compiler::new(self, options.cancel.as_deref());
        let post_filter = compiler.compile_filters(&options.post_filter)?;
        if let Some(plan) = SparsePlan::find(query)? {
            let found = plan.search(self, &mut compiler, &post_filter, options)?;
            if let Some(top) = found {
                return Ok(top);
            }
        }
        if query.kind == QueryKind::MatchAll && options.size == 0 && post_filter.is_empty() {
            let found = options.min_score.is_none_or(|least| query.boost >= least);
            let matched = if found { self.num_docs() } else { 0 };
            return Ok(TopCollector::new(0).finish(matched, options.track_total_hits));
        }
        let scoring = options.size > 0 || options.min_score.is_some();
        let weight = compiler.compile(query, scoring)?;
        let mut top = TopCollector::new(options.size);
        let mut matched = 0;
        for ord in 0..self.segments().len() as u32 {
            compiler.check_cancelled()?;
            let reader = self.searcher().segment_reader(ord);
            let allowed = filter_bits(&post_filter, &[], reader)?;
            let mut segment = SegmentSearch {
                segment: self.segment(ord),
                ord,
                allowed: allowed.as_ref(),
                min_score: options.min_score,
                cancel: options.cancel.as_deref(),
            };
            let mut scorer = weight.scorer(reader, 1.0)?;
            matched += segment.run(&mut *scorer, &mut top, scoring)?;
        }
        Ok(top.finish(matched, options.track_total_hits))
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
        let mut compiler = Compiler::new(self, None);
        let weight = compiler.compile(query, false)?;
        let mut sets = Vec::with_capacity(self.segments().len());
        for (reader, segment) in self.searcher().segment_readers().iter().zip(self.segments()) {
            let mut scorer = weight.scorer(reader, 1.0)?;
            let mut words = DocBits::from_docset(&mut scorer, reader.max_doc()).words().to_vec();
            if let Some(live) = segment.live() {
                for (index, word) in words.iter_mut().enumerate() {
                    *word &= live.get(index).copied().unwrap_or(0);
                }
            }
            sets.push(words);
        }
        Ok(sets)
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

/// Looks at every match of one segment.
struct SegmentSearch<'a> {
    segment: &'a SegmentSnapshot,
    ord: u32,
    allowed: Option<&'a DocBits>,
    min_score: Option<f32>,
    cancel: Option<&'a AtomicBool>,
}

impl SegmentSearch<'_> {
    /// Offers all hits and returns their number.
    fn run(
        &mut self,
        scorer: &mut dyn tantivy::query::Scorer,
        top: &mut TopCollector,
        scoring: bool,
    ) -> Result<u64, QueryError> {
        let mut matched = 0;
        let mut until_poll = CANCEL_INTERVAL;
        let mut doc = scorer.doc();
        while doc != TERMINATED {
            until_poll -= 1;
            if until_poll == 0 {
                until_poll = CANCEL_INTERVAL;
                if self.cancel.is_some_and(|flag| flag.load(std::sync::atomic::Ordering::Relaxed)) {
                    return Err(QueryError::Cancelled);
                }
            }
            if self.segment.is_live(doc) && self.allowed.is_none_or(|bits| bits.contains(doc)) {
                let score = if scoring { scorer.score() } else { 0.0 };
                if self.min_score.is_none_or(|least| score >= least) {
                    matched += 1;
                    let addr = DocAddress::new(self.ord, doc);
                    top.offer(addr, score, || self.segment.seq_no(doc));
                }
            }
            doc = scorer.advance();
        }
        Ok(matched)
    }
}
