//! Templates: what a new index gets by its name.
//!
//! All of them lie in one store, so that any change is one replacement of one file.

pub mod alias_rights;
pub mod definition;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};
use sparrow_mapping::Mapping;
use sparrow_storage::DataDir;

pub use self::definition::{Body, Component, IndexTemplate, Legacy};
use super::aliases::AliasSpec;
use super::{CreateIndex, Indices, Settings, date_math};
use sparrow_call::error::{EngineError, Exception};
use sparrow_call::rights::Right;
use sparrow_storage::stores::{self, Unusable};
use sparrow_wire::glob;

const STORE: &str = "templates";

/// The templates of one moment.
#[derive(Debug, Clone, Default)]
pub struct TemplateSet {
    pub index: BTreeMap<String, Arc<IndexTemplate>>,
    pub component: BTreeMap<String, Arc<Component>>,
    pub legacy: BTreeMap<String, Arc<Legacy>>,
}

impl TemplateSet {
    fn load(data: &DataDir) -> Result<Self, EngineError> {
        Self::read(stores::read_members(data, STORE)?, &|what| stores::damaged(data, STORE, what).into())
    }

    /// Reads what [`TemplateSet::to_json`] made.
    ///
    /// # Errors
    /// When it is nothing of the kind. A template that cannot be used is kept.
    pub fn parse(value: &Value) -> Result<Self, EngineError> {
        let families = value.as_object().cloned().unwrap_or_default();
        Self::read(families, &|what| EngineError::illegal_argument(format!("templates: {what}")))
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
                let unusable = |error: EngineError| {
                    tracing::error!(template = name, family, %error, "a stored template cannot be used");
                    error.reason()
                };
                match family.as_str() {
                    "component" => {
                        let component = Component::parse(&name, &definition)
                            .unwrap_or_else(|error| Component::kept(&definition, unusable(error)));
                        set.component.insert(name, Arc::new(component));
                    }
                    "index" => {
                        let template = IndexTemplate::parse(&name, &definition)
                            .unwrap_or_else(|error| IndexTemplate::kept(&definition, unusable(error)));
                        set.index.insert(name, Arc::new(template));
                    }
                    "legacy" => {
                        let template = Legacy::parse(&name, &definition)
                            .unwrap_or_else(|error| Legacy::kept(&definition, unusable(error)));
                        set.legacy.insert(name, Arc::new(template));
                    }
                    _ => return Err(damaged("is not a kind of template")),
                }
            }
        }
        Ok(set)
    }

    /// Checks that a new index of this name would get all that it is meant to get.
    ///
    /// # Errors
    /// Names a template, or a component of it, that is stored and cannot be used.
    fn check_usable(&self, index: &str) -> Result<(), EngineError> {
        if let Some((name, template)) = self.matching(index) {
            return self.check_parts(name, template);
        }
        let mut legacy =
            self.legacy.iter().filter(|(_, it)| it.patterns.iter().any(|one| glob::matches(one, index)));
        legacy.try_for_each(|(name, it)| refuse_unusable("template", name, it.unusable.as_ref()))
    }

    /// # Errors
    /// Names the template or the component of it that cannot be used.
    pub fn check_parts(&self, name: &str, template: &IndexTemplate) -> Result<(), EngineError> {
        refuse_unusable("index template", name, template.unusable.as_ref())?;
        let mut parts = template.composed_of.iter().filter_map(|name| self.component.get_key_value(name));
        parts.try_for_each(|(name, part)| refuse_unusable("component template", name, part.unusable.as_ref()))
    }

    /// As it is stored.
    pub fn to_json(&self) -> Value {
        let index: Map<String, Value> =
            self.index.iter().map(|(name, it)| (name.clone(), it.to_json(false))).collect();
        let component: Map<String, Value> =
            self.component.iter().map(|(name, it)| (name.clone(), it.to_json(false))).collect();
        let legacy: Map<String, Value> =
            self.legacy.iter().map(|(name, it)| (name.clone(), it.to_json(false))).collect();
        json!({"index": index, "component": component, "legacy": legacy})
    }

    /// The composable template that a new index of this name follows.
    pub fn matching(&self, index: &str) -> Option<(&String, &Arc<IndexTemplate>)> {
        self.index
            .iter()
            .filter(|(_, template)| template.patterns.iter().any(|one| glob::matches(one, index)))
            .max_by_key(|(_, template)| template.priority.unwrap_or(0))
    }

    /// What a composable template comes to, with its components.
    pub fn composed(&self, template: &IndexTemplate) -> Body {
        let components = template.composed_of.iter().filter_map(|name| self.component.get(name));
        let bodies = components.map(|component| &component.body).chain([&template.body]);
        bodies.fold(Body::default(), |below, above| below.overlaid(above))
    }

    /// What a new index of this name gets: from the composable template of the highest priority, or, where none
    /// matches, from all legacy ones, those of a higher order counting more.
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

