//! Reopens a log after a failure that closed it for writes.

use std::io::Write;
use std::path::{Path, PathBuf};

use sparrow_file_system::File;

use super::files::{Generation, OpenedFile, next_file};
use super::record::{self, FILE_HEADER};
use super::replay;
use crate::error::StorageError;

/// State of a failed log while it is being reopened.
pub(super) struct Failed {
    /// Path of the last file of the log.
    pub path: PathBuf,
    /// Generation number of that last file.
    pub generation: Generation,
    /// Bytes of the file that are synced.
    pub durable_bytes: u64,
    /// Bytes of the file that are written, synced or not.
    pub written: u64,
    /// Framed records that are not in the file.
    pub buffer: Vec<u8>,
    /// Number of records in `buffer`, once it also contains the unsynced ones of the file; `None` before.
    pub collected: Option<u64>,
    /// The new file that continues the log, once it is created.
    pub begun: Option<OpenedFile>,
}

impl Failed {
    /// Truncates the file to its synced part and creates the next file, which gets the unsynced records if
    /// they are kept.
    pub fn reopen(&mut self, directory: &Path, keep_unsynced: bool) -> Result<(), StorageError> {
        if keep_unsynced && self.collected.is_none() {
            let mut unsynced = Vec::new();
            // What lies behind `written` is a part of the buffer, from a write that failed.
            replay::records_between(&self.path, self.durable_bytes..self.written, &mut unsynced)?;
            record::payloads(&self.buffer, &mut unsynced);
            let mut again = Vec::new();
            unsynced.iter().for_each(|payload| record::frame(&mut again, FILE_HEADER as u64, &[payload]));
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
