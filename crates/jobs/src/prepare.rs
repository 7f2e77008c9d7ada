//! Prepares documents for writing: reads them, runs their pipelines and encodes their texts.

use std::sync::Arc;

use serde_json::Value;

use super::plan::{Action, Batch, Position, Prepared, Source};
use super::slice::Slice;
use super::spec::{Destination, Operation, VersionType};
use sparrow_catalog::{self as indices, ExternalVersion, IndexHandle, PRIMARY_TERM, WriteOp};
use sparrow_ingest::{IngestDoc, IngestMode, IngestOutcome};
use sparrow_models::Purpose;
use sparrow_request::body::{stored_tree, tree_bytes};
use sparrow_request::error::EngineError;
use sparrow_runtime::work::{self, Work};
use sparrow_scripts::{ChangeScript, Decision, Found};

/// Name of a pipeline with which a request disables the default pipeline of an index.
pub(super) const NO_PIPELINE: &str = "_none";

/// Bytes of documents, as text and as trees, with which a part of a chunk ends.
pub(crate) const PART_BYTES: usize = 16 << 20;

impl Slice<'_> {
    /// Reads documents and runs their pipelines, on a thread of its own. Each chunk has the limits of a request, so that pipelines that
    /// generate too much or take too long are stopped, as in a bulk request.
    pub(super) fn prepare(&self, positions: &[Position]) -> Result<Batch, EngineError> {
        let cancel = Arc::clone(self.context.cancel_flag());
        let _limits = work::enter(Some(Work::new(cancel, Arc::clone(&self.service.memory), "<by_query>")));
        let mut batch = match &self.spec.operation {
            Operation::Delete => return self.prepare_deletions(positions),
            Operation::Update { pipeline, script } => {
                self.prepare_updates(positions, pipeline.as_deref(), script.as_ref())?
            }
            Operation::Copy(destination) => self.prepare_copies(positions, destination)?,
        };
        self.embed(&mut batch);
        Ok(batch)
    }

    /// Encodes the texts of `semantic_text` fields, including those of documents that a pipeline sends to another index. It is done here,
    /// where waiting for the model's queue does not hold up writes to a target.
    fn embed(&self, batch: &mut Batch) {
        let mut seen: Vec<String> = Vec::new();
        for document in &batch.documents {
            if !seen.contains(&document.index) {
                seen.push(document.index.clone());
            }
        }
        for name in seen {
            // An index that is not there yet is made, and its texts are encoded, when it is written to.
            let Some(target) = self.target(&name) else { continue };
            let mapping = target.mapping();
            if mapping.semantic_fields().is_empty() {
                continue;
            }
            let mut places = Vec::new();
            let mut ops = Vec::new();
            for (place, document) in batch.documents.iter_mut().enumerate() {
                if document.index != name {
                    continue;
                }
                match std::mem::replace(&mut document.action, Action::Nothing) {
                    Action::Write(op) => {
                        places.push(place);
                        ops.push(*op);
                    }
                    other => document.action = other,
                }
            }
            let cancel = self.context.cancel_flag();
            let refused = target.embed(&mapping, &mut ops, Purpose::PacedIngest, Some(cancel.as_ref()));
            for ((place, op), refused) in places.into_iter().zip(ops).zip(refused) {
                batch.documents[place].action =
                    refused.map_or_else(|| Action::Write(Box::new(op)), Action::Fail);
            }
        }
    }

    /// The open index of a name that documents are written to; `None` if it does not exist.
    fn target(&self, name: &str) -> Option<Arc<IndexHandle>> {
        let open = self.targets.iter().find(|target| target.name == name).cloned();
        open.or_else(|| self.service.indices.write_target(name, self.spec.right_to_write()).ok())
    }

    fn prepare_deletions(&self, positions: &[Position]) -> Result<Batch, EngineError> {
        let mut documents = Vec::with_capacity(positions.len());
        for (source, seq_no, addr) in positions {
            let Source { handle, snapshot } = &self.sources[*source as usize];
            let stored = snapshot.fetch(*addr)?;
            documents.push(deletion(handle.name.clone(), stored.id, stored.routing, Some(*seq_no)));
        }
        Ok(Batch { documents, truncated: 0, read: positions.len() })
    }

    fn prepare_copies(&self, positions: &[Position], to: &Destination) -> Result<Batch, EngineError> {
        let Some(target) = self.targets.first() else {
            return Err(EngineError::internal("a copy has no destination"));
        };
        let mut documents = Vec::with_capacity(positions.len());
        let mut versions = Vec::with_capacity(positions.len());
        let mut selected = Vec::new();
        let mut bytes = 0;
        for (source, _, addr) in positions {
            if bytes > PART_BYTES {
                break;
            }
            let Source { handle, snapshot } = &self.sources[*source as usize];
            let mut stored = snapshot.fetch(*addr)?;
            selected.clear();
            to.selection.write(&stored.source, &mut selected);
            let value = parse_stored(&selected, handle, &stored.id)?;
            bytes += stored.source.len() + tree_bytes(&selected);
            let mut taken = IngestDoc::new(target.name.clone(), Some(stored.id), value).written_as(&selected);
            taken.set_routing(to.routing.of_copy(stored.routing));
            let changed = self.change(to.script.as_ref(), target, stored.version, &mut taken)?;
            stored.version = changed.version.unwrap_or(stored.version);
            let previous = stored.passages.map(|passages| (stored.source, passages));
            versions.push((stored.version, previous, changed.is_delete));
            documents.push(taken);
        }
        let read = documents.len();
        let truncated = match self.ingest(target, to.pipeline.as_deref(), &mut documents)? {
            Ok(truncated) => truncated,
            Err(error) => return Ok(all_failed(documents, &error)),
        };
        let operation = |id: Option<String>, source: indices::Source, version: u64| {
            let mut op = if to.create { WriteOp::create(id, source) } else { WriteOp::index(id, source) };
            op.external_version = match to.version_type {
                VersionType::Internal => None,
                VersionType::External => Some(ExternalVersion { version, or_equal: false }),
                VersionType::ExternalOrEqual => Some(ExternalVersion { version, or_equal: true }),
            };
            op
        };
        let documents = documents
            .into_iter()
            .zip(versions)
            .map(|(document, (version, previous, is_deleted))| {
                if is_deleted {
                    let routing = document.routing();
                    return deletion(document.index, document.id.unwrap_or_default(), routing, None);
                }
                self.prepared(target, document, |id, source| {
                    let mut op = operation(id, source, version);
                    op.previous = previous;
                    op
                })
            })
            .collect();
        Ok(Batch { documents, truncated, read })
    }

    fn prepare_updates(
        &self,
        positions: &[Position],
        pipeline: Option<&str>,
        script: Option<&ChangeScript>,
    ) -> Result<Batch, EngineError> {
        let mut batch = Batch { documents: Vec::with_capacity(positions.len()), truncated: 0, read: 0 };
        let mut bytes = 0;
        for group in positions.chunk_by(|one, other| one.0 == other.0) {
            let Source { handle, snapshot } = &self.sources[group[0].0 as usize];
            let mut documents = Vec::with_capacity(group.len());
            let mut earlier = Vec::with_capacity(group.len());
            let mut deleted = Vec::with_capacity(group.len());
            for (_, _, addr) in group {
                if bytes > PART_BYTES {
                    break;
                }
                let stored = snapshot.fetch(*addr)?;
                let source = stored.source;
                let value = parse_stored(&source, handle, &stored.id)?;
                bytes += source.len() + tree_bytes(&source);
                batch.read += 1;
                let mut taken =
                    IngestDoc::new(handle.name.clone(), Some(stored.id), value).written_as(&source);
                taken.set_routing(stored.routing);
                deleted.push(self.change(script, handle, stored.version, &mut taken)?.is_delete);
                documents.push(taken);
                earlier.push(stored.passages.map(|passages| (source, passages)));
            }
            match self.ingest(handle, pipeline, &mut documents)? {
                Ok(truncated) => batch.truncated += truncated,
                Err(error) => {
                    batch.documents.extend(all_failed(documents, &error).documents);
                    continue;
                }
            }
            let read = documents.into_iter().zip(earlier).zip(deleted).zip(group);
            batch.documents.extend(read.map(|(((document, previous), is_deleted), (_, seq_no, _))| {
                if is_deleted {
                    let routing = document.routing();
                    let id = document.id.unwrap_or_default();
                    return deletion(document.index, id, routing, Some(*seq_no));
                }
                self.prepared(handle, document, |id, source| {
                    let mut op = WriteOp::index(id, source);
                    op.previous = previous;
                    op.if_seq_no = Some(*seq_no);
                    op.if_primary_term = Some(PRIMARY_TERM);
                    op
                })
            }));
        }
        Ok(batch)
    }

    /// Lets a script change a document before it goes through pipelines, which skip it if it is to be deleted or left as it
    /// is.
    ///
    /// # Errors
    /// If the script fails, which ends the job, or if the caller may not delete what the script deletes.
    fn change(
        &self,
        script: Option<&ChangeScript>,
        target: &IndexHandle,
        version: u64,
        document: &mut IngestDoc,
    ) -> Result<Changed, EngineError> {
        let Some(script) = script else { return Ok(Changed::default()) };
        let routing = document.routing();
        let found = Found {
            index: &target.name,
            id: document.id.as_deref(),
            version: Some(version),
            routing: routing.as_deref(),
            source: &document.source,
        };
        let mut changed = Changed::default();
        match script.decide(&found)? {
            Decision::Write { source, metadata } => {
                document.source = Value::Object(source);
                for (name, value) in metadata {
                    match (name.as_str(), value) {
                        ("_index", Value::String(index)) => document.index = index,
                        ("_id", Value::String(id)) => document.id = Some(id),
                        ("_id", _) => document.id = None,
                        ("_version", version) => changed.version = version.as_u64(),
                        ("_routing", Value::String(routing)) => document.set_routing(Some(routing)),
                        ("_routing", _) => _ = document.metadata.shift_remove("_routing"),
                        _ => {}
                    }
                }
            }
            Decision::Delete => {
                self.spec.check_deleted(&document.index)?;
                changed.is_delete = true;
                document.outcome = IngestOutcome::Dropped;
            }
            Decision::Noop => document.outcome = IngestOutcome::Dropped,
        }
        Ok(changed)
    }

    /// Runs the requested pipeline, or the default one of the index, and then the final pipeline. The inner result is the number of texts
    /// that were truncated, or the reason why a pipeline cannot run at all.
    fn ingest(
        &self,
        target: &IndexHandle,
        pipeline: Option<&str>,
        documents: &mut [IngestDoc],
    ) -> Result<Result<u64, EngineError>, EngineError> {
        let settings = target.settings();
        let first = pipeline.or_else(|| settings.default_pipeline()).filter(|name| *name != NO_PIPELINE);
        let mode = IngestMode { paced: true, cancel: Some(self.context.cancel_flag().as_ref()) };
        let mut truncated = 0;
        for pipeline in first.into_iter().chain(settings.final_pipeline()) {
            match self.service.pipelines.run(&*self.service.models, pipeline, documents, mode) {
                Ok(summary) => {
                    target.note_models(&summary.filled)?;
                    truncated += summary.truncated;
                }
                Err(error) => return Ok(Err(error.into())),
            }
        }
        Ok(Ok(truncated))
    }

    /// Turns a document that has been through the pipelines of `target` into what is to be done with it.
    fn prepared(
        &self,
        target: &IndexHandle,
        document: IngestDoc,
        operation: impl FnOnce(Option<String>, indices::Source) -> WriteOp,
    ) -> Prepared {
        // No body names the index that a pipeline chose.
        let is_moved = document.index != target.name;
        let refused = is_moved.then(|| self.spec.check_written(&document.index).err()).flatten();
        // The versions of what a job writes are the job's own.
        let version = document.metadata.keys().find(|name| *name != "_routing");
        // Copies go to the name that the request gives, which may be an alias with a routing.
        let name = self.spec.destination().filter(|_| !is_moved).map_or(&document.index, |to| &to.index);
        let routing = self.service.indices.routing(name, document.routing());
        let action = match (refused, document.outcome) {
            (Some(error), _) => Action::Fail(error),
            (None, IngestOutcome::Ok) if version.is_some() => {
                Action::Fail(EngineError::illegal_argument(format!(
                    "[{}] cannot be set by the pipeline of a copy or an update by query",
                    version.map_or("", String::as_str)
                )))
            }
            (None, IngestOutcome::Ok) => match routing {
                Ok(routing) => {
                    let source =
                        indices::Source::written(document.source, document.numbers.as_ref().as_slice());
                    let mut op = operation(document.id.clone(), source);
                    op.routing = routing;
                    Action::Write(Box::new(op))
                }
                Err(error) => Action::Fail(error),
            },
            (None, IngestOutcome::Dropped) => Action::Nothing,
            (None, IngestOutcome::Failed(error)) => Action::Fail(error.into()),
        };
        Prepared { id: document.id, index: document.index, action }
    }
}

