//! Where the results and checkpoints of tasks are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use sparrow_call::error::EngineError;
use sparrow_storage::DataDir;

use crate::record;

/// Most results that are kept; older ones go.
pub(crate) const KEPT_RESULTS: usize = 1000;
const PREFIX: &str = "task-";

/// Where results and checkpoints are kept.
pub(crate) struct Store {
    data: Arc<DataDir>,
    /// Numbers of the tasks that have a record.
    kept: Mutex<BTreeSet<u64>>,
    /// Results that the disk refused, until it takes them. What it has instead says that the task still runs.
    unwritten: Mutex<BTreeMap<u64, Value>>,
    /// Tasks of which the disk refused to note that they are cancelled.
    unnoted: Mutex<BTreeSet<u64>>,
    /// Held from the making of a record until the disk has it.
    writing: Mutex<()>,
    closing: AtomicBool,
}

impl Store {
    /// Reads of which tasks there are records.
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

    /// The largest number of a task that has a record.
    pub fn last(&self) -> Option<u64> {
        self.kept.lock().last().copied()
    }

    /// The numbers of the tasks that have a record, in order.
    pub fn numbers(&self) -> Vec<u64> {
        self.kept.lock().iter().copied().collect()
    }

    /// Whether the task of this number has a record.
    pub fn has(&self, number: u64) -> bool {
        self.kept.lock().contains(&number)
    }

    /// Notes that the server stops: tasks that end from here on may go on after the next start.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Writes a record, which is made when no other one is being written.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&self, number: u64, record: impl FnOnce() -> Value) -> Result<(), EngineError> {
        let _writing = self.writing.lock();
        self.data.write_json(&name(number), &record())?;
        self.kept.lock().insert(number);
        Ok(())
    }

    /// Writes down that a user asked a task to stop, unless it has ended: now, or as soon as the disk takes it.
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

    /// Keeps a result: on the disk, or in memory as long as the disk does not take it.
    pub fn keep(&self, number: u64, record: Value) {
        if let Err(error) = self.write(number, || record.clone()) {
            tracing::error!(%error, number, "a task result cannot be written down; it is tried again");
            self.unwritten.lock().insert(number, record);
        }
    }

    /// Writes down what the disk refused before, if it takes it now.
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

    /// Drops the oldest results beyond the bound; tasks that run keep their records.
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
