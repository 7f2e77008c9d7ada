//! What a lane knows of the operations that wait and of what its workers do: which of them begins next, and which is refused.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::job::{Job, Load};
use super::shedding::Shedding;
use sparrow_request::request::CancelFlag;
use sparrow_request::rights::Holder;

/// Number of waiting operations above which a lane refuses more.
pub(super) const LANE_CAPACITY: usize = 2000;

/// Bytes of waiting bodies above which a lane refuses more, unless nothing waits.
pub(super) const LANE_BYTES: usize = 256 << 20;

/// How long the oldest waiting operation may have waited before a lane refuses more: this many times the
/// usual duration of an operation, within the bounds of [`PATIENCE`]. A later answer is of no use to most
/// clients.
const PATIENCE_TIMES: u32 = 3;
pub(super) const PATIENCE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// How long a running operation counts against the number that may run at once: normally this long, and
/// [`SHORT_WHEN_SHEDDING`] while the lane sheds load. Otherwise a machine that is slow because it is busy
/// would soon have all workers running.
pub(super) const SHORT: Duration = Duration::from_millis(100);
const SHORT_WHEN_SHEDDING: Duration = Duration::from_secs(1);

/// Longest usual duration of an operation with which others of its lane are attempted by the threads that ask for them.
pub(super) const USUALLY_SHORT: Duration = Duration::from_micros(600);

/// Longest operation that counts among the short ones after which attempts begin again.
const COUNTED_AS_SHORT: Duration = Duration::from_millis(1);

/// How many times as many workers as are free an owner may keep: of sixteen it has twelve, whose operations may all wait for a model, and
/// those of others find workers.
const OWN_TIMES: usize = 3;

/// Of so many workers one is left to callers without restrictions, whatever all restricted keys together ask for.
const ALL_BUT_ONE_OF: usize = 8;

/// What an owner may have waiting even where there is no room for more of others: so many operations, with so many bytes.
const FEW_WAITING: usize = 16;
const FEW_BYTES: usize = 4 << 20;

pub(super) struct Waiting {
    pub(super) job: Job,
    /// Set when the caller no longer wants the answer.
    pub(super) cancel: CancelFlag,
    pub(super) since: Instant,
    pub(super) bytes: usize,
    pub(super) owner: Option<Holder>,
    /// In each round at most one operation of each owner begins.
    pub(super) round: u64,
}

#[derive(Default)]
pub(super) struct State {
    /// In the order in which they begin: by rounds, and in each round as they came. An owner of many operations takes turns with the
    /// owners of few, whose operations would otherwise wait for all of the many.
    pub(super) waiting: VecDeque<Waiting>,
    /// Round of the operation that was taken out last.
    pub(super) round: u64,
    /// Total bytes of the waiting operations' bodies.
    pub(super) waiting_bytes: usize,
    /// Moving average of how long an operation takes.
    pub(super) usual: Duration,
    /// Whether the lane sheds load, and so lets only a few operations wait.
    pub(super) shedding: Shedding,
    /// For each worker, the job that it was woken for while idle.
    pub(super) handed: Vec<Option<Job>>,
    /// For each worker, the owner of its operation; none while it has none.
    pub(super) working: Vec<Option<Option<Holder>>>,
    /// For each worker, since when its operation has needed a core; none while it needs none.
    pub(super) begun: Vec<Option<Instant>>,
    /// The reliefs that have not begun an operation yet.
    pub(super) reliefs_waiting: usize,
    /// Numbers of the reliefs that are not there.
    pub(super) reliefs_left: Vec<usize>,
    /// The idle worker that checks when one more waiting operation may run.
    pub(super) watcher: Option<usize>,
    /// Numbers of the idle workers, the one that became idle last at the end.
    pub(super) idle: Vec<usize>,
    pub(super) closed: bool,
    /// Number of further short operations after which one may be attempted by the thread that asks for it.
    pub(super) hold_off: u32,
    /// When one may be at the earliest; none if that is over.
    pub(super) not_before: Option<Instant>,
    /// Number of operations that have begun since the start.
    pub(super) started: u64,
    pub(super) rejected: u64,
    /// Most workers that were busy at once.
    pub(super) largest: usize,
}

impl State {
    /// Whether an operation is refused instead of being queued. Whether its owner's other operations wait too long decides, and how many
    /// they are: those of others begin in turn with them.
    pub(super) fn refuses(&mut self, load: &Load, at_once: usize) -> bool {
        let now = Instant::now();
        let patience = (self.usual * PATIENCE_TIMES).clamp(*PATIENCE.start(), *PATIENCE.end());
        let mut own = self.waiting.iter().filter(|one| one.owner == load.owner);
        let first = own.next();
        let is_late = first.is_some_and(|first| now.duration_since(first.since) > patience);
        // No more are counted than it takes to know that there are enough.
        let waiting = usize::from(first.is_some()) + own.take(at_once).count();
        let is_shed = self.shedding.refuses(waiting, at_once, is_late, now);
        is_shed || !self.has_room(load)
    }

    /// Whether there is room for one more waiting operation, in number and bytes. An owner of few finds a part more of it.
    fn has_room(&self, load: &Load) -> bool {
        let fits = |more: usize| {
            let bytes = self.waiting_bytes + load.bytes;
            let fits = bytes <= LANE_BYTES + LANE_BYTES / 4 * more;
            self.waiting.len() < LANE_CAPACITY + LANE_CAPACITY / 4 * more && fits
        };
        if self.waiting.is_empty() || fits(0) {
            return true;
        }
        let own = || self.waiting.iter().filter(|one| one.owner == load.owner);
        fits(1)
            && own().count() < FEW_WAITING
            && own().map(|one| one.bytes).sum::<usize>() + load.bytes <= FEW_BYTES
    }

