//! Layout of a repository on disk. All code that touches its files is in this module and its submodules.
//!
//! ```text
//! repository.json          who it is; made once
//! lock                     locked by the process that changes the repository
//! unfinished               there from the beginning of a change to its end: after a crash, blobs may belong to nothing
//! snapshots/<uuid>.json    one snapshot: two lines, what a listing says and what a restore needs
//! blobs/<ab>/<sha256>      contents of files, each once, however many snapshots have it; with `.damaged` behind it one that a
//!                          restore found to be another
//! temporary/<number>       blobs that are being written
//! ```
//!
//! Each line of a JSON file is `{"format":1,"sha256":"…of the value's bytes","value":…}`. The file of a snapshot is put in
//! place when all of its blobs are durable, and taken away before any of them: so every snapshot that is listed is whole.
//!
//! None of these folders and files may be a link or anything else than a folder or a file: anybody who can write to the repository
//! could have others removed by it, or keep the server waiting.

pub(super) mod blobs;
mod lines;

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sparrow_file_system::{self as fs, File};
use sparrow_write_ahead_log::durable;
use sparrow_write_ahead_log::io_reason;

use self::lines::{FORMAT, Unusable, read_line, written};
use super::errors;
use super::manifest::{Content, FileEntry, Info};
use sparrow_request::error::EngineError;

const IDENTITY: &str = "repository.json";
const LOCK: &str = "lock";
const UNFINISHED: &str = "unfinished";
const SNAPSHOTS: &str = "snapshots";
const BLOBS: &str = "blobs";
const TEMPORARY: &str = "temporary";
const EXTENSION: &str = ".json";
/// Names of the folders in a repository.
const FOLDERS: [&str; 3] = [SNAPSHOTS, BLOBS, TEMPORARY];
/// Names of the files in a repository, and of the temporary files through which they are written.
const FILES: [&str; 5] = [IDENTITY, "repository.tmp", LOCK, UNFINISHED, "unfinished.tmp"];

#[derive(Serialize, Deserialize)]
struct Identity {
    uuid: String,
}

/// Result of listing the snapshots of a repository.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Snapshots that can be read, ordered by start time.
    pub infos: Vec<Info>,
    /// Why the other snapshots cannot be read, each naming its file.
    pub unreadable: Vec<String>,
}

/// Number and size in bytes of the blobs that a clean-up removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Swept {
    pub blobs: u64,
    pub bytes: u64,
}

/// A repository's directory on disk.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// Name of the repository, for messages.
    name: String,
    root: PathBuf,
}

/// Exclusive lock for changing the repository, also against other processes; held until dropped.
#[derive(Debug)]
pub(super) struct Exclusive {
    _lock: File,
    /// Whether an earlier change was interrupted.
    pub crashed: bool,
}

impl Layout {
    /// Layout of a repository in a directory, which need not exist.
    pub fn new(name: &str, root: PathBuf) -> Self {
        Self { name: name.to_owned(), root }
    }

    /// Paths of the folders of a repository in `root`.
    pub fn folders(root: &Path) -> [PathBuf; 3] {
        FOLDERS.map(|folder| root.join(folder))
    }

    fn unusable(&self, file: &str, problem: Unusable) -> EngineError {
        match problem {
            Unusable::Stopped(stopped) => stopped.into(),
            problem => errors::repository(&self.name, &self.sentence(file, &problem)),
        }
    }

    fn sentence(&self, file: &str, problem: &Unusable) -> String {
        match problem {
            Unusable::Io(error) => {
                tracing::warn!(repository = self.name, root = %self.root.display(), file, %error, "a file of a repository cannot be read");
                format!("[{file}] cannot be read: {}", io_reason(error))
            }
            Unusable::Newer(format) => format!(
                "[{file}] has format version {format}, this version of the server reads up to {FORMAT}: it was written by \
                 a newer one"
            ),
            Unusable::Damaged(detail) => format!("[{file}] is damaged: {detail}"),
            Unusable::Stopped(_) => format!("[{file}] was not read: {}", problem.reason()),
        }
    }

