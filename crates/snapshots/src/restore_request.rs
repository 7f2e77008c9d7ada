//! Parses the body of a restore request, and selects the indices that it restores.

use std::collections::{BTreeMap, HashSet};

use regex::Regex;
use serde_json::{Map, Value};

use super::manifest::Info;
use super::{errors, features, list_of, names, switch};
use sparrow_request::error::EngineError;
use sparrow_wire::shape::{Shape, alike, flag, named, object, several, text};

/// Longest `rename_pattern`, in bytes.
const MOST_PATTERN: usize = 1000;

/// Parsed body of a restore request.
#[derive(Debug)]
pub(super) struct RestoreRequest {
    indices: String,
    ignore_unavailable: bool,
    pub include_global_state: bool,
    pub include_aliases: bool,
    pub include_models: bool,
    pub include_keys: bool,
    partial: bool,
    rename: Option<Rename>,
    rename_aliases: Option<Rename>,
    /// Settings that override those of the restored indices.
    pub index_settings: Value,
    /// Names or patterns of settings that restored indices reset to their defaults.
    pub ignore_index_settings: Vec<String>,
}

/// Renaming by a regular expression and a replacement.
#[derive(Debug)]
struct Rename {
    pattern: Regex,
    replacement: String,
}

impl RestoreRequest {
    /// What a request holds.
    pub(super) fn shape() -> Shape {
        object(alike("indices feature_states ignore_index_settings", several(text())))
            .and(alike(
                "ignore_unavailable include_global_state include_models partial",
                flag().preset(false),
            ))
            .and([("include_aliases", flag().preset(true)), ("index_settings", named("Settings"))])
            .and([("rename_pattern", text().about("regular expression over the names of the indices"))])
            .and([("rename_replacement", text().about("what takes the place of what it matches"))])
            .and(alike("rename_alias_pattern rename_alias_replacement", text()))
    }

    /// Parses the body of a restore request.
    ///
    /// # Errors
    /// For a setting that is unknown or has an invalid value.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, EngineError> {
        let mut request = Self {
            indices: String::new(),
            ignore_unavailable: false,
            include_global_state: false,
            include_aliases: true,
            include_models: false,
            include_keys: false,
            partial: false,
            rename: None,
            rename_aliases: None,
            index_settings: Value::Object(Map::new()),
            ignore_index_settings: Vec::new(),
        };
        let mut texts: BTreeMap<&str, &str> = BTreeMap::new();
        for (key, value) in body {
            match key.as_str() {
                "indices" => request.indices = list_of(key, value)?,
                "ignore_unavailable" => request.ignore_unavailable = switch(key, value)?,
                "include_global_state" => request.include_global_state = switch(key, value)?,
                "include_aliases" => request.include_aliases = switch(key, value)?,
                "include_models" => request.include_models = switch(key, value)?,
                "partial" => request.partial = switch(key, value)?,
                "feature_states" => request.include_keys = features::parse(value)?,
                "rename_pattern"
                | "rename_replacement"
                | "rename_alias_pattern"
                | "rename_alias_replacement" => {
                    let Some(text) = value.as_str() else {
                        return Err(EngineError::illegal_argument(format!("malformed {key}")));
                    };
                    texts.insert(key, text);
                }
                "index_settings" => {
                    if !value.is_object() {
                        return Err(EngineError::illegal_argument("malformed index_settings section"));
                    }
                    request.index_settings = value.clone();
                }
                "ignore_index_settings" => {
                    let list = list_of(key, value)?;
                    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
                    request.ignore_index_settings =
                        names.map(|name| name.strip_prefix("index.").unwrap_or(name).to_owned()).collect();
                }
                other => {
                    return Err(EngineError::parse(format!(
                        "[restore_snapshot_request] {}",
                        Self::shape().unknown(other)
                    )));
                }
            }
        }
        let mut rename =
            |pattern: &str, replacement: &str| match (texts.remove(pattern), texts.remove(replacement)) {
                (Some(given), Some(replacement)) => Rename::new(pattern, given, replacement).map(Some),
                (None, None) => Ok(None),
                // One of the two alone would change nothing, and nobody means that.
                (Some(_), None) => {
                    Err(EngineError::illegal_argument(format!("[{pattern}] needs [{replacement}] beside it")))
                }
                (None, Some(_)) => {
                    Err(EngineError::illegal_argument(format!("[{replacement}] needs [{pattern}] beside it")))
                }
            };
        request.rename = rename("rename_pattern", "rename_replacement")?;
        request.rename_aliases = rename("rename_alias_pattern", "rename_alias_replacement")?;
        Ok(request)
    }

    /// Indices to restore from a snapshot: the name of each, and its new name.
    ///
    /// # Errors
    /// For an index that the snapshot lacks or has only in part, for two indices that would get the same
    /// name, and for an invalid name.
    pub fn plan(&self, repository: &str, info: &Info) -> Result<Vec<(String, String)>, EngineError> {
        let refuse = |problem: &str| errors::restore(repository, &info.label(), problem);
        let names: Vec<&str> = info.names().into_iter().map(String::as_str).collect();
        let there: HashSet<&str> = names.iter().copied().collect();
        let expression: Vec<&str> = self
            .indices
            .split(',')
            .map(str::trim)
            .filter(|part| {
                !self.ignore_unavailable || part.contains('*') || *part == "_all" || there.contains(part)
            })
            .collect();
        // All that was asked for may be unavailable, which is not the same as asking for everything.
        let chosen = match expression.is_empty() && !self.indices.trim().is_empty() {
            true => Vec::new(),
            false => names::select(&expression.join(","), &names, errors::not_in_snapshot)?,
        };
        let mut targets: BTreeMap<String, &str> = BTreeMap::new();
        let mut plan = Vec::with_capacity(chosen.len());
        for index in chosen {
            if info.failures.contains_key(index) {
                if self.partial {
                    continue;
                }
                return Err(refuse(&format!("index [{index}] wasn't fully snapshotted - cannot restore")));
            }
            let target = renamed(self.rename.as_ref(), index)?;
            sparrow_catalog::names::check(&target)?;
            if let Some(other) = targets.insert(target.clone(), index) {
                return Err(refuse(&format!(
                    "indices [{index}] and [{other}] are renamed into the same index [{target}]"
                )));
            }
            plan.push((index.to_owned(), target));
        }
        Ok(plan)
    }

    /// Name of an alias after renaming.
    ///
    /// # Errors
    /// When the replacement refers to a group that the pattern lacks.
    pub fn alias(&self, alias: &str) -> Result<String, EngineError> {
        renamed(self.rename_aliases.as_ref(), alias)
    }
}

