//! Searches in which a sparse clause may use the pruned top-k of the postings: alone, with clauses
//! that only restrict, or beside other scoring clauses of a `bool`.
//!
//! All of it is rank-safe: hits, order and scores are those of scoring every document.

use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

use tantivy::query::{Scorer, Weight};
use tantivy::{DocAddress, DocId, DocSet, TERMINATED};

use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use crate::query::kinds::semantic::{PassageScorer, best_documents};
use crate::query::kinds::sparse::SparseClause;
use crate::query::kinds::{only_scoring, required_should};
use crate::query::search::conjunction::Best;
use crate::query::search::is_over;
use crate::query::search::top_docs::TopCollector;
use crate::query::{SearchOptions, TopDocs, TotalHits};
use crate::snapshot::Snapshot;
use sparrow_postings::{
    ScoreBounds, SegmentSearch, SharedThreshold, SparseCursor, TopK, TopKRequest, top_k_of_segments,
};
use sparrow_query::{BoolQuery, Query, QueryKind, SparseQuery};
use sparrow_runtime::Executor;
use sparrow_scoring::error::QueryError;
use sparrow_segments::doc_bits::DocBits;
use sparrow_segments::segment_docs::SegmentDocs;

/// Number of best sparse matches that are found first when other clauses add to the scores: the more there
/// are, the lower the bound on the rest.
///
/// Tests look at few documents: with as many as in production no bound would ever come into play.
const UNION_DEPTH: usize = if cfg!(test) { 2 } else { 100 };
/// Number of documents between two checks of the cancel flag.
const CANCEL_INTERVAL: u32 = 4096;

/// A query of one sparse clause, clauses that restrict it, and possibly other scoring clauses.
pub(crate) struct SparsePlan<'q> {
    clause: &'q SparseQuery,
    boost: f32,
    filters: Vec<&'q Query>,
    excluded: Vec<&'q Query>,
    others: Option<(Query, Join)>,
}

/// What a document must match when there are other scoring clauses beside the sparse one. Each that it
/// matches adds to its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// Both the sparse clause and the others.
    Both,
    /// The sparse clause or the others, or both.
    Either,
    /// The sparse clause; the others only add to the score.
    Sparse,
    /// The other clauses; the sparse one only adds to the score.
    Others,
}

impl<'q> SparsePlan<'q> {
    /// Recognises a sparse clause alone, and a `bool` that has one among its scoring clauses; `None` for
    /// other queries.
    pub(crate) fn find(query: &'q Query) -> Result<Option<Self>, QueryError> {
        let mut plan = Self::lone(query)?;
        if plan.is_none() {
            plan = Self::conjunction(query)?;
        }
        // Bounds assume positive weights.
        Ok(plan.filter(|plan| plan.boost > 0.0))
    }

    /// Recognises a sparse clause alone, and a `bool` of which it is the only scoring clause and must match.
    fn lone(query: &'q Query) -> Result<Option<Self>, QueryError> {
        match &query.kind {
            QueryKind::Sparse(clause) => Ok(Some(Self {
                clause,
                boost: query.boost,
                filters: Vec::new(),
                excluded: Vec::new(),
                others: None,
            })),
            QueryKind::Bool(tree) => {
                let Some(inner) = only_scoring(tree)? else { return Ok(None) };
                Ok(Self::lone(inner)?.map(|plan| plan.inside(query.boost, tree)))
            }
            _ => Ok(None),
        }
    }

    /// Recognises a `bool` of which a sparse clause is one of several scoring clauses.
    fn conjunction(query: &'q Query) -> Result<Option<Self>, QueryError> {
        let QueryKind::Bool(tree) = &query.kind else { return Ok(None) };
        let required = required_should(tree)?;
        let (plan, others, join) = if let ([must], 0) = (&tree.must[..], required)
            && let Some(plan) = Self::lone(must)?
        {
            let others = BoolQuery { should: tree.should.clone(), ..BoolQuery::default() };
            (plan, others, Join::Sparse)
        } else if let (Some(place), 0) = (sparse_place(&tree.must), required)
            && let Some(plan) = Self::lone(&tree.must[place])?
        {
            let mut others =
                BoolQuery { must: tree.must.clone(), should: tree.should.clone(), ..BoolQuery::default() };
            others.must.remove(place);
            (plan, others, Join::Both)
        } else {
            let Some(place) = sparse_place(&tree.should) else { return Ok(None) };
            let Some(plan) = Self::lone(&tree.should[place])? else { return Ok(None) };
            let mut others =
                BoolQuery { must: tree.must.clone(), should: tree.should.clone(), ..BoolQuery::default() };
            others.should.remove(place);
            match (tree.must.is_empty(), required) {
                (true, 1) => (plan, others, Join::Either),
                (true, 0) => {
                    // Only filters have to match: all that they leave are hits.
                    others.must.push(Query::match_all().with_boost(0.0));
                    (plan, others, Join::Others)
                }
                (false, 0) => (plan, others, Join::Others),
                _ => return Ok(None),
            }
        };
        let mut plan = plan.inside(query.boost, tree);
        plan.others = Some((Query::new(QueryKind::Bool(others)).with_boost(query.boost), join));
        Ok(Some(plan))
    }

