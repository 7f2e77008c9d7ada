//! A sparse clause beside other scoring clauses, when those are texts with known bounds ([`DisMaxOfSums`]).
//!
//! The best documents of the sparse clause are found first and scored by the other clauses too. The sparse
//! score of the last of them is then an upper bound for all other documents, and only documents whose other
//! clauses can make up the rest are looked at.

use std::cell::{Cell, RefCell};

use tantivy::{DocAddress, DocId};

use crate::query::compile::Compiler;
use crate::query::search::dis_max::DisMaxOfSums;
use crate::query::search::sparse_search::{Join, Pass};
use crate::query::search::top_docs::TopCollector;
use crate::query::{SearchOptions, TotalHits};
use sparrow_lexical::least_score;
use sparrow_postings::{ScoreBounds, SharedThreshold, TopKRequest};
use sparrow_runtime::Executor;
use sparrow_scoring::error::QueryError;
use sparrow_segments::segment_docs::SegmentDocs;

/// Number of best sparse matches that are found first: the more there are, the lower the bound on the others,
/// but each has to be looked up in every other clause. Between 10 and 30, the postings' bounds of single
/// blocks make up for those not found.
///
/// Tests look at few documents: with as many as in production no bound would ever come into play.
const DEPTH: usize = if cfg!(test) { 2 } else { 20 };
/// Number of documents counted at a time, a multiple of 64: as many as the postings process at a time.
const STRETCH: u32 = 1 << 14;

