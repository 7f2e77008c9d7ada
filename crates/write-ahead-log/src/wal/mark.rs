//! Records outside the log how far it is durable.
//!
//! ```text
//! durable = (generation u64 · bytes u64 · crc32 of both u32)*, little endian; the last entry that is whole counts
//! ```
//!
//! Each record of the log says how far its file was durable before it. No record follows the last one, so
//! damage to it would look like a write that a crash cut short. Therefore an entry is appended here after
//! each sync. The entries themselves are not synced: they survive the end of the process, but a power failure
//! may lose the newest. An entry never claims more than is durable, but may claim less; errors of this file
//! are not failures of the log.

use std::io::Write;
use std::path::{Path, PathBuf};

use sparrow_file_system::{self as fs, File};

use super::Generation;

const NAME: &str = "durable";
const ENTRY: usize = 8 + 8 + 4;
/// Length in bytes from which on the file is started anew.
const LONGEST: usize = 1 << 16;

/// Position in a log file up to which it was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) generation: Generation,
    pub(super) bytes: u64,
}

impl Mark {
    /// The last intact entry of the file in `directory`.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        let bytes = fs::read(directory.join(NAME)).ok()?;
        let (entries, _) = bytes.as_chunks::<ENTRY>();
        entries.iter().rev().find_map(Self::decode)
    }

    fn encode(self) -> [u8; ENTRY] {
        let mut entry = [0; ENTRY];
        entry[..8].copy_from_slice(&self.generation.to_le_bytes());
        entry[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        let checksum = crc32fast::hash(&entry[..16]);
        entry[16..].copy_from_slice(&checksum.to_le_bytes());
        entry
    }

    fn decode(entry: &[u8; ENTRY]) -> Option<Self> {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&entry[at..at + 8]);
            u64::from_le_bytes(number)
        };
        let mark = Self { generation: number(0), bytes: number(8) };
        (mark.encode() == *entry).then_some(mark)
    }
}

/// The open file of sync marks. After a write error, no more marks are recorded.
#[derive(Debug)]
pub(super) struct SyncMarkFile {
    path: PathBuf,
    file: Option<File>,
    length: usize,
}

impl SyncMarkFile {
    /// Starts the file anew, with `last` as its first entry.
    pub(super) fn open(directory: &Path, last: Option<Mark>) -> Self {
        let mut marks = Self { path: directory.join(NAME), file: None, length: 0 };
        marks.begin();
        if let Some(mark) = last {
            marks.note(mark);
        }
        marks
    }

    fn begin(&mut self) {
        self.length = 0;
        // The one that was there is opened for appends only if nothing of it is kept.
        let _ = fs::remove_file(&self.path);
        self.file = File::create_new(&self.path).ok();
    }

    pub(super) fn note(&mut self, mark: Mark) {
        if self.length >= LONGEST {
            self.begin();
        }
        if let Some(file) = &mut self.file
            && file.write_all(&mark.encode()).is_err()
        {
            // Half an entry would hide those behind it.
            self.file = None;
        }
        self.length += ENTRY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_mark_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Mark::read(folder.path()), None);
        let mut marks = SyncMarkFile::open(folder.path(), Some(Mark { generation: 1, bytes: 2 }));
        for bytes in 0..5000 {
            marks.note(Mark { generation: 3, bytes });
        }
        assert_eq!(Mark::read(folder.path()), Some(Mark { generation: 3, bytes: 4999 }));
        let path = folder.path().join(NAME);
        let mut content = std::fs::read(&path).unwrap();
        assert!(content.len() <= LONGEST + ENTRY);
        let last = content.len() - 1;
        content[last] ^= 1;
        std::fs::write(&path, &content).unwrap();
        assert_eq!(Mark::read(folder.path()), Some(Mark { generation: 3, bytes: 4998 }));
    }
}
