//! Snapshots: copies of indices and of global state, stored in repositories, which are directories.
//!
//! A snapshot is one file that names blobs by the hash of their content, so that content already in the
//! repository is not written again. It is written last: until then the repository is unchanged, and a
//! repeated request reuses the blobs that are there. Files of an index are hard-linked from its durable
//! commit, which takes no time and blocks nobody, and copied from the links.

mod api;
mod check;
mod clone;
mod counts;
mod create;
mod create_request;
mod creation;
mod deep;
mod errors;
mod failed;
mod features;
mod global;
mod keys;
mod layout;
mod listing;
mod location;
mod manifest;
mod names;
mod operations;
mod pace;
mod remove;
mod restore;
mod restore_request;
mod running;
mod service;
mod settings;
mod status;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use sparrow_write_ahead_log::{DataDir, durable};

pub use self::check::{CheckedSnapshot, RepositoryProblem, RepositoryReport, check_repository};
pub use self::counts::Counts;
use self::failed::FailedSnapshots;
use self::layout::Layout;
pub use self::listing::rows;
pub use self::manifest::INDEX_VERSION;
pub use self::operations::OPERATIONS;
use self::running::Running;
pub use self::service::SnapshotService;
use self::settings::Registered;
use sparrow_request::error::EngineError;
use sparrow_request::places;

/// Name of the store with the registered repositories.
const STORE: &str = "repositories";
/// Folder in the data directory for temporary links and files of snapshots and restores. Emptied when the
/// server starts.
const STAGING: &str = "staging";
/// Default folder of repositories, beside the data directory.
const FOLDER: &str = "snapshots";

/// Registered repositories, and the operations running on them.
pub struct Snapshots {
    data: Arc<DataDir>,
    /// Directory below which all repositories must be.
    root: PathBuf,
    registered: RwLock<Arc<BTreeMap<String, Registered>>>,
    /// Held while a repository is registered or unregistered.
    changing: Mutex<()>,
    running: Arc<Running>,
    failed: Arc<FailedSnapshots>,
    counts: Counts,
}

/// A registered repository with its resolved location.
#[derive(Debug, Clone)]
struct Repository {
    name: String,
    settings: Registered,
    path: PathBuf,
    layout: Layout,
}

impl Snapshots {
    /// Reads the registered repositories, and removes temporary files that a crash left in the data
    /// directory. Touches no repository.
    ///
    /// # Errors
    /// When the store cannot be read, or `root` is or is inside the data directory.
    pub fn open(data: Arc<DataDir>, root: Option<PathBuf>) -> Result<Self, EngineError> {
        let beside = || data.path().parent().unwrap_or(data.path()).join(FOLDER);
        let root = root.unwrap_or_else(beside);
        let root = std::path::absolute(&root)
            .map_err(|error| EngineError::internal(format!("the folder of repositories: {error}")))?;
        if places::real(&root).starts_with(places::real(data.path())) {
            return Err(EngineError::illegal_argument(format!(
                "the folder of snapshot repositories, {}, must not be the data directory or in it: a backup has to survive the loss \
                 of what it is a backup of",
                root.display()
            )));
        }
        let registered = match data.read_json(STORE)? {
            Some(stored) => serde_json::from_value(stored)
                .map_err(|error| EngineError::internal(format!("store [{STORE}]: {error}")))?,
            None => BTreeMap::new(),
        };
        sparrow_catalog::remove_folder(&data.path().join(STAGING));
        Ok(Self {
            failed: Arc::new(FailedSnapshots::open(data.clone())?),
            counts: Counts::default(),
            data,
            root,
            registered: RwLock::new(Arc::new(registered)),
            changing: Mutex::new(()),
            running: Arc::default(),
        })
    }

