//! Including uploaded models in a snapshot, and restoring them from one.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_file_system as fs;
use sparrow_write_ahead_log::durable;

use super::Models;
use super::store::StoredModel;
use sparrow_request::error::EngineError;

/// An uploaded model whose files have been linked (or copied) for a snapshot.
pub struct LinkedUpload {
    pub id: String,
    /// The stored form of the model: its configuration, and length and CRC-32 of its files.
    pub config: Value,
    /// Names of its files.
    pub files: Vec<String>,
}

impl Models {
    /// Links (or copies) the files of all complete uploads into subfolders of `target`, named `0`, `1`, … in the order of the result.
    ///
    /// # Errors
    /// When they cannot be listed or linked.
    pub fn link_uploads(&self, target: &Path) -> Result<Vec<LinkedUpload>, EngineError> {
        // Nobody deletes one meanwhile.
        let held = self.store.lock();
        let mut linked = Vec::new();
        for (id, model) in held.models.iter().filter(|(_, model)| model.complete && model.directory.is_none())
        {
            let failed = |error: std::io::Error| {
                tracing::error!(model = id, %error, "the files of an uploaded model cannot be linked");
                EngineError::internal(format!("the files of model [{id}] cannot be copied: {}", error.kind()))
            };
            let source = self.store.folder(id).0;
            let folder = target.join(linked.len().to_string());
            durable::create_dir_all(&folder)?;
            let mut files = Vec::new();
            for name in durable::list_dir(&source)? {
                let (from, to) = (source.join(&name), folder.join(&name));
                if !from.is_file() {
                    continue;
                }
                fs::link_or_copy(&from, &to).map_err(failed)?;
                files.push(name);
            }
            linked.push(LinkedUpload { id: id.clone(), config: json!(model), files });
        }
        Ok(linked)
    }

    /// Checks the id and the stored form of a model in a snapshot.
    ///
    /// # Errors
    /// If the id is not valid, or no version of this server writes such a form.
    pub fn check_upload(id: &str, config: &Value) -> Result<(), EngineError> {
        if !super::id::is_valid_id(id) {
            return Err(EngineError::internal(format!(
                "the snapshot has a model with the unusable id [{id}]"
            )));
        }
        Self::stored(id, config).map(|_| ())
    }

    fn stored(id: &str, config: &Value) -> Result<StoredModel, EngineError> {
        serde_json::from_value(config.clone())
            .map_err(|error| EngineError::internal(format!("model [{id}] of the snapshot: {error}")))
    }

    /// Creates an uploaded model from the files in `folder`, which must be durable; an existing model of this id is left unchanged.
    ///
    /// # Errors
    /// If the files cannot be moved, or the store cannot be written.
    pub fn adopt_upload(&self, id: &str, config: &Value, folder: &Path) -> Result<(), EngineError> {
        let model = Self::stored(id, config)?;
        let mut held = self.store.lock();
        if self.registry.find(id).is_some() || held.models.contains_key(id) {
            tracing::info!(model = id, "a model of this id is there already and stays");
            return Ok(());
        }
        let target = self.store.folder(id).0;
        durable::remove_dir_all(&target)?;
        if let Some(parent) = target.parent() {
            durable::create_dir_all(parent)?;
        }
        fs::rename(folder, &target).map_err(|error| {
            tracing::error!(model = id, %error, "the files of a restored model cannot be moved");
            EngineError::internal(format!("the files of model [{id}] cannot be moved: {}", error.kind()))
        })?;
        if let Some(parent) = target.parent() {
            durable::sync_dir(parent)?;
        }
        let mut next = held.clone();
        next.models.insert(id.to_owned(), model.clone());
        self.store.replace(&mut held, next)?;
        self.registry.put(Arc::new(self.store.register(id, &model, self.options.folder.as_deref())));
        Ok(())
    }
}
