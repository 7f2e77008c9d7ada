//! A time limit for one operation after the other.

#[cfg(not(target_os = "linux"))]
use std::time::Duration;

#[cfg(not(target_os = "linux"))]
use sparrow_request::request::CancelFlag;

#[cfg(target_os = "linux")]
pub(super) use self::linux::TimeLimit;

/// This system has no such limit, so nothing is limited.
#[cfg(not(target_os = "linux"))]
pub(super) enum TimeLimit {}

#[cfg(not(target_os = "linux"))]
impl TimeLimit {
    pub(super) fn start() -> Option<Self> {
        None
    }

    pub(super) fn begin(&self, _stop: &CancelFlag, _limit: Duration) {
        match *self {}
    }

    pub(super) fn close(&self) {
        match *self {}
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    use parking_lot::Mutex;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    use sparrow_request::request::CancelFlag;
    use sparrow_runtime::time_slice;

    /// Sets a flag when an operation takes too long. A thread sleeps until that happens.
    pub(crate) struct TimeLimit {
        shared: Arc<Shared>,
    }

    struct Shared {
        timer: OwnedFd,
        state: Mutex<State>,
    }

    #[derive(Default)]
    struct State {
        /// The flag of the operation that is carried out now, and when it is to be set.
        current: Option<(CancelFlag, Instant)>,
        /// Whether the timer will go off.
        armed: bool,
        closed: bool,
    }

    impl TimeLimit {
        /// Starts the thread; `None` if the system does not allow it.
        pub(crate) fn start() -> Option<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok()?;
            let shared = Arc::new(Shared { timer, state: Mutex::default() });
            let watched = Arc::clone(&shared);
            let watch = move || {
                // Otherwise the thread would wait until the time slice of the thread that has the core is over.
                time_slice::shorten();
                let gone_off =
                    || rustix::io::retry_on_intr(|| rustix::io::read(&watched.timer, &mut [0_u8; 8]));
                while gone_off().is_ok() && watched.goes_on() {}
                watched.end();
            };
            thread::Builder::new().name("sparrow-limit".into()).spawn(watch).ok()?;
            Some(Self { shared })
        }

        /// Sets the flag after a time, unless the returned guard is dropped before. One operation at a time is limited: while
        /// another is, and after closing, the flag is set at once.
        pub(crate) fn begin(&self, stop: &CancelFlag, limit: Duration) -> Limited<'_> {
            let mut state = self.shared.state.lock();
            if state.closed || state.current.is_some() {
                stop.cancel();
                return Limited(None);
            }
            state.current = Some((stop.clone(), Instant::now() + limit));
            if !state.armed {
                state.armed = self.shared.set(limit);
                if !state.armed {
                    stop.cancel();
                }
            }
            Limited(Some(&self.shared))
        }

        pub(crate) fn close(&self) {
            self.shared.state.lock().closed = true;
            self.shared.set(Duration::from_nanos(1));
        }
    }

    impl Drop for TimeLimit {
        fn drop(&mut self) {
            self.close();
        }
    }

    impl Shared {
        /// Looks at the operation when the timer has gone off; false after closing. The timer is not stopped when an operation ends,
        /// so this may be another one than that for which it was set: system calls for each would take longer than many an operation.
        fn goes_on(&self) -> bool {
            let mut state = self.state.lock();
            state.armed = false;
            if let Some((stop, end)) = &state.current {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() || !self.set(left) {
                    stop.cancel();
                } else {
                    state.armed = true;
                }
            }
            !state.closed
        }

        /// Stops the operation that is carried out now, and with it all others: nobody watches over them any more.
        fn end(&self) {
            let mut state = self.state.lock();
            state.closed = true;
            if let Some((stop, _)) = &state.current {
                stop.cancel();
            }
        }

        /// Lets the timer go off once after a time.
        fn set(&self, after: Duration) -> bool {
            let Ok(it_value) = Timespec::try_from(after) else { return false };
            let once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let spec = Itimerspec { it_interval: once, it_value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec).is_ok()
        }
    }

    /// Guard of a limited operation, which ends when it is dropped.
    pub(crate) struct Limited<'a>(Option<&'a Shared>);

    impl Drop for Limited<'_> {
        fn drop(&mut self) {
            if let Some(shared) = self.0 {
                shared.state.lock().current = None;
            }
        }
    }
}