    /// Adds the restricting clauses and the boost of the `bool` that surrounds the plan.
    fn inside(mut self, boost: f32, tree: &'q BoolQuery) -> Self {
        self.boost *= boost;
        self.filters.extend(&tree.filter);
        self.excluded.extend(&tree.must_not);
        self
    }

    /// Runs the plan; `None` when every match has to be scored in the ordinary way instead.
    pub(crate) fn search(
        &self,
        snapshot: &Snapshot,
        compiler: &mut Compiler<'_>,
        options: &SearchOptions,
    ) -> Result<Option<TopDocs>, QueryError> {
        // A document below the least score may pass with the help of other clauses. Those that pass by the
        // sparse clause alone are only found by scoring all.
        if let Some((_, join)) = &self.others {
            let text_required = matches!(join, Join::Both | Join::Others);
            if options.size == 0 || (options.min_score.is_some() && !text_required) {
                return Ok(None);
            }
        }
        let Some(clause) = compiler.sparse_clause(self.clause)? else {
            if self.others.is_some() {
                return Ok(None);
            }
            return Ok(Some(TopCollector::new(0).finish(0, options.track_total_hits)));
        };
        // The bounds of the paths of conjunctions are those of documents, not of passages.
        if clause.passages && self.others.is_some() {
            return Ok(None);
        }
        let wanted = self.filters.iter().copied().chain(&options.post_filter);
        let allowed = compiler.filter_docs(wanted, self.excluded.iter().copied())?;
        let min_score = options.min_score.filter(|_| self.others.is_none());
        let pass =
            Pass { snapshot, clause, boost: self.boost, allowed, options, min_score, required_taken: false };
        let Some((others, join)) = &self.others else {
            let (best, matched) = pass.sparse(compiler, options.size, true, None)?;
            return Ok(Some(best.finish(matched, options.track_total_hits)));
        };
        if let Some(texts) = compiler.dis_max_of_sums(others)? {
            let (top, matched) = pass.joined_texts(compiler, &texts, *join)?;
            return Ok(Some(top.finish(matched, options.track_total_hits)));
        }
        if options.min_score.is_some() {
            return Ok(None);
        }
        let (best, matched) = pass.best(compiler, UNION_DEPTH.max(options.size), *join != Join::Both)?;
        // The total of a union is known here only if the sparse matches alone exceed the limit.
        let counted = match options.track_total_hits {
            TotalHits::Exact => *join != Join::Either,
            TotalHits::UpTo(limit) => *join != Join::Either || matched > limit,
            TotalHits::Off => true,
        };
        if !counted {
            return Ok(None);
        }
        let others = compiler.compile(others, true)?;
        let (top, others_matched) = pass.conjunction(compiler, best, &*others, *join)?;
        let matched = if matches!(join, Join::Others | Join::Both) { others_matched } else { matched };
        Ok(Some(top.finish(matched, options.track_total_hits)))
    }
}

/// A threshold lowered by the rounding error of sums, since bounds are added up in another order.
fn rounded_down(threshold: f32) -> f32 {
    threshold - threshold.abs() * 1e-5
}

/// Position of the first sparse clause in a list.
fn sparse_place(clauses: &[Query]) -> Option<usize> {
    clauses.iter().position(|clause| matches!(clause.kind, QueryKind::Sparse(_)))
}

/// One search of all segments for a sparse clause.
pub(crate) struct Pass<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) clause: SparseClause,
    pub(crate) boost: f32,
    /// For each segment, the documents that pass the restricting clauses.
    pub(crate) allowed: Docs,
    pub(crate) options: &'a SearchOptions,
    /// Lowest score that a document must reach by the sparse clause alone.
    pub(crate) min_score: Option<f32>,
    /// Whether `allowed` has been restricted to documents that match the required clauses beside the sparse
    /// one.
    pub(crate) required_taken: bool,
}

