//! Storage of task results and checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use sparrow_request::error::EngineError;
use sparrow_write_ahead_log::DataDir;

use crate::record;

/// Most task records that are kept; the oldest are removed.
pub(crate) const KEPT_RESULTS: usize = 1000;
const PREFIX: &str = "task-";

/// Storage of task results and checkpoints in the data directory.
pub(crate) struct Store {
    data: Arc<DataDir>,
    /// Numbers of the tasks that have a stored record.
    kept: Mutex<BTreeSet<u64>>,
    /// Results that could not be written yet; on disk, these tasks are still running.
    unwritten: Mutex<BTreeMap<u64, Value>>,
    /// Numbers of tasks whose cancellation could not be written yet.
    unnoted: Mutex<BTreeSet<u64>>,
    /// Held while a record is created and written.
    writing: Mutex<()>,
    closing: AtomicBool,
}

impl Store {
    /// Lists the stored records.
    ///
    /// # Errors
    /// If the data directory cannot be read.
    pub fn open(data: Arc<DataDir>) -> Result<Self, EngineError> {
        let kept: BTreeSet<u64> =
            data.list(PREFIX)?.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
        Ok(Self {
            data,
            kept: Mutex::new(kept),
            unwritten: Mutex::default(),
            unnoted: Mutex::default(),
            writing: Mutex::default(),
            closing: AtomicBool::new(false),
        })
    }

    /// Highest task number that has a record.
    pub fn last(&self) -> Option<u64> {
        self.kept.lock().last().copied()
    }

    /// Numbers of the tasks that have a record, ascending.
    pub fn numbers(&self) -> Vec<u64> {
        self.kept.lock().iter().copied().collect()
    }

    /// Whether the task with this number has a record.
    pub fn has(&self, number: u64) -> bool {
        self.kept.lock().contains(&number)
    }

    /// Marks the server as stopping: tasks that end from now on may be resumed after the next start.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Writes a record; `record` is called while no other record is being written.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn write(&self, number: u64, record: impl FnOnce() -> Value) -> Result<(), EngineError> {
        let _writing = self.writing.lock();
        self.data.write_json(&name(number), &record())?;
        self.kept.lock().insert(number);
        Ok(())
    }

    /// Stores that a user cancelled a task, unless it has ended; if the write fails, it is retried by
    /// [`Store::settle`].
    pub fn note_cancelled(&self, number: u64) {
        if let Err(error) = self.write_cancelled(number) {
            tracing::error!(%error, number, "it cannot be written down that a task is cancelled; it is tried again");
            self.unnoted.lock().insert(number);
        }
    }

    fn write_cancelled(&self, number: u64) -> Result<(), EngineError> {
        let _writing = self.writing.lock();
        match self.read(number)? {
            Some(mut record) if record::is_running(&record) => {
                record::mark_cancelled(&mut record);
                Ok(self.data.write_json(&name(number), &record)?)
            }
            _ => Ok(()),
        }
    }

    /// Stores a result; if the write fails, it is kept in memory and retried by [`Store::settle`].
    pub fn keep(&self, number: u64, record: Value) {
        if let Err(error) = self.write(number, || record.clone()) {
            tracing::error!(%error, number, "a task result cannot be written down; it is tried again");
            self.unwritten.lock().insert(number, record);
        }
    }

    /// Retries all writes that failed before.
    pub fn settle(&self) {
        let unnoted = self.unnoted.lock().clone();
        for number in unnoted {
            if self.write_cancelled(number).is_ok() {
                self.unnoted.lock().remove(&number);
            }
        }
        let unwritten = self.unwritten.lock().clone();
        for (number, record) in unwritten {
            if self.write(number, || record).is_ok() {
                self.unwritten.lock().remove(&number);
            }
        }
    }

    pub fn read(&self, number: u64) -> Result<Option<Value>, EngineError> {
        if let Some(record) = self.unwritten.lock().get(&number) {
            return Ok(Some(record.clone()));
        }
        Ok(self.data.read_json(&name(number))?)
    }

    /// Removes the oldest records beyond [`KEPT_RESULTS`]; those of running tasks are kept.
    pub fn trim(&self, running: &dyn Fn(u64) -> bool) {
        let mut kept = self.kept.lock();
        let surplus = kept.len().saturating_sub(KEPT_RESULTS);
        let old: Vec<u64> = kept.iter().copied().filter(|number| !running(*number)).take(surplus).collect();
        for number in old {
            if let Err(error) = self.data.remove(&name(number)) {
                tracing::warn!(%error, number, "an old task result cannot be removed");
            }
            self.unwritten.lock().remove(&number);
            kept.remove(&number);
        }
    }
}

fn name(number: u64) -> String {
    format!("{PREFIX}{number}")
}