    /// Queues an operation behind those of its round: the one after that of its owner's last operation, or the current one.
    pub(super) fn queue(&mut self, job: Job, load: &Load, cancel: &CancelFlag, now: Instant) {
        let last = self.waiting.iter().rfind(|one| one.owner == load.owner);
        let round = last.map_or(self.round, |last| last.round + 1);
        let place = self.waiting.partition_point(|one| one.round <= round);
        let (cancel, owner) = (cancel.clone(), load.owner.clone());
        self.waiting.insert(place, Waiting { job, cancel, since: now, bytes: load.bytes, owner, round });
        self.waiting_bytes += load.bytes;
    }

    /// Whether one more operation may run now.
    pub(super) fn may_begin(&self, at_once: usize, now: Instant) -> bool {
        let at_once = (at_once - usize::from(self.shedding.is_on())).max(1);
        let short = self.short();
        let working = self.begun.iter().flatten().filter(|begun| now.duration_since(**begun) < short);
        self.closed || working.count() < at_once
    }

    /// How long a running operation counts against the number that may run at once.
    pub(super) fn short(&self) -> Duration {
        if self.shedding.is_on() { SHORT_WHEN_SHEDDING } else { SHORT }
    }

    /// Whether an owner may have one more worker. Callers without restrictions may have all.
    pub(super) fn may_have(&self, owner: &Option<Holder>) -> bool {
        if owner.is_none() {
            return true;
        }
        let free = self.free();
        free > self.handed.len() / ALL_BUT_ONE_OF && self.of_owner(owner) < free * OWN_TIMES
    }

    /// Number of workers without an operation, those that rest included. Reliefs do not count.
    fn free(&self) -> usize {
        self.working[..self.handed.len()].iter().filter(|one| one.is_none()).count()
    }

    /// Number of operations of an owner that have a worker.
    fn of_owner(&self, owner: &Option<Holder>) -> usize {
        self.working.iter().flatten().filter(|one| *one == owner).count()
    }

    /// The place of the first waiting operation whose owner has no worker.
    pub(super) fn place_to_relieve(&self) -> Option<usize> {
        self.place_of(|owner| self.of_owner(owner) == 0)
    }

    /// Whether somebody who waits gets none of the workers, and has none. What waits for a core gets one soon.
    pub(super) fn needs_relief(&self) -> bool {
        let nobody_begins = self.free() == 0 || self.next_place().is_none();
        nobody_begins && self.reliefs_waiting == 0 && self.place_to_relieve().is_some()
    }

    /// The place of the first waiting operation whose owner may have one more worker.
    pub(super) fn next_place(&self) -> Option<usize> {
        self.place_of(|owner| self.may_have(owner))
    }

    /// The place of the first waiting operation of an owner of whom this holds.
    fn place_of(&self, holds: impl Fn(&Option<Holder>) -> bool) -> Option<usize> {
        // Very many of one owner may wait.
        let mut others: Vec<&Option<Holder>> = Vec::new();
        self.waiting.iter().position(|one| {
            if others.contains(&&one.owner) {
                return false;
            }
            let holds = holds(&one.owner);
            if !holds {
                others.push(&one.owner);
            }
            holds
        })
    }

    /// The operation that a worker is to begin now, if there is one.
    pub(super) fn take_next(&mut self, worker: usize, at_once: usize) -> Option<Job> {
        self.take_at(worker, at_once, Self::next_place)
    }

    /// The operation at a place that a worker is to begin now, if it may.
    pub(super) fn take_at(
        &mut self,
        worker: usize,
        at_once: usize,
        place: impl Fn(&Self) -> Option<usize>,
    ) -> Option<Job> {
        if self.waiting.is_empty() {
            return None;
        }
        let now = Instant::now();
        if !self.may_begin(at_once, now) {
            return None;
        }
        let place = place(self)?;
        let Waiting { job, bytes, owner, round, .. } = self.waiting.remove(place)?;
        self.waiting_bytes -= bytes;
        self.round = self.round.max(round);
        self.working[worker] = Some(owner);
        self.begun[worker] = Some(now);
        self.started += 1;
        Some(job)
    }

    /// When the next running operation will have run so long that it no longer counts against the limit.
    pub(super) fn next_long(&self) -> Instant {
        let now = Instant::now();
        let ends = self.begun.iter().flatten().map(|begun| *begun + self.short());
        ends.filter(|end| *end > now).min().unwrap_or(now)
    }

    /// Adds the duration of an operation to the moving average.
    pub(super) fn note(&mut self, took: Duration) {
        self.usual = (self.usual * 15 + took) / 16;
        if took <= COUNTED_AS_SHORT {
            self.hold_off = self.hold_off.saturating_sub(1);
        }
    }

    /// Takes out the waiting jobs whose callers have cancelled them.
    pub(super) fn take_cancelled(&mut self) -> Vec<Job> {
        let all = std::mem::take(&mut self.waiting);
        let (gone, left): (VecDeque<_>, _) = all.into_iter().partition(|one| one.cancel.is_cancelled());
        self.waiting = left;
        self.waiting_bytes -= gone.iter().map(|one| one.bytes).sum::<usize>();
        gone.into_iter().map(|one| one.job).collect()
    }
}
