//! `_aliases` and `_alias`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use sparrow_call::body::parse_object;
use sparrow_call::error::{EngineError, Exception};
use sparrow_call::request::{CancelFlag, Reply, Request};
use sparrow_call::rights::Right;
use sparrow_indices::IndexNames;
use sparrow_indices::Node;
use sparrow_indices::alias_changes::AliasChange;
use sparrow_indices::aliases::AliasSpec;
use sparrow_indices::blocks::Access;
use sparrow_indices::{ResolveOptions, concrete_name, names};
use sparrow_wire::glob;

/// Most actions of one request.
const MAX_ACTIONS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Add,
    Remove,
    RemoveIndex,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::RemoveIndex => "remove_index",
        }
    }
}

/// One action as a request asks for it: expressions, not yet names.
#[derive(Debug)]
struct Action {
    kind: Kind,
    indices: Vec<String>,
    aliases: Vec<String>,
    spec: AliasSpec,
    must_exist: Option<bool>,
}

impl Action {
    fn new(kind: Kind, indices: Vec<String>, aliases: Vec<String>) -> Self {
        Self { kind, indices, aliases, spec: AliasSpec::default(), must_exist: None }
    }

    fn parse(value: &Value) -> Result<Self, EngineError> {
        let Some((name, definition)) =
            value.as_object().filter(|it| it.len() == 1).and_then(|it| it.iter().next())
        else {
            return Err(EngineError::illegal_argument(
                "Too many operations declared on operation entry, or none: an action is one of [add], [remove], \
                 [remove_index]",
            ));
        };
        let kind = match name.as_str() {
            "add" => Kind::Add,
            "remove" => Kind::Remove,
            "remove_index" => Kind::RemoveIndex,
            other => {
                return Err(EngineError::illegal_argument(format!("[alias_action] unknown field [{other}]")));
            }
        };
        let Some(members) = definition.as_object() else {
            return Err(EngineError::parse(format!("[{name}] must be an object")));
        };
        let mut action = Self::new(kind, Vec::new(), Vec::new());
        for (key, value) in members {
            let unsupported = || {
                Err(EngineError::illegal_argument(format!("[{key}] is unsupported for [{}]", kind.name())))
            };
            match key.as_str() {
                "index" => action.indices = vec![one(key, value)?],
                "indices" => action.indices = many(key, value)?,
                "alias" | "aliases" if kind == Kind::RemoveIndex => return unsupported(),
                "alias" => action.aliases = vec![one(key, value)?],
                "aliases" => action.aliases = many(key, value)?,
                "must_exist" if kind != Kind::Remove => return unsupported(),
                "must_exist" => {
                    action.must_exist = Some(value.as_bool().ok_or_else(|| {
                        EngineError::illegal_argument(format!(
                            "Failed to parse value [{value}] as only [true] or [false] are allowed."
                        ))
                    })?);
                }
                _ => {
                    // Every alias of the action gets the same definition, so any of them stands for all in errors.
                    let alias = action.aliases.first().cloned().unwrap_or_default();
                    if !action.spec.set(&alias, key, value)? {
                        return Err(EngineError::illegal_argument(format!("[{name}] unknown field [{key}]")));
                    }
                    if kind != Kind::Add {
                        return unsupported();
                    }
                }
            }
        }
        if action.indices.is_empty() {
            return Err(EngineError::illegal_argument("One of [index] or [indices] is required"));
        }
        if action.aliases.is_empty() && kind != Kind::RemoveIndex {
            return Err(EngineError::illegal_argument("One of [alias] or [aliases] is required"));
        }
        action.resolve()?;
        Ok(action)
    }

    /// Names of aliases may be date math; then checks them.
    fn resolve(&mut self) -> Result<(), EngineError> {
        for alias in &mut self.aliases {
            *alias = concrete_name(alias)?;
        }
        self.check()
    }

    fn check(&self) -> Result<(), EngineError> {
        if self.kind != Kind::Add {
            return Ok(());
        }
        for alias in &self.aliases {
            names::check_alias(alias)?;
            self.spec.check(alias)?;
        }
        Ok(())
    }

