//! Searches for the documents whose best object has the highest score of a sparse clause: the pruned top-k runs over the objects, and
//! each document is found by its best one.

use tantivy::{DocAddress, TERMINATED};

use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use crate::query::kinds::{nested, only_scoring, semantic};
use crate::query::search::sparse_search::SparsePlan;
use crate::query::search::top_docs::TopCollector;
use crate::query::{ScoredDoc, SearchOptions, TopDocs, TotalHits};
use crate::snapshot::Snapshot;
use sparrow_query::{NestedQuery, NestedScore, Query, QueryKind};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::stoppable::stops_after;
use sparrow_segments::segment_docs::SegmentDocs;

/// A `nested` clause that scores by the best object, with clauses that only restrict the documents.
struct NestedPlan<'q> {
    clause: &'q NestedQuery,
    boost: f32,
    filters: Vec<&'q Query>,
    excluded: Vec<&'q Query>,
}

impl<'q> NestedPlan<'q> {
    /// Recognises such a clause alone, and a `bool` of which it is the only scoring clause and must match; `None` for other queries.
    fn find(query: &'q Query) -> Result<Option<Self>, QueryError> {
        match &query.kind {
            QueryKind::Nested(clause) => {
                let is_sparse =
                    clause.score_mode == NestedScore::Max && SparsePlan::find(&clause.query)?.is_some();
                let (filters, excluded) = (Vec::new(), Vec::new());
                // A boost of 0 leaves no order that scores could be pruned by.
                Ok((is_sparse && query.boost > 0.0).then_some(Self {
                    clause,
                    boost: query.boost,
                    filters,
                    excluded,
                }))
            }
            QueryKind::Bool(tree) => {
                let Some(inner) = only_scoring(tree)? else { return Ok(None) };
                let Some(mut plan) = Self::find(inner)? else { return Ok(None) };
                plan.boost *= query.boost;
                plan.filters.extend(&tree.filter);
                plan.excluded.extend(&tree.must_not);
                Ok((plan.boost > 0.0).then_some(plan))
            }
            _ => Ok(None),
        }
    }
}

impl Snapshot {
    /// Searches for a nested sparse clause that scores by the best object; `None` if the query is another.
    pub(super) fn search_nested(
        &self,
        query: &Query,
        compiler: &mut Compiler<'_>,
        options: &SearchOptions,
    ) -> Result<Option<TopDocs>, QueryError> {
        let Some(plan) = NestedPlan::find(query)? else { return Ok(None) };
        // Which documents have an object of a least score only the scores of all tell.
        if options.min_score.is_some() && options.track_total_hits != TotalHits::Off {
            return Ok(None);
        }
        let before = compiler.clauses();
        compiler.count_clause()?;
        let restricting = plan.filters.into_iter().chain(&options.post_filter);
        let allowed = compiler.filter_docs(restricting, plan.excluded)?;
        let is_restricted = allowed.iter().any(|docs| !matches!(docs, SegmentDocs::All));
        let restricted = is_restricted.then(|| self.keeping(&allowed));
        let searched = restricted.as_ref().unwrap_or(self);
        let Some(view) = nested::view(plan.clause, searched)? else {
            return Ok(Some(TopCollector::new(0).finish(0, options.track_total_hits)));
        };
        let matched = match options.track_total_hits {
            TotalHits::Off => 0,
            TotalHits::UpTo(limit) => searched.count_until(plan.clause, limit.saturating_add(1), compiler)?,
            TotalHits::Exact => searched.count_until(plan.clause, u64::MAX, compiler)?,
        };
        let mut inner = (*plan.clause.query).clone();
        inner.boost *= plan.boost;
        let Some(of_objects) = SparsePlan::find(&inner)? else { return Ok(None) };
        let ords = 0..self.segments().len() as u32;
        let blocks: Vec<_> = ords.map(|ord| self.blocks(&view, ord)).collect();
        let document = |hit: &ScoredDoc| {
            let of_segment = blocks[hit.addr.segment_ord as usize].as_ref();
            let document = of_segment.map_or(TERMINATED, |blocks| blocks.document_around(hit.addr.doc_id));
            DocAddress::new(hit.addr.segment_ord, document)
        };
        let best = semantic::best_of_each(usize::MAX, options.size, document, |depth| {
            let mut inside = compiler.inside(&view);
            let (track_total_hits, post_filter) = (TotalHits::Off, None);
            let options = SearchOptions { size: depth, track_total_hits, post_filter, ..options.clone() };
            let found = of_objects.search(&view, &mut inside, &options).map_err(Some)?;
            compiler.executors.note(inside.executors.noted());
            found.map(|top| top.hits).ok_or(None)
        });
        let best = match best {
            Ok(best) => best,
            Err(Some(error)) => return Err(error),
            // Every match has to be scored in the ordinary way.
            Err(None) => {
                compiler.restore_clauses(before);
                return Ok(None);
            }
        };
        let mut top = TopCollector::new(options.size);
        best.iter().for_each(|hit| top.offer(document(hit), hit.score, || hit.seq_no));
        Ok(Some(top.finish(matched, options.track_total_hits)))
    }

    /// Number of documents that match a nested clause, exact up to `limit`.
    fn count_until(
        &self,
        clause: &NestedQuery,
        limit: u64,
        compiler: &Compiler<'_>,
    ) -> Result<u64, QueryError> {
        let weight = compiler.inside(self).compile_kind(&QueryKind::Nested(clause.clone()), false)?;
        let mut matched = 0;
        for (reader, segment) in self.searcher().segment_readers().iter().zip(self.segments()) {
            let mut scorer = weight.scorer(reader, 1.0)?;
            while scorer.doc() != TERMINATED && matched < limit && !stops_after(1) {
                matched += u64::from(segment.is_live(scorer.doc()));
                scorer.advance();
            }
            compiler.check_cancelled()?;
        }
        Ok(matched)
    }

    /// This snapshot with only the documents visible that are in `docs`, one set for each segment, and were visible before.
    fn keeping(&self, docs: &Docs) -> Self {
        let segments = self.segments().iter().enumerate();
        let kept = segments.map(|(ord, segment)| {
            let live: Vec<u64> = self.live_words_from(ord, &docs[ord], 0).collect();
            segment.with_live(Some(live.into()))
        });
        self.with_live(kept.collect())
    }
}
