//! Tracks how many processors are idle and could take a part of a search.
//!
//! Threads that work on requests register with [`Busy`], and exclude waiting times with [`pause`]. Threads
//! that merge or encode are not counted: they have a lower priority, or the request waits for them.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crate::{attempt, work};

/// Stack size of helper threads in bytes; the same as that of threads that work on requests.
const HELPER_STACK: usize = 2 << 20;

static BUSY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Registers the current thread as working on a request, until this is dropped. A thread counts once, even if
/// it registers several times.
#[derive(Debug)]
pub struct Busy {
    is_counted: bool,
    /// Prevents moving to another thread, since the current one is counted.
    not_send: PhantomData<*const ()>,
}

impl Busy {
    /// Registers the current thread.
    #[must_use]
    pub fn begin() -> Self {
        let is_counted = !IS_BUSY.replace(true);
        if is_counted {
            BUSY.fetch_add(1, Relaxed);
        }
        Self { is_counted, not_send: PhantomData }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.is_counted {
            BUSY.fetch_sub(1, Relaxed);
            IS_BUSY.set(false);
        }
    }
}

/// Runs something that needs no processor, such as waiting for another thread; the current thread is not
/// counted meanwhile.
pub fn pause<T>(work: impl FnOnce() -> T) -> T {
    /// Guard that counts the thread again, also after a panic.
    struct Again;
    impl Drop for Again {
        fn drop(&mut self) {
            IS_BUSY.set(true);
            BUSY.fetch_add(1, Relaxed);
        }
    }
    // What registers during the pause, such as another request that the thread works on meanwhile, is counted.
    let _again = IS_BUSY.replace(false).then(|| {
        BUSY.fetch_sub(1, Relaxed);
        Again
    });
    work()
}

/// Number of processors that the process may use.
pub fn available() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Number of processors on which no thread works on a request; 0 in an attempt, as waiting for help would hold up the event loop.
pub fn idle() -> usize {
    if attempt::is_active() {
        return 0;
    }
    available().saturating_sub(BUSY.load(Relaxed))
}

/// Whether more threads work on requests than there are processors; helper threads should then stop.
pub fn are_overloaded() -> bool {
    BUSY.load(Relaxed) > available()
}

/// Runs `part(false)` on the current thread and `part(true)` on up to `helpers` others, fewer if threads
/// cannot be started. The others work for the request of the current thread. Returns the results, the current thread's first. A panic on any of them is resumed on
/// the current one.
pub fn share<T: Send>(helpers: usize, part: impl Fn(bool) -> T + Sync) -> Vec<T> {
    let request = work::current();
    thread::scope(|scope| {
        let help = || {
            let _busy = Busy::begin();
            let _request = work::enter(request.clone());
            part(true)
        };
        let spawned: Vec<_> = (0..helpers)
            .filter_map(|_| {
                let helper = thread::Builder::new().name("sparrow-help".into()).stack_size(HELPER_STACK);
                helper.spawn_scoped(scope, help).ok()
            })
            .collect();
        let mut results = Vec::with_capacity(1 + spawned.len());
        results.push(part(false));
        results.extend(
            spawned.into_iter().map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic))),
        );
        results
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Serialises the tests, which would change each other's counts.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn a_thread_counts_once_and_until_it_has_finished() {
        let _alone = alone();
        let before = BUSY.load(Relaxed);
        let outer = Busy::begin();
        let inner = Busy::begin();
        assert_eq!(BUSY.load(Relaxed), before + 1);
        drop(inner);
        assert_eq!(BUSY.load(Relaxed), before + 1);
        pause(|| assert_eq!(BUSY.load(Relaxed), before));
        assert_eq!(BUSY.load(Relaxed), before + 1);
        pause(|| {
            let _inner = Busy::begin();
            assert_eq!(BUSY.load(Relaxed), before + 1);
            pause(|| assert_eq!(BUSY.load(Relaxed), before));
        });
        assert_eq!(BUSY.load(Relaxed), before + 1);
        let inner = Busy::begin();
        assert_eq!(BUSY.load(Relaxed), before + 1);
        drop(inner);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _busy = Busy::begin();
                assert_eq!(BUSY.load(Relaxed), before + 2);
            });
        });
        drop(outer);
        assert_eq!(BUSY.load(Relaxed), before);
        assert_eq!(idle(), available().saturating_sub(before));
    }
    #[test]
    fn helpers_take_their_part_and_count_as_busy() {
        let _alone = alone();
        let parts = AtomicUsize::new(0);
        let results = share(2, |is_helper| {
            parts.fetch_add(1, Relaxed);
            // All three are at work at the same time.
            while parts.load(Relaxed) < 3 {
                thread::yield_now();
            }
            (is_helper, IS_BUSY.get())
        });
        assert_eq!(results, [(false, false), (true, true), (true, true)]);
    }

    #[test]
    fn a_panic_of_a_helper_is_one_here() {
        let _alone = alone();
        let outcome = std::panic::catch_unwind(|| share(1, |is_helper| assert!(!is_helper)));
        assert!(outcome.is_err());
    }
}
