//! `semantic_text` fields: their texts are cut into passages, each is encoded, and the vectors travel with the document.

mod chunk;
pub(crate) mod embed;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};

use sparrow_mapping::Mapping;

use crate::Engine;
use crate::error::EngineError;
use crate::indices::{IndexHandle, WriteOp};
use crate::models::Purpose;

/// The way from an index back to the engine, whose models encode its texts. Set once the engine is there.
pub(crate) type EngineLink = Arc<OnceLock<Weak<Engine>>>;

/// The passages of a document that is about to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Embedded {
    /// As it is stored behind the document; empty for none.
    pub payload: Vec<u8>,
    /// Texts of which the model has read only the first tokens.
    pub truncated: u64,
    /// [`Mapping::semantic_key`] of the mapping that they were made for.
    pub key: u64,
}

impl IndexHandle {
    /// Encodes the texts of writes to `semantic_text` fields, all in few calls. Writes that have their passages already
    /// are left alone, so that a job may call this ahead of [`IndexHandle::write`], which does it otherwise.
    ///
    /// Gives for each write why it has to be refused, if it has to.
    pub(crate) fn embed(
        &self,
        mapping: &Mapping,
        ops: &mut [WriteOp],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
    ) -> Vec<Option<EngineError>> {
        if mapping.semantic_fields().is_empty() {
            return ops.iter().map(|_| None).collect();
        }
        let Some(engine) = self.engine.get().and_then(Weak::upgrade) else {
            let refuse = || Some(EngineError::internal("the engine is closing"));
            return ops.iter().map(|op| if op.passages.is_some() { None } else { refuse() }).collect();
        };
        embed::embed(&engine.models, &engine.models, mapping, ops, purpose, cancel).refused
    }
}
