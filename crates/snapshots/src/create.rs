//! `PUT /_snapshot/{repository}/{snapshot}`: making a snapshot.
//!
//! ```text
//! flush and link each index ── take the global state ── (lock of the repository) copy what is new ── put the snapshot in place
//! ```
//! Linking takes no time, so a snapshot shows all indices as they were when it began, and everything that had been
//! acknowledged by then. Copying holds no lock that a search or a write needs.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde_json::json;
use sparrow_write_ahead_log::durable;

use super::create_request::SnapshotRequest;
use super::creation::Creation;
use super::layout::Exclusive;
use super::manifest::{Content, Figures, FileEntry, GlobalState, IndexContent, Info, ModelContent};
use super::pace::Pace;
use super::running::{CreationGuard, wait_for_lock};
use super::{Repository, errors, features, listing, names};
use crate::service::SnapshotService;
use sparrow_catalog::{IndexHandle, concrete_name, new_uuid, now_millis};
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Right};
use sparrow_tasks::{TaskContext, TaskSpec};

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] =
    &[Operation::new("create_snapshot", Action::CreateSnapshot, Lane::Long, create_snapshot)
        .about("Backs up indices.")
        .holds("SnapshotRequest", SnapshotRequest::shape)
        .takes(&["master_timeout wait_for_completion"])
        .unlisted()];

/// Error for a repository that has as many snapshots as it may hold.
pub(super) fn too_many(repository: &Repository) -> EngineError {
    let most = repository.settings.most_snapshots();
    errors::repository(
        &repository.name,
        &format!(
            "Cannot add another snapshot to this repository as it already contains [{most}] snapshots and is configured \
             to hold up to [{most}] snapshots only."
        ),
    )
}

/// Creates a snapshot in a task.
fn create_snapshot(
    service: &Arc<SnapshotService>,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", false)?;
    let repository_name = request.part("repository");
    let name = concrete_name(request.part("snapshot"))?;
    names::check_snapshot(repository_name, &name)?;
    let repository = service.snapshots.repository(repository_name)?;
    let wanted = SnapshotRequest::parse(&parse_object(body)?)?;
    if wanted.include_keys {
        features::check(request, "cluster:admin/snapshot/create")?;
    }
    repository.check_writable("create snapshot")?;
    let listing = repository.layout.list()?;
    if listing.infos.iter().any(|info| info.snapshot == name) {
        return Err(errors::name_in_use(
            repository_name,
            &name,
            "snapshot with the same name already exists",
        ));
    }
    if listing.infos.len() >= repository.settings.most_snapshots() {
        return Err(too_many(&repository));
    }
    let uuid = new_uuid();
    let label = format!("{name}/{uuid}");
    let (mut handles, mut failures) = (Vec::new(), BTreeMap::new());
    let names = service.indices.names();
    for index in names.index_names(&wanted.indices, &wanted.options, Right::unlimited())? {
        if let Some(handle) = names.indices.get(&index) {
            handles.push(handle.clone());
        } else if let Some(broken) = names.broken.get(&index) {
            failures.insert(index, broken.error().reason());
        }
    }
    if !failures.is_empty() && !wanted.partial {
        let names: Vec<&str> = failures.keys().map(String::as_str).collect();
        let problem = format!("Indices don't have primary shards [{}]", names.join(", "));
        return Err(errors::snapshot(repository_name, &label, &problem));
    }
    let mut indices: Vec<String> = handles.iter().map(|handle| handle.name.clone()).collect();
    indices.extend(failures.keys().cloned());
    indices.sort();
    let creation = Creation {
        repository: repository.name.clone(),
        location: repository.path.clone(),
        snapshot: name.clone(),
        uuid,
        indices,
        include_global_state: wanted.include_global_state,
        metadata: wanted.metadata.clone(),
        start: now_millis(),
        aborted: AtomicBool::new(false),
        total_files: AtomicU64::new(0),
        total_bytes: AtomicU64::new(0),
        done_files: AtomicU64::new(0),
        done_bytes: AtomicU64::new(0),
        done_indices: AtomicU64::new(0),
    };
    let guard = service.snapshots.running.begin(&service.snapshots.failed, creation)?;
    let spec = TaskSpec::new("cluster:admin/snapshot/create", format!("snapshot [{repository_name}:{name}]"))
        .cancellable()
        .of(request);
    let owner = service.clone();
    let (note, noted) = std::sync::mpsc::channel();
    let task = service.tasks.spawn(spec, move |context| {
        // The task is registered before the snapshot can be seen, so that a client that sees the snapshot finds its task.
        owner.snapshots.failed.begin(&guard.creation);
        let _ = note.send(());
        let job = Job { service: &owner, repository: &repository, guard: &guard, wanted: &wanted, context };
        let made = job.run(&handles, failures);
        note_end(&owner, &guard.creation, context, &label, &made);
        match made {
            Err(EngineError::Cancelled) if guard.creation.aborted.load(Relaxed) => {
                Err(errors::snapshot(&repository.name, &label, "Snapshot was aborted by deletion"))
            }
            made => made.map(|info| json!({"snapshot": listing::view(&repository.name, &info)})),
        }
    })?;
    // Once it is accepted, a crash leaves a snapshot that failed, and not nothing.
    let _ = noted.recv();
    match wait {
        true => Ok(Reply::ok(&task.wait(&|| cancel.is_cancelled())?)),
        false => Ok(Reply::ok(&json!({"accepted": true}))),
    }
}

