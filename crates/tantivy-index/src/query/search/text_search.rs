//! Searches for texts with known upper bounds on their scores ([`DisMaxOfSums`]), possibly restricted by
//! filters.
//!
//! Hits are counted from posting lists, one stretch of documents after the other until the limit is reached,
//! and found by a walk that skips documents which cannot be among the best: no score is computed just to
//! count a hit. Words alone are searched for in their posting lists (`words.rs`), other texts by a walk over
//! scorers.

use std::cell::RefCell;

use tantivy::DocAddress;

use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use crate::query::kinds::required_should;
use crate::query::search::dis_max::DisMaxOfSums;
use crate::query::search::is_over;
use crate::query::search::top_docs::TopCollector;
use crate::query::search::words::BestOfTexts;
use crate::query::{SearchOptions, TopDocs, TotalHits};
use crate::snapshot::Snapshot;
use sparrow_lexical::least_score;
use sparrow_query::{BoolQuery, Query, QueryKind};
use sparrow_runtime::Executor;
use sparrow_scoring::error::QueryError;
use sparrow_segments::segment_docs::SegmentDocs;

/// Number of documents counted at a time, a multiple of 64.
const STRETCH: u32 = 1 << 13;

/// A text query and the clauses that restrict it.
struct TextPlan<'q> {
    scoring: Query,
    filters: &'q [Query],
    excluded: &'q [Query],
}

impl<'q> TextPlan<'q> {
    fn find(query: &'q Query) -> Result<Option<Self>, QueryError> {
        let scoring =
            |must, should| Query::new(QueryKind::Bool(BoolQuery { must, should, ..BoolQuery::default() }));
        match &query.kind {
            QueryKind::Match(_)
            | QueryKind::MultiMatch(_)
            | QueryKind::DisMax(_)
            | QueryKind::QueryString(_)
            | QueryKind::SimpleQueryString(_) => Ok(Some(Self {
                scoring: scoring(vec![query.clone()], Vec::new()),
                filters: &[],
                excluded: &[],
            })),
            QueryKind::Bool(tree) => {
                let (mut must, mut should) = (tree.must.clone(), tree.should.clone());
                match required_should(tree)? {
                    0 => {}
                    1 => must.push(scoring(Vec::new(), std::mem::take(&mut should))),
                    _ => return Ok(None),
                }
                if must.len() != 1 {
                    // Intersections of several clauses skip by themselves; without any all are hits.
                    return Ok(None);
                }
                let scoring = scoring(must, should).with_boost(query.boost);
                Ok(Some(Self { scoring, filters: &tree.filter, excluded: &tree.must_not }))
            }
            _ => Ok(None),
        }
    }
}

impl Snapshot {
    /// Runs a search for a text; `None` for queries that it does not apply to.
    pub(crate) fn search_text(
        &self,
        query: &Query,
        compiler: &mut Compiler<'_>,
        options: &SearchOptions,
    ) -> Result<Option<TopDocs>, QueryError> {
        // Counting hits above a least score takes every score.
        if options.size == 0 || options.min_score.is_some() {
            return Ok(None);
        }
        let Some(plan) = TextPlan::find(query)? else { return Ok(None) };
        let before = compiler.clauses();
        let Some(texts) = compiler.dis_max_of_sums(&plan.scoring)?.filter(DisMaxOfSums::passes_over) else {
            compiler.restore_clauses(before);
            return Ok(None);
        };
        let wanted = plan.filters.iter().chain(&options.post_filter);
        let allowed = compiler.filter_docs(wanted, plan.excluded)?;
        let matched = self.count_required(compiler, &texts, &allowed, options)?;
        let mut top = TopCollector::new(options.size);
        let mut by_words = texts.words().map(|words| BestOfTexts::new(words, options.size));
        let mut order: Vec<u32> = (0..self.segments().len() as u32).collect();
        // What the largest finds spares the others work.
        order.sort_by_key(|ord| std::cmp::Reverse(self.searcher().segment_reader(*ord).max_doc()));
        for ord in order {
            if is_over(compiler, options)? {
                break;
            }
            let allowed = &allowed[ord as usize];
            if matches!(allowed, SegmentDocs::None) {
                continue;
            }
            if let Some(by_words) = &mut by_words {
                compiler.executors.note(Executor::BlockMaxMaxScore);
                by_words.search(self, ord, compiler, allowed);
                continue;
            }
            compiler.executors.note(texts.executor());
            let segment = self.segment(ord);
            let reader = self.searcher().segment_reader(ord);
            let wanted = |doc| allowed.contains(doc) && segment.is_live(doc);
            let top = RefCell::new(&mut top);
            let least = || least_score(top.borrow().threshold(), 0.0);
            texts.walk(reader, compiler.cancel(), wanted, least, |doc, score| {
                top.borrow_mut().offer(DocAddress::new(ord, doc), score, || segment.seq_no(doc));
            })?;
        }
        // A walk ends early when the search is over.
        is_over(compiler, options)?;
        let top = by_words.map_or(top, BestOfTexts::finish);
        Ok(Some(top.finish(matched, options.track_total_hits)))
    }

    /// Number of live, allowed documents that match all required clauses: exact up to the limit in the
    /// options, otherwise any number above it.
    pub(crate) fn count_required(
        &self,
        compiler: &Compiler<'_>,
        texts: &DisMaxOfSums,
        allowed: &Docs,
        options: &SearchOptions,
    ) -> Result<u64, QueryError> {
        let limit = match options.track_total_hits {
            TotalHits::Off => return Ok(0),
            TotalHits::UpTo(limit) => limit,
            TotalHits::Exact => u64::MAX,
        };
        let mut matched = 0;
        for (ord, allowed) in allowed.iter().enumerate() {
            let reader = self.searcher().segment_reader(ord as u32);
            if matches!(allowed, SegmentDocs::None) {
                continue;
            }
            let mut marks = texts.required_marks(reader)?;
            for start in (0..reader.max_doc()).step_by(STRETCH as usize) {
                compiler.check_cancelled()?;
                let words = marks.stretch(start..reader.max_doc().min(start + STRETCH));
                let first = (start / 64) as usize;
                let live = self.live_words_from(ord, allowed, first);
                matched += words.zip(live).map(|(a, b)| u64::from((a & b).count_ones())).sum::<u64>();
                if matched > limit {
                    return Ok(matched);
                }
            }
        }
        Ok(matched)
    }
}
