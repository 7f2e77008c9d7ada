//! Searches in which a sparse clause may use the pruned top-k of the postings: alone, with clauses
//! that only restrict, or as one of several optional clauses.
//!
//! All of it is rank-safe: hits, order and scores are those of scoring every document.

use rustc_hash::FxHashMap;
use sparrow_postings::{SharedThreshold, TopKRequest};
use tantivy::query::Weight;
use tantivy::{DocAddress, DocId, TERMINATED};

use super::ast::{Query, QueryKind, SearchOptions, SparseQuery, TopDocs, TotalHits};
use super::bits::DocBits;
use super::compile::{Compiler, required_should};
use super::error::QueryError;
use super::knn::filter_bits;
use super::sparse::SparseClause;
use super::text::should;
use super::top_docs::TopCollector;
use crate::snapshot::Snapshot;

/// How many of the best sparse matches are found when other clauses add to the scores: the more, the
/// lower the bound of the rest. With only the ten wanted, half of the matches of a frequent word had to
/// be looked up.
const UNION_DEPTH: usize = 1000;
/// Documents between two looks at the cancel flag.
const CANCEL_INTERVAL: usize = 4096;

/// A query made of one sparse clause, clauses that restrict, and perhaps other optional clauses.
pub(super) struct SparsePlan<'q> {
    clause: &'q SparseQuery,
    boost: f32,
    filters: Vec<&'q Query>,
    excluded: Vec<&'q Query>,
    /// Clauses beside the sparse one, any of which lets a document match too; with the boost of the
    /// `bool` around them.
    others: Vec<&'q Query>,
    others_boost: f32,
}

impl<'q> SparsePlan<'q> {
    /// Recognises the clause itself, a `bool` in which it must match, and a `bool` of optional clauses
    /// with it among them.
    pub(super) fn find(query: &'q Query) -> Result<Option<Self>, QueryError> {
        // Bounds assume positive weights.
        Ok(Self::find_unchecked(query, true)?.filter(|plan| plan.boost > 0.0))
    }

    fn find_unchecked(query: &'q Query, optional: bool) -> Result<Option<Self>, QueryError> {
        let QueryKind::Bool(tree) = &query.kind else {
            let QueryKind::Sparse(clause) = &query.kind else { return Ok(None) };
            return Ok(Some(Self {
                clause,
                boost: query.boost,
                filters: Vec::new(),
                excluded: Vec::new(),
                others: Vec::new(),
                others_boost: 1.0,
            }));
        };
        let mut plan = match (&tree.must[..], &tree.should[..]) {
            ([inner], []) if required_should(tree)? == 0 => Self::find_unchecked(inner, false)?,
            // Were the clause optional, documents could match that it does not find.
            ([], [inner]) if required_should(tree)? == 1 => Self::find_unchecked(inner, false)?,
            ([], clauses) if optional && required_should(tree)? == 1 => {
                let place =
                    clauses.iter().position(|clause| matches!(clause.kind, QueryKind::Sparse(_)));
                match place {
                    None => None,
                    Some(place) => Self::find_unchecked(&clauses[place], false)?.map(|mut plan| {
                        plan.others.extend(&clauses[..place]);
                        plan.others.extend(&clauses[place + 1..]);
                        plan.others_boost = query.boost;
                        plan
                    }),
                }
            }
            _ => None,
        };
        if let Some(plan) = &mut plan {
            plan.boost *= query.boost;
            plan.filters.extend(&tree.filter);
            plan.excluded.extend(&tree.must_not);
        }
        Ok(plan)
    }

    /// Runs the plan; `None` when scoring every match is the way after all.
    pub(super) fn search(
        &self,
        snapshot: &Snapshot,
        compiler: &mut Compiler<'_>,
        post_filter: &[Box<dyn Weight>],
        options: &SearchOptions,
    ) -> Result<Option<TopDocs>, QueryError> {
        // With other clauses a document below the least score may pass by their help, and counting
        // those takes every score.
        if !self.others.is_empty() && (options.min_score.is_some() || options.size == 0) {
            return Ok(None);
        }
        let Some(clause) = compiler.sparse_clause(self.clause)? else {
            if !self.others.is_empty() {
                return Ok(None);
            }
            return Ok(Some(TopCollector::new(0).finish(0, options.track_total_hits)));
        };
        let filters = compiler.compile_filters(self.filters.iter().copied())?;
        let excluded = compiler.compile_filters(self.excluded.iter().copied())?;
        let mut allowed = Vec::with_capacity(snapshot.segments().len());
        for reader in snapshot.searcher().segment_readers() {
            let mut bits = filter_bits(&filters, &excluded, reader)?;
            if let Some(more) = filter_bits(post_filter, &[], reader)? {
                match &mut bits {
                    None => bits = Some(more),
                    Some(bits) => bits.intersect(&more),
                }
            }
            allowed.push(bits);
        }
        let pass = Pass { snapshot, clause, boost: self.boost, allowed, options };
        let depth = if self.others.is_empty() { options.size } else { UNION_DEPTH.max(options.size) };
        let (best, matched) = pass.sparse(compiler, depth)?;
        if self.others.is_empty() {
            return Ok(Some(best.finish(matched, options.track_total_hits)));
        }
        // The total is of the union: known here only if the sparse matches alone exceed the limit.
        let counted = match options.track_total_hits {
            TotalHits::Exact => false,
            TotalHits::UpTo(limit) => matched > limit,
            TotalHits::Off => true,
        };
        if !counted {
            return Ok(None);
        }
        let mut others = Vec::with_capacity(self.others.len());
        for query in &self.others {
            others.push(compiler.compile(query, true)?);
        }
        let others = if others.len() == 1 { others.remove(0) } else { should(others, 1, true) };
        let top = pass.union(compiler, best, &*others, self.others_boost)?;
        Ok(Some(top.finish(matched, options.track_total_hits)))
    }
}

