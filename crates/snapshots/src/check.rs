//! Checks a repository: which of its files are damaged or missing, and which snapshots need them.
//!
//! Nothing is written and nothing is locked, so a server may use the repository meanwhile. Findings about
//! snapshots that were deleted during the check are dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::layout::Layout;
use super::layout::blobs::{BlobState, blob_name};
use super::manifest::{Content, Info};
use sparrow_catalog::Metadata;
use sparrow_models::Models;
use sparrow_request::error::EngineError;

/// Result of checking all files of a snapshot repository, as `sparrow check --repository` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct RepositoryReport {
    /// Path of the repository's directory.
    pub repository: String,
    /// Snapshots, ordered by start time; those whose file cannot be read are missing.
    pub snapshots: Vec<CheckedSnapshot>,
    /// Number of blobs that were read completely and match their hash; `bytes` is their total size.
    pub blobs: u64,
    pub bytes: u64,
    /// Number of blobs that no snapshot uses; the next deletion or clean-up removes them.
    pub unneeded: u64,
    /// Damaged and missing files, by path; empty if there are none.
    pub problems: Vec<RepositoryProblem>,
}

/// A snapshot of a checked repository.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedSnapshot {
    pub snapshot: String,
    pub uuid: String,
    /// `SUCCESS`, or `PARTIAL` if some indices could not be read when the snapshot was made.
    pub state: String,
    /// Whether restoring the whole snapshot would fail.
    pub damaged: bool,
}

/// A file of a repository that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepositoryProblem {
    /// Path of the file, relative to the repository.
    pub file: String,
    pub reason: String,
    /// Names of the snapshots that cannot be restored completely without the file. Empty if no snapshot uses
    /// it, or if it belongs to a snapshot whose name cannot be read.
    pub snapshots: Vec<String>,
    /// Parts of those snapshots that the file belongs to: `index [articles]`, `model [e5]`.
    pub parts: Vec<String>,
}

/// Snapshots, and parts of them, that use a blob.
#[derive(Default)]
struct Users {
    /// Uuids of the snapshots that use the blob.
    snapshots: BTreeSet<String>,
    parts: BTreeSet<String>,
    lengths: BTreeSet<u64>,
}

/// Checks a repository by reading every file and comparing it with its hash.
///
/// # Errors
/// When the directory is not a repository, contains symbolic links, or cannot be listed.
pub fn check_repository(path: &Path) -> Result<RepositoryReport, EngineError> {
    let name = path.display().to_string();
    let layout = Layout::new(&name, path.to_path_buf());
    if !layout.exists() && !layout.has_snapshots() {
        let reason =
            format!("[{name}] is not a snapshot repository: it has neither repository.json nor snapshots");
        return Err(EngineError::illegal_argument(reason));
    }
    let mut check =
        Check { layout: &layout, problems: Vec::new(), snapshots: Vec::new(), blobs: 0, bytes: 0 };
    let identity = layout.check_identity()?;
    let mut users = BTreeMap::new();
    for uuid in layout.uuids()? {
        check.snapshot(&uuid, &mut users);
    }
    if let Some((file, reason)) = identity {
        // A server refuses all of a repository that is damaged there. Where the file is missing it makes another.
        let all = match layout.exists() {
            true => check.snapshots.iter().map(|(info, _)| info.uuid.clone()).collect(),
            false => BTreeSet::new(),
        };
        check.found(file, reason, &Users { snapshots: all, ..Users::default() });
    }
    let unneeded = check.all_blobs(&mut users)?;
    check.report(name, unneeded)
}

struct Check<'a> {
    layout: &'a Layout,
    /// Problems found so far, with the uuids of snapshots instead of their names.
    problems: Vec<RepositoryProblem>,
    /// Snapshots found so far, and whether each is damaged.
    snapshots: Vec<(Info, bool)>,
    blobs: u64,
    bytes: u64,
}

