//! Requests that add and remove aliases: `_aliases`, and `PUT` and `DELETE` of `_alias`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use sparrow_catalog::IndexNames;
use sparrow_catalog::Node;
use sparrow_catalog::alias_changes::AliasChange;
use sparrow_catalog::aliases::AliasSpec;
use sparrow_catalog::blocks::Access;
use sparrow_catalog::{ResolveOptions, concrete_name, names};
use sparrow_request::body::parse_object;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::name_steps::{NamePattern, NameSteps, is_pattern};
use sparrow_request::operation::parameters::TIMEOUTS;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights;
use sparrow_request::rights::Right;
use sparrow_wire::shape::{Shape, flag, list, object, one_member, several, text};

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("update_aliases", rights::Action::Aliases, Lane::Write, update_aliases)
        .about("Changes several aliases in one step.")
        .holds("UpdateAliasesRequest", shape)
        .takes(&[TIMEOUTS]),
    Operation::new("put_alias", rights::Action::Aliases, Lane::Write, put_alias)
        .about("Adds an alias to indices.")
        .holds("PutAliasRequest", alias_shape)
        .takes(&[TIMEOUTS]),
    Operation::new("delete_alias", rights::Action::Aliases, Lane::Write, delete_alias)
        .about("Removes an alias from indices.")
        .takes(&[TIMEOUTS]),
];

/// What a request for several changes holds.
fn shape() -> Shape {
    object([("actions", list(action_shape()))]).needs(&["actions"])
}

fn action_shape() -> Shape {
    one_member([Kind::Add, Kind::Remove, Kind::RemoveIndex].map(|kind| (kind.name(), kind.shape())))
}

/// What a request for one alias holds. What its path says may also stand there.
fn alias_shape() -> Shape {
    object(AliasSpec::members()).and([("index", text()), ("alias", text())])
}

/// Most actions of one request.
const MAX_ACTIONS: usize = 10_000;
/// Most indices and aliases that the actions of a request may name, with a pattern counted as one, and most changes that they may expand
/// to.
const MAX_CHANGES: usize = 100_000;

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

    /// What an action of the kind holds.
    fn shape(self) -> Shape {
        let indices = object([("index", text()), ("indices", several(text()))]);
        let both = || indices.clone().and([("alias", text()), ("aliases", several(text()))]);
        match self {
            Self::Add => both().and(AliasSpec::members()),
            Self::Remove => both().and([("must_exist", flag())]),
            Self::RemoveIndex => indices,
        }
    }
}

/// One action of a request; its indices and aliases may be patterns or other expressions.
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
                let unknown = action_shape().unknown(other);
                return Err(EngineError::illegal_argument(format!("[alias_action] {unknown}")));
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
                        let unknown = kind.shape().unknown(key);
                        return Err(EngineError::illegal_argument(format!("[{name}] {unknown}")));
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

    /// Appends the changes that the action expands to, and returns the names of its indices. `count` is the number of changes of all
    /// actions so far.
    fn plan(
        &self,
        names: &IndexNames,
        right: Right<'_>,
        changes: &mut Vec<AliasChange>,
        count: &mut usize,
    ) -> Result<Vec<String>, EngineError> {
        let options =
            ResolveOptions { allow_no_indices: false, forbid_aliases: true, ..ResolveOptions::metadata() };
        let patterns = self.kind == Kind::Remove;
        right.check(
            self.aliases.iter().map(String::as_str).filter(|alias| !(patterns && is_pattern(alias))),
        )?;
        let indices = names.index_names(&self.indices.join(","), &options, right)?;
        let named: Vec<&String> =
            self.aliases.iter().filter(|alias| !(patterns && is_pattern(alias))).collect();
        let selected = if patterns { self.selected(names, right)? } else { HashMap::new() };
        let spec = Arc::new(self.spec.clone());
        let mut steps = NameSteps::default();
        for index in &indices {
            if let Some(handle) = names.indices.get(index) {
                handle.check_access(match self.kind {
                    Kind::RemoveIndex => Access::Delete,
                    Kind::Add | Kind::Remove => Access::MetadataWrite,
                })?;
            }
            let selected = selected.get(index.as_str()).map(Vec::as_slice).unwrap_or_default();
            // An index in which there is nothing to change is told of as well.
            let more = (named.len() + selected.len()).max(1);
            *count += more;
            if *count > MAX_CHANGES {
                return Err(EngineError::illegal_argument(format!(
                    "[actions] come to more than [{MAX_CHANGES}] changes of aliases"
                )));
            }
            steps.add(more as u64)?;
            match self.kind {
                Kind::RemoveIndex => changes.push(AliasChange::RemoveIndex { index: index.clone() }),
                Kind::Add => changes.extend(named.iter().map(|alias| AliasChange::Add {
                    index: index.clone(),
                    alias: (*alias).clone(),
                    spec: Arc::clone(&spec),
                })),
                Kind::Remove => {
                    changes.extend(named.iter().chain(selected).map(|alias| AliasChange::Remove {
                        index: index.clone(),
                        alias: (*alias).clone(),
                        must_exist: self.must_exist == Some(true),
                    }));
                }
            }
        }
        Ok(indices)
    }

    /// The aliases of each index that the patterns of a removal match.
    fn selected<'n>(
        &self,
        names: &'n IndexNames,
        right: Right<'_>,
    ) -> Result<HashMap<&'n str, Vec<&'n String>>, EngineError> {
        let mut steps = NameSteps::default();
        let mut aliases: BTreeSet<&String> = BTreeSet::new();
        for pattern in self.aliases.iter().filter(|alias| is_pattern(alias)) {
            let pattern = NamePattern::new(pattern);
            for alias in names.aliases.keys() {
                if pattern.matches(alias, &mut steps)? && right.sees(alias) {
                    aliases.insert(alias);
                }
            }
        }
        let mut selected: HashMap<&str, Vec<&String>> = HashMap::new();
        for alias in aliases {
            for index in names.aliases.get(alias).into_iter().flat_map(|indices| indices.keys()) {
                steps.add(1)?;
                selected.entry(index).or_default().push(alias);
            }
        }
        Ok(selected)
    }
}

