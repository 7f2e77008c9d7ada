//! The metadata of an index outside of its own folder: one small store for each index, replaced atomically.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sparrow_mapping::Mapping;
use sparrow_write_ahead_log::DataDir;

use super::model_change::ModelChange;
use super::settings::Settings;
use sparrow_request::error::EngineError;

/// Prefix of the stores that hold metadata.
pub const STORE_PREFIX: &str = "index-";

/// Metadata of one index. An index exists as long as its metadata does.
#[derive(Debug, Clone)]
pub struct Metadata {
    pub name: String,
    pub uuid: String,
    pub creation_millis: u64,
    /// Name of the folder that holds the segments. An upgrade writes another folder and then changes this name, so that the index
    /// is in the old or the new format but never between them.
    pub folder: String,
    /// A closed index takes neither reads nor writes of documents.
    pub closed: bool,
    /// The name as the request that created the index gave it, with date math unresolved.
    pub provided_name: Option<String>,
    pub settings: Settings,
    pub mapping: Mapping,
    /// Field path → fingerprint of the model whose vectors the field holds.
    pub field_models: BTreeMap<String, String>,
    /// The change of the model of a field, from its beginning until its old vectors are dropped.
    pub model_change: Option<ModelChange>,
    /// Uuid of the closed index that this one replaced: as soon as this is stored, that index no longer exists.
    pub replaces: Option<String>,
}

impl Metadata {
    /// Replaces the store.
    ///
    /// # Errors
    /// When it cannot be written; the old one is then still there.
    pub fn save(&self, data: &DataDir) -> Result<(), EngineError> {
        Ok(data.write_json(&store_name(&self.uuid), &self.to_json())?)
    }

    /// The metadata as JSON, in the form in which it is stored.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "uuid": self.uuid,
            "creation_millis": self.creation_millis,
            "folder": self.folder,
            "closed": self.closed,
            "provided_name": self.provided_name,
            "settings": self.settings.to_flat(),
            "mapping": self.mapping.to_json(),
            "field_models": self.field_models,
        });
        let slots = self.mapping.slots_to_json();
        if !slots.is_null() {
            value["slots"] = slots;
        }
        if let Some(change) = &self.model_change {
            // Strings, flags and values always serialise.
            value["model_change"] = serde_json::to_value(change).unwrap_or_default();
        }
        if let Some(replaced) = &self.replaces {
            value["replaces"] = replaced.as_str().into();
        }
        value
    }

    /// The index names that can be found in a store which may be damaged: its current name, and the one that it was created with.
    /// As there are two, a single damaged byte leaves one of them intact.
    pub fn names_in_damaged(data: &DataDir, store: &str) -> BTreeSet<String> {
        let path = data.path().join("store").join(format!("{store}.json"));
        let bytes = sparrow_file_system::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        ["\"name\":\"", "\"provided_name\":\""]
            .iter()
            .filter_map(|member| Some(text.split_once(member)?.1.split_once('"')?.0.to_owned()))
            // A name with date math is not the name of the index.
            .filter(|name| super::names::is_possible(name))
            .collect()
    }

    /// Reads the metadata in a store; `None` if there is no such store.
    ///
    /// # Errors
    /// When it cannot be read or is not what [`Metadata::save`] wrote.
    pub fn load(data: &DataDir, store: &str) -> Result<Option<Self>, EngineError> {
        let metadata = data.read_json(store)?.map(|value| Self::from_json(&value)).transpose()?;
        if let Some(Self { name, mapping, .. }) = &metadata {
            for (field, reason) in mapping.unusable_formats() {
                tracing::warn!(
                    index = name,
                    field,
                    reason,
                    "a format of dates that an earlier version took reads no dates any more; reindex into an index with \
                     another format"
                );
            }
        }
        Ok(metadata)
    }

    /// Reads the JSON form that [`Metadata::to_json`] made.
    ///
    /// # Errors
    /// When a member is missing or invalid.
    pub fn from_json(value: &Value) -> Result<Self, EngineError> {
        let text = |name: &str| {
            value[name]
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| EngineError::internal(format!("metadata of an index has no [{name}]")))
        };
        let models = value["field_models"].as_object().into_iter().flatten();
        Ok(Self {
            name: text("name")?,
            uuid: text("uuid")?,
            creation_millis: value["creation_millis"].as_u64().unwrap_or_default(),
            folder: text("folder")?,
            closed: value["closed"].as_bool().unwrap_or_default(),
            provided_name: text("provided_name").ok(),
            settings: Settings::from_flat(&value["settings"]),
            mapping: Mapping::stored(&value["mapping"])?.with_slots(&value["slots"])?,
            field_models: models
                .filter_map(|(field, model): (&String, &Value)| {
                    Some((field.clone(), model.as_str()?.to_owned()))
                })
                .collect(),
            model_change: match value.get("model_change") {
                None => None,
                Some(change) => Some(serde_json::from_value(change.clone()).map_err(|error| {
                    EngineError::internal(format!("the change of a model cannot be read: {error}"))
                })?),
            },
            replaces: text("replaces").ok(),
        })
    }
}

/// The metadata stores of all indices, each with the uuid of the index that its index replaced, if any. Those that replaced one
/// come first.
///
/// # Errors
/// When the stores cannot be listed. One that cannot be read is found when its index is opened.
pub fn stores(data: &DataDir) -> Result<Vec<(String, Option<String>)>, EngineError> {
    let replaces = |store: &str| Some(data.read_json(store).ok()??["replaces"].as_str()?.to_owned());
    let stores = data.list(STORE_PREFIX)?;
    let mut stores: Vec<_> = stores.into_iter().map(|store| (replaces(&store), store)).collect();
    stores.sort_by_key(|(replaces, _)| replaces.is_none());
    Ok(stores.into_iter().map(|(replaces, store)| (store, replaces)).collect())
}

/// Name of the store that holds the metadata of the index with this uuid.
pub fn store_name(uuid: &str) -> String {
    format!("{STORE_PREFIX}{uuid}")
}
