//! Keeps the best of many scored documents.

use sparrow_runtime::DocId;

use super::TopKRequest;

/// Buffer that is cut back to the best `k` (and their equals) whenever it doubles.
pub(crate) struct Collector {
    k: usize,
    floor: f32,
    hits: Vec<(DocId, f32)>,
}

impl Collector {
    /// Keeps documents at or above `floor`.
    pub(crate) fn new(k: usize, floor: f32) -> Self {
        Self::with_room(k, floor, 0)
    }

    /// A collector that expects about `docs` documents.
    pub(crate) fn with_room(k: usize, floor: f32, docs: usize) -> Self {
        Self { k, floor, hits: Vec::with_capacity(docs.min(1024)) }
    }

    #[inline]
    pub(crate) fn push(&mut self, doc: DocId, score: f32) {
        if score >= self.floor && self.k > 0 {
            self.hits.push((doc, score));
            if self.hits.len() >= self.k.saturating_mul(2).saturating_add(1024)
                && self.hits.len().is_power_of_two()
            {
                self.cut();
            }
        }
    }

    /// Drops what is below the k-th score; equals stay, because the tie key decides between them.
    fn cut(&mut self) {
        if self.hits.len() <= self.k || self.k == 0 {
            return;
        }
        let (_, kth, _) = self.hits.select_nth_unstable_by(self.k - 1, |a, b| b.1.total_cmp(&a.1));
        let kth = kth.1;
        self.floor = self.floor.max(kth);
        self.hits.retain(|hit| hit.1 >= kth);
    }

    /// The best `k`, highest first, equal scores by tie key, then document. Raises the threshold of
    /// the search when there are `k`.
    pub(crate) fn into_hits(mut self, request: &TopKRequest<'_>) -> Vec<(DocId, f32)> {
        self.cut();
        let mut hits = self.hits;
        hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // The tie key may read a column: only where scores are equal, and once per document.
        for equal in hits.chunk_by_mut(|a, b| a.1.total_cmp(&b.1).is_eq()).filter(|equal| equal.len() > 1) {
            equal.sort_by_cached_key(|hit| (request.tie)(hit.0));
        }
        hits.truncate(self.k);
        if hits.len() == self.k
            && let Some(last) = hits.last()
        {
            request.threshold.raise(last.1);
        }
        hits
    }
}
