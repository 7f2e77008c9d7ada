//! Running parts of a request on other threads as well.

use sparrow_types::{processors, work};
use sparrow_wire::deprecation;

use super::origin;

/// As [`processors::share`], for a request: helpers work for the same one as this thread, and what they warn of is told with its answer.
pub fn share<T: Send>(helpers: usize, part: impl Fn(bool) -> T + Sync) -> Vec<T> {
    let (asker, request) = (origin::current(), work::current());
    let results = processors::share(helpers, |is_helper| {
        if !is_helper {
            return (part(false), Vec::new());
        }
        let _origin = origin::enter(asker.clone());
        let _request = work::enter(request.clone());
        (part(true), deprecation::take())
    });
    let told = results.into_iter().map(|(result, warnings)| {
        deprecation::add(warnings);
        result
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;

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
