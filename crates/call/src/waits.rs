//! Operations that wait for something which takes nothing of their own core, so that another may run meanwhile.

use std::cell::RefCell;
use std::sync::Arc;

use sparrow_types::processors::pause;

/// A thread that is counted as long as it needs a core.
pub trait Worker: Send + Sync {
    /// Says whether the thread needs a core from now on.
    fn needs_core(&self, needs: bool);
}

thread_local! {
    /// Who counts this thread.
    static WORKER: RefCell<Option<Arc<dyn Worker>>> = const { RefCell::new(None) };
}

/// Lets a thread be counted by `worker` until it ends.
pub fn work_for(worker: Arc<dyn Worker>) {
    WORKER.set(Some(worker));
}

/// A worker that needs a core again when this is dropped, also by a panic.
struct Back(Arc<dyn Worker>);

impl Drop for Back {
    fn drop(&mut self) {
        self.0.needs_core(true);
    }
}

/// Does what needs no core of this thread, such as waiting for the encoder: another operation may run meanwhile.
pub fn waiting<T>(work: impl FnOnce() -> T) -> T {
    let worker = WORKER.with_borrow(Clone::clone);
    let Some(worker) = worker else { return pause(work) };
    worker.needs_core(false);
    let _back = Back(worker);
    pause(work)
}