impl Pass<'_> {
    /// The best documents, and the number of all matches as far as the search counts them.
    pub(crate) fn joined_texts(
        mut self,
        compiler: &Compiler<'_>,
        texts: &DisMaxOfSums,
        join: Join,
    ) -> Result<(TopCollector, u64), QueryError> {
        let depth = DEPTH.max(self.options.size);
        let counter = HitCounter::new(self.options);
        let text_required = matches!(join, Join::Both | Join::Others);
        if text_required && texts.is_broad(self.snapshot.num_docs()) {
            let best = self.best(compiler, depth, false)?.0;
            if let Some(top) = self.add_up(compiler, texts, join, best, depth, &counter)? {
                let matched = match (self.options.min_score, join) {
                    (Some(_), _) => counter.matched.get(),
                    (None, Join::Both) => self.count_both(compiler, texts)?,
                    (None, _) => {
                        self.snapshot.count_required(compiler, texts, &self.allowed, self.options)?
                    }
                };
                return Ok((top, matched));
            }
        }
        self.required_taken = true;
        if texts.has_required() {
            for (ord, allowed) in self.allowed.iter_mut().enumerate() {
                compiler.check_cancelled()?;
                allowed.intersect(texts.required_docs(self.snapshot.searcher().segment_reader(ord as u32))?);
            }
        }
        let least = self.options.min_score;
        let (best, sparse_matches) = self.best(compiler, depth, least.is_none())?;
        let matched = match join {
            _ if least.is_some() => 0,
            Join::Sparse | Join::Both => sparse_matches,
            Join::Others if self.options.track_total_hits == TotalHits::Off => 0,
            Join::Others => self.count_allowed(),
            Join::Either => self.count_either(compiler, texts, sparse_matches)?,
        };
        let top = self.add_up(compiler, texts, join, best, depth, &counter)?;
        let matched = if least.is_some() { counter.matched.get() } else { matched };
        // All that is required was taken care of: there is nothing to give up for.
        Ok((top.unwrap_or_else(|| TopCollector::new(0)), matched))
    }

    /// Adds the text scores to the best sparse matches, then finds the other documents that may score as
    /// high. `None` when too few of the best sparse matches also match the required texts: they then give no
    /// useful bound.
    fn add_up(
        &self,
        compiler: &Compiler<'_>,
        texts: &DisMaxOfSums,
        join: Join,
        best: Best,
        depth: usize,
        counter: &HitCounter,
    ) -> Result<Option<TopCollector>, QueryError> {
        let Best { top: best, bounds } = best;
        let found_all = best.len() < depth;
        let bound = if found_all { 0.0 } else { best.threshold().max(0.0) };
        let mut first: Vec<Vec<(DocId, f32)>> = vec![Vec::new(); self.allowed.len()];
        for hit in best.into_hits() {
            first[hit.addr.segment_ord as usize].push((hit.addr.doc_id, hit.score));
        }
        let mut top = TopCollector::new(self.options.size);
        let mut scored = Vec::new();
        for (ord, first) in (0..).zip(&mut first) {
            if first.is_empty() {
                continue;
            }
            first.sort_unstable_by_key(|(doc, _)| *doc);
            let mut walk = texts.look_up(self.snapshot.searcher().segment_reader(ord), None)?;
            for (doc, sparse_score) in first {
                let score = match walk.score(*doc) {
                    Some(score) => score,
                    None if texts.has_required() => continue,
                    None => 0.0,
                };
                scored.push((DocAddress::new(ord, *doc), *sparse_score + score));
            }
        }
        // The best lack what is required: they say nothing about the rest. A least score does.
        let gives_up = !self.required_taken && scored.len() < self.options.size && counter.limit == 0;
        if gives_up && !(found_all && join == Join::Both) {
            return Ok(None);
        }
        for (addr, score) in scored {
            if counter.takes(score) {
                top.offer(addr, score, || self.snapshot.segment(addr.segment_ord).seq_no(addr.doc_id));
            }
        }
        let sparse_required = matches!(join, Join::Sparse | Join::Both);
        if found_all && sparse_required {
            return Ok(Some(top));
        }
        compiler.executors.note(Executor::SparseAndTextWindowAtATime);
        for (ord, first) in (0..).zip(&first) {
            compiler.check_cancelled()?;
            let remaining = Remaining {
                ord,
                first,
                bound,
                bounds: &bounds[ord as usize],
                found_all,
                sparse_required,
                counter,
            };
            self.offer_remaining(compiler, texts, &remaining, &mut top)?;
        }
        Ok(Some(top))
    }

    /// Offers the documents of one segment that are not among the best sparse matches to `top`.
    fn offer_remaining(
        &self,
        compiler: &Compiler<'_>,
        texts: &DisMaxOfSums,
        remaining: &Remaining<'_>,
        top: &mut TopCollector,
    ) -> Result<(), QueryError> {
        let allowed = &self.allowed[remaining.ord as usize];
        if matches!(allowed, SegmentDocs::None) {
            return Ok(());
        }
        let segment = self.snapshot.segment(remaining.ord);
        let sparse = if remaining.found_all { None } else { self.clause.bind(segment.plugins(), self.boost) };
        let sparse = sparse.as_ref().map(|(postings, terms)| postings.look_up(terms));
        if remaining.sparse_required && sparse.is_none() {
            return Ok(());
        }
        let reader = self.snapshot.searcher().segment_reader(remaining.ord);
        let narrow = !remaining.found_all && remaining.bounds.is_known();
        let top = RefCell::new(top);
        let needed = |doc: DocId| {
            let bound =
                if narrow { remaining.bound.min(remaining.bounds.most(doc)) } else { remaining.bound };
            least_score(remaining.counter.threshold(&top.borrow()), bound)
        };
        let wanted = |doc| {
            allowed.contains(doc)
                && segment.is_live(doc)
                && remaining.first.binary_search_by_key(&doc, |(doc, _)| *doc).is_err()
        };
        let offer = |doc, score| {
            let sparse_score = sparse.as_ref().and_then(|sparse| sparse.score(doc));
            if sparse_score.is_some() || !remaining.sparse_required {
                let score = sparse_score.unwrap_or(0.0) + score;
                if !remaining.counter.takes(score) {
                    return;
                }
                top.borrow_mut().offer(DocAddress::new(remaining.ord, doc), score, || segment.seq_no(doc));
            }
        };
        let least = || least_score(remaining.counter.threshold(&top.borrow()), remaining.bound);
        texts.windows(reader, compiler.cancel(), least, needed, wanted, offer)?;
        // The walk by windows ends early when the search is cancelled.
        compiler.check_cancelled()
    }

    /// The `depth` best matches of the sparse clause, and their number; see [`Pass::sparse`].
    pub(crate) fn best(
        &self,
        compiler: &Compiler<'_>,
        depth: usize,
        counting: bool,
    ) -> Result<(Best, u64), QueryError> {
        let mut bounds: Vec<ScoreBounds> = self.allowed.iter().map(|_| ScoreBounds::default()).collect();
        let (top, matched) = self.sparse(compiler, depth, counting, Some(&mut bounds))?;
        Ok((Best { top, bounds }, matched))
    }

    fn count_allowed(&self) -> u64 {
        self.allowed.iter().enumerate().map(|(ord, docs)| self.snapshot.count_live(ord, docs)).sum()
    }

    /// Number of documents that match the sparse clause or the texts: each is counted separately, less those
    /// that match both, unless the sparse matches alone exceed the limit.
    fn count_either(
        &self,
        compiler: &Compiler<'_>,
        texts: &DisMaxOfSums,
        sparse_matches: u64,
    ) -> Result<u64, QueryError> {
        match self.options.track_total_hits {
            TotalHits::Off => return Ok(0),
            TotalHits::UpTo(limit) if sparse_matches > limit => return Ok(sparse_matches),
            TotalHits::UpTo(_) | TotalHits::Exact => {}
        }
        let mut text_docs = self.allowed.clone();
        for (ord, docs) in text_docs.iter_mut().enumerate() {
            compiler.check_cancelled()?;
            docs.intersect(texts.any_docs(self.snapshot.searcher().segment_reader(ord as u32))?);
        }
        let of_texts = Pass { allowed: text_docs, clause: self.clause.clone(), ..*self };
        let matched = of_texts.count_allowed();
        let (_, both) = of_texts.sparse(compiler, 0, true, None)?;
        // Each of the three is exact, or over the limit; then so is the sum.
        Ok(match self.options.track_total_hits {
            TotalHits::UpTo(limit) if matched > limit => matched,
            _ => sparse_matches + matched - both,
        })
    }

    /// Number of documents that match both the sparse clause and all required texts, counted one stretch at a
    /// time until the limit is reached.
    fn count_both(&self, compiler: &Compiler<'_>, texts: &DisMaxOfSums) -> Result<u64, QueryError> {
        let limit = match self.options.track_total_hits {
            TotalHits::Off => return Ok(0),
            TotalHits::UpTo(limit) => limit.saturating_add(1),
            TotalHits::Exact => u64::MAX,
        };
        let mut matched = 0;
        for (ord, allowed) in self.allowed.iter().enumerate() {
            let reader = self.snapshot.searcher().segment_reader(ord as u32);
            let segment = self.snapshot.segment(ord as u32);
            let Some((postings, query)) = self.clause.bind(segment.plugins(), self.boost) else { continue };
            let mut marks = texts.required_marks(reader)?;
            let mut filter: Vec<u64> = Vec::new();
            for start in (0..reader.max_doc()).step_by(STRETCH as usize) {
                compiler.check_cancelled()?;
                let first = filter.len();
                filter.fill(0);
                let words = marks.stretch(start..reader.max_doc().min(start + STRETCH));
                filter.extend(
                    words.zip(self.snapshot.live_words_from(ord, allowed, first)).map(|(a, b)| a & b),
                );
                let counted = postings.top_k(&TopKRequest {
                    query: &query,
                    k: 0,
                    min_score: None,
                    threshold: &SharedThreshold::new(),
                    live: None,
                    filter: Some(&filter),
                    count_limit: limit - matched,
                    tie: &|_| 0,
                    cancel: self.options.cancel.as_deref(),
                });
                matched += counted.matched;
                if matched >= limit {
                    return Ok(matched);
                }
            }
        }
        Ok(matched)
    }
}

