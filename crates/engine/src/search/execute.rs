//! Running a search over the indices it names: union of query and kNN, fusion, merging.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_index::query::{
    BoolQuery, Query, QueryError, QueryKind, SearchOptions, TopDocs, TotalHits, TotalRelation,
};
use sparrow_index::{DocAddress, Snapshot};

use super::body::SearchBody;
use super::dsl::KnnSearch;
use super::error::{SearchError, Shard};
use super::fusion::reciprocal_rank_fusion;
use super::rank::RankFusion;
use super::resolve::set_default_fields;
use super::sort::Sort;

/// An index that a search looks at, as of one moment.
pub struct Target {
    /// Name, uuid and node, for errors and hits.
    pub shard: Box<Shard>,
    /// Its documents.
    pub snapshot: Arc<Snapshot>,
    /// Hits that a search of it can reach (`index.max_result_window`).
    pub max_result_window: usize,
    /// Fields for query strings that name none (`index.query.default_field`); empty for all.
    pub default_fields: Vec<String>,
}

/// A hit before its document is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position of its index in the list of targets.
    pub target: usize,
    /// Where the document is.
    pub addr: DocAddress,
    /// Sequence number of its last write.
    pub seq_no: u64,
    /// Its score.
    pub score: f32,
    /// Its place in a fused list, from 1.
    pub rank: Option<u32>,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The hits of the page asked for.
    pub hits: Vec<Hit>,
    /// Number of hits, unless they are not counted.
    pub total: Option<(u64, bool)>,
    /// Highest score.
    pub max_score: Option<f32>,
    /// Indices that could not be searched.
    pub failures: Vec<SearchError>,
    /// The time ran out before all was searched.
    pub timed_out: bool,
}

/// Runs a search whose texts are encoded already.
///
/// # Errors
/// When every index refuses the query, or the caller went away ([`QueryError::Cancelled`]).
pub fn execute(
    targets: &[Target],
    body: &SearchBody,
    cancel: &Arc<AtomicBool>,
) -> Result<Outcome, SearchError> {
    let asked = body.from.saturating_add(body.size);
    if let Some(target) = targets.iter().find(|target| asked > target.max_result_window) {
        return Err(SearchError::WindowTooLarge {
            limit: target.max_result_window,
            asked,
            shard: target.shard.clone(),
        });
    }
    let mut run = Run { targets, failures: targets.iter().map(|_| None).collect(), cancel, body };
    let mut outcome = match &body.rank {
        Some(rank) => run.fused(rank)?,
        None => run.plain()?,
    };
    let cancelled =
        |error: &SearchError| matches!(error, SearchError::Query { source: QueryError::Cancelled, .. });
    let mut failures: Vec<SearchError> = run.failures.into_iter().flatten().collect();
    if let Some(place) = failures.iter().position(cancelled) {
        return Err(failures.swap_remove(place));
    }
    if !failures.is_empty() && failures.len() == targets.len() {
        return Err(failures.swap_remove(0));
    }
    outcome.failures = failures;
    Ok(outcome)
}

/// One search in progress. An index that fails is left out from then on.
struct Run<'a> {
    targets: &'a [Target],
    failures: Vec<Option<SearchError>>,
    cancel: &'a Arc<AtomicBool>,
    body: &'a SearchBody,
}

/// Hits of one list over all indices, best first.
struct List {
    hits: Vec<Hit>,
    total: u64,
    exact: bool,
    max_score: Option<f32>,
}

