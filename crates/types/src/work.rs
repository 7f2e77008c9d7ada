//! Limits of the request that a thread works on, and its cancellation.
//!
//! A request is carried out by one thread, which [`enter`]s its [`Work`]; a thread that helps enters it too. Code anywhere
//! below then asks [`check`] now and then, and [`take`]s or [`hold`]s memory where it allocates in proportion to what the
//! request says. Outside of a request nothing is bounded: merges and replays are not anybody's request.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Error of a request that must stop: its client disconnected, it was cancelled, or its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// Memory budget of all requests. Usage is estimated where memory is allocated.
#[derive(Debug)]
pub struct Memory {
    total_limit: AtomicUsize,
    request_limit: AtomicUsize,
    used: AtomicUsize,
    total_tripped: AtomicU64,
    request_tripped: AtomicU64,
}

/// Limits and usage of [`Memory`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFigures {
    /// Limit of all requests together, in bytes.
    pub total_limit: usize,
    /// Limit of each request, in bytes.
    pub request_limit: usize,
    /// Bytes in use by requests.
    pub used: usize,
    /// Number of requests refused because of the limit for all.
    pub total_tripped: u64,
    /// Number of requests refused because of the limit for each.
    pub request_tripped: u64,
}

impl Memory {
    /// A budget with the limits, in bytes, of all requests together and of each.
    pub fn new(total: usize, request: usize) -> Self {
        Self {
            total_limit: AtomicUsize::new(total),
            request_limit: AtomicUsize::new(request),
            used: AtomicUsize::new(0),
            total_tripped: AtomicU64::new(0),
            request_tripped: AtomicU64::new(0),
        }
    }

    /// Changes the limits, in bytes, for later allocations.
    pub fn limit(&self, total: usize, request: usize) {
        self.total_limit.store(total, Relaxed);
        self.request_limit.store(request, Relaxed);
    }

    /// Current limits, usage and numbers of refusals.
    pub fn figures(&self) -> MemoryFigures {
        MemoryFigures {
            total_limit: self.total_limit.load(Relaxed),
            request_limit: self.request_limit.load(Relaxed),
            used: self.used.load(Relaxed),
            total_tripped: self.total_tripped.load(Relaxed),
            request_tripped: self.request_tripped.load(Relaxed),
        }
    }
}

/// Error of an allocation that would exceed a memory limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooMuch {
    /// Which limit: `parent` for that of all requests, `request` for that of each.
    pub limit_of: &'static str,
    /// What the memory was wanted for.
    pub label: String,
    /// Bytes that would have been in use.
    pub wanted: u64,
    /// The limit in bytes.
    pub limit: u64,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit_of, label, wanted, limit } = self;
        write!(
            out,
            "[{limit_of}] Data too large, data for [{label}] would be [{wanted}/{}], which is larger than the limit \
             of [{limit}/{}]",
            Size(*wanted),
            Size(*limit)
        )
    }
}

impl std::error::Error for TooMuch {}

/// Most pattern steps per request. A step is about one term compared with a prefix, wildcard, regular
/// expression or misspelt word, or one part of a regular expression examined while its automaton is built.
/// This many take three to ten seconds on one processor.
pub const MOST_EFFORT: u64 = 1 << 27;

/// Error of a request whose patterns took more than [`MOST_EFFORT`] steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuchEffort;

impl fmt::Display for TooMuchEffort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "the prefix, wildcard, regexp and fuzzy clauses of one request may look at [{MOST_EFFORT}] terms in all, \
             those of each clause and each index counted anew; longer prefixes leave fewer"
        )
    }
}

impl std::error::Error for TooMuchEffort {}

/// A limit that a request exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exceeded {
    /// The memory limit.
    Memory(TooMuch),
    /// The limit of pattern steps.
    Effort(TooMuchEffort),
}

impl From<TooMuch> for Exceeded {
    fn from(error: TooMuch) -> Self {
        Exceeded::Memory(error)
    }
}

impl From<TooMuchEffort> for Exceeded {
    fn from(error: TooMuchEffort) -> Self {
        Exceeded::Effort(error)
    }
}

/// A number of bytes that displays in a suitable unit, with one truncated decimal.
#[derive(Debug, Clone, Copy)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["b", "kb", "mb", "gb", "tb", "pb"];
        let unit = (0..5).take_while(|unit| self.0 >> (10 * (unit + 1)) > 0).count();
        let tenths = (u128::from(self.0) * 10) >> (10 * unit);
        match tenths % 10 {
            0 => write!(out, "{}{}", tenths / 10, UNITS[unit]),
            rest => write!(out, "{}.{rest}{}", tenths / 10, UNITS[unit]),
        }
    }
}

