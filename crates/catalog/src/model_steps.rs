//! The change of the model of a `semantic_text` field: a second slot of vectors that is filled, searched instead of the first, and
//! then discarded or kept. Each step is one write of the metadata, with mapping and state together: after a crash it was taken or
//! not.

use std::sync::Arc;

use serde_json::Value;
use sparrow_mapping::Mapping;

use super::handle::IndexHandle;
use super::metadata::Metadata;
use super::model_change::{ChangeState, Filling, ModelChange, conflict};
use sparrow_request::error::EngineError;

/// Reserves the second slot of an index for one task until this is dropped.
pub struct FillingGuard {
    handle: Arc<IndexHandle>,
    pub filling: Arc<Filling>,
}

impl Drop for FillingGuard {
    fn drop(&mut self) {
        *self.handle.filling.lock() = None;
    }
}

impl IndexHandle {
    /// The change of a field's model that is in progress, if any.
    pub fn model_change(&self) -> Option<ModelChange> {
        self.metadata.read().model_change.clone()
    }

    /// Reserves the second slot for a task that fills it.
    ///
    /// # Errors
    /// Status 409 when another task has reserved it.
    pub fn claim_filling(self: &Arc<Self>) -> Result<FillingGuard, EngineError> {
        let mut current = self.filling.lock();
        if let Some(filling) = &*current {
            return Err(filling.conflict(&self.name));
        }
        *self.unwritten_failure.lock() = None;
        let filling = Arc::new(Filling::default());
        *current = Some(Arc::clone(&filling));
        Ok(FillingGuard { handle: Arc::clone(self), filling })
    }

    /// Begins a change of a field's model: from now on, documents that are written get vectors of both models, those of the second
    /// by `definition`.
    ///
    /// # Errors
    /// Status 409 when another change is not over; an invalid definition.
    pub fn begin_model_change(&self, change: ModelChange, definition: &Value) -> Result<(), EngineError> {
        self.step(|steps| steps.begin(change, definition))
    }

    /// Notes that filling stopped, and why; nothing when it goes on. What a disk does not take is remembered until the server ends, after
    /// which filling goes on by itself.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn note_filling(&self, failure: Option<String>) -> Result<(), EngineError> {
        let noted = self.step(|steps| {
            if let Some(change) = steps.change.as_mut() {
                change.failure.clone_from(&failure);
            }
            Ok(steps.mapping.clone())
        });
        if noted.is_err() {
            *self.unwritten_failure.lock() = failure;
        }
        noted
    }

    /// Why filling stopped, if it did, whether or not the disk took a note of it.
    pub fn filling_failure(&self, change: &ModelChange) -> Option<String> {
        change.failure.clone().or_else(|| self.unwritten_failure.lock().clone())
    }

    /// Saves that all documents have vectors of both models, and the result of a comparison; switches searches to the new vectors
    /// if the change is automatic.
    ///
    /// # Errors
    /// When there is no change, or the disk refuses.
    pub fn model_is_filled(&self, compared: Option<Value>) -> Result<(), EngineError> {
        self.step(|steps| steps.filled(compared))
    }

    /// Switches searches to the other model's vectors: to the new ones if `forward`, back to the old ones otherwise.
    ///
    /// # Errors
    /// Status 409 when not all documents have both, or searches use them already.
    pub fn exchange_models(&self, forward: bool) -> Result<ModelChange, EngineError> {
        self.step(|steps| steps.exchange(forward))?;
        self.model_change().ok_or_else(|| no_change(&self.name))
    }

    /// Ends the change and drops the vectors that searches do not use. Those in segments go when these are merged, and those beside
    /// a stored document when it is written again.
    ///
    /// # Errors
    /// When there is no change, or the disk refuses.
    pub fn end_model_change(&self) -> Result<ModelChange, EngineError> {
        let mut ended = None;
        self.step(|steps| {
            ended.clone_from(steps.change);
            steps.end()
        })?;
        ended.ok_or_else(|| no_change(&self.name))
    }

    /// Saves metadata with the mapping that `change` returns, and then applies the mapping to the segments, while nothing is
    /// written.
    fn step(
        &self,
        change: impl FnOnce(&mut Steps<'_>) -> Result<Mapping, EngineError>,
    ) -> Result<(), EngineError> {
        let mut changer = self.changer()?;
        // What a step says of documents has to be so after a crash, also where writes are acknowledged before the disk has them.
        changer.sync_log().map_err(|error| self.failed(error))?;
        let mut mapping = None;
        self.replace_metadata(&changer, |metadata| {
            let Metadata { mapping: current, model_change, .. } = metadata;
            let next = change(&mut Steps { index: &self.name, mapping: current, change: model_change })?;
            metadata.mapping = next;
            mapping = Some(metadata.mapping.clone());
            Ok(())
        })?;
        match mapping.filter(|mapping| *mapping != *self.mapping()) {
            Some(mapping) => changer.widen(&mapping).map_err(|error| self.failed(error)),
            None => Ok(()),
        }
    }
}

