//! The queue of texts that wait for a worker: bounded, with searches first, in turn between calls, and read in batches of similar
//! length.

mod call;
mod line;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use sparrow_runtime::work;

pub(crate) use self::call::{Call, Item};
pub(crate) use self::line::BatchLimits;
use self::line::Line;
use crate::error::EncoderError;

/// Time after the last search during which more searches are expected.
const CALM: Duration = Duration::from_secs(1);

/// Texts of one owner for which there is room in a queue that others have filled.
const FEW: usize = 16;

/// Who waits for a text's result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Priority {
    /// A search; it goes ahead of all ingest work.
    #[default]
    Search,
    /// A document that is being written.
    Ingest,
}

/// The queue of one deployment.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    work: Condvar,
    room: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    search: Line,
    ingest: Line,
    /// Number of places reserved for texts that are being tokenized.
    reserved: usize,
    stopped: bool,
    /// Number of workers that may stay: those numbered at or above it leave.
    workers: usize,
    /// Number of workers that run a batch, and of callers that stand in for a worker.
    busy: usize,
    /// When the last search arrived.
    searched: Option<Instant>,
}

impl State {
    fn taken(&self) -> usize {
        self.waiting() + self.reserved
    }

    /// Whether there is room for so many more texts. An owner of few finds a quarter more of it, and so is not refused because of what
    /// others have sent.
    fn has_room(&self, count: usize, capacity: usize) -> bool {
        let taken = self.taken() + count;
        if taken <= capacity {
            return true;
        }
        let owner = work::owner();
        let lines = [&self.search, &self.ingest];
        let own = || lines.iter().flat_map(|line| &line.items).filter(|item| item.call.owner == owner);
        // 0 is nobody in particular.
        owner != 0 && taken <= capacity + capacity / 4 && count <= FEW && own().count() + count <= FEW
    }

    /// Number of texts that can be read.
    fn waiting(&self) -> usize {
        self.search.items.len() + self.ingest.items.len()
    }
}

impl Queue {
    /// A queue for at most `capacity` texts.
    pub(crate) fn new(capacity: usize, workers: usize) -> Self {
        Self {
            state: Mutex::new(State { workers, ..State::default() }),
            work: Condvar::new(),
            room: Condvar::new(),
            capacity,
        }
    }

