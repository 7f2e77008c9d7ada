//! The order in which the texts of one priority are read: owners and calls in turn, in batches of similar length.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::call::Item;

/// Limits of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// Highest number of tokens, padding included; a single text may have more.
    pub(crate) tokens: usize,
    /// Number of workers that share the work.
    pub(crate) workers: usize,
}

/// Number of waiting texts that are considered for one batch; more would give better matches of length, but
/// take longer to search.
pub(super) const WINDOW: usize = 256;

/// Number of tokens below which work is not split between idle workers.
const MIN_SHARE: usize = 128;

/// Number of owners above which those that have no texts waiting are forgotten.
const REMEMBERED: usize = 1024;

/// The texts of one priority.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// By rounds, and in each round as they came: a call of few texts takes turns with those of many, and does not wait for all of the
    /// many. Owners take turns besides, each with its texts in this order.
    pub(super) items: VecDeque<Item>,
    /// Round of the text that was read last.
    round: u64,
    /// Number of batches that were taken.
    batches: u64,
    /// The batch that was last begun for each owner. Those whose texts are read are remembered, or two that ask again and again in turn would
    /// both be new each time.
    served: FxHashMap<u64, u64>,
}

impl Line {
    /// Queues texts of one call, each a round after the one before, and none in the round that is being read: calls of one text that come
    /// again and again would keep those of many from ever being read.
    pub(super) fn extend(&mut self, mut new: Vec<Item>) {
        let Some(first) = new.first() else { return };
        let last = self.items.iter().rfind(|item| Arc::ptr_eq(&item.call, &first.call));
        let round = last.map_or(self.round, |last| last.round) + 1;
        for (item, round) in new.iter_mut().zip(round..) {
            item.round = round;
        }
        // Those behind which all of the new ones belong stay where they are.
        let stay = self.items.partition_point(|item| item.round <= new[0].round);
        let mut later = self.items.split_off(stay).into_iter().peekable();
        for item in new {
            while let Some(before) = later.next_if(|before| before.round <= item.round) {
                self.items.push_back(before);
            }
            self.items.push_back(item);
        }
        self.items.extend(later);
    }

    /// Takes a batch that begins with the first text of the owner whose turn it is: of whom none was begun with for the longest time.
    pub(super) fn take(&mut self, limits: BatchLimits) -> Vec<Item> {
        let mut firsts: FxHashMap<u64, usize> = FxHashMap::default();
        for (place, item) in self.items.iter().enumerate() {
            firsts.entry(item.call.owner).or_insert(place);
        }
        if self.served.len() > REMEMBERED {
            self.served.retain(|owner, _| firsts.contains_key(owner));
        }
        let served = |owner: &u64| self.served.get(owner).copied().unwrap_or(0);
        let next = firsts.into_iter().min_by_key(|(owner, place)| (served(owner), *place));
        if let Some((owner, place)) = next
            && let Some(first) = self.items.remove(place)
        {
            self.round = self.round.max(first.round);
            self.batches += 1;
            self.served.insert(owner, self.batches);
            self.items.push_front(first);
        }
        take_batch(&mut self.items, limits)
    }
}

/// Takes the first text, and other waiting texts of similar length.
pub(super) fn take_batch(queue: &mut VecDeque<Item>, limits: BatchLimits) -> Vec<Item> {
    let window = queue.len().min(WINDOW);
    // (length, place) by length; the first text is the anchor, so that no length can starve.
    let mut order: Vec<(usize, usize)> = (0..window).map(|place| (queue[place].ids.len(), place)).collect();
    order.sort_unstable();
    let total: usize = order.iter().map(|(length, _)| length).sum();
    // A single worker has nobody to share with.
    let share = if limits.workers > 1 { total.div_ceil(limits.workers).max(MIN_SHARE) } else { usize::MAX };
    let budget = limits.tokens.min(share);
    let anchor = order.iter().position(|(_, place)| *place == 0).unwrap_or(0);
    let (mut low, mut high) = (anchor, anchor + 1);
    loop {
        let longest = order[high - 1].0;
        let grown = high - low + 1;
        // Shorter texts cost padding to the longest here; a longer one lengthens all.
        let down = (low > 0 && longest * grown <= budget).then(|| longest - order[low - 1].0);
        let up = (high < window && order[high].0 * grown <= budget)
            .then(|| (order[high].0 - longest) * (grown - 1));
        match (down, up) {
            (Some(padding), Some(stretch)) if stretch < padding => high += 1,
            (Some(_), _) => low -= 1,
            (None, Some(_)) => high += 1,
            (None, None) => break,
        }
    }
    let mut chosen = vec![false; window];
    for (_, place) in &order[low..high] {
        chosen[*place] = true;
    }
    let mut batch = Vec::with_capacity(high - low);
    let mut left_in_queue = Vec::with_capacity(window - (high - low));
    for (item, chosen) in queue.drain(..window).zip(chosen) {
        if chosen { batch.push(item) } else { left_in_queue.push(item) }
    }
    for item in left_in_queue.into_iter().rev() {
        queue.push_front(item);
    }
    batch
}
