//! A repository on the disk. All that touches its files is here.
//!
//! ```text
//! repository.json          who it is; made once
//! lock                     locked by whoever changes the repository
//! unfinished               there from the beginning of a change to its end: after a crash, blobs may belong to nothing
//! snapshots/<uuid>.json    one snapshot: two lines, what a listing says and what a restore needs
//! blobs/<ab>/<sha256>      contents of files, each once, however many snapshots have it
//! temporary/<number>       blobs that are being written
//! ```
//!
//! Each line of a JSON file is `{"format":1,"sha256":"…of the value's bytes","value":…}`. The file of a snapshot is put in
//! place when all of its blobs are durable, and taken away before any of them: so every snapshot that is listed is whole.

use std::collections::HashSet;
use std::fs::TryLockError;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use sparrow_files::{self as fs, File};
use sparrow_storage::durable;

use super::errors;
use super::manifest::{Content, FileEntry, Info};
use super::pace::Pace;
use crate::error::EngineError;

const FORMAT: u32 = 1;
const IDENTITY: &str = "repository.json";
const LOCK: &str = "lock";
const UNFINISHED: &str = "unfinished";
const SNAPSHOTS: &str = "snapshots";
const BLOBS: &str = "blobs";
const TEMPORARY: &str = "temporary";
const EXTENSION: &str = ".json";
/// Bytes that are read, hashed and written at a time.
const CHUNK: usize = 256 << 10;

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    format: u32,
    sha256: String,
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    uuid: String,
}

/// What is wrong with a file that had to be read.
enum Unusable {
    Io(io::Error),
    Newer(u32),
    Damaged(String),
}

/// The snapshots of a repository.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Those that can be read, by their start.
    pub infos: Vec<Info>,
    /// Why others cannot, each naming its file.
    pub unreadable: Vec<String>,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Swept {
    pub blobs: u64,
    pub bytes: u64,
}

/// The folder of a repository.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// Name of the repository, for what is said.
    name: String,
    root: PathBuf,
}

/// Keeps others, also other processes, from changing the repository while it lives.
#[derive(Debug)]
pub(super) struct Exclusive {
    _lock: File,
    /// A change before this one did not come to its end.
    pub crashed: bool,
}

impl Layout {
    /// The repository in a folder, which need not exist.
    pub fn new(name: &str, root: PathBuf) -> Self {
        Self { name: name.to_owned(), root }
    }

    fn unusable(&self, file: &str, problem: Unusable) -> EngineError {
        errors::repository(&self.name, &self.sentence(file, &problem))
    }

    fn sentence(&self, file: &str, problem: &Unusable) -> String {
        match problem {
            Unusable::Io(error) => {
                tracing::warn!(repository = self.name, root = %self.root.display(), file, %error, "a file of a repository cannot be read");
                format!("[{file}] cannot be read: {}", error.kind())
            }
            Unusable::Newer(format) => format!(
                "[{file}] has format version {format}, this version of the server reads up to {FORMAT}: it was written by \
                 a newer one"
            ),
            Unusable::Damaged(detail) => format!("[{file}] is damaged: {detail}"),
        }
    }

    fn failed(&self, action: &'static str, file: &str, error: &dyn std::fmt::Display) -> EngineError {
        tracing::warn!(repository = self.name, root = %self.root.display(), file, %error, action, "a repository fails");
        errors::repository(&self.name, &format!("[{file}] cannot be {action}"))
    }

    /// Uuid of the repository; `None` where nothing lies at the location.
    ///
    /// # Errors
    /// When its file cannot be read, is damaged or of a newer format.
    pub fn identity(&self) -> Result<Option<String>, EngineError> {
        match fs::read(self.root.join(IDENTITY)) {
            Ok(bytes) => {
                let identity: Identity =
                    read_line(&bytes).map_err(|problem| self.unusable(IDENTITY, problem))?;
                Ok(Some(identity.uuid))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(IDENTITY, Unusable::Io(error))),
        }
    }

    /// Makes the folders that are missing, and the identity of a new repository; gives its uuid.
    ///
    /// # Errors
    /// As [`Layout::identity`]; when the folder cannot be written.
    pub fn create(&self) -> Result<String, EngineError> {
        for folder in [SNAPSHOTS, BLOBS, TEMPORARY] {
            durable::create_dir_all(&self.root.join(folder))
                .map_err(|error| self.failed("made", folder, &error))?;
        }
        if let Some(parent) = self.root.parent() {
            durable::sync_dir(parent).map_err(|error| self.failed("made", "..", &error))?;
        }
        if let Some(uuid) = self.identity()? {
            return Ok(uuid);
        }
        let uuid = crate::indices::new_uuid();
        let line = written(&Identity { uuid: uuid.clone() })?;
        durable::atomic_write(&self.root.join(IDENTITY), line.as_bytes())
            .map_err(|error| self.failed("written", IDENTITY, &error))?;
        Ok(uuid)
    }

