//! Keeps the best of many scored documents.

use sparrow_types::DocId;

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
        Self { k, floor, hits: Vec::new() }
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
        // The tie key may read a column: ask once per document.
        let mut keyed: Vec<_> = self.hits.iter().map(|hit| ((request.tie)(hit.0), *hit)).collect();
        keyed.sort_unstable_by(|a, b| b.1.1.total_cmp(&a.1.1).then(a.0.cmp(&b.0)).then(a.1.0.cmp(&b.1.0)));
        keyed.truncate(self.k);
        let hits: Vec<_> = keyed.into_iter().map(|(_, hit)| hit).collect();
        if hits.len() == self.k
            && let Some(last) = hits.last()
        {
            request.threshold.raise(last.1);
        }
        hits
    }
}