/// Logs, counts and records the outcome of a snapshot, since perhaps nobody waits for it.
fn note_end(
    service: &SnapshotService,
    creation: &Creation,
    context: &TaskContext,
    label: &str,
    made: &Result<Info, EngineError>,
) {
    let repository = &creation.repository;
    service.snapshots.counts.snapshot(made.as_ref().map(|info| !info.failures.is_empty()));
    match made {
        Ok(info) => {
            for (index, reason) in &info.failures {
                tracing::warn!(
                    repository,
                    snapshot = label,
                    index,
                    reason,
                    "an index is missing in a snapshot"
                );
            }
            service.snapshots.failed.forget(creation);
        }
        Err(error) => {
            tracing::warn!(repository, snapshot = label, %error, "a snapshot was not made");
            match error {
                EngineError::Cancelled if creation.aborted.load(Relaxed) => {
                    service.snapshots.failed.forget(creation);
                }
                // The next start says so.
                EngineError::Cancelled if context.is_closing() => {}
                error => service.snapshots.failed.fail(creation, error.reason()),
            }
        }
    }
}

/// The creation of one snapshot.
struct Job<'a> {
    service: &'a SnapshotService,
    repository: &'a Repository,
    guard: &'a CreationGuard,
    wanted: &'a SnapshotRequest,
    context: &'a TaskContext,
}

/// An index whose files are linked into the staging folder.
struct Staged {
    content: IndexContent,
    files: Vec<(String, u64)>,
    start: u64,
}

