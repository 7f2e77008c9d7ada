//! What can be done of a write before anybody else has to wait for it: reading documents against the mapping, making their terms, and
//! looking up their ids in the segments.

use parking_lot::Mutex;
use serde_json::Value;
use sparrow_analysis::Analysis;
use sparrow_mapping::passages::{self, FieldPassages, StoredParts};
use sparrow_mapping::{MAX_TERM, Mapping, ParsedDocument};
use sparrow_models::Purpose;
use sparrow_request::body::parse_source;
use sparrow_request::error::EngineError;
use sparrow_request::helpers::share_parts;
use sparrow_runtime::processors;
use sparrow_runtime::work::{self, Stopped};
use sparrow_tantivy_index::{MAX_TERM_BYTES, invert_texts};
use sparrow_wire::json::WrittenNumbers;
use sparrow_write_path::LookedUp;

use super::handle::{IndexHandle, check_routing};
use super::ids::{check_id, generate_id};
use super::op::{Embedded, Source, WriteKind, WriteOp};

/// Documents that a thread takes at a time.
const PORTION: usize = 32;
/// Bytes of sources from which on idle processors help: a thread is started in the time that 5,000 bytes take.
const WORTH_HELP: usize = 64 * 1024;

/// A document read against the mapping before the write lock is taken.
pub(super) struct Prepared {
    pub(super) kind: WriteKind,
    pub(super) id: String,
    pub(super) raw: Vec<u8>,
    /// The source as a value, where it came as one.
    pub(super) value: Option<Value>,
    pub(super) parsed: ParsedDocument,
    pub(super) widened: Option<Mapping>,
    pub(super) conditions: WriteOp,
    /// What its texts were encoded for, see [`Mapping::semantic_key`].
    pub(super) semantic_key: u64,
    pub(super) truncated: u64,
    /// A generated id is new by construction: nothing to look up.
    pub(super) id_is_new: bool,
    /// What the segments said of its id before anybody else had to wait.
    pub(super) looked_up: Option<LookedUp>,
}

impl Prepared {
    /// The write as it came; its passages are those of an earlier form now.
    pub(super) fn into_op(self) -> WriteOp {
        let Self { id, mut raw, value, conditions: mut op, .. } = self;
        op.id = Some(id);
        if op.kind != WriteKind::Delete {
            let StoredParts { json, passages, .. } = passages::split(&raw);
            let length = json.len();
            op.previous = passages.map(|passages| (json.to_vec(), passages.to_vec()));
            raw.truncate(length);
            op.source = Source { raw, value };
        }
        op
    }
}

impl IndexHandle {
    /// Reads the operations of a batch, in their order, those already refused aside. Idle processors help with a large batch.
    pub(super) fn prepare_all(
        &self,
        ops: Vec<(WriteOp, Option<EngineError>)>,
        mapping: &Mapping,
    ) -> Vec<Result<Box<Prepared>, EngineError>> {
        let bytes: usize = ops.iter().map(|(op, _)| op.source.raw.len()).sum();
        let helpers = match bytes < WORTH_HELP || ops.len() <= PORTION {
            true => 0,
            false => processors::idle().min(ops.len().div_ceil(PORTION) - 1),
        };
        let prepare_one = |(op, refused): (WriteOp, Option<EngineError>)| match refused {
            Some(error) => Err(error),
            None => self.prepare(op, mapping),
        };
        if helpers == 0 {
            return ops.into_iter().map(prepare_one).collect();
        }
        let mut ops = ops.into_iter();
        let portions: Vec<_> = std::iter::from_fn(|| {
            let portion: Vec<_> = ops.by_ref().take(PORTION).collect();
            (!portion.is_empty()).then(|| Mutex::new(portion))
        })
        .collect();
        let prepared = share_parts(helpers, portions.len(), |number| {
            let portion = std::mem::take(&mut *portions[number].lock());
            portion.into_iter().map(prepare_one).collect::<Vec<_>>()
        });
        prepared.into_iter().flatten().collect()
    }

    fn prepare(&self, op: WriteOp, mapping: &Mapping) -> Result<Box<Prepared>, EngineError> {
        // Hundreds of bytes, which change hands several times.
        let mut document = Box::new(self.read_op(op, mapping)?);
        if !document.id_is_new {
            // What fails here fails again under the lock, and is told there.
            document.looked_up = self.shard.look_up(&document.id).ok().flatten();
        }
        Ok(document)
    }

    fn read_op(&self, mut op: WriteOp, mapping: &Mapping) -> Result<Prepared, EngineError> {
        let id_is_new = op.id.is_none();
        let id = op.id.take().unwrap_or_else(generate_id);
        check_id(&id)?;
        // An empty routing counts as none, as in Elasticsearch. Requests, pipelines and scripts may all give one.
        op.routing = op.routing.take().filter(|routing| !routing.is_empty());
        check_routing(mapping, &self.name, &id, op.routing.as_deref())?;
        op.routing.as_deref().map_or(Ok(()), check_routing_length)?;
        if op.kind == WriteKind::Delete {
            return Ok(Prepared {
                kind: op.kind,
                id,
                raw: Vec::new(),
                value: None,
                parsed: ParsedDocument::default(),
                widened: None,
                conditions: op,
                semantic_key: 0,
                truncated: 0,
                id_is_new,
                looked_up: None,
            });
        }
        op.source.check_readable()?;
        let mut document = self.prepare_document(op, id, mapping)?;
        if let Some(widened) = document.widened.take_if(|wide| wide.semantic_key() != document.semantic_key) {
            // A template made a field of this kind of something that the document brings.
            let id = document.id.clone();
            let mut op = document.into_op();
            if let Some(Some(refused)) =
                self.embed(&widened, std::slice::from_mut(&mut op), Purpose::Ingest, None).pop()
            {
                return Err(refused);
            }
            document = self.prepare_document(op, id, mapping)?;
        }
        document.id_is_new = id_is_new;
        Ok(document)
    }