fn refuse_unusable(what: &str, name: &str, unusable: Option<&Unusable>) -> Result<(), EngineError> {
    let Some(unusable) = unusable else { return Ok(()) };
    let reason = format!("{what} [{name}] could not be loaded, caused by [{}]", unusable.reason);
    Err(EngineError::api(500, Exception::new("illegal_state_exception", reason)))
}

/// The templates of the node.
pub struct Templates {
    data: Arc<DataDir>,
    set: RwLock<Arc<TemplateSet>>,
    /// Serialises changes.
    changing: Mutex<()>,
}

impl Templates {
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

    /// Changes them, durably; nothing else changes them meanwhile.
    ///
    /// # Errors
    /// What `change` says, or a failure of the disk; they are then what they were.
    pub fn change(
        &self,
        change: impl FnOnce(&mut TemplateSet) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let _one = self.changing.lock();
        // A change that was refused may lie in the store, and to delete what is not there writes nothing.
        self.data.settle_store(STORE)?;
        let mut set = TemplateSet::clone(&self.set());
        change(&mut set)?;
        self.data.write_json(STORE, &set.to_json())?;
        *self.set.write() = Arc::new(set);
        Ok(())
    }
}

impl Indices {
    /// An index to be made from what a request says over what templates say.
    ///
    /// # Errors
    /// When the two do not go together.
    pub fn planned(&self, provided_name: &str, given: &Body) -> Result<CreateIndex, EngineError> {
        self.planned_as(&date_math::resolve(provided_name)?, provided_name, given)
    }

    /// As [`Indices::planned`], for an index whose name was resolved from date math before: the name that was checked has to be the one
    /// that is made, also at midnight.
    ///
    /// # Errors
    /// As [`Indices::planned`].
    pub fn planned_as(
        &self,
        name: &str,
        provided_name: &str,
        given: &Body,
    ) -> Result<CreateIndex, EngineError> {
        let templates = self.templates.set();
        templates.check_usable(name)?;
        let body = templates.for_index(name).overlaid(given);
        let mapping = body.mapping()?;
        mapping.check_limits(&body.settings.limits())?;
        let named = |(alias, spec): (String, AliasSpec)| {
            Ok::<_, EngineError>((super::aliases::name_for(&alias, name)?, spec))
        };
        let aliases = body.aliases.into_iter().map(named).collect::<Result<_, _>>()?;
        let (name, provided_name) = (name.to_owned(), provided_name.to_owned());
        Ok(CreateIndex { name, provided_name, settings: body.settings, mapping, aliases })
    }

    /// The settings that a write to this name meets: those of its index, or of the index that it would make.
    pub fn write_settings(&self, name: &str) -> Settings {
        match self.write_target(name, Right::unlimited()) {
            Ok(handle) => handle.settings(),
            Err(_) => self.templates.set().for_index(&date_math::resolve(name).unwrap_or_default()).settings,
        }
    }
}

impl Body {
    /// The mapping that it comes to.
    ///
    /// # Errors
    /// When its parts do not go together.
    pub fn mapping(&self) -> Result<Mapping, EngineError> {
        match &self.mappings {
            None => Ok(Mapping::empty()),
            Some(mappings) => Ok(Mapping::parse(&Value::Object(mappings.clone()))?),
        }
    }
}
