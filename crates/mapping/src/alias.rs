//! Other names of fields (`alias`): requests use them like the fields that they stand for, documents do not.

use std::borrow::Cow;

use super::error::MappingError;
use super::types::FieldType;
use super::{Mapping, Node};

impl Mapping {
    /// Path under which the values of a field are stored: that of the field which `path` is an alias of, or `path` itself.
    pub fn concrete<'p>(&'p self, path: &'p str) -> Cow<'p, str> {
        if !self.has_aliases {
            return Cow::Borrowed(path);
        }
        match self.by_path.get(path) {
            Some(FieldType::Alias { path }) => Cow::Borrowed(path),
            None if self.has_flattened => Cow::Owned(self.in_flattened(path)),
            _ => Cow::Borrowed(path),
        }
    }

    /// The path of a key in the objects of a `flattened` field, whether it begins with the path of the field or with an alias of it.
    fn in_flattened(&self, path: &str) -> String {
        let dots = path.rmatch_indices('.').map(|(at, _)| at);
        for at in dots {
            let Some(around) = self.by_path.get(&path[..at]) else { continue };
            if let FieldType::Alias { path: target } = around
                && self.by_path.get(&**target).is_some_and(FieldType::is_flattened)
            {
                return format!("{target}{}", &path[at..]);
            }
            break;
        }
        path.to_owned()
    }

    /// Path at which a document holds the values of a field: its own, for a multi-field (`title.raw`) that of the field around it, and
    /// for an alias that of the field it stands for. For what is no field it is the path itself.
    pub fn source_path<'p>(&'p self, path: &'p str) -> Cow<'p, str> {
        let path = self.concrete(path);
        match self.end_of_leaf(&path) {
            None => path,
            Some(end) => match path {
                Cow::Borrowed(path) => Cow::Borrowed(&path[..end]),
                Cow::Owned(path) => Cow::Owned(path[..end].to_owned()),
            },
        }
    }

    /// Length of the part of a field's path that names the field around a multi-field, or the whole of it; `None` where there is no
    /// such field.
    fn end_of_leaf(&self, path: &str) -> Option<usize> {
        let mut object = &self.root;
        let mut end = 0;
        for part in path.split('.') {
            end += part.len();
            match object.properties.get(part)? {
                Node::Object(inner) => object = inner,
                Node::Leaf(leaf) if leaf.field_type.is_flattened() => return None,
                Node::Leaf(_) => return self.field(path).map(|_| end),
            }
            end += 1;
        }
        None
    }

    /// Type of the field or object at `path`, or of the field that `path` is an alias of.
    pub(crate) fn at(&self, path: &str) -> Option<&FieldType> {
        match self.by_path.get(path)? {
            FieldType::Alias { path } => self.by_path.get(&**path),
            field_type => Some(field_type),
        }
    }

    /// The names by which requests find fields with values, with the types of these fields: those of [`Mapping::leaf_fields`], and the
    /// aliases of them.
    pub fn named_fields(&self) -> impl Iterator<Item = (&str, &FieldType)> {
        let leaves =
            self.by_path.iter().filter(|(_, field_type)| !matches!(field_type, FieldType::Object { .. }));
        leaves.filter_map(|(path, _)| Some((path.as_str(), self.at(path)?)))
    }

    /// Checks fields that depend on others: those inside `nested` ones, aliases, and completions with the values of others.
    ///
    /// # Errors
    /// As [`Mapping::check_nested`], [`Mapping::check_aliases`] and [`Mapping::check_contexts`].
    pub(crate) fn check_dependent(&self) -> Result<(), MappingError> {
        self.check_nested()?;
        self.check_aliases()?;
        self.check_contexts()
    }

    /// Checks that each alias stands for a field with values that is in the same documents.
    ///
    /// # Errors
    /// The first alias that does not.
    pub(crate) fn check_aliases(&self) -> Result<(), MappingError> {
        if !self.has_aliases {
            return Ok(());
        }
        let mut aliases: Vec<(&String, &str)> = Vec::new();
        for (alias, field_type) in &*self.by_path {
            if let FieldType::Alias { path } = field_type {
                aliases.push((alias, path));
            }
        }
        aliases.sort_unstable();
        for (alias, path) in aliases {
            let problem = match self.by_path.get(path) {
                _ if alias == path => "an alias cannot refer to itself.",
                None | Some(FieldType::Object { .. }) => {
                    "an alias must refer to an existing field in the mappings."
                }
                Some(FieldType::Alias { .. }) => "an alias cannot refer to another alias.",
                Some(_) => match (self.nested_around(alias), self.nested_around(path)) {
                    (of_alias, of_target) if of_alias == of_target => continue,
                    (of_alias, of_target) => return Err(other_scope(alias, path, of_alias, of_target)),
                },
            };
            return Err(MappingError::Malformed { reason: invalid(alias, path, problem) });
        }
        Ok(())
    }
}

fn invalid(alias: &str, path: &str, problem: &str) -> String {
    format!("Invalid [path] value [{path}] for field alias [{alias}]: {problem}")
}

/// The error of an alias that is in other documents than its target.
fn other_scope(alias: &str, path: &str, of_alias: Option<&str>, of_target: Option<&str>) -> MappingError {
    let of_alias = of_alias.map_or("The alias is not nested".to_owned(), |nested| {
        format!("The alias's nested scope is [{nested}]")
    });
    let of_target = of_target.map_or("the target is not nested.".to_owned(), |nested| {
        format!("the target's nested scope is [{nested}].")
    });
    let problem =
        format!("an alias must have the same nested scope as its target. {of_alias}, but {of_target}");
    MappingError::BadValue { reason: invalid(alias, path, &problem) }
}