    fn failed(
        &self,
        action: &'static str,
        file: &str,
        error: &(dyn std::error::Error + 'static),
    ) -> EngineError {
        tracing::warn!(repository = self.name, root = %self.root.display(), file, %error, action, "a repository fails");
        errors::repository(&self.name, &format!("[{file}] cannot be {action}: {}", io_reason(error)))
    }

    /// Uuid of the repository; `None` if there is no repository at the location.
    ///
    /// # Errors
    /// When `repository.json` cannot be read, is damaged or has a newer format.
    pub fn identity(&self) -> Result<Option<String>, EngineError> {
        self.check_places()?;
        match lines::read(&self.root.join(IDENTITY), false).and_then(|bytes| read_line::<Identity>(&bytes)) {
            Ok(identity) => Ok(Some(identity.uuid)),
            Err(Unusable::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(self.unusable(IDENTITY, problem)),
        }
    }

    /// Whether the folder of snapshots exists.
    pub fn has_snapshots(&self) -> bool {
        self.root.join(SNAPSHOTS).is_dir()
    }

    /// Name of the file with the repository's uuid, and what is wrong with it; `None` when it is intact.
    ///
    /// # Errors
    /// When a file or folder of the repository is a symbolic link or of the wrong kind.
    pub fn check_identity(&self) -> Result<Option<(String, String)>, EngineError> {
        self.check_places()?;
        let read = lines::read(&self.root.join(IDENTITY), false);
        let problem = match read.and_then(|bytes| read_line::<Identity>(&bytes)) {
            Ok(_) => return Ok(None),
            Err(Unusable::Io(error)) if error.kind() == io::ErrorKind::NotFound => "it is missing".to_owned(),
            Err(problem) => problem.reason(),
        };
        Ok(Some((IDENTITY.to_owned(), problem)))
    }

    /// Reads the file of a snapshot. Returns its name, what listings show, as far as it can be read, and what
    /// a restore needs, or else the reason why that cannot be read, or `None` if the file does not exist.
    pub fn read_snapshot(&self, uuid: &str) -> (String, Option<Info>, Result<Content, Option<String>>) {
        let file = file_of(uuid);
        let bytes = match lines::read(&self.root.join(&file), false) {
            Ok(bytes) => bytes,
            Err(Unusable::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return (file, None, Err(None));
            }
            Err(problem) => return (file, None, Err(Some(problem.reason()))),
        };
        let info = read_line::<Info>(&bytes).ok().filter(|info| info.uuid == uuid);
        let content = match parse(&bytes) {
            Ok(_) if info.is_none() => Err("it names another snapshot".to_owned()),
            Ok((_, content)) => {
                let wrong = content.files().find(|file| !may_be_named(file)).map(|file| file.name.clone());
                wrong.map_or(Ok(content), |name| Err(format!("a file cannot be named [{name}]")))
            }
            Err(problem) => Err(problem.reason()),
        };
        (file, info, content.map_err(Some))
    }

    /// Whether the directory contains a repository, usable or not.
    pub fn exists(&self) -> bool {
        self.root.join(IDENTITY).symlink_metadata().is_ok()
    }

    /// Checks that no file or folder of the repository is a symbolic link or of the wrong kind.
    ///
    /// # Errors
    /// `repository_exception` that names the file or folder.
    fn check_places(&self) -> Result<(), EngineError> {
        FOLDERS.iter().chain(&FILES).try_for_each(|name| self.check_place(name))
    }

    /// Checks that a name in the repository, if it exists, is a folder or a regular file, as expected, and
    /// not a link.
    ///
    /// # Errors
    /// As [`Layout::check_places`].
    fn check_place(&self, name: &str) -> Result<(), EngineError> {
        let Ok(metadata) = self.root.join(name).symlink_metadata() else { return Ok(()) };
        let problem = match () {
            () if metadata.is_symlink() => "is a symbolic link, which a repository may not have",
            () if FILES.contains(&name) && !metadata.is_file() => "is not a regular file",
            () if FOLDERS.contains(&name) && !metadata.is_dir() => "is not a folder",
            () => return Ok(()),
        };
        Err(errors::repository(&self.name, &format!("[{name}] {problem}")))
    }

    /// Creates missing folders, and the uuid of a new repository; returns its uuid.
    ///
    /// # Errors
    /// As [`Layout::identity`]; when the directory cannot be written.
    pub fn create(&self) -> Result<String, EngineError> {
        self.check_places()?;
        for folder in FOLDERS {
            durable::create_dir_all(&self.root.join(folder))
                .map_err(|error| self.failed("made", folder, &error))?;
        }
        if let Some(parent) = self.root.parent() {
            durable::sync_dir(parent).map_err(|error| self.failed("made", "..", &error))?;
        }
        if let Some(uuid) = self.identity()? {
            return Ok(uuid);
        }
        let uuid = sparrow_catalog::new_uuid();
        let line = written(&Identity { uuid: uuid.clone() })?;
        durable::atomic_write(&self.root.join(IDENTITY), line.as_bytes())
            .map_err(|error| self.failed("written", IDENTITY, &error))?;
        Ok(uuid)
    }

    /// Verifies access to the repository by writing, reading and removing a file; if not `writable`, by
    /// listing the directory.
    ///
    /// # Errors
    /// `repository_verification_exception`; `repository_exception` as [`Layout::check_places`].
    pub fn verify(&self, writable: bool) -> Result<(), EngineError> {
        self.check_places()?;
        let failed = |error: &(dyn std::error::Error + 'static)| {
            tracing::warn!(repository = self.name, root = %self.root.display(), %error, "verification failed");
            errors::not_verified(&self.name, "location is not accessible")
        };
        if !writable {
            return fs::read_dir(&self.root).map(|_| ()).map_err(|error| failed(&error));
        }
        let token = sparrow_catalog::new_uuid();
        let path = self.root.join(TEMPORARY).join(format!("verify-{token}"));
        durable::create_dir_all(&self.root.join(TEMPORARY)).map_err(|error| failed(&error))?;
        let written = durable::atomic_write(&path, token.as_bytes()).map_err(|error| failed(&error));
        let read = written.and_then(|()| fs::read(&path).map_err(|error| failed(&error)));
        let removed = durable::remove_file(&path).map_err(|error| failed(&error));
        match read? == token.as_bytes() {
            true => removed,
            false => Err(failed(&io::Error::other("what was written is not what is read"))),
        }
    }

    /// Locks the repository for changes, marks a change as unfinished, and removes temporary files.
    ///
    /// # Errors
    /// When another process is changing the repository, or it cannot be written.
    pub fn begin(&self) -> Result<Exclusive, EngineError> {
        self.create()?;
        let lock = self.lock()?;
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

    /// Locks the repository against other processes until the returned file is closed.
    fn lock(&self) -> Result<File, EngineError> {
        let lock = File::open_or_create(self.root.join(LOCK))
            .map_err(|error| self.failed("opened", LOCK, &error))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                errors::repository(&self.name, "another process is changing this repository")
            }
            TryLockError::Error(error) => self.failed("locked", LOCK, &error),
        })?;
        Ok(lock)
    }

