//! Checks the files of a commit against their lengths and CRC-32 checksums.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crc32fast::Hasher;
use parking_lot::Mutex;
use sparrow_file_system::{self as fs, File};

use crate::error::IndexError;
use crate::manifest::{Checksum, Commit, FORMAT, META, Manifest, Meta, MetaProblem};
use crate::stored_documents;

/// Size in bytes of the pieces in which threads hash a file.
const PIECE: u64 = 8 << 20;
/// Size of one read, in bytes.
const READ: usize = 1 << 20;
/// Most hashing threads; enough to saturate a disk, and nearly the memory bandwidth.
const MOST_THREADS: usize = 8;

/// A file that differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file in the index's directory.
    pub file: String,
    /// What is wrong with the file, as text.
    pub reason: String,
}

impl Damage {
    /// The error that prevents the index in `root` from being opened.
    pub fn into_error(self, root: &Path) -> IndexError {
        IndexError::Corrupt { path: root.join(self.file), reason: self.reason }
    }
}

/// A `meta.json` on disk that was read and checked.
pub struct CheckedCommit {
    pub meta: Meta,
}

impl CheckedCommit {
    /// Reads and checks the `meta.json` of an index; `None` if the file is missing.
    pub fn read(root: &Path) -> Result<Option<Self>, IndexError> {
        let path = root.join(META);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(IndexError::Io { path, source }),
        };
        match Meta::decode(&bytes) {
            Ok(meta) => Ok(Some(Self { meta })),
            Err(MetaProblem::Damaged(reason)) => Err(IndexError::Corrupt { path, reason }),
            Err(MetaProblem::Newer { found }) => {
                Err(IndexError::NewerFormat { path, found, supported: FORMAT })
            }
        }
    }

    /// tantivy's members of the `meta.json`, as JSON.
    pub fn meta_bytes(&self) -> &[u8] {
        &self.meta.bytes
    }

    /// Checks all files of the commit; returns the checksums of intact files, and the damaged files.
    pub fn check(&self, root: &Path) -> Result<(HashMap<PathBuf, Checksum>, Vec<Damage>), IndexError> {
        let (mut sums, mut damages) = match &self.meta.manifest {
            Some(manifest) => files(root, manifest),
            None => footers(root, &self.meta.commit).map_err(IndexError::io(root))?,
        };
        let stored = sums.keys().filter_map(|name| name.to_str());
        let stored: Vec<String> =
            stored.filter(|name| name.ends_with(stored_documents::EXTENSION)).map(str::to_owned).collect();
        for name in stored {
            let path = root.join(&name);
            let problem = body(&path).and_then(|body| stored_documents::problem(&path, body));
            let problem = problem.map(|problem| problem.map(str::to_owned));
            if let Some(reason) = problem.unwrap_or_else(|error| Some(error.to_string())) {
                sums.remove(Path::new(&name));
                damages.push(Damage { file: name, reason });
            }
        }
        Ok((sums, damages))
    }
}

/// Damaged files of the newest durable commit in `root`. Opens no index and changes nothing.
///
/// # Errors
/// When the commit itself cannot be read; without it nothing is known of the files.
pub fn damages(root: &Path) -> Result<Vec<Damage>, IndexError> {
    match CheckedCommit::read(root)? {
        Some(found) => Ok(found.check(root)?.1),
        None => Err(IndexError::Corrupt { path: root.join(META), reason: "it is missing".into() }),
    }
}

