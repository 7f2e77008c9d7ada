//! Limits of the request that a thread works on, and its cancellation.
//!
//! A request is carried out by one thread, which [`enter`]s its [`Work`]; a thread that helps enters it too. What these
//! threads allocate is charged to the request's account where it is allocated ([`crate::allocated`]). Code anywhere below
//! asks [`check`] now and then, which fails once the request must stop or has more memory than it may have; before one large
//! allocation whose size the request determines it asks [`room_for`]. Outside of a request nothing is bounded: merges and
//! replays are not anybody's request.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::allocated;

/// Why a request must stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// Its client disconnected, it was cancelled, or its time is over.
    Cancelled,
    /// It went over a limit.
    Exceeded(Exceeded),
}

/// Memory that a request may always use, in bytes (1 MiB): the limit on the process refuses those that use more, so that
/// an administrator can still raise it or delete an index.
const ALWAYS: usize = 1 << 20;

/// Limits on the memory of requests, and what they use.
#[derive(Debug)]
pub struct Memory {
    total_limit: AtomicUsize,
    request_limit: AtomicUsize,
    /// Bytes on the accounts of all requests.
    used: AtomicIsize,
    /// Bytes that are held outside of the allocator for requests, such as bodies that JavaScript keeps.
    outside: AtomicUsize,
    total_tripped: AtomicU64,
    request_tripped: AtomicU64,
}

/// Limits and usage of [`Memory`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFigures {
    /// Limit on what the whole process has allocated, in bytes.
    pub total_limit: usize,
    /// Limit of each request, in bytes.
    pub request_limit: usize,
    /// Bytes that the process has allocated, and what is held for requests outside of its allocator.
    pub allocated: usize,
    /// Bytes in use by requests.
    pub used: usize,
    /// Number of requests refused because of the limit for the process.
    pub total_tripped: u64,
    /// Number of requests refused because of the limit for each.
    pub request_tripped: u64,
}

impl Memory {
    /// Limits, in bytes, on the process and on each request.
    pub fn new(total: usize, request: usize) -> Self {
        Self {
            total_limit: AtomicUsize::new(total),
            request_limit: AtomicUsize::new(request),
            used: AtomicIsize::new(0),
            outside: AtomicUsize::new(0),
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
            allocated: self.allocated(),
            used: positive(self.used.load(Relaxed)),
            total_tripped: self.total_tripped.load(Relaxed),
            request_tripped: self.request_tripped.load(Relaxed),
        }
    }

    /// Bytes that the process may still allocate; bodies that JavaScript keeps are not taken off.
    pub fn room(&self) -> usize {
        self.total_limit.load(Relaxed).saturating_sub(allocated::live())
    }

    fn allocated(&self) -> usize {
        allocated::live() + self.outside.load(Relaxed)
    }
}

fn positive(bytes: isize) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

/// Error of a request that went over a memory limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooMuch {
    /// Which limit: `parent` for that of the process, `request` for that of each request.
    pub limit_of: &'static str,
    /// What the memory is for.
    pub label: &'static str,
    /// Bytes that would be in use.
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
}

impl Account {
    /// Adds bytes to the usage, or takes negative ones off. Returns the limit that is exceeded then, if it grew.
    fn charge(&self, bytes: isize) -> Option<TooMuch> {
        let own = self.used.fetch_add(bytes, Relaxed) + bytes;
        self.memory.used.fetch_add(bytes, Relaxed);
        if own < 0 {
            // The request freed what others had allocated, which does not give it more than its limit.
            self.used.fetch_sub(own, Relaxed);
            self.memory.used.fetch_sub(own, Relaxed);
        }
        if bytes <= 0 {
            return None;
        }
        self.peak.fetch_max(own, Relaxed);
        self.exceeds(positive(own), bytes.unsigned_abs())
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
            return too_much("parent", all, limit);
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
        };
        Self { stop, account: Arc::new(account), part: None }
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
        if let Some(limit) = self.account.charge(bytes.cast_signed()) {
            self.exceed(limit.into());
        }
        self.account.memory.outside.fetch_add(bytes, Relaxed);
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
        self.account.charge(-self.bytes.cast_signed());
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Work>> = const { RefCell::new(None) };
    /// Whether `CURRENT` has a request. The allocator asks this, as it may not touch a value with a destructor that does not
    /// exist yet.
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
            && let Some(limit) = work.account.charge(bytes)
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

/// Makes room for more bytes at the end of a list, for which the current thread's request pays.
///
/// # Errors
/// [`Stopped`], as [`room_for`].
pub fn grow(bytes: &mut Vec<u8>, more: usize) -> Result<(), Stopped> {
    let length = bytes.len().saturating_add(more);
    if length > bytes.capacity() {
        // The old list exists until it has been copied.
        room_for(length.max(2 * bytes.capacity()))?;
        bytes.reserve(more);
    }
    Ok(())
}

/// Writes to a list of bytes as long as the current thread's request may use the memory for it and need not stop. Without it, a
/// long answer would be written to its end, and be copied by each doubling of the list, before anything noticed.
#[derive(Debug)]
pub struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    /// Length at which to look at the request again.
    next_check: usize,
}