    /// Marks a change as complete: every blob belongs to a snapshot.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn end(&self, _held: &Exclusive) -> Result<(), EngineError> {
        durable::remove_file(&self.root.join(UNFINISHED))
            .map_err(|error| self.failed("removed", UNFINISHED, &error))
    }

    /// Lists the snapshots. One that cannot be read does not hide the others.
    ///
    /// # Errors
    /// When the folder of snapshots cannot be listed, or the request must stop.
    pub fn list(&self) -> Result<Listing, EngineError> {
        self.identity()?;
        let mut listing = Listing::default();
        for uuid in self.uuids()? {
            // The second line can be long, and says nothing that is shown.
            let first = lines::read(&self.root.join(file_of(&uuid)), true);
            match first.and_then(|bytes| read_line::<Info>(&bytes)) {
                Ok(info) if info.uuid == uuid => listing.infos.push(info),
                Ok(_) => listing.unreadable.push(format!("[{}] names another snapshot", file_of(&uuid))),
                // It was deleted meanwhile.
                Err(Unusable::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(Unusable::Stopped(stopped)) => return Err(stopped.into()),
                Err(problem) => listing.unreadable.push(self.sentence(&file_of(&uuid), &problem)),
            }
        }
        listing.infos.sort_by(|a, b| (a.start, &a.snapshot).cmp(&(b.start, &b.snapshot)));
        Ok(listing)
    }

    /// Reads what a restore needs of a snapshot.
    ///
    /// # Errors
    /// When the snapshot's file cannot be read, is damaged or has a newer format.
    pub fn content(&self, uuid: &str) -> Result<Content, EngineError> {
        let unusable = |problem| self.unusable(&file_of(uuid), problem);
        let bytes = lines::read(&self.root.join(file_of(uuid)), false).map_err(unusable)?;
        let (_, content) = parse(&bytes).map_err(unusable)?;
        for file in content.files() {
            if !may_be_named(file) {
                let problem = Unusable::Damaged(format!("a file cannot be named [{}]", file.name));
                return Err(self.unusable(&file_of(uuid), problem));
            }
        }
        Ok(content)
    }

    /// Writes the file of a snapshot, whose blobs must be durable, and reads it back to check it.
    ///
    /// # Errors
    /// When the file cannot be written or read back; it is removed then.
    pub fn put_snapshot(&self, _held: &Exclusive, info: &Info, content: &Content) -> Result<(), EngineError> {
        let file = file_of(&info.uuid);
        let first = written(info)?;
        let short = (first.len() as u64) < lines::MOST_FIRST;
        let lines = first + &written(content)?;
        if !short || lines.len() as u64 > lines::MOST {
            let problem = "it would be longer than what is read again: take a snapshot of fewer indices";
            return Err(errors::repository(&self.name, &format!("[{file}] cannot be written: {problem}")));
        }
        // This comes first: a client that lists the repository meanwhile must not see a snapshot that cannot be restored.
        parse(lines.as_bytes()).map_err(|problem| self.unusable(&file, problem))?;
        let path = self.root.join(&file);
        if let Err(error) = durable::atomic_write(&path, lines.as_bytes()) {
            // It may have its name already.
            let _ = durable::remove_file(&path);
            return Err(self.failed("written", &file, &error));
        }
        let problem = match lines::read(&path, false) {
            Ok(bytes) if bytes == lines.as_bytes() => return Ok(()),
            Ok(_) => Unusable::Damaged("what is read is not what was written".to_owned()),
            Err(problem) => problem,
        };
        if let Err(error) = durable::remove_file(&path) {
            tracing::warn!(repository = self.name, file, %error, "an unreadable snapshot cannot be removed");
        }
        Err(self.unusable(&file, problem))
    }

    /// Removes the file of a snapshot.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove_snapshot(&self, _held: &Exclusive, uuid: &str) -> Result<(), EngineError> {
        let file = file_of(uuid);
        durable::remove_file(&self.root.join(&file)).map_err(|error| self.failed("removed", &file, &error))
    }

    pub fn uuids(&self) -> Result<Vec<String>, EngineError> {
        let names = durable::list_dir(&self.root.join(SNAPSHOTS))
            .map_err(|error| self.failed("listed", SNAPSHOTS, &error))?;
        let uuids = names.iter().filter_map(|name| name.strip_suffix(EXTENSION));
        Ok(uuids.filter(|uuid| is_uuid(uuid)).map(str::to_owned).collect())
    }
}

/// Parses both lines of the file of a snapshot.
fn parse(bytes: &[u8]) -> Result<(Info, Content), Unusable> {
    // What the first line says holds for the second: a newer version may mean something else by it.
    let info = read_line(bytes)?;
    let second = bytes.iter().position(|byte| *byte == b'\n').map_or(&[][..], |at| &bytes[at + 1..]);
    Ok((info, read_line(second)?))
}

/// Whether the hash and the name of a file entry are well-formed.
fn may_be_named(file: &FileEntry) -> bool {
    is_hash(&file.sha256) && is_file_name(&file.name)
}

fn file_of(uuid: &str) -> String {
    format!("{SNAPSHOTS}/{uuid}{EXTENSION}")
}

fn is_uuid(text: &str) -> bool {
    text.len() == 22 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a name is safe for a file in the folder of an index or model, as a repository may come from
/// anywhere: 1 to 100 ASCII letters, digits, `.`, `-` and `_`.
fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=100).contains(&name.len()) && name.bytes().all(plain) && !matches!(name, "." | "..")
}

#[cfg(test)]
mod tests;
