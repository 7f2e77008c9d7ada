//! `index.blocks.*`: settings that make an index refuse some kinds of requests.

use serde_json::{Map, Value, json};

use super::settings::Settings;
use sparrow_request::error::{EngineError, Exception};

/// What a request does to an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    MetadataRead,
    MetadataWrite,
    /// Deleting the index. It frees space, so `read_only_allow_delete` allows it although it blocks all other changes.
    Delete,
}

/// Name of the setting behind `index.blocks.`, number of the block, text of the error, and the accesses that it blocks.
type Block = (&'static str, u16, &'static str, &'static [Access]);

const BLOCKS: [Block; 5] = [
    (
        "read_only",
        5,
        "FORBIDDEN/5/index read-only (api)",
        &[Access::Write, Access::MetadataWrite, Access::Delete],
    ),
    ("read", 7, "FORBIDDEN/7/index read (api)", &[Access::Read]),
    ("write", 8, "FORBIDDEN/8/index write (api)", &[Access::Write]),
    (
        "metadata",
        9,
        "FORBIDDEN/9/index metadata (api)",
        &[Access::MetadataRead, Access::MetadataWrite, Access::Delete],
    ),
    (
        FLOOD_STAGE,
        12,
        "TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block",
        &[Access::Write, Access::MetadataWrite],
    ),
];

/// The blocks that are set, by their numbers, as the cluster's state shows them.
pub fn shown(settings: &Settings) -> Map<String, Value> {
    let set = BLOCKS.iter().filter(|(name, ..)| settings.is_blocked(name));
    set.map(|(_, number, words, kept)| {
        let description = words.rsplit('/').next().unwrap_or(words);
        let has = |access: Access| kept.contains(&access);
        let levels: Vec<&str> = [
            (Access::Read, "read"),
            (Access::Write, "write"),
            (Access::MetadataRead, "metadata_read"),
            (Access::MetadataWrite, "metadata_write"),
        ]
        .into_iter()
        .filter(|(access, _)| has(*access))
        .map(|(_, name)| name)
        .collect();
        (number.to_string(), json!({"description": description, "retryable": false, "levels": levels}))
    })
    .collect()
}

/// Whether `name` is a block that `PUT /{index}/_block/{name}` sets.
pub fn is_known(name: &str) -> bool {
    matches!(name, "read_only" | "read" | "write" | "metadata")
}

/// Checks that no block of the index refuses this access.
///
/// # Errors
/// `cluster_block_exception` if one does.
pub fn check(index: &str, settings: &Settings, access: Access) -> Result<(), EngineError> {
    if !settings.has_blocks() {
        return Ok(());
    }
    let blocks: Vec<_> = BLOCKS
        .iter()
        .filter(|(name, _, _, kept)| kept.contains(&access) && settings.is_blocked(name))
        .collect();
    if blocks.is_empty() {
        return Ok(());
    }
    Err(refusal(index, &blocks))
}

/// The error for a request that blocks refuse: 429 if only the one for a full disk does, which passes by itself, and 403 otherwise.
fn refusal(index: &str, blocks: &[&Block]) -> EngineError {
    let words: String = blocks.iter().map(|(_, _, words, _)| format!("[{words}];")).collect();
    let status = if blocks.iter().all(|(name, ..)| *name == FLOOD_STAGE) { 429 } else { 403 };
    let reason = format!("index [{index}] blocked by: {words}");
    EngineError::api(status, Exception::new("cluster_block_exception", reason))
}

/// The error for a write while the disk is too full, as Elasticsearch words it above its flood-stage watermark.
pub fn flooded(index: &str) -> EngineError {
    let block: Vec<_> = BLOCKS.iter().filter(|(name, ..)| *name == FLOOD_STAGE).collect();
    refusal(index, &block)
}

/// Name of the block that every index has while the disk is too full.
pub const FLOOD_STAGE: &str = "read_only_allow_delete";

/// `index_closed_exception` with status 400, for a request to a closed index.
pub(crate) fn closed(index: &str, uuid: &str) -> EngineError {
    EngineError::api(
        400,
        Exception::new("index_closed_exception", "closed").with("index_uuid", uuid).with("index", index),
    )
}
