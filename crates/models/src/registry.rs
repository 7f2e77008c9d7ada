//! The registry of models: one for each model directory, with an id and possibly aliases.
//!
//! The model directories that exist at the start are registered as models. Requests add others by uploading them or by naming directories
//! of the configured folder. Requests also set aliases and hide the models that they delete: the files of a directory that was not uploaded
//! are never removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::UNIX_EPOCH;

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use sparrow_encoder::{Deployment, Model, ModelInfo, sample};

use super::ModelError;
use super::config::ModelConfig;
use super::packed::PackedFolder;
use super::spread;
use sparrow_write_ahead_log::stores::Unusable;

/// The models of packages: name of the directory, which is that of the package, id, and built-in aliases. The last two are in packages
/// that do not come with the server.
const EMBEDDED: [(&str, &str, &[&str]); 5] = [
    (
        "model-splade-tiny",
        SPARSE_MODEL,
        &[".elser_model_2", ".elser_model_2_linux-x86_64", ".sparse_encoder_model_2_linux-x86_64"],
    ),
    ("model-minilm-l6", DENSE_MODEL, &["sentence-transformers__all-minilm-l6-v2", "all-minilm-l6-v2"]),
    ("model-splade-minilm-l6", HEAD_MODEL, &[]),
    ("model-bge-small-en", BGE_MODEL, &[]),
    ("model-multilingual-e5-small", MULTILINGUAL_MODEL, &[".multilingual-e5-small_linux-x86_64"]),
];

/// Id of the embedded sparse model.
pub const SPARSE_MODEL: &str = ".sparse_encoder_model_2";
/// Id of the embedded dense model.
pub const DENSE_MODEL: &str = ".all-minilm-l6-v2";
/// Id of the sparse model that is a head on the embedded dense one; it is there if its package is installed.
pub const HEAD_MODEL: &str = ".splade-minilm-l6";
/// Id of the dense model of a package that is not installed by default.
pub const BGE_MODEL: &str = ".bge-small-en";
/// Id of the dense model of many languages, in a package that is not installed by default.
pub const MULTILINGUAL_MODEL: &str = ".multilingual-e5-small";

/// The npm package of a model that is in one.
pub fn package_of(id: &str) -> Option<String> {
    let (package, _, _) = EMBEDDED.iter().find(|(_, model, _)| *model == id)?;
    Some(format!("@sparrow-search/{package}"))
}

/// Where a model comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Shipped with the server.
    Embedded,
    /// A directory that was there at the start.
    Directory,
    /// A directory that a request named.
    Linked,
    /// Uploaded by a client, in parts.
    Uploaded,
}

/// A registered model: its directory, its configuration, and facts about its files.
#[derive(Debug)]
pub struct RegisteredModel {
    pub id: String,
    /// Built-in aliases, which cannot be removed.
    pub aliases: &'static [&'static str],
    pub origin: Origin,
    /// Time of creation in milliseconds since the epoch; for a directory without a configuration, its time of modification.
    pub created_ms: u64,
    /// The configuration that a request set.
    pub config: ModelConfig,
    /// Whether all files are there; false while an upload is under way.
    pub complete: bool,
    directory: PathBuf,
    /// The file for its packed weights.
    packed: PathBuf,
    /// Facts about the model, or the reason why its directory cannot be used.
    info: Result<ModelInfo, String>,
    /// Stored form of the model, if this version cannot read it.
    pub kept: Option<Value>,
    /// The loaded model; it is dropped when no deployment uses it any more.
    loaded: Mutex<Weak<Model>>,
    /// Whether its linear maps are computed in 8 bits.
    int8: AtomicBool,
    spread: OnceLock<Option<f32>>,
    /// The dense model that it is a head on, once both are registered.
    trunk: RwLock<Option<Arc<RegisteredModel>>>,
}