impl Check<'_> {
    fn found(&mut self, file: String, reason: String, users: &Users) {
        for (info, damaged) in &mut self.snapshots {
            *damaged |= users.snapshots.contains(&info.uuid);
        }
        self.problems.push(RepositoryProblem {
            file,
            reason,
            snapshots: users.snapshots.iter().cloned().collect(),
            parts: users.parts.iter().cloned().collect(),
        });
    }

    /// Reads the file of a snapshot, and adds the blobs that it needs to `users`.
    fn snapshot(&mut self, uuid: &str, users: &mut BTreeMap<String, Users>) {
        let (file, info, content) = self.layout.read_snapshot(uuid);
        let owner = Users { snapshots: BTreeSet::from([uuid.to_owned()]), ..Users::default() };
        if let Some(info) = info {
            self.snapshots.push((info, false));
        }
        let content = match content {
            Ok(content) => content,
            // Deleted since it was listed.
            Err(None) => return,
            Err(Some(reason)) => return self.found(file, reason, &owner),
        };
        for reason in unusable(&content) {
            self.found(file.clone(), reason, &owner);
        }
        let indices = content.indices.iter().map(|index| (format!("index [{}]", index.name), &index.files));
        let models = content.models.iter().map(|model| (format!("model [{}]", model.id), &model.files));
        for (part, files) in indices.chain(models) {
            for file in files {
                let users = users.entry(file.sha256.clone()).or_default();
                users.snapshots.insert(uuid.to_owned());
                users.parts.insert(part.clone());
                users.lengths.insert(file.length);
            }
        }
    }

    /// Reads all blobs, and finds those that are needed but missing. Returns the number of blobs that no
    /// snapshot uses.
    fn all_blobs(&mut self, users: &mut BTreeMap<String, Users>) -> Result<u64, EngineError> {
        let mut unneeded = 0;
        for sha256 in self.layout.blobs()? {
            let of = users.remove(&sha256);
            unneeded += u64::from(of.is_none());
            let of = of.unwrap_or_default();
            match self.layout.state_of(&sha256) {
                BlobState::Whole(length) => {
                    self.blobs += 1;
                    self.bytes += length;
                    if let Some(expected) = of.lengths.iter().find(|expected| **expected != length) {
                        let reason = format!("it has {length} bytes, and a snapshot says {expected}");
                        self.found(blob_name(&sha256), reason, &of);
                    }
                }
                BlobState::Damaged(reason) => self.found(blob_name(&sha256), reason, &of),
                // Removed since it was listed.
                BlobState::Missing if of.snapshots.is_empty() => unneeded -= 1,
                BlobState::Missing => _ = users.insert(sha256, of),
            }
        }
        for (sha256, of) in std::mem::take(users) {
            let reason = match self.layout.is_set_aside(&sha256) {
                true => "it is missing: a restore found it damaged and renamed it",
                false => "it is missing",
            };
            self.found(blob_name(&sha256), reason.to_owned(), &of);
        }
        Ok(unneeded)
    }

    fn report(mut self, repository: String, unneeded: u64) -> Result<RepositoryReport, EngineError> {
        // What a deletion took away meanwhile was needed by what it deleted.
        let left: BTreeSet<String> = self.layout.uuids()?.into_iter().collect();
        self.snapshots.retain(|(info, _)| left.contains(&info.uuid));
        self.problems.retain_mut(|problem| {
            let needed = !problem.snapshots.is_empty();
            problem.snapshots.retain(|uuid| left.contains(uuid));
            !needed || !problem.snapshots.is_empty()
        });
        for problem in &mut self.problems {
            let name = |uuid: &String| {
                let of = self.snapshots.iter().find(|(info, _)| info.uuid == *uuid);
                of.map(|(info, _)| info.snapshot.clone())
            };
            problem.snapshots = problem.snapshots.iter().filter_map(name).collect();
            problem.snapshots.sort();
        }
        self.problems.sort_by(|a, b| a.file.cmp(&b.file));
        self.snapshots.sort_by(|(a, _), (b, _)| (a.start, &a.snapshot).cmp(&(b.start, &b.snapshot)));
        let shown = |(info, damaged): (Info, bool)| CheckedSnapshot {
            state: info.state().to_owned(),
            snapshot: info.snapshot,
            uuid: info.uuid,
            damaged,
        };
        Ok(RepositoryReport {
            repository,
            snapshots: self.snapshots.into_iter().map(shown).collect(),
            blobs: self.blobs,
            bytes: self.bytes,
            unneeded,
            problems: self.problems,
        })
    }
}

/// Reasons, found without reading blobs, why the whole snapshot could not be restored; empty if there are
/// none.
fn unusable(content: &Content) -> Vec<String> {
    let mut problems = Vec::new();
    for index in &content.indices {
        if let Err(error) = Metadata::from_json(&index.metadata) {
            problems.push(format!("index [{}] cannot be used: {}", index.name, error.reason()));
        }
    }
    if let Some(Err(error)) = content.global.as_ref().map(super::manifest::GlobalState::check) {
        problems.push(format!("its global state cannot be used: {}", error.reason()));
    }
    for model in &content.models {
        if let Err(error) = Models::check_upload(&model.id, &model.config) {
            problems.push(format!("model [{}] cannot be used: {}", model.id, error.reason()));
        }
    }
    problems
}
