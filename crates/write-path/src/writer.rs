//! Writes documents one after another, under a lock that only an open shard grants.

use std::sync::Arc;

use parking_lot::MutexGuard;
use sparrow_mapping::{Mapping, ParsedDocument};
use sparrow_tantivy_index::{IndexError, WriteDocument};
use sparrow_write_ahead_log::Lsn;

use crate::error::ShardError;
use crate::record::Record;
use crate::refresh::guarded;
use crate::shard::{Phase, Shard, WriteState};
use crate::versions::LiveVersion;

/// Exclusive right to write to a shard. It also serialises changes of the metadata stored beside the shard:
/// read, change and save it while holding this, so that no change is lost and none survives the deletion of
/// the index.
pub struct Writer<'a> {
    shard: &'a Shard,
    pub(crate) state: MutexGuard<'a, WriteState>,
}

/// A document to be written.
pub struct NewDocument {
    pub id: String,
    pub version: u64,
    /// Bytes for the log: the source, with its passages.
    pub raw: Vec<u8>,
    pub parsed: ParsedDocument,
    /// Whether a document with this id already exists.
    pub replaces: bool,
}

/// Sequence number and log position of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    pub seq_no: u64,
    /// Position in the log; durable after [`Shard::sync`] of it.
    pub lsn: Lsn,
}

impl Shard {
    /// Acquires the right to write.
    ///
    /// # Errors
    /// [`ShardError::Closed`], [`ShardError::ReadOnly`].
    pub fn writer(&self) -> Result<Writer<'_>, ShardError> {
        Ok(Writer { shard: self, state: self.lock_for_writing()? })
    }

    /// Acquires the right to change metadata, which is granted even while the log has failed.
    ///
    /// # Errors
    /// [`ShardError::Closed`].
    pub fn changer(&self) -> Result<Writer<'_>, ShardError> {
        let state = self.state.lock();
        if state.phase == Phase::Closed {
            return Err(ShardError::Closed);
        }
        Ok(Writer { shard: self, state })
    }
}

impl Writer<'_> {
    /// Logs and indexes a document.
    ///
    /// # Errors
    /// [`ShardError::ReadOnly`] when the log refuses, and errors of the document's form; nothing was written then.
    pub fn index(&mut self, document: NewDocument) -> Result<Logged, ShardError> {
        let NewDocument { id, version, raw, parsed, replaces } = document;
        let stored: Arc<[u8]> = Arc::from(parsed.stored_source.as_deref().unwrap_or(&raw));
        let seq_no = self.shard.next_seq_no();
        let index = self.shard.index();
        // Before it is logged: what cannot be built must not be replayed either.
        let mut built = index.build(WriteDocument { id, seq_no, version, parsed, source: raw, replaces })?;
        let (id, source) = (std::mem::take(&mut built.id), std::mem::take(&mut built.source));
        let logged = self.log(id, LiveVersion { seq_no, version, source: Some(stored) }, Some(&source))?;
        let added = guarded(&mut self.state, || index.add_built(built));
        self.buffered(added);
        Ok(logged)
    }

    /// Logs and applies the deletion of a document; `existed` says whether it exists.
    ///
    /// # Errors
    /// [`ShardError::ReadOnly`] when the log refuses; nothing was written then.
    pub fn delete(&mut self, id: String, version: u64, existed: bool) -> Result<Logged, ShardError> {
        let seq_no = self.shard.next_seq_no();
        let logged = self.log(id.clone(), LiveVersion { seq_no, version, source: None }, None)?;
        if existed {
            let index = self.shard.index();
            let deleted = guarded(&mut self.state, || index.delete(&id));
            self.buffered(deleted);
        } else {
            // Its version goes out of memory with the next refresh.
            self.shard.mark_dirty();
        }
        Ok(logged)
    }

    /// Closes the shard, as [`Shard::close`] does. Between what the caller did before and this, nothing is
    /// written and no metadata changes.
    pub fn close(self) {
        let Self { shard, mut state } = self;
        shard.mark_closed(&mut state);
        drop(state);
        shard.close();
    }

    /// Makes everything that was logged durable.
    ///
    /// # Errors
    /// When the disk refuses; the shard is read-only then.
    pub fn sync_log(&mut self) -> Result<(), ShardError> {
        let synced = self.shard.wal.sync_all();
        synced.map_err(|error| self.shard.log_failed_locked(&mut self.state, error.into()))
    }

    /// Logs a write, after which reads by id see it. `source` is the document with its passages; `None` for a deletion.
    fn log(&mut self, id: String, version: LiveVersion, source: Option<&[u8]>) -> Result<Logged, ShardError> {
        let header = Record { seq_no: version.seq_no, version: version.version, id: &id, source }.header();
        let lsn = match self.shard.wal.append_parts(&[&header, id.as_bytes(), source.unwrap_or_default()]) {
            Ok(lsn) => lsn,
            Err(error) => return Err(self.shard.log_failed_locked(&mut self.state, error.into())),
        };
        let seq_no = self.shard.next_seq_no.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        // The log is the truth from here on: reads by id and later writes go by it, whatever becomes of the buffer.
        self.shard.versions.lock().insert(id, version, lsn, || self.shard.wal.durable());
        Ok(Logged { seq_no, lsn })
    }

    /// Handles the result of adding a logged write to the segments: on failure, the write is replayed from
    /// the log, now or before the next commit.
    fn buffered(&mut self, result: Result<(), IndexError>) {
        // Set under the write lock, under which a refresh clears it: a thread that finds the shard clean knows that a refresh has seen the write.
        self.shard.mark_dirty();
        let Err(error) = result else { return };
        let error = match error {
            rolled_back @ IndexError::RolledBack { .. } => rolled_back,
            other => {
                tracing::error!(index = &*self.shard.options.name, error = %other, "a logged write did not reach the segments");
                self.state.incomplete = Some(None);
                return;
            }
        };
        if let Err(error) = self.shard.rolled_back(&mut self.state, error) {
            tracing::error!(index = &*self.shard.options.name, %error, "the log could not be applied again; it is tried before the next commit");
        }
    }

    /// Adopts a wider mapping in the segments. The caller must have saved it before.
    ///
    /// # Errors
    /// When the segments cannot be opened with it; they are reopened with the current mapping as soon as that
    /// is possible.
    pub fn widen(&mut self, mapping: &Mapping) -> Result<(), ShardError> {
        self.try_to_widen(mapping).inspect_err(|_| self.state.reopen = true)
    }

    fn try_to_widen(&mut self, mapping: &Mapping) -> Result<(), ShardError> {
        // New fields need a commit, which also shows what is buffered.
        self.shard.before_commit(&mut self.state)?;
        self.shard.complete(&mut self.state)?;
        let index = self.shard.index();
        let update = |state: &mut WriteState| guarded(state, || index.update_mapping(mapping));
        let Err(error) = update(&mut self.state) else { return Ok(()) };
        self.shard.rolled_back(&mut self.state, error)?;
        // A second failed commit loses the buffer too, which then counts as incomplete.
        Ok(update(&mut self.state).inspect_err(|_| _ = self.state.incomplete.get_or_insert(None))?)
    }

    /// Whether the segments may lack a mapping that was saved, because an attempt to adopt it failed.
    pub fn may_lag(&self) -> bool {
        self.state.reopen
    }

    /// Whether the log contains no write that is not in a durable commit.
    pub fn is_flushed(&self) -> bool {
        self.shard.uncommitted() == 0
    }
}