/// Reads all files of `manifest`, several in parallel. Returns the checksums of those that have one of their
/// listed contents, and damage of the others.
pub fn files(root: &Path, manifest: &Manifest) -> (HashMap<PathBuf, Checksum>, Vec<Damage>) {
    let mut damages = Vec::new();
    let mut listed = Vec::new();
    for (name, expected) in &manifest.files {
        let damage = |reason: String| Damage { file: name.clone(), reason };
        match fs::metadata(root.join(name)) {
            Ok(found) if expected.iter().any(|sum| sum.bytes == found.len()) => {
                listed.push((name.as_str(), expected.as_slice(), found.len()));
            }
            Ok(found) => {
                let bytes = expected.first().map_or(0, |sum| sum.bytes);
                damages.push(damage(format!("{} bytes instead of {bytes}", found.len())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                damages.push(damage("it is missing".into()));
            }
            Err(error) => damages.push(damage(error.to_string())),
        }
    }
    let mut sums = HashMap::new();
    for ((name, expected, bytes), read) in listed.iter().zip(checksums(root, &listed)) {
        let damage = |reason: String| Damage { file: (*name).to_owned(), reason };
        match read {
            Err(error) => damages.push(damage(format!("it cannot be read: {error}"))),
            Ok(crc32) => match expected.iter().find(|sum| sum.bytes == *bytes && sum.crc32 == crc32) {
                Some(sum) => {
                    sums.insert(PathBuf::from(name), *sum);
                }
                None => {
                    let wanted = expected.iter().find(|sum| sum.bytes == *bytes).map_or(0, |sum| sum.crc32);
                    damages.push(damage(format!("crc32 {crc32:08x}, expected {wanted:08x}")));
                }
            },
        }
    }
    damages.sort_by(|a, b| a.file.cmp(&b.file));
    (sums, damages)
}

/// CRC-32 of each file. Long files are read in pieces by several threads.
fn checksums(root: &Path, files: &[(&str, &[Checksum], u64)]) -> Vec<io::Result<u32>> {
    let pieces: Vec<(usize, u64, u64)> = files
        .iter()
        .enumerate()
        .flat_map(|(file, (_, _, bytes))| {
            (0..bytes.div_ceil(PIECE)).map(move |n| (file, n * PIECE, PIECE.min(bytes - n * PIECE)))
        })
        .collect();
    let total: u64 = files.iter().map(|(_, _, bytes)| bytes).sum();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    // A thread is not worth its start for less than a piece.
    let threads = threads.min((total / PIECE) as usize + 1).min(pieces.len());
    let next = AtomicUsize::new(0);
    let read: Mutex<Vec<(usize, io::Result<Hasher>)>> = Mutex::new(Vec::with_capacity(pieces.len()));
    let work = || {
        let mut buffer = vec![0; READ];
        while let Some((number, (file, start, length))) = {
            let number = next.fetch_add(1, Relaxed);
            pieces.get(number).map(|piece| (number, *piece))
        } {
            let hashed = hash(&root.join(files[file].0), start, length, &mut buffer);
            read.lock().push((number, hashed));
        }
    };
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            // Where the system gives no thread, those that there are do it.
            let spawn = |_: &usize| std::thread::Builder::new().spawn_scoped(scope, work).is_ok();
            let _ = (1..threads).take_while(spawn).count();
            work();
        });
    }
    let mut read = read.into_inner();
    read.sort_by_key(|(number, _)| *number);
    let mut sums: Vec<io::Result<Hasher>> = files.iter().map(|_| Ok(Hasher::new())).collect();
    for (number, hashed) in read {
        let sum = &mut sums[pieces[number].0];
        match (sum.as_mut(), hashed) {
            (Ok(sum), Ok(piece)) => sum.combine(&piece),
            (Ok(_), Err(error)) => *sum = Err(error),
            (Err(_), _) => {}
        }
    }
    sums.into_iter().map(|sum| sum.map(Hasher::finalize)).collect()
}

/// Hashes `length` bytes of a file from `start` on.
fn hash(path: &Path, start: u64, length: u64, buffer: &mut [u8]) -> io::Result<Hasher> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut hasher = Hasher::new();
    let mut left = length;
    while left > 0 {
        let wanted = left.min(buffer.len() as u64) as usize;
        let count = match file.read(&mut buffer[..wanted]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..count]);
        left -= count as u64;
    }
    Ok(hasher)
}

/// Size in bytes of what ends each file of tantivy's: the length of the footer's JSON, and a magic number.
const FOOTER_END: u64 = 8;
const FOOTER_MAGIC: u32 = 1337;

