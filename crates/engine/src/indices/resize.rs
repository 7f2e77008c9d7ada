//! `_clone`, `_shrink` and `_split`: a new index with the documents of another, as a copy of its files.
//!
//! An index is one piece, whatever number of shards it was given, so the three differ in which numbers they allow.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use sparrow_index::{CommitFile, IndexError};
use sparrow_storage::durable;

use super::aliases::AliasSpec;
use super::metadata::Metadata;
use super::registry::Names;
use super::{
    FIRST_FOLDER, IndexHandle, Indices, Settings, alias_changes, handle, names, new_uuid, now_millis,
};
use crate::Engine;
use crate::body::parse_object;
use crate::error::{EngineError, Exception};
use crate::request::{CancelFlag, Reply, Request};
use crate::rights::{Action, Right};

/// How often a copy begins again when a merge took files away meanwhile.
const ATTEMPTS: usize = 5;

/// What of a request goes over the source.
#[derive(Default)]
struct Given {
    settings: Settings,
    aliases: BTreeMap<String, AliasSpec>,
}

/// `PUT|POST /{index}/_clone/{target}`, `…/_shrink/{target}`, `…/_split/{target}`
pub(crate) fn resize(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let target = super::date_math::resolve(request.part("target"))?;
    request.right().check([request.part("index")])?;
    let making = request.caller.to(Action::CreateIndex);
    making.check([target.as_str()])?;
    names::check(&target)?;
    let mut given = Given::default();
    for (key, value) in parse_object(body)? {
        match key.as_str() {
            "settings" => given.settings = Settings::parse(&value)?,
            "aliases" => given.aliases = AliasSpec::parse_all(&value)?,
            other => {
                return Err(EngineError::parse(format!("[resize_request] unknown field [{other}]")));
            }
        }
    }
    super::admin::check_aliases(request, &target, &given.aliases)?;
    let source = engine.indices.get(request.part("index"), request.right())?;
    let shards = shards_after(&request.op, &source.settings(), &given.settings)?;
    if !source.settings().is_blocked("write") && !source.settings().is_blocked("read_only") {
        return Err(illegal_state(format!(
            "index {} must be read-only to resize index. use \"index.blocks.write=true\"",
            source.name
        )));
    }
    let settings = source.settings().resized(&given.settings, shards)?;
    engine.indices.copy(&source, &target, settings, given.aliases, making)?;
    Ok(Reply::ok(&json!({"acknowledged": true, "shards_acknowledged": true, "index": target})))
}

/// The number of shards that the new index is shown with.
fn shards_after(op: &str, source: &Settings, given: &Settings) -> Result<usize, EngineError> {
    let before = source.shards();
    let asked = given.asked_shards();
    let illegal = |reason: String| Err(EngineError::illegal_argument(reason));
    match (op, asked) {
        ("clone_index", None) => Ok(before),
        ("clone_index", Some(after)) if after != before => illegal(format!(
            "the number of target shards [{after}] must be the same as the number of source shards [{before}]"
        )),
        ("shrink_index", None) => Ok(1),
        ("shrink_index", Some(after)) if after > before => illegal(format!(
            "the number of target shards [{after}] must be less that the number of source shards [{before}]"
        )),
        ("shrink_index", Some(after)) if !before.is_multiple_of(after) => {
            illegal(format!("the number of source shards [{before}] must be a multiple of [{after}]"))
        }
        ("split_index", None) => {
            Err(EngineError::invalid("index.number_of_shards is required for split operations"))
        }
        ("split_index", Some(after)) if after <= before => illegal(format!(
            "the number of source shards [{before}] must be less that the number of target shards [{after}]"
        )),
        ("split_index", Some(after)) if !after.is_multiple_of(before) => Err(illegal_state(format!(
            "the number of source shards [{before}] must be a factor of [{after}]"
        ))),
        (_, Some(after)) => Ok(after),
        (_, None) => Ok(before),
    }
}

fn illegal_state(reason: String) -> EngineError {
    // Not a 500 as there: the caller can help it.
    EngineError::api(400, Exception::new("illegal_state_exception", reason))
}

