//! Resolves the names and expressions of a request to indices: aliases, patterns, exclusions, date math.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::blocks::{Access, closed};
use super::expand::{Via, name_error};
use super::registry::IndexNames;
use super::resolve_options::ResolveOptions;
use super::{IndexHandle, Indices, date_math};
use sparrow_request::error::EngineError;
use sparrow_request::rights::Right;

/// An index that an expression stands for, with the filter that applies to it.
#[derive(Clone)]
pub struct Resolved {
    pub handle: Arc<IndexHandle>,
    /// The filter of the aliases by which the index was found, as a JSON query; none if its own name or an alias without a filter
    /// was among them.
    pub filter: Option<Value>,
    /// Names of the aliases by which the index was found.
    pub aliases: BTreeSet<String>,
}

impl IndexNames {
    /// Resolves an expression to indices: names, patterns with `*`, `_all`, exclusions with `-`, separated by commas. An empty
    /// expression is `_all`.
    ///
    /// # Errors
    /// 403 for names that are not allowed; [`EngineError::IndexNotFound`] for a name that does not exist, unless it may be
    /// unavailable; `index_closed_exception`; the reason why an index cannot be opened; when comparing patterns with names takes
    /// more steps than are allowed.
    pub fn resolve(
        &self,
        expression: &str,
        options: &ResolveOptions,
        right: Right<'_>,
    ) -> Result<Vec<Resolved>, EngineError> {
        let names = self.expand(expression, options, right)?;
        let mut resolved = Vec::with_capacity(names.len());
        for (name, via) in names {
            if let Some(broken) = self.broken.get(&name) {
                match options.ignore_unavailable {
                    true => continue,
                    false => return Err(broken.error()),
                }
            }
            let Some(handle) = self.indices.get(&name) else { continue };
            if options.forbid_closed && handle.is_closed() {
                match options.ignore_unavailable {
                    true => continue,
                    false => return Err(closed(&handle.name, &handle.uuid)),
                }
            }
            if options.forbid_closed {
                handle.check_access(Access::Read)?;
            }
            let filter = self.filter(&name, &via);
            resolved.push(Resolved { handle: handle.clone(), filter, aliases: via.aliases });
        }
        Ok(resolved)
    }

    /// Names of the indices of an expression, those that cannot be opened included.
    ///
    /// # Errors
    /// As [`IndexNames::expand`].
    pub fn index_names(
        &self,
        expression: &str,
        options: &ResolveOptions,
        right: Right<'_>,
    ) -> Result<Vec<String>, EngineError> {
        Ok(self.expand(expression, options, right)?.into_keys().collect())
    }

    /// The filter for an index that was found by these names: none if its own name or an alias without a filter is among them,
    /// otherwise any of the aliases' filters has to match.
    fn filter(&self, index: &str, via: &Via) -> Option<Value> {
        if via.direct {
            return None;
        }
        let mut filters = Vec::new();
        for alias in &via.aliases {
            filters.push(self.aliases.get(alias)?.get(index)?.filter.clone()?);
        }
        match filters.len() {
            0 | 1 => filters.pop(),
            _ => Some(json!({"bool": {"should": filters}})),
        }
    }

    /// The index with this name, or the only index of the alias, for reading a document.
    fn single(&self, name: &str) -> Result<Arc<IndexHandle>, EngineError> {
        match self.aliases.get(name) {
            Some(indices) if !self.indices.contains_key(name) => {
                let mut names = indices.keys();
                match (names.next(), names.next()) {
                    (Some(index), None) => self.open(index),
                    _ => {
                        let names: Vec<&str> = indices.keys().map(String::as_str).collect();
                        Err(EngineError::illegal_argument(format!(
                            "alias [{name}] has more than one index associated with it [{}], can't execute a \
                             single index op",
                            names.join(", ")
                        )))
                    }
                }
            }
            _ => self.open(name),
        }
    }

    /// Name of the index that a write to this name goes to; none if no index or alias has the name.
    pub fn write_index(&self, name: &str) -> Result<Option<String>, EngineError> {
        if self.uuid(name).is_some() {
            return Ok(Some(name.to_owned()));
        }
        let Some(indices) = self.aliases.get(name) else { return Ok(None) };
        let chosen = indices.iter().find(|(_, spec)| spec.is_write_index == Some(true));
        let only =
            indices.iter().next().filter(|(_, spec)| indices.len() == 1 && spec.is_write_index.is_none());
        match chosen.or(only) {
            Some((index, _)) => Ok(Some(index.clone())),
            None => Err(EngineError::illegal_argument(format!(
                "no write index is defined for alias [{name}]. The write index may be explicitly disabled using \
                 is_write_index=false or the alias points to multiple indices without one being designated as a \
                 write index"
            ))),
        }
    }

