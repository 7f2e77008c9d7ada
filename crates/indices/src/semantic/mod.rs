//! `semantic_text` fields: their texts are cut into passages, each is encoded, and the vectors travel with the document.

mod chunk;
pub mod embed;

use std::sync::Weak;
use std::sync::atomic::AtomicBool;

use sparrow_mapping::Mapping;

use super::handle::IndexHandle;
use super::op::WriteOp;
use sparrow_call::error::EngineError;
use sparrow_models::Purpose;

impl IndexHandle {
    /// Encodes the texts of writes to `semantic_text` fields, all in few calls. Writes that have their passages already
    /// are left alone, so that a job may call this ahead of [`IndexHandle::write`], which does it otherwise.
    ///
    /// Gives for each write why it has to be refused, if it has to.
    pub fn embed(
        &self,
        mapping: &Mapping,
        ops: &mut [WriteOp],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
    ) -> Vec<Option<EngineError>> {
        if mapping.semantic_fields().is_empty() {
            return ops.iter().map(|_| None).collect();
        }
        let Some(models) = self.models.get().and_then(Weak::upgrade) else {
            let refuse = || Some(EngineError::internal("the engine is closing"));
            return ops.iter().map(|op| if op.passages.is_some() { None } else { refuse() }).collect();
        };
        embed::embed(&models, &*models, mapping, ops, purpose, cancel).refused
    }
}
