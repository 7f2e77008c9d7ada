//! Checking a data directory that no server has open, or a snapshot repository: which files are damaged, and what that affects.
//!
//! Nothing is opened for use and nothing is changed. [`repair`] builds another directory from what can be kept.

mod repair;

use std::path::Path;

use serde::Serialize;
use sparrow_tantivy_index::{IndexError, SparrowIndex};
use sparrow_write_ahead_log::{DamagedFile, DataDir, StorageError, salvage};

pub use self::repair::{Repair, RepairedIndex, repair};
use sparrow_catalog::{METADATA_PREFIX, Metadata, check_log, claim};
use sparrow_request::error::EngineError;
pub use sparrow_snapshots::{CheckedSnapshot, RepositoryProblem, RepositoryReport, check_repository};

/// The state of all files of a data directory that no server has open, as `sparrow check` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Path of the data directory.
    pub data: String,
    pub indices: Vec<CheckedIndex>,
    /// Damaged files: those of stores first, then of models, then of indices. Empty when everything is whole.
    pub problems: Vec<DamagedFile>,
}

/// An index that a checked data directory holds, and whether any of its files is damaged.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedIndex {
    /// Name of the index, or its uuid where the name cannot be read.
    pub name: String,
    pub uuid: String,
    pub damaged: bool,
}

/// Reads every file of a data directory and compares it with its checksum.
///
/// # Errors
/// When a process has the directory open, or the path is not a data directory.
pub fn check(data: &Path) -> Result<Report, EngineError> {
    inspect(&DataDir::inspect(data)?)
}

/// Compares the stores, the models, and the segments and logs of the indices of a data directory with their checksums.
///
/// # Errors
/// When a folder cannot be listed; a file that cannot be read is a problem in the report.
fn inspect(data: &DataDir) -> Result<Report, EngineError> {
    let root = data.path();
    let mut report = Report { data: root.display().to_string(), indices: Vec::new(), problems: Vec::new() };
    let stores = data.list("")?;
    for store in stores.iter().filter(|store| !store.starts_with(METADATA_PREFIX)) {
        if let Err(error) = data.read_json(store) {
            report.problems.push(problem(&error.into(), root, &format!("the store [{store}]")));
        }
    }
    for model in sparrow_models::damages(data) {
        report.problems.push(model);
    }
    let mut misplaced = Vec::new();
    for store in stores.iter().filter(|store| store.starts_with(METADATA_PREFIX)) {
        let uuid = store[METADATA_PREFIX.len()..].to_owned();
        let (name, problems) = match Metadata::load(data, store) {
            Ok(Some(metadata)) if metadata.uuid != uuid => {
                let reason = format!("it has the metadata of the index with uuid [{}]", metadata.uuid);
                misplaced.push(metadata.uuid);
                let affected = format!("index [{}]", metadata.name);
                (metadata.name, vec![DamagedFile { file: format!("store/{store}.json"), reason, affected }])
            }
            Ok(Some(metadata)) => {
                let affected = format!("index [{}]", metadata.name);
                (metadata.name.clone(), of_index(data, &metadata, &affected))
            }
            Ok(None) => continue,
            Err(error) => {
                let names = Metadata::names_in_damaged(data, store);
                let name = names.into_iter().next().unwrap_or_else(|| uuid.clone());
                let affected = format!("index [{name}]");
                (name, vec![problem(&error, root, &affected)])
            }
        };
        report.indices.push(CheckedIndex { name, uuid, damaged: !problems.is_empty() });
        report.problems.extend(problems);
    }
    let is_known = |uuid: &str| {
        report.indices.iter().any(|index| index.uuid == uuid) || misplaced.iter().any(|other| other == uuid)
    };
    for uuid in claim::orphans(data, &is_known)?.into_iter().filter(|uuid| claim::is_marked(data, uuid)) {
        let file = format!("store/{METADATA_PREFIX}{uuid}.json");
        let reason = format!("it is missing, and [indices/{uuid}] holds an index");
        report.problems.push(DamagedFile { file, reason, affected: format!("index [{uuid}]") });
        report.indices.push(CheckedIndex { name: uuid.clone(), uuid, damaged: true });
    }
    Ok(report)
}

/// The damaged files among the segments and the log of an index; `affected` says in words what depends on them.
fn of_index(data: &DataDir, metadata: &Metadata, affected: &str) -> Vec<DamagedFile> {
    let root = data.path();
    let folder = data.index_dir(&metadata.uuid).join(&metadata.folder);
    let mut problems = match SparrowIndex::damages(&folder) {
        Ok(damages) => damages
            .into_iter()
            .map(|damage| DamagedFile {
                file: below(root, &folder.join(damage.file)),
                reason: damage.reason,
                affected: affected.to_owned(),
            })
            .collect(),
        Err(error) => vec![problem(&error.into(), root, affected)],
    };
    if let Err(error) = check_log(&data.index_dir(&metadata.uuid)) {
        problems.push(problem(&error, root, affected));
    }
    let of_log = match salvage(&data.index_dir(&metadata.uuid).join("wal")) {
        Ok(log) => log.problems,
        Err(error) => vec![error],
    };
    problems.extend(of_log.into_iter().map(|error| problem(&error.into(), root, affected)));
    problems
}

/// The damaged file that an error names, and the reason; an empty path where it names none.
fn problem(error: &EngineError, root: &Path, affected: &str) -> DamagedFile {
    let newer = |found: u64, supported: u64| {
        format!("it has format version {found}, this version reads up to {supported}")
    };
    let (path, reason) = match error {
        EngineError::Index(IndexError::Corrupt { path, reason }) => (Some(path), reason.clone()),
        EngineError::Index(IndexError::Io { path, source }) => (Some(path), source.to_string()),
        EngineError::Index(IndexError::NewerFormat { path, found, supported }) => {
            (Some(path), newer(*found, *supported))
        }
        EngineError::Storage(StorageError::Corrupt { path, detail }) => (Some(path), detail.clone()),
        EngineError::Storage(StorageError::Io { path, source, .. }) => (Some(path), source.to_string()),
        EngineError::Storage(StorageError::WalCorrupt { path, offset }) => {
            (Some(path), format!("it is damaged at byte {offset}, where writes had been acknowledged"))
        }
        EngineError::Storage(StorageError::NewerFormat { path, found, supported }) => {
            (Some(path), newer(u64::from(*found), u64::from(*supported)))
        }
        other => (None, other.to_string()),
    };
    let file = path.map(|path| below(root, path)).unwrap_or_default();
    DamagedFile { file, reason, affected: affected.to_owned() }
}

/// `path` relative to the data directory, as text.
fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