impl Job<'_> {
    fn must_stop(&self) -> bool {
        self.context.is_cancelled() || self.guard.creation.aborted.load(Relaxed)
    }

    fn run(
        &self,
        handles: &[Arc<IndexHandle>],
        mut failures: BTreeMap<String, String>,
    ) -> Result<Info, EngineError> {
        let creation = &self.guard.creation;
        let staging = self.service.snapshots.staging()?;
        let mut staged = Vec::with_capacity(handles.len());
        for (number, handle) in handles.iter().enumerate() {
            if self.must_stop() {
                return Err(EngineError::Cancelled);
            }
            match self.stage(handle, &staging.0.join(number.to_string())) {
                Ok(index) => staged.push((number, index)),
                Err(error) if self.wanted.partial => {
                    failures.insert(handle.name.clone(), error.reason());
                }
                Err(error) => return Err(error),
            }
        }
        let global = self.wanted.include_global_state.then(|| GlobalState::of(self.service));
        let keys = match self.wanted.include_keys {
            true => features::keys(&self.service.data)?,
            false => None,
        };
        let models_folder = staging.0.join("models");
        let models = match self.wanted.include_models {
            true => self.service.models.link_uploads(&models_folder)?,
            false => Vec::new(),
        };
        for (_, index) in &staged {
            creation.add_total(index.files.len() as u64, index.files.iter().map(|(_, bytes)| bytes).sum());
        }

        let stop = || self.must_stop();
        let lock = self.service.snapshots.running.folder_lock(&self.repository.path);
        let _guard = wait_for_lock(&lock, &stop)?;
        let layout = &self.repository.layout;
        // Another one may have been faster.
        if layout.list()?.infos.iter().any(|info| info.snapshot == creation.snapshot) {
            let how = "snapshot with the same name already exists";
            return Err(errors::name_in_use(&self.repository.name, &creation.snapshot, how));
        }
        let held = layout.begin()?;
        let stored_files = self.known_files(&staged)?;
        let mut pace = Pace::new(self.repository.settings.snapshot_rate(), &stop);
        let mut copy = Copy {
            job: self,
            held: &held,
            known: &stored_files,
            pace: &mut pace,
            number: 0,
            new: Vec::new(),
        };
        let mut content = Content { global, keys, ..Content::default() };
        let mut figures = BTreeMap::new();
        for (number, index) in staged {
            let folder = staging.0.join(number.to_string());
            let (index, of_it) = copy.index(index, &folder)?;
            figures.insert(index.name.clone(), of_it);
            content.indices.push(index);
            creation.done_indices.fetch_add(1, Relaxed);
            durable::remove_dir_all(&folder)?;
        }
        for (number, model) in models.into_iter().enumerate() {
            let folder = models_folder.join(number.to_string());
            let files =
                model.files.iter().map(|name| copy.file(&folder, name, None)).collect::<Result<_, _>>()?;
            content.models.push(ModelContent { id: model.id, config: model.config, files });
        }
        // A blob that a change before this one wrote may be there and not durable, if that came to no end.
        match held.crashed {
            true => layout.sync_blobs(content.files().map(|file| &file.sha256))?,
            false => layout.sync_blobs(copy.new.iter())?,
        }
        if self.must_stop() {
            return Err(EngineError::Cancelled);
        }
        let info = Info {
            snapshot: creation.snapshot.clone(),
            uuid: creation.uuid.clone(),
            server: env!("CARGO_PKG_VERSION").to_owned(),
            include_global_state: creation.include_global_state,
            has_keys: content.keys.is_some(),
            metadata: creation.metadata.clone(),
            start: creation.start,
            end: now_millis().max(creation.start),
            indices: figures,
            failures,
        };
        layout.put_snapshot(&held, &info, &content)?;
        // It is there from here on.
        self.tidy(&held);
        Ok(info)
    }

    /// Links the files of an index's durable commit into `folder`, and reads its metadata.
    fn stage(&self, handle: &IndexHandle, folder: &Path) -> Result<Staged, EngineError> {
        let start = now_millis();
        // After the files: a mapping only widens, and one that is wider than segments suits them. But an upgrade that ended in
        // between makes other files of the same names, and a change of a model says what the documents in them have.
        let (files, metadata) = loop {
            let before = handle.metadata.read().clone();
            let files = handle.link_commit(folder)?;
            let metadata = handle.metadata.read().clone();
            if metadata.folder == before.folder && metadata.model_change == before.model_change {
                break (files, metadata);
            }
            durable::remove_dir_all(folder)?;
        };
        let aliases = self.service.indices.names().aliases_of(&handle.name);
        let aliases = aliases.iter().map(|(alias, spec)| (alias.clone(), spec.to_json())).collect();
        Ok(Staged {
            content: IndexContent {
                name: handle.name.clone(),
                uuid: handle.uuid.clone(),
                folder: metadata.folder.clone(),
                metadata: metadata.to_json(),
                aliases,
                files: Vec::new(),
            },
            files: files.into_iter().map(|file| (file.name, file.bytes)).collect(),
            start,
        })
    }

    /// Files that earlier snapshots stored of the same segment folders of the same indices, with their blobs.
    fn known_files(&self, staged: &[(usize, Staged)]) -> Result<StoredFiles, EngineError> {
        let layout = &self.repository.layout;
        let mut stored = StoredFiles::new();
        let mut missing: Vec<&str> = staged.iter().map(|(_, index)| index.content.uuid.as_str()).collect();
        for info in layout.list()?.infos.iter().rev() {
            if missing.is_empty() {
                break;
            }
            if !info.indices.keys().any(|name| staged.iter().any(|(_, it)| it.content.name == *name)) {
                continue;
            }
            // One that cannot be read is of no use here, and no reason not to make another.
            let Ok(content) = layout.content(&info.uuid) else { continue };
            for index in content.indices {
                if let Some(at) = missing.iter().position(|uuid| *uuid == index.uuid) {
                    missing.swap_remove(at);
                    let files = index.files.into_iter();
                    stored.insert(
                        (index.uuid, index.folder),
                        files.map(|file| (file.name.clone(), file)).collect(),
                    );
                }
            }
        }
        Ok(stored)
    }

    /// Marks the change as complete, and after a crash first removes blobs that no snapshot uses.
    fn tidy(&self, held: &Exclusive) {
        let layout = &self.repository.layout;
        let tidied = if held.crashed { layout.sweep(held).map(|_| ()) } else { Ok(()) };
        if let Err(error) = tidied.and_then(|()| layout.end(held)) {
            tracing::warn!(repository = self.repository.name, %error, "blobs that belong to nothing are left behind");
        }
    }
}

