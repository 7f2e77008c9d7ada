//! What a new index is made of: what its templates give it, and what the request says.

use super::aliases::{self, AliasSpec};
use super::create::CreateIndex;
use super::settings::Settings;
use super::templates::Body;
use super::{Indices, date_math};
use sparrow_request::error::EngineError;
use sparrow_request::rights::Right;

impl Indices {
    /// The index to create for a request: what the templates give it, overridden by what the request says.
    ///
    /// # Errors
    /// When the result is invalid.
    pub fn planned(&self, provided_name: &str, given: &Body) -> Result<CreateIndex, EngineError> {
        self.planned_as(&date_math::resolve(provided_name)?, provided_name, given)
    }

    /// As [`Indices::planned`], for a name whose date math was resolved before: the index that is created has to be the one whose
    /// name was checked, even at midnight.
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
            Ok::<_, EngineError>((aliases::name_for(&alias, name)?, spec))
        };
        let aliases = body.aliases.into_iter().map(named).collect::<Result<_, _>>()?;
        let (name, provided_name) = (name.to_owned(), provided_name.to_owned());
        Ok(CreateIndex { name, provided_name, settings: body.settings, mapping, aliases })
    }

    /// The settings that apply to a write to this name: those of its index, or of the index that the write would create.
    pub fn write_settings(&self, name: &str) -> Settings {
        match self.write_target(name, Right::unlimited()) {
            Ok(handle) => handle.settings(),
            Err(_) => self.templates.set().for_index(&date_math::resolve(name).unwrap_or_default()).settings,
        }
    }
}