impl Run<'_> {
    fn plain(&mut self) -> Result<Outcome, SearchError> {
        let body = self.body;
        let wanted = body.from + body.size;
        let queries: Vec<Option<Query>> = self.union_per_target();
        let options = self.options(wanted, body.tracked_hits(), body.min_score);
        let list = self.list(&options, |target| queries[target].clone());
        let scored = body.sort == Sort::Score;
        Ok(Outcome {
            max_score: list.max_score.filter(|_| scored && body.size > 0),
            total: total(list.total, list.exact, body.tracked_hits()),
            hits: list.hits.into_iter().skip(body.from).take(body.size).collect(),
            ..Outcome::default()
        })
    }

    /// The query that each index runs: `query` and the `knn` sections in one, `None` where only kNN
    /// asks and the index holds none of the nearest neighbours.
    fn union_per_target(&mut self) -> Vec<Option<Query>> {
        let body = self.body;
        // One sub-search without a rank is a query by another name.
        let query = body.query.clone().or_else(|| body.sub_searches.first().cloned());
        if body.knn.is_empty() {
            let query = query.unwrap_or_else(Query::match_all);
            let query = match body.sort {
                Sort::Score => query,
                // With one score for all, the tie breaker is the order.
                Sort::SeqNo => QueryKind::ConstantScore { filter: Box::new(query) }.into(),
            };
            return self.targets.iter().map(|_| Some(query.clone())).collect();
        }
        let mut per_target: Vec<Vec<Query>> =
            self.targets.iter().map(|_| query.iter().cloned().collect()).collect();
        for knn in &body.knn {
            for (clauses, k) in per_target.iter_mut().zip(self.neighbours_per_target(knn)) {
                clauses.extend(with_k(&knn.query, k));
            }
        }
        per_target
            .into_iter()
            .map(|mut clauses| match clauses.len() {
                0 => None,
                1 => clauses.pop(),
                _ => Some(QueryKind::Bool(BoolQuery { should: clauses, ..Default::default() }).into()),
            })
            .collect()
    }

    /// How many of the `k` nearest neighbours over all indices each index holds.
    fn neighbours_per_target(&mut self, knn: &KnnSearch) -> Vec<usize> {
        if self.targets.len() == 1 {
            return vec![knn.k];
        }
        let mut counts = vec![0; self.targets.len()];
        for hit in self.nearest(knn, knn.k).hits {
            counts[hit.target] += 1;
        }
        counts
    }

    fn nearest(&mut self, knn: &KnnSearch, limit: usize) -> List {
        let options = SearchOptions {
            size: limit,
            track_total_hits: TotalHits::Off,
            cancel: Some(Arc::clone(self.cancel)),
            ..SearchOptions::default()
        };
        self.list(&options, |_| with_k(&knn.query, knn.k))
    }

    fn fused(&mut self, rank: &RankFusion) -> Result<Outcome, SearchError> {
        let body = self.body;
        let window = rank.window_for(body.from + body.size);
        let tracked = body.tracked_hits();
        let options = self.options(window, tracked, None);
        let mut lists = Vec::new();
        for query in body.query.iter().chain(&body.sub_searches) {
            lists.push(self.list(&options, |_| Some(query.clone())));
        }
        for knn in &body.knn {
            let limit = knn.k.min(window);
            let mut options = self.options(limit, tracked, None);
            options.size = limit;
            let mut list = self.list(&options, |_| with_k(&knn.query, knn.k));
            // An index counts its own neighbours; the list holds those of all.
            list.total = list.hits.len() as u64;
            lists.push(list);
        }
        let keys: Vec<Vec<Key>> = lists.iter().map(|list| list.hits.iter().map(Key::of).collect()).collect();
        let fused = reciprocal_rank_fusion(&keys, rank.rank_constant);
        let total = self.union_total(&lists, fused.len() as u64, tracked);
        let hits = fused
            .iter()
            .take(window)
            .enumerate()
            .filter(|(_, hit)| body.min_score.is_none_or(|least| hit.score >= least))
            .skip(body.from)
            .take(body.size)
            .map(|(place, hit)| hit.doc.hit(hit.score, place as u32 + 1))
            .collect();
        Ok(Outcome { hits, total, max_score: None, ..Outcome::default() })
    }

    /// Number of documents in any of the lists, had they no window.
    fn union_total(&mut self, lists: &[List], union: u64, tracked: TotalHits) -> Option<(u64, bool)> {
        let limit = match tracked {
            TotalHits::Off => return None,
            TotalHits::Exact => u64::MAX,
            TotalHits::UpTo(limit) => limit,
        };
        if lists.iter().any(|list| list.total > limit) {
            return Some((limit, false));
        }
        if lists.iter().all(|list| list.exact && list.total == list.hits.len() as u64) {
            return Some((union, true));
        }
        // Some list goes on behind its window, so that the lists overlap by an unknown number.
        let body = self.body;
        let mut any: Vec<Query> = body.query.iter().chain(&body.sub_searches).cloned().collect();
        any.extend(body.knn.iter().map(|knn| knn.query.clone()));
        let any: Query = QueryKind::Bool(BoolQuery { should: any, ..Default::default() }).into();
        let options = self.options(0, tracked, None);
        let list = self.list(&options, |_| Some(any.clone()));
        total(list.total, list.exact, tracked)
    }

    fn options(&self, size: usize, tracked: TotalHits, min_score: Option<f32>) -> SearchOptions {
        SearchOptions {
            size,
            min_score,
            track_total_hits: tracked,
            cancel: Some(Arc::clone(self.cancel)),
            post_filter: self.body.post_filter.clone(),
        }
    }

    /// Runs a query on every index and merges: best score first, then by index, then as written.
    fn list(&mut self, options: &SearchOptions, query: impl Fn(usize) -> Option<Query>) -> List {
        let mut list = List { hits: Vec::new(), total: 0, exact: true, max_score: None };
        for (number, target) in self.targets.iter().enumerate() {
            if self.failures[number].is_some() {
                continue;
            }
            let Some(mut query) = query(number) else { continue };
            if !target.default_fields.is_empty() {
                set_default_fields(&mut query, &target.default_fields);
            }
            match target.snapshot.search(&query, options) {
                Ok(top) => list.extend(number, &top),
                Err(source) => {
                    let shard = target.shard.clone();
                    self.failures[number] = Some(SearchError::Query { shard, source });
                }
            }
        }
        if self.targets.len() > 1 {
            list.hits.sort_by(|a, b| {
                b.score.total_cmp(&a.score).then(a.target.cmp(&b.target)).then(a.seq_no.cmp(&b.seq_no))
            });
            list.hits.truncate(options.size);
        }
        list
    }
}