    /// Writes, reads and removes a file.
    ///
    /// # Errors
    /// `repository_verification_exception`.
    pub fn verify(&self, writable: bool) -> Result<(), EngineError> {
        let failed = |error: &dyn std::fmt::Display| {
            tracing::warn!(repository = self.name, root = %self.root.display(), %error, "verification failed");
            errors::not_verified(&self.name, "location is not accessible")
        };
        if !writable {
            return fs::read_dir(&self.root).map(|_| ()).map_err(|error| failed(&error));
        }
        let token = crate::indices::new_uuid();
        let path = self.root.join(TEMPORARY).join(format!("verify-{token}"));
        durable::create_dir_all(&self.root.join(TEMPORARY)).map_err(|error| failed(&error))?;
        let written = durable::atomic_write(&path, token.as_bytes()).map_err(|error| failed(&error));
        let read = written.and_then(|()| fs::read(&path).map_err(|error| failed(&error)));
        let removed = durable::remove_file(&path).map_err(|error| failed(&error));
        match read? == token.as_bytes() {
            true => removed,
            false => Err(failed(&"what was written is not what is read")),
        }
    }

    /// Keeps everybody else from changing the repository, and notes that a change is under way.
    ///
    /// # Errors
    /// When another process changes it, or it cannot be written.
    pub fn begin(&self) -> Result<Exclusive, EngineError> {
        self.create()?;
        let lock = File::open_or_create(self.root.join(LOCK))
            .map_err(|error| self.failed("opened", LOCK, &error))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                errors::repository(&self.name, "another process is changing this repository")
            }
            TryLockError::Error(error) => self.failed("locked", LOCK, &error),
        })?;
        let crashed = self.root.join(UNFINISHED).exists();
        if !crashed {
            durable::atomic_write(&self.root.join(UNFINISHED), b"")
                .map_err(|error| self.failed("written", UNFINISHED, &error))?;
        }
        // Nobody writes to them now.
        let names = durable::list_dir(&self.root.join(TEMPORARY));
        for name in names.map_err(|error| self.failed("listed", TEMPORARY, &error))? {
            durable::remove_file(&self.root.join(TEMPORARY).join(&name))
                .map_err(|error| self.failed("removed", TEMPORARY, &error))?;
        }
        Ok(Exclusive { _lock: lock, crashed })
    }

    /// Notes that a change is complete: every blob belongs to a snapshot.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn end(&self, _held: &Exclusive) -> Result<(), EngineError> {
        durable::remove_file(&self.root.join(UNFINISHED))
            .map_err(|error| self.failed("removed", UNFINISHED, &error))
    }

    /// The snapshots. One that cannot be read does not hide the others.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn list(&self) -> Result<Listing, EngineError> {
        self.identity()?;
        let mut listing = Listing::default();
        for uuid in self.uuids()? {
            match self.lines(&uuid).and_then(|bytes| read_line::<Info>(&bytes)) {
                Ok(info) if info.uuid == uuid => listing.infos.push(info),
                Ok(_) => listing.unreadable.push(format!("[{}] names another snapshot", file_of(&uuid))),
                // It was deleted meanwhile.
                Err(Unusable::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(problem) => listing.unreadable.push(self.sentence(&file_of(&uuid), &problem)),
            }
        }
        listing.infos.sort_by(|a, b| (a.start, &a.snapshot).cmp(&(b.start, &b.snapshot)));
        Ok(listing)
    }

    /// What a restore needs of a snapshot.
    ///
    /// # Errors
    /// When its file cannot be read, is damaged or of a newer format.
    pub fn content(&self, uuid: &str) -> Result<Content, EngineError> {
        let unusable = |problem| self.unusable(&file_of(uuid), problem);
        let bytes = self.lines(uuid).map_err(unusable)?;
        // What the first line says holds for the second: a newer version may mean something else by it.
        read_line::<Info>(&bytes).map_err(unusable)?;
        let second = bytes.iter().position(|byte| *byte == b'\n').map_or(&[][..], |at| &bytes[at + 1..]);
        let content: Content = read_line(second).map_err(unusable)?;
        for file in content.files() {
            if !is_hash(&file.sha256) || !is_file_name(&file.name) {
                let problem = Unusable::Damaged(format!("a file cannot be named [{}]", file.name));
                return Err(self.unusable(&file_of(uuid), problem));
            }
        }
        Ok(content)
    }

    /// Puts the file of a snapshot in place, whose blobs are durable.
    ///
    /// # Errors
    /// When it cannot be written; there is no such snapshot then.
    pub fn put_snapshot(&self, _held: &Exclusive, info: &Info, content: &Content) -> Result<(), EngineError> {
        let file = file_of(&info.uuid);
        let lines = written(info)? + &written(content)?;
        durable::atomic_write(&self.root.join(&file), lines.as_bytes())
            .map_err(|error| self.failed("written", &file, &error))
    }

    /// Takes the file of a snapshot away.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_snapshot(&self, _held: &Exclusive, uuid: &str) -> Result<(), EngineError> {
        let file = file_of(uuid);
        durable::remove_file(&self.root.join(&file)).map_err(|error| self.failed("removed", &file, &error))
    }

    /// Removes the blobs that no snapshot has.
    ///
    /// # Errors
    /// When a snapshot cannot be read, as it may need any blob, or a blob cannot be removed.
    pub fn sweep(&self, _held: &Exclusive) -> Result<Swept, EngineError> {
        let mut used = HashSet::new();
        for uuid in self.uuids()? {
            used.extend(self.content(&uuid)?.files().map(|file| file.sha256.clone()));
        }
        let mut swept = Swept::default();
        let blobs = self.root.join(BLOBS);
        let list =
            |folder: &Path| durable::list_dir(folder).map_err(|error| self.failed("listed", BLOBS, &error));
        for folder in list(&blobs)? {
            let folder = blobs.join(folder);
            if !folder.is_dir() {
                continue;
            }
            for hash in list(&folder)? {
                if !is_hash(&hash) || used.contains(&hash) {
                    continue;
                }
                let path = folder.join(&hash);
                let bytes = fs::metadata(&path).map_or(0, |file| file.len());
                // Durable with the next change of the folder; what comes back after a crash is removed again.
                fs::remove_file(&path).map_err(|error| self.failed("removed", BLOBS, &error))?;
                swept.blobs += 1;
                swept.bytes += bytes;
            }
        }
        Ok(swept)
    }

    /// Whether there is a blob of this hash and length. Its content is looked at when it is read.
    pub fn has_blob(&self, sha256: &str, length: u64) -> bool {
        fs::metadata(self.blob(sha256)).is_ok_and(|file| file.is_file() && file.len() == length)
    }

    /// Stores the content of a file as a blob, unless it is there; says its hash, its length and whether it was written. Durable after
    /// [`Layout::sync_blobs`].
    ///
    /// # Errors
    /// When the file cannot be read or the blob not written; [`EngineError::Cancelled`].
    pub fn put_blob(
        &self,
        _held: &Exclusive,
        source: &Path,
        number: u64,
        pace: &mut Pace<'_>,
    ) -> Result<(String, u64, bool), EngineError> {
        let unread = |error: io::Error| {
            tracing::error!(source = %source.display(), %error, "a file cannot be read for a snapshot");
            EngineError::internal(format!("a file of an index cannot be read: {}", error.kind()))
        };
        let sha256 = hash_of(&mut File::open(source).map_err(unread)?, pace, unread)?;
        let length = fs::metadata(source).map_err(unread)?.len();
        if self.has_blob(&sha256, length) {
            return Ok((sha256, length, false));
        }
        let failed = |error: &dyn std::fmt::Display| self.failed("written", &blob_name(&sha256), error);
        let temporary = self.root.join(TEMPORARY).join(number.to_string());
        let result = File::open(source).map_err(unread).and_then(|mut from| {
            let mut to = File::create(&temporary).map_err(|error| failed(&error))?;
            let (copied, _) = copy(&mut from, &mut to, pace, unread, |error| failed(&error))?;
            if copied != sha256 {
                return Err(EngineError::internal("a file of an index changed while it was read"));
            }
            to.sync_all().map_err(|error| failed(&error))?;
            let blob = self.blob(&sha256);
            if let Some(folder) = blob.parent()
                && !folder.is_dir()
            {
                durable::create_dir_all(folder).map_err(|error| failed(&error))?;
            }
            fs::rename(&temporary, &blob).map_err(|error| failed(&error))
        });
        if result.is_err() {
            // On a full disk it would hold on to space.
            let _ = fs::remove_file(&temporary);
        }
        result.map(|()| (sha256, length, true))
    }

    /// Makes blobs durable that were put.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync_blobs<'a>(&self, hashes: impl Iterator<Item = &'a String>) -> Result<(), EngineError> {
        let folders: HashSet<PathBuf> =
            hashes.filter_map(|sha256| Some(self.blob(sha256).parent()?.to_path_buf())).collect();
        for folder in folders {
            durable::sync_dir(&folder).map_err(|error| self.failed("written", BLOBS, &error))?;
        }
        Ok(())
    }

    /// Writes the content of a blob into a new file, durable when this returns (its folder is the caller's).
    ///
    /// # Errors
    /// When the blob is not what was stored, naming the file and the snapshot; [`EngineError::Cancelled`].
    pub fn fetch(
        &self,
        snapshot: &str,
        entry: &FileEntry,
        target: &Path,
        pace: &mut Pace<'_>,
    ) -> Result<(), EngineError> {
        let blob = blob_name(&entry.sha256);
        let refuse = |problem: &str| {
            errors::restore(
                &self.name,
                snapshot,
                &format!("file [{}] cannot be restored: blob [{blob}] {problem}", entry.name),
            )
        };
        let unread = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => refuse("is missing"),
            kind => refuse(&format!("cannot be read: {kind}")),
        };
        let unwritten = |error: io::Error| {
            tracing::error!(target = %target.display(), %error, "a file cannot be restored");
            errors::restore(
                &self.name,
                snapshot,
                &format!("file [{}] cannot be written: {}", entry.name, error.kind()),
            )
        };
        let mut from = File::open(self.blob(&entry.sha256)).map_err(unread)?;
        let found = from.metadata().map_err(unread)?.len();
        if found != entry.length {
            return Err(refuse(&format!("is damaged: it has {found} bytes instead of {}", entry.length)));
        }
        let mut to = File::create_new(target).map_err(unwritten)?;
        let (sha256, _) = copy(&mut from, &mut to, pace, unread, unwritten)?;
        if sha256 != entry.sha256 {
            return Err(refuse("is damaged: its content is not what was stored"));
        }
        to.sync_all().map_err(unwritten)
    }

    fn uuids(&self) -> Result<Vec<String>, EngineError> {
        let names = durable::list_dir(&self.root.join(SNAPSHOTS))
            .map_err(|error| self.failed("listed", SNAPSHOTS, &error))?;
        let uuids = names.iter().filter_map(|name| name.strip_suffix(EXTENSION));
        Ok(uuids.filter(|uuid| is_uuid(uuid)).map(str::to_owned).collect())
    }

    fn lines(&self, uuid: &str) -> Result<Vec<u8>, Unusable> {
        fs::read(self.root.join(file_of(uuid))).map_err(Unusable::Io)
    }

    fn blob(&self, sha256: &str) -> PathBuf {
        self.root.join(BLOBS).join(sha256.get(..2).unwrap_or("00")).join(sha256)
    }
}