    /// Counts of created and restored snapshots.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn registered(&self) -> Arc<BTreeMap<String, Registered>> {
        self.registered.read().clone()
    }

    /// Name and type of each repository.
    pub fn repositories(&self) -> Vec<(String, String)> {
        self.registered().iter().map(|(name, it)| (name.clone(), it.kind.clone())).collect()
    }

    /// Looks a repository up by name.
    fn repository(&self, name: &str) -> Result<Repository, EngineError> {
        match self.registered().get(name) {
            Some(settings) => self.open_repository(name, settings.clone()),
            None => Err(errors::missing_repository(name)),
        }
    }

    fn open_repository(&self, name: &str, settings: Registered) -> Result<Repository, EngineError> {
        let path = location::resolve(name, &self.root, settings.location())?;
        Ok(Repository { name: name.to_owned(), settings, layout: Layout::new(name, path.clone()), path })
    }

    /// Checks that the repository is not inside the data directory or the directory of another repository,
    /// nor these inside it. Two repositories may be the same directory.
    ///
    /// # Errors
    /// `repository_exception` that names the other directory.
    fn check_apart(&self, repository: &Repository) -> Result<(), EngineError> {
        let location = repository.settings.location();
        let refuse = |problem: &str| {
            Err(errors::not_created(&repository.name, &format!("location [{location}] {problem}")))
        };
        let real = places::real(&repository.path);
        if places::overlap(&real, &places::real(self.data.path())) {
            return refuse("is the data directory, in it or around it");
        }
        for (name, settings) in self.registered().iter().filter(|(name, _)| **name != repository.name) {
            let Ok(path) = location::resolve(name, &self.root, settings.location()) else { continue };
            let other = places::real(&path);
            if other != real && places::overlap(&real, &other) {
                return refuse(&format!("is in or around that of another repository, [{name}]"));
            }
        }
        // Those that are registered with other servers, or not any more.
        let is_repository = |folder: &Path| Layout::new(&repository.name, folder.to_path_buf()).exists();
        let root = places::real(&self.root);
        let mut around = real.ancestors().skip(1).take_while(|folder| folder.starts_with(&root));
        if around.any(is_repository) || Layout::folders(&real).iter().any(|folder| is_repository(folder)) {
            return refuse("is in or around that of another repository");
        }
        Ok(())
    }

    /// Names of the repositories that an expression matches.
    fn select(&self, expression: &str) -> Result<Vec<String>, EngineError> {
        let registered = self.registered();
        let repositories: Vec<&str> = registered.keys().map(String::as_str).collect();
        let selected = names::select(expression, &repositories, errors::missing_repository)?;
        Ok(selected.into_iter().map(str::to_owned).collect())
    }

    /// Replaces the list of repositories, durably. The caller holds `changing`.
    fn replace(&self, next: BTreeMap<String, Registered>) -> Result<(), EngineError> {
        self.data.write_json(STORE, &json!(next))?;
        *self.registered.write() = Arc::new(next);
        Ok(())
    }

    /// Creates a temporary folder for links and files; it is removed when the guard is dropped.
    fn staging(&self) -> Result<Staging, EngineError> {
        let path = self.data.path().join(STAGING).join(sparrow_catalog::new_uuid());
        durable::create_dir_all(&path)?;
        Ok(Staging(path))
    }
}

impl Repository {
    fn check_writable(&self, action: &str) -> Result<(), EngineError> {
        if self.settings.is_readonly() {
            return Err(errors::repository(&self.name, &format!("cannot {action} in a readonly repository")));
        }
        Ok(())
    }
}

/// Guard of a temporary folder, which is removed when it is dropped.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        sparrow_catalog::remove_folder(&self.0);
    }
}

/// Parses a list of names, a comma-separated string or an array of strings, into a comma-separated string.
fn list_of(key: &str, value: &Value) -> Result<String, EngineError> {
    let refuse =
        || EngineError::illegal_argument(format!("malformed {key} section, should be an array of strings"));
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            Ok(items.ok_or_else(refuse)?.join(","))
        }
        _ => Err(refuse()),
    }
}

/// Parses a boolean of a request body.
fn switch(key: &str, value: &Value) -> Result<bool, EngineError> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::String(text) if matches!(text.as_str(), "true" | "false") => Ok(text == "true"),
        other => Err(EngineError::illegal_argument(format!(
            "Failed to parse value [{}] as only [true] or [false] are allowed. [{key}]",
            other.as_str().map_or_else(|| other.to_string(), str::to_owned)
        ))),
    }
}