impl List {
    fn extend(&mut self, target: usize, top: &TopDocs) {
        self.hits.extend(top.hits.iter().map(|hit| Hit {
            target,
            addr: hit.addr,
            seq_no: hit.seq_no,
            score: hit.score,
            rank: None,
        }));
        self.total += top.total;
        self.exact &= top.relation == TotalRelation::Eq;
        self.max_score = match (self.max_score, top.max_score) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}

/// A document across the lists of one search, ordered as ties are broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    target: usize,
    seq_no: u64,
    segment: u32,
    doc: u32,
}

impl Key {
    fn of(hit: &Hit) -> Self {
        Self { target: hit.target, seq_no: hit.seq_no, segment: hit.addr.segment_ord, doc: hit.addr.doc_id }
    }

    fn hit(self, score: f32, rank: u32) -> Hit {
        Hit {
            target: self.target,
            addr: DocAddress::new(self.segment, self.doc),
            seq_no: self.seq_no,
            score,
            rank: Some(rank),
        }
    }
}

/// A kNN clause for another number of neighbours; `None` for none.
fn with_k(query: &Query, k: usize) -> Option<Query> {
    let mut query = query.clone();
    if let QueryKind::Knn(clause) = &mut query.kind {
        if k == 0 {
            return None;
        }
        clause.k = k;
        clause.num_candidates = clause.num_candidates.max(k);
    }
    Some(query)
}

/// The count as it is shown: cut at the limit that the request set.
fn total(counted: u64, exact: bool, tracked: TotalHits) -> Option<(u64, bool)> {
    match tracked {
        TotalHits::Off => None,
        TotalHits::UpTo(limit) if counted > limit => Some((limit, false)),
        TotalHits::Exact | TotalHits::UpTo(_) => Some((counted, exact)),
    }
}