/// Same as [`files`], for a commit of an older version without a list: compares each file with the checksum
/// in its tantivy footer.
pub fn footers(root: &Path, commit: &Commit) -> io::Result<(HashMap<PathBuf, Checksum>, Vec<Damage>)> {
    let (mut sums, mut damages) = (HashMap::new(), Vec::new());
    let mut names = Vec::new();
    for entry in fs::read_dir(root)? {
        if let Ok(name) = entry?.file_name().into_string()
            && commit.names(&name)
        {
            names.push(name);
        }
    }
    names.sort();
    for segment in commit.segments() {
        if !names.iter().any(|name| name.starts_with(segment)) {
            let reason = "the files of the segment are missing".to_owned();
            damages.push(Damage { file: segment.to_owned(), reason });
        }
    }
    for name in names {
        match footer(&root.join(&name)) {
            Ok(sum) => {
                sums.insert(PathBuf::from(name), sum);
            }
            Err(error) => damages.push(Damage { file: name, reason: error.to_string() }),
        }
    }
    Ok((sums, damages))
}

/// Length in bytes of a tantivy file without its footer; `None` if it is too short.
pub fn body_length(bytes: &[u8]) -> Option<usize> {
    let (rest, _magic) = bytes.split_last_chunk::<4>()?;
    let (rest, length) = rest.split_last_chunk::<4>()?;
    rest.len().checked_sub(u32::from_le_bytes(*length) as usize)
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn cut() -> io::Error {
    invalid("its end is not one that tantivy writes".into())
}

/// Length in bytes of a tantivy file without its footer.
fn body(path: &Path) -> io::Result<u64> {
    let bytes = fs::metadata(path)?.len();
    let mut file = File::open(path)?;
    let mut end = [0; FOOTER_END as usize];
    let ends_at = bytes.checked_sub(FOOTER_END).ok_or_else(cut)?;
    file.seek(SeekFrom::Start(ends_at))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, e, f, g, h] = end;
    let body = ends_at.checked_sub(u64::from(u32::from_le_bytes([a, b, c, d]))).ok_or_else(cut)?;
    if u32::from_le_bytes([e, f, g, h]) != FOOTER_MAGIC || bytes - body > READ as u64 {
        return Err(cut());
    }
    Ok(body)
}

fn footer(path: &Path) -> io::Result<Checksum> {
    let (bytes, body) = (fs::metadata(path)?.len(), body(path)?);
    let mut file = File::open(path)?;
    let mut footer = vec![0; (bytes - body) as usize];
    file.seek(SeekFrom::Start(body))?;
    file.read_exact(&mut footer)?;
    let text = &footer[..footer.len() - FOOTER_END as usize];
    let described: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))?;
    let expected = described["crc"].as_u64().ok_or_else(cut)?;
    let mut hasher = hash(path, 0, body, &mut vec![0; READ])?;
    let found = hasher.clone().finalize();
    if u64::from(found) != expected {
        return Err(invalid(format!("crc32 {found:08x}, expected {expected:08x}")));
    }
    hasher.update(&footer);
    Ok(Checksum { bytes, crc32: hasher.finalize() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_several_threads_read_make_one_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..(3 * PIECE + 12_345)).map(|n| ((n * n) >> 7) as u8).collect();
        std::fs::write(folder.path().join("long"), &content).unwrap();
        std::fs::write(folder.path().join("empty"), []).unwrap();
        let sum = |bytes: &[u8]| Checksum { bytes: bytes.len() as u64, crc32: crc32fast::hash(bytes) };
        let mut manifest = Manifest::default();
        manifest.files.insert("long".into(), vec![sum(b"older"), sum(&content)]);
        manifest.files.insert("empty".into(), vec![sum(b"")]);
        manifest.files.insert("gone".into(), vec![sum(b"1")]);
        let (sums, damages) = files(folder.path(), &manifest);
        assert_eq!(sums[Path::new("long")], sum(&content));
        assert_eq!(sums.len(), 2);
        assert_eq!(damages, [Damage { file: "gone".into(), reason: "it is missing".into() }]);
        let mut changed = content.clone();
        changed[PIECE as usize + 5] ^= 1;
        std::fs::write(folder.path().join("long"), &changed).unwrap();
        let (_, damages) = files(folder.path(), &manifest);
        assert_eq!(damages.len(), 2);
        assert!(damages[1].reason.starts_with("crc32 "), "{damages:?}");
        std::fs::write(folder.path().join("long"), &content[1..]).unwrap();
        let (_, damages) = files(folder.path(), &manifest);
        assert!(damages[1].reason.contains("bytes instead of"), "{damages:?}");
    }
}
