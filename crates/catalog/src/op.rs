//! A single write: what is asked for, and its result.

use serde_json::Value;

use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::json::{self, WrittenNumbers};
use sparrow_wire::strict_json::{MOST_LEVELS, levels};

/// The passages of a document that is about to be written.
#[derive(Debug, Clone, Default)]
pub struct Embedded {
    /// The bytes that are stored after the document's JSON; empty for none.
    pub payload: Vec<u8>,
    /// Number of passages of which the model has read only the first tokens.
    pub truncated: u64,
    /// [`Mapping::semantic_key`] of the mapping that they were made for.
    pub key: u64,
}

/// What to do with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// Writes the document, replacing the one with this id if there is one.
    Index,
    /// Writes the document only if no document has this id.
    Create,
    Delete,
}

/// The JSON of a document, as bytes and as a value.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The bytes that are stored.
    pub raw: Vec<u8>,
    /// The parsed JSON; parsed from the bytes when needed if absent.
    pub value: Option<Value>,
}

impl Source {
    /// A document that exists as a value only.
    pub fn from_value(value: Value) -> Self {
        Self::written(value, &[])
    }

    /// As [`Source::from_value`], with numbers written as in the JSON that the value, or a part of it, was parsed from; see
    /// [`json::write`].
    pub fn written(value: Value, numbers: &[&WrittenNumbers]) -> Self {
        let mut raw = Vec::with_capacity(1024);
        json::write(&value, numbers, &mut raw);
        Self { raw, value: Some(value) }
    }

    /// Refuses a document that is nested too deeply to be parsed again from its bytes. Documents from HTTP bodies are checked when
    /// they are parsed; this is for those that a pipeline or an update made.
    ///
    /// # Errors
    /// `document_parsing_exception`
    pub fn check_readable(&self) -> Result<(), EngineError> {
        if self.value.as_ref().is_none_or(|value| levels(value) <= MOST_LEVELS) {
            return Ok(());
        }
        let detail = format!("objects and arrays are nested more than [{MOST_LEVELS}] levels deep");
        let cause = Exception::new("x_content_parse_exception", detail.as_str());
        let reason = format!("failed to parse: {detail}");
        Err(EngineError::api(400, Exception::new("document_parsing_exception", reason).because(cause)))
    }
}

/// A write of one document, with the conditions on its current version.
#[derive(Debug, Clone)]
pub struct WriteOp {
    pub kind: WriteKind,
    /// Id of the document; generated when absent.
    pub id: Option<String>,
    /// The document to write; empty for a deletion.
    pub source: Source,
    /// The routing of the document, which is kept with it.
    pub routing: Option<String>,
    /// The write is refused unless the document's last write had this sequence number.
    pub if_seq_no: Option<u64>,
    pub if_primary_term: Option<u64>,
    /// A version number that the client keeps itself, which has to be higher than the current one.
    pub external_version: Option<ExternalVersion>,
    /// The document's passages, once its texts are encoded.
    pub passages: Option<Embedded>,
    /// JSON and encoded passages of an earlier version of the document, whose passages are reused where its texts are unchanged.
    pub previous: Option<(Vec<u8>, Vec<u8>)>,
}

/// A version number from a client: `external`, or `external_gte` if `or_equal`.
#[derive(Debug, Clone, Copy)]
pub struct ExternalVersion {
    pub version: u64,
    pub or_equal: bool,
}

impl WriteOp {
    pub fn index(id: Option<String>, source: Source) -> Self {
        Self::new(WriteKind::Index, id, source)
    }

    pub fn create(id: Option<String>, source: Source) -> Self {
        Self::new(WriteKind::Create, id, source)
    }

    pub fn delete(id: String) -> Self {
        Self::new(WriteKind::Delete, Some(id), Source::default())
    }

    fn new(kind: WriteKind, id: Option<String>, source: Source) -> Self {
        Self {
            kind,
            id,
            source,
            routing: None,
            if_seq_no: None,
            if_primary_term: None,
            external_version: None,
            passages: None,
            previous: None,
        }
    }
}

/// The result of an acknowledged write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    Created,
    Updated,
    Deleted,
    NotFound,
}

impl WriteResult {
    /// Name of the result in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::NotFound => "not_found",
        }
    }

    /// HTTP status of the write's answer.
    pub fn status(self) -> u16 {
        match self {
            Self::Created => 201,
            Self::Updated | Self::Deleted => 200,
            Self::NotFound => 404,
        }
    }
}

/// What is known of a write once it is acknowledged.
#[derive(Debug, Clone)]
pub struct WriteOutcome {
    pub id: String,
    /// The routing that the document was written with.
    pub routing: Option<String>,
    pub seq_no: u64,
    pub version: u64,
    pub result: WriteResult,
    /// Number of passages of `semantic_text` fields of which the model has read only the first tokens.
    pub truncated: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Number, Value};

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            // What no JSON can say is null in a value already.
            any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
            any::<String>().prop_map(Value::String),
            "[\\u{0}-\\u{1f}\"\\\\\\u{7f}\\u{2028}\\u{feff}\\u{10ffff}]{0,8}".prop_map(Value::String),
        ];
        let tree = leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::hash_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        // Chains around the bound, of lists and objects in turn.
        (tree, prop_oneof![0..6_usize, 120..134_usize]).prop_map(|(tree, depth)| {
            (0..depth).fold(tree, |inner, level| match level % 2 {
                0 => Value::Array(vec![inner]),
                _ => Value::Object(Map::from_iter([("a".to_owned(), inner)])),
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn what_may_be_logged_is_read_again_as_it_was(inner in value(), name in any::<String>()) {
            let document = Value::Object(Map::from_iter([(name, inner)]));
            let source = Source::from_value(document.clone());
            match source.check_readable() {
                Ok(()) => {
                    prop_assert_eq!(&serde_json::from_slice::<Value>(&source.raw).unwrap(), &document);
                    prop_assert_eq!(&sparrow_request::body::parse_source(&source.raw).unwrap(), &document);
                }
                Err(error) => {
                    prop_assert_eq!(error.es_type(), "document_parsing_exception");
                    prop_assert!(serde_json::from_slice::<Value>(&source.raw).is_err());
                }
            }
        }
    }
}