fn renamed(rename: Option<&Rename>, name: &str) -> Result<String, EngineError> {
    rename.map_or_else(|| Ok(name.to_owned()), |rename| rename.apply(name))
}

impl Rename {
    fn new(key: &str, pattern: &str, replacement: &str) -> Result<Self, EngineError> {
        let refuse = |detail: String| EngineError::illegal_argument(format!("malformed {key}: {detail}"));
        if pattern.len() > MOST_PATTERN {
            return Err(refuse(format!("it is longer than {MOST_PATTERN} bytes")));
        }
        let pattern = Regex::new(pattern).map_err(|error| {
            let text = error.to_string();
            refuse(text.lines().last().unwrap_or_default().to_owned())
        })?;
        Ok(Self { pattern, replacement: replacement.to_owned() })
    }

    /// Replaces every match as Java does: `$1` and `${name}` insert groups, a backslash escapes the next
    /// character.
    fn apply(&self, name: &str) -> Result<String, EngineError> {
        let refuse =
            |detail: &str| EngineError::illegal_argument(format!("malformed rename_replacement: {detail}"));
        let mut out = String::new();
        let mut end = 0;
        for captures in self.pattern.captures_iter(name) {
            let Some(whole) = captures.get(0) else { continue };
            out.push_str(&name[end..whole.start()]);
            end = whole.end();
            let mut rest = self.replacement.chars().peekable();
            while let Some(character) = rest.next() {
                match character {
                    '\\' => {
                        out.push(rest.next().ok_or_else(|| refuse("character to be escaped is missing"))?)
                    }
                    '$' if rest.peek() == Some(&'{') => {
                        let group: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                        if !self.pattern.capture_names().flatten().any(|named| named == group) {
                            return Err(refuse(&format!("No group with name {{{group}}}")));
                        }
                        out.push_str(captures.name(&group).map_or("", |group| group.as_str()));
                    }
                    '$' => {
                        let digit =
                            |c: Option<&char>| c.and_then(|c| c.to_digit(10)).map(|digit| digit as usize);
                        let mut group =
                            digit(rest.peek()).ok_or_else(|| refuse("Illegal group reference"))?;
                        rest.next();
                        if group >= captures.len() {
                            return Err(refuse(&format!("No group {group}")));
                        }
                        // Further digits belong to it as long as there is such a group.
                        while let Some(longer) =
                            digit(rest.peek()).map(|d| group * 10 + d).filter(|it| *it < captures.len())
                        {
                            group = longer;
                            rest.next();
                        }
                        out.push_str(captures.get(group).map_or("", |group| group.as_str()));
                    }
                    other => out.push(other),
                }
            }
        }
        out.push_str(&name[end..]);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rename(pattern: &str, replacement: &str, name: &str) -> Result<String, String> {
        let body = json!({"rename_pattern": pattern, "rename_replacement": replacement});
        RestoreRequest::parse(body.as_object().unwrap())
            .and_then(|request| renamed(request.rename.as_ref(), name))
            .map_err(|error| error.reason())
    }

    #[test]
    fn names_are_replaced_as_java_does_it() {
        assert_eq!(rename("(.+)", "$1_copy", "books").unwrap(), "books_copy");
        assert_eq!(rename("o", "0", "books").unwrap(), "b00ks");
        assert_eq!(rename("(?P<a>b)(o)", "${a}-$2", "books").unwrap(), "b-ooks");
        assert_eq!(rename("(b)", "$12", "books").unwrap(), "b2ooks");
        assert_eq!(rename("b", "\\$1", "books").unwrap(), "$1ooks");
        assert!(rename("(", "x", "books").unwrap_err().contains("rename_pattern"));
        assert!(rename("b", "$1", "books").unwrap_err().contains("No group 1"));
        assert!(rename("b", "$", "books").unwrap_err().contains("Illegal group"));
        assert!(rename("b", "${x}", "books").unwrap_err().contains("{x}"));
    }

    #[test]
    fn what_is_unknown_or_half_is_named() {
        let reason = |body: Value| RestoreRequest::parse(body.as_object().unwrap()).unwrap_err().reason();
        assert!(reason(json!({"nope": 1})).contains("[nope]"));
        assert!(reason(json!({"rename_pattern": "a"})).contains("[rename_replacement]"));
        assert!(reason(json!({"feature_states": ["kibana"]})).contains("[kibana]"));
    }
}
