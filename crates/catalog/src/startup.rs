//! Opening the indices in the data directory when the server starts.

use std::collections::HashSet;
use std::sync::Arc;

use sparrow_request::error::EngineError;

use crate::registry::{Broken, IndexNames};
use crate::{Indices, Metadata, check_log, claim, metadata, opened, reason, reopen};

impl Indices {
    /// Opens every index that has metadata; gives the indices, their names and uuids. An index that another one has replaced is
    /// removed instead.
    ///
    /// # Errors
    /// When the data directory itself cannot be read or written. An index that cannot be read is among the broken ones.
    pub(crate) fn open_stored(&self) -> Result<(IndexNames, Vec<String>), EngineError> {
        let data = &self.data;
        let mut names = IndexNames::default();
        let (mut uuids, mut broken) = (Vec::new(), Vec::new());
        let mut replaced: HashSet<String> = HashSet::new();
        for (store, replaces) in metadata::stores(data)? {
            let uuid = &store[metadata::STORE_PREFIX.len()..];
            if replaced.contains(uuid) {
                // What that one replaced is gone as well.
                replaced.extend(replaces);
                claim::withdraw(&data.index_dir(uuid))?;
                data.remove(&store)?;
                continue;
            }
            uuids.push(uuid.to_owned());
            match opened(|| {
                let Some(metadata) = Metadata::load(data, &store)? else { return Ok(None) };
                check_log(&data.index_dir(&metadata.uuid))?;
                self.open_one(metadata).map(Some)
            }) {
                // Only one that opened takes the place of another.
                Ok(Some(handle)) => {
                    replaced.extend(replaces);
                    names.indices.insert(handle.name.clone(), Arc::new(handle));
                }
                Ok(None) => {}
                Err(error) => {
                    // The others go on. What cannot be read has a name that nothing else can have.
                    let names = Metadata::names_in_damaged(data, &store);
                    let index = names.into_iter().collect::<Vec<_>>().join(", ");
                    tracing::error!(index, uuid, %error, "an index cannot be opened");
                    let later = reopen::may_open_later(&error);
                    broken.push((uuid.to_owned(), store.clone(), reason(&error, data), later));
                }
            }
        }
        // One that took another's place may have been opened before the one that took its own.
        for uuid in &replaced {
            if uuids.contains(uuid) {
                claim::withdraw(&data.index_dir(uuid))?;
                data.remove(&metadata::store_name(uuid))?;
                uuids.retain(|other| other != uuid);
                names.indices.retain(|_, handle| handle.uuid != *uuid);
                broken.retain(|(other, ..)| other != uuid);
            }
        }
        for (uuid, store, reason, may_open_later) in broken {
            let claimed = Metadata::names_in_damaged(data, &store);
            let mut free: Vec<String> =
                claimed.into_iter().filter(|name| !names.indices.contains_key(name)).collect();
            if free.is_empty() {
                free.push(uuid.clone());
            }
            for name in free {
                let (uuid, reason) = (uuid.clone(), reason.clone());
                let broken = Broken { name: name.clone(), uuid, reason, may_open_later };
                names.broken.insert(name, Arc::new(broken));
            }
        }
        Ok((names, uuids))
    }
}
