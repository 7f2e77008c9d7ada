//! Limits of the request that a thread works on, and its cancellation.
//!
//! A request is carried out by one thread, which [`enter`]s its [`Work`]; a thread that helps enters it too. What these
//! threads allocate is charged to the request's account where it is allocated ([`allocated`]). Code anywhere below
//! asks [`check`] now and then, which fails once the request must stop or has more memory than it may have; before one large
//! allocation whose size the request determines it asks [`room_for`]. Outside of a request nothing is bounded: merges and
//! replays are not anybody's request.

mod allocated;
mod kept;
mod limits;
mod output;
mod probe;
mod process;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use self::allocated::{Counted, HUGE};
pub use self::kept::Kept;
use self::limits::{ALWAYS, positive};
pub use self::limits::{
    Elsewhere, Exceeded, MOST_EFFORT, Memory, MemoryFigures, PARENT, Size, TooMuch, TooMuchEffort,
};
pub use self::output::{Output, grow};
pub use self::probe::Probe;

/// Why a request must stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// The request's client disconnected, the request was cancelled, or its time is over.
    Cancelled,
    /// It went over a limit.
    Exceeded(Exceeded),
}

/// Resources that one request uses. Dropping it takes the memory off the sum of all requests.
#[derive(Debug)]
struct Account {
    memory: Arc<Memory>,
    /// What the memory is for, as the error names it.
    label: &'static str,
    /// Bytes allocated less bytes freed by the threads of the request, and what it holds outside of the allocator.
    used: AtomicIsize,
    /// The most that `used` has been.
    peak: AtomicIsize,
    effort: AtomicU64,
    /// Time added by [`spend_time`], in nanoseconds.
    time: AtomicU64,
    /// The first limit that the request exceeded, apart from its parts.
    exceeded: OnceLock<Exceeded>,
    probe: Option<Arc<Probe>>,
}

impl Account {
    /// Adds bytes to the usage, or takes negative ones off. Returns the limit that is exceeded then, if it grew.
    /// `more` of them are not part of the process's total yet.
    fn charge(&self, bytes: isize, more: usize) -> Option<TooMuch> {
        // Never below 0: a request that frees what others had allocated, such as an entry of a cache, may allocate as much in its place,
        // and no more than its limit.
        let after = |used: isize| (used + bytes).max(0);
        let before = self.used.fetch_update(Relaxed, Relaxed, |used| Some(after(used))).unwrap_or_default();
        let own = after(before);
        self.memory.used.fetch_add(own - before, Relaxed);
        if bytes <= 0 {
            return None;
        }
        self.peak.fetch_max(own, Relaxed);
        self.exceeds(positive(own), more)
    }

    /// The limit that is exceeded when the request uses `own` bytes, `more` of which are not part of the process's total yet.
    fn exceeds(&self, own: usize, more: usize) -> Option<TooMuch> {
        let too_much = |limit_of, wanted: usize, limit: usize| {
            Some(TooMuch { limit_of, label: self.label, wanted: wanted as u64, limit: limit as u64 })
        };
        let limit = self.memory.request_limit.load(Relaxed);
        if own > limit {
            return too_much("request", own, limit);
        }
        let limit = self.memory.total_limit.load(Relaxed);
        let all = self.memory.allocated().saturating_add(more);
        if all > limit && own > ALWAYS.min(limit) {
            return too_much(PARENT, all, limit);
        }
        if own > ALWAYS.min(limit) {
            let (resident, limit) = self.memory.beyond_resident_limit(all, more)?;
            let label = "resident memory";
            return Some(TooMuch { limit_of: PARENT, label, wanted: resident as u64, limit: limit as u64 });
        }
        None
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(*self.used.get_mut(), Relaxed);
    }
}

/// A request that threads work on, or a part of one that fails by itself. Clones refer to the same.
#[derive(Debug, Clone)]
pub struct Work {
    stop: Arc<AtomicBool>,
    account: Arc<Account>,
    /// The first limit that this part of the request exceeded, if it is one.
    part: Option<Arc<OnceLock<Exceeded>>>,
    /// Stands for who sent the request.
    owner: u64,
}

impl Work {
    /// A request that stops when the flag is set, and whose memory is limited. `label` says what the memory is for, in errors.
    pub fn new(stop: Arc<AtomicBool>, memory: Arc<Memory>, label: &'static str) -> Self {
        let account = Account {
            memory,
            label,
            used: AtomicIsize::new(0),
            peak: AtomicIsize::new(0),
            effort: AtomicU64::new(0),
            time: AtomicU64::new(0),
            exceeded: OnceLock::new(),
            probe: probe::current(),
        };
        Self { stop, account: Arc::new(account), part: None, owner: 0 }
    }