/// Bytes that [`Output`] writes between two checks.
const OUTPUT_PIECE: usize = 64 << 10;

impl<'a> Output<'a> {
    /// Writes to the end of `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        let next_check = bytes.len();
        Self { bytes, next_check }
    }
}

impl std::io::Write for Output<'_> {
    /// Writes all of the text, or fails because the request must stop; [`check`] then says why.
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let stopped = |_| std::io::Error::other("the request must stop");
        grow(self.bytes, text.len()).map_err(stopped)?;
        if self.bytes.len() >= self.next_check {
            check().map_err(stopped)?;
            self.next_check = self.bytes.len() + OUTPUT_PIECE;
        }
        self.bytes.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
        allocated::settle();
        if let Some(work) = current() {
            let more = work.used().saturating_sub(self.0.saturating_add(kept));
            work.account.charge(-more.cast_signed());
        }
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
mod tests {
    use std::alloc::System;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::allocated::{Counted, live};

    #[global_allocator]
    static ALLOCATOR: Counted<System> = Counted(System);

    const MB: usize = 1 << 20;

    /// Serialises the tests, since what the process has allocated is one figure.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(memory: &Arc<Memory>) -> Work {
        Work::new(Arc::default(), Arc::clone(memory), "<test>")
    }

    fn exceeded_memory(result: Result<(), Stopped>) -> TooMuch {
        match result {
            Err(Stopped::Exceeded(Exceeded::Memory(limit))) => limit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_pays_for_what_its_threads_allocate_and_not_for_what_they_freed() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let request = work(&memory);
        {
            let _entered = enter(Some(request.clone()));
            let first = vec![0_u8; 2 * MB];
            assert!((2 * MB..3 * MB).contains(&request.used()), "{}", request.used());
            std::thread::scope(|scope| {
                let helper = scope.spawn(|| {
                    let _entered = enter(Some(request.clone()));
                    vec![0_u8; MB + 1000]
                });
                let theirs = helper.join().unwrap();
                assert!((3 * MB..4 * MB).contains(&request.used()), "{}", request.used());
                assert_eq!(check(), Ok(()));
                drop(theirs);
            });
            drop(first);
            assert!(request.used() < MB, "{}", request.used());
            for _ in 0..100 {
                drop(vec![0_u8; 3 * MB]);
            }
            assert_eq!(check(), Ok(()), "never more than the limit at once");
        }
        drop(request);
        let figures = memory.figures();
        assert_eq!((figures.used, figures.request_tripped, figures.total_tripped), (0, 0, 0));
    }

    #[test]
    fn many_small_allocations_count_as_a_large_one_does() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 2 * MB));
        let _entered = enter(Some(work(&memory)));
        let mut small: Vec<Box<[u8; 100]>> = Vec::new();
        while check().is_ok() {
            small.push(Box::new([0; 100]));
            assert!(small.len() < 40_000, "it never stops");
        }
        let limit = exceeded_memory(check());
        assert_eq!((limit.limit_of, limit.limit), ("request", 2 * MB as u64));
        drop(small);
        assert!(is_stopped(), "what was exceeded once stays so, as results are not complete any more");
        assert_eq!(memory.figures().request_tripped, 1);
    }

    #[test]
    fn the_sentence_is_that_of_elasticsearch() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4000));
        let _entered = enter(Some(work(&memory)));
        let limit = exceeded_memory(room_for(4_500_000));
        let text = limit.to_string();
        let start = "[request] Data too large, data for [<test>] would be [45";
        assert!(text.starts_with(start), "{text}");
        assert!(text.ends_with("/4.2mb], which is larger than the limit of [4000/3.9kb]"), "{text}");
    }

    #[test]
    fn freeing_what_others_allocated_gives_no_more_room() {
        let _alone = alone();
        let others = vec![0_u8; 8 * MB];
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let _entered = enter(Some(work(&memory)));
        drop(others);
        let _mine = vec![0_u8; 5 * MB];
        assert!(check().is_err());
    }

    #[test]
    fn what_is_left_behind_is_nobodys() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let request = work(&memory);
        let _entered = enter(Some(request.clone()));
        let kept = {
            let _nobody = leave_behind();
            vec![0_u8; 5 * MB]
        };
        assert!(request.used() < MB && check().is_ok() && kept.len() == 5 * MB);
    }

    #[test]
    fn what_was_made_since_a_mark_is_handed_over() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let request = work(&memory);
        let _entered = enter(Some(request.clone()));
        let _own = vec![0_u8; MB];
        let mut kept = Vec::new();
        for _ in 0..10 {
            let mark = mark();
            kept.push(vec![0_u8; MB]);
            mark.hand_over(1000);
        }
        assert!((MB..2 * MB).contains(&request.used()) && check().is_ok(), "{}", request.used());
    }

    #[test]
    fn the_process_has_a_limit_that_small_requests_do_not_feel() {
        let _alone = alone();
        let before = vec![0_u8; 30 * MB];
        assert!(live() >= 29 * MB, "{}", live());
        let memory = Arc::new(Memory::new(20 * MB, 100 * MB));
        let small = work(&memory);
        {
            let _entered = enter(Some(small));
            let _mine = vec![0_u8; MB / 2];
            assert_eq!((check(), room_for(MB / 4)), (Ok(()), Ok(())));
        }
        let _entered = enter(Some(work(&memory)));
        let _mine = vec![0_u8; 2 * MB];
        assert_eq!(exceeded_memory(check()).limit_of, "parent");
        assert_eq!((memory.figures().total_tripped, memory.figures().request_tripped), (1, 0));
        drop(before);
    }

    #[test]
    fn an_allocation_is_refused_before_it_is_made() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let request = work(&memory);
        let _entered = enter(Some(request.clone()));
        let _mine = vec![0_u8; 2 * MB];
        assert_eq!(room_for(MB), Ok(()));
        assert_eq!(exceeded_memory(room_for(3 * MB)).limit_of, "request");
        assert!(request.used() < 3 * MB);
        assert!(exceeded_memory(room_for(usize::MAX)).wanted > 0, "sums do not overflow");
    }

    #[test]
    fn an_output_ends_with_the_room_of_its_request() {
        use std::io::Write;

        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let _entered = enter(Some(work(&memory)));
        let mut bytes = Vec::new();
        let mut output = Output::new(&mut bytes);
        let written = (0..100_000).take_while(|_| output.write_all(&[b'x'; 100]).is_ok()).count();
        assert_eq!(bytes.len(), written * 100);
        assert!((MB..4 * MB).contains(&bytes.len()), "{}", bytes.len());
        assert_eq!(exceeded_memory(check()).limit_of, "request");
    }

    #[test]
    fn a_part_of_a_request_fails_by_itself() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let request = work(&memory);
        let _entered = enter(Some(request.clone()));
        {
            let part = request.part();
            let _entered = enter(Some(part.clone()));
            drop(vec![0_u8; 5 * MB]);
            assert!(check().is_err() && part.exceeded().is_some());
        }
        assert_eq!(check(), Ok(()));
        let _entered = enter(Some(request.part()));
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn what_is_held_outside_of_the_allocator_counts() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
        let request = work(&memory);
        let held = request.hold_outside(3 * MB);
        assert!(memory.figures().used >= 3 * MB && memory.figures().allocated >= 3 * MB);
        drop(held);
        assert_eq!(request.used(), 0);
        let _held = request.hold_outside(5 * MB);
        assert!(request.exceeded().is_some());
    }

    #[test]
    fn threads_that_end_leave_nothing_unsettled() {
        let _alone = alone();
        let turn = || {
            for _ in 0..200 {
                let kept = std::thread::spawn(|| vec![0_u8; 50_000]).join().unwrap();
                drop(kept);
            }
        };
        turn();
        let before = live();
        turn();
        // Lost, each thread's would be 50,000 bytes.
        assert!(live().abs_diff(before) < 4 * MB, "{before} became {}", live());
    }

    #[test]
    fn the_patterns_of_a_request_have_one_effort_over_all_its_threads() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
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
        assert_eq!(check(), Err(Stopped::Exceeded(Exceeded::Effort(TooMuchEffort))));
        let _entered = enter(Some(work(&memory)));
        assert_eq!((spend(1), exceeded()), (Ok(()), None), "another request begins anew");
    }

    #[test]
    fn a_thread_works_on_what_it_entered_last() {
        let _alone = alone();
        let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
        let flag = Arc::new(AtomicBool::new(false));
        assert_eq!((check(), room_for(usize::MAX)), (Ok(()), Ok(())), "nobody's request has no limit");
        let outer = enter(Some(work(&memory)));
        let inner = stopped_by(&flag);
        flag.store(true, Relaxed);
        assert_eq!(check(), Err(Stopped::Cancelled));
        drop(inner);
        assert_eq!(check(), Ok(()));
        drop(outer);
        assert!(current().is_none());
    }
}
