//! `POST /_snapshot/{repository}/{snapshot}/_restore`: restores indices from a snapshot.
//!
//! First, all files of all indices are copied into new folders, each checked against its hash. Only when all
//! indices can be opened do they get their names, all at once. A failure before that leaves nothing behind,
//! and what a crash leaves is removed at the next start.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_write_ahead_log::durable;

use super::layout::Layout;
use super::manifest::{Content, FileEntry, IndexContent, Info};
use super::pace::Pace;
use super::restore_request::RestoreRequest;
use super::running::ReadingGuard;
use super::{Repository, errors, features};
use crate::service::SnapshotService;
use sparrow_catalog::{Arrival, IndexNames, Metadata, RestoredFrom, new_uuid};
use sparrow_models::Models;
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_tasks::{TaskContext, TaskSpec};

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] =
    &[Operation::new("restore_snapshot", Action::RestoreSnapshot, Lane::Long, restore_snapshot)
        .about("Brings indices of a snapshot back.")
        .holds("RestoreRequest", RestoreRequest::shape)
        .takes(&["master_timeout wait_for_completion"])
        .unlisted()];

/// Restores a snapshot in a task.
fn restore_snapshot(
    service: &Arc<SnapshotService>,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", false)?;
    let wanted = RestoreRequest::parse(&parse_object(body)?)?;
    if wanted.include_keys {
        features::check(request, "cluster:admin/snapshot/restore")?;
    }
    let Source { repository, info, plan, content, guard } = Source::find(service, request, &wanted)?;
    let label = info.label();
    let spec = TaskSpec::new(
        "cluster:admin/snapshot/restore",
        format!("restore snapshot [{}:{}]", repository.name, info.snapshot),
    )
    .cancellable()
    .tells_failure()
    .of(request);
    let owner = service.clone();
    let task = service.tasks.spawn(spec, move |context| {
        let _reading = guard;
        let job = Job { service: &owner, repository: &repository, info: &info, wanted: &wanted, context };
        let mut done = Vec::new();
        let restored = job.run(&plan, &content, &mut done);
        owner.snapshots.counts.restore(&restored);
        if let Err(error) = restored {
            if done.is_empty() {
                // A client that waits gets the error as its answer, which is logged with its request; otherwise it is logged here.
                if !wait {
                    tracing::warn!(repository = repository.name, snapshot = label, %error, "nothing was restored");
                }
                return Err(error);
            }
            let restored = done.join(", ");
            tracing::error!(repository = repository.name, snapshot = label, restored, %error, "a restore failed half way");
            return Err(errors::half_restored(&repository.name, &label, &restored, &error));
        }
        let indices: Vec<&String> = plan.iter().map(|(_, target)| target).collect();
        Ok(json!({"snapshot": {
            "snapshot": info.snapshot,
            "indices": indices,
            "shards": {"total": indices.len(), "failed": 0, "successful": indices.len()},
        }}))
    })?;
    match wait {
        true => Ok(Reply::ok(&task.wait(&|| cancel.is_cancelled())?)),
        false => Ok(Reply::ok(&json!({"accepted": true}))),
    }
}

/// A snapshot to be restored, checked as far as possible without reading its blobs.
pub(super) struct Source {
    pub repository: Repository,
    pub info: Info,
    /// Names of the indices to restore: in the snapshot, and after the restore.
    plan: Vec<(String, String)>,
    pub content: Content,
    guard: ReadingGuard,
}

impl Source {
    /// Finds the snapshot that a request names and checks it.
    ///
    /// # Errors
    /// When the snapshot does not exist or lacks a requested part, or an index name is taken.
    pub fn find(
        service: &Arc<SnapshotService>,
        request: &Request,
        wanted: &RestoreRequest,
    ) -> Result<Self, EngineError> {
        let repository = service.snapshots.repository(request.part("repository"))?;
        let name = request.part("snapshot");
        let listing = repository.layout.list()?;
        let Some(info) = listing.infos.iter().find(|info| info.snapshot == name) else {
            let failed = service.snapshots.failed.of(&repository.name, &repository.path, &listing.infos);
            if let Some(failed) = failed.iter().find(|failed| failed.snapshot == name) {
                let problem = format!("unsupported snapshot state [FAILED]: {}", failed.reason());
                return Err(errors::restore(&repository.name, name, &problem));
            }
            let problem = match listing.unreadable.first() {
                Some(unreadable) => {
                    format!("snapshot does not exist among those that can be read: {unreadable}")
                }
                None => "snapshot does not exist".to_owned(),
            };
            return Err(errors::restore(&repository.name, name, &problem));
        };
        let info = info.clone();
        let plan = wanted.plan(&repository.name, &info)?;
        let guard = service.snapshots.running.read(&repository.path, &info.uuid);
        // It may have been deleted between the two.
        let content = repository.layout.content(&info.uuid)?;
        let label = info.label();
        let refuse = |problem: &str| errors::restore(&repository.name, &label, problem);
        let names = service.indices.names();
        for (from, target) in &plan {
            names.check_restorable(from, target, &refuse)?;
        }
        // Before anything is restored.
        if let Some(global) = content.global.as_ref().filter(|_| wanted.include_global_state) {
            // The client did not write the global state: it is the snapshot that is wrong.
            let unusable =
                |error: EngineError| refuse(&format!("its global state cannot be used: {}", error.reason()));
            global.check().map_err(unusable)?;
        }
        for model in content.models.iter().filter(|_| wanted.include_models) {
            Models::check_upload(&model.id, &model.config).map_err(|error| refuse(&error.reason()))?;
        }
        if wanted.include_global_state && content.global.is_none() {
            return Err(refuse(
                "cannot restore global state since the snapshot was created without global state",
            ));
        }
        Ok(Self { repository, info, plan, content, guard })
    }
}

