//! Threads whose work nobody waits for, such as merges and flushes, leave processors to the others.

/// Levels of `nice` below the rest of the process. Where a thread that answers a request wants the same processor, Linux gives the nicer
/// one a quarter of it, so that merges do not fall behind for good; and all of it where nobody else wants it.
const LEVELS: i32 = 5;
/// The highest niceness there is.
const NICEST: i32 = 19;

/// Puts this thread behind those that answer requests, for as long as it lives: the system lets nobody take niceness back.
/// Threads that it starts inherit it. Only Linux has a niceness for each thread; elsewhere this does nothing.
pub fn step_back() {
    thread_local! {
        static HAS_STEPPED_BACK: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    if !HAS_STEPPED_BACK.replace(true) {
        set((of_process() + LEVELS).min(NICEST));
    }
}

/// Niceness of the process, which is that of its first thread.
#[cfg(target_os = "linux")]
fn of_process() -> i32 {
    of(std::process::id())
}

/// Niceness of a thread of this process by its number, 0 for this one.
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
fn of_process() -> i32 {
    0
}

#[cfg(not(target_os = "linux"))]
fn set(_: i32) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_steps_back_once_and_alone() {
        let before = of(0);
        let levels = std::thread::spawn(|| {
            step_back();
            step_back();
            of(0) - of_process()
        });
        assert_eq!(levels.join().unwrap(), LEVELS.min(NICEST - of_process()));
        assert_eq!(of(0), before);
    }
}
