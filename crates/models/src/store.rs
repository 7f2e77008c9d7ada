//! The store of what requests did to models, kept across restarts: created models, aliases and deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sparrow_write_ahead_log::{DataDir, StorageError};

use super::config::ModelConfig;
use super::id::is_valid_id;
use super::packed::PackedFolder;
use super::registry::{Origin, RegisteredModel, Registry};
use super::upload::Folder;
use sparrow_request::error::EngineError;
use sparrow_write_ahead_log::DamagedFile;
use sparrow_write_ahead_log::stores::{self, Unusable};

/// Name of the store in the data directory.
const STORE: &str = "trained_models";
/// Folder of uploaded models in the data directory.
const UPLOADS: &str = "models";

/// The stored form of a model that a request created.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredModel {
    pub create_time: u64,
    pub config: ModelConfig,
    /// Name of a model directory in the configured folder; `None` for an uploaded model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Length of the graph in bytes and its number of parts; `None` before the first part is uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<(u64, u64)>,
    /// Whether all parts of the upload have arrived.
    #[serde(default)]
    pub complete: bool,
    /// Length and CRC-32 of each file of a complete model; empty for a model that an older version completed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, (u64, u32)>,
}

/// The contents of the store.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contents {
    pub models: BTreeMap<String, StoredModel>,
    /// Models that this version cannot read: kept as they are stored, until they are deleted. Written among the models.
    #[serde(skip)]
    pub unusable: BTreeMap<String, Unusable>,
    pub aliases: BTreeMap<String, String>,
    /// Ids of models that were deleted and whose files were kept, as they were not uploaded.
    pub hidden: BTreeSet<String>,
    /// Models that come with the server and were installed by request, as clients do.
    pub installed: BTreeSet<String>,
}

/// The store, which is locked while a model is created, changed or deleted.
#[derive(Debug)]
pub(super) struct Store {
    data: Arc<DataDir>,
    contents: Mutex<Contents>,
}

impl Store {
    /// Reads the store and registers its models. A model that this version cannot read is registered as unusable, with
    /// the reason.
    ///
    /// # Errors
    /// When the store is damaged or cannot be read.
    pub fn open(data: Arc<DataDir>, registry: &Registry, folder: Option<&Path>) -> Result<Self, EngineError> {
        let contents = read(&data)?;
        let store = Self { data, contents: Mutex::new(contents) };
        let mut contents = store.lock();
        let before = json!(*contents);
        for (id, model) in &contents.unusable {
            tracing::error!(model = id, reason = model.reason, "a stored model cannot be used");
            registry.put(Arc::new(RegisteredModel::kept(id.clone(), model.clone())));
        }
        for (id, model) in &mut contents.models {
            store.complete_after_crash(id, model);
            registry.put(Arc::new(store.register(id, model, folder)));
        }
        if json!(*contents) != before
            && let Err(error) = store.write(&contents)
        {
            tracing::error!(%error, "the stored models cannot be written");
        }
        registry.name(contents.hidden.clone(), contents.aliases.clone());
        drop(contents);
        Ok(store)
    }

    /// Locks the contents, so that no one else changes them.
    pub fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock()
    }

    /// Replaces the contents and writes them durably.
    ///
    /// # Errors
    /// When it cannot be written; nothing has changed then.
    pub fn replace(&self, held: &mut MutexGuard<'_, Contents>, next: Contents) -> Result<(), StorageError> {
        self.write(&next)?;
        **held = next;
        Ok(())
    }

    fn write(&self, contents: &Contents) -> Result<(), StorageError> {
        let mut value = json!(contents);
        if let Some(models) = value["models"].as_object_mut() {
            let kept = contents.unusable.iter();
            models.extend(kept.map(|(id, model)| (id.clone(), model.definition.clone())));
        }
        self.data.write_json(STORE, &value)
    }

    /// The folder of an uploaded model. The id must be valid, as it names the folder.
    pub fn folder(&self, id: &str) -> Folder {
        Folder(self.data.path().join(UPLOADS).join(id))
    }

    /// The folder of packed weights.
    pub fn packed(&self) -> PackedFolder {
        PackedFolder::new(self.data.path())
    }

    /// Builds the registry's form of a stored model.
    pub fn register(&self, id: &str, model: &StoredModel, folder: Option<&Path>) -> RegisteredModel {
        let (id_text, config) = (id.to_owned(), model.config.clone());
        let packed = self.packed();
        match &model.directory {
            Some(name) => {
                // Without the folder that it was named in, the model is one whose files are gone.
                let nowhere = || self.data.path().join(UPLOADS).join(".no-folder-of-models");
                let directory = folder.map_or_else(nowhere, Path::to_path_buf).join(name);
                RegisteredModel::of(id_text, Origin::Linked, directory, &packed, config, model.create_time)
            }
            None if model.complete => {
                let directory = self.folder(id).0;
                if let Some((file, reason)) = self.folder(id).damages(&model.files).into_iter().next() {
                    let reason = format!("models/{id}/{file} is damaged: {reason}");
                    tracing::error!(model = id, reason, "an uploaded model cannot be used");
                    return RegisteredModel::damaged(id_text, directory, config, model.create_time, reason);
                }
                RegisteredModel::of(id_text, Origin::Uploaded, directory, &packed, config, model.create_time)
            }
            None => RegisteredModel::incomplete(id_text, self.folder(id).0, config, model.create_time),
        }
    }

    /// Builds the model directory of an upload of which all parts had arrived before a crash.
    fn complete_after_crash(&self, id: &str, model: &mut StoredModel) {
        let Some((length, parts)) = model.definition.filter(|_| model.directory.is_none()) else { return };
        let folder = self.folder(id);
        if model.complete {
            folder.drop_parts();
        } else if folder.is_whole(parts) {
            match folder.assemble(id, &model.config, &self.packed().file(id), length, parts) {
                Ok(_) => {
                    model.complete = true;
                    model.files = folder.sums();
                }
                Err(error) => {
                    tracing::warn!(model = id, %error, "no model could be made of what was uploaded")
                }
            }
        }
    }
}

