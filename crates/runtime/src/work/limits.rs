//! What limits a request, and what is said when it goes over a limit.

use std::fmt;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::process::{Resident, live};

/// Memory that a request may always use, in bytes (1 MiB): the limit on the process refuses those that use more, so that
/// an administrator can still raise it or delete an index.
pub(super) const ALWAYS: usize = 1 << 20;

/// Memory of JavaScript and of the encoder's runtime, which no account shows, as a server without load has it: 160 MiB.
const ELSEWHERE: usize = 160 << 20;

/// Bytes that [`Elsewhere`] stands for in all.
static KEPT_ELSEWHERE: AtomicUsize = AtomicUsize::new(0);

/// Memory that no request causes and the allocator does not see, such as the weights of a model in ONNX Runtime. The process may have it
/// beside its limit until this is dropped.
#[derive(Debug)]
pub struct Elsewhere(usize);

impl Elsewhere {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        KEPT_ELSEWHERE.fetch_add(bytes, Relaxed);
        Self(bytes)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        KEPT_ELSEWHERE.fetch_sub(self.0, Relaxed);
    }
}

/// Memory of the process outside of the allocator that is no request's, in bytes.
fn elsewhere() -> usize {
    ELSEWHERE.saturating_add(KEPT_ELSEWHERE.load(Relaxed))
}

/// Limits on the process of at least so many bytes (640 MiB) leave a server without requests plenty of room, so that its resident memory is
/// watched whatever is allocated.
const LARGE: usize = 4 * ELSEWHERE;

/// Limits on the memory of requests, and what they use.
#[derive(Debug)]
pub struct Memory {
    pub(super) total_limit: AtomicUsize,
    pub(super) request_limit: AtomicUsize,
    /// Bytes on the accounts of all requests.
    pub(super) used: AtomicIsize,
    /// Bytes that are held outside of the allocator for requests, such as bodies that JavaScript keeps.
    pub(super) outside: AtomicUsize,
    /// Bytes of bodies that are kept elsewhere, of requests that run and of those that have yet to come.
    pub(super) bodies: AtomicUsize,
    pub(super) total_tripped: AtomicU64,
    pub(super) request_tripped: AtomicU64,
    /// Looks at what the process has, where it is also to be limited.
    resident: Option<Resident>,
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
            bodies: AtomicUsize::new(0),
            total_tripped: AtomicU64::new(0),
            request_tripped: AtomicU64::new(0),
            resident: None,
        }
    }

    /// Adds a limit on the resident memory of the process, without pages that are mapped from files: the limit on what it allocates,
    /// a sixth of that for blocks that were freed and not given back yet, [`ELSEWHERE`], and every [`Elsewhere`].
    #[must_use]
    pub fn watched(self) -> Self {
        Self { resident: Some(Resident::new()), ..self }
    }

    /// Whether much of the process's memory is allocated to nothing: it was freed, and is kept by the threads that freed it.
    pub fn is_kept_unused(&self) -> bool {
        let most = (self.total_limit.load(Relaxed) / 8).saturating_add(elsewhere());
        self.resident.as_ref().is_some_and(|resident| resident.now().saturating_sub(live()) > most)
    }

    /// The bytes that the process has with so many more, if these are more than it may have, and how many it may have. `all` are those
    /// that are allocated: where the limit is so low that a server without any request comes near it, half of it is free for requests.
    pub(super) fn beyond_resident_limit(&self, all: usize, more: usize) -> Option<(usize, usize)> {
        let total = self.total_limit.load(Relaxed);
        if all <= total / 2 && total < LARGE {
            return None;
        }
        let limit = resident_limit(total);
        Some((self.resident.as_ref()?.beyond(limit, more)?, limit))
    }

    /// A limit on the process alone: of `room` bytes more than it has allocated now.
    pub fn with_room(room: usize) -> Self {
        Self::new(live().saturating_add(room), usize::MAX)
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

    /// Bytes that the process may still allocate, or have otherwise; bodies that JavaScript keeps are taken off the latter alone.
    pub fn room(&self) -> usize {
        let total = self.total_limit.load(Relaxed);
        let room = total.saturating_sub(live());
        match &self.resident {
            Some(resident) if total >= LARGE => {
                room.min(resident_limit(total).saturating_sub(resident.now()))
            }
            _ => room,
        }
    }

    pub(super) fn allocated(&self) -> usize {
        // Of a request that runs, the body is in both.
        live() + self.outside.load(Relaxed).max(self.bodies.load(Relaxed))
    }

    /// Says how many bytes of bodies are kept outside of the allocator now, also for requests that have not begun.
    pub fn keep_bodies(&self, bytes: usize) {
        self.bodies.store(bytes, Relaxed);
    }
}

/// The most resident memory that a process may have whose allocations have this limit: see [`Memory::watched`].
fn resident_limit(total: usize) -> usize {
    total.saturating_add(total / 6).saturating_add(elsewhere())
}

pub(super) fn positive(bytes: isize) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

/// Name of the limit on what all requests take together, in [`TooMuch::limit_of`].
pub const PARENT: &str = "parent";

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

/// Most steps of patterns and of explanations per request. A step is about one term compared with a prefix, wildcard, regular
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
             those of each clause and each index counted anew, and a clause explained for a hit counts as [512]; longer \
             prefixes and fewer hits leave fewer"
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