/// Resources that one request uses. Dropping it returns the memory to the budget.
#[derive(Debug)]
struct Account {
    memory: Arc<Memory>,
    used: AtomicUsize,
    effort: AtomicU64,
    /// Time added by [`spend_time`], in nanoseconds.
    time: AtomicU64,
    exceeded: OnceLock<Exceeded>,
}

impl Account {
    fn take(&self, label: &str, bytes: usize) -> Result<(), TooMuch> {
        let own = self.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let all = self.memory.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let refused = |limit_of, wanted: usize, limit: usize, tripped: &AtomicU64| {
            tripped.fetch_add(1, Relaxed);
            self.give(bytes);
            Err(TooMuch { limit_of, label: label.to_owned(), wanted: wanted as u64, limit: limit as u64 })
        };
        let limit = self.memory.request_limit.load(Relaxed);
        if own > limit {
            return refused("request", own, limit, &self.memory.request_tripped);
        }
        let limit = self.memory.total_limit.load(Relaxed);
        if all > limit {
            return refused("parent", all, limit, &self.memory.total_tripped);
        }
        Ok(())
    }

    /// Adds bytes to the usage, regardless of the limits.
    fn force(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        self.memory.used.fetch_add(bytes, Relaxed);
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        self.memory.used.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(*self.used.get_mut(), Relaxed);
    }
}

/// A request that threads work on. Clones refer to the same request.
#[derive(Debug, Clone)]
pub struct Work {
    stop: Arc<AtomicBool>,
    account: Arc<Account>,
}

impl Work {
    /// A request that stops when the flag is set, and uses memory of this budget.
    pub fn new(stop: Arc<AtomicBool>, memory: Arc<Memory>) -> Self {
        let account = Account {
            memory,
            used: AtomicUsize::new(0),
            effort: AtomicU64::new(0),
            time: AtomicU64::new(0),
            exceeded: OnceLock::new(),
        };
        Self { stop, account: Arc::new(account) }
    }

    /// The same request with another stop flag, for instance one that is also set when a time limit passes.
    #[must_use]
    pub fn stopped_by(&self, stop: Arc<AtomicBool>) -> Self {
        Self { stop, account: Arc::clone(&self.account) }
    }

    /// Reserves memory until the end of the request.
    ///
    /// # Errors
    /// When a limit would be exceeded; nothing is reserved then.
    pub fn take(&self, label: &str, bytes: usize) -> Result<(), TooMuch> {
        self.account.take(label, bytes)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// Guard of [`enter`]; dropping it restores the thread's previous request.
#[derive(Debug)]
pub struct Entered {
    before: Option<Work>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        CURRENT.with(|current| *current.borrow_mut() = before);
    }
}

/// Makes the current thread work on a request, until the returned guard is dropped.
#[must_use]
pub fn enter(work: Option<Work>) -> Entered {
    Entered { before: CURRENT.with(|current| std::mem::replace(&mut *current.borrow_mut(), work)) }
}

/// The request that the current thread works on.
pub fn current() -> Option<Work> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Replaces the stop flag of the current thread's request, until the returned guard is dropped.
#[must_use]
pub fn stopped_by(stop: &Arc<AtomicBool>) -> Entered {
    enter(current().map(|work| work.stopped_by(Arc::clone(stop))))
}

/// Whether the current thread's request must stop. Cheap enough to call every thousandth step of a loop.
pub fn is_stopped() -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(|work| work.stop.load(Relaxed)))
}

/// Fails if the current thread's request must stop.
///
/// # Errors
/// [`Stopped`].
pub fn check() -> Result<(), Stopped> {
    if is_stopped() { Err(Stopped) } else { Ok(()) }
}

/// Reserves memory for the current thread's request, until its end.
///
/// # Errors
/// When a limit would be exceeded; nothing is reserved then.
pub fn take(label: &str, bytes: usize) -> Result<(), TooMuch> {
    CURRENT.with(|current| match &*current.borrow() {
        Some(work) => work.account.take(label, bytes),
        None => Ok(()),
    })
}

/// Adds memory that the current thread's request has already allocated to its usage, regardless of the
/// limits.
pub fn count(bytes: usize) {
    CURRENT.with(|current| {
        if let Some(work) = &*current.borrow() {
            work.account.force(bytes);
        }
    });
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
/// [`exceeded`].
pub fn note(exceeded: impl Into<Exceeded>) {
    if let Some(work) = current() {
        // The first is the reason.
        let _ = work.account.exceeded.set(exceeded.into());
    }
}

/// The first limit that was [`note`]d for the current thread's request.
pub fn exceeded() -> Option<Exceeded> {
    CURRENT.with(|current| current.borrow().as_ref().and_then(|work| work.account.exceeded.get().cloned()))
}

/// Guard of reserved memory, which is released when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryReservation {
    account: Option<Arc<Account>>,
    bytes: usize,
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.give(self.bytes);
        }
    }
}

