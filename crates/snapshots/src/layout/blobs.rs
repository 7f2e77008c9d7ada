//! Blobs of a repository: contents of files, each stored once.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use sparrow_file_system::{self as fs, File};
use sparrow_write_ahead_log::durable;
use sparrow_write_ahead_log::io_reason;

use super::lines::hex;
use super::{BLOBS, Exclusive, Layout, Swept, TEMPORARY, errors, is_hash};
use crate::manifest::FileEntry;
use crate::pace::Pace;
use sparrow_request::error::EngineError;

/// Buffer size for reading, hashing and writing, in bytes.
const CHUNK: usize = 256 << 10;
/// File name extension of a blob that a restore found damaged.
const DAMAGED: &str = "damaged";

/// Result of comparing a blob with the hash in its name.
pub(crate) enum BlobState {
    /// The blob is intact; its length in bytes.
    Whole(u64),
    /// The blob is damaged; the reason as text.
    Damaged(String),
    Missing,
}

impl Layout {
    /// Hashes of all blobs, sorted.
    ///
    /// # Errors
    /// When a folder cannot be listed, or is not a folder.
    pub fn blobs(&self) -> Result<Vec<String>, EngineError> {
        let mut hashes = Vec::new();
        self.each_blob_folder(|folder, names| {
            hashes.extend(names.into_iter().filter(|name| is_hash(name) && name.starts_with(folder)));
            Ok(())
        })?;
        Ok(hashes)
    }