    /// The request as that of somebody: a number that stands for who takes turns with others where requests wait for the same. 0 is
    /// nobody in particular.
    #[must_use]
    pub fn of(self, owner: u64) -> Self {
        Self { owner, ..self }
    }

    /// The same request with another stop flag, for instance one that is also set when a time limit passes.
    #[must_use]
    pub fn stopped_by(&self, stop: Arc<AtomicBool>) -> Self {
        Self { stop, ..self.clone() }
    }

    /// A part of the request that fails by itself when it goes over a limit, while the others go on. All parts are charged to
    /// one account.
    #[must_use]
    pub fn part(&self) -> Self {
        Self { part: Some(Arc::default()), ..self.clone() }
    }

    /// The first limit that the request, or this part of it, exceeded.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.first_exceeded().get().cloned()
    }

    fn first_exceeded(&self) -> &OnceLock<Exceeded> {
        self.part.as_deref().unwrap_or(&self.account.exceeded)
    }

    /// Bytes on the request's account.
    pub fn used(&self) -> usize {
        positive(self.account.used.load(Relaxed))
    }

    /// The most bytes that were on the request's account at once.
    pub fn peak(&self) -> usize {
        positive(self.account.peak.load(Relaxed))
    }

    /// Counts memory that is held for the request outside of the allocator, until the returned guard is dropped.
    #[must_use]
    pub fn hold_outside(&self, bytes: usize) -> HeldOutside {
        self.account.memory.outside.fetch_add(bytes, Relaxed);
        if let Some(limit) = self.account.charge(bytes.cast_signed(), 0) {
            self.exceed(limit.into());
        }
        HeldOutside { account: Arc::clone(&self.account), bytes }
    }

    fn exceed(&self, exceeded: Exceeded) {
        let limit_of = match &exceeded {
            Exceeded::Memory(limit) => Some(limit.limit_of),
            Exceeded::Effort(_) => None,
        };
        // The first is the reason.
        if self.first_exceeded().set(exceeded).is_ok() {
            let Memory { total_tripped, request_tripped, .. } = &*self.account.memory;
            match limit_of {
                Some("request") => request_tripped.fetch_add(1, Relaxed),
                Some(_) => total_tripped.fetch_add(1, Relaxed),
                None => 0,
            };
        }
    }

    fn must_stop(&self) -> bool {
        if let Some(probe) = &self.account.probe {
            probe.see(&self.stop);
        }
        self.stop.load(Relaxed) || self.first_exceeded().get().is_some()
    }
}

/// Guard of [`Work::hold_outside`].
#[derive(Debug)]
pub struct HeldOutside {
    account: Arc<Account>,
    bytes: usize,
}

impl Drop for HeldOutside {
    fn drop(&mut self) {
        self.account.memory.outside.fetch_sub(self.bytes, Relaxed);
        self.account.charge(-self.bytes.cast_signed(), 0);
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Work>> = const { RefCell::new(None) };
    /// Whether `CURRENT` has a request. The allocator asks this first: registering the destructor of a value that does not exist
    /// yet may allocate.
    static HAS_REQUEST: Cell<bool> = const { Cell::new(false) };
}

/// Guard of [`enter`]; dropping it restores the thread's previous request.
#[derive(Debug)]
pub struct Entered {
    before: Option<Work>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let left = exchange(self.before.take());
        drop(left);
    }
}

/// Makes the current thread work on a request, until the returned guard is dropped.
#[must_use]
pub fn enter(work: Option<Work>) -> Entered {
    Entered { before: exchange(work) }
}

/// Settles with the request that the thread leaves, and returns it.
fn exchange(work: Option<Work>) -> Option<Work> {
    allocated::settle();
    let is_one = work.is_some();
    let before = CURRENT.with(|current| std::mem::replace(&mut *current.borrow_mut(), work));
    HAS_REQUEST.set(is_one);
    before
}

/// Charges bytes that the current thread has allocated, or freed if negative, to its request. Returns whether that was
/// possible; it neither allocates nor panics, since the allocator calls it.
pub(crate) fn settle(bytes: isize) -> bool {
    if !HAS_REQUEST.get() {
        return true;
    }
    let settled = CURRENT.try_with(|current| {
        let Ok(current) = current.try_borrow() else { return false };
        if let Some(work) = &*current
            && let Some(limit) = work.account.charge(bytes, positive(bytes))
        {
            work.exceed(limit.into());
        }
        true
    });
    // A thread whose values are destroyed already works for nobody.
    settled.unwrap_or(true)
}

/// The request that the current thread works on.
pub fn current() -> Option<Work> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Stands for who sent the current thread's request, as [`Work::of`] has it.
pub fn owner() -> u64 {
    CURRENT.with(|current| current.borrow().as_ref().map_or(0, |work| work.owner))
}

