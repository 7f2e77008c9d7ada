//! Reading the small stores of the data directory, in such a way that writing them again never loses
//! anything.
//!
//! Every change of a store replaces the whole file, so what was left out when it was read would be gone. Two rules hold:
//!
//! - A store that is damaged (its checksum, its JSON, a shape that was never written) or of a newer format keeps the server
//!   from starting, with one sentence that names the file, which stays as it is. That goes for the node's identity, cluster
//!   settings, pipelines, templates, aliases, models, deployments and inference endpoints: a server without one of them would
//!   answer, but not what it was told to, and nobody would know. The exceptions are stores of which there is one for each
//!   thing: an index whose metadata is damaged answers 503 and health is red, a task with a damaged record answers with that,
//!   and all others are served.
//! - An entry of a sound store that this version cannot use (a later version wrote it, or a processor, a field type, an option is
//!   gone) is kept as it is written, shown by `GET`, and refused with its reason where it is used, until it is replaced or
//!   deleted by name.

use serde_json::{Map, Value};

use crate::{DataDir, StorageError};

/// An entry of a store that is kept although this version cannot use it.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusable {
    /// The entry as the store has it.
    pub definition: Value,
    /// Why the entry cannot be used.
    pub reason: String,
}

/// Reads a store that contains a JSON object; empty if the store does not exist.
///
/// # Errors
/// When the store is damaged, has a newer format, contains no object, or cannot be read.
pub fn read_members(data: &DataDir, store: &str) -> Result<Map<String, Value>, StorageError> {
    match data.read_json(store)? {
        None => Ok(Map::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err(damaged(data, store, "it does not hold an object")),
    }
}

/// Error for a store whose content this server never writes.
pub fn damaged(data: &DataDir, store: &str, detail: impl Into<String>) -> StorageError {
    let path = data.path().join("store").join(format!("{store}.json"));
    StorageError::Corrupt { path, detail: detail.into() }
}
