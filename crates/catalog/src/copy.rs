//! Copies of an index: its files as they are, under another name.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use sparrow_tantivy_index::{CommitFile, IndexError};

use super::aliases::AliasSpec;
use super::metadata::Metadata;
use super::registry::IndexNames;
use super::{IndexHandle, Indices, Settings, handle, now_millis};
use sparrow_request::error::EngineError;
use sparrow_request::rights::Right;

/// Number of attempts to link the files of an index, which fail when an upgrade or a merge removes files meanwhile.
const ATTEMPTS: usize = 5;

impl Indices {
    /// Creates an index with the documents, mapping and models of `source`; durable when this returns. Other indices can be created
    /// and deleted meanwhile. If another request takes the name first, nothing is left of the copy.
    pub fn copy(
        &self,
        source: &IndexHandle,
        name: &str,
        settings: Settings,
        aliases: BTreeMap<String, AliasSpec>,
        right: Right<'_>,
    ) -> Result<(), EngineError> {
        right.check([name])?;
        let check = |names: &IndexNames, name: &str| {
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
        let change = source.model_change();
        source.link_commit(arrival.folder())?;
        if source.model_change() != change {
            // The files may lack what it says of them.
            return Err(super::model_change::conflict(format!(
                "the model of a field of index [{}] was changed meanwhile: try again",
                source.name
            )));
        }
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
    /// Flushes, and hard-links the files of that commit, or of a later one, into `target`, which is created and must be empty. They
    /// hold everything that was acknowledged before the call. Durable when it returns.
    ///
    /// # Errors
    /// When the index was deleted, or its files cannot be read or linked.
    pub fn link_commit(&self, target: &Path) -> Result<Vec<CommitFile>, EngineError> {
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

impl IndexNames {
    /// Checks that no index or alias has this name.
    ///
    /// # Errors
    /// When one has.
    pub fn check_free(&self, name: &str) -> Result<(), EngineError> {
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