    /// The changes that the action comes to, and the indices it names.
    fn plan(
        &self,
        names: &IndexNames,
        right: Right<'_>,
    ) -> Result<(Vec<AliasChange>, Vec<String>), EngineError> {
        let options =
            ResolveOptions { allow_no_indices: false, forbid_aliases: true, ..ResolveOptions::metadata() };
        let patterns = self.kind == Kind::Remove;
        right.check(
            self.aliases.iter().map(String::as_str).filter(|alias| !(patterns && is_pattern(alias))),
        )?;
        let indices = names.index_names(&self.indices.join(","), &options, right)?;
        let mut changes = Vec::new();
        for index in &indices {
            if let Some(handle) = names.indices.get(index) {
                handle.check_access(match self.kind {
                    Kind::RemoveIndex => Access::Delete,
                    Kind::Add | Kind::Remove => Access::MetadataWrite,
                })?;
            }
            match self.kind {
                Kind::RemoveIndex => changes.push(AliasChange::RemoveIndex { index: index.clone() }),
                Kind::Add => changes.extend(self.aliases.iter().map(|alias| AliasChange::Add {
                    index: index.clone(),
                    alias: alias.clone(),
                    spec: self.spec.clone(),
                })),
                Kind::Remove => {
                    let of_index = names.aliases_of(index);
                    for alias in &self.aliases {
                        let found: Vec<&String> = if is_pattern(alias) {
                            of_index
                                .keys()
                                .filter(|known| selects(alias, known) && right.sees(known))
                                .collect()
                        } else {
                            vec![alias]
                        };
                        changes.extend(found.into_iter().map(|alias| AliasChange::Remove {
                            index: index.clone(),
                            alias: alias.clone(),
                            must_exist: self.must_exist == Some(true),
                        }));
                    }
                }
            }
        }
        Ok((changes, indices))
    }
}

/// `POST /_aliases`
pub fn update_aliases(
    node: &Node,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let body = parse_object(body)?;
    if let Some(unknown) = body.keys().find(|key| *key != "actions") {
        return Err(EngineError::illegal_argument(format!("[aliases] unknown field [{unknown}]")));
    }
    let actions = match body.get("actions") {
        None => return Err(EngineError::illegal_argument("Required [actions]")),
        Some(Value::Array(actions)) => actions,
        Some(_) => return Err(EngineError::parse("[actions] must be an array")),
    };
    if actions.is_empty() {
        return Err(EngineError::invalid("Must specify at least one alias action"));
    }
    if actions.len() > MAX_ACTIONS {
        return Err(EngineError::illegal_argument(format!(
            "[actions] has {} entries, more than {MAX_ACTIONS}",
            actions.len()
        )));
    }
    let actions: Vec<Action> = actions.iter().map(Action::parse).collect::<Result<_, _>>()?;
    change(node, request, &actions)
}

/// Carries out actions, all or none, and says what came of each if one of them found nothing to remove.
fn change(node: &Node, request: &Request, actions: &[Action]) -> Result<Reply, EngineError> {
    let results = node.indices.change_aliases(|names| {
        let mut changes = Vec::new();
        let mut results = Vec::new();
        let mut missing = BTreeSet::new();
        let mut does_something = false;
        for action in actions {
            let (own, indices) = action.plan(names, request.right())?;
            let removes = |change: &AliasChange| match change {
                AliasChange::Remove { index, alias, .. } => {
                    names.aliases.get(alias).is_some_and(|indices| indices.contains_key(index))
                }
                _ => true,
            };
            let any = own.iter().any(removes);
            if any {
                does_something = true;
            } else {
                missing.extend(action.aliases.iter().cloned());
            }
            results.push(outcome(action, indices, any));
            changes.extend(own);
        }
        if !does_something {
            let missing: Vec<String> = missing.into_iter().collect();
            return Err(EngineError::api(404, aliases_not_found(&missing)));
        }
        Ok((changes, results))
    })?;
    let errors = results.iter().any(|result| result.get("error").is_some());
    let mut reply = Map::new();
    reply.insert("acknowledged".into(), true.into());
    reply.insert("errors".into(), errors.into());
    if errors {
        reply.insert("action_results".into(), Value::Array(results));
    }
    Ok(Reply::ok(&Value::Object(reply)))
}

fn outcome(action: &Action, indices: Vec<String>, done: bool) -> Value {
    let mut said = Map::new();
    said.insert("type".into(), action.kind.name().into());
    said.insert("indices".into(), indices.into());
    if action.kind != Kind::RemoveIndex {
        said.insert("aliases".into(), action.aliases.clone().into());
    }
    let mut result = Map::new();
    result.insert("action".into(), Value::Object(said));
    result.insert("status".into(), if done { 200 } else { 404 }.into());
    if !done {
        result.insert("error".into(), aliases_not_found(&action.aliases).to_json());
    }
    Value::Object(result)
}

fn aliases_not_found(aliases: &[String]) -> Exception {
    let list = aliases.join(",");
    Exception::new("aliases_not_found_exception", format!("aliases [{list}] missing"))
        .with("resource.type", "aliases")
        .with("resource.id", list)
}

/// `PUT|POST /{index}/_alias/{name}`
pub fn put_alias(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let body = parse_object(body)?;
    let (mut index, mut alias) = (request.part("index").to_owned(), request.part("name").to_owned());
    let mut spec = AliasSpec::default();
    for (key, value) in &body {
        match key.as_str() {
            "index" => index = one(key, value)?,
            "alias" => alias = one(key, value)?,
            _ if spec.set(&alias, key, value)? => {}
            other => return Err(EngineError::illegal_argument(format!("unknown field [{other}]"))),
        }
    }
    let mut problems = Vec::new();
    if alias.is_empty() {
        problems.push("Must specify at least one alias action".to_owned());
    }
    if index.is_empty() {
        problems.push("[index] can't be empty string".to_owned());
    }
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    let mut action =
        Action::new(Kind::Add, vec![index], alias.split(',').map(|name| name.trim().to_owned()).collect());
    action.spec = spec;
    action.resolve()?;
    change(node, request, &[action])
}

