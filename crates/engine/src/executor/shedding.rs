//! Load shedding: when more operations come to a lane than it can carry, it keeps its queue short.
//!
//! A queue that is never empty only makes answers later. Clients that wait for one answer before they send
//! the next request keep it bounded by themselves, and would rather wait than be refused. Clients that send
//! regardless fill it until the oldest operation has waited as long as a lane allows: from then on only as
//! many may wait as run at once, until few are refused. One fewer runs meanwhile, because the thread that
//! accepts requests needs a core to refuse them as fast as they come.

use std::time::{Duration, Instant};

/// Length of the time window in which arriving and refused operations are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Shedding ends when fewer than one in this many arriving operations was refused: short queues refuse a few
/// even without overload.
const FEW: u32 = 10;

/// Whether a lane sheds load, and the counts of the current window that decide when it stops.
#[derive(Debug, Default)]
pub(super) struct Shedding {
    /// When the current window began; none while the lane does not shed.
    since: Option<Instant>,
    came: u32,
    refused: u32,
}

impl Shedding {
    /// Counts an arriving operation, and says whether it is refused.
    ///
    /// `waiting` operations wait, `at_once` may run at once. `is_late`: the oldest has waited longer than a lane allows.
    pub(super) fn refuses(&mut self, waiting: usize, at_once: usize, is_late: bool, now: Instant) -> bool {
        self.look(now);
        if is_late && self.since.is_none() {
            self.since = Some(now);
        }
        let refuses = is_late || (self.is_on() && waiting >= at_once);
        self.came += 1;
        self.refused += u32::from(refuses);
        refuses
    }

    /// Counts an arriving operation that does not have to wait.
    pub(super) fn passed(&mut self, now: Instant) {
        self.look(now);
        self.came = self.came.saturating_add(1);
    }

    /// Whether the lane sheds load, and so lets only a few operations wait.
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Begins a new window when the current one is over, and ends shedding if few operations were refused in it.
    fn look(&mut self, now: Instant) {
        if let Some(since) = self.since
            && now.duration_since(since) >= WINDOW
        {
            let is_over = self.refused * FEW < self.came.max(1);
            *self = Self { since: (!is_over).then_some(now), ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_queue_is_let_be_until_it_is_late_and_then_kept_short() {
        let mut shedding = Shedding::default();
        let begun = Instant::now();
        assert!(!shedding.refuses(1000, 2, false, begun));
        assert!(shedding.refuses(1000, 2, true, begun), "late");
        assert!(shedding.refuses(2, 2, false, begun));
        assert!(!shedding.refuses(1, 2, false, begun));
    }

    #[test]
    fn it_ends_after_a_second_in_which_few_were_refused_and_not_before() {
        let mut shedding = Shedding::default();
        let begun = Instant::now();
        assert!(shedding.refuses(9, 2, true, begun));
        // One in five is refused.
        for _ in 0..20 {
            assert!(shedding.refuses(2, 2, false, begun));
            (0..4).for_each(|_| shedding.passed(begun));
        }
        let later = begun + WINDOW;
        assert!(shedding.refuses(2, 2, false, later), "it goes on");
        for _ in 0..20 {
            assert!(shedding.refuses(2, 2, false, later));
            (0..19).for_each(|_| shedding.passed(later));
        }
        assert!(!shedding.refuses(2, 2, false, later + WINDOW), "one in twenty is few");
        assert!(!shedding.refuses(1000, 2, false, later + WINDOW));
    }

    #[test]
    fn it_ends_when_nothing_has_to_wait_any_longer() {
        let mut shedding = Shedding::default();
        let begun = Instant::now();
        assert!(shedding.refuses(9, 2, true, begun));
        assert!(shedding.is_on());
        shedding.passed(begun + WINDOW);
        assert!(shedding.is_on(), "all that came in the second was refused");
        shedding.passed(begun + WINDOW * 2);
        assert!(!shedding.is_on());
    }
}
