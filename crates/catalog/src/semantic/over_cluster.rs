//! The passages of documents whose index is kept elsewhere, by a cluster: they are made as those of an index here, and given as what is
//! stored beside the document there.

use std::sync::atomic::AtomicBool;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use sparrow_mapping::passages::{self, FieldPassages, Passage};
use sparrow_mapping::{Mapping, ParsedDocument, field_of, number_of};
use sparrow_models::{Models, Purpose};
use sparrow_request::error::EngineError;

use super::embed::embed;
use crate::op::{Source, WriteOp};
use crate::settings::insert_nested;

/// A document to be written elsewhere.
#[derive(Debug)]
pub struct Document {
    /// The source that is to be written.
    pub source: Value,
    /// The JSON and the payload of an earlier version of it, whose passages stay where its texts are the same.
    pub previous: Option<(Vec<u8>, Vec<u8>)>,
}

/// Makes the passages of documents. Gives for each the object to be stored beside it: the payload of all its passages, by which the next
/// version is told from this one, and for each field the vectors of its passages. `None` for a document without passages.
///
/// `mapping` is extended by what the first vectors of a field settle about it. With `paced`, texts wait for room in the queue of a model.
///
/// # Errors
/// For each document the reason why it has to be refused.
pub fn companions(
    models: &Models,
    mapping: &mut Mapping,
    documents: Vec<Document>,
    paced: bool,
    cancel: Option<&AtomicBool>,
) -> Vec<Result<Option<Value>, EngineError>> {
    let mut ops: Vec<WriteOp> = documents
        .into_iter()
        .map(|document| WriteOp {
            previous: document.previous,
            ..WriteOp::index(None, Source::from_value(document.source))
        })
        .collect();
    let purpose = if paced { Purpose::PacedIngest } else { Purpose::Ingest };
    let refused = embed(models, models, mapping, &mut ops, purpose, cancel).refused;
    let similarity = |id: &str| models.inference_target(id)?.similarity;
    ops.into_iter()
        .zip(refused)
        .map(|(op, refused)| {
            if let Some(error) = refused {
                return Err(error);
            }
            let payload = op.passages.unwrap_or_default().payload;
            if payload.is_empty() {
                return Ok(None);
            }
            let fields = crate::prepare::decode(&payload)?;
            let shown = companion(&payload, &fields);
            let wider = mapping
                .attach_passages(&mut ParsedDocument::default(), fields, &similarity)
                .map_err(EngineError::illegal_argument)?;
            if let Some(wider) = wider {
                *mapping = wider;
            }
            Ok(Some(shown))
        })
        .collect()
}

/// The bytes of a payload that was stored as text.
///
/// # Errors
/// When it cannot be read, as something else than this server has changed it.
pub fn payload(text: &str) -> Result<Vec<u8>, EngineError> {
    let bytes = BASE64.decode(text).ok().filter(|bytes| passages::decode(bytes).is_some());
    bytes.ok_or_else(|| {
        EngineError::illegal_argument(
            "the passages that are stored with the document cannot be read; index it again",
        )
    })
}

/// A payload as text, as it is stored beside a document elsewhere.
pub fn text_of(payload: &[u8]) -> String {
    BASE64.encode(payload)
}

fn companion(payload: &[u8], fields: &[FieldPassages]) -> Value {
    let mut shown = Map::new();
    for field in fields {
        let passages: Vec<Value> = field.chunks.iter().map(vectors_of).collect();
        // While a model is changed, the vectors of both stand side by side.
        let place = match number_of(&field.path) {
            0 => "fields".to_owned(),
            number => format!("slot{number}"),
        };
        if let Value::Object(vectors) = shown.entry(place).or_insert_with(|| json!({})) {
            insert_nested(vectors, field_of(&field.path), &passages.into());
        }
    }
    shown.insert("payload".to_owned(), text_of(payload).into());
    shown.into()
}

fn vectors_of(passage: &Passage) -> Value {
    let mut shown = Map::new();
    if let Some(tokens) = passage.vector.sparse() {
        // A cluster takes no weight of 0, with which nothing is found.
        let weighted = tokens.iter().filter(|(_, weight)| *weight > 0.0);
        let tokens: Map<String, Value> =
            weighted.map(|(token, weight)| (token.to_string(), json!(weight))).collect();
        if !tokens.is_empty() {
            shown.insert("tokens".to_owned(), tokens.into());
        }
    }
    if let Some(vector) = passage.vector.dense() {
        shown.insert("vector".to_owned(), json!(vector));
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use sparrow_mapping::passages::PassageVector;

    use super::*;

    #[test]
    fn vectors_stand_where_their_fields_do_and_the_payload_says_all() {
        let passage = |vector| Passage { source: 0, start: 0, end: 4, vector };
        let field = |path: &str, vector| FieldPassages {
            path: path.to_owned(),
            sources: vec![path.to_owned()],
            chunks: vec![passage(vector)],
            ..FieldPassages::default()
        };
        let tokens = vec![("a".into(), 0.5), ("none".into(), 0.0)];
        let fields = [
            field("inner.both", PassageVector::Hybrid { sparse: tokens, dense: vec![1.0, -2.0] }),
            field("inner.both..2", PassageVector::Dense(vec![3.0])),
            field("inner.sparse", PassageVector::Sparse(Vec::new())),
        ];
        let shown = companion(&passages::encode(&fields), &fields);
        assert_eq!(
            shown["fields"],
            json!({"inner": {"both": [{"tokens": {"a": 0.5}, "vector": [1.0, -2.0]}], "sparse": [{}]}})
        );
        assert_eq!(shown["slot2"], json!({"inner": {"both": [{"vector": [3.0]}]}}));
        let stored = payload(shown["payload"].as_str().unwrap()).unwrap();
        assert_eq!(passages::decode(&stored).unwrap(), fields);
        assert!(payload("AAAA").is_err() && payload("~").is_err());
    }
}
