//! Waiting for something that does not need the thread's core, so that another operation may run in the meantime.

use std::cell::RefCell;
use std::sync::Arc;

use sparrow_runtime::attempt;
pub use sparrow_runtime::attempt::give_up;
use sparrow_runtime::processors::pause;

/// Accounting of a thread that runs operations: the thread is counted while it needs a core.
pub trait Worker: Send + Sync {
    /// Says whether the thread needs a core from now on.
    fn needs_core(&self, needs: bool);
}

thread_local! {
    /// The accounting of this thread, if it has one.
    static WORKER: RefCell<Option<Arc<dyn Worker>>> = const { RefCell::new(None) };
}

/// Sets the accounting of this thread, until the thread ends.
pub fn work_for(worker: Arc<dyn Worker>) {
    WORKER.set(Some(worker));
}

/// Guard that reports the thread as needing a core again when dropped, also on a panic.
struct Back(Arc<dyn Worker>);

impl Drop for Back {
    fn drop(&mut self) {
        self.0.needs_core(true);
    }
}

/// Runs `work` that does not need a core on this thread, such as waiting for the encoder, so that another operation
/// may run in the meantime. An attempt to answer without another thread is given up before.
pub fn waiting<T>(work: impl FnOnce() -> T) -> T {
    give_up();
    let worker = WORKER.with_borrow(Clone::clone);
    let Some(worker) = worker else { return pause(work) };
    worker.needs_core(false);
    let _back = Back(worker);
    pause(work)
}

/// As [`waiting`], for `work` that waits only in some cases and gives an attempt up in these by itself.
pub fn waiting_unless_attempted<T>(work: impl FnOnce() -> T) -> T {
    if attempt::is_active() { work() } else { waiting(work) }
}
