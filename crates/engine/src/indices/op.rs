//! One write: what is asked for, and what it did.

use serde_json::Value;

use crate::semantic::Embedded;

/// What to do with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// Write it, whatever was there.
    Index,
    /// Write it if there is none.
    Create,
    Delete,
}

/// A document's JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    /// The bytes that are stored.
    pub(crate) raw: Vec<u8>,
    /// The same, parsed; parsed here when absent.
    pub(crate) value: Option<Value>,
}

impl Source {
    /// A document that exists as a value only.
    pub(crate) fn from_value(value: Value) -> Self {
        let mut raw = Vec::with_capacity(1024);
        // A value always serialises, and a vector takes all bytes. (Printing it would go through text formatting.)
        let _ = serde_json::to_writer(&mut raw, &value);
        Self { raw, value: Some(value) }
    }
}

/// One write.
#[derive(Debug, Clone)]
pub(crate) struct WriteOp {
    pub(crate) kind: WriteKind,
    /// Generated when absent.
    pub(crate) id: Option<String>,
    /// Empty for a deletion.
    pub(crate) source: Source,
    /// Only when the document's last write had this number.
    pub(crate) if_seq_no: Option<u64>,
    pub(crate) if_primary_term: Option<u64>,
    /// A version that the caller counts itself; `external_gte` allows an equal one.
    pub(crate) external_version: Option<ExternalVersion>,
    /// The document's passages, once its texts are encoded.
    pub(crate) passages: Option<Embedded>,
    /// An earlier form of the document, JSON and payload, whose passages may stay.
    pub(crate) previous: Option<(Vec<u8>, Vec<u8>)>,
}

/// A version from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExternalVersion {
    pub(crate) version: u64,
    pub(crate) or_equal: bool,
}

impl WriteOp {
    pub(crate) fn index(id: Option<String>, source: Source) -> Self {
        Self::new(WriteKind::Index, id, source)
    }

    pub(crate) fn create(id: Option<String>, source: Source) -> Self {
        Self::new(WriteKind::Create, id, source)
    }

    pub(crate) fn delete(id: String) -> Self {
        Self::new(WriteKind::Delete, Some(id), Source::default())
    }

    fn new(kind: WriteKind, id: Option<String>, source: Source) -> Self {
        Self {
            kind,
            id,
            source,
            if_seq_no: None,
            if_primary_term: None,
            external_version: None,
            passages: None,
            previous: None,
        }
    }
}

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteResult {
    Created,
    Updated,
    Deleted,
    NotFound,
}

impl WriteResult {
    /// As bodies say it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::NotFound => "not_found",
        }
    }

    /// HTTP status.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Created => 201,
            Self::Updated | Self::Deleted => 200,
            Self::NotFound => 404,
        }
    }
}

/// A write that was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct WriteOutcome {
    pub(crate) id: String,
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
    pub(crate) result: WriteResult,
    /// Texts of `semantic_text` fields of which the model has read only the first tokens.
    pub(crate) truncated: u64,
}
