//! Which models there are: one for each model directory, under an id and perhaps further names.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use sparrow_encoder::{Model, ModelInfo};

use super::error::ModelError;

/// Directories of the embedded models, the ids under which they are served, and further names for them.
const EMBEDDED: [(&str, &str, &[&str]); 2] = [
    (
        "model-splade-tiny",
        SPARSE_MODEL,
        &[".elser_model_2", ".elser_model_2_linux-x86_64", ".sparse_encoder_model_2_linux-x86_64"],
    ),
    ("model-minilm-l6", DENSE_MODEL, &["sentence-transformers__all-minilm-l6-v2", "all-minilm-l6-v2"]),
];

/// Id of the embedded sparse model.
pub const SPARSE_MODEL: &str = ".sparse_encoder_model_2";
/// Id of the embedded dense model.
pub const DENSE_MODEL: &str = ".all-minilm-l6-v2";

/// Whether something may be the id of a model or an endpoint: lowercase letters, digits and `_-.`, a letter or digit
/// at both ends, at most 64 bytes. Such an id is also a safe name of a file.
pub(crate) fn is_valid_id(id: &str) -> bool {
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=64).contains(&id.len())
        && id.starts_with(ends)
        && id.ends_with(ends)
        && id.chars().all(|c| ends(c) || matches!(c, '_' | '-' | '.'))
}

/// A model directory.
#[derive(Debug)]
pub(crate) struct RegisteredModel {
    pub id: String,
    pub aliases: &'static [&'static str],
    pub embedded: bool,
    /// Change time of the directory, milliseconds since the epoch.
    pub created_ms: u64,
    directory: PathBuf,
    /// What the directory holds, or why it cannot be used.
    info: Result<ModelInfo, String>,
    /// The loaded model, while a deployment keeps it.
    loaded: Mutex<Weak<Model>>,
}

impl RegisteredModel {
    fn new(directory: &Path) -> Self {
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or("model").to_owned();
        let known = EMBEDDED.iter().find(|(folder, _, _)| *folder == name);
        let info = Model::inspect(directory).map_err(|error| error.to_string());
        if let Err(reason) = &info {
            tracing::warn!(directory = %directory.display(), %reason, "model directory cannot be used");
        }
        let created_ms = std::fs::metadata(directory)
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|duration| u64::try_from(duration.as_millis()).ok())
            .unwrap_or_default();
        Self {
            id: known.map_or(name, |(_, id, _)| (*id).to_owned()),
            aliases: known.map_or(&[], |(_, _, aliases)| aliases),
            embedded: known.is_some(),
            created_ms,
            directory: directory.to_path_buf(),
            info,
            loaded: Mutex::new(Weak::new()),
        }
    }

    /// Facts about the model.
    ///
    /// # Errors
    /// [`ModelError::Unusable`] if its directory cannot be read.
    pub fn info(&self) -> Result<&ModelInfo, ModelError> {
        self.info
            .as_ref()
            .map_err(|reason| ModelError::Unusable { id: self.id.clone(), reason: reason.clone() })
    }

    /// The loaded model; several deployments share it.
    ///
    /// # Errors
    /// [`ModelError::Unusable`].
    pub fn load(&self) -> Result<Arc<Model>, ModelError> {
        let mut loaded = self.loaded.lock();
        if let Some(model) = loaded.upgrade() {
            return Ok(model);
        }
        let model =
            Model::load(&self.directory).map_err(|error| ModelError::from_encoder(&self.id, error))?;
        *loaded = Arc::downgrade(&model);
        Ok(model)
    }
}

/// All models, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    models: Vec<Arc<RegisteredModel>>,
}

impl Registry {
    /// Looks into model directories. Of two directories with one id the first stays.
    pub fn open(directories: &[PathBuf]) -> Self {
        let mut models: Vec<Arc<RegisteredModel>> = Vec::with_capacity(directories.len());
        for directory in directories {
            let model = RegisteredModel::new(directory);
            if models.iter().any(|known| known.id == model.id) {
                tracing::warn!(id = model.id, directory = %directory.display(), "a model of this id exists already");
                continue;
            }
            models.push(Arc::new(model));
        }
        models.sort_by(|a, b| a.id.cmp(&b.id));
        Self { models }
    }

    /// The model of an id or alias.
    pub fn find(&self, id: &str) -> Option<&Arc<RegisteredModel>> {
        self.models
            .iter()
            .find(|model| model.id == id)
            .or_else(|| self.models.iter().find(|model| model.aliases.contains(&id)))
    }

    /// The models that an expression names: ids, aliases and patterns with `*`, separated by commas; `_all` or
    /// nothing for all. A pattern may match none; a plain name that is not there comes back as the error.
    pub fn matching(&self, expression: &str) -> Result<Vec<Arc<RegisteredModel>>, String> {
        if expression.is_empty() || expression == "_all" {
            return Ok(self.models.clone());
        }
        let mut found: Vec<Arc<RegisteredModel>> = Vec::new();
        for part in expression.split(',').filter(|part| !part.is_empty()) {
            let matches: Vec<_> = if part.contains('*') {
                self.models.iter().filter(|model| crate::pattern::matches(part, &model.id)).cloned().collect()
            } else {
                vec![Arc::clone(self.find(part).ok_or_else(|| part.to_owned())?)]
            };
            for model in matches {
                if !found.iter().any(|known| known.id == model.id) {
                    found.push(model);
                }
            }
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// The embedded model that is deployed at the first start.
    pub fn default_model(&self) -> Option<&Arc<RegisteredModel>> {
        self.models.iter().find(|model| model.id == SPARSE_MODEL && model.info.is_ok())
    }
}