impl RegisteredModel {
    /// Registers a model directory that was configured at the start.
    fn new(directory: &Path, packed: &PackedFolder) -> Self {
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or("model").to_owned();
        let embedded = EMBEDDED.iter().find(|(folder, _, _)| *folder == name);
        let created_ms = sparrow_file_system::metadata(directory)
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|duration| u64::try_from(duration.as_millis()).ok())
            .unwrap_or_default();
        let origin = if embedded.is_some() { Origin::Embedded } else { Origin::Directory };
        let model = Self::of(
            embedded.map_or(name, |(_, id, _)| (*id).to_owned()),
            origin,
            directory.to_path_buf(),
            packed,
            ModelConfig::plain(),
            created_ms,
        );
        Self { aliases: embedded.map_or(&[], |(_, _, aliases)| aliases), ..model }
    }

    /// Registers a model directory; if it cannot be used, the model has the reason in place of its facts.
    pub fn of(
        id: String,
        origin: Origin,
        directory: PathBuf,
        packed: &PackedFolder,
        config: ModelConfig,
        created_ms: u64,
    ) -> Self {
        let packed = packed.file(&id);
        let info = Model::inspect_packed(&directory, &packed).map_err(|error| error.to_string());
        let int8 = AtomicBool::new(info.as_ref().is_ok_and(|info| info.recognised.int8));
        if let Err(reason) = &info {
            tracing::warn!(directory = %directory.display(), %reason, "model directory cannot be used");
        }
        Self {
            id,
            aliases: &[],
            origin,
            created_ms,
            config,
            complete: true,
            directory,
            packed,
            kept: None,
            info,
            loaded: Mutex::new(Weak::new()),
            int8,
            spread: OnceLock::new(),
            trunk: RwLock::default(),
        }
    }

    /// A stored model that this version cannot use.
    pub fn kept(id: String, stored: Unusable) -> Self {
        Self {
            complete: true,
            info: Err(format!("its stored form cannot be read, {}", stored.reason)),
            kept: Some(stored.definition),
            ..Self::incomplete(id, PathBuf::new(), ModelConfig::plain(), 0)
        }
    }

    /// A model of which not all parts have been uploaded.
    pub fn incomplete(id: String, directory: PathBuf, config: ModelConfig, created_ms: u64) -> Self {
        Self {
            id,
            aliases: &[],
            origin: Origin::Uploaded,
            created_ms,
            config,
            complete: false,
            directory,
            packed: PathBuf::new(),
            kept: None,
            info: Err("its definition or vocabulary has not been uploaded".into()),
            loaded: Mutex::new(Weak::new()),
            int8: AtomicBool::new(false),
            spread: OnceLock::new(),
            trunk: RwLock::default(),
        }
    }

    /// A model with a damaged file; `reason` says which and how.
    pub fn damaged(
        id: String,
        directory: PathBuf,
        config: ModelConfig,
        created_ms: u64,
        reason: String,
    ) -> Self {
        Self { complete: true, info: Err(reason), ..Self::incomplete(id, directory, config, created_ms) }
    }

    /// Facts about the model.
    ///
    /// # Errors
    /// [`ModelError::Undefined`] before its upload is complete, [`ModelError::Unusable`] if its directory cannot be read.
    pub fn info(&self) -> Result<&ModelInfo, ModelError> {
        self.info.as_ref().map_err(|reason| {
            let id = self.id.clone();
            if self.complete {
                ModelError::Unusable { id, reason: reason.clone() }
            } else {
                ModelError::Undefined { id }
            }
        })
    }

    /// Whether its linear maps are computed in 8 bits, as far as is known: a large model may be packed so when it is first loaded.
    pub fn is_int8(&self) -> bool {
        self.int8.load(Ordering::Relaxed)
    }

    /// How far apart the vectors of a dense model lie that has no calibration; `None` before it was first deployed.
    pub fn spread(&self) -> Option<f32> {
        *self.spread.get()?
    }

    /// Measures [`RegisteredModel::spread`] with a deployment of the model, if it is not known yet.
    pub fn measure(&self, deployment: &Deployment) {
        if self.info().is_ok_and(|info| info.calibration.is_none()) {
            self.spread.get_or_init(|| {
                let texts: Vec<&str> = sample().collect();
                let prefixed = self.prefixed(&texts, false);
                let texts = prefixed.as_ref().map_or(texts, |texts| texts.iter().map(String::as_str).collect());
                spread::measure(deployment, &texts).unwrap_or_else(|error| {
                    tracing::warn!(model = self.id, %error, "nobody knows how far apart the model's vectors lie");
                    None
                })
            });
        }
    }

    /// The dense model that it is a head on.
    pub fn trunk(&self) -> Option<Arc<RegisteredModel>> {
        self.trunk.read().clone()
    }

    /// The texts with the model's prefix for documents, or for queries if `search`; `None` if it has no such prefix. A prefix in its
    /// configuration overrides that of its files. A head has the prefixes of the model that it is on.
    pub fn prefixed(&self, texts: &[&str], search: bool) -> Option<Vec<String>> {
        if let Some(trunk) = self.trunk() {
            return trunk.prefixed(texts, search);
        }
        let prefix = match (&self.config.prefix_strings, &self.info) {
            (Some(said), _) => if search { said.search.as_ref() } else { said.ingest.as_ref() }?,
            (None, Ok(info)) => {
                if search { info.prefixes.search.as_ref() } else { info.prefixes.ingest.as_ref() }?
            }
            (None, Err(_)) => return None,
        };
        Some(texts.iter().map(|text| format!("{prefix}{text}")).collect())
    }

    /// The loaded model; several deployments share it.
    ///
    /// # Errors
    /// [`ModelError::Unusable`].
    pub fn load(&self) -> Result<Arc<Model>, ModelError> {
        if self.kept.is_some() {
            self.info()?;
        }
        let mut loaded = self.loaded.lock();
        if let Some(model) = loaded.upgrade() {
            return Ok(model);
        }
        // Files that were found damaged are not read.
        self.info()?;
        let model = match self.trunk() {
            Some(trunk) => Model::load_head(&self.directory, &trunk.load()?),
            None => sparrow_encoder::load_packed(&self.directory, &self.packed),
        };
        let model = model.map_err(|error| ModelError::from_encoder(&self.id, error))?;
        self.int8.store(model.info().recognised.int8, Ordering::Relaxed);
        *loaded = Arc::downgrade(&model);
        Ok(model)
    }
}