struct Job<'a> {
    service: &'a Arc<SnapshotService>,
    repository: &'a Repository,
    info: &'a Info,
    wanted: &'a RestoreRequest,
    context: &'a TaskContext,
}

impl Job<'_> {
    fn layout(&self) -> &Layout {
        &self.repository.layout
    }

    fn refuse(&self, problem: &str) -> EngineError {
        errors::restore(&self.repository.name, &self.info.label(), problem)
    }

    /// Restores all requested parts; `done` receives the names of installed parts, even if a later part
    /// fails.
    fn run(
        &self,
        plan: &[(String, String)],
        content: &Content,
        done: &mut Vec<String>,
    ) -> Result<(), EngineError> {
        let restore_uuid = new_uuid();
        let stop = || self.context.is_cancelled();
        let mut pace = Pace::new(self.repository.settings.restore_rate(), &stop);
        let by_name: HashMap<&str, &IndexContent> =
            content.indices.iter().map(|index| (index.name.as_str(), index)).collect();
        let mut arrivals = Vec::with_capacity(plan.len());
        for (number, (from, target)) in plan.iter().enumerate() {
            self.context.set_status(json!({"total": plan.len(), "restored": number, "index": from}));
            let index = by_name
                .get(from.as_str())
                .ok_or_else(|| self.refuse(&format!("the snapshot has no files of index [{from}]")))?;
            arrivals.push(self.index(index, target, &restore_uuid, &mut pace)?);
        }
        let models = match self.wanted.include_models {
            true => self.models(content, &mut pace)?,
            false => Vec::new(),
        };
        pace.check()?;
        let check = |names: &IndexNames, name: &str| {
            names.check_restorable(name, name, &|problem| self.refuse(problem))
        };
        self.service.indices.install(arrivals, &check)?;
        done.extend(plan.iter().map(|(_, target)| format!("index [{target}]")));
        for (id, config, staging) in models {
            self.service.models.adopt_upload(&id, &config, &staging.0)?;
            done.push(format!("model [{id}]"));
        }
        if self.wanted.include_global_state
            && let Some(global) = &content.global
        {
            global.apply(self.service, &mut |part| done.push(part.to_owned()))?;
        }
        Ok(())
    }

    /// Copies a file from its blob to `target`. A damaged blob is renamed, if the repository is writable, so
    /// that the next snapshot stores it again.
    fn fetch(&self, file: &FileEntry, target: &Path, pace: &mut Pace<'_>) -> Result<(), EngineError> {
        let fetched = self.layout().fetch(&self.info.snapshot, file, target, pace);
        if fetched.is_ok()
            || matches!(fetched, Err(EngineError::Cancelled))
            || self.repository.settings.is_readonly()
        {
            return fetched;
        }
        let lock = self.service.snapshots.running.folder_lock(&self.repository.path);
        // A snapshot that is being made looks at what it needs itself.
        if let Some(_guard) = lock.try_lock() {
            match self.layout().set_aside_if_damaged(file, pace) {
                Ok(true) => {
                    tracing::warn!(
                        repository = self.repository.name,
                        blob = file.sha256,
                        "a damaged blob was set aside"
                    );
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(repository = self.repository.name, blob = file.sha256, %error, "a damaged blob stays in its place");
                }
            }
        }
        fetched
    }

    /// Copies the files of an index and opens it, ready to be installed under its new name.
    fn index(
        &self,
        index: &IndexContent,
        target: &str,
        restore_uuid: &str,
        pace: &mut Pace<'_>,
    ) -> Result<Arrival, EngineError> {
        let mut arrival = self.service.indices.arrival(target)?;
        for file in &index.files {
            self.fetch(file, &arrival.folder().join(&file.name), pace)?;
        }
        durable::sync_dir(arrival.folder())?;
        let unusable = |error: EngineError| {
            self.refuse(&format!("index [{}] cannot be opened: {}", index.name, error.reason()))
        };
        let mut metadata = Metadata::from_json(&index.metadata).map_err(unusable)?;
        metadata.settings = metadata.settings.restored(
            &self.wanted.index_settings,
            &self.wanted.ignore_index_settings,
            &|problem| self.refuse(problem),
        )?;
        if self.wanted.include_aliases {
            let mut aliases = serde_json::Map::new();
            for (alias, spec) in &index.aliases {
                aliases.insert(self.wanted.alias(alias)?, spec.clone());
            }
            arrival.parse_aliases(&aliases)?;
        }
        let from = RestoredFrom {
            repository: self.repository.name.clone(),
            snapshot: self.info.snapshot.clone(),
            index: index.name.clone(),
            restore_uuid: restore_uuid.to_owned(),
            files: index.files.len() as u64,
            bytes: index.files.iter().map(|file| file.length).sum(),
        };
        self.service.indices.open_arrival(&mut arrival, metadata, Some(from)).map_err(unusable)?;
        Ok(arrival)
    }

    /// Copies the files of the snapshot's models into temporary folders. Returns the id, configuration and
    /// folder of each.
    fn models(
        &self,
        content: &Content,
        pace: &mut Pace<'_>,
    ) -> Result<Vec<(String, Value, super::Staging)>, EngineError> {
        let mut models = Vec::new();
        for model in &content.models {
            let staging = self.service.snapshots.staging()?;
            for file in &model.files {
                self.fetch(file, &staging.0.join(&file.name), pace)?;
            }
            durable::sync_dir(&staging.0)?;
            models.push((model.id.clone(), model.config.clone(), staging));
        }
        Ok(models)
    }
}
