//! How far the log is known to be durable, told outside of it.
//!
//! ```text
//! durable = (generation u64 · bytes u64 · crc32 of both u32)*, little endian; the last entry that is whole counts
//! ```
//!
//! Each record says how far its file was durable before it. Nothing behind the last record vouches for that one, so damage to it
//! would look like a write that a crash cut short. An entry is appended here after each sync, without being synced itself: the death of the
//! process leaves it, a power cut may take the newest ones. It never says more than what is durable, and it may say less:
//! whatever goes wrong with this file is no failure of the log.

use std::io::Write;
use std::path::{Path, PathBuf};

use sparrow_files::{self as fs, File};

use super::Generation;

const NAME: &str = "durable";
const ENTRY: usize = 8 + 8 + 4;
/// Bytes after which the file begins anew.
const LONGEST: usize = 1 << 16;

/// Up to which byte a file of the log was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) generation: Generation,
    pub(super) bytes: u64,
}

impl Mark {
    /// The last one that was noted in `directory`.
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

/// The file, open for noting marks. After a failure nothing more is noted.
#[derive(Debug)]
pub(super) struct SyncMarkFile {
    path: PathBuf,
    file: Option<File>,
    length: usize,
}

impl SyncMarkFile {
    /// Begins the file anew, with the last mark that it had.
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