/// Files of earlier snapshots: uuid of the index and its segment folder → file name → entry.
type StoredFiles = HashMap<(String, String), HashMap<String, FileEntry>>;

/// Whether a file with this name always has the same content. Not so field norms, which are replaced when a
/// mapping is widened, files of deletions, whose numbers recur after a rollback, and meta files.
fn never_changes(name: &str) -> bool {
    let Some((segment, extension)) = name.split_once('.') else { return false };
    segment.len() == 32 && extension != "fieldnorm" && !extension.ends_with("del")
}

/// Copies files into the repository.
struct Copy<'a, 'b> {
    job: &'a Job<'a>,
    held: &'a Exclusive,
    known: &'a StoredFiles,
    pace: &'a mut Pace<'b>,
    number: u64,
    /// Hashes of the blobs that were written.
    new: Vec<String>,
}

impl Copy<'_, '_> {
    fn index(&mut self, staged: Staged, folder: &Path) -> Result<(IndexContent, Figures), EngineError> {
        let Staged { mut content, files, start } = staged;
        let stored = self.known.get(&(content.uuid.clone(), content.folder.clone()));
        let began = now_millis();
        let mut figures = Figures { start, ..Figures::default() };
        let mut segments = std::collections::HashSet::new();
        for (name, bytes) in &files {
            let before = self.new.len();
            let stored = stored.and_then(|files| files.get(name)).filter(|file| file.length == *bytes);
            content.files.push(self.file(folder, name, stored)?);
            figures.files += 1;
            figures.bytes += bytes;
            if self.new.len() > before {
                figures.new_files += 1;
                figures.new_bytes += bytes;
            }
            segments.extend(name.split_once('.').map(|(id, _)| id).filter(|id| id.len() == 32));
            self.job.guard.creation.add_done(*bytes);
        }
        figures.segments = segments.len() as u64;
        figures.took = now_millis().saturating_sub(began);
        Ok((content, figures))
    }

    fn file(
        &mut self,
        folder: &Path,
        name: &str,
        stored: Option<&FileEntry>,
    ) -> Result<FileEntry, EngineError> {
        let layout = &self.job.repository.layout;
        self.pace.check()?;
        if let Some(stored) = stored.filter(|_| never_changes(name))
            && layout.has_blob(&stored.sha256, stored.length)
        {
            return Ok(stored.clone());
        }
        let path = folder.join(name);
        self.number += 1;
        let (sha256, length, is_new) = layout.put_blob(self.held, &path, self.number, self.pace)?;
        if is_new {
            self.new.push(sha256.clone());
        }
        Ok(FileEntry { name: name.to_owned(), length, sha256 })
    }
}

#[cfg(test)]
mod tests {
    use super::never_changes;

    #[test]
    fn files_that_can_change_are_read_again() {
        let id = "0123456789abcdef0123456789abcdef";
        for same in ["idx", "pos", "term", "fast", "store", "spw"] {
            assert!(never_changes(&format!("{id}.{same}")), "{same}");
        }
        for other in
            [format!("{id}.fieldnorm"), format!("{id}.12.del"), "meta.json".into(), ".managed.json".into()]
        {
            assert!(!never_changes(&other), "{other}");
        }
    }
}
