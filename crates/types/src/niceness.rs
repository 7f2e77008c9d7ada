//! Lowers the priority of threads whose work nobody waits for, such as merges and flushes.

/// Niceness added to that of the process. If a thread that answers a request competes for the same processor,
/// Linux gives the nicer thread a quarter of it, so that merges do not fall behind for good; otherwise all of
/// it.
const LEVELS: i32 = 5;
/// Highest niceness of the operating system.
const NICEST: i32 = 19;

/// Lowers the priority of the current thread below those that answer requests, permanently: the system does
/// not let niceness be reduced again. Threads that it starts inherit it. Only Linux has a niceness per
/// thread; elsewhere this does nothing.
pub fn step_back() {
    thread_local! {
        static HAS_STEPPED_BACK: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    if !HAS_STEPPED_BACK.replace(true) {
        set((of_process() + LEVELS).min(NICEST));
    }
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
