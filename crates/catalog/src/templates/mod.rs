//! Templates: settings, mappings and aliases that a new index gets because of its name.
//!
//! All of them are in one store, so that any change is one replacement of one file.

pub mod alias_rights;
pub mod definition;
mod overlay;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};
use sparrow_mapping::Mapping;
use sparrow_write_ahead_log::DataDir;

pub use self::definition::{Body, Component, IndexTemplate, Legacy};
use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::glob;
use sparrow_write_ahead_log::stores::{self, Unusable};

const STORE: &str = "templates";

/// Most templates of each kind.
const MOST: usize = 10_000;

/// All templates at one moment, by name.
#[derive(Debug, Clone, Default)]
pub struct TemplateSet {
    pub index: BTreeMap<String, Arc<IndexTemplate>>,
    pub component: BTreeMap<String, Arc<Component>>,
    pub legacy: BTreeMap<String, Arc<Legacy>>,
}

impl TemplateSet {
    /// How many there are of each kind.
    fn counts(&self) -> [usize; 3] {
        [self.index.len(), self.component.len(), self.legacy.len()]
    }

    fn load(data: &DataDir) -> Result<Self, EngineError> {
        let set = Self::read(stores::read_members(data, STORE)?, &|what| {
            stores::damaged(data, STORE, what).into()
        })?;
        for (kind, name, unusable) in set.unusable() {
            tracing::error!(
                template = name,
                family = kind,
                reason = unusable.reason,
                "a stored template cannot be used"
            );
        }
        Ok(set)
    }

    /// Reads the JSON form that [`TemplateSet::to_json`] made, of a snapshot that may come from anywhere.
    ///
    /// # Errors
    /// When it has another form, too many templates, or one that cannot be used: a template for all indices would keep any from being
    /// created.
    pub fn parse(value: &Value) -> Result<Self, EngineError> {
        let families = value.as_object().cloned().unwrap_or_default();
        let set = Self::read(families, &|what| EngineError::illegal_argument(format!("templates: {what}")))?;
        if let Some((kind, name, unusable)) = set.unusable().next() {
            let reason = format!("templates: [{kind}] [{name}]: {}", unusable.reason);
            return Err(EngineError::illegal_argument(reason));
        }
        check_counts(set.counts(), [0; 3])?;
        Ok(set)
    }

    /// The templates that this version cannot use, each with its kind and name.
    fn unusable(&self) -> impl Iterator<Item = (&'static str, &String, &Unusable)> {
        let index = self.index.iter().map(|(name, it)| ("index", name, &it.unusable));
        let component = self.component.iter().map(|(name, it)| ("component", name, &it.unusable));
        let legacy = self.legacy.iter().map(|(name, it)| ("legacy", name, &it.unusable));
        let all = index.chain(component).chain(legacy);
        all.filter_map(|(kind, name, unusable)| Some((kind, name, unusable.as_ref()?)))
    }

    fn read(
        families: Map<String, Value>,
        refuse: &dyn Fn(String) -> EngineError,
    ) -> Result<Self, EngineError> {
        let mut set = Self::default();
        for (family, templates) in families {
            let damaged = |what: &str| refuse(format!("[{family}] {what}"));
            let Value::Object(templates) = templates else { return Err(damaged("is not an object")) };
            for (name, definition) in templates {
                match family.as_str() {
                    "component" => {
                        let component = Component::parse(&name, &definition)
                            .unwrap_or_else(|error| Component::kept(&definition, error.reason()));
                        set.component.insert(name, Arc::new(component));
                    }
                    "index" => {
                        let template = IndexTemplate::parse(&name, &definition)
                            .unwrap_or_else(|error| IndexTemplate::kept(&definition, error.reason()));
                        set.index.insert(name, Arc::new(template));
                    }
                    "legacy" => {
                        let template = Legacy::parse(&name, &definition)
                            .unwrap_or_else(|error| Legacy::kept(&definition, error.reason()));
                        set.legacy.insert(name, Arc::new(template));
                    }
                    _ => return Err(damaged("is not a kind of template")),
                }
            }
        }
        Ok(set)
    }

    /// Checks that all templates for a new index of this name can be used.
    ///
    /// # Errors
    /// Names the template or component template that this version cannot use.
    pub(super) fn check_usable(&self, index: &str) -> Result<(), EngineError> {
        if let Some((name, template)) = self.matching(index) {
            return self.check_parts(name, template);
        }
        let mut legacy =
            self.legacy.iter().filter(|(_, it)| it.patterns.iter().any(|one| glob::matches(one, index)));
        legacy.try_for_each(|(name, it)| refuse_unusable("template", name, it.unusable.as_ref()))
    }