/// The registered models and their names.
#[derive(Debug, Default, Clone)]
struct RegisteredModels {
    /// Models in ascending order of their ids.
    models: Vec<Arc<RegisteredModel>>,
    /// Model ids by the aliases that requests set.
    aliases: BTreeMap<String, String>,
    /// Models that requests deleted, whose files stay.
    hidden: BTreeSet<String>,
}

/// The registered models of a node.
#[derive(Debug, Default)]
pub struct Registry {
    registered: RwLock<RegisteredModels>,
}

impl Registry {
    /// Registers model directories. If two have the same id, the first one counts.
    pub fn open(directories: &[PathBuf], packed: &PackedFolder) -> Self {
        let mut models: Vec<Arc<RegisteredModel>> = Vec::with_capacity(directories.len());
        for directory in directories {
            let model = RegisteredModel::new(directory, packed);
            if models.iter().any(|other| other.id == model.id) {
                tracing::warn!(id = model.id, directory = %directory.display(), "a model of this id exists already");
                continue;
            }
            models.push(Arc::new(model));
        }
        models.sort_by(|a, b| a.id.cmp(&b.id));
        let registered = RegisteredModels { models, ..RegisteredModels::default() };
        registered.link();
        Self { registered: RwLock::new(registered) }
    }

    /// The model of an id or alias.
    pub fn find(&self, id: &str) -> Option<Arc<RegisteredModel>> {
        self.registered.read().find(id).cloned()
    }

    /// The id of a model that a request deleted and whose files are still there.
    pub fn hidden(&self, id: &str) -> Option<String> {
        let registered = self.registered.read();
        let model = registered.models.iter().find(|model| model.id == id || model.aliases.contains(&id))?;
        registered.hidden.contains(&model.id).then(|| model.id.clone())
    }