fn file_of(uuid: &str) -> String {
    format!("{SNAPSHOTS}/{uuid}{EXTENSION}")
}

fn blob_name(sha256: &str) -> String {
    format!("{BLOBS}/{}/{sha256}", sha256.get(..2).unwrap_or("00"))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 22 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a file may have this name in the folder of an index or of a model: a repository may come from anywhere.
fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=100).contains(&name.len()) && name.bytes().all(plain) && !matches!(name, "." | "..")
}

/// A value as a line of a file.
fn written(value: &impl Serialize) -> Result<String, EngineError> {
    let internal =
        |error: serde_json::Error| EngineError::internal(format!("a snapshot cannot be written: {error}"));
    let value = serde_json::value::to_raw_value(value).map_err(internal)?;
    let line = Line { format: FORMAT, sha256: hex(&Sha256::digest(value.get())), value: &value };
    Ok(serde_json::to_string(&line).map_err(internal)? + "\n")
}

/// Reads the first of some lines.
fn read_line<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unusable> {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| match newer(line) {
        Some(format) => Unusable::Newer(format),
        None => damaged(error),
    })?;
    if line.format > FORMAT {
        return Err(Unusable::Newer(line.format));
    }
    if hex(&Sha256::digest(line.value.get())) != line.sha256 {
        return Err(Unusable::Damaged("its checksum does not match".to_owned()));
    }
    serde_json::from_str(line.value.get()).map_err(damaged)
}

/// The format of a line that is otherwise not one of ours, if it is a newer one.
fn newer(line: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    value["format"].as_u64().and_then(|format| u32::try_from(format).ok()).filter(|format| *format > FORMAT)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of(
    from: &mut impl Read,
    pace: &Pace<'_>,
    unread: impl Fn(io::Error) -> EngineError,
) -> Result<String, EngineError> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        pace.check()?;
        match from.read(&mut chunk).map_err(&unread)? {
            0 => return Ok(hex(&hash.finalize())),
            length => hash.update(&chunk[..length]),
        }
    }
}

/// Copies at a pace; says the hash and the length of what was copied.
fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    pace: &mut Pace<'_>,
    unread: impl Fn(io::Error) -> EngineError,
    unwritten: impl Fn(io::Error) -> EngineError,
) -> Result<(String, u64), EngineError> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut total = 0;
    loop {
        let length = from.read(&mut chunk).map_err(&unread)?;
        if length == 0 {
            return Ok((hex(&hash.finalize()), total));
        }
        hash.update(&chunk[..length]);
        to.write_all(&chunk[..length]).map_err(&unwritten)?;
        total += length as u64;
        pace.copied(length)?;
    }
}

#[cfg(test)]
mod tests;