    /// Calls `look` for each folder of blobs, in order, with its name and the names of its files.
    ///
    /// # Errors
    /// When a folder cannot be listed or is not a folder; errors of `look`.
    fn each_blob_folder(
        &self,
        mut look: impl FnMut(&str, Vec<String>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let list =
            |folder: &Path| durable::list_dir(folder).map_err(|error| self.failed("listed", BLOBS, &error));
        let blobs = self.root.join(BLOBS);
        for name in list(&blobs)? {
            self.check_place(&format!("{BLOBS}/{name}"))?;
            let folder = blobs.join(&name);
            if folder.is_dir() {
                look(&name, list(&folder)?)?;
            }
        }
        Ok(())
    }

    /// Reads a blob and compares its content with its hash.
    pub fn state_of(&self, sha256: &str) -> BlobState {
        let path = self.blob(sha256);
        let unread = |error: io::Error| format!("it cannot be read: {}", io_reason(&error));
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return BlobState::Missing,
            Err(error) => return BlobState::Damaged(unread(error)),
            Ok(found) if !found.is_file() => {
                return BlobState::Damaged("it is not a regular file".to_owned());
            }
            Ok(_) => {}
        }
        match hashed(&path) {
            Ok((found, length)) if found == sha256 => BlobState::Whole(length),
            Ok((_, length)) => {
                BlobState::Damaged(format!("its content, {length} bytes, is not what its name says"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => BlobState::Missing,
            Err(error) => BlobState::Damaged(unread(error)),
        }
    }

    /// Whether a restore found the blob damaged and renamed it.
    pub fn is_set_aside(&self, sha256: &str) -> bool {
        aside(&self.blob(sha256)).exists()
    }

    /// Removes the blobs that no snapshot uses.
    ///
    /// # Errors
    /// When a snapshot cannot be read, as it may need any blob, or a blob cannot be removed.
    pub fn sweep(&self, _held: &Exclusive) -> Result<Swept, EngineError> {
        let mut used = HashSet::new();
        for uuid in self.uuids()? {
            used.extend(self.content(&uuid)?.files().map(|file| file.sha256.clone()));
        }
        let mut swept = Swept::default();
        self.each_blob_folder(|name, names| {
            let folder = self.root.join(BLOBS).join(name);
            for hash in names {
                let is_needed = match hash.strip_suffix(DAMAGED).and_then(|name| name.strip_suffix('.')) {
                    // Until there is a whole one again.
                    Some(of) => !is_hash(of) || used.contains(of) && !folder.join(of).exists(),
                    None => !is_hash(&hash) || used.contains(&hash),
                };
                if is_needed {
                    continue;
                }
                let path = folder.join(&hash);
                let bytes = fs::metadata(&path).map_or(0, |file| file.len());
                // Durable with the next change of the folder; what comes back after a crash is removed again.
                fs::remove_file(&path).map_err(|error| self.failed("removed", BLOBS, &error))?;
                swept.blobs += 1;
                swept.bytes += bytes;
            }
            Ok(())
        })?;
        Ok(swept)
    }

    /// Whether a blob of this hash and length exists. Its content is only checked when it is read.
    pub fn has_blob(&self, sha256: &str, length: u64) -> bool {
        fs::metadata(self.blob(sha256)).is_ok_and(|file| file.is_file() && file.len() == length)
    }

    /// Stores the content of a file as a blob, unless it exists; returns its hash, its length in bytes, and
    /// whether it was written. A damaged blob of this hash is replaced. Durable after [`Layout::sync_blobs`].
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
            EngineError::internal(format!("a file of an index cannot be read: {}", io_reason(&error)))
        };
        let sha256 = hash_of(&mut File::open(source).map_err(unread)?, pace, unread)?;
        let length = fs::metadata(source).map_err(unread)?.len();
        if self.has_blob(&sha256, length) {
            match self.is_whole(&sha256, pace) {
                Ok(true) => return Ok((sha256, length, false)),
                Err(EngineError::Cancelled) => return Err(EngineError::Cancelled),
                // What cannot be read now may be damaged as well.
                Ok(false) | Err(_) => tracing::warn!(
                    repository = self.name,
                    blob = blob_name(&sha256),
                    "a damaged blob of a repository is written again"
                ),
            }
        }
        let failed =
            |error: &(dyn std::error::Error + 'static)| self.failed("written", &blob_name(&sha256), error);
        let temporary = self.root.join(TEMPORARY).join(number.to_string());
        let result = File::open(source).map_err(unread).and_then(|mut from| {
            let mut to = File::create(&temporary).map_err(|error| failed(&error))?;
            let (copied, _) = copy(&mut from, &mut to, pace, unread, |error| failed(&error))?;
            if copied != sha256 {
                return Err(EngineError::internal("a file of an index changed while it was read"));
            }
            to.sync_all().map_err(|error| failed(&error))?;
            let blob = self.blob(&sha256);
            self.check_place(&format!("{BLOBS}/{}", sha256.get(..2).unwrap_or("00")))?;
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

    /// Makes blobs durable that [`Layout::put_blob`] has written.
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

    /// Copies a blob into a new file, durable on return (the caller must sync its directory).
    ///
    /// # Errors
    /// When the blob is damaged, naming the file and the snapshot; [`EngineError::Cancelled`].
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
                &format!("file [{}] cannot be written: {}", entry.name, io_reason(&error)),
            )
        };
        let path = self.blob(&entry.sha256);
        match path.metadata() {
            Ok(found) if !found.is_file() => return Err(refuse("is not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound && aside(&path).exists() => {
                return Err(refuse(
                    "is damaged and was set aside: the next snapshot of this file writes it again",
                ));
            }
            _ => {}
        }
        let mut from = File::open(path).map_err(unread)?;
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

    /// Renames a damaged blob, so that the next snapshot with the same content stores it again; returns
    /// whether it did. A blob that is intact, missing or unreadable stays, and so does any while another
    /// process changes the repository.
    ///
    /// # Errors
    /// When the blob cannot be read or the folder not written; [`EngineError::Cancelled`].
    pub fn set_aside_if_damaged(&self, entry: &FileEntry, pace: &Pace<'_>) -> Result<bool, EngineError> {
        self.check_places()?;
        self.check_place(&format!("{BLOBS}/{}", entry.sha256.get(..2).unwrap_or("00")))?;
        // Somebody may just have put a whole one in its place.
        let _lock = self.lock()?;
        let path = self.blob(&entry.sha256);
        // Only what was read and is wrong: what cannot be read today may be whole.
        if !path.metadata().is_ok_and(|file| file.is_file()) {
            return Ok(false);
        }
        // Whatever length the entry gives it: other snapshots may need it.
        if self.is_whole(&entry.sha256, pace)? {
            return Ok(false);
        }
        let failed = |error: &(dyn std::error::Error + 'static)| {
            self.failed("renamed", &blob_name(&entry.sha256), error)
        };
        fs::rename(&path, aside(&path)).map_err(|error| failed(&error))?;
        if let Some(folder) = path.parent() {
            durable::sync_dir(folder).map_err(|error| failed(&error))?;
        }
        Ok(true)
    }

    /// Whether the content of a blob matches the hash in its name.
    ///
    /// # Errors
    /// When it cannot be read; [`EngineError::Cancelled`].
    fn is_whole(&self, sha256: &str, pace: &Pace<'_>) -> Result<bool, EngineError> {
        let unread = |error: io::Error| self.failed("read", &blob_name(sha256), &error);
        let mut file = File::open(self.blob(sha256)).map_err(unread)?;
        Ok(hash_of(&mut file, pace, unread)? == sha256)
    }

    pub(super) fn blob(&self, sha256: &str) -> PathBuf {
        self.root.join(BLOBS).join(sha256.get(..2).unwrap_or("00")).join(sha256)
    }
}

pub(crate) fn blob_name(sha256: &str) -> String {
    format!("{BLOBS}/{}/{sha256}", sha256.get(..2).unwrap_or("00"))
}

/// SHA-256 and length in bytes of a file.
fn hashed(path: &Path) -> io::Result<(String, u64)> {
    let (mut file, mut hash, mut total) = (File::open(path)?, Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok((hex(&hash.finalize()), total)),
            length => {
                hash.update(&chunk[..length]);
                total += length as u64;
            }
        }
    }
}

/// Path to which a damaged blob is renamed.
fn aside(blob: &Path) -> PathBuf {
    blob.with_extension(DAMAGED)
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

/// Copies at a limited rate; returns the SHA-256 and the length in bytes.
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
