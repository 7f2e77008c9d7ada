//! Showing aliases, by lists of names, patterns and exclusions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use sparrow_catalog::{Node, ResolveOptions};
use sparrow_request::error::EngineError;
use sparrow_request::name_steps::{NamePattern, NameSteps, is_pattern};
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Right};

pub(crate) const OPERATIONS: &[Operation<Node>] =
    &[Operation::new("get_alias", Action::GetAliases, Lane::Look, get_alias)
        .about("Which aliases there are. 404 with what was found, and `error`, if one is missing.")
        .takes(&[INDICES, "local master_timeout"])];

/// `GET|HEAD [/{index}]/_alias[/{name}]`
fn get_alias(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let options = ResolveOptions::everything().with(&request.params())?;
    let names = node.indices.names();
    let wanted: Vec<&str> =
        request.part("name").split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let right = request.right();
    right.check(wanted.iter().copied().filter(|name| !is_expression(name)))?;
    let mut missing = must_exist(&wanted)?;
    let mut shown = Map::new();
    let of_indices = names.aliases_by_index();
    let mut choice = Choice::new(&wanted, right);
    for index in names.index_names(request.part("index"), &options, right)? {
        let mut aliases = Map::new();
        for (alias, spec) in of_indices.get(index.as_str()).into_iter().flatten() {
            let chosen = choice.of(alias)?;
            if !chosen.chosen {
                continue;
            }
            let named = missing.remove(alias.as_str());
            if named || chosen.is_named || chosen.is_seen {
                aliases.insert((*alias).clone(), spec.to_json());
            }
        }
        if wanted.is_empty() || !aliases.is_empty() {
            shown.insert(index, json!({"aliases": aliases}));
        }
    }
    if missing.is_empty() {
        return Ok(Reply::ok(&Value::Object(shown)));
    }
    let list = missing.iter().copied().collect::<Vec<_>>().join(",");
    let word = if missing.len() == 1 { "alias" } else { "aliases" };
    let mut body = Map::new();
    body.insert("error".into(), format!("{word} [{list}] missing").into());
    body.insert("status".into(), 404.into());
    body.extend(shown);
    Ok(Reply::json(404, &Value::Object(body)))
}

/// Decides which aliases a list of names, patterns and exclusions chooses. The result for each alias is kept, as it may belong to many
/// indices.
pub(super) struct Choice<'a> {
    wanted: &'a [&'a str],
    /// The elements of the list, and whether each is an exclusion.
    parts: Vec<(bool, NamePattern<'a>)>,
    right: Right<'a>,
    known: BTreeMap<&'a str, AliasChoice>,
    steps: NameSteps,
}

/// What a list means for one alias.
#[derive(Debug, Clone, Copy)]
pub(super) struct AliasChoice {
    pub(super) chosen: bool,
    /// Whether the list contains the alias literally.
    pub(super) is_named: bool,
    /// Whether the caller's patterns may match the alias.
    pub(super) is_seen: bool,
}

impl<'a> Choice<'a> {
    pub(super) fn new(wanted: &'a [&'a str], right: Right<'a>) -> Self {
        Self { wanted, parts: parts(wanted), right, known: BTreeMap::new(), steps: NameSteps::default() }
    }

    /// Decides about one alias.
    ///
    /// # Errors
    /// If the request was cancelled, or its patterns have been compared with too many names.
    pub(super) fn of(&mut self, alias: &'a str) -> Result<AliasChoice, EngineError> {
        self.steps.add(1)?;
        if let Some(choice) = self.known.get(alias) {
            return Ok(*choice);
        }
        let choice = AliasChoice {
            chosen: chosen(&self.parts, alias, &mut self.steps)?,
            is_named: self.wanted.contains(&alias),
            is_seen: self.right.sees(alias),
        };
        self.known.insert(alias, choice);
        Ok(choice)
    }
}

fn parts<'a>(wanted: &[&'a str]) -> Vec<(bool, NamePattern<'a>)> {
    let part = |one: &&'a str| match one.strip_prefix('-') {
        Some(excluded) => (true, NamePattern::new(excluded)),
        None => (false, NamePattern::new(one)),
    };
    wanted.iter().map(part).collect()
}

/// Whether a list of names, patterns and exclusions chooses an alias: the last element that matches it decides. An empty list chooses all.
fn chosen(
    parts: &[(bool, NamePattern<'_>)],
    alias: &str,
    steps: &mut NameSteps,
) -> Result<bool, EngineError> {
    let mut chosen = parts.is_empty();
    for (excludes, pattern) in parts {
        if pattern.matches(alias, steps)? {
            chosen = !excludes;
        }
    }
    Ok(chosen)
}

/// The names in a list for which a missing alias is an error: those that are not patterns and that no later element excludes. Before the
/// first pattern, a leading `-` is part of the name.
fn must_exist<'a>(wanted: &[&'a str]) -> Result<BTreeSet<&'a str>, EngineError> {
    let mut steps = NameSteps::default();
    let first = wanted.iter().position(|name| name.contains('*')).unwrap_or(wanted.len());
    let mut missing = BTreeSet::new();
    for (place, name) in wanted.iter().enumerate() {
        let excludes = place > first && name.starts_with('-');
        if excludes || is_pattern(name) {
            continue;
        }
        let behind = wanted.iter().skip(first.max(place + 1));
        let mut excluded = false;
        for pattern in behind.filter_map(|one| one.strip_prefix('-')) {
            excluded |= NamePattern::new(pattern).matches(name, &mut steps)?;
        }
        if !excluded {
            missing.insert(*name);
        }
    }
    Ok(missing)
}

/// Whether an element of a list is a pattern or an exclusion, which may match several aliases or none.
pub(super) fn is_expression(name: &str) -> bool {
    is_pattern(name) || name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_chosen_by_names_patterns_and_exclusions() {
        let chosen = |wanted: &[&str], alias| {
            super::chosen(&parts(wanted), alias, &mut NameSteps::default()).expect("few")
        };
        assert!(chosen(&[], "a"));
        assert!(chosen(&["_all"], "a") && chosen(&["a*"], "ab") && chosen(&["x", "a"], "a"));
        assert!(!chosen(&["a*", "-ab"], "ab") && chosen(&["a*", "-ab"], "ac"));
        assert!(!chosen(&["-ab"], "ab"));
        assert!(chosen(&["-ab", "a*", "-ac"], "ab") && !chosen(&["ab", "-a*"], "ab"));
    }

    #[test]
    fn names_that_nothing_excludes_must_exist() {
        let names =
            |wanted: &[&'static str]| must_exist(wanted).expect("few").into_iter().collect::<Vec<_>>();
        assert_eq!(names(&["b", "a", "c*", "_all"]), ["a", "b"]);
        assert_eq!(names(&["-a", "a*", "-b"]), ["-a"]);
        assert_eq!(names(&["a1", "b2", "-a*", "-b2"]), Vec::<&str>::new());
        assert_eq!(names(&["-x", "-x*", "-y"]), ["-x"]);
    }
}
