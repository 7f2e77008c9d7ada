//! When more comes to a lane than it can carry, it keeps what waits short.
//!
//! A queue that is never empty gives nothing but later answers. Clients that wait for one answer before they ask again keep it within
//! bounds by themselves, and so would rather wait than be refused. Those that come whatever becomes of the others fill it up to
//! the time that a lane lets the first wait: from then on only as many wait as are worked on at once, until few are refused. One less is
//! worked on meanwhile: the thread that takes requests in needs a core to refuse them as fast as they come.

use std::time::{Duration, Instant};

/// How long what comes and what is refused are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Of so many that come, one may be refused when a lane lets more wait again: short queues refuse a few even without overload.
const FEW: u32 = 10;

/// Whether a lane lets only a few wait, and for how much longer.
#[derive(Debug, Default)]
pub(super) struct Shedding {
    /// Since when it counts; none while it does not shed.
    since: Option<Instant>,
    came: u32,
    refused: u32,
}

impl Shedding {
    /// Counts an operation that comes now, and says whether it may not wait.
    ///
    /// `waiting` operations wait, `at_once` are worked on at once. `is_late`: the first waits for longer than a lane allows at all.
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

    /// Counts an operation that comes now and does not have to wait.
    pub(super) fn passed(&mut self, now: Instant) {
        self.look(now);
        self.came = self.came.saturating_add(1);
    }

    /// Whether a lane lets only a few wait.
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Ends it after a window in which few were refused.
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