/// Reserves memory for the current thread's request, until the returned guard is dropped.
///
/// # Errors
/// When that would be too much; nothing is taken then.
pub fn hold(label: &str, bytes: usize) -> Result<MemoryReservation, TooMuch> {
    let Some(work) = current() else { return Ok(MemoryReservation::default()) };
    work.account.take(label, bytes)?;
    Ok(MemoryReservation { account: Some(work.account), bytes })
}

/// Counter for memory that grows in small steps in a loop; reserves it in larger pieces.
#[derive(Debug)]
pub struct Growing {
    label: &'static str,
    pending: usize,
}

/// Bytes that [`Growing`] reserves at a time.
const PIECE: usize = 64 * 1024;

impl Growing {
    /// A counter at 0 for memory with this label.
    pub fn new(label: &'static str) -> Self {
        Self { label, pending: 0 }
    }

    /// Adds bytes, and reserves them once 64 KiB have accumulated. Does not check whether the request must
    /// stop; see [`check`].
    ///
    /// # Errors
    /// When a limit would be exceeded.
    pub fn add(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.pending += bytes;
        if self.pending < PIECE {
            return Ok(());
        }
        take(self.label, std::mem::take(&mut self.pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(memory: &Arc<Memory>) -> Work {
        Work::new(Arc::default(), Arc::clone(memory))
    }

    #[test]
    fn a_request_takes_up_to_its_limit_and_gives_all_back() {
        let memory = Arc::new(Memory::new(10_000, 4000));
        {
            let _entered = enter(Some(work(&memory)));
            take("a", 3000).unwrap();
            let error = take("<agg [x]>", 1500).unwrap_err();
            assert_eq!(
                error.to_string(),
                "[request] Data too large, data for [<agg [x]>] would be [4500/4.3kb], which is larger than the limit of \
                 [4000/3.9kb]"
            );
            let held = hold("b", 1000).unwrap();
            assert_eq!(memory.figures().used, 4000);
            drop(held);
            assert_eq!(memory.figures().used, 3000);
        }
        let figures = memory.figures();
        assert_eq!((figures.used, figures.request_tripped, figures.total_tripped), (0, 1, 0));
    }

    #[test]
    fn what_cannot_be_refused_any_more_is_counted_over_the_limit() {
        let memory = Arc::new(Memory::new(1000, 1000));
        let entered = enter(Some(work(&memory)));
        count(1500);
        assert_eq!(memory.figures().used, 1500);
        assert!(take("more", 1).is_err());
        drop(entered);
        assert_eq!((memory.figures().used, memory.figures().request_tripped), (0, 1));
    }

    #[test]
    fn all_requests_together_have_a_limit_too() {
        let memory = Arc::new(Memory::new(5000, 4000));
        let first = work(&memory);
        first.take("a", 3000).unwrap();
        let second = work(&memory);
        let error = second.take("b", 3000).unwrap_err();
        assert_eq!((error.limit_of, error.wanted, error.limit), ("parent", 6000, 5000));
        drop(first);
        second.take("b", 3000).unwrap();
        drop(second);
        assert_eq!(memory.figures().used, 0);
    }

    #[test]
    fn the_patterns_of_a_request_have_one_effort_over_all_its_threads() {
        let memory = Arc::new(Memory::new(10, 10));
        let one = work(&memory);
        assert_eq!((spend(u64::MAX), exceeded()), (Ok(()), None), "nobody's request has no limit");
        let _entered = enter(Some(one.clone()));
        assert_eq!(spend(MOST_EFFORT - 1), Ok(()));
        let other = std::thread::spawn(move || {
            let _entered = enter(Some(one));
            assert_eq!(spend(2), Err(TooMuchEffort));
            note(TooMuchEffort);
        });
        other.join().unwrap();
        assert_eq!((spend(0), exceeded()), (Err(TooMuchEffort), Some(Exceeded::Effort(TooMuchEffort))));
        let _entered = enter(Some(work(&memory)));
        assert_eq!((spend(1), exceeded()), (Ok(()), None), "another request begins anew");
    }

    #[test]
    fn a_thread_works_on_what_it_entered_last() {
        let memory = Arc::new(Memory::new(10, 10));
        let flag = Arc::new(AtomicBool::new(false));
        assert_eq!((check(), take("no request", 100)), (Ok(()), Ok(())));
        let outer = enter(Some(work(&memory)));
        let inner = stopped_by(&flag);
        flag.store(true, Relaxed);
        assert_eq!(check(), Err(Stopped));
        drop(inner);
        assert_eq!(check(), Ok(()));
        drop(outer);
        assert!(current().is_none());
    }
}
