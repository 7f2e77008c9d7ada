//! Other threads that work on the same request for a while.

use std::panic::resume_unwind;
use std::thread;

use sparrow_call::origin;
use sparrow_types::processors::Busy;
use sparrow_types::work;
use sparrow_wire::deprecation;

/// Runs `part` on this thread and on `helpers` others, which are told that they only help: they work for the same request, and what
/// they warn of is told with its answer. Where no thread can be had, fewer do. Returns what each found, this thread first.
pub(super) fn share<T: Send>(helpers: usize, part: impl Fn(bool) -> T + Sync) -> Vec<T> {
    let (asker, request) = (origin::current(), work::current());
    thread::scope(|scope| {
        let help = || {
            let _origin = origin::enter(asker.clone());
            let _request = work::enter(request.clone());
            let _busy = Busy::begin();
            (part(true), deprecation::take())
        };
        let spawned: Vec<_> = (0..helpers)
            .filter_map(|_| {
                let named = thread::Builder::new().name("sparrow-search-help".into());
                named.spawn_scoped(scope, help).ok()
            })
            .collect();
        let mut found = vec![part(false)];
        for helper in spawned {
            // A panic there is one here.
            let (of_helper, warnings) = helper.join().unwrap_or_else(|panic| resume_unwind(panic));
            deprecation::add(warnings);
            found.push(of_helper);
        }
        found
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn helpers_take_their_part_and_their_warnings_are_told() {
        let next = AtomicUsize::new(0);
        let found = share(2, |_| {
            let number = next.fetch_add(1, Relaxed);
            deprecation::warn(format!("warning {number}"));
            // All three are at work at the same time.
            while next.load(Relaxed) < 3 {
                thread::yield_now();
            }
            number
        });
        let mut numbers = found.clone();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(deprecation::take().len(), 3);
    }

    #[test]
    fn a_panic_of_a_helper_is_one_of_the_request() {
        let outcome = std::panic::catch_unwind(|| share(1, |is_helper| assert!(!is_helper)));
        assert!(outcome.is_err());
    }
}
