//! `semantic_text` fields: their texts are cut into passages, each is encoded, and the vectors travel with the document.

mod chunk;
pub mod embed;
pub mod over_cluster;

pub use self::chunk::chunks_while;

use std::sync::Weak;
use std::sync::atomic::AtomicBool;

use sparrow_mapping::passages::FieldPassages;
use sparrow_mapping::{Mapping, field_of};

use super::handle::IndexHandle;
use super::op::WriteOp;
use sparrow_models::{Models, Purpose, TextEncoder};
use sparrow_request::error::EngineError;

impl IndexHandle {
    /// Encodes the texts for the `semantic_text` fields of all these writes in few calls. Writes that have their passages already
    /// are left alone, so that a job may call this ahead of [`IndexHandle::write`], which does it otherwise.
    ///
    /// Gives for each write the reason why it has to be refused; none if it is not.
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

    /// Refuses passages whose model differs from the one whose vectors the field holds.
    ///
    /// # Errors
    /// A message that names the model and says what to do.
    pub(super) fn check_models(
        &self,
        mapping: &Mapping,
        passages: &[FieldPassages],
    ) -> Result<(), EngineError> {
        for made in passages {
            let Some(settings) = mapping.slot(&made.path) else { continue };
            let Some(stored) = &settings.fingerprint else { continue };
            if made.fingerprint == *stored || made.fingerprint.is_empty() {
                continue;
            }
            let models = self.models.get().and_then(Weak::upgrade);
            let id = &settings.inference_id;
            let compares = |models: &Models| {
                models.fingerprint(id).as_ref() == Some(&made.fingerprint)
                    && models.compares_with(id, stored) == Some(true)
            };
            if !models.as_deref().is_some_and(compares) {
                return Err(other_model(models.as_deref(), field_of(&made.path), id, stored));
            }
        }
        Ok(())
    }
}

/// The error for a text whose endpoint would give it a vector of another model than the one whose vectors its field holds.
fn other_model(models: Option<&Models>, field: &str, inference_id: &str, stored: &str) -> EngineError {
    let named = models.and_then(|models| models.name_of(stored));
    let stored = named.as_deref().unwrap_or(stored);
    EngineError::illegal_argument(format!(
        "field [{field}] holds the output of model [{stored}] and cannot take that of [{inference_id}]: their vocabularies or \
         weights differ; [_ext/model/_change] gives the field another model, also the one that [{inference_id}] has now"
    ))
}
