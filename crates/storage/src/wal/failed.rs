//! Bringing back a log that a failure closed for writes.

use std::io::Write;
use std::path::{Path, PathBuf};

use sparrow_files::File;

use super::record::{self, FILE_HEADER};
use super::{Generation, OpenedFile, next_file, replay};
use crate::error::StorageError;

/// A log that a failure closed for writes, on its way back.
pub(super) struct Failed {
    /// The file that it ended with.
    pub path: PathBuf,
    /// Number of that file.
    pub generation: Generation,
    /// Bytes of it that are synced.
    pub durable_bytes: u64,
    /// Bytes of it that are written, synced or not.
    pub written: u64,
    /// Framed records that are not in it.
    pub buffer: Vec<u8>,
    /// How many records are in the buffer, once the unsynced ones of the file are.
    pub collected: Option<u64>,
    /// The file that takes over, as soon as it is there.
    pub begun: Option<OpenedFile>,
}

impl Failed {
    /// Cuts the file and begins another one, with the unsynced records in it if they are kept.
    pub fn reopen(&mut self, directory: &Path, keep_unsynced: bool) -> Result<(), StorageError> {
        if keep_unsynced && self.collected.is_none() {
            let mut unsynced = Vec::new();
            // What lies behind `written` is a part of the buffer, from a write that failed.
            replay::records_between(&self.path, self.durable_bytes..self.written, &mut unsynced)?;
            record::payloads(&self.buffer, &mut unsynced);
            let mut again = Vec::new();
            unsynced.iter().for_each(|payload| record::frame(&mut again, FILE_HEADER as u64, payload));
            // The file is about to be cut.
            (self.buffer, self.collected) = (again, Some(unsynced.len() as u64));
        }
        let file = File::append(&self.path).map_err(StorageError::io("open", &self.path))?;
        file.set_len(self.durable_bytes)
            .and_then(|()| file.sync_all())
            .map_err(StorageError::io("truncate", &self.path))?;
        self.written = self.durable_bytes;
        let begun = self.begun.insert(next_file(directory, self.generation)?);
        if keep_unsynced {
            (&begun.file)
                .write_all(&self.buffer)
                .and_then(|()| begun.file.sync_data())
                .map_err(StorageError::io("write", &begun.path))?;
            begun.bytes += self.buffer.len() as u64;
        }
        Ok(())
    }
}
