//! Which request a thread works for, so that what it logs can be traced to that request.
//!
//! A request runs on one thread, so this is kept per thread and handed through nothing. Work that is shared among threads
//! (`_msearch`) hands it over with [`current`] and [`enter`].

use std::cell::RefCell;
use std::sync::Arc;

use crate::named::Named;

/// The identifiers of a request: those that its client sent along, and the one that the HTTP layer gave it. They go into logs
/// and tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The number that the HTTP layer gave the request and sent back as `X-Request-Id`.
    pub request_id: Option<String>,
    /// The trace that the request is part of: 32 hexadecimal digits of its header `traceparent`.
    pub trace_id: Option<String>,
    /// The request's header `X-Opaque-Id`.
    pub opaque_id: Option<String>,
    /// Where the indices that it names are gathered, if anybody wants to know.
    pub named: Option<Named>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Origin>>> = const { RefCell::new(None) };
}

/// Restores the thread's previous request when dropped.
pub struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(Option::take);
    }
}

/// What this thread works for until the guard is dropped.
pub fn enter(origin: Option<Arc<Origin>>) -> Entered {
    CURRENT.set(origin);
    Entered(())
}

/// Gathers the name of an index for the request that this thread works for, if anybody wants to know its names.
pub fn note(index: &str) {
    let _ = CURRENT.try_with(|current| {
        if let Some(named) = current.borrow().as_deref().and_then(|origin| origin.named.as_ref()) {
            named.add(index);
        }
    });
}

/// What this thread works for, if for a request.
pub fn current() -> Option<Arc<Origin>> {
    // Where a thread ends, there may be nothing left to ask.
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    #[test]
    fn a_thread_works_for_a_request_until_the_guard_is_dropped() {
        let request = Request { trace_id: Some("abc".into()), ..Request::default() };
        assert_eq!(Request::default().origin(), None);
        let entered = enter(request.origin());
        assert_eq!(current().unwrap().trace_id.as_deref(), Some("abc"));
        drop(entered);
        assert_eq!(current(), None);
    }
}
