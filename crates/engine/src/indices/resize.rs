//! `_clone`, `_shrink` and `_split`: a new index with the documents of another, as a copy of its files.
//!
//! An index is one piece, whatever number of shards it was given, so the three differ in which numbers they allow.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use sparrow_index::{CommitFile, IndexError};

use super::aliases::AliasSpec;
use super::metadata::Metadata;
use super::registry::Names;
use super::{IndexHandle, Indices, Settings, handle, names, now_millis};
use crate::Engine;
use crate::body::parse_object;
use crate::error::{EngineError, Exception};
use crate::request::{CancelFlag, Reply, Request};
use crate::rights::{Action, Right};

/// How often a copy begins again when a merge took files away meanwhile.
const ATTEMPTS: usize = 5;

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
    let (mut given, mut aliases) = (json!({}), BTreeMap::new());
    for (key, value) in parse_object(body)? {
        match key.as_str() {
            "settings" => given = value,
            "aliases" => aliases = AliasSpec::parse_all(&value)?,
            other => {
                return Err(EngineError::parse(format!("[resize_request] unknown field [{other}]")));
            }
        }
    }
    super::admin::check_aliases(request, &target, &aliases)?;
    let source = engine.indices.get(request.part("index"), request.right())?;
    let shards = shards_after(&request.op, &source.settings(), &Settings::parse(&given)?)?;
    if !source.settings().is_blocked("write") && !source.settings().is_blocked("read_only") {
        return Err(illegal_state(format!(
            "index {} must be read-only to resize index. use \"index.blocks.write=true\"",
            source.name
        )));
    }
    let settings = source.settings().resized(&given, shards)?;
    engine.indices.copy(&source, &target, settings, aliases, making)?;
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
    /// Makes an index with the documents, mapping and models of `source`; durable when this returns. Other indices are made and
    /// deleted meanwhile. If somebody else takes the name first, nothing is left of the copy.
    fn copy(
        &self,
        source: &IndexHandle,
        name: &str,
        settings: Settings,
        aliases: BTreeMap<String, AliasSpec>,
        right: Right<'_>,
    ) -> Result<(), EngineError> {
        right.check([name])?;
        let check = |names: &Names, name: &str| {
            names.check_free(name)?;
            self.cluster.check_shards(names.open_indices(), 1)
        };
        // Checked before anything is copied, and once more when the copy is there.
        check(&self.names(), name)?;
        let resolved = |(alias, spec): (String, AliasSpec)| {
            Ok::<_, EngineError>((super::aliases::name_for(&alias, name)?, Arc::new(spec)))
        };
        let mut arrival = self.arrival(name)?;
        arrival.set_aliases(aliases.into_iter().map(resolved).collect::<Result<_, _>>()?);
        source.link_commit(arrival.folder())?;
        let metadata = Metadata {
            creation_millis: now_millis(),
            provided_name: Some(name.to_owned()),
            settings,
            ..Metadata::clone(&source.metadata.read())
        };
        self.open_arrival(&mut arrival, metadata, None)?;
        self.install(vec![arrival], &check)
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
