//! The request that a thread is working for, so that log entries can be traced to it.
//!
//! A request runs on one thread, so this is stored per thread and not passed as an argument. Work that is distributed
//! among threads (`_msearch`) passes it on with [`current`] and [`enter`].

use std::cell::RefCell;
use std::sync::Arc;

use crate::named::Named;

/// The identifiers of a request, both those sent by its client and the one assigned by the HTTP layer. They appear in
/// logs and tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The id that the HTTP layer assigned to the request and returns as `X-Request-Id`.
    pub request_id: Option<String>,
    /// The trace to which the request belongs: 32 hexadecimal digits from its `traceparent` header.
    pub trace_id: Option<String>,
    /// The request's header `X-Opaque-Id`.
    pub opaque_id: Option<String>,
    /// Where the index names that the request refers to are collected; `None` if they are not wanted.
    pub named: Option<Named>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Origin>>> = const { RefCell::new(None) };
}

/// Guard that clears the thread's current request when dropped.
pub struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(Option::take);
    }
}

/// Sets the request that this thread is working for, until the guard is dropped.
pub fn enter(origin: Option<Arc<Origin>>) -> Entered {
    CURRENT.set(origin);
    Entered(())
}

/// Records an index name for this thread's current request, if its names are collected.
pub fn note(index: &str) {
    let _ = CURRENT.try_with(|current| {
        if let Some(named) = current.borrow().as_deref().and_then(|origin| origin.named.as_ref()) {
            named.add(index);
        }
    });
}

/// The request that this thread is working for, if any.
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