impl Indices {
    /// Makes an index with the documents, mapping and models of `source`; durable when this returns.
    fn copy(
        &self,
        source: &IndexHandle,
        name: &str,
        settings: Settings,
        aliases: BTreeMap<String, AliasSpec>,
        right: Right<'_>,
    ) -> Result<Arc<IndexHandle>, EngineError> {
        right.check([name])?;
        let _one = self.admin.lock();
        let before = self.names();
        before.check_free(name)?;
        self.cluster.check_shards(before.open_indices(), 1)?;
        let uuid = new_uuid();
        let mut after = Names::clone(&before);
        for (alias, spec) in aliases {
            after
                .aliases
                .entry(super::concrete_name(&alias)?)
                .or_default()
                .insert(name.to_owned(), Arc::new(spec));
        }
        for alias in after.aliases_of(name).keys() {
            alias_changes::check(&after, alias)?;
        }
        let root = self.data.index_dir(&uuid);
        durable::create_dir_all(&root)?;
        let copied = source.link_commit(&root.join(FIRST_FOLDER)).and_then(|_| Ok(durable::sync_dir(&root)?));
        if let Err(error) = copied {
            handle::remove_folder(&root);
            return Err(error);
        }
        let from = source.metadata.read().clone();
        let metadata = Metadata {
            name: name.to_owned(),
            uuid: uuid.clone(),
            creation_millis: now_millis(),
            folder: FIRST_FOLDER.to_owned(),
            closed: false,
            provided_name: Some(name.to_owned()),
            settings,
            mapping: from.mapping.clone(),
            field_models: from.field_models.clone(),
            replaces: None,
        };
        let opened = self.open_one(metadata.clone()).inspect_err(|_| handle::remove_folder(&root))?;
        let own = after.aliases_of(name);
        if !own.is_empty() {
            // Aliases of an index that is not there count for nothing, so they can come first.
            let mut stored = self.stored(&before);
            stored.by_index.insert(uuid, own);
            stored.save(&self.data)?;
        }
        // The index exists from here on; a crash before leaves a folder that the next start removes.
        metadata.save(&self.data)?;
        let opened = Arc::new(opened);
        self.registry.change(|names| {
            names.indices.insert(name.to_owned(), opened.clone());
            names.aliases = after.aliases;
        });
        Ok(opened)
    }
}

impl IndexHandle {
    /// Flushes and links the files of that commit, or of a later one, into `target`, which is made and must be empty:
    /// with all that was acknowledged before the call. Durable when it returns.
    ///
    /// # Errors
    /// When the index was deleted, or its files cannot be read or linked.
    pub(crate) fn link_commit(&self, target: &Path) -> Result<Vec<CommitFile>, EngineError> {
        let mut attempt = 1;
        loop {
            self.flush()?;
            if self.shard.is_closed() {
                return Err(EngineError::IndexNotFound { name: self.name.clone() });
            }
            match self.index().link_commit(target) {
                Ok(files) => return Ok(files),
                // An upgrade that ended meanwhile put other files in place, or the index was deleted.
                Err(IndexError::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && attempt < ATTEMPTS =>
                {
                    handle::remove_folder(target);
                    attempt += 1;
                }
                Err(error) => {
                    tracing::error!(index = self.name, %error, "the files of an index cannot be linked");
                    return Err(EngineError::internal(format!(
                        "the files of index [{}] cannot be copied",
                        self.name
                    )));
                }
            }
        }
    }
}

impl Names {
    /// # Errors
    /// When the name is that of an index or alias.
    pub(super) fn check_free(&self, name: &str) -> Result<(), EngineError> {
        if let Some(uuid) = self.uuid(name) {
            return Err(EngineError::IndexAlreadyExists { name: name.to_owned(), uuid: uuid.to_owned() });
        }
        if self.aliases.contains_key(name) {
            let problem = "already exists as alias".to_owned();
            return Err(EngineError::InvalidIndexName { name: name.to_owned(), problem });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(shards: Option<usize>) -> Settings {
        let value = shards.map_or_else(|| json!({}), |shards| json!({"number_of_shards": shards}));
        Settings::parse(&value).unwrap()
    }

    #[test]
    fn numbers_of_shards_divide_each_other() {
        let after = |op: &str, before: usize, asked: Option<usize>| {
            shards_after(op, &settings(Some(before)), &settings(asked)).ok()
        };
        assert_eq!(after("clone_index", 2, None), Some(2));
        assert_eq!(after("clone_index", 2, Some(6)), None);
        assert_eq!(after("shrink_index", 6, None), Some(1));
        assert_eq!(after("shrink_index", 6, Some(3)), Some(3));
        assert_eq!(after("shrink_index", 6, Some(4)), None);
        assert_eq!(after("split_index", 2, Some(4)), Some(4));
        assert_eq!(after("split_index", 2, Some(5)), None);
        assert_eq!(after("split_index", 2, None), None);
    }
}