/// A change of a model, in whatever keeps its index: each step changes it, and gives the mapping that follows.
pub struct Steps<'a> {
    pub index: &'a str,
    pub mapping: &'a Mapping,
    pub change: &'a mut Option<ModelChange>,
}

impl Steps<'_> {
    /// # Errors
    /// As [`IndexHandle::begin_model_change`].
    pub fn begin(&mut self, change: ModelChange, definition: &Value) -> Result<Mapping, EngineError> {
        if let Some(other) = &self.change {
            return Err(conflict(format!(
                "the model of field [{}] of index [{}] is being changed, and the change is [{}]: a change is over \
                 when it is cancelled or its old vectors are dropped",
                other.field,
                self.index,
                other.state.name()
            )));
        }
        let mapping = self.mapping.with_second_slot(&change.field, definition)?;
        *self.change = Some(change);
        Ok(mapping)
    }

    /// # Errors
    /// When there is no change, or it has been filled: another server may have gone on with it meanwhile.
    pub fn filled(&mut self, compared: Option<Value>) -> Result<Mapping, EngineError> {
        let change = self.change.as_mut().ok_or_else(|| no_change(self.index))?;
        change.expect(ChangeState::Filling)?;
        change.failure = None;
        change.compared = compared;
        // The queries were for this.
        change.compare = Value::Null;
        if !change.automatic {
            change.state = ChangeState::Ready;
            return Ok(self.mapping.clone());
        }
        change.state = ChangeState::Switched;
        Ok(self.mapping.with_slots_exchanged(&change.field))
    }

    /// # Errors
    /// As [`IndexHandle::exchange_models`].
    pub fn exchange(&mut self, forward: bool) -> Result<Mapping, EngineError> {
        let (from, to) = match forward {
            true => (ChangeState::Ready, ChangeState::Switched),
            false => (ChangeState::Switched, ChangeState::Ready),
        };
        let change = self.change.as_mut().ok_or_else(|| no_change(self.index))?;
        change.expect(from)?;
        change.state = to;
        Ok(self.mapping.with_slots_exchanged(&change.field))
    }

    /// # Errors
    /// When there is no change.
    pub fn end(&mut self) -> Result<Mapping, EngineError> {
        let change = self.change.take().ok_or_else(|| no_change(self.index))?;
        Ok(self.mapping.without_second_slot(&change.field))
    }
}

impl ModelChange {
    /// # Errors
    /// A conflict when the change is in another state.
    fn expect(&self, wanted: ChangeState) -> Result<(), EngineError> {
        if self.state == wanted {
            return Ok(());
        }
        Err(conflict(format!(
            "the change of the model of field [{}] is [{}], it has to be [{}]",
            self.field,
            self.state.name(),
            wanted.name()
        )))
    }
}

fn no_change(index: &str) -> EngineError {
    EngineError::resource_not_found(format!("no model of index [{index}] is being changed"))
}
