//! An attempt to carry out a short operation on the thread that asks for it, which must not be held up.
//!
//! If the operation turns out to take long or has to wait, the attempt is given up: its result, whatever it
//! is, is discarded, and the operation is carried out again by another thread.

use std::cell::RefCell;

use crate::request::CancelFlag;

thread_local! {
    /// The flag that stops the attempt of this thread, if it makes one.
    static CURRENT: RefCell<Option<CancelFlag>> = const { RefCell::new(None) };
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
pub fn begin(stop: &CancelFlag) -> Attempt {
    CURRENT.set(Some(stop.clone()));
    Attempt(())
}

/// Gives up the attempt of the current thread, if it makes one: what follows would hold it up.
pub fn give_up() {
    CURRENT.with_borrow(|current| {
        if let Some(stop) = current {
            stop.cancel();
        }
    });
}

/// Whether the current thread makes an attempt that has been given up. What it did does not count then, as it
/// will be done again.
pub fn is_given_up() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(CancelFlag::is_cancelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_given_up_by_its_own_thread_or_by_its_flag() {
        give_up();
        assert!(!is_given_up(), "no attempt is made");
        let stop = CancelFlag::default();
        {
            let _attempt = begin(&stop);
            assert!(!is_given_up());
            std::thread::spawn(give_up).join().unwrap();
            assert!(!is_given_up(), "another thread makes none");
            give_up();
            assert!(is_given_up() && stop.is_cancelled());
        }
        assert!(!is_given_up(), "it has ended");
        let _attempt = begin(&stop);
        assert!(is_given_up());
    }
}