    fn open(&self, name: &str) -> Result<Arc<IndexHandle>, EngineError> {
        match self.indices.get(name) {
            Some(handle) if handle.is_closed() => Err(closed(&handle.name, &handle.uuid)),
            Some(handle) => Ok(handle.clone()),
            None => Err(match self.broken.get(name) {
                Some(broken) => broken.error(),
                None => name_error(name).unwrap_or(EngineError::IndexNotFound { name: name.to_owned() }),
            }),
        }
    }
}

impl Indices {
    /// The index with this name, or the only index of the alias.
    ///
    /// # Errors
    /// [`EngineError::IndexNotFound`]; an alias of several indices; an index that is closed or cannot be opened.
    pub fn get(&self, name: &str, right: Right<'_>) -> Result<Arc<IndexHandle>, EngineError> {
        let name = date_math::resolve(name)?;
        right.check([name.as_str()])?;
        let handle = self.names().single(&name)?;
        handle.check_access(Access::Read)?;
        Ok(handle)
    }

    /// The index that a write to this name goes to: for an alias of several indices its write index.
    ///
    /// # Errors
    /// As [`Indices::get`]; an alias of several indices without a write index.
    pub fn write_target(&self, name: &str, right: Right<'_>) -> Result<Arc<IndexHandle>, EngineError> {
        let name = date_math::resolve(name)?;
        right.check([name.as_str()])?;
        let names = self.names();
        let index = names.write_index(&name)?;
        names.open(index.as_deref().unwrap_or(&name))
    }

    /// Whether the name is that of an alias with a filter.
    ///
    /// # Errors
    /// When its date math cannot be read.
    pub fn is_filtered(&self, name: &str) -> Result<bool, EngineError> {
        let names = self.names();
        let indices = names.aliases.get(&date_math::resolve(name)?);
        Ok(indices.is_some_and(|indices| indices.values().any(|spec| spec.filter.is_some())))
    }

    /// The routing of a request for a document of the index or alias `name`: the alias's, if it has one for writes, or
    /// that of the request; none if that is empty.
    ///
    /// # Errors
    /// When both have one, and they differ.
    pub fn routing(&self, name: &str, given: Option<String>) -> Result<Option<String>, EngineError> {
        let given = given.filter(|routing| !routing.is_empty());
        let names = self.names();
        let Some(indices) = names.aliases.get(name) else { return Ok(given) };
        // Writes go to one of its indices, to which reads by id go too.
        let written = names.write_index(name)?;
        let spec = written.as_ref().and_then(|index| indices.get(&**index));
        let Some(own) = spec.and_then(|spec| spec.index_routing.clone()) else { return Ok(given) };
        match given {
            Some(given) if given != own => Err(EngineError::illegal_argument(format!(
                "Alias [{name}] has index routing associated with it [{own}], and was provided with routing value \
                 [{given}], rejecting operation"
            ))),
            _ => Ok(Some(own)),
        }
    }

    /// Checks that a document of the index or alias `name`, whose index is `handle`, is asked for with a routing, its own or that of
    /// the alias, if the index requires one.
    ///
    /// # Errors
    /// `routing_missing_exception`; as [`Self::routing`].
    pub fn check_routing(
        &self,
        handle: &IndexHandle,
        name: &str,
        id: &str,
        given: Option<String>,
    ) -> Result<(), EngineError> {
        handle.check_routing(id, self.routing(name, given)?.as_deref())
    }

    /// Whether the name is that of an alias.
    pub fn is_alias(&self, name: &str) -> bool {
        self.names().aliases.contains_key(name)
    }

    /// The indices that an expression stands for, regardless of the filters of aliases.
    ///
    /// # Errors
    /// As [`IndexNames::resolve`].
    pub fn resolve(
        &self,
        expression: &str,
        options: ResolveOptions,
        right: Right<'_>,
    ) -> Result<Vec<Arc<IndexHandle>>, EngineError> {
        let resolved = self.names().resolve(expression, &options, right)?;
        Ok(resolved.into_iter().map(|resolved| resolved.handle).collect())
    }

    /// The indices that an expression stands for, with the filters of the aliases by which they were found: for requests that show
    /// or select documents.
    ///
    /// # Errors
    /// As [`IndexNames::resolve`].
    pub fn resolve_filtered(
        &self,
        expression: &str,
        options: &ResolveOptions,
        right: Right<'_>,
    ) -> Result<Vec<Resolved>, EngineError> {
        self.names().resolve(expression, options, right)
    }
}