/// `DELETE /{index}/_alias/{name}`
pub fn delete_alias(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let aliases = request.part("name").split(',').map(|name| name.trim().to_owned()).collect();
    let mut action = Action::new(Kind::Remove, vec![request.part("index").to_owned()], aliases);
    action.resolve()?;
    change(node, request, &[action])
}

/// `GET|HEAD [/{index}]/_alias[/{name}]`
pub fn get_alias(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let options = ResolveOptions::everything().with(&request.params())?;
    let names = node.indices.names();
    let wanted: Vec<&str> =
        request.part("name").split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let right = request.right();
    right.check(wanted.iter().copied().filter(|name| !is_expression(name)))?;
    let mut missing = must_exist(&wanted);
    let mut shown = Map::new();
    for index in names.index_names(request.part("index"), &options, right)? {
        let mut aliases = Map::new();
        for (alias, spec) in names.aliases_of(&index) {
            if !chosen(&wanted, &alias) {
                continue;
            }
            let named = missing.remove(alias.as_str());
            if named || wanted.contains(&alias.as_str()) || right.sees(&alias) {
                aliases.insert(alias, spec.to_json());
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

/// Whether a list of names, patterns and exclusions chooses an alias: the last that speaks of it counts. An empty list
/// chooses all.
pub(super) fn chosen(wanted: &[&str], alias: &str) -> bool {
    wanted.iter().fold(wanted.is_empty(), |found, one| match one.strip_prefix('-') {
        Some(excluded) => found && !selects(excluded, alias),
        None => found || selects(one, alias),
    })
}

/// The names of a list that are an error where there is no such alias: those that are no pattern and that nothing behind
/// them excludes. Up to the first pattern a `-` belongs to the name.
fn must_exist<'a>(wanted: &[&'a str]) -> BTreeSet<&'a str> {
    let first = wanted.iter().position(|name| name.contains('*')).unwrap_or(wanted.len());
    let excluded = |place: usize, name: &str| {
        let behind = wanted.iter().skip(first.max(place + 1));
        behind.filter_map(|one| one.strip_prefix('-')).any(|pattern| selects(pattern, name))
    };
    wanted
        .iter()
        .enumerate()
        .filter(|(place, name)| {
            let excludes = *place > first && name.starts_with('-');
            !(excludes || is_pattern(name) || excluded(*place, name))
        })
        .map(|(_, name)| *name)
        .collect()
}

/// Whether a name may stand for several aliases, or for none: a pattern or an exclusion.
pub(super) fn is_expression(name: &str) -> bool {
    is_pattern(name) || name.starts_with('-')
}

fn is_pattern(name: &str) -> bool {
    name == "_all" || name.contains('*')
}

fn selects(pattern: &str, alias: &str) -> bool {
    pattern == "_all" || glob::matches(pattern, alias)
}

fn one(key: &str, value: &Value) -> Result<String, EngineError> {
    match value {
        Value::String(text) if text.is_empty() => {
            Err(EngineError::illegal_argument(format!("[{key}] can't be empty string")))
        }
        Value::String(text) => Ok(text.clone()),
        _ => Err(EngineError::illegal_argument(format!("[{key}] must be a string"))),
    }
}

fn many(key: &str, value: &Value) -> Result<Vec<String>, EngineError> {
    match value {
        Value::Array(items) if items.is_empty() => {
            Err(EngineError::illegal_argument(format!("[{key}] can't be empty")))
        }
        Value::Array(items) => items.iter().map(|item| one(key, item)).collect(),
        other => Ok(vec![one(key, other)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::{chosen, must_exist};

    #[test]
    fn aliases_are_chosen_by_names_patterns_and_exclusions() {
        assert!(chosen(&[], "a"));
        assert!(chosen(&["_all"], "a") && chosen(&["a*"], "ab") && chosen(&["x", "a"], "a"));
        assert!(!chosen(&["a*", "-ab"], "ab") && chosen(&["a*", "-ab"], "ac"));
        assert!(!chosen(&["-ab"], "ab"));
        assert!(chosen(&["-ab", "a*", "-ac"], "ab") && !chosen(&["ab", "-a*"], "ab"));
    }

    #[test]
    fn names_that_nothing_excludes_must_exist() {
        let names = |wanted: &[&'static str]| must_exist(wanted).into_iter().collect::<Vec<_>>();
        assert_eq!(names(&["b", "a", "c*", "_all"]), ["a", "b"]);
        assert_eq!(names(&["-a", "a*", "-b"]), ["-a"]);
        assert_eq!(names(&["a1", "b2", "-a*", "-b2"]), Vec::<&str>::new());
        assert_eq!(names(&["-x", "-x*", "-y"]), ["-x"]);
    }
}