    fn prepare_document(
        &self,
        mut op: WriteOp,
        id: String,
        mapping: &Mapping,
    ) -> Result<Prepared, EngineError> {
        let Source { mut raw, value } = std::mem::take(&mut op.source);
        let Embedded { payload, truncated, key } = op.passages.take().unwrap_or_default();
        let passages = (!payload.is_empty()).then_some(&payload[..]);
        let routing = op.routing.as_deref();
        let parts = StoredParts { json: &raw, passages, routing };
        let (parsed, widened) = self.parse(mapping, &id, parts, value.as_ref())?;
        passages::append(&mut raw, passages, routing);
        Ok(Prepared {
            kind: op.kind,
            id,
            raw,
            value,
            parsed,
            widened,
            conditions: op,
            semantic_key: key,
            truncated,
            id_is_new: false,
            looked_up: None,
        })
    }

    /// Reads a document against a mapping, and makes its terms: from its JSON, and from `value` where the same is there
    /// already. Returns the extended mapping too, if the document adds fields.
    pub(super) fn parse(
        &self,
        mapping: &Mapping,
        id: &str,
        parts: StoredParts<'_>,
        value: Option<&Value>,
    ) -> Result<(ParsedDocument, Option<Mapping>), EngineError> {
        let StoredParts { json, passages, routing } = parts;
        let limits = self.metadata.read().settings.limits();
        let parse = |value: &Value, numbers: Option<&WrittenNumbers>| {
            let parsed = mapping.parse_written_document(id, value, numbers, &limits);
            parsed.map_err(|error| EngineError::from(error.locate(json)))
        };
        let (mut parsed, mut widened) = match value {
            Some(value) => parse(value, WrittenNumbers::of(json).as_ref())?,
            None => match mapping.read_document(id, json, &limits) {
                Some(read) => read,
                None => parse(&parse_source(json)?, WrittenNumbers::of(json).as_ref())?,
            },
        };
        add_stored_parts(&mut parsed, passages, routing);
        if let Some(payload) = passages {
            let fields = decode(payload)?;
            let current = widened.as_ref().unwrap_or(mapping);
            self.check_models(current, &fields)?;
            let wider = current
                .attach_passages(&mut parsed, fields, &|id| self.similarity_of(id))
                .map_err(EngineError::illegal_argument)?;
            widened = wider.or(widened);
        }
        let snapshot = self.snapshot();
        if let Some(widened) = &widened {
            // A template may have named an analyzer after the field.
            widened.check_analyzers(snapshot.analysis())?;
        }
        let current = widened.as_ref().unwrap_or(mapping);
        self.flattened_keys.admit(current, &parsed, &snapshot)?;
        make_terms(current, snapshot.analysis(), &mut parsed)?;
        Ok((parsed, widened))
    }

    /// What compares the vectors of an endpoint best, if it is known.
    fn similarity_of(&self, inference_id: &str) -> Option<String> {
        self.models.get()?.upgrade()?.inference_target(inference_id)?.similarity
    }
}

/// Adds the routing to a document, and what is stored behind its JSON to what is stored of a filtered source.
pub(super) fn add_stored_parts(parsed: &mut ParsedDocument, passages: Option<&[u8]>, routing: Option<&str>) {
    if let Some(routing) = routing {
        parsed.add_routing(routing);
    }
    if let Some(stored) = &mut parsed.stored_source {
        // Passages belong to texts: where no source is stored, they are not stored either.
        let passages = passages.filter(|_| !stored.is_empty());
        passages::append(stored, passages, routing);
    }
}

/// Checks that a routing can be a term of the index.
///
/// # Errors
/// Illegal argument when it is longer than a term may be.
pub(crate) fn check_routing_length(routing: &str) -> Result<(), EngineError> {
    if routing.len() > MAX_TERM {
        return Err(EngineError::illegal_argument(format!(
            "routing is too long, must be no longer than {MAX_TERM} bytes but was: {}",
            routing.len()
        )));
    }
    Ok(())
}

/// Makes the terms of a document's texts.
///
/// # Errors
/// When they are too many, or take more memory than the request may use.
fn make_terms(
    mapping: &Mapping,
    analysis: &Analysis,
    parsed: &mut ParsedDocument,
) -> Result<(), EngineError> {
    if let Some(field) = invert_texts(mapping, analysis, parsed) {
        return Err(EngineError::illegal_argument(format!(
            "the texts of the document have more than [{}mb] of terms, the most that one document may have: field [{field}] is beyond that",
            MAX_TERM_BYTES >> 20
        )));
    }
    match work::check() {
        Err(Stopped::Exceeded(limit)) => Err(limit.into()),
        // A batch that has begun is written to its end.
        Err(Stopped::Cancelled) | Ok(()) => Ok(()),
    }
}

/// Reads the passages behind a stored document.
///
/// # Errors
/// An internal error when they are damaged.
pub(super) fn decode(payload: &[u8]) -> Result<Vec<FieldPassages>, EngineError> {
    passages::decode(payload)
        .ok_or_else(|| EngineError::internal("the passages of a document cannot be read"))
}