/// The best matches of the sparse clause, and for each segment the bounds on the sparse scores of other
/// documents.
pub(crate) struct Best {
    pub(crate) top: TopCollector,
    pub(crate) bounds: Vec<ScoreBounds>,
}

/// Input of [`Pass::offer_remaining`].
struct Remaining<'a> {
    ord: u32,
    /// Documents that have been offered already, ascending, with their scores.
    first: &'a [(DocId, f32)],
    /// Highest sparse score that any other document can have.
    bound: f32,
    /// Upper bounds on the sparse scores of blocks of documents, if known.
    bounds: &'a ScoreBounds,
    /// Whether no other document matches the sparse clause.
    found_all: bool,
    sparse_required: bool,
    counter: &'a HitCounter,
}

/// Counts the documents that reach a minimum score: exactly up to a limit.
struct HitCounter {
    least: f32,
    /// Count at which counting may stop; 0 if there is nothing to count.
    limit: u64,
    matched: Cell<u64>,
}

impl HitCounter {
    fn new(options: &SearchOptions) -> Self {
        let limit = match (options.min_score, options.track_total_hits) {
            (None, _) | (_, TotalHits::Off) => 0,
            (_, TotalHits::UpTo(limit)) => limit.saturating_add(1),
            (_, TotalHits::Exact) => u64::MAX,
        };
        Self { least: options.min_score.unwrap_or(f32::NEG_INFINITY), limit, matched: Cell::new(0) }
    }

    /// Counts a document if it reaches the minimum score, and returns whether it does.
    fn takes(&self, score: f32) -> bool {
        let takes = score >= self.least;
        self.matched.set(self.matched.get() + u64::from(takes));
        takes
    }

    /// The score that a document must reach to be counted or to be among the best.
    fn threshold(&self, top: &TopCollector) -> f32 {
        if self.matched.get() < self.limit { self.least } else { top.threshold().max(self.least) }
    }
}
