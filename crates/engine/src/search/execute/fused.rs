//! Several ranked lists fused into one.

use sparrow_index::DocAddress;
use sparrow_index::query::{BoolQuery, Query, QueryKind, TotalHits};

use super::{Hit, List, Outcome, Run, total, with_k};
use crate::search::error::SearchError;
use crate::search::fusion::reciprocal_rank_fusion;
use crate::search::rank::RankFusion;

impl Run<'_> {
    pub(super) fn fused(&mut self, rank: &RankFusion) -> Result<Outcome, SearchError> {
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