    /// Reserves places for `count` texts at once, without waiting. For an owner of few texts there are some more than the capacity.
    ///
    /// # Errors
    /// [`EncoderError::QueueFull`] if there is no room for all, [`EncoderError::Stopped`].
    pub(crate) fn reserve(&self, count: usize) -> Result<Reservation<'_>, EncoderError> {
        let mut state = self.state.lock();
        if state.stopped {
            return Err(EncoderError::Stopped);
        }
        if !state.has_room(count, self.capacity) {
            return Err(EncoderError::QueueFull { capacity: self.capacity, requested: count });
        }
        state.reserved += count;
        Ok(Reservation { queue: self, count })
    }

    /// Waits up to `patience` for places for `count` texts; `None` if none became free. Paced work leaves
    /// half of the queue to callers that would fail without room.
    ///
    /// # Errors
    /// [`EncoderError::Stopped`].
    pub(crate) fn reserve_paced(
        &self,
        count: usize,
        patience: Duration,
    ) -> Result<Option<Reservation<'_>>, EncoderError> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Err(EncoderError::Stopped);
            }
            // An empty queue takes any chunk: a capacity of 1 must not block for ever.
            let share = (self.capacity / 2).max(1);
            if state.taken() == 0 || state.taken() + count <= share {
                state.reserved += count;
                return Ok(Some(Reservation { queue: self, count }));
            }
            if self.room.wait_for(&mut state, patience).timed_out() {
                return Ok(None);
            }
        }
    }

    /// Highest number of texts that a paced call reserves at once.
    pub(crate) fn paced_chunk(&self) -> usize {
        (self.capacity / 2).clamp(1, 64)
    }

    /// Removes the texts of a call that no one waits for any more; returns how many there were.
    pub(crate) fn withdraw(&self, call: &Arc<Call>) -> usize {
        call.abandon();
        let mut state = self.state.lock();
        let before = state.taken();
        state.search.items.retain(|item| !Arc::ptr_eq(&item.call, call));
        state.ingest.items.retain(|item| !Arc::ptr_eq(&item.call, call));
        let removed = before - state.taken();
        drop(state);
        self.room.notify_all();
        removed
    }

    /// Waits for work and takes a batch; `None` tells the worker to end.
    pub(crate) fn take(
        &self,
        worker: usize,
        limits: impl Fn(&BatchContext) -> BatchLimits,
    ) -> Option<Vec<Item>> {
        let mut state = self.state.lock();
        loop {
            if state.stopped || worker >= state.workers {
                return None;
            }
            let workers = state.workers;
            let calm = state.searched.is_none_or(|at| at.elapsed() >= CALM);
            if state.busy >= workers {
                self.work.wait(&mut state);
                continue;
            }
            let State { search, ingest, .. } = &mut *state;
            let (line, priority) =
                if search.items.is_empty() { (ingest, Priority::Ingest) } else { (search, Priority::Search) };
            if !line.items.is_empty() {
                let batch = line.take(limits(&BatchContext { workers, priority, calm }));
                let more = state.waiting() > 0;
                state.busy += 1;
                drop(state);
                if more {
                    self.work.notify_one();
                }
                self.room.notify_all();
                return Some(batch);
            }
            self.work.wait(&mut state);
        }
    }

    /// Reports that a worker has finished its batch.
    pub(crate) fn done(&self) {
        let mut state = self.state.lock();
        state.busy -= 1;
        let waiting = state.waiting() > 0;
        drop(state);
        // A worker may have waited for this one's place.
        if waiting {
            self.work.notify_all();
        }
    }

    /// Lets a search take the place of an idle worker, if there is one and no text waits. A lone text is then
    /// encoded on its caller's thread, which saves two context switches. No more texts run at once than there
    /// are workers.
    ///
    /// # Errors
    /// [`EncoderError::Stopped`].
    pub(crate) fn stand_in(&self) -> Result<Option<CallerAsWorker<'_>>, EncoderError> {
        let mut state = self.state.lock();
        if state.stopped {
            return Err(EncoderError::Stopped);
        }
        state.searched = Some(Instant::now());
        if state.taken() > 0 || state.busy >= state.workers {
            return Ok(None);
        }
        state.busy += 1;
        Ok(Some(CallerAsWorker { queue: self }))
    }

    /// Number of texts that wait.
    pub(crate) fn pending(&self) -> usize {
        self.state.lock().taken()
    }

    /// Changes the number of workers that may stay.
    pub(crate) fn set_workers(&self, workers: usize) {
        self.state.lock().workers = workers;
        self.work.notify_all();
    }

    /// Ends all workers and fails the texts that wait.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        let waiting: Vec<Item> = state.search.items.drain(..).collect();
        let waiting = waiting.into_iter().chain(state.ingest.items.drain(..)).collect::<Vec<_>>();
        drop(state);
        self.work.notify_all();
        self.room.notify_all();
        for item in waiting {
            item.call.fail(EncoderError::Stopped);
        }
    }
}

/// A caller that stands in for a worker, until it is dropped.
#[derive(Debug)]
pub(crate) struct CallerAsWorker<'a> {
    queue: &'a Queue,
}

impl Drop for CallerAsWorker<'_> {
    fn drop(&mut self) {
        self.queue.done();
    }
}

/// Places in the queue reserved for texts that are being tokenized; unused ones are released on drop.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    queue: &'a Queue,
    count: usize,
}

impl Reservation<'_> {
    /// Queues texts of one call on the reserved places.
    ///
    /// # Errors
    /// [`EncoderError::Stopped`].
    pub(crate) fn push(&mut self, items: Vec<Item>, priority: Priority) -> Result<(), EncoderError> {
        let mut state = self.queue.state.lock();
        if state.stopped {
            return Err(EncoderError::Stopped);
        }
        self.count -= items.len();
        state.reserved -= items.len();
        match priority {
            Priority::Search => {
                state.searched = Some(Instant::now());
                state.search.extend(items);
            }
            Priority::Ingest => state.ingest.extend(items),
        }
        drop(state);
        self.queue.work.notify_all();
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.queue.state.lock().reserved -= self.count;
            self.queue.room.notify_all();
        }
    }
}

/// Circumstances that the limits of a batch depend on.
#[derive(Debug)]
pub(crate) struct BatchContext {
    pub(crate) workers: usize,
    pub(crate) priority: Priority,
    /// Whether no search has arrived for a while.
    pub(crate) calm: bool,
}

#[cfg(test)]
mod tests;
