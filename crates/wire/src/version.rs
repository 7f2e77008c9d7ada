//! The version of Elasticsearch's interface that a request speaks.
//!
//! A request is read on one thread, so the version is kept per thread, as [`crate::deprecation`] keeps warnings: no parser needs
//! an extra parameter. Operations that use several threads pass it on.

use std::cell::Cell;

/// The version of requests that name none.
const USUAL: u8 = 8;

thread_local! {
    static SPOKEN: Cell<u8> = const { Cell::new(USUAL) };
}

/// Restores the version that was spoken before on this thread.
#[must_use]
#[derive(Debug)]
pub struct Entered(u8);

impl Drop for Entered {
    fn drop(&mut self) {
        SPOKEN.set(self.0);
    }
}

/// Sets the version of Elasticsearch's interface in which this thread reads requests, until the guard is dropped; `None` stands for
/// version 8.
pub fn enter(version: Option<u8>) -> Entered {
    Entered(SPOKEN.replace(version.unwrap_or(USUAL)))
}

/// The version that is spoken on this thread.
pub fn spoken() -> u8 {
    SPOKEN.get()
}

/// Whether the request may use a form that version 9 has no more.
pub fn has_forms_of_8() -> bool {
    spoken() < 9
}