/// Files of uploaded models whose length or CRC-32 is not the stored one.
pub fn damages(data: &DataDir) -> Vec<DamagedFile> {
    let contents: Contents = match data.read_json(STORE) {
        Ok(Some(value)) => serde_json::from_value(value).unwrap_or_default(),
        // Said of the store.
        _ => return Vec::new(),
    };
    let uploaded = contents.models.iter().filter(|(_, model)| model.complete && model.directory.is_none());
    uploaded
        .flat_map(|(id, model)| {
            let folder = Folder(data.path().join(UPLOADS).join(id));
            folder.damages(&model.files).into_iter().map(move |(file, reason)| DamagedFile {
                file: format!("{UPLOADS}/{id}/{file}"),
                reason,
                affected: format!("model [{id}]"),
            })
        })
        .collect()
}

fn read(data: &DataDir) -> Result<Contents, EngineError> {
    let mut stored = stores::read_members(data, STORE)?;
    if stored.is_empty() {
        return Ok(Contents::default());
    }
    let Some(Value::Object(models)) = stored.insert("models".into(), json!({})) else {
        return Err(stores::damaged(data, STORE, "[models] is not an object").into());
    };
    let mut contents: Contents = serde_json::from_value(Value::Object(stored))
        .map_err(|error| stores::damaged(data, STORE, error.to_string()))?;
    for (id, definition) in models {
        // It names a folder.
        if !is_valid_id(&id) {
            return Err(stores::damaged(data, STORE, format!("[{id}] is not an id of a model")).into());
        }
        match StoredModel::deserialize(&definition) {
            Ok(model) => {
                contents.models.insert(id, model);
            }
            Err(error) => {
                contents.unusable.insert(id, Unusable { definition, reason: error.to_string() });
            }
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Value {
        json!(StoredModel {
            create_time: 7,
            config: ModelConfig::plain(),
            directory: Some("m".into()),
            definition: None,
            complete: true,
            files: BTreeMap::new(),
        })
    }

    #[test]
    fn a_model_of_a_later_version_stays_in_the_store_and_says_why_it_cannot_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::open(folder.path()).unwrap());
        let mut later = model();
        later["of_a_later_version"] = json!({"a": 1});
        let stored = json!({
            "models": {"known": model(), "later": later}, "aliases": {"a": "known"}, "hidden": [], "installed": [],
        });
        data.write_json(STORE, &stored).unwrap();
        let registry = Registry::default();
        let store = Store::open(data.clone(), &registry, None).unwrap();
        let found = registry.find("later").unwrap();
        let reason = found.info().unwrap_err().to_string();
        assert!(reason.contains("of_a_later_version"), "{reason}");
        assert!(found.load().is_err());
        let mut held = store.lock();
        let mut next = held.clone();
        next.aliases.insert("b".into(), "known".into());
        store.replace(&mut held, next).unwrap();
        let mut expected = stored;
        expected["aliases"]["b"] = "known".into();
        assert_eq!(data.read_json(STORE).unwrap(), Some(expected));
    }

    #[test]
    fn a_damaged_store_is_refused_and_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::open(folder.path()).unwrap());
        let path = folder.path().join("store").join(format!("{STORE}.json"));
        for text in ["", "{", "{\"format\":1,\"checksum\":7,\"value\":{}}"] {
            std::fs::write(&path, text).unwrap();
            let error = Store::open(data.clone(), &Registry::default(), None).unwrap_err().to_string();
            assert!(error.contains("trained_models.json is damaged"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        for value in [json!([1]), json!({"models": []}), json!({"models": {}, "aliases": 3})] {
            data.write_json(STORE, &value).unwrap();
            assert!(Store::open(data.clone(), &Registry::default(), None).is_err(), "{value}");
        }
    }
}
