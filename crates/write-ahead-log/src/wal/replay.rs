//! Reads a log back, and checks and repairs its files at the start.

use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sparrow_file_system::File;

use super::Generation;
use super::mark::Mark;
use super::record::{FILE_HEADER, RECORD_HEADER, RECORD_MAGIC, RecordHeader, VERSION, version_of};
use crate::error::StorageError;

/// Iterator over the payloads of a log in the order of their appending; reads one record at a time.
///
/// The files were checked when the log was opened, so an error here means that they changed since.
#[derive(Debug)]
pub struct Replay {
    files: std::vec::IntoIter<PathBuf>,
    current: Option<LogFile>,
}

impl Replay {
    pub(super) fn new(files: Vec<PathBuf>) -> Self {
        Self { files: files.into_iter(), current: None }
    }

    fn read_next(&mut self) -> Result<Option<Vec<u8>>, StorageError> {
        loop {
            if let Some(file) = &mut self.current {
                match file.next()? {
                    Step::Record { payload, .. } => return Ok(Some(payload)),
                    Step::End => self.current = None,
                    Step::Damaged { offset } => {
                        return Err(StorageError::WalCorrupt { path: file.path.clone(), offset });
                    }
                }
            } else {
                let Some(path) = self.files.next() else { return Ok(None) };
                self.current = LogFile::open(&path)?;
            }
        }
    }
}

impl Iterator for Replay {
    type Item = Result<Vec<u8>, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_next().transpose()
    }
}

/// Checks that the file of the last sync mark, or a later one, exists.
pub(super) fn check_marked(
    directory: &Path,
    files: &[(Generation, PathBuf)],
    mark: Option<Mark>,
) -> Result<(), StorageError> {
    let Some(mark) = mark else { return Ok(()) };
    // A file is removed after the one behind it was made.
    if files.iter().any(|(generation, _)| *generation >= mark.generation) {
        return Ok(());
    }
    Err(StorageError::WalCorrupt { path: super::files::path_of(directory, mark.generation), offset: 0 })
}

/// Generation of the file that was being written when the process ended: the last one with a header, since
/// the header is durable before the first record. A later file without a header is left from a failed attempt
/// to start one.
pub(super) fn last_begun(files: &[(Generation, PathBuf)]) -> Generation {
    // What cannot be read or is of another version is no stub: the check of the files reports it.
    let is_begun = |path: &Path| !matches!(LogFile::open(path), Ok(None));
    files.iter().rev().find(|(_, path)| is_begun(path)).map_or(0, |(generation, _)| *generation)
}

/// Checks a log file from front to back and cuts off a torn tail.
///
/// `is_last`: only the file that was being written when the process ended can have a torn tail. `durable`: bytes of it that are
/// known to have been synced, at least.
pub(super) fn check_and_repair(path: &Path, is_last: bool, durable: u64) -> Result<(), StorageError> {
    let Some(mut file) = LogFile::open(path)? else {
        // A file begins with a header that is durable before the first record. One that ends there holds nothing that was
        // ever acknowledged: the power went while it was created, or the disk refused and it could not be removed again.
        let length = sparrow_file_system::metadata(path).map_err(StorageError::io("read", path))?.len();
        return if length <= FILE_HEADER as u64 && durable <= FILE_HEADER as u64 {
            crate::durable::remove_file(path)
        } else {
            Err(StorageError::WalCorrupt { path: path.to_path_buf(), offset: 0 })
        };
    };
    loop {
        match file.next()? {
            Step::Record { .. } => {}
            Step::End if file.offset < durable => {
                return Err(StorageError::WalCorrupt { path: path.to_path_buf(), offset: file.offset });
            }
            Step::End => return Ok(()),
            Step::Damaged { offset } => {
                if !is_last || offset < durable || file.durable_beyond(offset)? {
                    return Err(StorageError::WalCorrupt { path: path.to_path_buf(), offset });
                }
                tracing::warn!(path = %path.display(), offset, "dropping the torn tail of the write-ahead log");
                let file = File::append(path).map_err(StorageError::io("open", path))?;
                file.set_len(offset).map_err(StorageError::io("truncate", path))?;
                return file.sync_all().map_err(StorageError::io("sync", path));
            }
        }
    }
}

/// Syncs a log file that a killed process left.
pub(super) fn sync(path: &Path) -> Result<(), StorageError> {
    // Where nothing may be written there is nothing to sync, but on some systems only what is open for writing can be.
    let file = File::append(path).or_else(|_| File::open(path)).map_err(StorageError::io("open", path))?;
    file.sync_all().map_err(StorageError::io("sync", path))
}

/// Appends the payloads of the records in a byte range of the file to `payloads`.
pub(super) fn records_between(
    path: &Path,
    bytes: std::ops::Range<u64>,
    payloads: &mut Vec<Vec<u8>>,
) -> Result<(), StorageError> {
    let Some(mut file) = LogFile::open(path)? else { return Ok(()) };
    file.reader.seek(SeekFrom::Start(bytes.start)).map_err(StorageError::io("read", path))?;
    file.offset = bytes.start;
    while file.offset < bytes.end
        && let Step::Record { payload } = file.next()?
    {
        payloads.push(payload);
    }
    Ok(())
}

enum Step {
    Record { payload: Vec<u8> },
    End,
    Damaged { offset: u64 },
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    reader: BufReader<File>,
    offset: u64,
}

