//! Lowers the priority of threads that should not hold up searches: those that write, and behind them those
//! whose work nobody waits for, such as merges and flushes.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Niceness of threads that write, added to that of the process. If two threads compete for the same
/// processor, Linux gives one that is nicer by this a quarter of it, so that writes do not stop however much
/// is searched; otherwise all of it.
const WRITES: i32 = 5;
/// Niceness of threads whose work nobody waits for, added to that of the process: beside a write they get a
/// quarter of a processor, so that merges do not fall behind for good.
const UPKEEP: i32 = 2 * WRITES;
/// Highest niceness of the operating system.
const NICEST: i32 = 19;

type Work = Box<dyn FnOnce() + Send>;

/// Passes work to the thread that still has the niceness of the process; none if it could not be started.
static ORDINARY: OnceLock<Option<Sender<Work>>> = OnceLock::new();

/// Lowers the priority of the current thread below those that answer searches, permanently: the system does
/// not let niceness be reduced again. Threads that it starts inherit it, unless it starts them in
/// [`ordinarily`]. Only Linux has a niceness per thread; elsewhere this does nothing.
pub fn step_behind_searches() {
    step_back(WRITES);
}

/// As [`step_behind_searches`], and below threads that write as well.
pub fn step_behind_writes() {
    step_back(UPKEEP);
}

fn step_back(levels: i32) {
    thread_local! {
        static LEVELS: Cell<i32> = const { Cell::new(0) };
    }
    if cfg!(target_os = "linux") && LEVELS.get() < levels {
        LEVELS.set(levels);
        // Started while the first thread that steps back has not done so yet.
        ORDINARY.get_or_init(start_ordinary);
        set((of_process() + levels).min(NICEST));
    }
}

fn start_ordinary() -> Option<Sender<Work>> {
    let (sender, works) = channel::<Work>();
    let run = move || works.into_iter().for_each(|work| work());
    thread::Builder::new().name("sparrow-ordinary".into()).spawn(run).ok().map(|_| sender)
}

/// Runs `work`, which starts threads, so that they have the niceness of the process even if the current one
/// has stepped back. Returns its result; a panic in it is resumed here.
pub fn ordinarily<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let ordinary = match ORDINARY.get() {
        Some(Some(ordinary)) if has_stepped_back() => ordinary,
        _ => return work(),
    };
    let (sender, result) = channel();
    let work = move || {
        // The receiver waits for it below.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    };
    ordinary.send(Box::new(work)).expect("the thread runs as long as the process");
    result.recv().expect("sent even after a panic").unwrap_or_else(|panic| resume_unwind(panic))
}

/// Whether the current thread is nicer than the process, which it may have inherited.
#[cfg(target_os = "linux")]
fn has_stepped_back() -> bool {
    of(0) > of_process()
}

/// Niceness of the process's main thread.
#[cfg(target_os = "linux")]
fn of_process() -> i32 {
    of(std::process::id())
}

/// Niceness of a thread of this process, given its id; 0 is the current thread.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no niceness")]
fn of(thread: u32) -> i32 {
    // SAFETY: touches no memory. A failure is -1, which is a niceness too, and one that does no harm here.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no niceness")]
fn set(niceness: i32) {
    // SAFETY: touches no memory, and of threads only this one (0). Refused, the thread stays as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
}

#[cfg(not(target_os = "linux"))]
fn has_stepped_back() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn of_process() -> i32 {
    0
}

#[cfg(not(target_os = "linux"))]
fn set(_: i32) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// How much nicer the current thread is than the process.
    fn levels() -> i32 {
        of(0) - of_process()
    }

    #[test]
    fn a_thread_steps_back_alone_and_never_forward() {
        let before = of(0);
        let most = NICEST - of_process();
        let seen = thread::spawn(|| {
            let step = |step: fn()| {
                step();
                levels()
            };
            [step_behind_searches, step_behind_searches, step_behind_writes, step_behind_searches].map(step)
        });
        assert_eq!(seen.join().unwrap(), [WRITES, WRITES, UPKEEP, UPKEEP].map(|levels| levels.min(most)));
        assert_eq!(of(0), before);
    }

    #[test]
    fn threads_inherit_niceness_unless_they_are_started_ordinarily() {
        let started = || thread::spawn(levels).join().unwrap();
        let seen = thread::spawn(move || {
            step_behind_searches();
            (started(), ordinarily(started))
        });
        assert_eq!(seen.join().unwrap(), (WRITES.min(NICEST - of_process()), 0));
    }

    #[test]
    fn a_panic_is_resumed_where_the_work_was_asked_for() {
        let outcome = thread::spawn(|| {
            step_behind_searches();
            catch_unwind(|| ordinarily(|| panic!("of the work"))).is_err()
        });
        assert!(outcome.join().unwrap());
        assert_eq!(ordinarily(|| 1), 1, "the thread goes on");
    }
}