impl Pass<'_> {
    /// The `depth` best documents of the sparse clause and, if `counting`, the number of its matches, counted
    /// as far as the options ask for. If `bounds` are given, upper bounds on the scores of all other
    /// documents are stored there, for each segment.
    pub(crate) fn sparse(
        &self,
        compiler: &Compiler<'_>,
        depth: usize,
        counting: bool,
        bounds: Option<&mut [ScoreBounds]>,
    ) -> Result<(TopCollector, u64), QueryError> {
        let options = self.options;
        let mut top = TopCollector::new(depth);
        let threshold = SharedThreshold::new();
        let limit = match options.track_total_hits {
            TotalHits::Exact => u64::MAX,
            // One more than the limit tells "exactly so many" from "more".
            TotalHits::UpTo(limit) => limit.saturating_add(1),
            TotalHits::Off => 0,
        };
        let limit = if counting { limit } else { 0 };
        let mut matched = 0u64;
        let mut bounds: Vec<Option<&mut ScoreBounds>> = match bounds {
            Some(bounds) => bounds.iter_mut().map(Some).collect(),
            None => self.allowed.iter().map(|_| None).collect(),
        };
        let most = self.allowed.len();
        let (mut parts, mut ties) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let Self { snapshot, clause, boost, .. } = self;
        let terms =
            snapshot.cache().term_runs().bind(snapshot.segments(), clause.field, &clause.tokens, *boost);
        for ord in self.segments_by_size() {
            let segment = self.snapshot.segment(ord);
            if matches!(self.allowed[ord as usize], SegmentDocs::None) {
                continue;
            }
            let Some(postings) = segment.plugins().sparse(clause.field) else { continue };
            parts.push((ord, segment, postings, terms.of_segment(ord as usize)));
            ties.push(move |doc| segment.seq_no(doc));
        }
        let mut segments = Vec::with_capacity(parts.len());
        for ((ord, segment, postings, (query, terms)), tie) in parts.iter().zip(&ties) {
            let request = TopKRequest {
                query,
                k: depth,
                min_score: self.min_score,
                threshold: &threshold,
                live: segment.live(),
                filter: self.allowed[*ord as usize].words(),
                count_limit: limit.saturating_sub(matched),
                tie,
                cancel: options.cancel.as_deref(),
            };
            let Some(map) = self.clause.map(segment.plugins()) else {
                let bounds = bounds.get_mut(*ord as usize).and_then(Option::take);
                segments.push((*ord, SegmentSearch { reader: *postings, request, terms, bounds }));
                continue;
            };
            // The paths of conjunctions, which want bounds, are not taken for passages.
            if is_over(compiler, options)? {
                break;
            }
            let best = if depth > 0 { best_documents(postings, map, &request) } else { TopK::default() };
            compiler.executors.note(best.executors);
            let scorer = PassageScorer::new(SparseCursor::new(postings, query), map.clone());
            let of_segment = TopK { matched: self.count_passages(*ord, scorer, &request), ..best };
            if is_over(compiler, options)? {
                // What a search leaves behind in a segment is of no use.
                break;
            }
            matched += self.offer(&mut top, *ord, of_segment);
            if depth > 0 {
                threshold.raise(top.threshold());
            }
        }
        if segments.is_empty() || is_over(compiler, options)? {
            return Ok((top, matched));
        }
        let (ords, segments): (Vec<u32>, Vec<_>) = segments.into_iter().unzip();
        let tops = top_k_of_segments(segments);
        if !is_over(compiler, options)? {
            for (ord, of_segment) in ords.into_iter().zip(tops) {
                compiler.executors.note(of_segment.executors);
                matched += self.offer(&mut top, ord, of_segment);
            }
        }
        Ok((top, matched))
    }

    /// Offers a segment's hits to `top`, and returns the number of documents that match in the segment.
    fn offer(&self, top: &mut TopCollector, ord: u32, of_segment: TopK) -> u64 {
        let segment = self.snapshot.segment(ord);
        for (doc, score) in of_segment.hits {
            top.offer(DocAddress::new(ord, doc), score, || segment.seq_no(doc));
        }
        of_segment.matched
    }

    /// Number of documents that match by one of their passages, exact up to the limit.
    fn count_passages(&self, ord: u32, mut scorer: PassageScorer, request: &TopKRequest<'_>) -> u64 {
        let (segment, allowed) = (self.snapshot.segment(ord), &self.allowed[ord as usize]);
        let mut matched = 0;
        let mut doc = scorer.doc();
        while doc != TERMINATED && matched < request.count_limit {
            if segment.is_live(doc)
                && allowed.contains(doc)
                && request.min_score.is_none_or(|least| scorer.score() >= least)
            {
                matched += 1;
            }
            if doc.is_multiple_of(CANCEL_INTERVAL) && request.cancel.is_some_and(|flag| flag.load(Relaxed)) {
                break;
            }
            doc = scorer.advance();
        }
        matched
    }

    /// The best documents when `others` add to the scores, and the number of documents that match.
    ///
    /// A document outside the best of the sparse clause has at most the score of the last of them, so its
    /// sparse score is only looked up if the others could lift it over the threshold.
    fn conjunction(
        &self,
        compiler: &Compiler<'_>,
        best: Best,
        others: &dyn Weight,
        join: Join,
    ) -> Result<(TopCollector, u64), QueryError> {
        compiler.executors.note(Executor::SparseAndOthersDocumentAtATime);
        let Best { top: best, bounds } = best;
        // With fewer hits than wanted there are no sparse matches beside them.
        let bound = best.threshold().max(0.0);
        let mut sparse: Vec<Vec<(DocId, f32)>> = vec![Vec::new(); self.allowed.len()];
        for hit in best.into_hits() {
            sparse[hit.addr.segment_ord as usize].push((hit.addr.doc_id, hit.score));
        }
        let mut top = TopCollector::new(self.options.size);
        let mut pending: Vec<Vec<(DocId, f32)>> = Vec::with_capacity(self.allowed.len());
        let mut matched = 0;
        let mut both = Vec::new();
        for ((ord, allowed), bounds) in (0u32..).zip(&self.allowed).zip(&bounds) {
            let segment = self.snapshot.segment(ord);
            let reader = self.snapshot.searcher().segment_reader(ord);
            let mut scorer = others.scorer(reader, 1.0)?;
            let mut waiting = Vec::new();
            let first = &mut sparse[ord as usize];
            // The next document is the last in the list.
            first.sort_unstable_by_key(|(doc, _)| Reverse(*doc));
            let mut lone = Vec::new();
            let mut docs = (join == Join::Both).then(|| DocBits::empty(reader.max_doc()));
            let mut until_poll = 0;
            let mut doc = scorer.doc();
            while doc != TERMINATED {
                if until_poll == 0 {
                    compiler.check_cancelled()?;
                    until_poll = CANCEL_INTERVAL;
                }
                until_poll -= 1;
                if segment.is_live(doc) && allowed.contains(doc) {
                    matched += 1;
                    if let Some(docs) = &mut docs {
                        docs.insert(doc);
                    }
                    let score = scorer.score();
                    while let Some(passed) = first.pop_if(|(first, _)| *first < doc) {
                        lone.push(passed);
                    }
                    if let Some((_, sparse_score)) = first.pop_if(|(first, _)| *first == doc) {
                        top.offer(DocAddress::new(ord, doc), sparse_score + score, || segment.seq_no(doc));
                    } else if bound.min(bounds.most(doc)) + score >= rounded_down(top.threshold()) {
                        waiting.push((doc, score));
                    }
                }
                doc = scorer.advance();
            }
            first.append(&mut lone);
            pending.push(waiting);
            both.extend(docs.map(|docs| SegmentDocs::of(docs.into())));
        }
        if join == Join::Both {
            matched = Pass { allowed: both, clause: self.clause.clone(), ..*self }
                .sparse(compiler, 0, true, None)?
                .1;
        }
        if matches!(join, Join::Either | Join::Sparse) {
            for (ord, lone) in (0u32..).zip(sparse) {
                let segment = self.snapshot.segment(ord);
                for (doc, score) in lone {
                    top.offer(DocAddress::new(ord, doc), score, || segment.seq_no(doc));
                }
            }
        }
        for (ord, waiting) in (0u32..).zip(pending) {
            compiler.check_cancelled()?;
            let segment = self.snapshot.segment(ord);
            let mut cursor = self
                .clause
                .bind(segment.plugins(), self.boost)
                .map(|(postings, terms)| SparseCursor::new(postings, &terms));
            let bounds = &bounds[ord as usize];
            for (doc, score) in waiting {
                if bound.min(bounds.most(doc)) + score < rounded_down(top.threshold()) {
                    continue;
                }
                let sparse_score =
                    cursor.as_mut().and_then(|cursor| (cursor.seek(doc) == doc).then(|| cursor.score()));
                if sparse_score.is_some() || matches!(join, Join::Either | Join::Others) {
                    let score = sparse_score.unwrap_or(0.0) + score;
                    top.offer(DocAddress::new(ord, doc), score, || segment.seq_no(doc));
                }
            }
        }
        Ok((top, matched))
    }

    /// Numbers of the segments that have the field, largest first: these most likely hold the best hits,
    /// which lets the others be pruned more.
    fn segments_by_size(&self) -> Vec<u32> {
        let mut order: Vec<(u32, u32)> = (0u32..)
            .zip(self.snapshot.segments())
            .filter_map(|(ord, segment)| Some((segment.sparse(self.clause.field)?.docs_with_field(), ord)))
            .collect();
        order.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, ord)| ord).collect()
    }
}