    /// Adds a model, or takes it in place of that of the same id.
    pub fn put(&self, model: Arc<RegisteredModel>) {
        let mut registered = self.registered.write();
        registered.hidden.remove(&model.id);
        registered.models.retain(|other| other.id != model.id);
        registered.models.push(model);
        registered.models.sort_by(|a, b| a.id.cmp(&b.id));
        registered.link();
    }

    /// Removes a model that a request created.
    pub fn remove(&self, id: &str) {
        let mut registered = self.registered.write();
        registered.models.retain(|model| model.id != id);
        registered.link();
    }

    /// Replaces the sets of hidden models and of aliases.
    pub fn name(&self, hidden: BTreeSet<String>, aliases: BTreeMap<String, String>) {
        let mut registered = self.registered.write();
        registered.hidden = hidden;
        registered.aliases = aliases;
        registered.link();
    }

    /// The aliases that requests gave to a model.
    pub fn given_aliases(&self, id: &str) -> Vec<String> {
        let registered = self.registered.read();
        registered.aliases.iter().filter(|(_, model)| *model == id).map(|(alias, _)| alias.clone()).collect()
    }

    /// The models that an expression matches: ids, aliases and patterns with `*`, separated by commas; all for `_all` or an empty
    /// expression. A pattern may match none; the error is the first name without a model.
    pub fn matching(&self, expression: &str) -> Result<Vec<Arc<RegisteredModel>>, String> {
        let registered = self.registered.read();
        let visible = || registered.models.iter().filter(|model| !registered.hidden.contains(&model.id));
        if expression.is_empty() || expression == "_all" {
            return Ok(visible().cloned().collect());
        }
        let mut matching: Vec<Arc<RegisteredModel>> = Vec::new();
        for part in expression.split(',').filter(|part| !part.is_empty()) {
            let matches: Vec<_> = if part.contains('*') {
                visible().filter(|model| sparrow_wire::glob::matches(part, &model.id)).cloned().collect()
            } else {
                vec![Arc::clone(registered.find(part).ok_or_else(|| part.to_owned())?)]
            };
            for model in matches {
                if !matching.iter().any(|other| other.id == model.id) {
                    matching.push(model);
                }
            }
        }
        matching.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(matching)
    }

    /// The id of a model whose vectors have this fingerprint.
    pub fn of_fingerprint(&self, fingerprint: &str) -> Option<String> {
        let registered = self.registered.read();
        let of_it = |model: &&Arc<RegisteredModel>| {
            model.info.as_ref().is_ok_and(|info| info.fingerprint == fingerprint)
        };
        registered.models.iter().find(of_it).map(|model| model.id.clone())
    }

    /// The embedded model that is deployed at the first start.
    pub fn default_model(&self) -> Option<Arc<RegisteredModel>> {
        self.find(SPARSE_MODEL).filter(|model| model.info.is_ok())
    }
}

impl RegisteredModels {
    /// Gives each head the model that it is on, if that is registered and the one that it was trained on. A model that was deleted or
    /// replaced is let go.
    fn link(&self) {
        for model in &self.models {
            let Some(named) = model.info.as_ref().ok().and_then(|info| info.trunk.as_ref()) else { continue };
            let is_it = |found: &&Arc<RegisteredModel>| {
                found
                    .info
                    .as_ref()
                    .is_ok_and(|info| info.trunk.is_none() && info.fingerprint == named.fingerprint)
            };
            *model.trunk.write() = self.find(&named.model).filter(is_it).cloned();
        }
    }

    fn find(&self, id: &str) -> Option<&Arc<RegisteredModel>> {
        let model = self
            .models
            .iter()
            .find(|model| model.id == id)
            .or_else(|| self.models.iter().find(|model| model.aliases.contains(&id)))
            .or_else(|| {
                let target = self.aliases.get(id)?;
                self.models.iter().find(|model| model.id == *target)
            })?;
        (!self.hidden.contains(&model.id)).then_some(model)
    }
}
