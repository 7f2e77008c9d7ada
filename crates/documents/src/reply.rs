//! Response bodies of writes.

use serde::Serialize;
use serde_json::value::RawValue;

use sparrow_catalog::{PRIMARY_TERM, WriteOutcome};
use sparrow_request::answers::ShardCounts;
use sparrow_request::error::EngineError;

/// Version that Elasticsearch shows for a document that a pipeline dropped.
const VERSION_OF_DROPPED: i64 = -3;

/// Version that Elasticsearch shows for a document that does not exist.
const VERSION_OF_NONE: i64 = -1;

/// Result of a write that succeeded, including those that had nothing to do.
#[derive(Debug)]
pub(super) struct Success {
    pub(super) id: String,
    /// The routing of the write, which an alias or a pipeline may have given; none if nothing was written.
    pub(super) routing: Option<String>,
    pub(super) version: i64,
    pub(super) result: &'static str,
    pub(super) status: u16,
    /// Sequence number of the write; `None` for a dropped document.
    pub(super) seq_no: Option<u64>,
    /// Number of copies of the index in its settings, with the primary; 0 if nothing was written.
    copies: usize,
    /// The new source, when an update wants it back.
    pub(super) source: Option<Box<RawValue>>,
}

impl Success {
    /// Result of a write to an index with `copies` copies.
    pub(super) fn written(copies: usize, outcome: WriteOutcome) -> Self {
        Self {
            id: outcome.id,
            routing: outcome.routing,
            version: outcome.version as i64,
            result: outcome.result.name(),
            status: outcome.result.status(),
            seq_no: Some(outcome.seq_no),
            copies,
            source: None,
        }
    }

    /// An update that changes nothing.
    pub(super) fn noop(id: String, version: u64, seq_no: u64) -> Self {
        Self {
            id,
            routing: None,
            version: version as i64,
            result: "noop",
            status: 200,
            seq_no: Some(seq_no),
            copies: 0,
            source: None,
        }
    }

    /// A document that was not made, as a script decided.
    pub(super) fn not_created(id: String) -> Self {
        Self { version: VERSION_OF_NONE, ..Self::dropped(Some(id)) }
    }

    /// A document that a pipeline dropped.
    pub(super) fn dropped(id: Option<String>) -> Self {
        Self {
            id: id.unwrap_or_else(|| "auto-generated".to_owned()),
            routing: None,
            version: VERSION_OF_DROPPED,
            result: "noop",
            status: 200,
            seq_no: None,
            copies: 0,
            source: None,
        }
    }

    /// Whether something was written.
    pub(super) fn wrote(&self) -> bool {
        self.copies > 0
    }

    /// Writes the JSON of the result; with `status` only in bulk items.
    pub(super) fn write(&self, index: &str, forced_refresh: bool, in_bulk: bool, out: &mut Vec<u8>) {
        let body = Body {
            index,
            id: &self.id,
            version: self.version,
            result: self.result,
            forced_refresh: forced_refresh && self.wrote(),
            shards: ShardCounts::new(self.copies, self.copies.min(1)),
            seq_no: self.seq_no,
            primary_term: self.seq_no.map(|_| PRIMARY_TERM),
            get: self.source.as_deref().map(|source| UpdatedSource {
                seq_no: self.seq_no,
                primary_term: PRIMARY_TERM,
                found: true,
                source,
            }),
            status: in_bulk.then_some(self.status),
        };
        write_json(&body, out);
    }
}

/// The bulk item of a write that failed.
pub(super) fn write_failure(index: &str, id: Option<&str>, error: &EngineError, out: &mut Vec<u8>) {
    let body = FailedItem { index, id, status: error.status(), error: error.to_json() };
    write_json(&body, out);
}

/// Adds a member to an object that is written already.
pub(super) fn append(object: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    object.pop();
    object.extend_from_slice(b",");
    write_json(&name, object);
    object.push(b':');
    write_json(value, object);
    object.push(b'}');
}

/// Appends a value whose serialisation cannot fail: keys are strings, and the sink is memory.
pub(super) fn write_json(value: &impl Serialize, out: &mut Vec<u8>) {
    if let Err(error) = serde_json::to_writer(out, value) {
        tracing::error!(%error, "a body could not be written");
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "_index")]
    index: &'a str,
    #[serde(rename = "_id")]
    id: &'a str,
    #[serde(rename = "_version")]
    version: i64,
    result: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    forced_refresh: bool,
    #[serde(rename = "_shards")]
    shards: ShardCounts,
    #[serde(rename = "_seq_no", skip_serializing_if = "Option::is_none")]
    seq_no: Option<u64>,
    #[serde(rename = "_primary_term", skip_serializing_if = "Option::is_none")]
    primary_term: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    get: Option<UpdatedSource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

#[derive(Serialize)]
struct UpdatedSource<'a> {
    #[serde(rename = "_seq_no", skip_serializing_if = "Option::is_none")]
    seq_no: Option<u64>,
    #[serde(rename = "_primary_term")]
    primary_term: u64,
    found: bool,
    #[serde(rename = "_source")]
    source: &'a RawValue,
}

#[derive(Serialize)]
struct FailedItem<'a> {
    #[serde(rename = "_index")]
    index: &'a str,
    #[serde(rename = "_id")]
    id: Option<&'a str>,
    status: u16,
    error: serde_json::Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}