/// What a script has decided beside the fields of a document.
#[derive(Default)]
struct Changed {
    is_delete: bool,
    version: Option<u64>,
}

/// The deletion of a document that was read.
fn deletion(index: String, id: String, routing: Option<String>, seq_no: Option<u64>) -> Prepared {
    let mut op = WriteOp::delete(id.clone());
    op.routing = routing;
    op.if_seq_no = seq_no;
    op.if_primary_term = seq_no.map(|_| PRIMARY_TERM);
    Prepared { id: Some(id), index, action: Action::Write(Box::new(op)) }
}

/// Parses the stored source of a document.
///
/// # Errors
/// Illegal argument if its index keeps no sources.
pub(super) fn parse_stored(source: &[u8], handle: &IndexHandle, id: &str) -> Result<Value, EngineError> {
    stored_tree(source).map_err(|error| match error.status() {
        500 => EngineError::illegal_argument(format!("[{}][{id}] didn't store _source", handle.name)),
        _ => error,
    })
}

fn all_failed(documents: Vec<IngestDoc>, error: &EngineError) -> Batch {
    let reason = error.reason();
    let failed = documents.into_iter().map(|document| Prepared {
        id: document.id,
        index: document.index,
        action: Action::Fail(EngineError::illegal_argument(reason.clone())),
    });
    let documents: Vec<Prepared> = failed.collect();
    Batch { read: documents.len(), documents, truncated: 0 }
}
