//! Asks the scheduler to run threads that answer somebody soon after they are woken.

/// Time slice of threads that answer somebody, in nanoseconds: the shortest that Linux grants.
#[cfg(target_os = "linux")]
const SHORT: u64 = 100_000;

/// Asks for a short time slice for the current thread. Linux 6.12 and newer then lets it interrupt a thread
/// with a longer slice as soon as it is woken, instead of when that one's slice is over; neither gets more of
/// the processor in all. Needs no privilege, and does nothing elsewhere. Threads that it starts inherit the
/// slice.
pub fn shorten() {
    #[cfg(target_os = "linux")]
    ask_for(SHORT);
}

/// Asks for the usual time slice, for a thread that was started by one with a short slice and works for long.
pub fn restore() {
    #[cfg(target_os = "linux")]
    ask_for(0);
}

/// Asks for a time slice in nanoseconds; 0 is the usual one.
#[cfg(target_os = "linux")]
fn ask_for(nanoseconds: u64) {
    use libc::{SCHED_BATCH, SCHED_OTHER};

    // Everything else stays as it is.
    if let Some(attributes) = get()
        && [SCHED_OTHER, SCHED_BATCH].contains(&attributes.sched_policy.cast_signed())
    {
        set(&libc::sched_attr { sched_runtime: nanoseconds, ..attributes });
    }
}

/// How the current thread is scheduled; `None` if the system does not say.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no scheduling attributes")]
fn get() -> Option<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    let mut attributes = libc::sched_attr {
        size: size.try_into().ok()?,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `size` bytes into the structure, which is as long, and concerns only this thread (0).
    let outcome = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (outcome == 0).then_some(attributes)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no scheduling attributes")]
fn set(attributes: &libc::sched_attr) {
    // SAFETY: the kernel reads as many bytes as the structure says it has, and changes only this thread (0). Refused, it stays as it is.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes, 0) };
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_slice_changes_and_only_of_the_current_thread() {
        let (before, after, inherited, restored) = std::thread::spawn(|| {
            let before = get().unwrap();
            shorten();
            let started = std::thread::spawn(|| {
                let inherited = get().unwrap();
                restore();
                (inherited, get().unwrap())
            });
            let (inherited, restored) = started.join().unwrap();
            (before, get().unwrap(), inherited, restored)
        })
        .join()
        .unwrap();
        assert_eq!(inherited.sched_runtime, after.sched_runtime);
        assert_eq!(restored.sched_runtime, before.sched_runtime);
        let rest =
            |of: &libc::sched_attr| (of.sched_policy, of.sched_flags, of.sched_nice, of.sched_priority);
        assert_eq!(rest(&after), rest(&before));
        let ordinary = before.sched_policy == libc::SCHED_OTHER.cast_unsigned();
        // Older kernels do not know slices of ordinary threads, and say 0.
        if ordinary && before.sched_runtime > 0 {
            assert_eq!(after.sched_runtime, SHORT);
        } else {
            assert_eq!(after.sched_runtime, before.sched_runtime);
        }
        assert_ne!(get().unwrap().sched_runtime, SHORT, "another thread");
    }
}
