//! Waiting for the next operation without sleeping.
//!
//! Waking a thread whose core sleeps takes longer than many an operation. A client that sends one request
//! after the other, each as soon as the last one is answered, would pay for that every time. So a worker that
//! has just answered spins for a moment until the next operation comes, but only while such a sequence goes
//! on, and only while no other thread needs the core.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

use sparrow_types::processors;

/// How long a worker spins at most: most clients that send one request after the other send the next one within that time.
const LOOKOUT: Duration = Duration::from_micros(80);

/// Number of operations that have to follow each other at once before a worker spins for the next one.
const SEQUENCE: u8 = 4;

/// Longest time between two checks of a spinning thread that counts as undisturbed. After a longer one, another thread has had the
/// core.
const INTERRUPTED: Duration = Duration::from_micros(30);

/// Number of operations for which no worker spins after another thread needed the core: from the first bound,
/// doubled at each further interruption, up to the second.
const RESPECT: RangeInclusive<u16> = 16..=4096;

/// Whether some worker of the process is spinning now. At most one does.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The flag by which a spinning worker sees that it was handed an operation.
#[derive(Default)]
pub(super) struct Lookout {
    shown: AtomicBool,
}

/// How a worker's spinning ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Seen {
    /// An operation came.
    Operation,
    Nothing,
    /// Another thread needed the core.
    Interruption,
}

impl Lookout {
    /// Clears the flag; called before others can hand the worker anything.
    pub(super) fn prepare(&self) {
        self.shown.store(false, Relaxed);
    }

    /// Sets the flag, so that the spinning worker sees that it was handed an operation.
    pub(super) fn show(&self) {
        self.shown.store(true, Release);
    }

    /// Spins until an operation comes, another thread needs the core, or [`LOOKOUT`] is over. Returns at once
    /// when fewer than two cores are idle or another worker spins.
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

/// Detects whether operations come one after the other, each soon after the answer to the last one.
#[derive(Default)]
pub(super) struct Sequence {
    /// When the last operation was answered.
    answered: Option<Instant>,
    /// Operations that came within [`LOOKOUT`] of the last answer; halved by one that came later, 0 after one that was not alone.
    length: u8,
    /// Number of further operations for which no worker spins.
    respect: u16,
    /// Number of operations for which spinning was suspended at the last interruption, less one for each successful spin since.
    respected: u16,
}

impl Sequence {
    /// Notes that an operation has been answered now.
    pub(super) fn answered(&mut self) {
        self.answered = Some(Instant::now());
    }

    /// Notes that an operation comes; `alone` if no other operation of the engine is running and no other
    /// answer is on its way back.
    pub(super) fn comes(&mut self, alone: bool, now: Instant) {
        let soon = self.answered.is_some_and(|answered| now.saturating_duration_since(answered) <= LOOKOUT);
        self.length = match (alone, soon) {
            (true, true) => (self.length + 1).min(2 * SEQUENCE),
            (true, false) => self.length / 2,
            (false, _) => 0,
        };
        self.respect = self.respect.saturating_sub(1);
    }

    /// Whether a worker should spin for the next operation.
    pub(super) fn goes_on(&self) -> bool {
        self.length >= SEQUENCE && self.respect == 0
    }

    /// Notes how spinning ended.
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

    /// State after operations with these gaps, in microseconds, between the answer to one and the arrival of the next.
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