    /// Checks that an index template and its component templates can be used.
    ///
    /// # Errors
    /// Names the template or component template that this version cannot use.
    pub fn check_parts(&self, name: &str, template: &IndexTemplate) -> Result<(), EngineError> {
        refuse_unusable("index template", name, template.unusable.as_ref())?;
        let mut parts = template.composed_of.iter().filter_map(|name| self.component.get_key_value(name));
        parts.try_for_each(|(name, part)| refuse_unusable("component template", name, part.unusable.as_ref()))
    }

    /// All templates as JSON, in the form in which they are stored.
    pub fn to_json(&self) -> Value {
        let index: Map<String, Value> =
            self.index.iter().map(|(name, it)| (name.clone(), it.to_json(false))).collect();
        let component: Map<String, Value> =
            self.component.iter().map(|(name, it)| (name.clone(), it.to_json(false))).collect();
        let legacy: Map<String, Value> =
            self.legacy.iter().map(|(name, it)| (name.clone(), it.to_json(false))).collect();
        json!({"index": index, "component": component, "legacy": legacy})
    }

    /// Name and definition of the composable template for a new index of this name: the matching one of the highest priority.
    pub fn matching(&self, index: &str) -> Option<(&String, &Arc<IndexTemplate>)> {
        self.index
            .iter()
            .filter(|(_, template)| template.patterns.iter().any(|one| glob::matches(one, index)))
            .max_by_key(|(_, template)| template.priority.unwrap_or(0))
    }

    /// What a composable template gives an index, its component templates included.
    pub fn composed(&self, template: &IndexTemplate) -> Body {
        let components = template.composed_of.iter().filter_map(|name| self.component.get(name));
        let bodies = components.map(|component| &component.body).chain([&template.body]);
        bodies.fold(Body::default(), |below, above| below.overlaid(above))
    }

    /// What a new index of this name gets: from the composable template of the highest priority or, if none matches, from all
    /// matching legacy ones, of which those of a higher order override the others.
    pub fn for_index(&self, index: &str) -> Body {
        if let Some((_, template)) = self.matching(index) {
            return self.composed(template);
        }
        let mut matching: Vec<&Arc<Legacy>> = self
            .legacy
            .values()
            .filter(|template| template.patterns.iter().any(|one| glob::matches(one, index)))
            .collect();
        matching.sort_by_key(|template| template.order);
        matching.into_iter().fold(Body::default(), |below, template| below.overlaid(&template.body))
    }
}

/// Refuses more templates of a kind than there may be, unless there were as many `before`.
fn check_counts(counts: [usize; 3], before: [usize; 3]) -> Result<(), EngineError> {
    match counts.iter().zip(before).any(|(&count, before)| count > before.max(MOST)) {
        true => Err(EngineError::illegal_argument(format!("there are more than {MOST} templates"))),
        false => Ok(()),
    }
}

fn refuse_unusable(what: &str, name: &str, unusable: Option<&Unusable>) -> Result<(), EngineError> {
    let Some(unusable) = unusable else { return Ok(()) };
    let reason = format!("{what} [{name}] could not be loaded, caused by [{}]", unusable.reason);
    Err(EngineError::api(500, Exception::new("illegal_state_exception", reason)))
}

/// The templates of the node.
pub struct Templates {
    data: Arc<DataDir>,
    set: RwLock<Arc<TemplateSet>>,
    /// Held while templates are changed.
    changing: Mutex<()>,
}

impl Templates {
    /// Reads the templates from the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) fn open(data: Arc<DataDir>) -> Result<Self, EngineError> {
        let set = TemplateSet::load(&data)?;
        Ok(Self { data, set: RwLock::new(Arc::new(set)), changing: Mutex::new(()) })
    }

    /// The templates as they are now.
    pub fn set(&self) -> Arc<TemplateSet> {
        self.set.read().clone()
    }

    /// Changes the templates, durably. Changes are made one at a time.
    ///
    /// # Errors
    /// What `change` returns, too many templates, or a failure of the disk; the templates are then unchanged.
    pub fn change(
        &self,
        change: impl FnOnce(&mut TemplateSet) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let _one = self.changing.lock();
        // A change that was refused may lie in the store, and to delete what is not there writes nothing.
        self.data.settle_store(STORE)?;
        let mut set = TemplateSet::clone(&self.set());
        let before = set.counts();
        change(&mut set)?;
        check_counts(set.counts(), before)?;
        self.data.write_json(STORE, &set.to_json())?;
        *self.set.write() = Arc::new(set);
        Ok(())
    }
}

impl Body {
    /// The mapping that the JSON form defines; an empty one if none was given.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn mapping(&self) -> Result<Mapping, EngineError> {
        match &self.mappings {
            None => Ok(Mapping::empty()),
            Some(mappings) => Ok(Mapping::parse(&Value::Object(mappings.clone()))?),
        }
    }
}
