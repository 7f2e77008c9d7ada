//! Making a file of packed weights, section by section.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sparrow_file_system::{self as fs, File};

use crate::fixed::Fixed;
use crate::numbers::{LINE, Plain, bytes};

use super::{FORMAT, Facts, HEADER, Identity, Index, MAGIC, Section};

/// A file of packed weights that is being written, under a temporary name of its own, so that two writers do not
/// conflict. If it is dropped before [`Packer::finish`], the file is removed.
#[derive(Debug)]
pub(crate) struct Packer {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    sections: BTreeMap<String, Section>,
    end: usize,
}

impl Packer {
    /// Creates the temporary file for `target`, and its folder if that does not exist.
    ///
    /// # Errors
    /// The error of creating the folder or the file.
    pub(crate) fn new(target: &Path) -> std::io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}.tmp", std::process::id()));
        let temporary = target.with_file_name(name);
        // One of a process of the same number that was killed may be there.
        let file = File::create(&temporary)?;
        Ok(Self { file, temporary, target: target.to_path_buf(), sections: BTreeMap::new(), end: HEADER })
    }

    /// For the tests: redirects what follows to another file.
    #[cfg(test)]
    pub(crate) fn write_to(&mut self, file: File) {
        self.file = file;
    }

    /// Writes a section.
    ///
    /// # Errors
    /// The error of writing the file.
    pub(crate) fn put<T: Plain>(&mut self, name: &str, values: &[T]) -> std::io::Result<()> {
        let bytes = bytes(values);
        let start = self.end.next_multiple_of(LINE);
        // What is left out is zeros.
        self.file.seek(SeekFrom::Start(start as u64))?;
        self.file.write_all(bytes)?;
        let section = Section { start, length: bytes.len(), checksum: crc32fast::hash(bytes) };
        self.sections.insert(name.to_owned(), section);
        self.end = start + bytes.len();
        Ok(())
    }

    /// Writes numbers of 20 bits as two sections: the upper 16 bits and the lower 4.
    ///
    /// # Errors
    /// The error of writing the file.
    pub(crate) fn put_fixed(&mut self, name: &str, numbers: &Fixed) -> std::io::Result<()> {
        self.put(&format!("{name}.high"), &numbers.high)?;
        self.put(&format!("{name}.low"), &numbers.low)
    }

    /// Writes the index, syncs the file and renames it to its final name.
    ///
    /// # Errors
    /// The error of writing or renaming; a file that had the final name before is still there.
    pub(crate) fn finish(mut self, identity: Identity, facts: Facts) -> std::io::Result<()> {
        let sections = std::mem::take(&mut self.sections);
        let index = serde_json::to_vec(&Index { identity, facts, sections })?;
        let start = self.end.next_multiple_of(LINE);
        let mut places = Vec::with_capacity(HEADER - 16);
        places.extend((start as u64).to_le_bytes());
        places.extend((index.len() as u64).to_le_bytes());
        places.extend(crc32fast::hash(&index).to_le_bytes());
        places.resize(HEADER - 16, 0);
        let checksum = crc32fast::hash(&places);
        let header = [&MAGIC[..], &FORMAT.to_le_bytes(), &checksum.to_le_bytes(), &places].concat();
        self.file.seek(SeekFrom::Start(start as u64))?;
        self.file.write_all(&index)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.target)?;
        self.temporary = PathBuf::new();
        match self.target.parent() {
            Some(folder) => fs::sync_dir(folder),
            None => Ok(()),
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // A half-written file must not stay: on a full disk it would hold on to space.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