/// One run over the segments.
struct Pass<'a> {
    snapshot: &'a Snapshot,
    clause: SparseClause,
    boost: f32,
    /// Per segment, the documents that the restricting clauses leave.
    allowed: Vec<Option<DocBits>>,
    options: &'a SearchOptions,
}

impl Pass<'_> {
    /// The `depth` best documents of the sparse clause and the number of its matches.
    fn sparse(
        &self,
        compiler: &Compiler<'_>,
        depth: usize,
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
        let mut matched = 0u64;
        for ord in self.segments_by_size() {
            compiler.check_cancelled()?;
            let segment = self.snapshot.segment(ord);
            let Some(postings) = segment.sparse(self.clause.field) else { continue };
            let query = self.clause.terms(postings, self.boost);
            let found = postings.top_k(&TopKRequest {
                query: &query,
                k: depth,
                min_score: options.min_score,
                threshold: &threshold,
                live: segment.live(),
                filter: self.allowed[ord as usize].as_ref().map(DocBits::words),
                count_limit: limit.saturating_sub(matched),
                tie: &|doc| segment.seq_no(doc),
                cancel: options.cancel.as_deref(),
            });
            compiler.check_cancelled()?;
            matched += found.matched;
            for (doc, score) in found.hits {
                top.offer(DocAddress::new(ord, doc), score, || segment.seq_no(doc));
            }
            if depth > 0 {
                threshold.raise(top.threshold());
            }
        }
        Ok((top, matched))
    }

    /// The best documents when `others` add to the scores.
    ///
    /// A document outside the best of the sparse clause has at most the score of the last of them, so
    /// that its sparse score is only looked up if the others lift it over the threshold.
    fn union(
        &self,
        compiler: &Compiler<'_>,
        best: TopCollector,
        others: &dyn Weight,
        others_boost: f32,
    ) -> Result<TopCollector, QueryError> {
        // With fewer hits than wanted there are no sparse matches beside them.
        let bound = best.threshold().max(0.0);
        let mut sparse: FxHashMap<DocAddress, f32> =
            best.into_hits().map(|hit| (hit.addr, hit.score)).collect();
        let mut top = TopCollector::new(self.options.size);
        let mut pending: Vec<Vec<(DocId, f32)>> = Vec::with_capacity(self.allowed.len());
        for (ord, allowed) in (0u32..).zip(&self.allowed) {
            let segment = self.snapshot.segment(ord);
            let reader = self.snapshot.searcher().segment_reader(ord);
            let mut scorer = others.scorer(reader, others_boost)?;
            let mut waiting = Vec::new();
            let mut seen = 0;
            let mut doc = scorer.doc();
            while doc != TERMINATED {
                if seen % CANCEL_INTERVAL == 0 {
                    compiler.check_cancelled()?;
                }
                seen += 1;
                if segment.is_live(doc) && allowed.as_ref().is_none_or(|bits| bits.contains(doc)) {
                    let score = scorer.score();
                    let addr = DocAddress::new(ord, doc);
                    if let Some(own) = sparse.remove(&addr) {
                        top.offer(addr, own + score, || segment.seq_no(doc));
                    } else if bound + score >= top.threshold() {
                        waiting.push((doc, score));
                    }
                }
                doc = scorer.advance();
            }
            pending.push(waiting);
        }
        for (addr, score) in sparse {
            let segment = self.snapshot.segment(addr.segment_ord);
            top.offer(addr, score, || segment.seq_no(addr.doc_id));
        }
        for (ord, waiting) in (0u32..).zip(pending) {
            compiler.check_cancelled()?;
            let segment = self.snapshot.segment(ord);
            let mut cursor = segment
                .sparse(self.clause.field)
                .map(|postings| postings.cursor(&self.clause.terms(postings, self.boost)));
            for (doc, score) in waiting {
                if bound + score < top.threshold() {
                    continue;
                }
                let own = cursor.as_mut().map_or(0.0, |cursor| {
                    if cursor.seek(doc) == doc { cursor.score() } else { 0.0 }
                });
                top.offer(DocAddress::new(ord, doc), own + score, || segment.seq_no(doc));
            }
        }
        Ok(top)
    }

    /// Segments with the field, largest first: they most likely hold the best hits, and what they find
    /// spares the others work.
    fn segments_by_size(&self) -> Vec<u32> {
        let mut order: Vec<(u32, u32)> = (0u32..)
            .zip(self.snapshot.segments())
            .filter_map(|(ord, segment)| {
                Some((segment.sparse(self.clause.field)?.docs_with_field(), ord))
            })
            .collect();
        order.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, ord)| ord).collect()
    }
}
