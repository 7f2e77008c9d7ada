//! Running parts of a request on other threads as well.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sparrow_runtime::processors;
use sparrow_wire::{deprecation, version};

use super::origin;

/// As [`processors::share`]: helpers log under the same request as this thread, and what they warn of is told with its answer.
pub fn share<T: Send>(helpers: usize, part: impl Fn(bool) -> T + Sync) -> Vec<T> {
    let asker = origin::current();
    let spoken = version::spoken();
    let results = processors::share(helpers, |is_helper| {
        if !is_helper {
            return (part(false), Vec::new());
        }
        let _origin = origin::enter(asker.clone());
        let _version = version::enter(Some(spoken));
        (part(true), deprecation::take())
    });
    let told = results.into_iter().map(|(result, warnings)| {
        deprecation::add(warnings);
        result
    });
    told.collect()
}

/// Has `part` done for each number below `parts`, once, by this thread and as many helpers as [`share`] takes. Returns the results in the
/// order of the numbers. A helper takes no further part while more threads work than there are processors.
pub fn share_parts<T: Send>(helpers: usize, parts: usize, part: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = share(helpers, |is_helper| {
        let mut results = Vec::new();
        while !(is_helper && processors::are_overloaded()) {
            let number = next.fetch_add(1, Relaxed);
            if number >= parts {
                break;
            }
            results.push((number, part(number)));
        }
        results
    });
    let mut results: Vec<_> = results.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn parts_come_back_in_order_each_once() {
        for helpers in 0..4 {
            assert_eq!(
                share_parts(helpers, 100, |number| number * number),
                (0..100).map(|n| n * n).collect::<Vec<_>>()
            );
            assert!(share_parts(helpers, 0, |number| number).is_empty());
        }
    }

    #[test]
    fn helpers_take_their_part_and_their_warnings_are_told() {
        let next = AtomicUsize::new(0);
        let mut numbers = share(2, |_| {
            let number = next.fetch_add(1, Relaxed);
            deprecation::warn(format!("warning {number}"));
            // All three are at work at the same time.
            while next.load(Relaxed) < 3 {
                thread::yield_now();
            }
            number
        });
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(deprecation::take().len(), 3);
    }
}