/// `POST /_aliases`
fn update_aliases(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let body = parse_object(body)?;
    if let Some(unknown) = shape().stranger(&body) {
        return Err(EngineError::illegal_argument(format!("[aliases] {unknown}")));
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

/// Refuses more indices and aliases than a request may name.
fn check_named(actions: &[Action]) -> Result<(), EngineError> {
    let named: usize = actions.iter().map(|action| action.indices.len() + action.aliases.len()).sum();
    if named > MAX_CHANGES {
        return Err(EngineError::illegal_argument(format!(
            "[actions] name [{named}] indices and aliases, more than [{MAX_CHANGES}]"
        )));
    }
    Ok(())
}

/// Carries out all actions or none. If an action found nothing to remove, the response has the result of each.
fn change(node: &Node, request: &Request, actions: &[Action]) -> Result<Reply, EngineError> {
    check_named(actions)?;
    let results = node.indices.change_aliases(|names| {
        let (mut changes, mut count) = (Vec::new(), 0);
        let mut results = Vec::new();
        let mut missing = BTreeSet::new();
        let mut does_something = false;
        for action in actions {
            let before = changes.len();
            let indices = action.plan(names, request.right(), &mut changes, &mut count)?;
            let removes = |change: &AliasChange| match change {
                AliasChange::Remove { index, alias, .. } => {
                    names.aliases.get(alias).is_some_and(|indices| indices.contains_key(index))
                }
                _ => true,
            };
            let any = changes[before..].iter().any(removes);
            if any {
                does_something = true;
            } else {
                missing.extend(action.aliases.iter().cloned());
            }
            results.push(outcome(action, indices, any));
        }
        if !does_something {
            let missing: Vec<String> = missing.into_iter().collect();
            return Err(EngineError::api(404, aliases_not_found(&missing)));
        }
        Ok((changes, results))
    })?;
    let errors = results.iter().any(|result| result.error.is_some());
    let response = AliasResponse { acknowledged: true, errors, action_results: errors.then_some(results) };
    Ok(Reply::ok(&json!(response)))
}

/// The response of `POST /_aliases`, in the order of its members.
#[derive(Serialize)]
struct AliasResponse {
    acknowledged: bool,
    errors: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_results: Option<Vec<ActionResult>>,
}

/// The result of an action, in the order of its JSON members.
#[derive(Serialize)]
struct ActionResult {
    action: ActionView,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

/// An action in the response, with its patterns expanded to names of indices.
#[derive(Serialize)]
struct ActionView {
    #[serde(rename = "type")]
    kind: &'static str,
    indices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aliases: Option<Vec<String>>,
}

fn outcome(action: &Action, indices: Vec<String>, done: bool) -> ActionResult {
    let aliases = (action.kind != Kind::RemoveIndex).then(|| action.aliases.clone());
    ActionResult {
        action: ActionView { kind: action.kind.name(), indices, aliases },
        status: if done { 200 } else { 404 },
        error: (!done).then(|| aliases_not_found(&action.aliases).to_json()),
    }
}

fn aliases_not_found(aliases: &[String]) -> Exception {
    let list = aliases.join(",");
    Exception::new("aliases_not_found_exception", format!("aliases [{list}] missing"))
        .with("resource.type", "aliases")
        .with("resource.id", list)
}

/// `PUT|POST /{index}/_alias/{name}`
fn put_alias(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let body = parse_object(body)?;
    let (mut index, mut alias) = (request.part("index").to_owned(), request.part("name").to_owned());
    let mut spec = AliasSpec::default();
    for (key, value) in &body {
        match key.as_str() {
            "index" => index = one(key, value)?,
            "alias" => alias = one(key, value)?,
            _ if spec.set(&alias, key, value)? => {}
            other => return Err(EngineError::illegal_argument(alias_shape().unknown(other))),
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
fn delete_alias(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let aliases = request.part("name").split(',').map(|name| name.trim().to_owned()).collect();
    let mut action = Action::new(Kind::Remove, vec![request.part("index").to_owned()], aliases);
    action.resolve()?;
    change(node, request, &[action])
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
