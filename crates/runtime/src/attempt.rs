//! An attempt to carry out a short operation on the thread that asks for it, which must not be held up.
//!
//! If the operation turns out to take long or has to wait, the attempt is given up: its result, whatever it
//! is, is discarded, and the operation is carried out again by another thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    /// The flag that stops the attempt of this thread, if it makes one.
    static CURRENT: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Guard of [`begin`]; the attempt ends when it is dropped.
#[derive(Debug)]
pub struct Attempt(());

impl Drop for Attempt {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Begins an attempt on the current thread, until the returned guard is dropped. The flag stops the operation.
#[must_use]
pub fn begin(stop: &Arc<AtomicBool>) -> Attempt {
    CURRENT.set(Some(Arc::clone(stop)));
    Attempt(())
}

/// Whether the current thread makes an attempt.
pub fn is_active() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Gives up the attempt of the current thread, if it makes one, because what follows would hold it up. Returns
/// whether it makes one; the caller then returns as soon as it can, with any result.
pub fn give_up() -> bool {
    CURRENT.with_borrow(|current| {
        if let Some(stop) = current {
            stop.store(true, Relaxed);
        }
        current.is_some()
    })
}

/// Longest document that an attempt reads, in bytes: nothing that is done with a document looks at the stop flag.
const LONGEST_DOCUMENT: usize = 32 << 10;

/// Gives up the attempt of the current thread, if it makes one, where it would go on with a document of so many bytes that this
/// would hold it up. Returns whether it does; the caller then returns as soon as it can, with any result.
pub fn give_up_document(bytes: usize) -> bool {
    bytes > LONGEST_DOCUMENT && give_up()
}

/// Whether the current thread makes an attempt that has been given up. What it does does not count then, as it
/// will be done again.
pub fn is_given_up() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|stop| stop.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_given_up_by_its_own_thread_or_by_its_flag() {
        assert!(!give_up() && !is_active() && !is_given_up(), "no attempt is made");
        let stop = Arc::new(AtomicBool::new(false));
        {
            let _attempt = begin(&stop);
            assert!(is_active() && !is_given_up());
            assert!(!std::thread::spawn(give_up).join().unwrap(), "another thread makes none");
            assert!(!is_given_up());
            assert!(give_up());
            assert!(is_given_up() && stop.load(Relaxed));
        }
        assert!(!is_active() && !is_given_up(), "it has ended");
        let _attempt = begin(&stop);
        assert!(is_given_up());
    }

    #[test]
    fn a_long_document_is_no_matter_for_an_attempt() {
        assert!(!give_up_document(usize::MAX), "no attempt is made");
        let stop = Arc::new(AtomicBool::new(false));
        let _attempt = begin(&stop);
        assert!(!give_up_document(LONGEST_DOCUMENT) && !is_given_up());
        assert!(give_up_document(LONGEST_DOCUMENT + 1) && is_given_up());
    }
}