impl LogFile {
    /// Opens a file and skips its header; `None` when the header is incomplete or invalid.
    fn open(path: &Path) -> Result<Option<Self>, StorageError> {
        let file = File::open(path).map_err(StorageError::io("open", path))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut header = [0; FILE_HEADER];
        match reader.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(StorageError::io("read", path)(error)),
        }
        let version = version_of(&header);
        if let Some(found) = version.filter(|found| *found > VERSION) {
            let (path, found) = (path.to_path_buf(), u32::from(found));
            return Err(StorageError::NewerFormat { path, found, supported: u32::from(VERSION) });
        }
        if version.is_none() {
            // The header is durable before anything comes behind it.
            let more = reader.get_ref().metadata().is_ok_and(|file| file.len() > FILE_HEADER as u64);
            if more {
                return Err(StorageError::WalCorrupt { path: path.to_path_buf(), offset: 0 });
            }
            return Ok(None);
        }
        Ok(Some(Self { path: path.to_path_buf(), reader, offset: FILE_HEADER as u64 }))
    }

    fn next(&mut self) -> Result<Step, StorageError> {
        let offset = self.offset;
        let mut header = [0; RECORD_HEADER];
        match read_up_to(&mut self.reader, &mut header).map_err(StorageError::io("read", &self.path))? {
            0 => return Ok(Step::End),
            RECORD_HEADER => {}
            _ => return Ok(Step::Damaged { offset }),
        }
        let Some(header) = RecordHeader::parse(&header) else {
            return Ok(Step::Damaged { offset });
        };
        // Grows with what is there, so that a damaged length cannot ask for a gigabyte.
        let mut payload = Vec::with_capacity(header.length.min(1 << 20));
        (&mut self.reader)
            .take(header.length as u64)
            .read_to_end(&mut payload)
            .map_err(StorageError::io("read", &self.path))?;
        if payload.len() != header.length || !header.matches(&payload) {
            return Ok(Step::Damaged { offset });
        }
        self.offset += (RECORD_HEADER + header.length) as u64;
        Ok(Step::Record { payload })
    }

    /// Whether an intact record after `damaged` says that the log was durable beyond that offset.
    fn durable_beyond(&mut self, damaged: u64) -> Result<bool, StorageError> {
        Ok(self.records_behind(damaged)?.iter().any(|(durable, _)| *durable > damaged))
    }

    /// Intact records after a damaged offset: the offset that each says was durable before it, and its
    /// payload.
    fn records_behind(&mut self, damaged: u64) -> Result<Vec<(u64, Vec<u8>)>, StorageError> {
        let mut rest = Vec::new();
        self.reader
            .seek(SeekFrom::Start(damaged))
            .and_then(|_| self.reader.read_to_end(&mut rest))
            .map_err(StorageError::io("read", &self.path))?;
        let magic = RECORD_MAGIC.to_le_bytes();
        let mut records = Vec::new();
        let mut at = 1;
        while at + RECORD_HEADER <= rest.len() {
            let payload = at + RECORD_HEADER;
            let mut header = [0; RECORD_HEADER];
            header.copy_from_slice(&rest[at..payload]);
            at += 1;
            if header[..4] != magic {
                continue;
            }
            if let Some(header) = RecordHeader::parse(&header)
                && let Some(bytes) = rest.get(payload..payload + header.length)
                && header.matches(bytes)
            {
                records.push((header.durable, bytes.to_vec()));
                at = payload + header.length;
            }
        }
        Ok(records)
    }
}

/// Result of reading a damaged log.
#[derive(Debug, Default)]
pub struct Salvaged {
    /// Payloads of the intact records, oldest first.
    pub records: Vec<Vec<u8>>,
    /// Damage found in the files. A write that a crash cut short is not damage.
    pub problems: Vec<StorageError>,
}

/// Reads all intact records of a log, including those after damaged places, and changes nothing. A missing
/// log is empty.
///
/// # Errors
/// [`StorageError::Io`] when the directory cannot be listed.
pub fn salvage(directory: &Path) -> Result<Salvaged, StorageError> {
    let mut salvaged = Salvaged::default();
    if !directory.exists() {
        return Ok(salvaged);
    }
    let files = super::files::log_files(directory)?;
    let mark = Mark::read(directory);
    salvaged.problems.extend(check_marked(directory, &files, mark).err());
    let last = last_begun(&files);
    for (generation, path) in &files {
        let durable = mark.filter(|mark| mark.generation == *generation).map_or(0, |mark| mark.bytes);
        if let Err(error) = salvage_file(path, *generation >= last, durable, &mut salvaged.records) {
            salvaged.problems.push(error);
        }
    }
    Ok(salvaged)
}

fn salvage_file(
    path: &Path,
    is_last: bool,
    durable: u64,
    records: &mut Vec<Vec<u8>>,
) -> Result<(), StorageError> {
    let corrupt = |offset| Err(StorageError::WalCorrupt { path: path.to_path_buf(), offset });
    let Some(mut file) = LogFile::open(path)? else {
        return if is_last && durable <= FILE_HEADER as u64 { Ok(()) } else { corrupt(0) };
    };
    loop {
        match file.next()? {
            Step::Record { payload } => records.push(payload),
            Step::End if file.offset < durable => return corrupt(file.offset),
            Step::End => return Ok(()),
            Step::Damaged { offset } => {
                let behind = file.records_behind(offset)?;
                let vouched = behind.iter().any(|(before, _)| *before > offset);
                if is_last && offset >= durable && !vouched {
                    return Ok(());
                }
                records.extend(behind.into_iter().map(|(_, payload)| payload));
                return corrupt(offset);
            }
        }
    }
}

/// Reads until `buffer` is full or the file ends; returns the number of bytes read.
fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