/// Replaces the stop flag of the current thread's request, until the returned guard is dropped.
#[must_use]
pub fn stopped_by(stop: &Arc<AtomicBool>) -> Entered {
    enter(current().map(|work| work.stopped_by(Arc::clone(stop))))
}

/// Has the current thread allocate for nobody's request, until the returned guard is dropped: for what outlives the request
/// and is limited elsewhere, such as documents that wait to be written to a segment.
#[must_use]
pub fn leave_behind() -> Entered {
    enter(None)
}

/// Whether the current thread's request must stop. Cheap enough to call every thousandth step of a loop.
pub fn is_stopped() -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(Work::must_stop))
}

/// Whether the current thread's request has gone over a limit. Unlike [`is_stopped`], it does not count that its client has left: a write
/// that has begun goes on to its end.
pub fn is_over_limit() -> bool {
    CURRENT
        .with(|current| current.borrow().as_ref().is_some_and(|work| work.first_exceeded().get().is_some()))
}

/// Fails if the current thread's request must stop, or uses more memory than it may.
///
/// # Errors
/// [`Stopped`].
pub fn check() -> Result<(), Stopped> {
    CURRENT.with(|current| match &*current.borrow() {
        Some(work) if work.must_stop() => Err(match work.exceeded() {
            Some(exceeded) => Stopped::Exceeded(exceeded),
            None => Stopped::Cancelled,
        }),
        _ => Ok(()),
    })
}

/// Fails if the current thread's request must stop, or would exceed a memory limit with one more allocation of so many bytes.
/// Nothing is reserved: the allocation counts by itself.
///
/// # Errors
/// [`Stopped`].
pub fn room_for(bytes: usize) -> Result<(), Stopped> {
    check()?;
    CURRENT.with(|current| {
        let current = current.borrow();
        let Some(work) = &*current else { return Ok(()) };
        let pending = allocated::pending();
        let own = positive(work.account.used.load(Relaxed) + pending).saturating_add(bytes);
        match work.account.exceeds(own, positive(pending).saturating_add(bytes)) {
            Some(limit) => {
                work.exceed(limit.clone().into());
                Err(Stopped::Exceeded(limit.into()))
            }
            None => Ok(()),
        }
    })
}

/// What the current thread's request uses at one moment; see [`mark`].
#[derive(Debug)]
pub struct Mark(usize);

/// Remembers what the current thread's request uses now, before it makes something that outlives it.
#[must_use]
pub fn mark() -> Mark {
    allocated::settle();
    Mark(current().map_or(0, |work| work.used()))
}

impl Mark {
    /// Hands over to the process what the request has made since: it pays for `kept` bytes of it only. What it left behind, such
    /// as documents that wait to be written to a segment, has a limit of its own.
    pub fn hand_over(self, kept: usize) {
        let more = self.made().saturating_sub(kept);
        if let Some(work) = current() {
            work.account.charge(-more.cast_signed(), 0);
        }
    }

    /// Bytes that the request has allocated and not freed since.
    fn made(&self) -> usize {
        allocated::settle();
        current().map_or(0, |work| work.used().saturating_sub(self.0))
    }
}

/// Adds steps of patterns to those of the current thread's request.
///
/// # Errors
/// When their sum exceeds [`MOST_EFFORT`].
pub fn spend(steps: u64) -> Result<(), TooMuchEffort> {
    CURRENT.with(|current| match &*current.borrow() {
        Some(work) if work.account.effort.fetch_add(steps, Relaxed).saturating_add(steps) > MOST_EFFORT => {
            Err(TooMuchEffort)
        }
        _ => Ok(()),
    })
}

/// Adds time that the current thread's request has spent on regular expressions over texts of documents,
/// which is limited.
pub fn spend_time(time: Duration) {
    CURRENT.with(|current| {
        if let Some(work) = &*current.borrow() {
            work.account.time.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        }
    });
}

/// Time added by [`spend_time`] for the current thread's request; zero outside a request.
pub fn time_spent() -> Duration {
    CURRENT.with(|current| match &*current.borrow() {
        Some(work) => Duration::from_nanos(work.account.time.load(Relaxed)),
        None => Duration::ZERO,
    })
}

/// Records a limit that the current thread's request exceeded, where an error cannot carry it: see
/// [`exceeded`]. The request must stop then.
pub fn note(exceeded: impl Into<Exceeded>) {
    if let Some(work) = current() {
        work.exceed(exceeded.into());
    }
}

/// The first limit that the current thread's request exceeded.
pub fn exceeded() -> Option<Exceeded> {
    CURRENT.with(|current| current.borrow().as_ref().and_then(Work::exceeded))
}

#[cfg(test)]
mod tests;
