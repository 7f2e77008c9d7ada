//! Waiting for the next operation without sleeping.
//!
//! To wake a thread whose core sleeps takes longer than many an operation. Somebody who asks one question after the other, each as
//! soon as the last one is answered, would wait for that each time. So a worker that has answered one looks out for the next one for a
//! moment, but only as long as such a sequence goes on, and only while nobody else needs the core.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

use sparrow_types::processors;

/// How long a worker looks out: most who ask one question after the other ask the next one within that time.
const LOOKOUT: Duration = Duration::from_micros(80);

/// Operations that have to follow each other at once before a worker looks out for the next one.
const SEQUENCE: u8 = 4;

/// How long the thread may not have run while it looks out. If it was longer, another one has had the core.
const INTERRUPTED: Duration = Duration::from_micros(30);

/// Operations for which a worker does not look out after another thread needed its core: twice as many each time that it happens again.
const RESPECT: RangeInclusive<u16> = 16..=4096;

/// Whether a worker of the process looks out. One at a time does.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Where a worker sees that it was handed an operation while it looks out.
#[derive(Default)]
pub(super) struct Lookout {
    shown: AtomicBool,
}

/// How a worker's looking out ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Seen {
    /// An operation came.
    Operation,
    Nothing,
    /// Another thread needed the core.
    Interruption,
}

impl Lookout {
    /// Nothing has come yet; called before others can hand the worker anything.
    pub(super) fn prepare(&self) {
        self.shown.store(false, Relaxed);
    }

    /// Lets the worker that looks out see that it was handed an operation.
    pub(super) fn show(&self) {
        self.shown.store(true, Release);
    }

    /// Waits for an operation, for a short time.
    pub(super) fn wait(&self) -> Seen {
        // Another core is left for who asks.
        if processors::idle() < 2 || TAKEN.swap(true, Acquire) {
            return Seen::Nothing;
        }
        let begun = Instant::now();
        let mut last = begun;
        let seen = loop {
            for _ in 0..16 {
                if self.shown.load(Acquire) {
                    break;
                }
                std::hint::spin_loop();
            }
            if self.shown.load(Acquire) {
                break Seen::Operation;
            }
            // Whoever waits for this core gets it.
            thread::yield_now();
            let now = Instant::now();
            if now - last > INTERRUPTED {
                break Seen::Interruption;
            }
            if now - begun > LOOKOUT {
                break Seen::Nothing;
            }
            last = now;
        };
        TAKEN.store(false, Release);
        seen
    }
}

/// Whether operations come one after the other, each soon after the answer to the last one.
#[derive(Default)]
pub(super) struct Sequence {
    /// When the last operation was answered.
    answered: Option<Instant>,
    /// Operations that came soon, less those that did not.
    length: u8,
    /// Operations for which no worker looks out.
    respect: u16,
    /// As many it was the last time.
    respected: u16,
}

impl Sequence {
    /// An operation has been answered.
    pub(super) fn answered(&mut self) {
        self.answered = Some(Instant::now());
    }

    /// An operation comes; `alone` if no other one of the engine is under way or is on its way back.
    pub(super) fn comes(&mut self, alone: bool, now: Instant) {
        let soon = self.answered.is_some_and(|answered| now.saturating_duration_since(answered) <= LOOKOUT);
        self.length = match (alone, soon) {
            (true, true) => (self.length + 1).min(2 * SEQUENCE),
            (true, false) => self.length / 2,
            (false, _) => 0,
        };
        self.respect = self.respect.saturating_sub(1);
    }

    /// Whether to look out for the next operation.
    pub(super) fn goes_on(&self) -> bool {
        self.length >= SEQUENCE && self.respect == 0
    }

    /// How looking out ended.
    pub(super) fn waited(&mut self, seen: Seen) {
        match seen {
            Seen::Operation => self.respected = self.respected.saturating_sub(1),
            Seen::Nothing => {}
            Seen::Interruption => {
                self.respect = (self.respected * 2).clamp(*RESPECT.start(), *RESPECT.end());
                self.respected = self.respect;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence of operations, each answered at once, after so many microseconds each.
    fn sequence(gaps: impl IntoIterator<Item = u64>) -> Sequence {
        let mut sequence = Sequence::default();
        for micros in gaps {
            sequence.answered();
            let now = sequence.answered.unwrap() + Duration::from_micros(micros);
            sequence.comes(true, now);
        }
        sequence
    }

    #[test]
    fn only_operations_that_follow_each_other_at_once_are_a_sequence() {
        assert!(!Sequence::default().goes_on());
        assert!(!sequence([20; 3]).goes_on());
        assert!(sequence([20; 4]).goes_on());
        assert!(!sequence([300; 40]).goes_on());
        assert!(sequence([20; 40].into_iter().chain([300])).goes_on(), "one that came late");
        assert!(!sequence([20; 40].into_iter().chain([300; 2])).goes_on());
        let mut several = sequence([20; 40]);
        several.comes(false, Instant::now());
        assert!(!several.goes_on(), "somebody else asks as well");
    }

    #[test]
    fn a_core_that_others_need_is_left_to_them_for_a_while() {
        let mut sequence = sequence([20; 40]);
        sequence.waited(Seen::Nothing);
        assert!(sequence.goes_on());
        for times in [1, 2, 4] {
            sequence.waited(Seen::Interruption);
            for _ in 0..RESPECT.start() * times {
                assert!(!sequence.goes_on());
                sequence.answered();
                sequence.comes(true, sequence.answered.unwrap());
            }
            assert!(sequence.goes_on());
        }
    }

    #[test]
    fn an_operation_that_was_shown_is_seen() {
        let lookout = Lookout::default();
        lookout.prepare();
        lookout.show();
        // Another test may look out.
        while lookout.wait() != Seen::Operation {
            thread::yield_now();
        }
        lookout.prepare();
        assert_ne!(lookout.wait(), Seen::Operation);
    }
}
